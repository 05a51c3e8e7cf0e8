"""The paper's search, to the letter: its Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from omnifair.problem import Array, Problem
from omnifair.search.dimensions import Dimension, dimensions, setting
from omnifair.search.loop import Steps
from omnifair.training import Proposal, Setting, Trial

Tuning = Generator[Sequence[Proposal], Sequence[Trial], Trial]


@dataclass(frozen=True)
class PaperSearch:
    """Algorithm 1 (one multiplier: bound it, then bisect) inside Algorithm 2 (hill climbing).

    For each pair of groups there is one signed multiplier. Tuning it starts at 0; it is bounded
    by doubling from 1, or, where predictions stand in a denominator, by steps of ``delta`` with
    the weights of the model before; then it is bisected down to ``tau``. With several
    constraints the most violated one is tuned while the others stand still, for at most
    ``rounds`` times the number of constraints.

    Parameters
    ----------
    tau
        The width at which bisection ends.
    delta
        The step where weights depend on predictions.
    rounds
        Rounds of hill climbing for each constraint (the paper's 5 in "5k").
    max_steps
        Steps of ``delta`` in one direction, before the other direction is tried.

    Notes
    -----
    Where the text of the paper slips, this is what is done:

    - The midpoint is printed as (u + u) / 2; it is (l + u) / 2.
    - Algorithm 1 returns the model trained last, which need not satisfy the constraint; the one
      returned is the most accurate model seen that does.
    - For FOR and FDR the table of coefficients and the appendix differ in sign, and weights that
      hold the denominator fixed can push the wrong way. So after ``max_steps`` steps, or when
      the rate becomes undefined, the other direction is tried for as many.
    - Doubling has no end when no multiplier satisfies the constraint; it ends at 2**20.
    - A constraint with one side (a floor, a ceiling, a ratio), which the paper does not have, is
      a dimension whose multiplier is not negative.
    """

    tau: float = 1e-4
    delta: float = 1e-3
    rounds: int = 5
    max_steps: int = 500

    def budget(self, problem: Problem) -> int | None:
        """The algorithms end by themselves."""
        return None

    def steps(self, setting: Setting) -> Steps:
        """Algorithm 2; with one constraint it is Algorithm 1."""
        dims = dimensions(setting.problem.structure)
        multipliers = np.zeros(setting.problem.structure.n_rows)
        [trial] = yield [Proposal(multipliers)]
        for _ in range(self.rounds * max(1, len(dims))):
            if trial.satisfied or not dims:
                return
            worst = max(dims, key=lambda d: d.excess(trial.measurement.violations))
            trial = yield from self._tune(worst, trial)

    def _tune(self, dim: Dimension, current: Trial) -> Tuning:
        """Algorithm 1 on one dimension, with all other multipliers as they are."""
        others = setting(current.multipliers, dim, 0.0)
        start = current
        if np.any(others != current.multipliers):
            [start] = yield [self._proposal(others, dim, current)]
        if dim.met(start.measurement.violations):
            return start
        row = dim.violated_row(start.measurement.violations)
        if row is None:  # undefined: there is no direction to go
            return start
        seen: list[Trial] = []
        if dim.depends_on_predictions:
            bracket = yield from self._linear(dim, row, 1.0, start, seen)
            if bracket is None:
                bracket = yield from self._linear(dim, row, -1.0, start, seen)
        else:
            bracket = yield from self._double(dim, row, start, seen)
        if bracket is not None:
            yield from self._bisect(dim, row, bracket, seen)
        good = [t for t in seen if dim.met(t.measurement.violations)]
        if good:
            return max(good, key=lambda t: t.measurement.merit)
        return seen[-1] if seen else start

    def _double(self, dim: Dimension, row: int, start: Trial, seen: list[Trial]) -> _Bracketing:
        low, high = (0.0, start), 1.0
        while high <= 2.0**20:
            [trial] = yield [self._at(row, high, start, low[1], dim)]
            seen.append(trial)
            if not _below(trial, row):
                return low, (high, trial)
            low, high = (high, trial), 2 * high
        return None

    def _linear(
        self, dim: Dimension, row: int, sign: float, start: Trial, seen: list[Trial]
    ) -> _Bracketing:
        low = (0.0, start)
        for step in range(1, self.max_steps + 1):
            value = sign * self.delta * step
            [trial] = yield [self._at(row, value, start, low[1], dim)]
            seen.append(trial)
            if np.isnan(trial.measurement.violations[row]):
                return None
            if not _below(trial, row):
                return low, (value, trial)
            low = (value, trial)
        return None

    def _bisect(
        self, dim: Dimension, row: int, bracket: tuple[_End, _End], seen: list[Trial]
    ) -> Generator[Sequence[Proposal], Sequence[Trial], None]:
        low, high = bracket
        start = seen[0]
        while abs(high[0] - low[0]) >= self.tau:
            middle = (low[0] + high[0]) / 2
            [trial] = yield [self._at(row, middle, start, low[1], dim)]
            seen.append(trial)
            if _below(trial, row):
                low = (middle, trial)
            else:
                high = (middle, trial)

    def _at(self, row: int, value: float, start: Trial, at: Trial, dim: Dimension) -> Proposal:
        multipliers = start.multipliers.copy()
        multipliers[list(dim.rows)] = 0.0
        multipliers[row] = value
        return self._proposal(multipliers, dim, at)

    @staticmethod
    def _proposal(multipliers: Array, dim: Dimension, at: Trial) -> Proposal:
        return Proposal(multipliers, at=at, fixed=True)


_End = tuple[float, Trial]
_Bracketing = Generator[Sequence[Proposal], Sequence[Trial], tuple[_End, _End] | None]


def _below(trial: Trial, row: int) -> bool:
    """The paper's ``FP(theta) < -eps``: the row is still violated (or undefined)."""
    return not trial.measurement.violations[row] <= 0
