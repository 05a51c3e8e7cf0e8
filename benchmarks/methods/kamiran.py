"""Kamiran and Calders: AIF360's Reweighing, then the learner with these weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.learners import GRIDS, make
from benchmarks.methods.base import Candidate, plain_candidate, stopwatch
from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Task
from benchmarks.peers import Worker


def learner_settings(task: Task) -> tuple[dict[str, Any], ...]:
    """What is left to tune for a method without a knob: the learner's own settings."""
    others = () if task.short else GRIDS[task.learner]
    return (task.settings, *(s for s in others if s != task.settings))


class Kamiran(PeerMethod):
    name = "AIF360 Reweighing"
    about = "no knob of its own: the learner's settings are tuned under it"
    paper = "Kamiran et al."
    peer = "aif360"
    script = "aif360_reweighing.py"
    bound_free = True

    def settings(self, task: Task) -> list[dict[str, Any]]:
        return [{}]

    def candidates(self, task: Task) -> Iterator[Candidate]:
        [found] = self.fitted(task, Worker("aif360", self.script))
        for settings in learner_settings(task):
            with stopwatch() as seconds:
                model = make(task.learner, settings)
                model.fit(task.train.X, task.train.y, sample_weight=found.arrays["weights"])
                taken = seconds()
            yield plain_candidate(model, dict(settings), found.seconds + taken)
