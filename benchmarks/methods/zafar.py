"""Zafar et al.: scikit-lego's logistic regression with a bound on a covariance."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Task


class Zafar(PeerMethod):
    name = "scikit-lego (Zafar)"
    about = "covariance_threshold over 0 .. 0.1 at C 1, and 0 at C 0.01, 0.001 (short: 3 values)"
    paper = "Zafar et al."
    peer = "scikit-lego"
    script = "sklego_zafar.py"
    bound_free = True
    metrics = ("SP", "FNR")
    learners = ("LR",)

    def settings(self, task: Task) -> list[dict[str, Any]]:
        pairs = [(0.01, 1.0), (0.0, 1.0), (0.03, 1.0), (0.0, 0.01), (0.0, 0.001)]
        if not task.short:
            pairs += [(0.003, 1.0), (0.06, 1.0), (0.1, 1.0)]
        fixed = {"penalty": "l2", "metric": task.goal.only}
        return [{"covariance_threshold": value, "C": c, **fixed} for value, c in pairs]
