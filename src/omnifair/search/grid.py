"""Grid search over the multipliers: the baseline that cannot miss what its grid holds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from omnifair.errors import LearnerError
from omnifair.problem import Array, Problem
from omnifair.search.dimensions import Dimension, dimensions
from omnifair.search.loop import Steps
from omnifair.training import Proposal, Setting, Trial


@dataclass(frozen=True)
class GridSearch:
    """Train at every point of a regular grid of multipliers and keep the best.

    Parameters
    ----------
    points
        How many values each demand's multiplier takes; odd numbers hold 0.
    limit
        Multipliers run from ``-limit`` to ``limit`` where a demand has two sides (the sign says
        which), and from 0 to ``limit`` where it has one.
    max_points
        A larger grid than this is refused rather than begun.
    """

    points: int = 21
    limit: float = 0.5
    max_points: int = 10_000

    def budget(self, problem: Problem) -> int | None:
        """A grid ends by itself."""
        return None

    def steps(self, setting: Setting) -> Steps:
        """The origin, then outwards."""
        dims = dimensions(setting.problem.structure)
        if float(self.points) ** len(dims) > self.max_points:
            raise LearnerError(
                f"A grid of {self.points} points for each of {len(dims)} demands is larger than "
                f"max_points={self.max_points}: use fewer points, fewer groups, or the default "
                "strategy."
            )
        grid = self._grid(dims, setting.problem.structure.n_rows)
        seen = list((yield [Proposal(grid[0])]))
        if not setting.problem.structure.depends_on_predictions:
            yield [Proposal(point) for point in grid[1:]]
            return
        for point in grid[1:]:  # weights are taken at the nearest model there is
            seen += yield [Proposal(point, at=_nearest(point, seen))]

    def _grid(self, dims: tuple[Dimension, ...], n_rows: int) -> list[Array]:
        axes = [
            np.linspace(-self.limit if len(d.rows) == 2 else 0.0, self.limit, self.points)
            for d in dims
        ]
        grid = {np.zeros(n_rows).tobytes(): np.zeros(n_rows)}
        for values in itertools.product(*axes):
            point = np.zeros(n_rows)
            for dim, value in zip(dims, values, strict=True):
                point[dim.rows[0] if value > 0 else dim.rows[-1]] = abs(value)
            grid[point.tobytes()] = point
        return sorted(grid.values(), key=lambda p: float(np.abs(p).sum()))


def _nearest(point: Array, trials: list[Trial]) -> Trial:
    return min(trials, key=lambda t: float(np.abs(t.multipliers - point).sum()))
