"""Evidence: what some rows show of each rate, and of each linear row of a constraint.

A rate is one binomial proportion, a sum of them, or else a mean of bounded rows to bet on; a
linear row compares one with the bound or with another group's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from omnifair.constraints import EACH, GAP, OVERALL, RATIO, Constraint
from omnifair.errors import CertificateError
from omnifair.intervals import (
    Pair,
    Tails,
    approximate_upper,
    difference_upper,
    evidence,
    lower_bound,
    mean_quotient_upper,
    parted,
    quotient_lower,
    tails_of,
    upper_bound,
)
from omnifair.problem import Array, Bits, Problem
from omnifair.rates import CELLS, Rate

# How likely evidence is to be enough, where nothing else is asked for.
POWER = 0.9


@dataclass(frozen=True)
class Bets:
    """The distinct rows behind one quotient, how often each, and all that are possible."""

    above: Array
    below: Array
    times: Array
    largest: tuple[Array, Array]


@dataclass(frozen=True)
class Seen:
    """What the rows show of one rate of one group: proportions, or else rows to bet on."""

    name: str
    value: float
    variance: float
    rows: float
    tails: Tails | None
    counts: tuple[tuple[float, float], ...]
    bets: tuple[Bets, ...] | None = None

    @property
    def defined(self) -> bool:
        """Whether there are rows in every denominator."""
        return not math.isnan(self.value)

    @property
    def proportion(self) -> tuple[int, int] | None:
        """Hits and count, where the rate is one proportion (up to a factor)."""
        if self.bets is not None or len(self.counts) != 1:
            return None
        [(hits, count)] = self.counts
        return int(hits), int(count)

    def upper(self, error: float) -> float:
        """What the rate stays below, but for a chance of ``error``."""
        if self.bets is not None:
            share = error / len(self.bets)
            return sum(
                mean_quotient_upper(b.above, b.below, b.times, b.largest, share) for b in self.bets
            )
        assert self.tails is not None  # else there are bets
        share, value = error / len(self.counts), self.tails.constant
        for tail, (hits, count) in zip(self.tails.tails, self.counts, strict=True):
            value += tail.size * float(upper_bound(hits, count, share))
        return value

    def lower(self, error: float) -> float:
        """What the rate exceeds, but for a chance of ``error``."""
        if self.bets is not None:
            share = error / len(self.bets)
            return -sum(
                mean_quotient_upper(
                    -b.above, b.below, b.times, (-b.largest[0], b.largest[1]), share
                )
                for b in self.bets
            )
        assert self.tails is not None  # else there are bets
        share, value = error / len(self.counts), self.tails.constant
        for tail, (hits, count) in zip(self.tails.tails, self.counts, strict=True):
            value += tail.size * float(lower_bound(hits, count, share))
        return value


def proportions_of(rate: Rate) -> Tails | None:
    """The proportions that a rate is a sum of; None where it is no such sum."""
    return tails_of([(t.numerator.weights, t.denominator.weights) for t in rate.terms])


def from_cells(name: str, rate: Rate, cells: Array) -> Seen | None:
    """What whole rows in each cell show; None where the rate is no sum of proportions."""
    tails = proportions_of(rate)
    if tails is None:
        return None
    counts = tuple(
        (float(cells[list(t.hits)].sum()), float(cells[list(t.counts)].sum())) for t in tails.tails
    )
    return Seen(
        name,
        float(rate.value(cells)),
        float(rate.variance(cells + 0.25)),
        float(cells.sum()),
        tails,
        counts,
    )


def seen_of(problem: Problem, predictions: Bits, max_weight: float | None) -> list[Seen]:
    """What a problem's rows show of each of its rates, at these predictions."""
    weights, structure = problem.weights, problem.structure
    positive = weights > 0
    plain_weights = np.unique(weights[positive])
    if len(plain_weights) > 1 and max_weight is None:
        raise CertificateError(
            "The weights of rows differ, and nothing valid can be said of the population's means "
            "unless it is known how large a weight can be: pass max_weight=, the largest that any "
            "row could have (not the largest seen), or leave out sample_weight."
        )
    if max_weight is not None and not (
        math.isfinite(max_weight) and max_weight >= weights.max(initial=0.0) > 0
    ):
        raise CertificateError(
            f"max_weight={max_weight!r} must be at least the largest weight here, "
            f"{weights.max(initial=0.0):g}."
        )
    counted = counted_once(problem).cells(predictions)
    weighted = problem.cells(predictions)
    squares = problem.squared().cells(predictions)
    found = []
    for position, metric in enumerate(structure.metrics):
        name = structure.metric_text(position)
        if not isinstance(metric.rate, Rate):
            raise CertificateError(
                f"{name}: a rate given by coefficients has no known range, so nothing valid can "
                "be said of it on unseen data. Write it with cells, such as error_cost(fp=, fn=), "
                "or use audit() for what it is on these rows."
            )
        rate, group = metric.rate, metric.group
        seen = from_cells(name, rate, counted[group]) if len(plain_weights) < 2 else None
        if seen is None:
            seen = _to_bet_on(
                name, rate, problem, predictions, group, max_weight, weighted[group], squares[group]
            )
        found.append(seen)
    return found


