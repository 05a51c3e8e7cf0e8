"""Weigh: multipliers to labels and weights. Pure functions; the mathematics of the library.

The Lagrangian is ``L = objective - sum of lambda_k (A_k r - b_k)``. The *gain* of a row is the
change of ``L`` when its prediction turns from 0 to 1, scaled so that it is the row's own weight
when all multipliers are 0. Train towards label ``1[gain > 0]`` with weight ``|gain|``: a weight
that would be negative becomes a flipped label, which is exact for the 0-1 objective.

Without raw coefficients the gain of a unit of weight depends on the row's atom and label only:
a small table, looked up once for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnifair.problem import Array, Bits, Problem
from omnifair.rates import Quotient, Rate


@dataclass(frozen=True)
class Weights:
    """What a learner is trained on: a label (0 or 1) and a weight for each row."""

    labels: Bits
    values: Array


@dataclass(frozen=True)
class Point:
    """Where weights that depend on predictions are taken: the cells of every group there.

    ``fixed`` asks for the paper's weights, which hold such denominators fixed, rather than the
    quotient rule. ``predictions`` are needed by raw metrics of two arguments only.
    """

    cells: Array
    predictions: Bits | None = None
    fixed: bool = False


def paper_coefficients(rate: Rate, cells: ArrayLike) -> tuple[float, float, float]:
    """``(c_0, c_i of label 0, c_i of label 1)`` as in the paper's table, at one group's cells.

    The rate written as ``c_0 + sum of c_i 1(h(x_i) = y_i)``. Where predictions move the
    denominator it is held fixed at ``cells``, and mistakes are replaced by right decisions
    through it (``FP = (TP + FP) - TP``), which is how the paper writes FOR and FDR.
    """
    cells = np.asarray(cells, dtype=float)
    parts = np.array([_paper_term(term, cells) for term in rate.terms])
    constant, negative, positive = parts.sum(axis=0).tolist()
    return constant, negative, positive


def _paper_term(term: Quotient, cells: Array) -> tuple[float, float, float]:
    tp, fp, fn, tn = cells
    top, size = term.numerator, term.denominator
    total = float(size.value(cells))
    if not total > 0:
        return np.nan, np.nan, np.nan
    constant = 0.0
    if size.depends_on_predictions:
        # top - share * size has right decisions only, where such a share exists.
        share = top.FP / size.FP if size.FP else top.FN / size.FN if size.FN else 0.0
        rest = top - size * share
        if rest.FP == 0 == rest.FN:
            top, constant = rest, share
    constant += (top.FN * (tp + fn) + top.FP * (fp + tn)) / total
    return constant, (top.TN - top.FP) / total, (top.TP - top.FN) / total


def scaled_cells(cells: Array, source: Problem, target: Problem) -> Array:
    """Cells measured on one part as they would be on another, by group and label."""
    here, there = source.label_mass, target.label_mass
    factor = np.divide(there, here, out=np.zeros_like(there), where=here > 0)
    negative, positive = factor[:, :1], factor[:, 1:]
    return np.asarray(cells * np.hstack([positive, negative, positive, negative]))


def gains(problem: Problem, multipliers: ArrayLike, point: Point) -> Array:
    """The gain of predicting 1 on each row, in units of the rows' own weights."""
    by_code = gain_table(problem, multipliers, point).ravel()
    total = np.asarray(by_code[problem.code] * problem.weights)
    _add_raw_gains(total, problem, multipliers, point)
    return total


def gain_table(problem: Problem, multipliers: ArrayLike, point: Point) -> Array:
    """The gain of a unit of weight, by atom and label, without raw metrics."""
    structure = problem.structure
    by_group = np.zeros((len(structure.groups), 2))
    by_group[0] = structure.sense * _slopes(structure.objective, point, 0)
    for position, factor in _metric_factors(problem, multipliers):
        metric = structure.metrics[position]
        if isinstance(metric.rate, Rate):
            by_group[metric.group] += factor * _slopes(metric.rate, point, metric.group)
    return np.asarray(structure.member.astype(float) @ by_group) * problem.total


def _metric_factors(problem: Problem, multipliers: ArrayLike) -> Sequence[tuple[int, float]]:
    """What each metric counts in the Lagrangian, where it counts at all."""
    given = np.asarray(multipliers, dtype=float)
    factors = -(problem.structure.matrix.T @ given)
    return [(int(p), float(factors[p])) for p in np.flatnonzero(factors)]


def _slopes(rate: Rate, point: Point, group: int) -> NDArray[np.float64]:
    if point.fixed:
        _, negative, positive = paper_coefficients(rate, point.cells[group])
        slopes = np.array([-negative, positive])
    else:
        slopes = rate.slopes(point.cells[group])
    # An undefined rate has no slope: it says nothing about where to go.
    return np.asarray(np.nan_to_num(slopes, nan=0.0))


def _add_raw_gains(total: Array, problem: Problem, multipliers: ArrayLike, point: Point) -> None:
    for position, factor in _metric_factors(problem, multipliers):
        metric = problem.structure.metrics[position]
        if not isinstance(metric.rate, Rate):
            rows, _, per_row = problem.coefficients(metric, point.predictions)
            sign = 2.0 * problem.labels[rows] - 1.0
            total[rows] += factor * per_row * sign * problem.weights[rows] * problem.total


def signed_weights(problem: Problem, multipliers: ArrayLike, point: Point) -> Array:
    """The paper's ``w_i``, negative where a label has to be flipped. Affine in the multipliers."""
    return gains(problem, multipliers, point) * (2.0 * problem.labels - 1.0)


def weigh(problem: Problem, multipliers: ArrayLike, point: Point) -> Weights:
    """The labels and weights to train on."""
    gain = gains(problem, multipliers, point)
    # Where nothing is gained either way the label stays; its weight is 0.
    labels = np.where(gain == 0, problem.labels, gain > 0).astype(np.int8)
    return Weights(labels, np.abs(gain))
