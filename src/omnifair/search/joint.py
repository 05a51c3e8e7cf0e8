"""A quick joint model: how likely a row is to be in each group with each label, given X.

It is no part of what is returned: it only says where to look for multipliers. How likely a label
is, the plain model says; how groups are spread over rows of a label, a small model of its own
(multinomial logistic regression on a few thousand rows) that asks for nothing but columns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from omnifair.plugin import with_labels
from omnifair.problem import Array, Problem
from omnifair.training import Setting, Trial

# More rows than this sharpen a guide no further than the first training does; more so where there
# are very many, and trainings are dear.
ROWS, MANY_ROWS = 2_500, 10_000
LEVELS = 30
# Probabilities nearer to 0 and 1 than this are taken as this near.
SURE = 1e-3
# How far from its own a learner's sureness may be told.
TEMPERATURES = 0.1, 2.0
# Of more atoms and labels than this, trees take too long for a guide.
FEW = 16


def joint_chances(
    setting: Setting,
    plain: Trial,
    rows: NDArray[np.intp],
    positive: Array | None,
    *,
    many: bool = False,
) -> Array | None:
    """``P(atom, label | x)`` of these measured rows, by ``2 * atom + label``.

    ``positive`` are their chances of label 1, where they are known. With ``many`` rows there is
    time for more of them, and for trees where the learner is not linear itself. None where ``X``
    cannot be read as numbers.
    """
    fold, problem = setting.folds[0], setting.problem
    random = np.random.RandomState(setting.learner.seed)
    most = MANY_ROWS if many else ROWS
    train = some_rows(np.flatnonzero(fold.train.weights > 0), most, random)
    code, weights = fold.train.code[train], _averaging_one(fold.train.weights[train])
    if len(np.unique(code)) < 2:
        return None
    features = _Features.of(_safe_indexing(fold.X_train, train), plain.models[0])
    if features is None:
        return None
    models: list[Any] = [LogisticRegression(max_iter=100)]
    if many and not _is_linear(plain.models[0]) and len(np.unique(code)) <= FEW:
        models.append(
            HistGradientBoostingClassifier(
                max_iter=20, max_leaf_nodes=8, early_stopping=False, random_state=0
            )
        )
    found = []
    for model in models:
        with warnings.catch_warnings():
            # A guide that has not converged still guides, and so does one of many groups, few rows.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            model.fit(features.train, code, weights)
        chances = _chances(setting, model, features, rows)
        if chances is None:
            return None
        found.append(chances if positive is None else with_labels(chances, positive))
    return max(found, key=lambda c: _likelihood(c, problem, rows))


def _chances(
    setting: Setting, model: Any, features: _Features, rows: NDArray[np.intp]
) -> Array | None:
    """A joint model's chances for these measured rows; None where it cannot read them."""
    problem = setting.problem
    chances = np.zeros((len(problem), 2 * len(problem.structure.member)))
    for part in setting.folds:
        here = part.rows[np.isin(part.rows, rows)]
        try:
            some = _safe_indexing(part.X_test, np.searchsorted(part.rows, here))
            matrix = features.transform(some)
        except (TypeError, ValueError):  # columns of another kind than in training
            return None
        chances[np.ix_(here, model.classes_)] = model.predict_proba(matrix)
    return np.asarray(chances[rows])


def _likelihood(chances: Array, problem: Problem, rows: NDArray[np.intp]) -> float:
    """How likely the rows' own atoms and labels are, as the mean of logarithms."""
    said = np.maximum(chances[np.arange(len(rows)), problem.code[rows]], SURE)
    return float(np.average(np.log(said), weights=problem.weights[rows]))


def _is_linear(model: Any) -> bool:
    return hasattr(model[-1] if isinstance(model, Pipeline) else model, "coef_")


@dataclass(frozen=True)
class Calibration:
    """How sure a learner may be: the log-odds of label 1 as a line in those that it says."""

    slope: float
    intercept: float

    @classmethod
    def of(cls, said: Array, problem: Problem, rows: NDArray[np.intp]) -> Calibration | None:
        """What the labels of these measured rows show of the chances that were said of them.

        None where they are all alike. (Platt's scaling.)
        """
        labels, weights = problem.labels[rows], _averaging_one(problem.weights[rows])
        if len(np.unique(labels)) < 2:
            return None
        with warnings.catch_warnings():
            # Chances that part the labels without a mistake have no best scale, and need none.
            warnings.simplefilter("ignore", ConvergenceWarning)
            line = LogisticRegression(C=1e3).fit(_odds(said)[:, None], labels, weights)
        return cls(float(line.coef_[0, 0]), float(line.intercept_[0]))

    def chance(self, said: Array) -> Array:
        """The chances of label 1 where these were said."""
        return np.asarray(expit(self.slope * _odds(said) + self.intercept))

    def tempered(self, margins: Array) -> Array:
        """Margins (-1 to 1) of the same decisions, no surer than they are right.

        A learner that fits its rows too well is as sure of the groups as it is of the labels, so
        that smaller multipliers turn its decisions than its own margins would let one think.
        """
        slope = float(np.clip(self.slope, *TEMPERATURES))
        return np.asarray(2 * expit(slope * _odds(chance_of_margin(margins))) - 1)


def chance_of_margin(margins: Array) -> Array:
    """The chances of label 1 that margins between -1 and 1 stand for."""
    return np.asarray((margins + 1) / 2)


def _odds(said: Array) -> Array:
    """The logarithms of odds."""
    return np.asarray(logit(np.clip(said, SURE, 1 - SURE)))


def _averaging_one(weights: Array) -> Array:
    """Weights whose unit does not matter: what is learned is the same for 1 and 1000 each."""
    return np.asarray(weights / weights[weights > 0].mean())


def margins_of(setting: Setting, trial: Trial, rows: NDArray[np.intp]) -> Array | None:
    """How clearly the trial's models decide these measured rows: -1 to 1; None if they hide it."""
    found = np.zeros(len(rows))
    for fold, model in zip(setting.folds, trial.models, strict=True):
        here = np.isin(rows, fold.rows)
        places = np.searchsorted(fold.rows, rows[here])
        one = _margins(model, _safe_indexing(fold.X_test, places), setting.classes.positive)
        if one is None:
            return None
        found[here] = one
    return found if np.isfinite(found).all() else None


def _margins(model: Any, X: Any, positive: Any) -> Array | None:
    classes = list(getattr(model, "classes_", ()))
    if len(classes) not in (1, 2) or (len(classes) == 2 and positive not in classes):
        return None
    if len(classes) == 1:
        return np.full(_num_samples(X), 1.0 if classes[0] == positive else -1.0)
    place = classes.index(positive)
    try:
        if hasattr(model, "predict_proba"):
            return np.asarray(2 * np.asarray(model.predict_proba(X), dtype=float)[:, place] - 1)
        if hasattr(model, "decision_function"):
            clear = np.tanh(np.asarray(model.decision_function(X), dtype=float) / 2)
            return clear if place == 1 else -clear
    except Exception:  # whatever a learner does: it is asked for more than its predictions here
        return None
    return None


def some_rows(rows: NDArray[np.intp], most: int, random: np.random.RandomState) -> NDArray[np.intp]:
    """At most so many of the rows, drawn at random."""
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
