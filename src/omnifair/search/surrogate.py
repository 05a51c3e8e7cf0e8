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
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

from omnifair.problem import Array, Problem
from omnifair.rates import Coefficients, Rate

# Decisions are made soft over this width of the gain, so that rates move smoothly.
SOFTNESS = 0.05


@dataclass(frozen=True)
class Response:
    """What the surrogate expects at some multipliers: every group's cells, every metric."""

    multipliers: Array
    cells: Array
    rates: Array


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
        size = chances.shape[1]
        weighted = chances * problem.weights[rows][:, None]
        real = np.bincount(problem.code, problem.weights, size)
        expected = weighted.sum(axis=0)
        scale = np.divide(real, expected, out=np.zeros(size), where=expected > 0)
        table = weighted * scale
        return cls(problem, table[table.sum(axis=1) > 0])  # rows that weigh nothing say nothing

    @cached_property
    def _mass(self) -> Array:
        return np.asarray(self.chances.sum(axis=1))

    @cached_property
    def _matrix(self) -> Array:
        return np.asarray(self.problem.structure.matrix.toarray())

    @cached_property
    def shares(self) -> Array:
        """The share of everybody that each metric's group has."""
        size = self.problem.label_mass.sum(axis=1)
        return np.asarray([size[m.group] for m in self.problem.structure.metrics] / size[0])

    def response(self, multipliers: Array, start: Array) -> Response:
        """Cells and rates at some multipliers; ``start`` is where weights are first taken."""
        cells = start
        for _ in range(4 if self.problem.structure.depends_on_predictions else 1):
            line = _Line.at(self, cells)
            cells = self._cells(line.soft(multipliers))
        return Response(multipliers, cells, self.problem.rates(cells, None))

    def solve(self, aim: Array, begin: Array, start: Array, most: Array) -> Response:
        """The multipliers (0 to ``most``) at which ``matrix @ rates <= aim`` costs least."""
        found, cells = begin, start
        bounds = list(zip(np.zeros(len(most)), most, strict=True))
        for _ in range(4 if self.problem.structure.depends_on_predictions else 1):
            line = _Line.at(self, cells)
            result = minimize(line.dual, found, (aim,), jac=True, method="L-BFGS-B", bounds=bounds)
            found = np.asarray(result.x)
            cells = self._cells(line.soft(found))
        return Response(found, cells, self.problem.rates(cells, None))

    def _cells(self, chosen: Array) -> Array:
        """Every group's expected cells, where a share ``chosen`` of each row is predicted 1."""
        positive = (chosen @ self.chances).reshape(-1, 2)
        member = self.problem.structure.member.T.astype(float)
        hits = member @ positive
        negatives, positives = self.problem.label_mass.T
        return np.column_stack(
            [hits[:, 1], hits[:, 0], positives - hits[:, 1], negatives - hits[:, 0]]
        )


@dataclass(frozen=True)
class _Line:
    """The problem linearised at some cells: exact where no prediction is in a denominator."""

    surrogate: Surrogate
    origin: Array  # every metric at no predicted positives
    slopes: Array  # metrics by label
    objective: Array  # slopes of the objective, by label

    @classmethod
    def at(cls, surrogate: Surrogate, cells: Array) -> _Line:
        structure = surrogate.problem.structure
        slopes = np.zeros((len(structure.metrics), 2))
        origin = np.zeros(len(structure.metrics))
        for position, metric in enumerate(structure.metrics):
            assert isinstance(metric.rate, Rate)
            here = cells[metric.group]
            slopes[position] = np.nan_to_num(metric.rate.slopes(here))
            value = float(np.nan_to_num(metric.rate.value(here)))
            origin[position] = value - slopes[position] @ here[[1, 0]]  # FP, TP
        objective = structure.sense * np.nan_to_num(structure.objective.slopes(cells[0]))
        return cls(surrogate, origin, slopes, objective)

    def gain(self, multipliers: ArrayLike) -> Array:
        """The expected gain of predicting 1 on each row, in units of the rows' weights."""
        problem = self.surrogate.problem
        structure = problem.structure
        by_group = np.zeros((len(structure.groups), 2))
        by_group[0] = self.objective
        factors = self.surrogate._matrix.T @ np.asarray(multipliers)
        groups = [metric.group for metric in structure.metrics]
        np.subtract.at(by_group, groups, factors[:, None] * self.slopes)
        table = structure.member.astype(float) @ by_group
        return np.asarray(self.surrogate.chances @ table.ravel())

    def soft(self, multipliers: ArrayLike) -> Array:
        """The share of each row that is predicted 1."""
        scale = self.surrogate._mass * SOFTNESS / self.surrogate.problem.total
        return np.asarray(expit(self.gain(multipliers) / scale))

    def dual(self, multipliers: Array, aim: Array) -> tuple[float, Array]:
        """The Lagrangian at its best decisions, and its slope: minus the violations."""
        scale = self.surrogate._mass * SOFTNESS / self.surrogate.problem.total
        ratio = self.gain(multipliers) / scale
        chosen = expit(ratio)
        hits = self.surrogate._cells(chosen)[:, [1, 0]]  # FP, TP
        structure = self.surrogate.problem.structure
        groups = [metric.group for metric in structure.metrics]
        rates = self.origin + (self.slopes * hits[groups]).sum(axis=1)
        matrix = self.surrogate._matrix
        value = float(scale @ np.logaddexp(0.0, ratio))
        value -= float(multipliers @ (matrix @ self.origin - aim))
        return value, -(matrix @ rates - aim)
