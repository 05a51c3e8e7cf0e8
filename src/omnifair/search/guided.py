"""The default search: a cheap joint model proposes, trainings correct it.

The plain model is trained first. A :class:`Surrogate` then says which multipliers should meet
the bounds; the learner is trained with these and measured; what the surrogate had wrong is
corrected, rate by rate, and it is asked again. All multipliers move together, and rows that do
not bind get none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from omnifair.constraints import GAP, RATIO
from omnifair.problem import TOLERANCE, Array, Problem
from omnifair.search.bracket import BracketSearch
from omnifair.search.joint import joint_chances
from omnifair.search.loop import Steps
from omnifair.search.surrogate import Response, Surrogate
from omnifair.training import Proposal, Setting, Trial


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
    """

    slack: float = 0.1
    resolution: float = 0.25
    worth: float = 5e-4
    polish: int = 2
    patience: int = 8

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
        trials = [plain]
        guide = _Guide(
            surrogate,
            (_Seen(plain, surrogate.response(plain.multipliers, plain.measurement.cells)),),
        )
        while True:
            room = self.room(problem, guide.anchor.trial)
            prices = guide.ask(room / 2).multipliers
            room = np.maximum(room, self._worthless(problem, prices))
            response = _safeguarded(guide, guide.ask(room / 2), trials, room)
            if response is None:
                return
            [trial] = yield [Proposal(response.multipliers, trials[-1], cells=response.cells)]
            trials.append(trial)
            if self._done(trials, problem):
                return
            guide = guide.learn(trial)

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


@dataclass(frozen=True)
class _Seen:
    """A training, and what the surrogate expected of its multipliers."""

    trial: Trial
    response: Response


@dataclass(frozen=True)
class _Guide:
    """The surrogate, corrected by what trainings showed of it.

    Every metric is corrected by itself on a scale where rates are unbounded: shifted so that it
    is right at the anchor (the last training), and stretched as the trainings before suggest.
    """

    surrogate: Surrogate
    seen: tuple[_Seen, ...]

    @property
    def anchor(self) -> _Seen:
        """The last training of which all rates are defined."""
        defined = [s for s in self.seen if not np.isnan(s.trial.measurement.rates).any()]
        return (defined or list(self.seen))[-1]

    @property
    def best(self) -> _Seen:
        """The training that came closest to the bounds, but for the plain one."""
        return min(self.seen[1:] or self.seen, key=lambda s: s.trial.measurement.worst)

    def learn(self, trial: Trial) -> _Guide:
        """The guide with one more training seen."""
        response = self.surrogate.response(trial.multipliers, trial.measurement.cells)
        return replace(self, seen=(*self.seen, _Seen(trial, response)))

    def corrected(self, response: Response) -> Array:
        """The rates that the learner will reach at a response's multipliers."""
        return self._unscale(self._scale(response.rates) + self._error(response.multipliers))

    def _error(self, multipliers: Array) -> Array:
        """How far the surrogate is off: as at the anchor, and with the trend of all trainings."""
        anchor = self.anchor
        errors = np.array([self._missed(s) for s in self.seen])
        here = self._missed(anchor)
        start = self._pull(anchor.trial.multipliers)
        moves = np.array([self._pull(s.trial.multipliers) - start for s in self.seen])
        trend = np.zeros((len(here), moves.shape[1]))
        for m, missed in enumerate(errors.T):
            known = np.isfinite(missed)
            if np.isfinite(here[m]) and known.any():
                near = moves[known]
                gram = near.T @ near + DOUBT**2 * np.eye(near.shape[1])
                trend[m] = np.linalg.solve(gram, near.T @ (missed[known] - here[m]))
        return np.nan_to_num(here) + trend @ (self._pull(multipliers) - start)

    def _missed(self, seen: _Seen) -> Array:
        return self._scale(seen.trial.measurement.rates) - self._scale(seen.response.rates)

    def _pull(self, multipliers: Array) -> Array:
        """How strongly each metric is pulled at, for each of its rows."""
        matrix = self.surrogate.problem.structure.matrix
        return np.asarray(matrix.T @ multipliers) / self.surrogate.shares

    def ask(self, inside: Array) -> Response:
        """The multipliers at which every bound should be met with ``inside`` to spare."""
        structure = self.surrogate.problem.structure
        most = _most(self.surrogate.problem)
        start = self.anchor.trial.measurement.cells
        response = self.best.response
        # A rate that is undefined says nothing of how to correct it.
        shift = np.nan_to_num(self.corrected(response) - response.rates)
        for turn in range(6):
            aim = structure.bounds - inside - structure.matrix @ shift
            response = self.surrogate.solve(aim, response.multipliers, start, most)
            found = np.nan_to_num(self.corrected(response) - response.rates)
            if np.abs(structure.matrix @ (found - shift)).max() < 1e-4:
                break
            shift = found if turn < 2 else (shift + found) / 2
        return response

    def _scale(self, rates: Array) -> Array:
        low, high = self._ranges
        bounded = np.isfinite(high - low)
        share = (rates - np.where(bounded, low, 0)) / np.where(bounded, high - low, 1)
        return np.where(bounded, logit(np.clip(share, EDGE, 1 - EDGE)), rates)

    def _unscale(self, values: Array) -> Array:
        low, high = self._ranges
        bounded = np.isfinite(high - low)
        wide = np.where(bounded, low + (high - low) * expit(values), values)
        return np.asarray(wide)

    @property
    def _ranges(self) -> tuple[Array, Array]:
        ranges = [m.rate.range for m in self.surrogate.problem.structure.metrics]
        low, high = np.array(ranges).T
        return low, high


# Rates nearer to the ends of their range than this are taken as this near.
EDGE = 2e-3
# Pulls closer together than this say little of a trend: their difference is mostly noise.
DOUBT = 0.1


def _most(problem: Problem) -> Array:
    """Multipliers beyond which no decision could be worth more than its row."""
    structure = problem.structure
    low, high = structure.objective.range
    return np.full(structure.n_rows, 10.0 * (high - low))


def _safeguarded(
    guide: _Guide, response: Response, trials: Sequence[Trial], room: Array
) -> Response | None:
    """The response, kept inside the bracket where a single row is at work.

    None where there is nothing left to try.
    """
    rows = {int(k) for t in trials for k in np.flatnonzero(t.multipliers)}
    rows |= {int(k) for k in np.flatnonzero(response.multipliers > 1e-9)}
    if len(rows) != 1:
        return response
    [row] = rows
    value = float(response.multipliers[row])
    points = sorted(
        (float(t.multipliers[row]), float(t.measurement.violations[row])) for t in trials
    )
    met = [p for p in points if not p[1] > TOLERANCE]  # undefined: too far
    high = met[0] if met else None
    short = [p for p in points if p[1] > TOLERANCE and (high is None or p[0] < high[0])]
    if not short:  # undefined from the start: there is no bracket to keep to
        return response
    low = max(short)
    if high is None:
        least = 1.02 * low[0] if low[0] > 0 else 1e-4
        value = max(value, least)
    else:
        width = high[0] - low[0]
        if width <= 0.01 * high[0]:
            return None
        if not low[0] + 0.05 * width <= value <= high[0] - 0.05 * width:
            over = high[1] if np.isfinite(high[1]) else -low[1]
            share = (low[1] + room[row] / 2) / (low[1] - over)
            value = low[0] + min(max(share, 0.1), 0.9) * width
    multipliers = np.zeros_like(response.multipliers)
    multipliers[row] = value
    if value == response.multipliers[row]:
        return response
    return guide.surrogate.response(multipliers, guide.anchor.trial.measurement.cells)
