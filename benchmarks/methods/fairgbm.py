"""FairGBM: its own boosted trees, compared in the columns of boosted trees."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Task


class FairGBM(PeerMethod):
    name = "FairGBM"
    about = "100 trees of 15 leaves; multiplier_learning_rate 0.1, 1 (full: also 0.01); slack"
    peer = "fairgbm"
    script = "fairgbm_trees.py"
    metrics = ("FPR", "FNR")
    learners = ("XGB", "LightGBM")
    many_groups = True
    many_metrics = True

    def settings(self, task: Task) -> list[dict[str, Any]]:
        rates = (0.1, 1.0) if task.short else (0.1, 1.0, 0.01)
        fixed = {"n_estimators": 100, "constraint_type": ",".join(task.goal.metrics)}
        return [
            {"multiplier_learning_rate": rate, "slack": slack * task.goal.eps, **fixed}
            for slack in (0.0, 1.0)
            for rate in rates
        ]
