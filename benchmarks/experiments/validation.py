"""Experiment 2: how large the validation part has to be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.experiments.common import method_of, task_for
from benchmarks.objective import Form, Goal
from benchmarks.store import Cell, Record
from benchmarks.tables import by, figure, mean, percent, reasons, spread, style, table
from benchmarks.tuning import run as run_method

NUMBER = 2
TITLE = "Size of the validation part (COMPAS, LR, SP, eps = 0.03)"
EPS = 0.03
METHODS = ("no constraint", "omnifair", "omnifair PlugIn", "omnifair PaperSearch")
PEERS = ("fairlearn ExponentiatedGradient", "fairlearn GridSearch")


def cells(form: Form) -> list[Cell]:
    shares = (0.1, 0.5, 1.0) if form.few else (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    seeds = (0, 1, 2) if form.name == "quick" else form.seeds
    return [
        {"dataset": "compas", "learner": "LR", "method": method, "share": share, "seed": seed}
        for seed in seeds
        for share in shares
        for method in METHODS + PEERS
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    task, test = task_for(cell, Goal((("SP", EPS),)), form)
    rows = len(task.validation)
    random = np.random.default_rng(cell["seed"])
    keep = np.sort(random.permutation(rows)[: max(20, round(cell["share"] * rows))])
    small = replace(task, validation=task.validation.take(keep))
    return {**run_method(method_of(cell), small, test), "rows": len(keep)}


def section(records: list[Record]) -> str:
    rows = []
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for (method, _), group in by(records, "method", "share").items():
        done = [r["result"] for r in group if "accuracy" in r["result"]]
        if not done:
            continue
        gaps = [r["gaps"]["SP"] for r in done]
        accuracy = mean([r["accuracy"] for r in done])
        size = round(mean([r["rows"] for r in done]))
        met = f"{sum(r['met'] for r in done)}/{len(group)}"
        rows.append([method, size, percent(accuracy), spread(gaps, ".3f"), met])
        curves.setdefault(method, []).append((size, accuracy, mean(gaps)))

    def draw(axis: Any, column: int) -> None:
        for method, values in curves.items():
            x, *ys = zip(*sorted(values), strict=True)
            axis.plot(x, ys[column], label=method, **style(method))
        axis.set_xlabel("rows of the validation part")

    panels = [
        ("accuracy on the test part", lambda axis: draw(axis, 0)),
        ("gap of selection rates on the test part", lambda axis: draw(axis, 1)),
    ]
    heads = ["method", "validation rows", "test accuracy", "test gap", "met"]
    return "\n\n".join(
        [paper.VALIDATION, figure("validation", panels), table(heads, rows), reasons(records)]
    )
