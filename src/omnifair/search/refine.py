"""The best multipliers and offset of a joint model, where trying costs no training.

Around a trial, decisions at many multipliers and offsets are made from the chances that are there
and measured exactly. What was measured is mistaken by luck, and the best of many has most of that;
what the chances let expect of the same decisions has little luck, but is wrong wherever they are.
So the objective is the mean of both, and bounds are to be met by both: by what is measured, and by
the mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from omnifair.plugin import with_labels
from omnifair.problem import TOLERANCE, Array, Problem
from omnifair.rates import Rate
from omnifair.search.joint import some_rows
from omnifair.training import Proposal, Setting, Trial, point_of
from omnifair.weights import gain_table

# More measured rows than this are not needed to see roughly where to look.
ROWS = 20_000
# Multipliers are tried at these multiples of the trial's, offsets up to this share of a gain.
SCALES = np.linspace(0.0, 2.0, 41)
FARTHEST, OFFSETS = 0.24, 49
# Then around the best, on a finer grid of so many values to each side, so many times.
BESIDE, ROUNDS = 4, 2
# Where several multipliers are at work, each of at most so many by itself, so many times.
ALONE, SWEEPS = 12, 2
STRETCHES = np.array([0.0, 0.5, 0.7, 0.85, 0.93, 1.0, 1.07, 1.15, 1.3, 1.6, 2.0])
# How much what is expected counts against what is measured: in the objective, and in bounds.
HOPED, FEARED = 0.5, 0.5
# Chances nearer to 0 and 1 than this are taken as this near.
SURE = 1e-3


def refined(setting: Setting, trial: Trial) -> Proposal | None:
    """The best decisions by a joint trial's chances, near its multipliers; None where none are.

    Weights stay taken where the trial's were. Where nothing near it meets the bounds, it is what
    comes closest to them.
    """
    if trial.chances is None:
        return None
    view = View.of(setting, trial)
    random = np.random.RandomState(setting.learner.seed)
    rows = some_rows(np.flatnonzero(setting.problem.weights > 0), ROWS, random)
    unit = view.unit
    found = view.take(rows).best(
        [(scale * view.multipliers, FARTHEST * unit) for scale in SCALES], 0.0, OFFSETS // 2
    )
    found = _closer(view, found, unit)
    proposal = replace(trial.proposal, offset=found.offset, exploratory=False)
    multipliers = np.zeros_like(trial.multipliers)
    multipliers[view.active] = found.multipliers
    return replace(proposal, multipliers=multipliers)


def _closer(view: View, found: Choice, unit: float) -> Choice:
    """The best on finer and finer grids; then each multiplier by itself, where there are more."""
    scale = 1.0 if not view.multipliers.any() else _scale(found.multipliers, view.multipliers)
    step, reach = SCALES[1], 2 * FARTHEST / (OFFSETS - 1) * unit
    for _ in range(ROUNDS):
        near = scale + step * np.arange(-BESIDE, BESIDE + 1) / BESIDE
        tries = [(s * view.multipliers, reach) for s in np.unique(np.maximum(near, 0.0))]
        found = view.best(tries, found.offset, BESIDE)
        if view.multipliers.any():
            scale = _scale(found.multipliers, view.multipliers)
        step, reach = step / BESIDE, reach / BESIDE
    if len(view.active) < 2:
        return found
    spread = 4 * FARTHEST / (OFFSETS - 1) * unit
    for sweep in range(SWEEPS):
        for k in np.argsort(-view.multipliers, kind="stable")[:ALONE]:
            tries = []
            for stretch in STRETCHES if sweep == 0 else 1 + (STRETCHES - 1) / 4:
                moved = found.multipliers.copy()
                moved[k] *= stretch
                tries.append((moved, spread))
            found = view.best(tries, found.offset, BESIDE)
    return found


def _scale(multipliers: Array, of: Array) -> float:
    return float(multipliers.sum() / of.sum())


@dataclass(frozen=True)
class Choice:
    """Multipliers (of the rows at work) and an offset, and how good they are.

    ``safe`` says whether the bounds are met with what is expected too; ``value`` is the objective
    where they are met as measured, else minus the largest violation.
    """

    multipliers: Array
    offset: float
    met: bool
    safe: bool
    value: float


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
    def of(cls, setting: Setting, trial: Trial) -> View:
        """Of all measured rows, near a trial of a joint model."""
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
        likely = with_labels(chances, calibrated(problem, chances[:, 1::2].sum(axis=1)))
        expected = likely * problem.weights[:, None]
        unit = float(np.mean(units))
        return cls(problem, active, trial.multipliers[active], terms, expected, unit)

    def take(self, rows: NDArray[np.intp]) -> View:
        """Some of the rows."""
        if len(rows) == len(self.problem):
            return self
        problem, terms, expected = self.problem.take(rows), self.terms[rows], self.expected[rows]
        return replace(self, problem=problem, terms=terms, expected=expected)

    def best(self, tries: Iterable[tuple[Array, float]], centre: float, steps: int) -> Choice:
        """The best of some multipliers, each with offsets as far from the centre as is said."""
        beside = np.arange(-steps, steps + 1) / max(steps, 1)
        return max(
            (self.at(given, centre + reach * beside) for given, reach in tries),
            key=lambda choice: (choice.met, choice.safe, choice.value),
        )

    def at(self, multipliers: Array, offsets: Array) -> Choice:
        """The best of rising offsets at some multipliers; the smallest one of equals."""
        met, safe, value = self.judged(multipliers, offsets)
        k = int(np.lexsort((np.abs(offsets), -value, ~safe, ~met))[0])
        return Choice(multipliers, float(offsets[k]), bool(met[k]), bool(safe[k]), float(value[k]))

    def judged(
        self, multipliers: Array, offsets: Array
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Array]:
        """By rising offset: whether bounds are met, and with what is expected, and the value."""
        structure = self.problem.structure
        seen, hoped = self.cells(multipliers, offsets)
        reached, likely = (structure.objective.value(c[:, 0]) for c in (seen, hoped))
        objective = _mean(reached, likely, HOPED)
        violations, feared = (
            (structure.matrix @ self._rates(c).T).T - structure.bounds for c in (seen, hoped)
        )
        met = np.all(violations <= TOLERANCE, axis=1)
        safe = met & np.all(_mean(violations, feared, FEARED) <= TOLERANCE, axis=1)
        merit = np.where(np.isnan(objective), -np.inf, structure.sense * objective)
        worst = np.where(np.isnan(violations), np.inf, violations).max(axis=1, initial=0.0)
        return met, safe, np.where(met, merit, -worst)

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

    @cached_property
    def _positions(self) -> dict[Rate, NDArray[np.intp]]:
        """The positions of each rate's metrics."""
        found: dict[Rate, list[int]] = {}
        for position, metric in enumerate(self.problem.structure.metrics):
            assert isinstance(metric.rate, Rate)  # a joint model takes no others
            found.setdefault(metric.rate, []).append(position)
        return {rate: np.array(positions) for rate, positions in found.items()}

    def _rates(self, cells: Array) -> Array:
        metrics = self.problem.structure.metrics
        rates = np.empty((len(cells), len(metrics)))
        for rate, positions in self._positions.items():
            rates[:, positions] = rate.value(cells[:, [metrics[p].group for p in positions]])
        return rates


def _mean(measured: Array, expected: Array, share: float) -> Array:
    return (1 - share) * measured + share * expected


def _from_above(table: Array) -> Array:
    """Sums of what exceeds each offset, from what exceeds just so many (the last axis)."""
    return np.asarray(table[..., :0:-1].cumsum(axis=-1)[..., ::-1])


def calibrated(problem: Problem, chance: Array) -> Array:
    """Chances of label 1, brought to what the labels of these rows show (Platt's scaling)."""
    rows = np.flatnonzero(problem.weights > 0)
    labels, weights = problem.labels[rows], problem.weights[rows]
    if len(np.unique(labels)) < 2:
        return chance
    said = logit(np.clip(chance, SURE, 1 - SURE))[:, None]
    with warnings.catch_warnings():
        # Chances that part the labels without a mistake have no best scale, and need none.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=1e3).fit(said[rows], labels, weights / weights.mean())
    return np.asarray(model.predict_proba(said)[:, 1])
