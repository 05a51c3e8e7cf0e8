"""What a reweighted learner would roughly decide, without training it.

Whoever knew ``P(group, label | x)`` would predict 1 where the expected gain is positive; the
gain is linear in the multipliers. So the rates at any multipliers follow from one table of
chances, and the best multipliers from a small convex problem, the dual of "most accurate
decisions within the bounds".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from omnifair.problem import Array, Problem
from omnifair.rates import Coefficients, Rate

# Decisions are made soft over this width of the gain, so that rates move smoothly.
SOFTNESS = 0.05
# How much faster than the share of everybody a rate may move with single rows.
STEEPEST = 1e6


@dataclass(frozen=True)
class Response:
    """What the surrogate expects at some multipliers: every group's cells, every metric."""

    multipliers: Array
    cells: Array
    rates: Array
    slopes: Array  # of every metric, by multiplier


@dataclass(frozen=True)
class Surrogate:
    """Chances of (atom, label) for some rows, standing for all rows of a problem."""

    problem: Problem
    chances: Array

    @classmethod
    def of(cls, problem: Problem, chances: Array, rows: NDArray[np.intp]) -> Surrogate | None:
        """Chances brought to the problem's own counts; None where rates are not of cells."""
        if any(isinstance(m.rate, Coefficients) for m in problem.structure.metrics):
            return None
        kept = problem.weights[rows] > 0
        weighted = chances[kept] * problem.weights[rows[kept]][:, None]
        real = np.bincount(problem.code, problem.weights, chances.shape[1])
        expected = weighted.sum(axis=0)
        scale = np.divide(real, expected, out=np.zeros(len(real)), where=expected > 0)
        return cls(problem, weighted * scale)

    @cached_property
    def matrix(self) -> Array:
        """The problem's rows by metric."""
        return np.asarray(self.problem.structure.matrix.toarray())

    @cached_property
    def shares(self) -> Array:
        """The share of everybody that each metric's group has."""
        size = self.problem.label_mass.sum(axis=1)
        return np.asarray(size[self._groups] / size[0])

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

    @cached_property
    def _softness(self) -> Array:
        return np.asarray(self.chances.sum(axis=1) * SOFTNESS / self.problem.total)

    def response(self, multipliers: Array, start: Array) -> Response:
        """Cells and rates at some multipliers; ``start`` is where weights are first taken."""
        cells = start
        for _ in range(4 if self.problem.structure.depends_on_predictions else 1):
            line = self._line(cells)
            chosen = self._chosen(line, multipliers)
            cells = self._cells(chosen)
        # How the predicted positives move with every multiplier, by atom and label.
        swing = self.chances.T @ (self.chances * (chosen * (1 - chosen) / self._softness)[:, None])
        pulls = -self.matrix[:, :, None] * line.slopes  # multiplier, metric, label
        by_group = self._of_group @ pulls
        moved = (self._member @ by_group).reshape(len(self.matrix), -1) @ swing
        hits = (self._member.T @ moved.reshape(len(self.matrix), -1, 2))[:, self._groups]
        slopes = (hits * line.slopes).sum(axis=2).T
        return Response(multipliers, cells, self.problem.rates(cells, None), slopes)

    def solve(self, aim: Array, start: Array, most: float) -> Array:
        """The multipliers (0 to ``most``) at which ``matrix @ rates <= aim`` costs least."""
        found, cells = np.zeros(len(self.matrix)), start
        for _ in range(4 if self.problem.structure.depends_on_predictions else 1):
            result = minimize(
                self._dual,
                found,
                (self._line(cells), aim),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, most)] * len(found),
            )
            found = np.asarray(result.x)
            cells = self._cells(self._chosen(self._line(cells), found))
        return found

    def _line(self, cells: Array) -> _Line:
        structure = self.problem.structure
        slopes, origin = np.zeros((len(self._groups), 2)), np.zeros(len(self._groups))
        for position, metric in enumerate(structure.metrics):
            assert isinstance(metric.rate, Rate)  # see Surrogate.of
            here = cells[metric.group]
            # A rate of next to nobody swings without limit, and says as little as an undefined one.
            slope = metric.rate.slopes(here)
            steep = not np.abs(slope).max() * self.problem.total < STEEPEST
            slopes[position] = 0.0 if steep else slope
            value = float(np.nan_to_num(metric.rate.value(here)))
            origin[position] = value - slopes[position] @ here[[1, 0]]  # FP, TP
        objective = structure.sense * np.nan_to_num(structure.objective.slopes(cells[0]))
        return _Line(origin, slopes, objective)

    def _ratio(self, line: _Line, multipliers: Array) -> Array:
        """The expected gain of predicting 1 on each row, in units of its softness."""
        by_group = self._of_group @ ((-multipliers @ self.matrix)[:, None] * line.slopes)
        by_group[0] += line.objective
        return np.asarray(self.chances @ (self._member @ by_group).ravel() / self._softness)

    def _chosen(self, line: _Line, multipliers: Array) -> Array:
        """The share of each row that is predicted 1."""
        return np.asarray(expit(self._ratio(line, multipliers)))

    def _cells(self, chosen: Array) -> Array:
        """Every group's expected cells."""
        hits = self._member.T @ (chosen @ self.chances).reshape(-1, 2)
        negatives, positives = self.problem.label_mass.T
        return np.column_stack(
            [hits[:, 1], hits[:, 0], positives - hits[:, 1], negatives - hits[:, 0]]
        )

    def _dual(self, multipliers: Array, line: _Line, aim: Array) -> tuple[float, Array]:
        """The Lagrangian at its best decisions, and its slope: minus the violations."""
        ratio = self._ratio(line, multipliers)
        hits = self._cells(expit(ratio))[self._groups][:, [1, 0]]  # FP, TP
        rates = line.origin + (line.slopes * hits).sum(axis=1)
        value = float(self._softness @ np.logaddexp(0.0, ratio))
        value -= float(multipliers @ (self.matrix @ line.origin - aim))
        return value, aim - self.matrix @ rates


@dataclass(frozen=True)
class _Line:
    """The problem linearised at some cells: exact where no prediction is in a denominator."""

    origin: Array  # every metric at no predicted positives
    slopes: Array  # metrics by label
    objective: Array  # slopes of the objective, by label
