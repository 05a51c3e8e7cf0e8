"""Dimensions: linear rows that are the two sides of one demand share one signed multiplier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnifair.problem import TOLERANCE, Array, Structure


@dataclass(frozen=True)
class Dimension:
    """One demand: two opposite rows (``|r_a - r_b| <= eps``), or a single row."""

    rows: tuple[int, ...]
    depends_on_predictions: bool

    def excess(self, violations: Array) -> float:
        """How far the demand is from being met; undefined counts as farthest."""
        here = violations[list(self.rows)]
        return float(np.where(np.isnan(here), np.inf, here).max())

    def met(self, violations: Array) -> bool:
        """Whether the demand is met."""
        return self.excess(violations) <= TOLERANCE

    def violated_row(self, violations: Array) -> int | None:
        """The side that is violated; None where the rates are undefined."""
        here = violations[list(self.rows)]
        return None if np.isnan(here).any() else self.rows[int(here.argmax())]


def dimensions(structure: Structure) -> tuple[Dimension, ...]:
    """The problem's rows, opposite ones together."""
    rows: dict[tuple[object, ...], int] = {}
    found: list[tuple[int, ...]] = []
    for k in range(structure.n_rows):
        entries = slice(structure.matrix.indptr[k], structure.matrix.indptr[k + 1])
        columns = structure.matrix.indices[entries].tolist()
        values = structure.matrix.data[entries]
        bound, owner = float(structure.bounds[k]), int(structure.owner[k])
        opposite = (owner, bound, *columns, *(-values).tolist())
        if opposite in rows:
            found[rows[opposite]] += (k,)
        else:
            rows[(owner, bound, *columns, *values.tolist())] = len(found)
            found.append((k,))
    return tuple(Dimension(group, _depends(structure, group[0])) for group in found)


def _depends(structure: Structure, row: int) -> bool:
    entries = slice(structure.matrix.indptr[row], structure.matrix.indptr[row + 1])
    positions = structure.matrix.indices[entries]
    return any(structure.metrics[p].rate.depends_on_predictions for p in positions)


def setting(multipliers: Array, dimension: Dimension, value: float) -> Array:
    """The multipliers with a dimension's own all at one value."""
    changed = multipliers.copy()
    changed[list(dimension.rows)] = value
    return changed
