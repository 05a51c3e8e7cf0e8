"""The default search: a cheap joint model proposes, trainings correct it.

The plain model is trained first. A :class:`Surrogate` then says which multipliers should meet
the bounds; the learner is trained with these and measured; what the surrogate had wrong is
corrected, rate by rate, and it is asked again. All multipliers move together, and rows that do
not bind get none.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from omnifair.constraints import GAP, RATIO
from omnifair.feasibility import contradiction
from omnifair.problem import TOLERANCE, Array, Problem
from omnifair.search.bracket import BracketSearch
from omnifair.search.guide import Guide
from omnifair.search.joint import (
    Calibration,
    chance_of_margin,
    joint_chances,
    margins_of,
    some_rows,
)
from omnifair.search.loop import Steps
from omnifair.search.surrogate import Response, Surrogate
from omnifair.training import Proposal, Setting, Trial

# More measured rows than this make a guide no sharper, only slower.
ROWS = 4_000

# From this many times what is worth a training on, more are.
DEAR = 3.0

# Where no bound is met yet, so many trainings are made at most, and so many more for each demand.
FIRST, EACH = 5, 10

# To come closer to the bounds by less than this share of what is missing is no progress.
PROGRESS = 0.05

# How many trainings one row after the other may take, where all together led nowhere.
OTHERS = 8

# How far a multiplier is pushed at least where the guide knows no better (range of the objective).
PUSH = 0.05

# So many trainings take weights at what is expected before they take them at what was reached.
HOPED = 4

# A model of a share of the rows differs from one of all of them: this many times the slack will do.
ROUGHLY = 5

# With several demands, after so many trainings without progress; with impossible ones always.
IDLE = 3

# Multipliers that differ by less than this share of the largest are the same.
SAME = 1e-4

Pursuit = Generator[Sequence[Proposal], Sequence[Trial], Guide]


@dataclass(frozen=True)
class GuidedSearch:
    """Few trainings: let a joint model of groups and labels propose, and correct it.

    It stops when every bound is met and those that bind are *close*: within ``slack`` of the
    bound, or within what the validation sample can tell apart if that is more; closer where the
    objective has much to gain by it.

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
        How many trainings at most to use more of the bound once it is met; three times as many
        where trials show that much is left (twice, for several demands or where predictions
        stand in a denominator).
    enough
        How many trainings end the search once the bounds are met, whatever is left. (Where they
        are not it is 15 for one demand, 25 for two, and so on.)
    patience
        How many trainings in a row may bring no progress before the search gives up.
    subsample
        How many rows are enough to try multipliers out. From four times as many on, that is
        done first, and the full data only confirm; None always takes all rows.
    """

    slack: float = 0.1
    resolution: float = 0.5
    worth: float = 1e-3
    polish: int = 2
    enough: int = 10
    patience: int = 8
    subsample: int | None = 20_000

    def budget(self, problem: Problem) -> int | None:
        """It seldom needs a third of this, even where it tries on fewer rows first."""
        return 40

    def steps(self, setting: Setting) -> Steps:
        """The plain model, then proposals until one is close."""
        problem = setting.problem
        [plain] = yield [Proposal(np.zeros(problem.structure.n_rows))]
        if plain.satisfied:
            return
        guide = self._guide(setting, plain)
        if guide is None:
            yield from BracketSearch(slack=self.slack).after(plain, problem)
            return
        if contradiction(problem):  # no model meets the bounds: what is near them is soon seen
            yield from replace(self, patience=IDLE).pursue(guide, Proposal(plain.multipliers))
            return
        share = self._share(setting)
        if share < 1:
            roughly = replace(self, slack=min(ROUGHLY * self.slack, 0.5), polish=1)
            guide = yield from roughly.pursue(guide, Proposal(plain.multipliers, share=share))
        guide = yield from self.pursue(guide, Proposal(plain.multipliers), _best(guide.seen[1:]))
        full = [t for t in guide.seen if t.proposal.share == 1]
        if _best(full) is None and len(guide.demands) > 1:
            # One row after the other is another way through, where all together went astray.
            others = BracketSearch(slack=self.slack).after(plain, problem)
            yield from _at_most(OTHERS, others)

    def _guide(self, setting: Setting, plain: Trial) -> Guide | None:
        """A guide that asks models how clearly they decide; None where there can be none."""
        problem = setting.problem
        random = np.random.RandomState(setting.learner.seed)
        rows = some_rows(np.flatnonzero(problem.weights > 0), ROWS, random)
        first = margins_of(setting, plain, rows)
        said = None if first is None else chance_of_margin(first)
        calibration = None if said is None else Calibration.of(said, problem, rows)

        def margins(trial: Trial) -> Array | None:
            found = first if trial is plain else margins_of(setting, trial, rows)
            return found if found is None or calibration is None else calibration.tempered(found)

        positive = None if said is None or calibration is None else calibration.chance(said)
        chances = joint_chances(setting, plain, rows, positive, many=self._share(setting) < 1)
        surrogate = None if chances is None else Surrogate.of(problem, chances, rows)
        return None if surrogate is None else Guide.of(surrogate, plain, margins)

    def _share(self, setting: Setting) -> float:
        """The share of the rows that is enough to try multipliers out."""
        rows = len(setting.folds[0].train)
        if self.subsample is None or rows < 4 * self.subsample:
            return 1.0
        return self.subsample / rows

    def pursue(self, guide: Guide, kind: Proposal, start: Trial | None = None) -> Pursuit:
        """Ask, train, learn, until the bounds are met closely or there is no hope.

        ``kind`` says how to train; what was seen of other kinds guides all the same. ``start`` is
        one of these whose multipliers are tried first.
        """
        problem = guide.surrogate.problem
        trials = [guide.seen[0]]
        if start is not None:
            [trial] = yield [replace(start.proposal, share=kind.share)]
            trials.append(trial)
            guide = guide.learn(trial)
        while not self._done(trials, guide):
            room = self.room(problem, guide.anchor)
            room = np.maximum(room, self._worthless(problem, guide.prices))
            response = self._next(guide, trials, room)
            if response is None:
                return guide
            [trial] = yield [
                replace(
                    kind,
                    multipliers=response.multipliers,
                    at=guide.seen[-1],
                    cells=self._cells(guide, response),
                )
            ]
            trials.append(trial)
            guide = guide.learn(trial)
        return guide

    @staticmethod
    def _cells(guide: Guide, response: Response) -> Array:
        """Where to take the weights of rates that depend on predictions.

        First where the learner is expected to come out. Where that has not led to the bounds, at
        the best model there is: as long as that stays, more of a multiplier means more.
        """
        hoped = len(guide.seen) < HOPED
        return response.cells if hoped else guide.best.measurement.cells

    @staticmethod
    def _next(guide: Guide, trials: Sequence[Trial], room: Array) -> Response | None:
        """What to train next; None where there is nothing left to try.

        Rows are aimed at the middle of their room; each proposal that missed is a sign that the
        learner's answers are rough, so that the aim goes deeper, and deeper still where the guide
        has nothing new to say. Where no bound has been met it is asked from other places too.
        """
        misses = list(takewhile(lambda t: not t.satisfied, reversed(trials[2:])))
        depth = min(0.5 + 0.25 * len(misses), 1.0)
        best = guide.best.multipliers
        lost = _best(trials) is None
        for begin in (None, guide.prior, 2 * best) if lost else (None,):
            for deeper in (1.0, 2.0, 4.0):
                asked = guide.ask(depth * deeper * room, begin)
                response = _safeguarded(guide, asked, trials, room)
                if response is None or not _tried(response.multipliers, trials):
                    return response
        return _pushed(guide, trials) if lost else None

    def room(self, problem: Problem, trial: Trial) -> Array:
        """How much of each row's bound may be left unused."""
        return np.fmax(
            self._margin(problem, trial), self.resolution * problem.spread(trial.measurement)
        )

    def _margin(self, problem: Problem, trial: Trial) -> Array:
        """How much may be, however well the sample can tell."""
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
        return share

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

    def _done(self, trials: Sequence[Trial], guide: Guide) -> bool:
        """Close to all bounds that bind, or not getting closer any more."""
        problem = guide.surrogate.problem
        best = _best(trials)
        if best is None:
            most = FIRST + EACH * len(guide.demands)
            idle = len(trials) - 1 - _last_progress(trials)
            waits = IDLE if len(guide.demands) > 1 else 0
            return idle >= self.patience or (len(trials) >= most and idle >= waits)
        stake = self._stake(best, trials, problem)
        spent = len(trials) - 1 - [t.satisfied for t in trials].index(True)
        return (
            self._close(best, problem, stake)
            or spent >= self.polish * (_effort(guide) if stake > DEAR else 1)
            or len(trials) >= self.enough
        )

    def _stake(self, best: Trial, trials: Sequence[Trial], problem: Problem) -> float:
        """What using all of the bounds could gain, in units of what is worth a training.

        A multiplier is the price of its bound: what the objective gains by a unit more of it.
        """
        low, high = problem.structure.objective.range
        unused = np.maximum(-best.measurement.violations, 0.0)
        gain = max(float(best.multipliers @ unused), self._left(best, trials))
        return gain / (self.worth * (high - low))

    def _close(self, trial: Trial, problem: Problem, stake: float) -> bool:
        """Whether what is left of the bounds that bind cannot matter."""
        binds = trial.multipliers > 0
        unused = np.maximum(-trial.measurement.violations, 0.0)[binds]
        if stake <= 1 or np.all(unused <= self._margin(problem, trial)[binds]):
            return True
        # What the sample cannot tell apart may all the same be dear.
        return stake <= DEAR and bool(np.all(unused <= self.room(problem, trial)[binds]))

    @staticmethod
    def _left(best: Trial, trials: Sequence[Trial]) -> float:
        """What more use of the bounds would gain, as trials that broke them a little show.

        Between the best trial and one that breaks the bounds the objective is taken as linear in
        what is used of them; it is seldom less (accuracy is concave there for exact learners).
        """
        binds = best.multipliers > 0
        unused = float(np.maximum(-best.measurement.violations[binds], 0.0).min(initial=np.inf))
        gains = [0.0]
        for trial in trials[1:]:
            broken, more = trial.measurement.worst, trial.measurement.merit - best.measurement.merit
            apart = np.mean(trial.measurement.predictions != best.measurement.predictions)
            noise = np.sqrt(apart / len(best.measurement.predictions))
            if broken > TOLERANCE and np.isfinite(broken) and more > noise and np.isfinite(unused):
                gains.append(more * unused / (unused + broken))
        return max(gains)


