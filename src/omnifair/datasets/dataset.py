"""What every data set is handed over as."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


# Tables have no single truth value, so two data sets cannot be compared by ``==``: eq is off.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A table to learn from, its labels, and who the rows are.

    Attributes
    ----------
    name : str
        What the function that loads it is called.
    X : pandas.DataFrame
        The features: no label, nothing that gives the label away, no sampling weight, no
        sensitive column. Missing values stay the texts that the original uses.
    y : pandas.Series
        The label, 0 or 1.
    sensitive_features : pandas.DataFrame
        The sensitive columns, row by row as in `X`.
    positive : str
        What the original calls the label that is 1 here.
    source : str
        Where this copy came from.
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    sensitive_features: pd.DataFrame
    positive: str
    source: str

    def __repr__(self) -> str:
        people = ", ".join(map(str, self.sensitive_features.columns))
        return (
            f"<{type(self).__name__} {self.name}: {len(self.X):,} rows, "
            f"{self.X.shape[1]} features, {self.y.mean():.2%} {self.positive!r}, "
            f"by {people}; {self.source}>"
        )


def need(module: str) -> Any:
    """Import a module of the optional extra, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"omnifair.datasets needs {module.partition('.')[0]}, which is not installed here: "
            "pip install 'omnifair[datasets]'"
        ) from error
