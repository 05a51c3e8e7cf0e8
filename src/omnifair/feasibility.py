"""Whether any decisions at all could meet the constraints on some rows.

Predicted positives by atom and label are the only unknowns of every rate, and most constraints are
linear in them: a linear programme. Decisions that it allows may need to know what no model does
(each person's label and group) and may part people at will, so that it proves nothing possible.
But what it finds impossible is so, for every model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linprog

from omnifair.problem import Array, Metric, Problem
from omnifair.rates import Rate

# A larger table than this takes longer to judge than a training.
LARGEST = 10_000_000
INFEASIBLE = 2  # scipy's word for it


def contradiction(problem: Problem) -> tuple[int, ...]:
    """The positions of constraints that no decisions meet together; none where some may.

    What is left out of them could be met: each of those named is needed for the contradiction.
    """
    structure = problem.structure
    if 2 * len(structure.member) * structure.n_rows > LARGEST:
        return ()
    found = list(_linear_rows(problem))
    if not found:
        return ()
    owner = structure.owner[[k for k, _, _ in found]]
    # In shares of all rows, so that the unit of weights is no matter.
    table = np.array([row for _, row, _ in found]) * problem.total
    most = np.array([bound for _, _, bound in found])
    masses = np.bincount(problem.code, problem.weights, table.shape[1]) / problem.total
    if any(np.all(table @ chosen <= most) for chosen in (0 * masses, masses)):
        return ()  # the same decision for everybody will do: so it mostly is
    limits = [(0.0, float(mass)) for mass in masses]

    def impossible(constraints: Sequence[int]) -> bool:
        kept = np.isin(owner, constraints)
        if not kept.any():
            return False
        answer = linprog(np.zeros(len(masses)), table[kept], most[kept], bounds=limits)
        return bool(answer.status == INFEASIBLE)

    needed = list(range(len(structure.constraints)))
    if not impossible(needed):
        return ()
    for constraint in tuple(needed):
        without = [c for c in needed if c != constraint]
        if impossible(without):
            needed = without
    return tuple(needed)


def _linear_rows(problem: Problem) -> Iterator[tuple[int, Array, float]]:
    """The problem's rows that are linear in predicted positives by atom and label, with bounds."""
    structure = problem.structure
    matrix = structure.matrix
    for k in range(structure.n_rows):
        entries = slice(matrix.indptr[k], matrix.indptr[k + 1])
        metrics = [structure.metrics[p] for p in matrix.indices[entries]]
        factors, bound = matrix.data[entries], float(structure.bounds[k])
        row, moved = np.zeros(2 * len(structure.member)), 0.0
        if len(metrics) == 1:
            line = _quotient(problem, metrics[0], float(factors[0]), bound)
            if line is not None:
                yield k, *line
            continue
        if any(not isinstance(m.rate, Rate) or m.rate.depends_on_predictions for m in metrics):
            continue
        for metric, factor in zip(metrics, factors, strict=True):
            assert isinstance(metric.rate, Rate)
            nobody = _nobody(problem, metric)
            row += factor * _by_atom(problem, metric, metric.rate.slopes(nobody))
            moved += float(factor * metric.rate.value(nobody))
        yield k, row, bound - moved


def _quotient(
    problem: Problem, metric: Metric, factor: float, bound: float
) -> tuple[Array, float] | None:
    """``factor * n / d <= bound`` as ``factor * n - bound * d <= 0``; None for sums of them."""
    if not isinstance(metric.rate, Rate) or len(metric.rate.terms) > 1:
        return None
    [term] = metric.rate.terms
    above, below = term.numerator, term.denominator
    steps = factor * np.asarray(above.step) - bound * np.asarray(below.step)
    nobody = _nobody(problem, metric)
    moved = factor * float(above.value(nobody)) - bound * float(below.value(nobody))
    size = problem.total
    return _by_atom(problem, metric, steps) / size, -moved / size


def _nobody(problem: Problem, metric: Metric) -> Array:
    """A group's cells where nobody is predicted positive."""
    negative, positive = problem.label_mass[metric.group]
    return np.array([0.0, 0.0, positive, negative])


def _by_atom(problem: Problem, metric: Metric, by_label: Array) -> Array:
    """What a predicted positive of each atom and label adds, from what it adds by label."""
    member = problem.structure.member[:, metric.group].astype(float)
    return np.asarray(np.outer(member, by_label).ravel())
