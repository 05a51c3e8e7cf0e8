"""Experiment 4: running time, as multiples of one plain fit in the same run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.experiments.common import DATASETS, method_of, task_for
from benchmarks.methods import METHODS
from benchmarks.methods.base import learner
from benchmarks.objective import Form, Goal, Task
from benchmarks.store import Cell, Record
from benchmarks.tables import by, figure, reasons, table
from benchmarks.tuning import run as run_method

NUMBER = 4
TITLE = "Running time with LR, as multiples of one plain fit"
ALONE = True
METRICS = ("SP", "FDR")
EPS = 0.03


def cells(form: Form) -> list[Cell]:
    datasets = ("compas",) if form.few else DATASETS
    return [
        {"dataset": d, "learner": "LR", "metric": metric, "method": method, "seed": seed}
        for seed in form.seeds[:3]
        for d in datasets
        for metric in METRICS
        for method in METHODS
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    task, test = task_for(cell, Goal(((cell["metric"], EPS),)), form)
    before = plain_seconds(task)
    result = run_method(method_of(cell), task, test)
    return {**result, "plain_seconds": min(before, plain_seconds(task))}


def plain_seconds(task: Task) -> float:
    """The median time of a plain fit: at least 5 fits, half a second of them if they are short."""
    taken: list[float] = []
    while len(taken) < 5 or (sum(taken) < 0.5 and len(taken) < 50):
        start = time.perf_counter()
        learner(task).fit(task.train.X, task.train.y)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def multiples(records: list[Record]) -> dict[tuple[str, str, str], tuple[float, float, Any, Any]]:
    """By (dataset, metric, method): multiples for one setting and for the grid, and trainings."""
    found = {}
    for name, group in by(records, "dataset", "metric", "method").items():
        done = [r["result"] for r in group if "seconds" in r["result"]]
        if done:
            found[name] = (
                float(np.median([r["seconds_once"] / r["plain_seconds"] for r in done])),
                float(np.median([r["seconds"] / r["plain_seconds"] for r in done])),
                done[0]["trainings_once"],
                done[0]["trainings"],
            )
    return found


def section(records: list[Record]) -> str:
    found = multiples(records)
    panels = sorted({(d, metric) for d, metric, _ in found}, key=lambda p: (p[1] != "SP", p))
    rows = []
    for method in METHODS:
        cells_here = [found.get((*panel, method)) for panel in panels]
        if any(cells_here):
            rows.append([method, *(_text(cell) for cell in cells_here)])
    heads = ["method", *(f"{d} {metric}" for d, metric in panels)]
    text = [
        paper.TIME,
        "Each cell: the time of one run at one setting (trainings of the learner), then that of "
        "its whole grid, both in plain fits of the same run. Peers in an environment of their own "
        "are timed inside it, without its start.",
        figure("time", [(f"{d}, {metric}", _bars(found, d, metric)) for d, metric in panels]),
        table(heads, rows),
        _verdict(found),
        reasons(records),
    ]
    return "\n\n".join(text)


def _text(cell: tuple[float, float, Any, Any] | None) -> str:
    if cell is None:
        return "NA"
    once, whole, count, total = cell
    if count == total:
        return f"{once:.1f} ({count})"
    return f"{once:.1f} ({count}); {whole:.1f} ({total})"


def _bars(found: dict[tuple[str, str, str], Any], dataset: str, metric: str) -> Any:
    values = [(m, found[dataset, metric, m][0]) for m in METHODS if (dataset, metric, m) in found]

    def draw(axis: Any) -> None:
        names = [m for m, _ in values][::-1]
        colours = ["black" if m.startswith("omnifair") else "C0" for m in names]
        axis.barh(names, [v for _, v in values][::-1], color=colours)
        axis.set_xscale("log")
        axis.set_xlabel("plain fits")

    return draw


def _verdict(found: dict[tuple[str, str, str], Any]) -> str:
    own = {key[:2]: v[0] for key, v in found.items() if key[2] == "omnifair" and key[1] == "SP"}
    theirs = {
        key[:2]: v[0] for key, v in found.items() if key[2] == "fairlearn ExponentiatedGradient"
    }
    both = [theirs[k] / own[k] for k in own if k in theirs]
    if not both:
        return ""
    return (
        f"SP, one setting: omnifair takes {np.median(list(own.values())):.1f} plain fits (median "
        f"over data sets; aim: 5 at most); fairlearn's ExponentiatedGradient takes "
        f"{np.median(both):.1f} times as long as omnifair (aim: 8 at least)."
    )
