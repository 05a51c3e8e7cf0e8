"""Agarwal et al.: fairlearn's ExponentiatedGradient."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks.methods.base import Candidate, Method, learner, stopwatch
from benchmarks.objective import Task


def no_fairlearn() -> str | None:
    """Why fairlearn cannot be used, or None."""
    found = importlib.util.find_spec("fairlearn")
    return None if found else "NA: fairlearn is not installed"


def moment(metric: str, bound: float) -> Any:
    """fairlearn's constraint that keeps every group within ``bound`` of all."""
    from fairlearn import reductions

    kind = {
        "SP": reductions.DemographicParity,
        "FPR": reductions.FalsePositiveRateParity,
        "FNR": reductions.TruePositiveRateParity,
        "MR": reductions.ErrorRateParity,
    }[metric]
    return kind(difference_bound=bound)


class Agarwal(Method):
    name = "fairlearn ExponentiatedGradient"
    about = (
        "difference_bound over 1, 1/2, 1/4 and 0 of eps (short: without 0; for many bounds: 1 and "
        "1/2); at most 50 iterations"
    )
    paper = "Agarwal et al."
    randomised = True
    metrics = ("SP", "FPR", "FNR", "MR")
    many_groups = True
    shares = (1.0, 0.5, 0.25, 0.0)

    def missing(self) -> str | None:
        return no_fairlearn()

    def candidates(self, task: Task) -> Iterator[Candidate]:
        from fairlearn.reductions import ExponentiatedGradient

        metric = task.goal.only
        count = 2 if task.pooled else 3 if task.short else 4
        for share in self.shares[:count]:
            bound = max(share * task.goal.eps, 1e-4)
            with warnings.catch_warnings(), stopwatch() as seconds:
                warnings.simplefilter("ignore")
                model = ExponentiatedGradient(learner(task), moment(metric, bound))
                model.fit(task.train.X, task.train.y, sensitive_features=task.train.group)
                taken = seconds()
            trainings = int(getattr(model, "n_oracle_calls_", 0)) or None
            yield self._candidate(model, bound, taken, trainings, task.seed)

    @staticmethod
    def _candidate(
        model: Any, bound: float, taken: float, trainings: int | None, seed: int
    ) -> Candidate:
        return Candidate(
            {"difference_bound": bound},
            lambda rows: model.predict(rows.X, random_state=seed),
            taken,
            trainings,
            lambda rows: model._pmf_predict(rows.X)[:, 1],
        )
