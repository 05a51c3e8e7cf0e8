"""What the methods share that run in an environment of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods.base import Candidate, Method, Refused
from benchmarks.objective import Rows, Task
from benchmarks.peers import Fitted, Worker


def group_codes(task: Task) -> dict[Any, int]:
    """Groups as numbers, by rising base rate: of two, 1 is the one with more positives."""
    train = task.train
    names = sorted(np.unique(train.group), key=lambda g: float(train.y[train.group == g].mean()))
    return {name: number for number, name in enumerate(names)}


def coded(group: NDArray[Any], codes: dict[Any, int]) -> NDArray[np.int64]:
    """Each row's number."""
    return np.array([codes[g] for g in group], dtype=np.int64)


class PeerMethod(Method):
    """A method whose models live in a worker; ``settings`` and ``arrays`` say what it is sent."""

    script: ClassVar[str]
    # How often it trains for one setting.
    trainings: ClassVar[int] = 1

    def settings(self, task: Task) -> list[dict[str, Any]]:
        """Its grid, the most natural setting first."""
        raise NotImplementedError

    def features(self, task: Task) -> Callable[[Rows], NDArray[Any]]:
        """From rows to the matrix that the worker sees: by default the features."""
        return lambda rows: rows.X

    def arrays(self, task: Task) -> dict[str, NDArray[Any]]:
        """What the worker is given to fit."""
        codes, features = group_codes(task), self.features(task)
        train, part = task.train, task.validation
        return {
            "X": features(Rows(train.X, train.group, train.frame)),
            "y": train.y,
            "g": coded(train.group, codes),
            "Xv": features(Rows(part.X, part.group, part.frame)),
            "yv": part.y,
            "gv": coded(part.group, codes),
        }

    def fitted(self, task: Task, worker: Worker) -> Iterator[Fitted]:
        """Each setting as it is finished; raises if none worked."""
        errors = []
        worked = False
        for one in worker.fit(self.settings(task), self.arrays(task), task.limit):
            if one.error is None:
                worked = True
                yield one
            else:
                errors.append(one.error)
        if not worked:
            kind = "NA(1)" if "no solution found" in errors[0] else "NA"
            raise Refused(f"{kind}: {errors[0]}")

    def candidates(self, task: Task) -> Iterator[Candidate]:
        worker = Worker(str(self.peer), self.script)
        codes, features = group_codes(task), self.features(task)
        for one in self.fitted(task, worker):
            yield self._candidate(task, worker, one, codes, features)

    def _candidate(
        self,
        task: Task,
        worker: Worker,
        one: Fitted,
        codes: dict[Any, int],
        features: Callable[[Rows], NDArray[Any]],
    ) -> Candidate:
        def ask(rows: Rows) -> dict[str, NDArray[Any]]:
            if rows.X is task.validation.X:
                return one.arrays
            return worker.predict(one.number, X=features(rows), group=coded(rows.group, codes))

        score = (lambda rows: ask(rows)["scores"]) if "scores" in one.arrays else None
        return Candidate(
            one.settings, lambda rows: ask(rows)["labels"], one.seconds, self.trainings, score
        )
