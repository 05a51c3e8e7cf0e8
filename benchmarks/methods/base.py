"""What a method is to the harness."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.deadline import watched
from benchmarks.learners import make
from benchmarks.objective import Rows, Task

Predict = Callable[[Rows], NDArray[Any]]


class Refused(Exception):
    """A method cannot do what it is asked; the message is what the table prints."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One fitted model of a method, at one setting of its own hyperparameters."""

    settings: dict[str, Any]
    predict: Predict
    seconds: float
    trainings: int | None = 1
    score: Predict | None = field(default=None)


class Method:
    """A way to a fair classifier.

    ``candidates`` fits it at each setting of its own grid, the most natural first; the harness
    chooses among them on the validation part, and may stop asking when time is up.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    # The name of its row in the paper's tables.
    paper: ClassVar[str | None] = None
    needs_group: ClassVar[bool] = False
    randomised: ClassVar[bool] = False
    # Whether its candidates are the same for every bound, so that one fit serves a frontier.
    bound_free: ClassVar[bool] = False
    # Whether one run of it is its whole grid.
    whole_grid: ClassVar[bool] = False
    ours: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("SP",)
    learners: ClassVar[tuple[str, ...] | None] = None
    many_groups: ClassVar[bool] = False
    many_metrics: ClassVar[bool] = False
    # Its own environment, if it needs one: a name in benchmarks.peers.PEERS.
    peer: ClassVar[str | None] = None

    def reason(self, task: Task) -> str | None:
        """Why it cannot do this task, or None. NA(2): by its nature; NA: on this machine."""
        if self.learners is not None and task.learner not in self.learners:
            return f"NA(2): has a learner of its own, compared with {', '.join(self.learners)}"
        if len(task.goal.bounds) > 1 and not self.many_metrics:
            return "NA(2): one metric at a time"
        unknown = [m for m in task.goal.metrics if m not in self.metrics]
        if unknown:
            return f"NA(2): does not support {', '.join(unknown)}"
        if len(np.unique(task.train.group)) > 2 and not self.many_groups:
            return "NA(2): two groups only"
        if self.peer is not None:
            from benchmarks import peers

            missing = peers.missing(self.peer)
            if missing:
                return f"NA: {missing}"
        return self.missing()

    def missing(self) -> str | None:
        """Why it cannot run on this machine, or None."""
        return None

    def candidates(self, task: Task) -> Iterator[Candidate]:
        """Fit at each setting, one after another."""
        raise NotImplementedError


def learner(task: Task) -> Any:
    """A fresh learner of the task, whose fit looks at the time."""
    return watched(make(task.learner, task.settings))


def scores(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    """A model's probabilities of the positive class."""
    return np.asarray(model.predict_proba(X))[:, 1]


def plain_candidate(
    model: Any, settings: dict[str, Any], seconds: float, trainings: int | None = 1
) -> Candidate:
    """A candidate that is one scikit-learn model."""
    return Candidate(
        settings,
        lambda rows: model.predict(rows.X),
        seconds,
        trainings,
        (lambda rows: scores(model, rows.X)) if hasattr(model, "predict_proba") else None,
    )


def with_learner(candidate: Candidate, seconds: float) -> Candidate:
    """A candidate to whose account the one fit of the learner goes that all of them share."""
    return replace(candidate, seconds=candidate.seconds + seconds, trainings=1)


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    """Seconds of this process's own work since the start of the block.

    All work in one thread, so these are seconds of a machine that does nothing else.
    """
    start = time.process_time()
    yield lambda: time.process_time() - start