def _at_most(trainings: int, steps: Steps) -> Steps:
    """The steps of another search, for so many trainings at most."""
    waiting = next(steps, [])
    while waiting and trainings > 0:
        trainings -= len(waiting)
        trials = yield waiting
        try:
            waiting = steps.send(trials)
        except StopIteration:
            return


def _best(trials: Sequence[Trial]) -> Trial | None:
    """The best that meets the bounds, where one does."""
    met = [t for t in trials if t.satisfied]
    return max(met, key=lambda t: t.measurement.merit, default=None)


def _effort(guide: Guide) -> int:
    """How many times as many trainings polish where much is at stake.

    A single demand is bracketed, so that each of them surely helps; others move together, or their
    rates move with predictions, and trainings more often help nothing.
    """
    return 3 if len(guide.demands) == 1 and not guide.demands[0].depends_on_predictions else 2


def _last_progress(trials: Sequence[Trial]) -> int:
    """The last training that came notably closer to the bounds than all before it."""
    last, closest = 0, np.inf
    for k, trial in enumerate(trials):
        if trial.measurement.worst < (1 - PROGRESS) * closest:
            last, closest = k, trial.measurement.worst
    return last


def _tried(multipliers: Array, trials: Sequence[Trial]) -> bool:
    """Whether a training was made with these multipliers, as far as a learner can tell."""
    near = SAME * np.abs(multipliers).max(initial=0.0)
    return any(np.abs(t.multipliers - multipliers).max(initial=0.0) <= near for t in trials)


