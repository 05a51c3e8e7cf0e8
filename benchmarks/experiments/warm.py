"""Experiment 5: what a warm start of the learner saves."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.experiments.common import DATASETS, task_for
from benchmarks.learners import make
from benchmarks.methods.base import stopwatch
from benchmarks.methods.omnifair_base import constraints
from benchmarks.objective import Form, Goal, judge
from benchmarks.store import Cell, Record
from benchmarks.tables import by, mean, percent, table

NUMBER = 5
TITLE = "Warm start of LR on and off (SP, eps = 0.03)"
ALONE = True
STRATEGIES = ("default", "PaperSearch")


def cells(form: Form) -> list[Cell]:
    return [
        {"dataset": d, "learner": "LR", "strategy": strategy, "warm": warm, "seed": seed}
        for seed in form.seeds[:5]
        for d in DATASETS
        for strategy in STRATEGIES
        for warm in (False, True)
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    from omnifair import FairClassifier, PaperSearch

    task, test = task_for(cell, Goal((("SP", 0.03),)), form)
    part = task.validation
    known = "warm_start" in inspect.signature(FairClassifier).parameters
    if cell["warm"] and not known:
        return {"reason": "NA: this version of omnifair has no warm start"}
    keywords = {"warm_start": cell["warm"]} if known else {}
    taken = []
    for _ in range(3):
        model = FairClassifier(
            make("LR", task.settings),
            constraints(task.goal),
            strategy=PaperSearch() if cell["strategy"] == "PaperSearch" else None,
            validation=(part.X, part.y, {"group": part.group}),
            on_infeasible="closest",
            random_state=cell["seed"],
            **keywords,
        )
        with warnings.catch_warnings(), stopwatch() as seconds:
            warnings.simplefilter("ignore")
            model.fit(task.train.X, task.train.y, sensitive_features={"group": task.train.group})
            taken.append(seconds())
    tested = judge(test, model.predict(test.X))
    return {
        "seconds": float(np.median(taken)),
        "trainings": int(model.report().trainings),
        "accuracy": tested.accuracy,
        "gap": tested.gaps["SP"],
    }


def section(records: list[Record]) -> str:
    rows = []
    for (dataset, strategy), group in by(records, "dataset", "strategy").items():
        halves = {
            warm: [
                r["result"] for r in group if r["cell"]["warm"] is warm and "seconds" in r["result"]
            ]
            for warm in (False, True)
        }
        if not all(halves.values()):
            reasons = [r["result"]["reason"] for r in group if "reason" in r["result"]]
            rows.append([dataset, strategy, *[""] * 5, (reasons or ["not finished"])[0]])
            continue
        cold, warm = (mean([r["seconds"] for r in halves[k]]) for k in (False, True))
        trainings = [f"{mean([r['trainings'] for r in halves[k]]):.1f}" for k in (False, True)]
        accuracy = [percent(mean([r["accuracy"] for r in halves[k]])) for k in (False, True)]
        known = paper.WARM[dataset]
        rows.append(
            [
                dataset,
                strategy,
                f"{cold:.3f}",
                f"{warm:.3f}",
                f"{cold / warm:.1f}x",
                " / ".join(trainings),
                " / ".join(accuracy),
                f"{known[0]} s, {known[1]} s, {known[2]}x",
            ]
        )
    heads = ["data set", "search", "cold (s)", "warm (s)", "speed-up", "trainings", "accuracy"]
    return table([*heads, "paper"], rows)