def counted_once(problem: Problem) -> Problem:
    """The same rows, each of weight 1 (or 0 where it had none)."""
    return replace(problem, weights=(problem.weights > 0).astype(np.float64))


def _to_bet_on(
    name: str,
    rate: Rate,
    problem: Problem,
    predictions: Bits,
    group: int,
    max_weight: float | None,
    cells: Array,
    squares: Array,
) -> Seen:
    if not all(map(math.isfinite, (*rate.range,))):
        raise CertificateError(
            f"{name}: a cell counts above but not below, so that the rate can be any number and "
            "nothing valid can be said of it on unseen data."
        )
    rows = problem.group_rows(group)
    h, y, w = predictions[rows], problem.labels[rows], problem.weights[rows]
    cell = np.where(h == 1, np.where(y == 1, 0, 1), np.where(y == 1, 2, 3))
    top = float(problem.weights.max()) if max_weight is None else max_weight
    distinct, times = np.unique(np.column_stack([cell, w]), axis=0, return_counts=True)
    at, weight = distinct[:, 0].astype(np.intp), distinct[:, 1]
    bets = []
    for term in rate.terms:
        above, below = np.asarray(term.numerator.weights), np.asarray(term.denominator.weights)
        bets.append(
            Bets(
                above[at] * weight,
                below[at] * weight,
                times.astype(float),
                (above * top, below * top),
            )
        )
    # The sum over cells of squared slopes, each times the squared weights in it.
    some = np.divide(squares, cells, out=np.zeros(len(CELLS)), where=cells > 0)
    variance = float(rate.variance(cells)) * float(some.max(initial=0.0))
    rows_behind = min(float(b.times[b.below > 0].sum()) for b in bets)
    return Seen(name, float(rate.value(cells)), variance, rows_behind, None, (), tuple(bets))


