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
        few = (0.01, 0.0, 0.03)
        values = few if task.short else (*few, 0.003, 0.06, 0.1)
        strong = () if task.short else ((0.0, 0.01), (0.0, 0.001))
        fixed = {"penalty": "l2", "metric": task.goal.only}
        pairs = [*((value, 1.0) for value in values), *strong]
        return [{"covariance_threshold": value, "C": c, **fixed} for value, c in pairs]
