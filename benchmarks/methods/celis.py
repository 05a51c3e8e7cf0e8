"""Celis et al.: AIF360's MetaFairClassifier."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Task

TYPES = {"SP": "sr", "FDR": "fdr"}


class Celis(PeerMethod):
    name = "AIF360 MetaFairClassifier"
    about = "tau over 0.8, 0.95, 0.5 (full: also 0.3, 0.7, 0.9); type sr or fdr"
    paper = "Celis et al."
    peer = "aif360"
    script = "aif360_metafair.py"
    bound_free = True
    metrics = tuple(TYPES)
    learners = ("LR",)

    def settings(self, task: Task) -> list[dict[str, Any]]:
        values = (0.8, 0.95, 0.5) if task.short else (0.8, 0.95, 0.5, 0.3, 0.7, 0.9)
        return [{"tau": value, "type": TYPES[str(task.goal.only)]} for value in values]
