"""The best multipliers and offset of a joint model, where trying costs no training.

Around a trial, decisions at many multipliers and offsets are made from the chances that are there
and measured exactly. What was measured is mistaken by luck, and the best of many has most of that;
what the chances let expect of the same decisions has little luck, but is wrong wherever they are.
So the objective is the mean of both. Bounds must be met as measured; what the mean of both misses
of them is a loss as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omnifair.plugin import with_labels
from omnifair.problem import TOLERANCE, Array, Problem
from omnifair.search.joint import Calibration, some_rows
from omnifair.training import Proposal, Setting, Trial, point_of
from omnifair.weights import gain_table

# More measured rows than this are not needed to see roughly where to look.
ROWS = 20_000
# Multipliers are tried at these multiples of the trial's, offsets at these shares of a gain.
SCALES = np.linspace(0.0, 2.0, 41)
NEAR, FAR = np.arange(0.0, 0.25, 0.01), np.arange(0.3, 1.0, 0.1)
OFFSETS = np.concatenate([-NEAR[:0:-1], NEAR])
ANYWHERE = np.concatenate([-FAR[::-1], OFFSETS, FAR])  # where none of those meets the bounds
# Where weights depend on predictions, so many trials' are tried at one of so many scales.
POINTS, APART = 12, 4
# Then around the best, so many times, on a grid that is so many times finer.
ROUNDS, FINER = 2, 4
# Where several multipliers are at work, each of at most so many by itself, twice.
ALONE = 12
STRETCHES = np.array([0.0, 0.5, 0.7, 0.85, 0.93, 1.0, 1.07, 1.15, 1.3, 1.6, 2.0])
# How much what is expected counts against what is measured: in the objective, and in bounds.
HOPED, FEARED = 0.5, 0.5
# What a unit of a bound that is met as measured but not with what is expected counts against the
# objective (its range): so much that it is seldom worth it.
PRICE = 1.0


def refined(setting: Setting, trials: Sequence[Trial]) -> Proposal:
    """The best decisions by the chances of joint trials, near the multipliers of the best of them.

    The trials are of one joint model, so that their chances are the same.
    Weights stay taken where that trial's were. Of many rows only some are looked at first; what is
    best there, and the trial itself, are then judged on all rows. Where nothing near it meets the
    bounds, it is what comes closest to them.
    """
    random = np.random.RandomState(setting.learner.seed)
    rows = some_rows(np.flatnonzero(setting.problem.weights > 0), ROWS, random)
    trials = sorted(trials, key=standing, reverse=True)
    best, expected = trials[0], _expected(setting.problem, trials[0], rows)
    if setting.problem.structure.depends_on_predictions and len(trials) > 1:
        # Far from where weights were taken they point the wrong way: another trial's may do better.
        best = max(
            trials[:POINTS],
            key=lambda t: _roughly(View.of(setting, t, expected).take(rows), APART).order,
        )
    for trial in (best, trials[0]):  # mostly the same
        view = View.of(setting, trial, expected)
        found = _nearby(view, view.take(rows), trial)
        if found.met or best is trials[0]:
            break
    if len(view.active) > 1:
        found = _one_by_one(view, found)
    multipliers = np.zeros(setting.problem.structure.n_rows)
    multipliers[view.active] = found.multipliers
    return replace(trial.proposal, multipliers=multipliers, offset=found.offset, exploratory=False)


def standing(trial: Trial) -> tuple[bool, float]:
    """By which trials are compared: the objective within the bounds, else the least violation."""
    measured = trial.measurement
    return trial.satisfied, measured.merit if trial.satisfied else -measured.worst


def _nearby(view: View, some: View, trial: Trial) -> Choice:
    """The best near a trial, itself included, for which some of the rows say roughly where."""
    rough = _roughly(some)
    itself = view.at(view.multipliers, np.array([trial.proposal.offset]))
    found = [_closer(view, rough), itself]
    if some is not view and not any(choice.met for choice in found):
        # What all rows ask for may be elsewhere than near what is best on some of them.
        found.append(_closer(view, _roughly(view)))
    return max(found, key=lambda choice: choice.order)


def _roughly(view: View, apart: int = 1) -> Choice:
    """The best scale of the trial's multipliers together with an offset, on a grid."""
    tries = [scale * view.multipliers for scale in SCALES[::apart]]
    tries = tries if len(view.active) else tries[:1]
    found = view.best(tries, view.unit * OFFSETS)
    return found if found.met else view.best(tries, view.unit * ANYWHERE)


