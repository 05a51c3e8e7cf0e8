"""Experiment 3: accuracy against unfairness over the whole range of the bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import paper
from benchmarks.aims import Aim, not_run
from benchmarks.experiments.common import JUDGED, method_of, points, task_for
from benchmarks.methods import METHODS
from benchmarks.objective import Form, Goal
from benchmarks.store import Cell, Record
from benchmarks.tables import by, draw_curves, figure, mean, reasons, se, table

NUMBER = 3
TITLE = "Accuracy against fairness over the whole range of eps"
EPS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.16, 0.2)
MEDIUM_EPS = (0.01, 0.03, 0.06, 0.12)
QUICK_EPS = (0.01, 0.03, 0.1)
PANELS = (
    ("adult", "LR", "SP"),
    ("adult", "RF", "SP"),
    ("compas", "LR", "SP"),
    ("compas", "RF", "SP"),
    ("compas", "XGB", "SP"),
    ("lsac", "LR", "SP"),
    ("lsac", "RF", "SP"),
    ("lsac", "XGB", "SP"),
    ("adult", "LR", "FDR"),
    ("compas", "LR", "FDR"),
    ("lsac", "LR", "FDR"),
    ("adult", "LR", "AEC"),
    ("compas", "LR", "AEC"),
    ("lsac", "LR", "AEC"),
    # Not in the paper: a metric that FairGBM bounds.
    ("adult", "XGB", "FNR"),
)
QUICK_PANELS = (
    ("adult", "LR", "SP"),
    ("compas", "LR", "FDR"),
    ("adult", "XGB", "FNR"),
)
# A bound is one of many here, so each has a part of the time of experiment 1.
SHARE = 0.4


def cells(form: Form) -> list[Cell]:
    return [
        {"dataset": d, "learner": learner, "metric": metric, "method": method, "seed": seed}
        for seed in form.seeds
        for d, learner, metric in (QUICK_PANELS if form.few else PANELS)
        for method in METHODS
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    values = QUICK_EPS if form.few else MEDIUM_EPS if form.short else EPS
    goals = [Goal(((cell["metric"], eps),)) for eps in values]
    task, test = task_for(cell, goals[0], form)
    return points(method_of(cell), replace(task, limit=SHARE * task.limit), test, goals)


# -- the section -------------------------------------------------------------------------------


def area(found: list[tuple[float, float]], width: float, floor: float) -> float:
    """The mean over gaps in [0, width] of the best accuracy at that gap or less, on a fine grid.

    ``floor`` counts where nothing reaches so small a gap: the accuracy of one decision for all.
    """
    grid = (np.arange(400) + 0.5) / 400 * width
    best = np.full(len(grid), floor)
    for gap, accuracy in found:
        best = np.where(grid >= gap, np.maximum(best, accuracy), best)
    return float(best.mean())


def measured(record: Record, metric: str) -> list[tuple[float, float]]:
    """(gap, accuracy) on the test part at every bound."""
    return [
        (p["gaps"][metric], p["accuracy"])
        for p in record["result"].get("points", [])
        if p["gaps"][metric] is not None
    ]


def areas(records: list[Record]) -> dict[tuple[str, str, str, str], dict[int, float]]:
    """The area under each method's frontier, by panel and method, then by split.

    Every method is given the plain model and one decision for all as well, which all could
    return, and none gets more than the plain model's gap: what is compared is the range in which
    a bound costs something.
    """
    found: dict[tuple[str, str, str, str], dict[int, float]] = {}
    for (dataset, learner, metric, seed), group in by(
        records, "dataset", "learner", "metric", "seed"
    ).items():
        plain = [r for r in group if r["cell"]["method"] == "no constraint"]
        start = measured(plain[0], metric) if plain else []
        if not start:
            continue
        floor = plain[0]["result"]["points"][0]["majority"]
        for record in group:
            name = record["cell"]["method"]
            own = measured(record, metric)
            if own and name != "no constraint":
                value = area(own + start, start[0][0], floor)
                found.setdefault((dataset, learner, metric, name), {})[seed] = value
    return found


def section(records: list[Record]) -> str:
    shown = [p for p in PANELS if any(_is(r, p) for r in records)]
    drawn = [_panel(records, panel, "accuracy") for panel in shown]
    if ("adult", "LR", "SP") in shown:
        drawn.append(_panel(records, ("adult", "LR", "SP"), "auc"))
    values = areas(records)
    methods = [m for m in METHODS if any(key[3] == m for key in values)]
    rows = []
    for panel in shown:
        row = [" ".join(panel)]
        for method in methods:
            theirs = values.get((*panel, method), {})
            row.append(f"{100 * mean(list(theirs.values())):.2f}" if theirs else "NA")
        rows.append(row)
    text = [
        paper.FRONTIER,
        "At each bound, a method's model is chosen on validation from all that it fitted for any "
        "of the bounds.",
        figure("frontier", drawn),
        "(Points more than 0.06 below the highest are outside of the figures.) Curves and areas "
        "are means over the splits that a method was run on, and not all were run on the same; "
        "what is judged below compares two methods on the splits that both have.",
        "Area under the frontier: the mean, over gaps from 0 to the plain model's, of the best "
        "accuracy (in %) among a method's models of that test gap or less. The plain model and "
        "the same decision for everybody (a gap of 0) count for all.",
        table(["panel", *methods], rows),
        *(aim.text for aim in aims(records)),
    ]
    return "\n\n".join([*text, reasons(records)])


ASKED = (
    "the area under {}'s frontier is at least that of every peer's on each panel, within two "
    "standard errors over splits"
)


def aims(records: list[Record]) -> list[Aim]:
    """On how many panels no peer is ahead of each of the judged."""
    values = areas(records)
    return [aim for own in JUDGED for aim in _aims(values, own)]


def _aims(values: dict[tuple[str, str, str, str], dict[int, float]], judged: str) -> list[Aim]:
    """Of the peers that need no group, and of all."""
    panels = [p for p in PANELS if (*p, judged) in values]
    found: list[Aim] = []
    asked = ASKED.format(judged)
    for text, group in ((f"{asked} (peers that need no group)", False), (f"{asked} (all)", True)):
        ahead = {panel: _ahead(values, judged, panel, needs_group=group) for panel in panels}
        won = sum(not lines for lines in ahead.values())
        splits = {len(values[(*p, judged)]) for p in panels}
        whole = len(panels) == len(PANELS)
        kept = False if won < len(panels) else True if whole else None
        reached = f"{won} of {len(panels)} panels, over {min(splits, default=0)} split(s)"
        # Those that need no group were named before.
        named = {line for aim in found for line in aim.beaten}
        lines = tuple(line for lines in ahead.values() for line in lines if line not in named)
        found.append(Aim(text, reached, kept, lines) if panels else not_run(text))
    return found


def _ahead(
    values: dict[tuple[str, str, str, str], dict[int, float]],
    judged: str,
    panel: tuple[str, str, str],
    *,
    needs_group: bool,
) -> list[str]:
    """A line for each peer whose area is larger than that of the judged by more than the noise."""
    lines = []
    ours = values[(*panel, judged)]
    for name, method in METHODS.items():
        theirs = values.get((*panel, name), {})
        both = sorted(set(ours) & set(theirs))
        if method.ours or not both or (method.needs_group and not needs_group):
            continue
        apart = [100 * (theirs[seed] - ours[seed]) for seed in both]
        if mean(apart) > max(2 * se(apart), 0.005):
            noise = f" ± {se(apart):.2f}" if len(both) > 1 else " (one split)"
            group = " (needs the group)" if method.needs_group else ""
            lines.append(
                f"{' '.join(panel)}: {name}{group} is ahead of {judged} by {mean(apart):.2f}{noise}"
            )
    return lines


def _is(record: Record, panel: tuple[str, str, str]) -> bool:
    cell = record["cell"]
    return (cell["dataset"], cell["learner"], cell["metric"]) == panel


def _panel(records: list[Record], panel: tuple[str, str, str], value: str) -> tuple[str, Any]:
    metric = panel[2]
    curves = {
        method: curve
        for (method,), group in by([r for r in records if _is(r, panel)], "method").items()
        if (curve := mean_curve(group, metric, value))
    }

    def draw(axis: Any) -> None:
        draw_curves(axis, curves)
        axis.set_xlabel(f"gap of {metric} on the test part")
        axis.set_ylabel({"accuracy": "accuracy", "auc": "ROC AUC"}[value])

    return f"{' '.join(panel)}{' (ROC AUC)' if value == 'auc' else ''}", draw


def mean_curve(group: list[Record], metric: str, value: str) -> list[tuple[float, float]]:
    """(gap, value) at each bound, each the mean over splits."""
    found: dict[float, list[tuple[float, float]]] = {}
    for record in group:
        for p in record["result"].get("points", []):
            if p["gaps"][metric] is not None and p.get(value) is not None:
                found.setdefault(p["eps"], []).append((p["gaps"][metric], p[value]))
    return [(mean([g for g, _ in v]), mean([a for _, a in v])) for v in found.values()]
