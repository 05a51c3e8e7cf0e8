"""omnifair's default search and its joint model, whichever is better on validation."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.omnifair_base import OmnifairMethod
from benchmarks.objective import Task


class OmnifairBestOf(OmnifairMethod):
    name = "omnifair BestOf"
    about = "FairClassifier with strategy=BestOf(): the default search and PlugIn, in one fit"

    def strategy(self, task: Task) -> Any:
        from omnifair import BestOf

        return BestOf()