def _closer(view: View, found: Choice) -> Choice:
    """The same on finer and finer grids round the best."""
    size, beside = float(view.multipliers.sum()), np.arange(-FINER, FINER + 1) / FINER
    for k in range(ROUNDS):
        scale = float(found.multipliers.sum()) / size if size else 0.0
        scales = np.unique(np.maximum(scale + SCALES[1] * beside / FINER**k, 0.0))
        offsets = found.offset + view.unit * NEAR[1] * beside / FINER**k
        tries = [s * view.multipliers for s in (scales if size else [0.0])]
        found = view.best(tries, offsets)
    return found


def _one_by_one(view: View, found: Choice) -> Choice:
    """Each multiplier by itself, with offsets nearby: roughly, then finer."""
    for stretches in (STRETCHES, 1 + (STRETCHES - 1) / FINER):
        for k in np.argsort(-view.multipliers, kind="stable")[:ALONE]:
            one = np.arange(len(view.active)) == k
            tries = [found.multipliers * np.where(one, stretch, 1.0) for stretch in stretches]
            beside = np.arange(-FINER, FINER + 1) / FINER
            found = view.best(tries, found.offset + view.unit * 2 * NEAR[1] * beside)
    return found


@dataclass(frozen=True)
class Choice:
    """Multipliers (of the rows at work) and an offset, and how good they are.

    ``value`` is the objective where bounds are met as measured, less what they are missed by with
    what is expected; else minus the largest violation.
    """

    multipliers: Array
    offset: float
    met: bool
    value: float

    @property
    def order(self) -> tuple[bool, float]:
        """By which choices are compared."""
        return self.met, float(_even(self.value))


