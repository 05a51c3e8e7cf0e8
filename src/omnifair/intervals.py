"""Intervals for proportions and rates, valid at any sample size: no normal approximation.

A proportion of independent rows has the exact binomial bounds of Clopper and Pearson. A rate
whose cells take more than two values is a sum of such proportions, each with its share of the
error. Given how many rows are in a denominator, those that count in the numerator are binomial,
also where predictions decide who is in it: the model does not depend on the rows it is judged on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

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
