"""What experiments share: a task for a cell, and points over several bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.methods import METHODS, Method
from benchmarks.objective import Form, Goal, Task, task_of
from benchmarks.store import Cell
from benchmarks.tuning import Tuned, learner_settings, result, split_of, table_of, tune

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
    """The method at each bound: tuned for it, or chosen from one fit that serves all bounds."""
    reason = method.reason(task.aiming(goals[0]))
    if reason is not None:
        return {"reason": reason}
    found: list[dict[str, Any]] = []
    why: str | None = None
    kept: Tuned | None = None
    # A method that is fitted once may take as long as the others take for all bounds.
    free = replace(task, limit=task.limit * len(goals))
    for goal in goals:
        if method.bound_free:
            kept = tune(method, free.aiming(goal)) if kept is None else kept
            tuned = kept
        else:
            tuned = tune(method, task.aiming(goal))
        if tuned.tried:
            found.append({"eps": goal.eps, **result(method, tuned, goal, test)})
        else:
            why = tuned.why
    if not found:
        return {"reason": why or "NA: it fitted nothing"}
    return {"points": found, "note": why}
