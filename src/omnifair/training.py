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
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from omnifair.bins import Bins
from omnifair.errors import LearnerError, TrainingError
from omnifair.inputs import Classes
from omnifair.learners import Learner, has_probabilities
from omnifair.plugin import PlugInClassifier, averaged, chance_of, spread
from omnifair.problem import Array, Bits, Measurement, Problem
from omnifair.rates import Coefficients
from omnifair.validation import holdout
from omnifair.weights import Point, gain_table, scaled_cells, weigh


@dataclass(frozen=True)
class Proposal:
    """What a strategy wants to have trained.

    Weights of rates with predictions in their denominator are taken at the trial ``at``, or at
    ``cells`` that are expected on the measured rows; with ``fixed`` they are the paper's, which
    hold those denominators fixed. ``share`` is that of the rows to train on; less than 1 tries
    multipliers out. ``joint`` decides by a joint model of groups and labels, which is trained
    once, rather than by a model of its own: where the expected gain exceeds ``offset``. How
    likely a label is, the models of the trial ``plain`` say with it, where there is one. What is
    ``exploratory`` only shows the way to a proposal that is not, and is kept where none that is not
    meets the bounds (with ``confidence``: by as much as is aimed at).
    """

    multipliers: Array
    at: Trial | None = None
    cells: Array | None = None
    fixed: bool = False
    share: float = 1.0
    joint: bool = False
    offset: float = 0.0
    plain: Trial | None = None
    exploratory: bool = False

    def repeats(self, other: Proposal) -> bool:
        """Whether both are of one training, and take their weights from nowhere."""
        return (
            np.array_equal(self.multipliers, other.multipliers)
            and self.at is other.at is None
            and self.cells is other.cells is None
            and self.plain is other.plain
            and (self.fixed, self.share) == (other.fixed, other.share)
            and (self.joint, self.offset) == (other.joint, other.offset)
        )


@dataclass(frozen=True)
class Trial:
    """One training: its multipliers (one for each row of the problem) and what it reached.

    ``models`` holds one fitted model for each fold, a single one without folds. ``chances`` are
    those of a joint model on the measured rows.
    """

    number: int
    multipliers: Array
    measurement: Measurement
    models: tuple[Any, ...]
    fits: int
    seconds: float
    proposal: Proposal
    chances: Array | None = None

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


@dataclass(frozen=True)
class _Joint:
    """A fitted joint model: its classes are positions in ``codes``; its chances are of a fold."""

    model: Any
    codes: NDArray[np.intp]
    chances: Array


@dataclass(frozen=True)
class _Labels:
    """A fold's model of the labels, and by what its weights multiplied their odds."""

    model: Any
    odds: float


