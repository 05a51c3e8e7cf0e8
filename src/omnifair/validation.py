"""Which rows are trained on, measured, or set aside: what ``validation=`` means.

Rows are split at random within each group and label, so that a small group stands on both sides
as far as it can; those to certify on are drawn without regard to either.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnifair.errors import LearnerError

TRAIN = "train"


@dataclass(frozen=True)
class ValidationSet:
    """An explicit validation set: what ``fit`` takes, for rows of their own."""

    X: Any
    y: Any
    sensitive_features: Any = None
    sample_weight: Any = None


def as_validation(value: Any) -> float | int | str | ValidationSet:
    """What a user passes as ``validation``, checked."""
    if isinstance(value, ValidationSet) or (isinstance(value, str) and value == TRAIN):
        return value
    if isinstance(value, (tuple, list)) and 2 <= len(value) <= 4:
        return ValidationSet(*value)
    if isinstance(value, dict) and {"X", "y"} <= value.keys() <= set(ValidationSet.__annotations__):
        return ValidationSet(**value)
    if isinstance(value, Integral) and int(value) >= 2:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and 0 < float(value) < 1:
        return float(value)
    raise LearnerError(
        f"validation={value!r}: pass a fraction such as 0.25, a number of folds such as 5, "
        "'train', or a validation set (X, y, sensitive_features)."
    )


def as_certification(value: Any) -> float | ValidationSet:
    """What a user passes as ``certification``, checked."""
    try:
        kind = as_validation(value)
    except LearnerError:
        kind = TRAIN
    if isinstance(kind, (float, ValidationSet)):
        return kind
    raise LearnerError(
        f"certification={value!r}: pass a fraction such as 0.25, or a set of rows of its own "
        "(X, y, sensitive_features)."
    )


def part_off(
    n: int, fraction: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to go on with and rows set aside: a share of all, drawn without regard to anything."""
    held = np.zeros(n, dtype=bool)
    held[random.permutation(n)[: round(n * fraction)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def holdout(
    strata: NDArray[np.intp], fraction: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and rows to measure on.

    Every stratum gives its share; one with two rows or more has at least one on each side.
    """
    order, place, size = _shuffled_places(strata, random)
    wanted = np.clip(np.rint(size * fraction), np.minimum(1, size - 1), np.maximum(size - 1, 0))
    held = np.zeros(len(strata), dtype=bool)
    held[order] = place < wanted
    return np.flatnonzero(~held), np.flatnonzero(held)


def folds(
    strata: NDArray[np.intp], k: int, random: np.random.RandomState
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """``k`` pairs of rows to train on and rows to measure on; each row is measured once."""
    order, _, _ = _shuffled_places(strata, random)
    fold = np.empty(len(strata), dtype=np.intp)
    fold[order] = np.arange(len(strata)) % k
    return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(k)]


def _shuffled_places(
    strata: NDArray[np.intp], random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Rows by stratum in random order, the place of each in its stratum, and its size."""
    shuffled = np.argsort(random.permutation(len(strata)))
    # Few strata are sorted by their bytes, in a tenth of the time.
    few = strata.astype(np.uint16) if strata.max(initial=0) < 2**16 else strata
    order = shuffled[np.argsort(few[shuffled], kind="stable")]
    counts = np.bincount(strata)
    starts = np.cumsum(counts) - counts
    sorted_strata = strata[order]
    return order, np.arange(len(strata)) - starts[sorted_strata], counts[sorted_strata]
