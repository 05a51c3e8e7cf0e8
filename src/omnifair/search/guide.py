"""A surrogate that learns from trainings where it was wrong, and is asked where to look next."""

from __future__ import annotations

from collections.abc import Callable
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
# What a unit of a multiplier counts against a unit of violation, while both are driven to 0.
PRICE = 0.02
# How near to where a row is aimed is near enough, as a share of how far inside that is.
CLOSE = 0.1
# A multiplier below this share of the objective's range does nothing.
IDLE = 1e-3
# Of more demands than this, only the most pressing are looked at in one go.
MANY = 100

# The margins of a trial's model on the surrogate's rows, between -1 and 1; None where it has none.
Margins = Callable[[Trial], Array | None]


@dataclass(frozen=True)
class Guide:
    """The surrogate, and what it misses where trainings showed it.

    The surrogate learns from every model how it decides. What remains (decisions are softened,
    and some learners have no margins) is corrected by rate, on a scale on which rates are
    unbounded: exactly where a model was trained, and in between as the models count there.
    """

    surrogate: Surrogate
    margins: Margins
    demands: tuple[Dimension, ...]  # the problem's rows, opposite ones together
    seen: tuple[Trial, ...]
    known: tuple[Trial, ...]  # those that the surrogate has learned from, in its order

    @classmethod
    def of(cls, surrogate: Surrogate, plain: Trial, margins: Margins = lambda trial: None) -> Guide:
        """A guide that has seen the plain model only."""
        demands = dimensions(surrogate.problem.structure)
        return cls(surrogate, margins, demands, (), ()).learn(plain)

    def learn(self, trial: Trial) -> Guide:
        """The guide with one more training seen.

        Models of fewer rows have shown the way to it, and are forgotten: side by side with one
        of more rows they would tell of differences that are none of the multipliers.
        """
        current = np.array([t.proposal.share >= trial.proposal.share for t in self.known], bool)
        surrogate, kept = self.surrogate.only(current).learn(
            trial.multipliers,
            self._taken_at(trial),
            trial.measurement.predictions,
            self.margins(trial),
        )
        known = [t for t, keep in zip(self.known, current, strict=True) if keep]
        known = [t for t, keep in zip(known, kept, strict=True) if keep]
        return replace(self, surrogate=surrogate, seen=(*self.seen, trial), known=(*known, trial))

    def _taken_at(self, trial: Trial) -> Array:
        """The cells at which a trial's weights were taken."""
        proposal, problem = trial.proposal, self.surrogate.problem
        if proposal.cells is not None:
            return proposal.cells
        if proposal.at is not None:
            return proposal.at.measurement.cells
        return problem.cells(problem.labels)

    @cached_property
    def anchor(self) -> Trial:
        """The last training of which all rates are defined."""
        defined = [t for t in self.seen if not np.isnan(t.measurement.rates).any()]
        return (defined or list(self.seen))[-1]

    @cached_property
    def best(self) -> Trial:
        """The training that came closest to the bounds, but for the plain one."""
        return min(self.seen[1:] or self.seen, key=lambda t: t.measurement.worst)

    @cached_property
    def prices(self) -> Array:
        """The multipliers to be expected: what a unit of each bound costs of the objective."""
        if len(self.seen) > 1:
            return self.best.multipliers
        return self.prior

    @cached_property
    def prior(self) -> Array:
        """The multipliers that chances alone suggest, whatever models showed."""
        return self._first(self.surrogate.problem.structure.bounds)

    def _first(self, aim: Array) -> Array:
        low, high = self.surrogate.problem.structure.objective.range
        return self.surrogate.solve(aim, self.anchor.measurement.cells, 10.0 * (high - low))

    # -- what the learner will reach -----------------------------------------------------------

    def expect(self, multipliers: Array) -> tuple[Response, Array, Array]:
        """The surrogate's response, the rates as corrected, and their slopes by pull."""
        response = self.surrogate.response(multipliers, self.anchor.measurement.cells)
        # Beyond the ends of the scale it is flat.
        share = self._share(response.rates)
        inner = np.where(self._bounded, np.abs(share - 0.5) < 0.5 - EDGE, True)
        value = self._scale(response.rates) + response.pull @ self._missed
        slopes = (inner / self._stretch(share))[:, None] * response.slopes
        rates = np.where(self._bounded, self._low + self._width * expit(value), value)
        return response, rates, self._stretch(expit(value))[:, None] * slopes

    @cached_property
    def _missed(self) -> Array:
        """What the surrogate misses of the rates of each model that it knows."""
        learned = self.surrogate.learned
        assert learned is not None  # the plain model has been
        problem = self.surrogate.problem
        real = np.array([t.measurement.rates for t in self.known])
        soft = np.array([problem.rates(cells, None) for cells in learned.cells])
        return np.nan_to_num(self._scale(real) - self._scale(soft))

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

    def ask(self, inside: Array, begin: Array | None = None) -> Response:
        """The multipliers at which every bound should be met with ``inside`` to spare.

        Looked for from ``begin`` on, or from where it came closest.
        """
        structure = self.surrogate.problem.structure
        low, high = structure.objective.range
        aim = structure.bounds - inside
        if begin is None:
            begin = self._first(aim) if len(self.seen) == 1 else self.best.multipliers
        close = max(CLOSE * float(inside.min(initial=np.inf)), 1e-5)
        return self.expect(self._complement(begin, aim, high - low, close))[0]

    @cached_property
    def _sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """The first row of every demand, its opposite (or itself), and whether there is one."""
        first = np.array([d.rows[0] for d in self.demands])
        second = np.array([d.rows[-1] for d in self.demands])
        return first, second, first != second

    def _at_work(
        self, begin: Array, aim: Array
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """The sides of those demands that may bind: of very many, those that are farthest off."""
        first, second, two = self._sides
        if len(first) <= MANY:
            return self._sides
        over = self.surrogate.matrix @ self.expect(begin)[1] - aim
        farthest = np.maximum(over[first], over[second])
        working = (begin[first] > 0) | (begin[second] > 0)
        farthest[working] = np.inf  # what is at work stays so
        kept = np.sort(np.argsort(-farthest, kind="stable")[: max(MANY, int(working.sum()))])
        return first[kept], second[kept], two[kept]

    def _complement(self, begin: Array, aim: Array, scale: float, close: float) -> Array:
        """Multipliers that are 0 or have their row just at its aim, near ``begin``.

        A demand of two sides has one signed multiplier. Levenberg and Marquardt's method on what
        has to vanish: the distance of a row from its aim where it binds, else the multiplier.
        Where it cannot vanish it comes as small as it can. What is expected far from all
        trainings means little, so it does not go farther than that.
        """
        first, second, two = self._at_work(begin, aim)
        upper_side, lower_side = self.surrogate.matrix[first], self.surrogate.matrix[second]
        price = PRICE / scale
        centre = self._pull(begin)
        reach = (scale + np.abs(centre).max(initial=0.0)) / 2

        def multipliers(signed: Array) -> Array:
            found = np.zeros(len(begin))
            found[second] = np.maximum(-signed, 0.0) * two
            found[first] += np.maximum(signed, 0.0)
            return found

        def residual(signed: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
            _, rates, slopes = self.expect(multipliers(signed))
            above, below = upper_side @ rates - aim[first], lower_side @ rates - aim[second]
            # The slope by a signed multiplier, whichever of its two sides is at work.
            by_signed = slopes @ np.where((signed >= 0)[:, None], upper_side, -lower_side).T
            upper = above + price * signed > 0
            lower = two & ~upper & (below - price * signed > 0)
            value = np.where(upper, above, np.where(lower, -below, -price * signed))
            jacobian = -price * np.eye(len(signed))
            jacobian[upper] = upper_side[upper] @ by_signed
            jacobian[lower] = -lower_side[lower] @ by_signed
            return value, jacobian, upper | lower

        signed = begin[first] - np.where(two, begin[second], 0.0)
        value, jacobian, binds = residual(signed)
        damping = 1e-4
        for _ in range(40):
            if np.abs(value).max() < close or damping > 1e3:
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
            new_value, new_jacobian, new_binds = residual(moved)
            if new_value @ new_value < value @ value:
                signed, value, jacobian, binds = moved, new_value, new_jacobian, new_binds
                damping = max(damping / 5, 1e-9)
            else:
                damping *= 8
        idle = ~binds & (np.abs(signed) <= IDLE * scale)
        return multipliers(np.where(idle, 0.0, signed))
