"""omnifair with decisions from scores, where this version has it."""

from __future__ import annotations

from typing import Any

import omnifair
import omnifair.search
from benchmarks.methods.omnifair_base import OmnifairMethod
from benchmarks.objective import Task


class OmnifairPlugIn(OmnifairMethod):
    name = "omnifair PlugIn"
    about = "FairClassifier with strategy=PlugIn()"

    def missing(self) -> str | None:
        found = hasattr(omnifair, "PlugIn") or hasattr(omnifair.search, "PlugIn")
        return None if found else "NA: this version of omnifair has no PlugIn"

    def strategy(self, task: Task) -> Any:
        return (omnifair if hasattr(omnifair, "PlugIn") else omnifair.search).PlugIn()
