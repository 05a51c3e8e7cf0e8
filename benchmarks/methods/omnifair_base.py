"""What the methods of omnifair share: the constraint as users write it, and the call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks.methods.base import Candidate, Method, learner, plain_candidate, stopwatch
from benchmarks.objective import COST_FN, COST_FP, METRICS, Goal, Task

TEXT = {
    "SP": "selection_rate",
    "FPR": "false_positive_rate",
    "FNR": "false_negative_rate",
    "FDR": "false_discovery_rate",
    "FOR": "false_omission_rate",
    "MR": "error_rate",
}


def constraints(goal: Goal) -> list[Any]:
    """The goal as omnifair's constraints."""
    from omnifair import gap, rates

    cost = (COST_FP * rates.FP + COST_FN * rates.FN) / (rates.TP + rates.FP + rates.FN + rates.TN)
    return [
        gap(cost if metric == "AEC" else getattr(rates, TEXT[metric]), by="group") <= eps
        for metric, eps in goal.bounds
    ]


class OmnifairMethod(Method):
    """FairClassifier with one of its strategies; the validation part is its validation set."""

    ours = True
    metrics = METRICS
    many_groups = True
    many_metrics = True

    def strategy(self, task: Task) -> Any:
        """The search, or None for the default."""
        return None

    def candidates(self, task: Task) -> Iterator[Candidate]:
        yield self.fitted(task, self.strategy(task), {})

    @staticmethod
    def fitted(task: Task, strategy: Any, settings: dict[str, Any]) -> Candidate:
        """One fit with one strategy."""
        from omnifair import FairClassifier, InfeasibleWarning

        part = task.validation
        model = FairClassifier(
            learner(task),
            constraints(task.goal),
            strategy=strategy,
            validation=(part.X, part.y, {"group": part.group}),
            on_infeasible="closest",
            random_state=task.seed,
            n_jobs=1,
        )
        with warnings.catch_warnings(), stopwatch() as seconds:
            warnings.simplefilter("ignore", InfeasibleWarning)
            model.fit(task.train.X, task.train.y, sensitive_features={"group": task.train.group})
            taken = seconds()
        return plain_candidate(model, settings, taken, int(model.report().trainings))