def _pushed(guide: Guide, trials: Sequence[Trial]) -> Response | None:
    """More of what the closest training was short of, where the guide knows no better."""
    structure = guide.surrogate.problem.structure
    low, high = structure.objective.range
    short = guide.best.measurement.violations > TOLERANCE
    step = np.where(short, np.maximum(guide.prior, PUSH * (high - low)), 0.0)
    for times in 2.0 ** np.arange(6):
        multipliers = guide.best.multipliers + times * step
        if step.any() and not _tried(multipliers, trials):
            return guide.surrogate.response(multipliers, guide.anchor.measurement.cells)
    return None


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
    points = _points(trials, row)
    wanted, inside = float(response.multipliers[row]), float(room[row]) / 2
    misses = np.array([t.measurement.violations[row] for t in trials])
    idle = len(trials) - 1 - int(np.argmin(np.where(np.isnan(misses), np.inf, misses)))
    kept: float | None
    if not all(violation > TOLERANCE for _, violation in points):  # undefined: too far
        creeps = _width(points) > SLOW * _width(_points(trials[:-1], row))
        kept = _between(wanted, points, inside, halve=creeps)
    elif idle >= 2 and idle % 2 == 0 and _beside_best(points) is not None:
        kept = _beside_best(points)
    elif demands[0].depends_on_predictions and idle % 2 == 0 and _is_new(wanted, points):
        kept = wanted  # more of such a multiplier does not always help: believe the surrogate
    else:
        scale = float(guide.prior[row]) if wanted <= points[-1][0] else 0.0
        kept = _onwards(wanted, points, inside, scale)
    if kept is None:
        return None
    multipliers = np.zeros_like(response.multipliers)
    multipliers[row] = kept
    return guide.surrogate.response(multipliers, guide.anchor.measurement.cells)


