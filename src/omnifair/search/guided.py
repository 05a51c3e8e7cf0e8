"""The default search: a cheap joint model proposes, trainings correct it.

The plain model is trained first. A :class:`Surrogate` then says which multipliers should meet
the bounds; the learner is trained with these and measured; what the surrogate had wrong is
corrected, rate by rate, and it is asked again. All multipliers move together, and rows that do
not bind get none.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from omnifair.constraints import GAP, RATIO
from omnifair.problem import TOLERANCE, Array, Problem
from omnifair.search.bracket import BracketSearch
from omnifair.search.guide import Guide
from omnifair.search.joint import joint_chances
from omnifair.search.loop import Steps
from omnifair.search.surrogate import Response, Surrogate
from omnifair.training import Proposal, Setting, Trial

Pursuit = Generator[Sequence[Proposal], Sequence[Trial], Guide]


@dataclass(frozen=True)
class GuidedSearch:
    """Few trainings: let a joint model of groups and labels propose, and correct it.

    It stops when every bound is met and those that bind are *close*: within ``slack`` of the
    bound, or within what the validation sample can tell apart if that is more.

    Parameters
    ----------
    slack
        The share of a bound that may be left unused: of a gap's bound, of what a ratio may fall
        short of 1. (A fifth of it for floors and ceilings of a rate itself.)
    resolution
        The share of a row's standard error on the validation sample that may be left unused.
    worth
        The share of the objective's range that is not worth another training.
    polish
        How many trainings at most to use more of the bound once it is met.
    patience
        How many trainings in a row may bring no progress before the search gives up.
    subsample
        How many rows are enough to try multipliers out. From four times as many on, that is
        done first, and the full data only confirm; None always takes all rows.
    """

    slack: float = 0.1
    resolution: float = 0.25
    worth: float = 5e-4
    polish: int = 2
    patience: int = 8
    subsample: int | None = 20_000

    def budget(self, problem: Problem) -> int | None:
        """It seldom needs a third of this."""
        return 40

    def steps(self, setting: Setting) -> Steps:
        """The plain model, then proposals until one is close."""
        problem = setting.problem
        [plain] = yield [Proposal(np.zeros(problem.structure.n_rows))]
        if plain.satisfied:
            return
        found = joint_chances(setting, plain)
        surrogate = None if found is None else Surrogate.of(problem, *found)
        if surrogate is None:
            yield from BracketSearch(slack=self.slack).after(plain, problem)
            return
        guide = Guide.of(surrogate, plain)
        share = self._share(setting)
        if share < 1:
            guide = yield from self.pursue(guide, Proposal(plain.multipliers, share=share))
        yield from self.pursue(guide, Proposal(plain.multipliers))

    def _share(self, setting: Setting) -> float:
        """The share of the rows that is enough to try multipliers out."""
        rows = len(setting.folds[0].train)
        if self.subsample is None or rows < 4 * self.subsample:
            return 1.0
        return self.subsample / rows

    def pursue(self, guide: Guide, kind: Proposal) -> Pursuit:
        """Ask, train, learn, until the bounds are met closely or there is no hope.

        ``kind`` says how to train; what was seen of other kinds guides all the same.
        """
        problem = guide.surrogate.problem
        plain = guide.seen[0].trial
        trials = [plain]
        while True:
            room = self.room(problem, guide.anchor.trial)
            room = np.maximum(room, self._worthless(problem, guide.prices))
            response = _safeguarded(guide, guide.ask(self._inside(room, trials)), trials, room)
            if response is None:
                return guide
            [trial] = yield [
                replace(
                    kind,
                    multipliers=response.multipliers,
                    at=guide.seen[-1].trial,
                    cells=response.cells,
                )
            ]
            trials.append(trial)
            guide = guide.learn(trial)
            if self._done(trials, problem):
                return guide

    @staticmethod
    def _inside(room: Array, trials: Sequence[Trial]) -> Array:
        """How far inside its bound each row is aimed: the middle of its room, or more.

        Each proposal that missed is a sign that the learner's answers are rough.
        """
        missed = 0
        for trial in reversed(trials[2:]):
            if trial.satisfied:
                break
            missed += 1
        return room * min(0.5 + 0.25 * missed, 1.0)

    def room(self, problem: Problem, trial: Trial) -> Array:
        """How much of each row's bound may be left unused."""
        structure = problem.structure
        share = np.empty(structure.n_rows)
        for k, owner in enumerate(structure.owner):
            constraint = structure.constraints[owner]
            if constraint.measure.kind == GAP:
                share[k] = self.slack * constraint.bound
            elif constraint.measure.kind == RATIO:
                rates = trial.measurement.rates[list(structure.metrics_of[owner])]
                size = np.abs(rates[np.isfinite(rates)]).mean() if np.isfinite(rates).any() else 0.0
                share[k] = self.slack * (1 - constraint.bound) * size
            else:
                share[k] = self.slack / 5 * abs(constraint.bound)
        return np.fmax(share, self.resolution * problem.spread(trial.measurement))

    def _worthless(self, problem: Problem, prices: Array) -> Array:
        """How much of each row's bound would buy no more of the objective than is worth it."""
        low, high = problem.structure.objective.range
        binds = prices > 1e-9
        share = self.worth * (high - low) / max(int(binds.sum()), 1)
        room = np.divide(share, prices, out=np.zeros_like(prices), where=binds)
        kinds = [problem.structure.constraints[c].measure.kind for c in problem.structure.owner]
        # A gap has no more to give than its whole bound; other bounds are not sizes.
        sizes = [
            b if k == GAP else 0.0 for b, k in zip(problem.structure.bounds, kinds, strict=True)
        ]
        return np.minimum(room, sizes)

    def _done(self, trials: Sequence[Trial], problem: Problem) -> bool:
        """Close to all bounds that bind, or not getting closer any more."""
        met = [t for t in trials if t.satisfied]
        if met:
            close = trials[-1].satisfied and self._close(trials[-1], problem)
            return close or len(trials) - trials.index(met[0]) > self.polish
        worst = [t.measurement.worst for t in trials]
        best = int(np.argmin(worst))
        return len(trials) - 1 - best >= self.patience

    def _close(self, trial: Trial, problem: Problem) -> bool:
        """Whether what is left of the bounds that bind cannot matter.

        A multiplier is the price of its bound: what the objective gains by a unit more of it.
        """
        unused = np.maximum(-trial.measurement.violations, 0.0)
        binds = trial.multipliers > 0
        low, high = problem.structure.objective.range
        return bool(
            np.all(unused[binds] <= self.room(problem, trial)[binds])
            or trial.multipliers @ unused <= self.worth * (high - low)
        )


