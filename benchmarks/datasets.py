"""The paper's data sets with their two groups, cut 60/20/20 by seed and encoded for any learner.

::

    table = load("adult")  # raw columns, label, group
    split = cut(table, seed=0)  # Split(train, validation, test), matrices of floats
    split.train.X, split.train.y, split.train.group

The sensitive column is no feature. Encoding (standardised numbers, one-hot text) is learned on
the training part only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from omnifair import datasets as source


@dataclass(frozen=True, eq=False)
class Table:
    """A data set with one group for each row. Rows that are in no compared group are left out.

    ``people`` holds all sensitive columns; ``part.rows`` of a split are rows of it.
    """

    name: str
    X: pd.DataFrame
    y: NDArray[np.int64]
    group: NDArray[Any]
    sensitive: str
    people: pd.DataFrame

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a split: ``X`` is encoded, ``frame`` holds the same rows as they were."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    group: NDArray[Any]
    frame: pd.DataFrame
    rows: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, keep: NDArray[np.intp]) -> Part:
        """These rows of the part only."""
        return Part(
            self.X[keep], self.y[keep], self.group[keep], self.frame.iloc[keep], self.rows[keep]
        )


@dataclass(frozen=True, eq=False)
class Split:
    """A table cut into three."""

    name: str
    seed: int
    train: Part
    validation: Part
    test: Part


def load(name: str) -> Table:
    """One of the tables in :data:`TABLES`."""
    return TABLES[name]()


def cut(table: Table, seed: int, max_rows: int | None = None) -> Split:
    """60/20/20, stratified by group and label; of at most ``max_rows`` rows drawn by the seed."""
    rows = np.arange(len(table))
    strata = pd.factorize(pd.Series(table.group).astype(str) + pd.Series(table.y).astype(str))[0]
    if max_rows is not None and max_rows < len(rows):
        rows, _ = train_test_split(rows, train_size=max_rows, random_state=seed, stratify=strata)
    train, rest = train_test_split(rows, train_size=0.6, random_state=seed, stratify=strata[rows])
    validation, test = train_test_split(
        rest, train_size=0.5, random_state=seed, stratify=strata[rest]
    )
    encoder = _encoder().fit(table.X.iloc[train])
    parts = [
        Part(
            np.ascontiguousarray(encoder.transform(table.X.iloc[part]), dtype=float),
            table.y[part],
            table.group[part],
            table.X.iloc[part],
            part,
        )
        for part in (train, validation, test)
    ]
    return Split(table.name, seed, *parts)


def _encoder() -> ColumnTransformer:
    text = OneHotEncoder(
        min_frequency=0.005, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), make_column_selector(dtype_include="number")),
            ("text", text, make_column_selector(dtype_exclude="number")),
        ]
    )


def _table(data: Any, group: Any, sensitive: str, keep: Any = None) -> Table:
    group = np.asarray(group).astype(str)
    keep = np.ones(len(group), dtype=bool) if keep is None else np.asarray(keep)
    return Table(
        data.name,
        data.X[keep].reset_index(drop=True),
        np.asarray(data.y, dtype=np.int64)[keep],
        group[keep],
        sensitive,
        data.sensitive_features[keep].reset_index(drop=True),
    )


def adult() -> Table:
    """Adult by sex: 48,842 rows."""
    data = source.adult()
    return _table(data, data.sensitive_features["sex"], "sex")


def compas() -> Table:
    """COMPAS by race, African-American against Caucasian: 9,293 of 11,002 rows."""
    return _compas(("African-American", "Caucasian"))


def compas3() -> Table:
    """COMPAS by race, with Hispanic as the third group: 10,294 of 11,002 rows."""
    return replace(_compas(("African-American", "Caucasian", "Hispanic")), name="compas3")


def _compas(races: tuple[str, ...]) -> Table:
    data = source.compas()
    race = data.sensitive_features["race"]
    return _table(data, race, "race", race.isin(races))


def lsac() -> Table:
    """LSAC by race, White against Black: 24,479 of 27,472 rows."""
    data = source.lsac()
    race = data.sensitive_features["race"]
    return _table(data, race, "race", race.isin(("White", "Black")))


def bank() -> Table:
    """Bank by age, 25 to 60 against younger or older: the 30,488 rows without an unknown value.

    The paper names the column but not the groups; its number of rows is that of these.
    """
    data = source.bank()
    known = ~(data.X == "unknown").any(axis=1) & (data.sensitive_features["marital"] != "unknown")
    middle = data.sensitive_features["age"].between(25, 60)
    return _table(data, np.where(middle, "25 to 60", "other"), "age", known)


def acs_income() -> Table:
    """ACS income by sex: 332,900 rows, for scale."""
    data = source.acs_income()
    return _table(data, data.sensitive_features["SEX"], "sex")


def kdd_census() -> Table:
    """KDD census income by sex: 299,285 rows, for scale."""
    data = source.kdd_census()
    return _table(data, data.sensitive_features["sex"], "sex")


TABLES: dict[str, Callable[[], Table]] = {
    "adult": adult,
    "compas": compas,
    "lsac": lsac,
    "bank": bank,
    "compas3": compas3,
    "acs_income": acs_income,
    "kdd_census": kdd_census,
}
