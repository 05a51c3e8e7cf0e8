"""A quick joint model: how likely a row is to be in each group with each label, given X.

It is no part of what is returned: it only says where to look for multipliers. So it is small
(multinomial logistic regression on a few thousand rows) and asks for nothing but columns.
"""

from __future__ import annotations

import warnings
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from omnifair.problem import Array
from omnifair.training import Setting, Trial

# More rows than this sharpen a guide no further than the first training does.
ROWS = 5_000
LEVELS = 30


def joint_chances(setting: Setting, plain: Trial) -> tuple[Array, NDArray[np.intp]] | None:
    """``P(atom, label | x)`` of some measured rows (by ``2 * atom + label``), and which rows.

    None where ``X`` cannot be read as numbers.
    """
    fold, problem = setting.folds[0], setting.problem
    random = np.random.RandomState(setting.learner.seed)
    train = _some(np.flatnonzero(fold.train.weights > 0), random)
    code = fold.train.code[train]
    if len(np.unique(code)) < 2:
        return None
    features = _Features.of(_safe_indexing(fold.X_train, train), plain.models[0])
    if features is None:
        return None
    model = LogisticRegression(max_iter=100)
    with warnings.catch_warnings():
        # A guide that has not converged still guides, and so does one of many groups, few rows.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        model.fit(features.train, code, fold.train.weights[train])
    rows: list[NDArray[np.intp]] = []
    parts: list[Array] = []
    for part in setting.folds:
        here = _some(np.arange(len(part.rows)), random, ROWS // len(setting.folds))
        matrix = features.transform(_safe_indexing(part.X_test, here))
        chances = np.zeros((len(here), 2 * len(problem.structure.member)))
        chances[:, model.classes_] = model.predict_proba(matrix)
        parts.append(chances)
        rows.append(part.rows[here])
    return np.vstack(parts), np.concatenate(rows)


def _some(
    rows: NDArray[np.intp], random: np.random.RandomState, most: int = ROWS
) -> NDArray[np.intp]:
    return rows if len(rows) <= most else np.sort(random.choice(rows, most, replace=False))


class _Features:
    """Columns as numbers: scaled where they are numbers, indicators of levels where not."""

    def __init__(self, X: Any, before: Any) -> None:
        self.before = before  # the steps of the user's pipeline, where X itself is no table
        self.levels: dict[int, NDArray[Any]] = {}
        self.centre: dict[int, tuple[float, float]] = {}
        self.train = self._matrix(X, learn=True)

    @classmethod
    def of(cls, X: Any, model: Any) -> _Features | None:
        """Features of X, else of what the user's own pipeline makes of it, else None."""
        chances = [None]
        if isinstance(model, Pipeline) and len(model) > 1:
            chances.append(model[:-1])
        for before in chances:
            try:
                found = cls(X, before)
            except (TypeError, ValueError):
                continue
            if found.train.shape[1]:
                return found
        return None

    def transform(self, X: Any) -> Array:
        """Other rows with the same columns."""
        return self._matrix(X, learn=False)

    def _matrix(self, X: Any, *, learn: bool) -> Array:
        table = X if self.before is None else self.before.transform(X)
        blocks = []
        for position, column in enumerate(_columns(table)):
            if learn:
                self._learn(position, column)
            blocks.append(self._block(position, column))
        return np.column_stack(blocks) if blocks else np.zeros((0, 0))

    def _learn(self, position: int, column: NDArray[Any]) -> None:
        if column.dtype.kind in "fiub":
            values = column.astype(float)
            finite = values[np.isfinite(values)]
            spread = float(finite.std()) if len(finite) else 0.0
            self.centre[position] = (float(finite.mean()) if len(finite) else 0.0, spread)
            return
        levels, counts = np.unique(column.astype(str), return_counts=True)
        self.levels[position] = levels[np.argsort(-counts, kind="stable")[:LEVELS]]

    def _block(self, position: int, column: NDArray[Any]) -> Array:
        if position in self.levels:
            return np.asarray(column.astype(str)[:, None] == self.levels[position], dtype=float)
        mean, spread = self.centre[position]
        values = column.astype(float)
        return np.where(np.isfinite(values), values - mean, 0.0)[:, None] / (spread or 1.0)


def _columns(table: Any) -> list[NDArray[Any]]:
    """The columns of a table or matrix."""
    native = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return [native[name].to_numpy() for name in native.columns]
    if sparse.issparse(table):
        matrix: Any = table
        if matrix.shape[1] > 200:
            raise ValueError("too many sparse columns for a quick model")
        table = matrix.toarray()
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError("not a table")
    return list(array.T)
