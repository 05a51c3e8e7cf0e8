"""Intervals for proportions and rates, valid at any sample size: no normal approximation.

A proportion of independent rows has the exact binomial bounds of Clopper and Pearson. A rate
whose cells take more than two values is a sum of such proportions, each with its share of the
error. Given how many rows are in a denominator, those that count in the numerator are binomial,
also where predictions decide who is in it: the model does not depend on the rows it is judged on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, gammaln, logsumexp, ndtri, xlog1py, xlogy

Array = NDArray[np.float64]


def lower_bound(hits: ArrayLike, trials: ArrayLike, error: float) -> Array:
    """What a proportion exceeds, but for a chance of ``error``; 0 where nothing was tried.

    ``hits`` and ``trials`` need not be whole numbers: with weighted rows they are effective ones.
    """
    hits, trials = np.asarray(hits, dtype=float), np.asarray(trials, dtype=float)
    some = (hits > 0) & (trials > 0)
    exact = betaincinv(np.where(some, hits, 1.0), np.where(some, trials - hits, 0.0) + 1.0, error)
    return np.asarray(np.where(some, exact, 0.0))


def upper_bound(hits: ArrayLike, trials: ArrayLike, error: float) -> Array:
    """What a proportion stays below, but for a chance of ``error``; 1 where nothing was tried."""
    hits, trials = np.asarray(hits, dtype=float), np.asarray(trials, dtype=float)
    return 1.0 - lower_bound(trials - hits, trials, error)


@dataclass(frozen=True)
class Tail:
    """A proportion that a rate is made of: the cells that hit, among those that count."""

    size: float
    hits: tuple[bool, ...]
    counts: tuple[bool, ...]


@dataclass(frozen=True)
class Tails:
    """A rate as ``constant + sum of size * proportion``, all sizes positive."""

    constant: float
    tails: tuple[Tail, ...]


def tails_of(terms: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Tails | None:
    """A sum of quotients (weights of cells above, and below) as proportions.

    None where a quotient is no average over the rows in its denominator: a cell counts above
    but not below, or cells count differently below.
    """
    constant, tails = 0.0, []
    for above, below in terms:
        counts = tuple(d > 0 for d in below)
        if len({d for d in below if d > 0}) != 1:
            return None
        if any(n != 0 and not c for n, c in zip(above, counts, strict=True)):
            return None
        values = [n / max(below) for n in above]
        levels = sorted({v for v, c in zip(values, counts, strict=True) if c})
        constant += levels[0]
        for low, high in pairwise(levels):
            hits = tuple(c and v >= high for v, c in zip(values, counts, strict=True))
            tails.append(Tail(high - low, hits, counts))
    return Tails(constant, tuple(tails))


@dataclass(frozen=True)
class Bounds:
    """Bounds of one rate in each of several groups, each side valid but for its own error."""

    low: Array
    high: Array


def rate_bounds(rate: Tails, cells: Array, squares: Array, error: float) -> Bounds:
    """Lower and upper bounds of a rate at ``cells`` (groups by cells).

    Each side of each group fails with a chance of ``error`` at most. ``squares`` are the cells'
    sums of squared weights: equal to ``cells`` for plain rows; with weights, rows count as
    Kish's effective number of them, which makes the bounds approximate.
    """
    low = np.full(len(cells), rate.constant)
    high = np.full(len(cells), rate.constant)
    share = error / max(len(rate.tails), 1)
    for tail in rate.tails:
        total = cells[:, tail.counts].sum(axis=1)
        squared = squares[:, tail.counts].sum(axis=1)
        effective = np.divide(total, squared, out=np.zeros_like(total), where=squared > 0)
        hits = np.minimum(cells[:, tail.hits].sum(axis=1), total) * effective
        low += tail.size * lower_bound(hits, total * effective, share)
        high += tail.size * upper_bound(hits, total * effective, share)
    return Bounds(low, high)


# -- two independent proportions -----------------------------------------------------------------

# The share of the error that is spent on knowing roughly where the two proportions are (Berger
# and Boos); the window outside of which counts are left out, and what that can leave out.
_ROUGHLY = 0.01
_LEFT_OUT = 1e-10
# Cells of the nuisance parameter, in standard errors: at first, and how often each is quartered.
_CELL, _ROUNDS = 0.08, 2
# Bounds are found to this part of their distance from the estimate.
_PRECISION = 2e-3


@dataclass(frozen=True)
class Pair:
    """What was counted of two independent proportions, ``a`` and ``b``."""

    hits_a: int
    count_a: int
    hits_b: int
    count_b: int

    @property
    def swapped(self) -> Pair:
        """``b`` and ``a``."""
        return Pair(self.hits_b, self.count_b, self.hits_a, self.count_a)


def _wilson(share: Array, count: float, z: float) -> tuple[Array, Array]:
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return centre - reach, centre + reach


def approximate_upper(
    hits_a: ArrayLike, hits_b: ArrayLike, pair: Pair, factor: float, z: float
) -> Array:
    """Newcombe's upper limit of ``factor * p_a - p_b``; rises with ``hits_a``, falls with b's.

    Only an order of outcomes is taken from it: that it is approximate costs no validity.
    """
    a = np.asarray(hits_a, dtype=float) / pair.count_a
    b = np.asarray(hits_b, dtype=float) / pair.count_b
    up, down = _wilson(a, pair.count_a, z)[1] - a, b - _wilson(b, pair.count_b, z)[0]
    return np.asarray(factor * a - b + np.sqrt((factor * up) ** 2 + down**2))


@dataclass(frozen=True)
class _Window:
    """The counts of one proportion that are likely wherever it is between two values."""

    first: int
    counts: Array
    ways: Array  # log of the binomial coefficient
    total: int

    @classmethod
    def of(cls, total: int, low: float, high: float) -> _Window:
        nearest = min(max(0.5, low), high)
        variance, far = total * nearest * (1 - nearest), -math.log(_LEFT_OUT)
        reach = far / 3 + math.sqrt(far**2 / 9 + 2 * variance * far)  # Bernstein
        first = max(0, math.floor(total * low - reach))
        counts = np.arange(first, min(total, math.ceil(total * high + reach)) + 1, dtype=float)
        ways = gammaln(total + 1) - gammaln(counts + 1) - gammaln(total - counts + 1)
        return cls(first, counts, ways, total)

    def chances(self, p: Array) -> Array:
        """How likely each count is (last axis), for each proportion."""
        p = p[:, None]
        return np.asarray(
            np.exp(self.ways + xlogy(self.counts, p) + xlog1py(self.total - self.counts, -p))
        )


@dataclass(frozen=True)
class Evidence:
    """Outcomes as favourable as the one seen: ``hits_a <= most[hits_b]``, likely ``p`` alone.

    Outcomes are put in the order of :func:`approximate_upper`. The set of those as favourable as
    the one seen loses chance as ``p_a`` rises and gains as ``p_b`` does, so that over any piece of
    the nuisance parameter its chance is at most that at two ends.
    """

    a: _Window
    b: _Window
    most: NDArray[np.intp]
    low: tuple[float, float]
    high: tuple[float, float]
    error: float
    cell: float

    def chance(self, p_a: Array, p_b: Array) -> Array:
        """An upper bound of how likely an outcome as favourable is, at each ``p_a, p_b``."""
        below = np.cumsum(self.a.chances(p_a), axis=1)
        place = np.clip(self.most - self.a.first, -1, len(self.a.counts) - 1)
        found = np.where(place >= 0, below[:, place], 0.0) * self.b.chances(p_b)
        # Sums of thousands of chances, of logs of up to 1e8: rounding stays below 1e-8 of them.
        return np.asarray(found.sum(axis=1) * (1 + 1e-8) + 4 * _LEFT_OUT)

    def rules_out(self, slope: float, shift: float) -> bool:
        """Whether ``p_b <= slope * p_a - shift`` can be excluded."""
        (low_a, low_b), (high_a, high_b) = self.low, self.high
        start, end = max(low_a, (low_b + shift) / slope), min(high_a, (high_b + shift) / slope)
        if high_a < (low_b + shift) / slope:
            return True  # no likely proportions are like that
        if start > end:
            return False  # all likely ones are
        pieces = max(8, math.ceil((end - start) / self.cell))
        edges = np.linspace(start, end, pieces + 1)
        left, right = edges[:-1], edges[1:]
        for round_ in range(_ROUNDS):
            if round_ == 0 and self._chance_on(edges, edges, slope, shift).max() > self.error:
                return False
            open_ = self._chance_on(left, right, slope, shift) > self.error
            if not open_.any():
                return True
            left, right = left[open_], right[open_]
            cuts = left[:, None] + (right - left)[:, None] * np.linspace(0, 1, 5)
            left, right = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
            if self._chance_on(left, left, slope, shift).max() > self.error:
                return False
        return False

    def _chance_on(self, left: Array, right: Array, slope: float, shift: float) -> Array:
        """How likely at most on pieces of the line ``p_b = slope * p_a - shift``."""
        p_b = np.clip(slope * right - shift, 0.0, 1.0)
        size = max(1, 2_000_000 // (len(self.a.counts) + len(self.b.counts)))
        parts = [
            self.chance(left[i : i + size], p_b[i : i + size]) for i in range(0, len(left), size)
        ]
        return np.concatenate(parts)


def evidence(pair: Pair, error: float, factor: float = 1.0) -> Evidence:
    """What the counts say of ``factor * p_a - p_b`` being small."""
    roughly = error * _ROUGHLY
    hits, counts = [pair.hits_a, pair.hits_b], [pair.count_a, pair.count_b]
    low = lower_bound(hits, counts, roughly / 4)
    high = upper_bound(hits, counts, roughly / 4)
    a, b = (_Window.of(n, *ends) for n, *ends in zip(counts, low, high, strict=True))
    z = -float(ndtri(error))
    seen = float(approximate_upper(pair.hits_a, pair.hits_b, pair, factor, z))
    seen += 1e-12  # equal outcomes are equal in spite of rounding
    # The most hits of a, for each number of hits of b, that are as favourable: by halving.
    least = np.full(len(b.counts), -1, dtype=np.intp)
    beyond = np.full(len(b.counts), pair.count_a + 1, dtype=np.intp)
    while (beyond - least > 1).any():
        middle = (least + beyond) // 2
        inside = np.clip(middle, 0, pair.count_a)
        as_good = approximate_upper(inside, b.counts, pair, factor, z) <= seen
        least, beyond = np.where(as_good, middle, least), np.where(as_good, beyond, middle)
    middle_a = min(max((pair.hits_a + 0.5) / (pair.count_a + 1), 1e-9), 1.0)
    cell = _CELL * math.sqrt(max(middle_a * (1 - middle_a), 1 / pair.count_a) / pair.count_a)
    return Evidence(
        a,
        b,
        least,
        (float(low[0]), float(low[1])),
        (float(high[0]), float(high[1])),
        error - roughly,
        cell,
    )


def difference_upper(pair: Pair, error: float, first: float = 1.0, least: float = -1.0) -> float:
    """What ``p_a - p_b`` stays below, but for a chance of ``error``.

    ``first`` is tried before any other value, so that whether it is excluded does not depend on
    the precision. A result below ``least`` is not looked for: ``least`` is returned.
    """
    known = evidence(pair, error)
    near = float(approximate_upper(pair.hits_a, pair.hits_b, pair, 1.0, -float(ndtri(error))))
    seen = pair.hits_a / pair.count_a - pair.hits_b / pair.count_b
    if least > seen and known.rules_out(1.0, least):
        return least
    reach = near - seen
    tried = (first, near + reach / 20, near - reach / 20, near + reach / 2)
    return _halve(lambda d: known.rules_out(1.0, d), seen, 1.0, tried, _PRECISION * reach)


def quotient_lower(pair: Pair, error: float, first: float, most: float = math.inf) -> float:
    """What ``p_b / p_a`` exceeds, but for a chance of ``error``; as :func:`difference_upper`."""
    if pair.hits_b == 0:
        return 0.0
    known = evidence(pair, error, first)
    if most < math.inf and known.rules_out(most, 0.0):
        return most
    low, high = lower_bound(pair.hits_b, pair.count_b, error), pair.count_a / max(pair.hits_a, 1)
    inner = min(pair.hits_b / pair.count_b * high, most)
    tried = (first, float(low) * high)
    return _halve(lambda r: known.rules_out(r, 0.0), inner, 0.0, tried, _PRECISION * inner / 10)


def _halve(
    ruled_out: Callable[[float], bool],
    inner: float,
    outer: float,
    tried: Sequence[float],
    precision: float,
) -> float:
    """The value nearest to ``inner`` that is ruled out, found from the outside; or ``outer``."""
    queue = list(tried)
    while abs(outer - inner) > precision:
        middle = queue.pop(0) if queue else (inner + outer) / 2
        if not min(inner, outer) < middle < max(inner, outer):
            if queue or abs(outer - inner) > 4 * math.ulp(max(abs(inner), abs(outer))):
                continue
            break
        if ruled_out(middle):
            outer = middle
        else:
            inner = middle
    return outer


# -- proportions that may hang together ----------------------------------------------------------


def parted(error: float, count_a: float, count_b: float) -> tuple[float, float]:
    """The error parted between two proportions, so that their two reaches together are small.

    It depends on how many rows there are and on nothing that they show.
    """
    parts = error * np.linspace(0.02, 0.98, 49)
    reach = -ndtri(parts) / math.sqrt(max(count_a, 1)) - ndtri(parts[::-1]) / math.sqrt(
        max(count_b, 1)
    )
    best = float(parts[int(reach.argmin())])
    return best, error - best


# -- means of bounded rows -----------------------------------------------------------------------


def mean_quotient_upper(
    above: Array, below: Array, times: Array, largest: tuple[Array, Array], error: float
) -> float:
    """What ``E[above] / E[below]`` stays below, but for a chance of ``error``: by betting.

    Were the quotient ``r`` or more, ``r * below - above`` would have a mean of at most 0, and
    nobody could expect to gain by betting on it. The bound is the smallest ``r`` against which a
    fixed mixture of bets gains ``1 / error`` (Ville; Waudby-Smith and Ramdas).

    Parameters
    ----------
    above, below, times
        The distinct rows, and how often each was seen.
    largest
        The values of ``above`` and ``below`` of all rows that are possible, at their largest
        weight: they settle where the quotient lives and how high a bet may be.
    error
        The chance.
    """
    ends = largest[0][largest[1] > 0] / largest[1][largest[1] > 0]
    least, most = float(ends.min()), float(ends.max())
    worst = max(float((largest[0] - r * largest[1]).max(initial=0.0)) for r in (least, most))
    if worst <= 0 or not len(times):
        return most
    # From the best bet at the largest variance there can be, by steps of a half, to the highest.
    small = min(1.0, math.sqrt(-8 * math.log(error) / times.sum()))
    bets = 0.95 / worst * np.geomspace(small, 1.0, 1 + math.ceil(-math.log(small) / math.log(1.5)))

    def ruled_out(r: float) -> bool:
        gains = np.log1p(bets[:, None] * (r * below - above)) @ times
        return bool(logsumexp(gains) - math.log(len(bets)) >= -math.log(error))

    seen = float((above @ times) / (below @ times))
    return _halve(ruled_out, seen, most, (), _PRECISION * (most - least) / 10)
