"""Experiment 4: running time, as multiples of one plain fit in the same run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.aims import Aim, not_run
from benchmarks.experiments.common import DATASETS, method_of, task_for
from benchmarks.methods import METHODS
from benchmarks.methods.base import learner, stopwatch
from benchmarks.objective import Form, Goal, Task
from benchmarks.store import Cell, Record
from benchmarks.tables import by, figure, reasons, table
from benchmarks.tuning import run as run_method

NUMBER = 4
TITLE = "Running time with LR, as multiples of one plain fit"
ALONE = True
# A plain fit of a part of the rows takes a few milliseconds: too little to be a measure.
ALL_ROWS = True
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
    form = form if form.few else replace(form, max_rows=None)
    task, test = task_for(cell, Goal(((cell["metric"], EPS),)), form)
    before = plain_seconds(task)
    result = run_method(method_of(cell), task, test)
    return {**result, "plain_seconds": min(before, plain_seconds(task))}


def plain_seconds(task: Task) -> float:
    """The median time of a plain fit: at least 5 fits, half a second of them if they are short."""
    taken: list[float] = []
    while len(taken) < 5 or (sum(taken) < 0.5 and len(taken) < 50):
        with stopwatch() as seconds:
            learner(task).fit(task.train.X, task.train.y)
            taken.append(seconds())
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
        "its whole grid, both in plain fits of the same run. Times are those of the process in its "
        "one thread, so that other work on the machine does not count. Peers in an environment of "
        "their own are timed inside it, without its start.",
        figure("time", [(f"{d}, {metric}", _bars(found, d, metric)) for d, metric in panels]),
        table(heads, rows),
        *(aim.text for aim in aims(records)),
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
    shown = {key[2] for key in found if key[1] == metric} - {"no constraint"}
    names = [m for m in METHODS if m in shown][::-1]
    values = [found.get((dataset, metric, m), (float("nan"),))[0] for m in names]

    def draw(axis: Any) -> None:
        colours = ["black" if m == "omnifair" else "0.75" for m in names]
        bars = axis.barh(names, values, color=colours)
        axis.bar_label(
            bars, ["" if np.isnan(v) else f" {v:.0f}" if v >= 10 else f" {v:.1f}" for v in values]
        )
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.set_xscale("log")
        axis.set_xlim(1, 3 * max(2, np.nanmax([v[0] for v in found.values()])))
        axis.set_axisbelow(True)
        axis.set_xlabel("plain fits")

    return draw


FAST = (
    "omnifair is at least 8 times faster than fairlearn's ExponentiatedGradient (SP, one setting, "
    "the median over data sets)"
)
NEAR = "omnifair takes at most 5 times a plain fit (SP, the median over data sets)"


def aims(records: list[Record]) -> list[Aim]:
    """Times against a plain fit and against ExponentiatedGradient."""
    found = multiples(records)
    own = {key[0]: v[0] for key, v in found.items() if key[1:] == ("SP", "omnifair")}
    rival = "fairlearn ExponentiatedGradient"
    theirs = {key[0]: v[0] for key, v in found.items() if key[1:] == ("SP", rival)}
    factors = {d: theirs[d] / own[d] for d in own if d in theirs}
    return [_judged(FAST, factors, 8, at_least=True), _judged(NEAR, own, 5, at_least=False)]


def _judged(asked: str, values: dict[str, float], bound: float, *, at_least: bool) -> Aim:
    if not values:
        return not_run(asked)
    middle = float(np.median(list(values.values())))
    sign = 1 if at_least else -1
    limit = f"asked: {'at least' if at_least else 'at most'} {bound}"
    beaten = tuple(
        f"{d}: {v:.1f} times ({limit})" for d, v in values.items() if sign * v < sign * bound
    )
    each = ", ".join(f"{d} {v:.1f}" for d, v in values.items())
    return Aim(asked, f"{middle:.1f} ({each})", sign * middle >= sign * bound, beaten)
