"""Experiment 6: statistical parity over three races."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks import paper
from benchmarks.experiments.common import method_of, points, task_for
from benchmarks.experiments.frontier import mean_curve
from benchmarks.methods import METHODS
from benchmarks.objective import Form, Goal
from benchmarks.store import Cell, Record
from benchmarks.tables import by, figure, mean, reasons, se, style, table

NUMBER = 6
TITLE = "SP over three races (COMPAS, LR): the largest pairwise gap against accuracy"
EPS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)


def cells(form: Form) -> list[Cell]:
    return [
        {"dataset": "compas3", "learner": "LR", "metric": "SP", "method": method, "seed": seed}
        for seed in form.seeds
        for method in METHODS
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    values = (0.03, 0.1) if form.few else EPS
    goals = [Goal((("SP", eps),)) for eps in values]
    task, test = task_for(cell, goals[0], form)
    return points(method_of(cell), replace(task, limit=0.4 * task.limit), test, goals)


def section(records: list[Record]) -> str:
    plain = {
        r["cell"]["seed"]: r["result"]["points"][0]["accuracy"]
        for r in records
        if r["cell"]["method"] == "no constraint" and "points" in r["result"]
    }
    curves, rows = {}, []
    for (method,), group in by(records, "method").items():
        curve = mean_curve(group, "SP", "accuracy")
        if curve:
            curves[method] = curve
        at = [
            (p, plain[r["cell"]["seed"]], r)
            for r in group
            for p in r["result"].get("points", [])
            if p["eps"] == 0.03 and r["cell"]["seed"] in plain
        ]
        if at:
            drops = [100 * (p["accuracy"] - base) for p, base, _ in at]
            gaps = [p["gaps"]["SP"] for p, _, _ in at]
            validation = [p["validation_gaps"]["SP"] for p, _, _ in at]
            rows.append(
                [
                    method,
                    f"{mean(drops):+.2f} ± {se(drops):.2f}",
                    f"{mean(validation):.3f}",
                    f"{mean(gaps):.3f} ± {se(gaps):.3f}",
                    f"{sum(p['met'] for p, _, _ in at)}/{len(at)}",
                ]
            )

    def draw(axis: Any) -> None:
        for method, curve in curves.items():
            x, y = zip(*sorted(curve), strict=True)
            axis.plot(x, y, label=method, **style(method))
        axis.set_xlabel("largest gap of selection rates on the test part")
        axis.set_ylabel("accuracy")

    heads = ["method", "accuracy drop (points)", "validation gap", "test gap", "met"]
    return "\n\n".join(
        [
            paper.RACES,
            figure("races", [("COMPAS, three races", draw)]),
            "At eps = 0.03 (aim: a largest gap of 0.03 at a loss below 2 points):",
            table(heads, rows),
            reasons(records),
        ]
    )
