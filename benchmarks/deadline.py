"""A time limit that is looked at before every training, so that nothing is torn in the middle.

The time is the process's own work, so that a busy machine costs no method a candidate.

(An exception out of a signal would do for pure Python; inside a library's own code it corrupts
memory.) What runs in a peer's process is killed instead, by ``benchmarks.peers``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ends: list[float] = []


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Let :func:`check` raise TimeoutError in this block once so many seconds have passed."""
    _ends.append(time.process_time() + seconds)
    try:
        yield
    finally:
        _ends.pop()


def check() -> None:
    """Raise TimeoutError if the time of the innermost block is up."""
    if _ends and time.process_time() > _ends[-1]:
        raise TimeoutError


def watched(estimator: Any) -> Any:
    """The same estimator, except that its ``fit`` looks at the time first."""
    estimator.__class__ = _watched_class(type(estimator))
    return estimator


@functools.cache
def _watched_class(cls: type) -> type:
    @functools.wraps(cls.fit)  # the signature says whether it takes sample_weight
    def fit(self: Any, *arguments: Any, **keywords: Any) -> Any:
        check()
        return cls.fit(self, *arguments, **keywords)

    body = {"fit": fit, "__module__": cls.__module__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls,), body)
