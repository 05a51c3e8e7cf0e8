"""fairlearn's ThresholdOptimizer: thresholds by group, drawn at random between two."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.methods.agarwal import no_fairlearn
from benchmarks.methods.base import Candidate, Method, learner, stopwatch, with_learner
from benchmarks.objective import Part, Task

NAMES = {
    "SP": "demographic_parity",
    "FPR": "false_positive_rate_parity",
    "FNR": "false_negative_rate_parity",
}


class _Doubles(ClassifierMixin, BaseEstimator):
    """A fitted learner whose scores are doubles: fairlearn cannot do with those of XGBoost."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(self.model.predict_proba(X), dtype=float)


class Threshold(Method):
    name = "fairlearn ThresholdOptimizer"
    about = "thresholds fitted on the training or on the validation part; tol over eps, eps/2, none"
    needs_group = True
    randomised = True
    metrics = tuple(NAMES)
    many_groups = True

    def missing(self) -> str | None:
        return no_fairlearn()

    def candidates(self, task: Task) -> Iterator[Candidate]:
        with stopwatch() as seconds:
            model = _Doubles(learner(task).fit(task.train.X, task.train.y))
            once: float | None = seconds()
        for where, part in (("validation", task.validation), ("training", task.train)):
            for tol in (task.goal.eps, task.goal.eps / 2, None):
                with stopwatch() as seconds:
                    fitted = self._fit(model, part, task, tol)
                    taken = seconds()
                settings = {"fitted on": where, "tol": tol}
                candidate = self._candidate(fitted, model, settings, taken, task.seed)
                yield candidate if once is None else with_learner(candidate, once)
                once = None

    @staticmethod
    def _fit(model: Any, part: Part, task: Task, tol: float | None) -> Any:
        from fairlearn.postprocessing import ThresholdOptimizer

        optimizer = ThresholdOptimizer(
            estimator=model,
            constraints=NAMES[task.goal.only],
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
            tol=tol,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optimizer.fit(part.X, part.y, sensitive_features=part.group)

    @staticmethod
    def _candidate(
        fitted: Any, model: Any, settings: dict[str, Any], taken: float, seed: int
    ) -> Candidate:
        return Candidate(
            settings,
            lambda rows: fitted.predict(rows.X, sensitive_features=rows.group, random_state=seed),
            taken,
            0,
            lambda rows: fitted._pmf_predict(rows.X, sensitive_features=rows.group)[:, 1],
        )
