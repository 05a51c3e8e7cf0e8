"""Experiment 7: SP and FNR together, against grid search."""

from __future__ import annotations

from typing import Any

from benchmarks import paper
from benchmarks.aims import Aim, not_run
from benchmarks.experiments.common import task_for
from benchmarks.methods import GRID, METHODS
from benchmarks.objective import Form, Goal
from benchmarks.store import Cell, Record
from benchmarks.tables import by, mean, percent, reasons, table
from benchmarks.tuning import run as run_method

NUMBER = 7
TITLE = "SP and FNR together (COMPAS, LR)"
EPS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06)
NAMES = (*METHODS, GRID.name)


def cells(form: Form) -> list[Cell]:
    return [
        {"dataset": "compas", "learner": "LR", "method": method, "eps": eps, "seed": seed}
        for seed in form.seeds
        for eps in ((0.02, 0.04, 0.06) if form.few else EPS)
        for method in NAMES
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    goal = Goal((("SP", cell["eps"]), ("FNR", cell["eps"])))
    task, test = task_for(cell, goal, form)
    method = GRID if cell["method"] == GRID.name else METHODS[cell["method"]]
    return run_method(method, task, test)


def section(records: list[Record]) -> str:
    rows = []
    for (eps, method), group in sorted(
        by(records, "eps", "method").items(), key=lambda item: (item[0][0], NAMES.index(item[0][1]))
    ):
        done = [r["result"] for r in group if "accuracy" in r["result"]]
        if not done:
            continue
        met = [r for r in done if r["met"]]
        shown = ["N/A", "N/A", "N/A"]
        if met:
            shown = [
                percent(mean([r["accuracy"] for r in met])),
                f"{mean([r['gaps']['SP'] for r in met]):.3f}",
                f"{mean([r['gaps']['FNR'] for r in met]):.3f}",
            ]
        known = paper.BOTH.get(eps, ("",) * 3) if method == "omnifair" else ("",) * 3
        if method == "no constraint":
            shown = [
                percent(mean([r["accuracy"] for r in done])),
                *(f"{mean([r['gaps'][m] for r in done]):.3f}" for m in ("SP", "FNR")),
            ]
            known = paper.BOTH_PLAIN
        trainings = mean([r["trainings"] for r in done])
        seconds = mean([r["seconds"] for r in done])
        found = f"{len(met)}/{len(group)}"
        published = ", ".join(known).strip(", ")
        row = [eps, method, *shown, found, f"{trainings:.0f}", f"{seconds:.2f}", published]
        rows.append(row)
    heads = ["eps", "method", "accuracy", "gap of SP", "gap of FNR", "found", "trainings", "s"]
    grid = [[eps, f"{g}, {gs} s", f"{h}, {hs} s"] for eps, (g, h, gs, hs) in paper.GRID.items()]
    return "\n\n".join(
        [
            "Accuracy and gaps on the test part, the mean over the splits in which a model met "
            "both bounds on validation (*found*); N/A where none did.",
            table([*heads, "paper: accuracy, SP, FNR"], rows),
            *(aim.text for aim in aims(records)),
            "The paper's comparison with grid search (a model found, seconds):",
            table(["eps", "grid", "hill climbing"], grid),
            reasons(records),
        ]
    )


ASKED = (
    "SP and FNR together: feasible wherever grid search is",
    "SP and FNR together: at most a fifth of the trainings of grid search",
)


def aims(records: list[Record]) -> list[Aim]:
    """What is found, and in how many trainings, against grid search."""
    lost, won, both, shares = [], 0, 0, []
    for (eps, seed), group in by(records, "eps", "seed").items():
        results = {r["cell"]["method"]: r["result"] for r in group}
        own, grid = results.get("omnifair", {}), results.get(GRID.name, {})
        if "met" not in own or "met" not in grid:
            continue
        shares.append(own["trainings"] / grid["trainings"])
        both += grid["met"]
        won += own["met"] and not grid["met"]
        if grid["met"] and not own["met"]:
            lost.append(f"eps {eps}, split {seed}: grid search found a model, omnifair none")
    if not shares:
        return [not_run(text) for text in ASKED]
    found = f"{both - len(lost)} of the {both} tasks that grid search solves, and {won} others"
    share = mean(shares)
    return [
        Aim(ASKED[0], found, not lost, tuple(lost)),
        Aim(ASKED[1], f"{share:.3f} of them (at most {max(shares):.3f})", share <= 0.2),
    ]