@dataclass
class Trainer:
    """Trains the learner on the folds and measures it on ``setting.problem``."""

    setting: Setting
    n_jobs: int | None = None
    trained: int = 0
    _start: tuple[Any, ...] = ()  # the models that warm starts go on from
    _joints: list[_Joint] = field(default_factory=list)
    _table: tuple[Any, Array] | None = None  # the joint model's chances, with which plain models
    _bits: dict[tuple[int, int], tuple[Any, Bits]] = field(default_factory=dict)
    _tried: dict[tuple[int, float], tuple[Any, Problem]] = field(default_factory=dict)
    _bins: dict[tuple[int, float], Bins] = field(default_factory=dict)

    @property
    def fits_per_trial(self) -> int:
        """How many times the learner is fitted for one trial."""
        return len(self.setting.folds)

    @property
    def at_once(self) -> int:
        """How many trials are trained at the same time."""
        return max(1, int(effective_n_jobs(self.n_jobs)) // self.fits_per_trial)

    def cost(self, proposal: Proposal) -> int:
        """How many fits a proposal takes: none where its joint model is there."""
        return 0 if proposal.joint and self._joints else self.fits_per_trial

    def train(self, proposals: Sequence[Proposal]) -> list[Trial]:
        """Weigh, fit, predict, measure."""
        return (
            [self._decide(p) for p in proposals]
            if any(p.joint for p in proposals)
            else self._train(proposals)
        )

    def _train(self, proposals: Sequence[Proposal]) -> list[Trial]:
        start, setting, first = perf_counter(), self.setting, self.trained
        self.trained += len(proposals)
        alone = self._in_turn(len(proposals) * len(setting.folds))
        tasks = [
            delayed(_fit_and_predict)(setting, k, proposal, *self._prepared(proposal, k, alone))
            for proposal in proposals
            for k in range(len(setting.folds))
        ]
        try:
            results = self._run(tasks)
        except Exception as error:
            raise TrainingError(self._what_failed(first, proposals, error)) from error
        seconds = (perf_counter() - start) / len(proposals)
        trials = []
        for i, proposal in enumerate(proposals):
            part = results[i * len(setting.folds) : (i + 1) * len(setting.folds)]
            models = tuple(model for model, _ in part)
            bits = [bits for _, bits in part]
            trials.append(self._trial(first + i, proposal, models, bits, len(part), seconds))
        # All go on from the first (the plain) models, whatever was trained between: so what a
        # training gives depends on its multipliers alone, and not on the order or on n_jobs.
        self._start = self._start or trials[0].models
        return trials

    def _prepared(
        self, proposal: Proposal, k: int, alone: bool
    ) -> tuple[Any, Problem, Point, Any, Bins | None]:
        """Rows to train on, where to take weights, and what there is of trainings before.

        Bins change with every training, so that only one that is ``alone`` gets them.
        """
        learner = self.setting.learner
        X, rows = self._rows(k, proposal.share)
        start = self._start[k] if self._start and learner.warm else None
        keep = alone and learner.binned
        bins = self._bins.setdefault((k, proposal.share), Bins()) if keep else None
        return X, rows, self._point(proposal, k, X, rows), start, bins

    def _rows(self, k: int, share: float) -> tuple[Any, Problem]:
        """A share of the rows that a fold trains on; some of each group and label."""
        fold = self.setting.folds[k]
        if share >= 1:
            return fold.X_train, fold.train
        if (k, share) not in self._tried:
            random = np.random.RandomState(self.setting.learner.seed)
            _, rows = holdout(fold.train.code, share, random)
            kept = {key: found for key, found in self._tried.items() if key[1] == share}
            part = _safe_indexing(fold.X_train, rows), fold.train.take(rows)
            self._tried = {**kept, (k, share): part}
        return self._tried[k, share]

    def _in_turn(self, tasks: int) -> bool:
        """Whether so many fits run one after the other, here."""
        return tasks == 1 or bool(effective_n_jobs(self.n_jobs) == 1)

    def _run(self, tasks: Sequence[Any]) -> list[Any]:
        if self._in_turn(len(tasks)):
            return [function(*args, **kwargs) for function, args, kwargs in tasks]
        return list(Parallel(n_jobs=self.n_jobs)(tasks))

    def _trial(
        self,
        number: int,
        proposal: Proposal,
        models: tuple[Any, ...],
        bits: Sequence[Bits],
        fits: int,
        seconds: float,
        chances: Array | None = None,
    ) -> Trial:
        predictions = np.zeros(len(self.setting.problem), dtype=np.int8)
        for fold, here in zip(self.setting.folds, bits, strict=True):
            predictions[fold.rows] = here
        measurement = self.setting.problem.measure(predictions)
        return Trial(
            number, proposal.multipliers, measurement, models, fits, seconds, proposal, chances
        )

    # -- the joint model -------------------------------------------------------------------------

    def _decide(self, proposal: Proposal) -> Trial:
        """Decide by the joint model, which is trained the first time."""
        start, setting, fits = perf_counter(), self.setting, self.cost(proposal)
        number, self.trained = self.trained, self.trained + 1
        if not self._joints:
            tasks = [delayed(_fit_joint)(setting.learner, fold) for fold in setting.folds]
            try:
                self._joints = self._run(tasks)
            except Exception as error:
                raise TrainingError(self._what_failed(number, [proposal], error)) from error
        models, bits = [], []
        chances = self._chances(proposal.plain)
        for k, (fold, joint) in enumerate(zip(setting.folds, self._joints, strict=True)):
            point = self._point(proposal, k, fold.X_train, fold.train)
            labels = self._labels(proposal.plain, k)
            model = self._plugin(joint, labels, fold.train, proposal, point)
            models.append(model)
            here = chances if len(setting.folds) == 1 else chances[fold.rows]
            bits.append((here @ model.gains.ravel() > 0).astype(np.int8))
        seconds = perf_counter() - start
        return self._trial(number, proposal, tuple(models), bits, fits, seconds, chances)

    def _chances(self, plain: Trial | None) -> Array:
        """The chances of the measured rows: one table, which all trials share."""
        models = None if plain is None else plain.models
        if self._table is None or self._table[0] is not models:
            parts = [self._chances_of(k, plain) for k in range(len(self.setting.folds))]
            table = parts[0]
            if len(parts) > 1:
                table = np.empty((len(self.setting.problem), parts[0].shape[1]))
                for fold, part in zip(self.setting.folds, parts, strict=True):
                    table[fold.rows] = part
            self._table = (models, table)
        return self._table[1]

    def _chances_of(self, k: int, plain: Trial | None) -> Array:
        """The chances of a fold's measured rows, asked of the models."""
        joint, said = self._joints[k], self._labels(plain, k)
        if said is None:
            return joint.chances
        X, positive = self.setting.folds[k].X_test, self.setting.classes.positive
        return averaged(joint.chances, chance_of(said.model, X, positive, said.odds))

    def _labels(self, plain: Trial | None, k: int) -> _Labels | None:
        """What a plain trial's model of a fold says of labels; None where it says nothing."""
        if plain is None:
            return None
        odds = _odds(self.setting.folds[k].train)
        return None if odds is None else _Labels(plain.models[k], odds)

    def _plugin(
        self,
        joint: _Joint,
        labels: _Labels | None,
        rows: Problem,
        proposal: Proposal,
        point: Point,
    ) -> PlugInClassifier:
        classes = self.setting.classes
        # Chances sum to 1: what is taken off every gain is taken off the expected one.
        gains = gain_table(rows, proposal.multipliers, point) - proposal.offset
        order = np.asarray([classes.negative, classes.positive])
        if labels is None:
            return PlugInClassifier.of(joint.model, joint.codes, gains, order)
        return PlugInClassifier.of(
            joint.model, joint.codes, gains, order, labels.model, labels.odds
        )

    def refit(self, trial: Trial, X: Any, problem: Problem) -> tuple[Any, int]:
        """A trial's model trained once more, on other rows, and how many fits that took."""
        setting, proposal = self.setting, trial.proposal
        point = self._point(proposal, 0, X, problem)
        try:
            if not proposal.joint:
                return _fit(setting, X, problem, trial.multipliers, point), 1
            joint = _fit_joint(setting.learner, Fold(X, problem, X, np.arange(len(problem))))
            labels, odds = None, _odds(problem)
            if proposal.plain is not None and odds is not None:
                nothing = proposal.plain.multipliers
                start = self._point(proposal.plain.proposal, 0, X, problem)
                labels = _Labels(_fit(setting, X, problem, nothing, start), odds)
            model = self._plugin(joint, labels, problem, proposal, point)
            return model, 1 if labels is None else 2
        except Exception as error:
            raise TrainingError(
                self._what_failed(trial.number, [proposal], error, "the last, on all rows")
            ) from error

    @property
    def _needs_predictions(self) -> bool:
        """Whether a raw metric asks for predictions row by row."""
        rates = (m.rate for m in self.setting.problem.structure.metrics)
        return any(isinstance(r, Coefficients) and r.depends_on_predictions for r in rates)

    def _point(self, proposal: Proposal, k: int, X: Any, rows: Problem) -> Point:
        """Where weights are taken on some rows to train on; ``k`` says by which fold's model."""
        at = proposal.at
        fixed = proposal.fixed and self.setting.problem.structure.depends_on_predictions
        if at is not None and (fixed or self._needs_predictions):
            # The paper counts predictions on the training rows themselves.
            bits = self._predicted(at, k, X)
            return Point(rows.cells(bits), bits, proposal.fixed)
        return point_of(proposal, self.setting.problem, rows)

    def _predicted(self, trial: Trial, k: int, X: Any) -> Bits:
        """A trial's predictions on rows to train on; those asked for last are kept."""
        if (trial.number, k) not in self._bits or self._bits[trial.number, k][0] is not X:
            bits = self.setting.classes.bits(trial.models[k].predict(X))
            self._bits = {key: v for key, v in self._bits.items() if key[0] == trial.number}
            self._bits[trial.number, k] = (X, bits)
        return self._bits[trial.number, k][1]

    def _what_failed(
        self, number: int, proposals: Sequence[Proposal], error: Exception, which: str = ""
    ) -> str:
        labels = self.setting.problem.structure.row_labels
        multipliers = proposals[0].multipliers
        active = np.flatnonzero(multipliers)[:5]
        said = ", ".join(f"{labels[k]}: {multipliers[k]:.4g}" for k in active)
        if len(proposals) > 1:
            which = f"{number} to {number + len(proposals) - 1} (one of them)"
        how = f"multipliers {said}" if said else "no multipliers (the plain estimator)"
        if proposals[0].joint:  # it is trained without multipliers, whatever they are
            how = "the joint model of groups and labels"
        return (
            f"Training {which or number} of {type(self.setting.learner.estimator).__name__} "
            f"failed, {'as' if proposals[0].joint else 'with'} "
            f"{how if len(proposals) == 1 else 'different multipliers'}: "
            f"{type(error).__name__}: {error}"
        )


def point_of(proposal: Proposal, measured: Problem, rows: Problem) -> Point:
    """Where a proposal takes weights on some rows, from what it knows of the measured ones."""
    cells = proposal.cells
    if cells is None and proposal.at is not None:
        cells = proposal.at.measurement.cells
    if cells is None:  # before anything was trained: as if every prediction were right
        return Point(rows.cells(rows.labels), rows.labels)
    return Point(scaled_cells(cells, measured, rows))


def _odds(rows: Problem) -> float | None:
    """How many times the weight of a negative a positive has by the objective alone.

    None where one of them has none: a model that was trained so cannot tell labels apart.
    """
    nothing = np.zeros(rows.structure.n_rows)
    table = gain_table(rows, nothing, Point(rows.cells(rows.labels), rows.labels))
    negative, positive = np.abs(table[0]).tolist()
    return positive / negative if positive > 0 < negative else None


def _fit(
    setting: Setting,
    X: Any,
    rows: Problem,
    multipliers: Array,
    point: Point,
    start: Any = None,
    bins: Bins | None = None,
) -> Any:
    weights = weigh(rows, multipliers, point)
    labels = setting.classes.labels(weights.labels)
    return setting.learner.fit(X, labels, weights.values, start, bins)


def _fit_and_predict(
    setting: Setting,
    k: int,
    proposal: Proposal,
    X: Any,
    rows: Problem,
    point: Point,
    start: Any,
    bins: Bins | None,
) -> tuple[Any, Bits]:
    model = _fit(setting, X, rows, proposal.multipliers, point, start, bins)
    return model, setting.classes.bits(model.predict(setting.folds[k].X_test))


def _fit_joint(learner: Learner, fold: Fold) -> _Joint:
    why = why_not_joint(learner, fold.train)
    if why is not None:
        raise LearnerError(f"{why} Use the default strategy.")
    structure = fold.train.structure
    codes, dense = np.unique(fold.train.code, return_inverse=True)
    model = learner.fit(fold.X_train, dense, fold.train.weights)
    return _Joint(model, codes, spread(model, codes, 2 * len(structure.member), fold.X_test))


def why_not_joint(learner: Learner, problem: Problem) -> str | None:
    """Why a joint model of this learner could not decide; None where it can."""
    if not has_probabilities(learner.estimator):
        return (
            f"{type(learner.estimator).__name__} has no predict_proba, which a joint model of "
            "groups and labels needs."
        )
    if any(isinstance(m.rate, Coefficients) for m in problem.structure.metrics):
        return (
            "A rate given by coefficients() is not made of counts by group and label: PlugIn "
            "cannot decide by it."
        )
    return None
