"""OxonFair: one learner, thresholds by group chosen on the validation part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods.base import Candidate, learner, stopwatch, with_learner
from benchmarks.methods.peer_base import PeerMethod, group_codes
from benchmarks.objective import Rows, Task
from benchmarks.peers import Worker


class ScorePeer(PeerMethod):
    """A method over the scores of a learner that is fitted here, once."""

    trainings = 0

    def scored(self, task: Task) -> tuple[Callable[[Rows], NDArray[Any]], float]:
        """The matrix that the worker sees, and the seconds that its learner took."""
        raise NotImplementedError

    def candidates(self, task: Task) -> Iterator[Candidate]:
        features, once = self.scored(task)
        method = _With(self, features)
        worker = Worker(str(self.peer), self.script)
        codes = group_codes(task)
        for number, one in enumerate(method.fitted(task, worker)):
            candidate = self._candidate(task, worker, one, codes, features)
            yield with_learner(candidate, once) if number == 0 else candidate


class _With(PeerMethod):
    """The method with its features settled, so that the learner is fitted once."""

    def __init__(self, method: PeerMethod, features: Callable[[Rows], NDArray[Any]]) -> None:
        self.method, self.matrix = method, features

    def settings(self, task: Task) -> list[dict[str, Any]]:
        return self.method.settings(task)

    def features(self, task: Task) -> Callable[[Rows], NDArray[Any]]:
        return self.matrix


class OxonFair(ScorePeer):
    name = "OxonFair"
    about = "fit(accuracy, the gap, bound) over eps and eps/2, on the validation part"
    peer = "oxonfair"
    script = "oxonfair_thresholds.py"
    needs_group = True
    metrics = ("SP", "FPR", "FNR", "FDR", "MR")
    many_groups = True
    many_metrics = True

    def settings(self, task: Task) -> list[dict[str, Any]]:
        return [
            {"bounds": [[metric, share * eps] for metric, eps in task.goal.bounds]}
            for share in (1.0, 0.5)
        ]

    def scored(self, task: Task) -> tuple[Callable[[Rows], NDArray[Any]], float]:
        with stopwatch() as seconds:
            model = learner(task).fit(task.train.X, task.train.y)
            taken = seconds()
        return lambda rows: np.asarray(model.predict_proba(rows.X), dtype=float), taken


class OxonFairInferred(OxonFair):
    name = "OxonFair, group inferred"
    about = "the same, with the group guessed from the features by logistic regression"
    needs_group = False

    def scored(self, task: Task) -> tuple[Callable[[Rows], NDArray[Any]], float]:
        from sklearn.linear_model import LogisticRegression

        codes = group_codes(task)
        with stopwatch() as seconds:
            model = learner(task).fit(task.train.X, task.train.y)
            groups = np.array([codes[g] for g in task.train.group])
            guess = LogisticRegression(max_iter=1000).fit(task.train.X, groups)
            taken = seconds()

        def columns(rows: Rows) -> NDArray[Any]:
            return np.c_[model.predict_proba(rows.X), guess.predict_proba(rows.X)]

        return columns, taken
