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

    Weights of rates with predictions in their denominator are taken at the trial ``at``; with
    ``fixed`` they are the paper's, which hold those denominators fixed.
    """

    multipliers: Array
    at: Trial | None = None
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


@dataclass
class Trainer:
    """Trains the learner on the folds and measures it on ``measured``."""

    learner: Learner
    folds: Sequence[Fold]
    measured: Problem
    classes: Classes
    n_jobs: int | None = None
    trained: int = 0
    _train_bits: dict[int, list[Bits]] = field(default_factory=dict)

    @property
    def fits_per_trial(self) -> int:
        """How many times the learner is fitted for one trial."""
        return len(self.folds)

    def train(self, proposal: Proposal) -> Trial:
        """Weigh, fit, predict, measure."""
        start = perf_counter()
        number, self.trained = self.trained, self.trained + 1
        points = [self._point(proposal, k) for k in range(len(self.folds))]
        tasks = [
            delayed(_fit_and_predict)(self.learner, fold, proposal.multipliers, point, self.classes)
            for fold, point in zip(self.folds, points, strict=True)
        ]
        try:
            results = (
                [function(*args) for function, args, _ in tasks]
                if len(tasks) == 1
                else Parallel(n_jobs=self.n_jobs)(tasks)
            )
        except Exception as error:
            raise TrainingError(self._what_failed(number, proposal, error)) from error
        predictions = np.zeros(len(self.measured), dtype=np.int8)
        for fold, (_, bits) in zip(self.folds, results, strict=True):
            predictions[fold.rows] = bits
        return Trial(
            number=number,
            multipliers=proposal.multipliers,
            measurement=self.measured.measure(predictions),
            models=tuple(model for model, _ in results),
            fits=len(tasks),
            seconds=perf_counter() - start,
            proposal=proposal,
        )

    def refit(self, trial: Trial, X: Any, problem: Problem) -> Any:
        """The learner trained once more, with a trial's multipliers, on other rows."""
        at = trial.proposal.at
        point = self._start_point(problem)
        if at is not None:
            cells = scaled_cells(at.measurement, self.measured, problem)
            point = Point(cells, None, trial.proposal.fixed)
            if self._needs_predictions:
                bits = self.classes.bits(at.models[0].predict(X))
                point = Point(problem.cells(bits), bits, trial.proposal.fixed)
        try:
            return _fit(self.learner, X, problem, trial.multipliers, point, self.classes)
        except Exception as error:
            raise TrainingError(
                self._what_failed(trial.number, trial.proposal, error, "the last, on all rows")
            ) from error

    @property
    def _needs_predictions(self) -> bool:
        """Whether a raw metric asks for predictions row by row."""
        rates = (m.rate for m in self.measured.structure.metrics)
        return any(isinstance(r, Coefficients) and r.depends_on_predictions for r in rates)

    def _point(self, proposal: Proposal, k: int) -> Point:
        train = self.folds[k].train
        if proposal.at is None:
            return self._start_point(train)
        if proposal.fixed or self._needs_predictions:
            # The paper counts predictions on the training rows themselves.
            bits = self._training_bits(proposal.at)[k]
            return Point(train.cells(bits), bits, proposal.fixed)
        return Point(scaled_cells(proposal.at.measurement, self.measured, train))

    @staticmethod
    def _start_point(train: Problem) -> Point:
        """Before anything was trained: as if every prediction were right."""
        return Point(train.cells(train.labels), train.labels)

    def _training_bits(self, trial: Trial) -> list[Bits]:
        if trial.number not in self._train_bits:
            bits = [
                self.classes.bits(model.predict(fold.X_train))
                for model, fold in zip(trial.models, self.folds, strict=True)
            ]
            self._train_bits = {trial.number: bits}  # only the last one is ever asked for again
        return self._train_bits[trial.number]

    def _what_failed(
        self, number: int, proposal: Proposal, error: Exception, which: str = ""
    ) -> str:
        active = np.flatnonzero(proposal.multipliers)
        labels = self.measured.structure.row_labels
        said = ", ".join(f"{labels[k]}: {proposal.multipliers[k]:.4g}" for k in active[:5])
        return (
            f"Training {which or number} of {type(self.learner.estimator).__name__} failed, with "
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
