"""Benchmark data: real tables, fetched once and checked, and a synthetic one whose truth is known.

::

    from omnifair.datasets import adult

    data = adult()
    data.X, data.y, data.sensitive_features, data.source

Every real data set is looked for as ``NAME.csv.gz`` in one folder: the argument ``data_home``,
else the environment variable ``OMNIFAIR_DATA``, else the platform's cache folder. What is not
there is downloaded from the first of several sources that answers, checked against a pinned
SHA-256, and kept in that folder. What cannot be had raises
:class:`~omnifair.errors.DatasetError`, which says what to put where.

Real data need the extra ``omnifair[datasets]``; nothing of it is imported before a function of
this package is called.
"""

from omnifair.datasets.dataset import Dataset
from omnifair.datasets.lending import Lending, Population, make_lending
from omnifair.datasets.load import (
    acs_income,
    adult,
    bank,
    compas,
    compas_two_years,
    kdd_census,
    lsac,
)
from omnifair.errors import DatasetError

__all__ = [
    "Dataset",
    "DatasetError",
    "Lending",
    "Population",
    "acs_income",
    "adult",
    "bank",
    "compas",
    "compas_two_years",
    "kdd_census",
    "lsac",
    "make_lending",
]