# -- linear rows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One linear row of a constraint: one group's rate against the bound, or against another's.

    A gap has ``rate - other <= bound``, a ratio ``other / rate >= bound``.
    """

    constraint: Constraint
    name: str
    rate: Seen
    other: Seen | None = None
    independent: bool = False

    @property
    def rates(self) -> tuple[Seen, ...]:
        """The rates in it."""
        return (self.rate,) if self.other is None else (self.rate, self.other)

    @property
    def factors(self) -> tuple[float, ...]:
        """What each rate counts in the linear row."""
        if self.other is None:
            return (1.0 if self.constraint.sense == "<=" else -1.0,)
        return (self.constraint.bound if self.constraint.measure.kind == RATIO else 1.0, -1.0)

    def excess(self) -> float:
        """By how much the linear row is violated on these rows; negative: by how much it is met."""
        linear = sum(f * r.value for f, r in zip(self.factors, self.rates, strict=True))
        if self.constraint.measure.kind == RATIO:
            return linear
        return linear - self.constraint.bound * (1 if self.constraint.sense == "<=" else -1)

    def pair(self) -> tuple[Pair, float] | None:
        """The counts of two independent proportions and their common size; or None."""
        if self.other is None or not self.independent:
            return None
        a, b, tails = self.rate.proportion, self.other.proportion, self.rate.tails
        ratio = self.constraint.measure.kind == RATIO
        if a is None or b is None or tails is None or (ratio and tails.constant != 0):
            return None
        return Pair(*a, *b), tails.tails[0].size

    def bound(self, error: float, known: float) -> float:
        """The row's bound in the constraint's own terms, or ``known`` where that is no better."""
        limit, ratio = self.constraint.bound, self.constraint.measure.kind == RATIO
        if self.other is None:
            return self.rate.upper(error) if self.factors == (1.0,) else self.rate.lower(error)
        found = self.pair()
        if ratio:
            if found is not None:
                if limit == 0:
                    return 0.0
                return quotient_lower(found[0], error, limit, known)
            share = self._shares(error)
            top = self.rate.upper(share[0])
            return max(0.0, self.other.lower(share[1])) / top if top > 0 else 0.0
        if found is not None:
            pair, size = found
            least = max(known / size, -1.0)
            return size * difference_upper(pair, error, limit / size, least)
        share = self._shares(error)
        return self.rate.upper(share[0]) - self.other.lower(share[1])

    def _shares(self, error: float) -> tuple[float, float]:
        assert self.other is not None  # only pairs share
        return parted(error, self.rate.rows, self.other.rows)

    def violated(self, error: float) -> bool:
        """Whether the row is shown to be violated."""
        limit = self.constraint.bound
        if self.other is None:
            if self.factors == (1.0,):
                return self.rate.lower(error) > limit
            return self.rate.upper(error) < limit
        found, share = self.pair(), self._shares(error)
        if self.constraint.measure.kind == RATIO:
            if found is not None:  # other / rate >= limit is to be ruled out
                slope = 1 / limit
                return evidence(found[0].swapped, error, slope).rules_out(slope, 0.0)
            return self.other.upper(share[1]) < limit * self.rate.lower(share[0])
        if found is not None:
            pair, size = found
            return evidence(pair.swapped, error).rules_out(1.0, -limit / size)
        return self.rate.lower(share[0]) - self.other.upper(share[1]) > limit

    def spread(self) -> float:
        """The standard error of the linear row."""
        return math.sqrt(
            sum(f * f * r.variance for f, r in zip(self.factors, self.rates, strict=True))
        )

    def factor(self, error: float, power: float = POWER) -> float:
        """How many times as many rows would settle it, about: the verdict has this power."""
        away = abs(self.excess())
        if away <= 0:
            return math.inf
        z = float(-ndtri(error))
        if any(rate.bets is not None for rate in self.rates):
            z = math.sqrt(-2 * math.log(error)) + 0.5
        reach = z * self.spread()
        if self.pair() is None:
            parts = [
                abs(f) * math.sqrt(r.variance)
                for f, r in zip(self.factors, self.rates, strict=True)
            ]
            reach = z * 1.2 * sum(parts) if len(parts) > 1 else reach
        return ((reach + float(ndtri(power)) * self.spread()) / away) ** 2

    def margin(self, error: float, power: float, *, exact: bool = True) -> float:
        """How far inside the linear row one must aim, that it is likely to be shown to hold.

        ``exact=False`` asks Newcombe's limit in place of the exact test, which is near it and
        takes longer.
        """
        kind, sense = self.constraint.measure.kind, self.constraint.sense
        if not all(rate.defined for rate in self.rates):
            return math.inf
        found = self.pair()
        if found is not None and not exact:
            pair, size = found
            seen = self.factors[0] * pair.hits_a / pair.count_a - pair.hits_b / pair.count_b
            near = approximate_upper(
                pair.hits_a, pair.hits_b, pair, self.factors[0], -float(ndtri(error))
            )
            return size * (float(near) - seen) + float(ndtri(power)) * self.spread()
        start = -math.inf if sense == "<=" else math.inf
        bound = self.bound(error, start)
        if kind == RATIO:
            assert self.other is not None  # a ratio is of two
            if found is not None and self.rate.value > 0:
                # As sharp as it would be if the limit were here.
                bound = quotient_lower(found[0], error, self.other.value / self.rate.value)
            reach = self.other.value - bound * self.rate.value
            # That is how far one sees at a quotient of ``bound``: as far as at the limit itself?
            here = math.sqrt(bound**2 * self.rate.variance + self.other.variance)
            reach *= self.spread() / here
        elif self.other is None:
            reach = abs(bound - self.rate.value)
        else:
            reach = bound - (self.rate.value - self.other.value)
        return reach + float(ndtri(power)) * self.spread()


def rows_of(problem: Problem, rates: Sequence[Seen]) -> list[Row]:
    """The linear rows of a problem, each with what is seen of its rates."""
    structure = problem.structure
    present = structure.member[np.bincount(problem.atom, minlength=len(structure.member)) > 0]
    rows = []
    for k in range(structure.n_rows):
        entries = slice(structure.matrix.indptr[k], structure.matrix.indptr[k + 1])
        positions = structure.matrix.indices[entries].tolist()
        factors = structure.matrix.data[entries].tolist()
        constraint = structure.constraints[structure.owner[k]]
        if constraint.measure.kind in (EACH, OVERALL):
            rows.append(Row(constraint, rates[positions[0]].name, rates[positions[0]]))
            continue
        if constraint.measure.kind == RATIO and constraint.bound == 0:
            continue  # a ratio of at least 0 asks for nothing
        ordered = [p for _, p in sorted(zip(factors, positions, strict=True), reverse=True)]
        a, b = ordered
        groups = [structure.metrics[p].group for p in ordered]
        apart = not (present[:, groups[0]] & present[:, groups[1]]).any()
        join = " - " if constraint.measure.kind == GAP else " / "
        names = (rates[a].name, rates[b].name)
        name = join.join(names if constraint.measure.kind == GAP else names[::-1])
        rows.append(Row(constraint, name, rates[a], rates[b], apart))
    return rows