@dataclass(frozen=True)
class View:
    """Measured rows and what decides them: the gain expected of each is linear in multipliers.

    ``terms`` is the gain without multipliers and what a unit of each of them adds; ``expected`` is
    the weight with which each row is expected in each atom and label.
    """

    problem: Problem
    active: NDArray[np.intp]
    multipliers: Array
    terms: Array
    expected: Array
    unit: float  # what a right decision gains by the objective alone

    @classmethod
    def of(cls, setting: Setting, trial: Trial, expected: Array) -> View:
        """Of all measured rows, near a joint trial."""
        problem, chances = setting.problem, trial.chances
        assert chances is not None  # a joint model's trial has them
        active = np.flatnonzero(trial.multipliers)
        terms, units = np.empty((len(problem), 1 + len(active))), []
        for fold in setting.folds:
            point = point_of(trial.proposal, problem, fold.train)
            one = np.zeros(problem.structure.n_rows)
            tables = [gain_table(fold.train, one, point).ravel()]
            for k in active:
                one[k] = 1.0
                tables.append(gain_table(fold.train, one, point).ravel() - tables[0])
                one[k] = 0.0
            terms[fold.rows] = chances[fold.rows] @ np.column_stack(tables)
            units.append(float(np.abs(tables[0]).mean()))
        unit = float(np.mean(units))
        return cls(problem, active, trial.multipliers[active], terms, expected, unit)

    def take(self, rows: NDArray[np.intp]) -> View:
        """Some of the rows."""
        if len(rows) == len(self.problem):
            return self
        problem, terms, expected = self.problem.take(rows), self.terms[rows], self.expected[rows]
        return replace(self, problem=problem, terms=terms, expected=expected)

    def best(self, tries: Iterable[Array], offsets: Array) -> Choice:
        """The best of some multipliers with each of these rising offsets."""
        found = (self.at(multipliers, offsets) for multipliers in tries)
        return max(found, key=lambda choice: choice.order)

    def at(self, multipliers: Array, offsets: Array) -> Choice:
        """The best of rising offsets at some multipliers; the smallest one of equals."""
        met, value = self.judged(multipliers, offsets)
        k = int(np.lexsort((np.abs(offsets), -_even(value), ~met))[0])
        return Choice(multipliers, float(offsets[k]), bool(met[k]), float(value[k]))

    def judged(self, multipliers: Array, offsets: Array) -> tuple[NDArray[np.bool_], Array]:
        """By rising offset: whether bounds are met as measured, and the value."""
        structure = self.problem.structure
        seen, hoped = self.cells(multipliers, offsets)
        reached, likely = (structure.objective.value(c[:, 0]) for c in (seen, hoped))
        objective = _mean(reached, likely, HOPED)
        violations, feared = (
            (structure.matrix @ self._rates(c).T).T - structure.bounds for c in (seen, hoped)
        )
        met = np.all(violations <= TOLERANCE, axis=1)
        low, high = structure.objective.range
        price = PRICE * (high - low if np.isfinite(high - low) else 1.0)
        missed = _worst(_mean(violations, feared, FEARED))
        merit = structure.sense * objective - price * missed
        merit = np.where(np.isnan(merit), -np.inf, merit)
        return met, np.where(met, merit, -_worst(violations))

    def cells(self, multipliers: Array, offsets: Array) -> tuple[Array, Array]:
        """Every group's cells by rising offset: as measured, and as expected."""
        gain = self.terms[:, 0] + self.terms[:, 1:] @ multipliers
        above = np.searchsorted(offsets, gain, side="left")  # exceeds so many of them
        size, n = len(offsets) + 1, len(gain)
        weights, codes = self.problem.weights, self._real.size
        real = np.bincount(self.problem.code * size + above, weights, codes * size)
        one = sparse.csc_array((np.ones(n), above, np.arange(n + 1)), shape=(size, n))
        hoped = np.asarray(one @ self.expected)
        return (
            self._cells(_from_above(real.reshape(-1, 2, size).astype(float)), self._real),
            self._cells(_from_above(hoped.T.reshape(-1, 2, size)), self._hoped),
        )

    def _cells(self, hits: Array, mass: Array) -> Array:
        """Every group's cells, from predicted positives and all rows by atom and label."""
        member = self.problem.structure.member.T.astype(float)
        fp, tp = np.tensordot(member, hits, axes=1).transpose(1, 2, 0)
        negative, positive = (member @ mass).T
        return np.stack([tp, fp, positive - tp, negative - fp], axis=-1)

    @cached_property
    def _real(self) -> Array:
        """The weight of the rows by atom and label."""
        size = self.expected.shape[1]
        found = np.bincount(self.problem.code, self.problem.weights, size)
        return np.asarray(found.reshape(-1, 2), dtype=float)

    @cached_property
    def _hoped(self) -> Array:
        """The same as it is expected."""
        return np.asarray(self.expected.sum(axis=0).reshape(-1, 2))

    def _rates(self, cells: Array) -> Array:
        metrics = self.problem.structure.metrics
        rates = np.empty((len(cells), len(metrics)))
        for rate, positions in self.problem.structure.by_rate.items():
            rates[:, positions] = rate.value(cells[:, [metrics[p].group for p in positions]])
        return rates


def _expected(problem: Problem, trial: Trial, rows: NDArray[np.intp]) -> Array:
    """With which weight each row is expected in each atom and label, calibrated on some rows."""
    chances = trial.chances
    assert chances is not None  # a joint model's trial has them
    likely = with_labels(chances, calibrated(problem, chances[:, 1::2].sum(axis=1), rows))
    return likely * problem.weights[:, None]


def _even(value: Any) -> Any:
    """Values that differ by rounding alone made equal."""
    return np.round(value, 12)


def _mean(measured: Array, expected: Array, share: float) -> Array:
    return (1 - share) * measured + share * expected


def _worst(violations: Array) -> Array:
    """The largest violation of each; infinite where a rate is undefined."""
    return np.asarray(np.where(np.isnan(violations), np.inf, violations).max(axis=1, initial=0.0))


def _from_above(table: Array) -> Array:
    """Sums of what exceeds each offset, from what exceeds just so many (the last axis)."""
    return np.asarray(table[..., :0:-1].cumsum(axis=-1)[..., ::-1])


def calibrated(problem: Problem, chance: Array, rows: NDArray[np.intp]) -> Array:
    """Chances of label 1, brought to what the labels of some rows show."""
    calibration = Calibration.of(chance[rows], problem, rows)
    return chance if calibration is None else calibration.chance(chance)