def _safeguarded(
    guide: Guide, response: Response, trials: Sequence[Trial], room: Array
) -> Response | None:
    """The response, kept to what trainings and theory say where a single demand is at work.

    There a larger multiplier means a smaller violation, up to noise. None where there is
    nothing left to try.
    """
    used = [t.multipliers for t in trials] + [response.multipliers]
    demands = [d for d in guide.demands if any(m[list(d.rows)].any() for m in used)]
    row = demands[0].violated_row(trials[0].measurement.violations) if demands else None
    if len(demands) != 1 or row is None or not trials[0].measurement.violations[row] > TOLERANCE:
        return response
    points = sorted(
        (float(t.multipliers[row]), float(t.measurement.violations[row])) for t in trials
    )
    wanted = float(response.multipliers[row])
    if all(violation > TOLERANCE for _, violation in points):
        kept: float | None = _onwards(wanted, points)
    else:
        kept = _between(wanted, points, float(room[row]) / 2)
    if kept is None:
        return None
    multipliers = np.zeros_like(response.multipliers)
    multipliers[row] = kept
    return guide.surrogate.response(multipliers, guide.anchor.trial.measurement.cells)


Points = Sequence[tuple[float, float]]  # a multiplier and its row's violation, in order

# How much farther to go at least, after so many trainings in a row that gained little.
STRIDES = (1.01, 1.1, 1.3, 1.6, 2.0)


def _onwards(wanted: float, points: Points) -> float:
    """Where no training has met the bound yet: farther, the more so the less was gained."""
    slow = 0
    for (_, before), (_, after) in zip(reversed(points[:-1]), reversed(points[1:]), strict=True):
        if after <= 0.5 * before:
            break
        slow += 1
    return max(wanted, STRIDES[min(slow, len(STRIDES) - 1)] * points[-1][0], 1e-4)


def _between(wanted: float, points: Points, inside: float) -> float | None:
    """Where one has: between the first that met it and the last before that did not."""
    met = next(i for i, (_, violation) in enumerate(points) if not violation > TOLERANCE)
    (low, short), (high, over) = points[met - 1], points[met]
    width = high - low
    if width <= 0.01 * high:
        return None
    if low + 0.05 * width <= wanted <= high - 0.05 * width:
        return wanted
    over = over if np.isfinite(over) else -short  # undefined: too far
    return low + min(max((short + inside) / (short - over), 0.1), 0.9) * width
