"""omnifair's grid search: the baseline of experiment 7."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.omnifair_base import OmnifairMethod
from benchmarks.objective import Task


class OmnifairGrid(OmnifairMethod):
    name = "omnifair GridSearch"
    about = "every point of a grid of multipliers"
    points = 21

    def strategy(self, task: Task) -> Any:
        from omnifair import GridSearch

        return GridSearch(points=9 if task.short else self.points)
