"""Thomas et al.: seldonian-engine."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Task


class Thomas(PeerMethod):
    name = "seldonian-engine (Thomas)"
    about = (
        "logistic regression by CMA-ES; bound over eps, 2 eps, 4 eps at delta 0.05; its safety "
        "test is run on the validation part"
    )
    paper = "Thomas et al."
    peer = "seldonian"
    script = "seldonian_thomas.py"
    metrics = ("SP", "FPR", "FNR")
    learners = ("LR",)

    def settings(self, task: Task) -> list[dict[str, Any]]:
        shares = (1.0, 2.0) if task.short or task.pooled else (1.0, 2.0, 4.0)
        fixed = {
            "metric": task.goal.only,
            "delta": 0.05,
            "maxiter": 50 if task.short else 300,
        }
        return [{"bound": share * task.goal.eps, **fixed} for share in shares]
