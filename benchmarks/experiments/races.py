"""Experiment 6: statistical parity over three races."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks import paper
from benchmarks.aims import Aim, not_run
from benchmarks.experiments.common import JUDGED, method_of, points, task_for
from benchmarks.experiments.frontier import mean_curve
from benchmarks.methods import METHODS
from benchmarks.objective import Form, Goal
from benchmarks.store import Cell, Record
from benchmarks.tables import by, draw_curves, figure, mean, reasons, spread, table

NUMBER = 6
TITLE = "SP over three races (COMPAS, LR): the largest pairwise gap against accuracy"
# Counts divided and stored in six digits.
EXACT = 0.03 + 1e-6
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
    plain = _plain(records)
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
                    spread(drops, "+.2f"),
                    f"{mean(validation):.3f}",
                    spread(gaps, ".3f"),
                    f"{sum(p['met'] for p, _, _ in at)}/{len(at)}",
                ]
            )

    def draw(axis: Any) -> None:
        draw_curves(axis, curves)
        axis.set_xlabel("largest gap of selection rates on the test part")
        axis.set_ylabel("accuracy")

    heads = ["method", "accuracy drop (points)", "validation gap", "test gap", "met"]
    return "\n\n".join(
        [
            paper.RACES,
            figure("races", [("COMPAS, three races", draw)]),
            "At eps = 0.03:",
            table(heads, rows),
            *(aim.text for aim in aims(records)),
            reasons(records),
        ]
    )


ASKED = "{}: a largest gap over the three races of at most 0.03 at an accuracy loss below 2 points"


def aims(records: list[Record]) -> list[Aim]:
    """Of each of the judged."""
    return [aim for judged in JUDGED for aim in _aims(records, judged)]


def _aims(records: list[Record], judged: str) -> list[Aim]:
    """On the validation part at eps = 0.03; on the test part, at the largest bound that does."""
    plain = _plain(records)
    found: dict[float, list[tuple[float, float, float]]] = {}
    for r in records:
        seed = r["cell"]["seed"]
        if r["cell"]["method"] == judged and seed in plain:
            for p in r["result"].get("points", []):
                loss = 100 * (plain[seed] - p["accuracy"])
                gaps = (p["validation_gaps"]["SP"], p["gaps"]["SP"])
                found.setdefault(p["eps"], []).append((*gaps, loss))
    wheres = ("validation, eps = 0.03", "test, at some eps")
    asked = [f"{ASKED.format(judged)} ({where})" for where in wheres]
    if 0.03 not in found:
        return [not_run(text) for text in asked]
    means = {eps: [mean(list(c)) for c in zip(*v, strict=True)] for eps, v in found.items()}
    splits = len(found[0.03])
    held, tested, loss = means[0.03]
    first = Aim(
        asked[0],
        f"a gap of {held:.3f} (test: {tested:.3f}) at a loss of {loss:.2f} points, over {splits} "
        "split(s)",
        held <= EXACT and loss < 2,
    )
    good = {eps: v for eps, v in means.items() if v[1] <= EXACT and v[2] < 2}
    eps = max(good) if good else min(means, key=lambda e: means[e][1])
    second = Aim(
        asked[1],
        f"at eps = {eps:g} a test gap of {means[eps][1]:.3f} at a loss of {means[eps][2]:.2f} "
        "points",
        bool(good),
    )
    return [first, second]


def _plain(records: list[Record]) -> dict[int, float]:
    return {
        r["cell"]["seed"]: r["result"]["points"][0]["accuracy"]
        for r in records
        if r["cell"]["method"] == "no constraint" and "points" in r["result"]
    }