# A bracket that a training has left wider than this share of what it was is shrinking slowly.
SLOW = 0.6

# A bracket of multipliers narrower than this share of them has nothing left to find.
NARROW = 1e-4

Points = Sequence[tuple[float, float]]  # a multiplier and its row's violation, in order

# How much farther to go at least, after so many trainings in a row that gained little.
STRIDES = (0.01, 0.1, 0.3, 0.6, 1.0)
# How many times as far as the surrogate wants the trend of the trainings is followed.
TRUST = 3.0


def _points(trials: Sequence[Trial], row: int) -> Points:
    """What trainings say of one row.

    Undefined is too far, but for what is undefined on the way to where it is defined again.
    """
    points = [(float(t.multipliers[row]), float(t.measurement.violations[row])) for t in trials]
    farthest = max(multiplier for multiplier, violation in points if np.isfinite(violation))
    return sorted(p for p in points if np.isfinite(p[1]) or p[0] > farthest)


def _is_new(wanted: float, points: Points) -> bool:
    """Whether a multiplier is at least the smallest stride away from those of trainings."""
    return all(abs(wanted - tried) > STRIDES[0] * wanted for tried, _ in points)


def _onwards(wanted: float, points: Points, inside: float, scale: float) -> float:
    """Where no training has met the bound yet: farther, the more so the less was gained.

    At least as far as the line through the last two trainings points, within a multiple of the
    step that the surrogate wants: where a response steepens, the line points much too far. Where
    it wants no step, ``scale`` says how large multipliers are to be expected.
    """
    if len(points) == 1 and wanted <= 0:
        return max(scale, 1e-4)
    slow = 0
    for (_, before), (_, after) in zip(reversed(points[:-1]), reversed(points[1:]), strict=True):
        if after <= 0.5 * before:
            break
        slow += 1
    last, short = points[-1]
    least = last + STRIDES[min(slow, len(STRIDES) - 1)] * max(last, scale)
    if len(points) > 1:
        before, more = points[-2]
        if more > short and np.isfinite(more):
            line = last + (short + inside) * (last - before) / (more - short)
            least = max(least, min(line, last + TRUST * max(wanted - last, 0.0)))
    return max(wanted, least, 1e-4)


def _beside_best(points: Points) -> float | None:
    """Beside the best so far, where trainings beyond it were worse; None where they were not.

    Noise has valleys, and so have rates with predictions in their denominator.
    """
    misses = [violation if np.isfinite(violation) else np.inf for _, violation in points]
    best = int(np.argmin(misses))
    if not 0 < best < len(points) - 1:
        return None
    below, here, above = (points[k][0] for k in (best - 1, best, best + 1))
    other = above if above - here > here - below else below
    return (here + other) / 2 if abs(other - here) > STRIDES[0] * here else None


def _bracket(points: Points) -> tuple[int, int | None]:
    """The position of the last before the first that meets the bound, and that one's."""
    met = next((k for k, (_, v) in enumerate(points) if not v > TOLERANCE), None)
    return (len(points) if met is None else met) - 1, met


def _width(points: Points) -> float:
    """Of the bracket; without end where nothing meets the bound."""
    low, high = _bracket(points)
    return np.inf if high is None else points[high][0] - points[low][0]


def _between(wanted: float, points: Points, inside: float, *, halve: bool) -> float | None:
    """Where one has: inside the bracket, in its middle where interpolation creeps."""
    before, met = _bracket(points)
    assert met is not None  # one has met it
    (low, short), (high, over) = points[before], points[met]
    width = high - low
    if width <= NARROW * high:
        return None
    if halve:
        return low + width / 2
    if low + 0.05 * width <= wanted <= high - 0.05 * width:
        return wanted
    over = over if np.isfinite(over) else -short
    return low + min(max((short + inside) / (short - over), 0.1), 0.9) * width
