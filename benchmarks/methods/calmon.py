"""Calmon et al.: AIF360's OptimPreproc on the coarse features that it publishes options for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.learners import make
from benchmarks.methods.base import Candidate, scores, stopwatch
from benchmarks.methods.kamiran import learner_settings
from benchmarks.methods.peer_base import PeerMethod
from benchmarks.objective import Rows, Task
from benchmarks.peers import Worker


def coarse(dataset: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The few values of each column that AIF360's distortion functions know."""
    if dataset == "adult":
        decade = frame["age"] // 10 * 10
        years = frame["education_num"]
        middle = years.astype(str)
        return pd.DataFrame(
            {
                "Age (decade)": np.where(decade >= 70, ">=70", decade.astype(str)),
                "Education Years": np.where(years <= 5, "<6", np.where(years >= 13, ">12", middle)),
            }
        )
    priors = frame["priors_count"]
    return pd.DataFrame(
        {
            "age_cat": frame["age_cat"].replace({"25 - 45": "25 to 45"}).to_numpy(),
            "priors_count": np.where(
                priors <= 0, "0", np.where(priors <= 3, "1 to 3", "More than 3")
            ),
            "c_charge_degree": frame["c_charge_degree"].to_numpy(),
        }
    )


def dummies(frame: pd.DataFrame, names: list[str]) -> NDArray[np.float64]:
    """The columns ``feature=value`` that the transformed training rows have."""
    columns = [name.split("=", 1) for name in names]
    return np.column_stack([(frame[c] == value).to_numpy(float) for c, value in columns])


class Calmon(PeerMethod):
    name = "AIF360 OptimPreproc"
    about = (
        "epsilon 0.05, 0.02, 0.1; features as coarse as its published distortion functions need; "
        "rows are not remapped at prediction"
    )
    paper = "Calmon et al."
    peer = "aif360"
    script = "aif360_optimpreproc.py"
    bound_free = True

    def reason(self, task: Task) -> str | None:
        if task.dataset not in ("adult", "compas"):
            return "NA(1): its distortion functions are published for Adult and COMPAS only"
        return super().reason(task)

    def settings(self, task: Task) -> list[dict[str, Any]]:
        values = (0.05,) if task.short else (0.05, 0.02, 0.1)
        return [{"dataset": task.dataset, "epsilon": value} for value in values]

    def arrays(self, task: Task) -> dict[str, NDArray[Any]]:
        frame = coarse(task.dataset, task.train.frame)
        columns = {
            "columns": np.array(list(frame.columns)),
            "coarse": frame.to_numpy().astype(str),
        }
        return {**super().arrays(task), **columns}

    def candidates(self, task: Task) -> Iterator[Candidate]:
        for found in self.fitted(task, Worker("aif360", self.script)):
            names = [str(name) for name in found.arrays["names"]]
            for settings in learner_settings(task):
                with stopwatch() as seconds:
                    model = make(task.learner, settings)
                    model.fit(found.arrays["X"], found.arrays["y"].astype(int))
                    taken = seconds()
                both = {"epsilon": found.settings["epsilon"], **settings}
                yield _candidate(task.dataset, model, names, both, found.seconds + taken)


def _candidate(
    dataset: str, model: Any, names: list[str], settings: dict[str, Any], taken: float
) -> Candidate:
    def matrix(rows: Rows) -> NDArray[np.float64]:
        return dummies(coarse(dataset, rows.frame), names)

    return Candidate(
        settings,
        lambda rows: model.predict(matrix(rows)),
        taken,
        1,
        lambda rows: scores(model, matrix(rows)),
    )
