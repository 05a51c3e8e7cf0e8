"""A surrogate that learns from trainings where it was wrong, and is asked where to look next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from omnifair.problem import Array
from omnifair.search.dimensions import Dimension, dimensions
from omnifair.search.surrogate import Response, Surrogate
from omnifair.training import Trial

# Rates nearer to the ends of their range than this are taken as this near.
EDGE = 2e-3
# Pulls closer together than this say little of a trend: their difference is mostly noise.
DOUBT = 0.1
# What a unit of a multiplier counts against a unit of violation, while both are driven to 0.
PRICE = 0.1


@dataclass(frozen=True)
class Seen:
    """A training, and what the surrogate expected of its multipliers."""

    trial: Trial
    response: Response


@dataclass(frozen=True)
class Guide:
    """The surrogate, corrected by what trainings showed of it.

    Rates are corrected on a scale on which they are unbounded: by what the surrogate missed at
    the anchor (the last training), and by the trend of what it missed before, along the *pull*
    on every metric.
    """

    surrogate: Surrogate
    seen: tuple[Seen, ...]

    @classmethod
    def of(cls, surrogate: Surrogate, plain: Trial) -> Guide:
        """A guide that has seen the plain model only."""
        return cls(surrogate, ()).learn(plain)

    def learn(self, trial: Trial) -> Guide:
        """The guide with one more training seen."""
        response = self.surrogate.response(trial.multipliers, trial.measurement.cells)
        return replace(self, seen=(*self.seen, Seen(trial, response)))

    @cached_property
    def anchor(self) -> Seen:
        """The last training of which all rates are defined."""
        defined = [s for s in self.seen if not np.isnan(s.trial.measurement.rates).any()]
        return (defined or list(self.seen))[-1]

    @cached_property
    def best(self) -> Seen:
        """The training that came closest to the bounds, but for the plain one."""
        return min(self.seen[1:] or self.seen, key=lambda s: s.trial.measurement.worst)

    @cached_property
    def prices(self) -> Array:
        """The multipliers to be expected: what a unit of each bound costs of the objective."""
        if len(self.seen) > 1:
            return self.best.trial.multipliers
        return self._first(self.surrogate.problem.structure.bounds)

    def _first(self, aim: Array) -> Array:
        low, high = self.surrogate.problem.structure.objective.range
        cells = self.anchor.trial.measurement.cells
        return self.surrogate.solve(aim, cells, 10.0 * (high - low))

    # -- what the learner will reach -----------------------------------------------------------

    def expect(self, multipliers: Array) -> tuple[Response, Array, Array]:
        """The surrogate's response, the rates as corrected, and their slopes by multiplier."""
        response = self.surrogate.response(multipliers, self.anchor.trial.measurement.cells)
        known, trend = self._errors
        moved = self._pull(multipliers) - self._pull(self.anchor.trial.multipliers)
        # Beyond the ends of the scale it is flat.
        share = self._share(response.rates)
        inner = np.where(self._bounded, np.abs(share - 0.5) < 0.5 - EDGE, True)
        value = self._scale(response.rates) + known + trend @ moved
        slopes = (inner / self._stretch(share))[:, None] * response.slopes
        slopes = slopes + trend @ (self.surrogate.matrix.T / self.surrogate.shares[:, None])
        rates = np.where(self._bounded, self._low + self._width * expit(value), value)
        return response, rates, self._stretch(expit(value))[:, None] * slopes

    @cached_property
    def _errors(self) -> tuple[Array, Array]:
        """What the surrogate misses at the anchor, and how that changes with the pulls."""
        here = self._missed(self.anchor)
        start = self._pull(self.anchor.trial.multipliers)
        moves = np.array([self._pull(s.trial.multipliers) - start for s in self.seen])
        missed = np.array([self._missed(s) for s in self.seen])
        trend = np.zeros((len(here), len(here)))
        for metric in np.flatnonzero(np.isfinite(here)):
            known = np.isfinite(missed[:, metric])
            near, off = moves[known], missed[known, metric] - here[metric]
            gram = near.T @ near + DOUBT**2 * np.eye(len(here))
            trend[metric] = np.linalg.solve(gram, near.T @ off)
        return np.nan_to_num(here), trend

    def _missed(self, seen: Seen) -> Array:
        return self._scale(seen.trial.measurement.rates) - self._scale(seen.response.rates)

    def _pull(self, multipliers: Array) -> Array:
        """How strongly each metric is pulled at, for each of its rows."""
        return np.asarray(multipliers @ self.surrogate.matrix / self.surrogate.shares)

    # -- the scale on which rates are unbounded ---------------------------------------------------

    @cached_property
    def _ranges(self) -> Array:
        return np.array([m.rate.range for m in self.surrogate.problem.structure.metrics]).T

    @cached_property
    def _bounded(self) -> Array:
        return np.asarray(np.isfinite(self._ranges).all(axis=0))

    @cached_property
    def _low(self) -> Array:
        return np.where(self._bounded, self._ranges[0], 0.0)

    @cached_property
    def _width(self) -> Array:
        return np.where(self._bounded, self._ranges[1] - self._low, 1.0)

    def _share(self, rates: Array) -> Array:
        return np.asarray((rates - self._low) / self._width)

    def _scale(self, rates: Array) -> Array:
        inside = np.clip(self._share(rates), EDGE, 1 - EDGE)
        return np.where(self._bounded, logit(inside), rates)

    def _stretch(self, share: Array) -> Array:
        """How far a rate moves with a unit of the scale."""
        inside = np.clip(share, EDGE, 1 - EDGE)
        return np.where(self._bounded, self._width * inside * (1 - inside), 1.0)

    # -- where to look ---------------------------------------------------------------------------

    def ask(self, inside: Array) -> Response:
        """The multipliers at which every bound should be met with ``inside`` to spare."""
        structure = self.surrogate.problem.structure
        low, high = structure.objective.range
        aim = structure.bounds - inside
        begin = self._first(aim) if len(self.seen) == 1 else self.best.trial.multipliers
        return self.expect(self._complement(begin, aim, high - low))[0]

    @cached_property
    def demands(self) -> tuple[Dimension, ...]:
        """The problem's rows, opposite ones together."""
        return dimensions(self.surrogate.problem.structure)

    @cached_property
    def _sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """The first row of every demand, its opposite (or itself), and whether there is one."""
        first = np.array([d.rows[0] for d in self.demands])
        second = np.array([d.rows[-1] for d in self.demands])
        return first, second, first != second

    def _complement(self, begin: Array, aim: Array, scale: float) -> Array:
        """Multipliers that are 0 or have their row just at its aim, near ``begin``.

        A demand of two sides has one signed multiplier. Levenberg and Marquardt's method on what
        has to vanish: the distance of a row from its aim where it binds, else the multiplier.
        Where it cannot vanish it comes as small as it can. What is expected far from all
        trainings means little, so it does not go farther than that.
        """
        matrix = self.surrogate.matrix
        first, second, two = self._sides
        price = PRICE / scale
        centre = self._pull(begin)
        reach = (scale + np.abs(centre).max(initial=0.0)) / 2

        def multipliers(signed: Array) -> Array:
            found = np.zeros(len(begin))
            found[second] = np.maximum(-signed, 0.0) * two
            found[first] += np.maximum(signed, 0.0)
            return found

        def residual(signed: Array) -> tuple[Array, Array]:
            _, rates, slopes = self.expect(multipliers(signed))
            over, moves = matrix @ rates - aim, matrix @ slopes
            # The slope by a signed multiplier, whichever of its two sides is at work.
            by_signed = np.where(signed >= 0, moves[:, first], -moves[:, second])
            upper = over[first] + price * signed > 0
            lower = two & ~upper & (over[second] - price * signed > 0)
            value = np.where(upper, over[first], np.where(lower, -over[second], -price * signed))
            jacobian = -price * np.eye(len(signed))
            jacobian[upper] = by_signed[first[upper]]
            jacobian[lower] = -by_signed[second[lower]]
            return value, jacobian

        signed = begin[first] - np.where(two, begin[second], 0.0)
        value, jacobian = residual(signed)
        damping = 1e-4
        for _ in range(40):
            if np.abs(value).max() < 1e-5 or damping > 1e3:
                break
            normal = jacobian.T @ jacobian + damping * np.eye(len(signed))
            moved = signed + np.linalg.solve(normal, -jacobian.T @ value)
            moved = np.where(two, moved, np.maximum(moved, 0.0))
            if not np.isfinite(moved).all():
                damping *= 8
                continue
            far = np.abs(self._pull(multipliers(moved)) - centre).max()
            if far > reach:
                moved = signed + (moved - signed) * (reach / far)
            new_value, new_jacobian = residual(moved)
            if new_value @ new_value < value @ value:
                signed, value, jacobian = moved, new_value, new_jacobian
                damping = max(damping / 5, 1e-9)
            else:
                damping *= 8
        return multipliers(signed)
