"""error-parity: thresholds by group, drawn at random, by linear programming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from benchmarks.methods.base import learner, scores, stopwatch
from benchmarks.methods.oxonfair import ScorePeer
from benchmarks.objective import Rows, Task

NAMES = {
    "SP": "demographic_parity",
    "FPR": "false_positive_rate_parity",
    "FNR": "false_negative_rate_parity",
}


class ErrorParity(ScorePeer):
    name = "error-parity"
    about = "tolerance over eps and eps/2, fitted on the validation or on the training part"
    peer = "error-parity"
    script = "error_parity_thresholds.py"
    needs_group = True
    randomised = True
    metrics = tuple(NAMES)
    many_groups = True

    def settings(self, task: Task) -> list[dict[str, Any]]:
        return [
            {
                "constraint": NAMES[str(task.goal.only)],
                "tolerance": share * task.goal.eps,
                "part": part,
            }
            for part in ("validation", "training")
            for share in (1.0, 0.5)
        ]

    def scored(self, task: Task) -> tuple[Callable[[Rows], NDArray[Any]], float]:
        with stopwatch() as seconds:
            model = learner(task).fit(task.train.X, task.train.y)
            taken = seconds()
        return lambda rows: scores(model, rows.X).reshape(-1, 1), taken
