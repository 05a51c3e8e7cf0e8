"""A safeguarded bracketing search: the most violated row first, with the exact weights."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from omnifair.problem import TOLERANCE, Problem
from omnifair.search.loop import Steps
from omnifair.training import Proposal, Setting, Trial

Tuning = Generator[Sequence[Proposal], Sequence[Trial], Trial]


@dataclass(frozen=True)
class BracketSearch:
    """Bracket and interpolate one multiplier at a time, the most violated row first.

    The weights are exact: where predictions stand in a denominator they follow the quotient rule
    at the last model, and are taken anew with every training.

    Parameters
    ----------
    slack
        A row that is met with less to spare than this share of its bound is close enough.
    step
        The first step of a multiplier.
    rounds
        How often, for each constraint row, the most violated one is taken up.
    """

    slack: float = 0.1
    step: float = 0.05
    rounds: int = 3

    def budget(self, problem: Problem) -> int | None:
        """Rows times steps, in practice far fewer."""
        return 20 + 10 * min(problem.structure.n_rows, 20)

    def steps(self, setting: Setting) -> Steps:
        """Plain model first; then rows until all are met."""
        [trial] = yield [Proposal(np.zeros(setting.problem.structure.n_rows))]
        yield from self.after(trial, setting.problem)

    def after(self, trial: Trial, problem: Problem) -> Steps:
        """The search from a model on: rows until all are met."""
        for _ in range(self.rounds * problem.structure.n_rows):
            violations = trial.measurement.violations
            if trial.satisfied or np.isnan(violations).all():
                return
            trial = yield from self._tune(int(np.nanargmax(violations)), trial, problem)

    def _tune(self, row: int, start: Trial, problem: Problem) -> Tuning:
        """Raise one multiplier until its row is met with little to spare."""
        slack = self.slack * max(abs(float(problem.structure.bounds[row])), 0.01)
        begin = float(start.multipliers[row])
        low, low_value = begin, float(start.measurement.violations[row])
        high: float | None = None
        high_value = 0.0
        best, at, step = start, start, self.step
        for _ in range(12):
            if high is None:
                value = low + step
            else:
                width = low_value - high_value
                share = low_value / width if width > 0 else 0.5
                value = low + min(max(share, 0.1), 0.9) * (high - low)
            multipliers = start.multipliers.copy()
            multipliers[row] = value
            [trial] = yield [Proposal(multipliers, at=at)]
            violation = float(trial.measurement.violations[row])
            if np.isnan(violation):
                high, high_value = value, -low_value  # as far beyond as we are short
                continue
            at = trial
            if violation <= TOLERANCE:
                best = trial
                if violation >= -slack:
                    break
                # Illinois: an end that stays twice counts half, lest it stays for ever.
                low_value = low_value / 2 if high is not None else low_value
                high, high_value = value, violation + slack / 2
            else:
                # No bracket yet: go where the secant points, but never too far at once.
                gained = (low_value - violation) / (value - low)
                far = 4 * (value - begin) + self.step
                step = min(1.2 * violation / gained, far) if gained > 0 else far
                high_value = high_value / 2 if high is not None else high_value
                low, low_value = value, violation
                best = best if best.measurement.violations[row] <= TOLERANCE else trial
            if high is not None and high - low <= 1e-3 * high:
                break
        return best
