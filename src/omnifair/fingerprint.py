"""Fingerprints: whether rows are among those that a model was trained on."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnifair.errors import CertificateError, DataError
from omnifair.frames import Frame

Bits = NDArray[np.int8]

_KEPT = 50_000
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Hashes of the distinct rows of a model's training data, or of a fixed part of them.

    ``limit`` is the largest hash that was kept, ``repeated`` the share of rows that have a twin
    among the others, which tells how often a fresh row has one.
    """

    hashes: NDArray[np.uint64]
    limit: int
    repeated: float
    rows: int


def fingerprint(X: Any, bits: Bits) -> Fingerprint:
    """What lets :func:`certify` tell whether rows were trained on; of bounded size."""
    found = row_hashes(X, bits)
    distinct, times = np.unique(found, return_counts=True)
    repeated = 1 - float((times == 1).sum()) / max(len(found), 1)
    kept = distinct[:_KEPT]
    limit = int(kept[-1]) if len(kept) < len(distinct) else 2**64 - 1
    return Fingerprint(kept, limit, repeated, len(found))


def fingerprint_if_any(X: Any, bits: Bits) -> Fingerprint | None:
    """The same; None for rows of a kind that only the learner knows how to read."""
    try:
        return fingerprint(X, bits)
    except (DataError, TypeError, ValueError):
        return None


def row_hashes(X: Any, bits: Bits) -> NDArray[np.uint64]:
    """One number for each row and its label; equal rows have equal ones."""
    n = len(bits)
    total = _mixed(np.asarray(bits).astype(np.uint64) + np.uint64(1))
    if hasattr(X, "tocsr"):
        table = X.tocsr()
        cells = _mixed(_bits_of(table.data) ^ _mixed(table.indices.astype(np.uint64)))
        np.add.at(total, np.repeat(np.arange(n), np.diff(table.indptr)), cells)
        return _mixed(total)
    frame = Frame(None, X, n)
    names = frame.names()
    if not names:  # texts, lists
        rows = [_text_hash(repr(np.asarray(row).tolist())) for row in X]
        return _mixed(total + np.asarray(rows, dtype=np.uint64))
    for place, name in enumerate(names):
        values = frame.raw(name)
        if values.dtype.kind in "iubf":
            hashes = _bits_of(values)
        else:
            column = frame.column(name, sole=False)
            known = [_value_hash(v) for v in (*column.values, None)]
            hashes = np.asarray(known, dtype=np.uint64)[column.codes]
        total = _mixed(total + _mixed(hashes ^ _mixed(np.array([place + 1], dtype=np.uint64))))
    return total


def _bits_of(values: NDArray[Any]) -> NDArray[np.uint64]:
    numbers = np.asarray(values).astype(np.float64) + 0.0  # no negative zeros
    numbers[np.isnan(numbers)] = np.nan  # of one kind
    return numbers.view(np.uint64)


def _value_hash(value: Any) -> int:
    if isinstance(value, (int, float)):
        return int(_bits_of(np.array([float(value)]))[0])
    return _text_hash(repr(value))


def _text_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number's bits spread over all of it (the finaliser of splitmix64)."""
    x = values + _MIX
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def share_seen(known: Fingerprint | None, X: Any, bits: Bits) -> float:
    """The share of rows that have a twin among those known; 0 where that cannot be told."""
    if known is None:
        return 0.0
    try:
        shared, n = _shared(known, X, bits)
    except (DataError, TypeError, ValueError):
        return 0.0
    return shared / max(n, 1)


def _shared(known: Fingerprint, X: Any, bits: Bits) -> tuple[int, int]:
    """How many rows have a twin among those known, of how many that could be looked up."""
    found = row_hashes(X, bits)
    looked_up = found[found <= np.uint64(known.limit)]
    return int(np.isin(looked_up, known.hashes).sum()), len(looked_up)


def refuse_seen(known: Fingerprint | None, X: Any, bits: Bits) -> None:
    """Refuse rows of which more were trained on than chance twins explain."""
    if known is None or not len(known.hashes):
        return
    shared, n = _shared(known, X, bits)
    chance = known.repeated
    spread = math.sqrt(n * chance * (1 - chance) * (1 + n / known.rows) + 1)
    same = len(bits) == known.rows and shared == n and chance < 0.999
    if shared > n * chance + 6 * spread + 3 or (n > 0 and same):
        share = shared / n
        raise CertificateError(
            f"{share:.0%} of these rows are rows that the model was trained or selected on "
            f"({chance:.0%} could be twins by chance). A certificate needs rows that played no "
            "part in it: hold some back before fit()."
        )
