"""Train: from multipliers to a measured model. The only object of the core that changes.

A :class:`Trainer` holds the learner and the parts of the data; each :meth:`Trainer.train` weighs,
fits, predicts and measures, and returns a frozen :class:`Trial`. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from omnifair.errors import TrainingError
from omnifair.inputs import Classes
from omnifair.learners import Learner
from omnifair.problem import Array, Bits, Measurement, Problem
from omnifair.rates import Coefficients
from omnifair.weights import Point, scaled_cells, weigh


@dataclass(frozen=True)
class Proposal:
    """What a strategy wants to have trained.

    Weights of rates with predictions in their denominator are taken at the trial ``at``, or at
    ``cells`` that are expected on the measured rows; with ``fixed`` they are the paper's, which
    hold those denominators fixed.
    """

    multipliers: Array
    at: Trial | None = None
    cells: Array | None = None
    fixed: bool = False


@dataclass(frozen=True)
class Trial:
    """One training: its multipliers (one for each row of the problem) and what it reached.

    ``models`` holds one fitted model for each fold, a single one without folds.
    """

    number: int
    multipliers: Array
    measurement: Measurement
    models: tuple[Any, ...]
    fits: int
    seconds: float
    proposal: Proposal

    @property
    def satisfied(self) -> bool:
        """Whether it meets every constraint where it was measured."""
        return self.measurement.satisfied


@dataclass(frozen=True)
class Fold:
    """Rows to train on, and rows (with their positions in what is measured) to predict."""

    X_train: Any
    train: Problem
    X_test: Any
    rows: NDArray[np.intp]


@dataclass(frozen=True)
class Setting:
    """What is trained, on which rows, and the problem on which it is measured."""

    learner: Learner
    folds: Sequence[Fold]
    problem: Problem
    classes: Classes


@dataclass
class Trainer:
    """Trains the learner on the folds and measures it on ``setting.problem``."""

    setting: Setting
    n_jobs: int | None = None
    trained: int = 0
    _bits: dict[tuple[int, int], tuple[Any, Bits]] = field(default_factory=dict)

    @property
    def fits_per_trial(self) -> int:
        """How many times the learner is fitted for one trial."""
        return len(self.setting.folds)

    def train(self, proposal: Proposal) -> Trial:
        """Weigh, fit, predict, measure."""
        start = perf_counter()
        number, self.trained = self.trained, self.trained + 1
        setting = self.setting
        tasks = [
            delayed(_fit_and_predict)(
                setting.learner,
                fold,
                proposal.multipliers,
                self._point(proposal, k, fold.X_train, fold.train),
                setting.classes,
            )
            for k, fold in enumerate(setting.folds)
        ]
        try:
            results = (
                [function(*args) for function, args, _ in tasks]
                if len(tasks) == 1
                else Parallel(n_jobs=self.n_jobs)(tasks)
            )
        except Exception as error:
            raise TrainingError(self._what_failed(number, proposal, error)) from error
        predictions = np.zeros(len(setting.problem), dtype=np.int8)
        for fold, (_, bits) in zip(setting.folds, results, strict=True):
            predictions[fold.rows] = bits
        return Trial(
            number=number,
            multipliers=proposal.multipliers,
            measurement=setting.problem.measure(predictions),
            models=tuple(model for model, _ in results),
            fits=len(tasks),
            seconds=perf_counter() - start,
            proposal=proposal,
        )

    def refit(self, trial: Trial, X: Any, problem: Problem) -> Any:
        """The learner trained once more, with a trial's multipliers, on other rows."""
        setting = self.setting
        point = self._point(trial.proposal, 0, X, problem)
        try:
            return _fit(setting.learner, X, problem, trial.multipliers, point, setting.classes)
        except Exception as error:
            raise TrainingError(
                self._what_failed(trial.number, trial.proposal, error, "the last, on all rows")
            ) from error

    @property
    def _needs_predictions(self) -> bool:
        """Whether a raw metric asks for predictions row by row."""
        rates = (m.rate for m in self.setting.problem.structure.metrics)
        return any(isinstance(r, Coefficients) and r.depends_on_predictions for r in rates)

    def _point(self, proposal: Proposal, k: int, X: Any, rows: Problem) -> Point:
        """Where weights are taken on some rows to train on; ``k`` says by which fold's model."""
        at, cells = proposal.at, proposal.cells
        fixed = proposal.fixed and self.setting.problem.structure.depends_on_predictions
        if at is not None and (fixed or self._needs_predictions):
            # The paper counts predictions on the training rows themselves.
            bits = self._predicted(at, k, X)
            return Point(rows.cells(bits), bits, proposal.fixed)
        if cells is None and at is not None:
            cells = at.measurement.cells
        if cells is None:  # before anything was trained: as if every prediction were right
            return Point(rows.cells(rows.labels), rows.labels)
        return Point(scaled_cells(cells, self.setting.problem, rows))

    def _predicted(self, trial: Trial, k: int, X: Any) -> Bits:
        """A trial's predictions on rows to train on; those asked for last are kept."""
        if (trial.number, k) not in self._bits or self._bits[trial.number, k][0] is not X:
            bits = self.setting.classes.bits(trial.models[k].predict(X))
            self._bits = {key: v for key, v in self._bits.items() if key[0] == trial.number}
            self._bits[trial.number, k] = (X, bits)
        return self._bits[trial.number, k][1]

    def _what_failed(
        self, number: int, proposal: Proposal, error: Exception, which: str = ""
    ) -> str:
        active = np.flatnonzero(proposal.multipliers)
        labels = self.setting.problem.structure.row_labels
        said = ", ".join(f"{labels[k]}: {proposal.multipliers[k]:.4g}" for k in active[:5])
        name = type(self.setting.learner.estimator).__name__
        return (
            f"Training {which or number} of {name} failed, with "
            f"{'multipliers ' + said if said else 'no multipliers (the plain estimator)'}: "
            f"{type(error).__name__}: {error}"
        )


def _fit(
    learner: Learner, X: Any, problem: Problem, multipliers: Array, point: Point, classes: Classes
) -> Any:
    weights = weigh(problem, multipliers, point)
    return learner.fit(X, classes.labels(weights.labels), weights.values)


def _fit_and_predict(
    learner: Learner, fold: Fold, multipliers: Array, point: Point, classes: Classes
) -> tuple[Any, Bits]:
    model = _fit(learner, fold.X_train, fold.train, multipliers, point, classes)
    return model, classes.bits(model.predict(fold.X_test))
