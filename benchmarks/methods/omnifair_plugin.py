"""omnifair with decisions from scores, where this version has it."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.omnifair_base import OmnifairMethod
from benchmarks.objective import Task


class OmnifairPlugIn(OmnifairMethod):
    name = "omnifair PlugIn"
    about = "FairClassifier with strategy=PlugIn()"

    def missing(self) -> str | None:
        import omnifair

        return None if hasattr(omnifair, "PlugIn") else "NA: this version of omnifair has no PlugIn"

    def strategy(self, task: Task) -> Any:
        import omnifair

        return omnifair.PlugIn()
