"""Zafar et al.: scikit-lego's logistic regression with a bound on a covariance."""

from __future__ import annotations

from typing import Any

from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Task


class Zafar(PeerMethod):
    name = "scikit-lego (Zafar)"
    about = "covariance_threshold over 0 .. 0.1 and none (quick: 3 values); l2 penalty, C 1"
    paper = "Zafar et al."
    peer = "scikit-lego"
    script = "sklego_zafar.py"
    bound_free = True
    metrics = ("SP", "FNR")
    learners = ("LR",)

    def settings(self, task: Task) -> list[dict[str, Any]]:
        quick = (0.01, 0.0, 0.03)
        values = quick if task.quick else (*quick, 0.002, 0.005, 0.02, 0.05, 0.1)
        fixed = {"penalty": "l2", "C": 1.0, "metric": task.goal.only}
        return [{"covariance_threshold": value, **fixed} for value in values]
