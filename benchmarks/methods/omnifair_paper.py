"""omnifair with the paper's own search."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.omnifair_base import OmnifairMethod
from benchmarks.objective import Task


class OmnifairPaper(OmnifairMethod):
    name = "omnifair PaperSearch"
    about = "FairClassifier with the paper's Algorithms 1 and 2"
    paper = "OmniFair"

    def strategy(self, task: Task) -> Any:
        from omnifair import PaperSearch

        return PaperSearch()
