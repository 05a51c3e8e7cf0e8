"""No constraint at all: the learner as it is."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.methods.base import Candidate, Method, learner, plain_candidate, stopwatch
from benchmarks.objective import METRICS, Task


class Plain(Method):
    name = "no constraint"
    about = "the learner by itself"
    bound_free = True
    metrics = METRICS
    many_groups = True
    many_metrics = True

    def candidates(self, task: Task) -> Iterator[Candidate]:
        with stopwatch() as seconds:
            model = learner(task).fit(task.train.X, task.train.y)
            taken = seconds()
        yield plain_candidate(model, {}, taken)
