"""What a reweighted learner would decide, told from models that are there, without training it.

Whoever knew ``P(group, label | x)`` would predict 1 where the expected gain is positive; the
gain is linear in the multipliers. What a real learner makes of it differs from that by a
*residual*, which is known wherever the learner was trained, and is interpolated in between. So at
the multipliers of a training the surrogate decides as its model did, and elsewhere about as the
learner would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from omnifair.problem import Array, Bits, Problem
from omnifair.rates import Coefficients

# Decisions are made soft over this width of the margin, so that rates move smoothly.
SOFTNESS = 0.05
# How much faster than the share of everybody a rate may move with single rows.
STEEPEST = 1e6
# Gains closer than this share of their size are the same.
SAME = 1e-6
# How much of what models miss is a trend, against what wanders: 1 goes on half as steeply.
TREND = 3.0
# The margin of a decision that a model's margin does not explain.
HAIR = 1e-3


@dataclass(frozen=True)
class Response:
    """What the surrogate expects at some multipliers: every group's cells, every metric.

    ``pull`` says how much each model that was learned from counts there.
    """

    multipliers: Array
    cells: Array
    rates: Array
    slopes: Array  # of every metric, by the pull at each (multipliers @ matrix)
    pull: Array


@dataclass(frozen=True)
class Learned:
    """Models that were learned from.

    By model: the gains that it was trained with (by atom and label, in units of importance), its
    residuals by row, and the cells that its softened decisions make.
    """

    gains: Array
    residuals: Array
    cells: Array

    @cached_property
    def inverse(self) -> Array:
        """Of the system whose solution is how much each model counts (see :meth:`weights`)."""
        n = len(self.gains)
        apart = np.linalg.norm(self.gains[:, None] - self.gains[None], axis=2)
        system = np.ones((n + 1, n + 1))
        system[:n, :n] = self._moved @ self._moved.T * self._trend - apart
        system[n, n] = 0.0
        return np.asarray(np.linalg.pinv(system), dtype=float)

    @cached_property
    def _moved(self) -> Array:
        return np.asarray(self.gains - self.gains[0])

    @cached_property
    def _trend(self) -> float:
        farthest = float(np.linalg.norm(self._moved, axis=1).max())
        return TREND / farthest if farthest > 0 else 0.0

    def weights(self, gains: Array) -> tuple[Array, Array]:
        """How much each model counts at some gains, and how that changes with the gains.

        Kriging, of residuals that wander and have a trend. On a line through the models it is
        linear interpolation between two neighbours; beyond the outermost a part of the trend
        goes on.
        """
        n = len(self.gains)
        away = gains - self.gains
        distance = np.linalg.norm(away, axis=1)
        near = self._moved @ (gains - self.gains[0]) * self._trend - distance
        towards = np.divide(
            away, distance[:, None], out=np.zeros_like(away), where=distance[:, None] > 0
        )
        slopes = self._moved * self._trend - towards
        return (self.inverse @ np.append(near, 1.0))[:n], self.inverse[:n, :n] @ slopes


@dataclass(frozen=True)
class Surrogate:
    """Chances of (atom, label) for some rows, standing for all rows of a problem.

    ``rows`` are their positions there, none of weight 0. Each row of ``chances`` sums to 1.
    """

    problem: Problem
    chances: Array
    rows: NDArray[np.intp]
    learned: Learned | None = None

    @classmethod
    def of(cls, problem: Problem, chances: Array, rows: NDArray[np.intp]) -> Surrogate | None:
        """The surrogate of these rows; None where rates are not of cells."""
        if any(isinstance(m.rate, Coefficients) for m in problem.structure.metrics):
            return None
        return cls(problem, chances, rows)

    # -- learning from models ----------------------------------------------------------------------

    def only(self, kept: NDArray[np.bool_]) -> Surrogate:
        """The surrogate that knows only these of its models."""
        known = self.learned
        if known is None or kept.all():
            return self
        rest = Learned(known.gains[kept], known.residuals[kept], known.cells[kept])
        return replace(self, learned=rest)

    def learn(
        self, multipliers: Array, cells: Array, decisions: Bits, margins: Array | None
    ) -> tuple[Surrogate, NDArray[np.bool_]]:
        """The surrogate that also knows a model, and which of the models before it are kept.

        ``cells`` are those that its weights were taken at; ``decisions`` are its own on all rows
        of the problem, ``margins`` (between -1 and 1, or None) those on the surrogate's rows.
        """
        gains = self._gains(multipliers, self._line(cells))
        expected, size = self.chances @ gains, self.chances @ np.abs(gains)
        positive = decisions[self.rows] == 1
        # Of decisions alone only the sign is known: the chances have to do for the rest.
        score = np.abs(expected) if margins is None else margins * size
        if margins is None:
            score = np.where(positive, score, -score)
        score = np.where((score > 0) == positive, score, np.where(positive, HAIR, -HAIR) * size)
        soft = self._cells(self._chosen(score, size * SOFTNESS))
        place = gains * self._importance
        new = Learned(place[None], (score - expected)[None], soft[None])
        known = self.learned
        if known is None:
            return replace(self, learned=new), np.zeros(0, dtype=bool)
        # The same gains again: the later model is the better one (of more rows, say).
        kept = np.linalg.norm(known.gains - place, axis=1) > SAME * np.linalg.norm(place)
        learned = Learned(
            np.vstack([known.gains[kept], new.gains]),
            np.vstack([known.residuals[kept], new.residuals]),
            np.concatenate([known.cells[kept], new.cells]),
        )
        return replace(self, learned=learned), kept

    @cached_property
    def _importance(self) -> Array:
        """By which gains are compared: the root of the share of the rows that have them."""
        return np.sqrt(self._real / self.problem.total)

    # -- responding --------------------------------------------------------------------------------

    @cached_property
    def matrix(self) -> Array:
        """The problem's rows by metric."""
        return np.asarray(self.problem.structure.matrix.toarray())

    @cached_property
    def shares(self) -> Array:
        """The share of everybody that each metric's group has."""
        size = self.problem.label_mass.sum(axis=1)
        return np.asarray(size[self._groups] / size[0])

    def response(self, multipliers: Array, start: Array) -> Response:
        """Cells and rates at some multipliers; ``start`` is where weights are first taken."""
        cells = start
        for _ in range(4 if self.problem.structure.depends_on_predictions else 1):
            line = self._line(cells)
            gains = self._gains(multipliers, line)
            pull, turns = self._pull(gains)
            width = self.chances @ np.abs(gains) * SOFTNESS
            chosen = self._chosen(self._terms @ np.concatenate([gains, pull]), width)
            cells = self._cells(chosen)
        # How the predicted positives of each atom and label move with the score's coefficients:
        # the gains themselves, and how much each model counts.
        steep = np.divide(chosen * (1 - chosen), width, out=np.zeros_like(width), where=width > 0)
        swing = self._by_code((self._terms * steep[:, None]) * self._mass[:, None])
        by_pull = (self._member @ self._steps(line)).reshape(len(self._groups), -1)
        coefficients = np.hstack([by_pull, by_pull @ turns.T])
        moved = (coefficients @ swing.T).reshape(len(self._groups), -1, 2)
        hits = (self._member.T @ moved)[:, self._groups]
        slopes = (hits * line.slopes).sum(axis=2).T
        return Response(multipliers, cells, self.problem.rates(cells, None), slopes, pull)

    def _pull(self, gains: Array) -> tuple[Array, Array]:
        """How much each model counts, and its slopes by the gains."""
        if self.learned is None:
            return np.zeros(0), np.zeros((0, len(gains)))
        found, slopes = self.learned.weights(gains * self._importance)
        return found, slopes * self._importance

    @staticmethod
    def _chosen(score: Array, width: Array) -> Array:
        """The share in which each row is predicted 1."""
        return np.asarray(expit(score / np.where(width > 0, width, 1.0)))

    @cached_property
    def _terms(self) -> Array:
        """What the score is linear in: chances, and the models' residuals."""
        if self.learned is None:
            return self.chances
        return np.hstack([self.chances, self.learned.residuals.T])

    def _steps(self, line: _Line) -> Array:
        """What a unit of pull at a metric adds to the gains, by metric, group and label."""
        return np.asarray(-self._of_group.T[:, :, None] * line.slopes[:, None] * self.problem.total)

    def _gains(self, multipliers: Array, line: _Line) -> Array:
        """The gain of a unit of weight, by atom and label in one row."""
        by_group = self._of_group @ ((-multipliers @ self.matrix)[:, None] * line.slopes)
        by_group[0] += line.objective
        return np.asarray((self._member @ by_group).ravel() * self.problem.total)

    def _cells(self, chosen: Array) -> Array:
        """Every group's cells, where each row is predicted 1 in this share."""
        return self._group_cells(self._by_code((chosen * self._mass)[:, None])[:, 0])

    def _group_cells(self, positives: Array) -> Array:
        hits = self._member.T @ positives.reshape(-1, 2)
        negative, positive = self.problem.label_mass.T
        return np.column_stack(
            [hits[:, 1], hits[:, 0], positive - hits[:, 1], negative - hits[:, 0]]
        )

    def _by_code(self, values: Array) -> Array:
        """Sums over the rows of each atom and label."""
        order, starts, present = self._sorted
        found = np.zeros((len(self._real), values.shape[1]))
        found[present] = np.add.reduceat(values[order], starts, axis=0)
        return found

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        codes = self.problem.code[self.rows]
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes[order], return_index=True)
        return order, starts, present

    @cached_property
    def _real(self) -> Array:
        """The weight of all rows of each atom and label."""
        size = 2 * len(self.problem.structure.member)
        return np.asarray(np.bincount(self.problem.code, self.problem.weights, size), dtype=float)

    @cached_property
    def _mass(self) -> Array:
        """The rows' weights, brought to those of all rows of their atom and label."""
        codes, weights = self.problem.code[self.rows], self.problem.weights[self.rows]
        here = np.bincount(codes, weights, len(self._real))
        scale = np.divide(self._real, here, out=np.zeros_like(here), where=here > 0)
        return np.asarray(weights * scale[codes])

    @cached_property
    def _groups(self) -> NDArray[np.intp]:
        return np.array([m.group for m in self.problem.structure.metrics], dtype=np.intp)

    @cached_property
    def _of_group(self) -> Array:
        """Which metrics are of which group: groups by metrics."""
        return np.asarray(np.arange(self._member.shape[1])[:, None] == self._groups, dtype=float)

    @cached_property
    def _member(self) -> Array:
        return np.asarray(self.problem.structure.member, dtype=float)

    def _line(self, cells: Array) -> _Line:
        """The rates and the objective as lines in their groups' positives, near these cells."""
        if self.problem.structure.depends_on_predictions:
            return self._tangent(cells)
        return self._fixed_line

    @cached_property
    def _fixed_line(self) -> _Line:
        """The same everywhere, where no prediction stands in a denominator."""
        return self._tangent(self.problem.cells(self.problem.labels))

    def _tangent(self, cells: Array) -> _Line:
        structure = self.problem.structure
        slopes, origin = np.zeros((len(self._groups), 2)), np.zeros(len(self._groups))
        for rate, positions in structure.by_rate.items():
            here = cells[self._groups[positions]]
            # A rate of next to nobody swings without limit, and says as little as an undefined one.
            found = rate.slopes(here)
            calm = np.abs(found).max(axis=1, keepdims=True) * self.problem.total < STEEPEST
            slopes[positions] = np.where(calm, found, 0.0)
            hits = here[:, [1, 0]]  # FP, TP
            origin[positions] = np.nan_to_num(rate.value(here))
            origin[positions] -= (slopes[positions] * hits).sum(axis=1)
        objective = structure.sense * np.nan_to_num(structure.objective.slopes(cells[0]))
        return _Line(origin, slopes, objective)

    # -- the best multipliers, by chances alone ----------------------------------------------------

    def solve(self, aim: Array, start: Array, most: float) -> Array:
        """The multipliers (0 to ``most``) at which ``matrix @ rates <= aim`` costs least.

        By the chances alone it is a convex problem: the dual of "most accurate decisions within
        the bounds".
        """
        found, cells = np.zeros(len(self.matrix)), start
        for _ in range(4 if self.problem.structure.depends_on_predictions else 1):
            line = self._line(cells)
            result = minimize(
                self._dual,
                found,
                (line, aim),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, most)] * len(found),
            )
            found = np.asarray(result.x)
            cells = self._group_cells(self._expected_positives(self._dual_ratio(found, line)))
        return found

    @cached_property
    def _expected(self) -> Array:
        """The weight that each row is expected to have in each atom and label."""
        weighted = self.chances * self.problem.weights[self.rows][:, None]
        expected = weighted.sum(axis=0)
        scale = np.divide(self._real, expected, out=np.zeros_like(expected), where=expected > 0)
        return np.asarray(weighted * scale)

    @cached_property
    def _softness(self) -> Array:
        return np.asarray(self._expected.sum(axis=1) * SOFTNESS)

    def _dual_ratio(self, multipliers: Array, line: _Line) -> Array:
        return np.asarray(self._expected @ self._gains(multipliers, line) / self._softness)

    def _expected_positives(self, ratio: Array) -> Array:
        return np.asarray(expit(ratio) @ self._expected)

    def _dual(self, multipliers: Array, line: _Line, aim: Array) -> tuple[float, Array]:
        """The Lagrangian at its best decisions, and its slope: minus the violations."""
        ratio = self._dual_ratio(multipliers, line)
        hits = self._group_cells(self._expected_positives(ratio))[self._groups][:, [1, 0]]  # FP, TP
        rates = line.origin + (line.slopes * hits).sum(axis=1)
        value = float(self._softness @ np.logaddexp(0.0, ratio)) / self.problem.total
        value -= float(multipliers @ (self.matrix @ line.origin - aim))
        return value, aim - self.matrix @ rates


@dataclass(frozen=True)
class _Line:
    """The problem linearised at some cells: exact where no prediction is in a denominator."""

    origin: Array  # every metric at no predicted positives
    slopes: Array  # metrics by label
    objective: Array  # slopes of the objective, by label
