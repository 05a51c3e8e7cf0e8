"""What experiments share: a task for a cell, and points over several bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.methods import METHODS, Method
from benchmarks.objective import Form, Goal, Task, task_of
from benchmarks.store import Cell
from benchmarks.tuning import Tuned, learner_settings, result, split_of, table_of, tune

# Of ours, those held against the figures: the default, which returns the user's own learner, and
# the most accurate strategy.
JUDGED = ("omnifair", "omnifair BestOf")
DATASETS = ("adult", "compas", "lsac", "bank")


def task_for(cell: Cell, goal: Goal, form: Form) -> tuple[Task, Any]:
    """The task of a cell, and its test part, which stays with the harness."""
    split = split_of(cell["dataset"], cell["seed"], form.max_rows)
    settings = learner_settings(cell["dataset"], cell["learner"], cell["seed"], form)
    sensitive = table_of(cell["dataset"]).sensitive
    return task_of(split, sensitive, cell["learner"], settings, goal, form), split.test


def method_of(cell: Cell) -> Method:
    """The method that a cell names."""
    return METHODS[cell["method"]]


def points(method: Method, task: Task, test: Any, goals: list[Goal]) -> dict[str, Any]:
    """The method at each bound, chosen from what it fitted for any of the bounds."""
    reason = method.reason(task.aiming(goals[0]))
    if reason is not None:
        return {"reason": reason}
    pooled = replace(task, pooled=True)
    if method.bound_free:  # fitted once, it may take as long as others take for all bounds
        runs = [tune(method, replace(pooled, limit=task.limit * len(goals)).aiming(goals[0]))]
    else:
        runs = [tune(method, pooled.aiming(goal)) for goal in goals]
    why = next((run.why for run in runs if run.why), None)
    pool = Tuned(tuple(tried for run in runs for tried in run.tried), why)
    if not pool.tried:
        return {"reason": why or "NA: it fitted nothing"}
    found = [{"eps": goal.eps, **result(method, pool, goal, test)} for goal in goals]
    return {"points": found, "note": why}
