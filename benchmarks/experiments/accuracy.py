"""Experiment 1: what a gap of selection rates of 0.03 costs in accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import paper
from benchmarks.aims import Aim, not_run
from benchmarks.experiments.common import DATASETS, JUDGED, method_of, task_for
from benchmarks.methods import METHODS
from benchmarks.objective import Form, Goal
from benchmarks.store import Cell, Record
from benchmarks.tables import by, mean, percent, se, table
from benchmarks.tuning import run as run_method

NUMBER = 1
TITLE = "Accuracy drop under statistical parity, eps = 0.03"
EPS = 0.03
LEARNERS = ("LR", "RF", "XGB", "NN")
FEW_LEARNERS = ("LR", "XGB")
# Methods with learners of their own are compared with the plain learner of the column.
HALF = 0.5


def cells(form: Form) -> list[Cell]:
    return [
        {"dataset": dataset, "learner": learner, "method": method, "seed": seed}
        for seed in form.seeds
        for dataset in DATASETS
        for learner in (FEW_LEARNERS if form.few else LEARNERS)
        for method in METHODS
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    task, test = task_for(cell, Goal((("SP", EPS),)), form)
    return run_method(method_of(cell), task, test)


# -- the section -------------------------------------------------------------------------------


def summary(records: list[Record]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """For each (dataset, learner, method): mean drop, gap, share of splits met; or the reason."""
    plain = {
        (r["cell"]["dataset"], r["cell"]["learner"], r["cell"]["seed"]): r["result"]["accuracy"]
        for r in records
        if r["cell"]["method"] == "no constraint" and "accuracy" in r["result"]
    }
    found = {}
    for (dataset, learner, method), group in by(records, "dataset", "learner", "method").items():
        done = [
            (r["cell"]["seed"], r["result"], plain[dataset, learner, r["cell"]["seed"]])
            for r in group
            if "accuracy" in r["result"] and (dataset, learner, r["cell"]["seed"]) in plain
        ]
        if not done:
            reasons = [r["result"]["reason"] for r in group if "reason" in r["result"]]
            if reasons:
                found[dataset, learner, method] = {"reason": max(reasons, key=reasons.count)}
            continue
        drops = {seed: 100 * (result["accuracy"] - base) for seed, result, base in done}
        gaps = {seed: result["gaps"]["SP"] for seed, result, _ in done}
        found[dataset, learner, method] = {
            "drop": mean(list(drops.values())),
            "se": se(list(drops.values())),
            "gap": mean(list(gaps.values())),
            "met": sum(result["met"] for _, result, _ in done),
            "splits": len(group),
            "drops": drops,
            "gaps": gaps,
            "validation": {seed: r.get("validation_accuracy") for seed, r, _ in done},
        }
    return found


def section(records: list[Record]) -> str:
    found = summary(records)
    text = [
        "Accuracy on the test part less that of the plain learner, in points (± standard error "
        "over splits); *gap*: the largest gap of selection rates on the test part; *met*: splits "
        "in which the validation part met the bound. Where fewer than half did, the paper would "
        "print NA(1): the number of the closest model is then in brackets. NA(2): not supported. "
        "The paper's own numbers stand in the columns named *paper*. (G) needs the group at "
        "prediction, (R) draws decisions at random.",
    ]
    for dataset in DATASETS:
        rows = []
        for name, method in METHODS.items():
            if name == "no constraint":
                rows.append([name, *_plain_cells(records, dataset)])
                continue
            marks = "".join(
                m for m, on in (("(G)", method.needs_group), ("(R)", method.randomised)) if on
            )
            row = [f"**{name}**" if name in JUDGED else f"{name} {marks}".strip()]
            for learner in LEARNERS:
                row.append(_text(found.get((dataset, learner, name))))
                row.append(paper.drop(method.paper, dataset, learner))
            rows.append(row)
        heads = ["method", *(h for learner in LEARNERS for h in (learner, "paper"))]
        text += [f"\n**{dataset}**\n", table(heads, rows)]
    text += ["", _notes(found), "", *(aim.text for aim in aims(records))]
    return "\n".join(text)


def _plain_cells(records: list[Record], dataset: str) -> list[str]:
    row = []
    for learner in LEARNERS:
        here = [
            r["result"]
            for r in records
            if r["cell"]["method"] == "no constraint"
            and r["cell"]["dataset"] == dataset
            and r["cell"]["learner"] == learner
            and "accuracy" in r["result"]
        ]
        if here:
            accuracy = percent(mean([r["accuracy"] for r in here]))
            row.append(f"{accuracy}<br>gap {mean([r['gaps']['SP'] for r in here]):.3f}")
        else:
            row.append("not run")
        row.append("")
    return row


def _text(value: dict[str, Any] | None) -> str:
    if value is None:
        return "not run"
    if "reason" in value:
        return str(value["reason"]).split(":")[0]
    text = (
        f"{value['drop']:+.1f} ± {value['se']:.1f}"
        if value["splits"] > 1
        else f"{value['drop']:+.1f}"
    )
    details = f"gap {value['gap']:.3f}, met {value['met']}/{value['splits']}"
    if value["met"] < HALF * value["splits"]:
        return f"NA(1)<br>[{text}<br>{details}]"
    return f"{text}<br>{details}"


def _notes(found: dict[tuple[str, str, str], dict[str, Any]]) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for (dataset, learner, method), value in found.items():
        if "reason" in value:
            reasons.setdefault((method, value["reason"]), []).append(f"{dataset} {learner}")
    lines = [
        f"- {method}: {reason} ({'everywhere' if len(where) == 16 else ', '.join(where)})"
        for (method, reason), where in reasons.items()
    ]
    return "\n".join(["Why a cell is NA:", "", *lines]) if lines else ""


ASKED = (
    "{}'s drop is the smallest, or within 0.1 points of it, at a test gap not larger by more "
    "than 0.005, in at least 13 of the 16 cells (among methods that need no group at prediction "
    "and met the bound on validation in at least half of the splits)"
)


def aims(records: list[Record]) -> list[Aim]:
    """In how many cells each of the judged is the best that needs no group, or close to it."""
    found = summary(records)
    return [_aim(found, own) for own in JUDGED]


def _aim(found: dict[tuple[str, str, str], dict[str, Any]], judged: str) -> Aim:
    asked = ASKED.format(judged)
    cells_here = sorted({(d, learner) for d, learner, method in found if method == judged})
    beaten = [line for where in cells_here for line in _beaten(found, judged, *where)]
    if not cells_here:
        return not_run(asked)
    won = len(cells_here) - len(beaten)
    whole = len(cells_here) == len(DATASETS) * len(LEARNERS)
    splits = {len(found[(*where, judged)].get("drops", ())) for where in cells_here}
    worse = sum(_dominated(found, judged, where) for where in cells_here)
    reached = (
        f"{won} of {len(cells_here)} cells, over {_range(splits)} split(s); in {worse} a rival is "
        "more accurate by more than 0.1 points at a test gap that is not larger by more than "
        f"0.005. Over all cells: {_overall(found, judged, cells_here)}"
    )
    return Aim(asked, reached, won >= 13 if whole else None, tuple(beaten))


def _overall(
    found: dict[tuple[str, str, str], dict[str, Any]],
    judged: str,
    cells_here: list[tuple[str, str]],
) -> str:
    """Against each rival, over the cells and splits that both have: drops and test gaps."""
    theirs: dict[str, list[tuple[float, float, float, float]]] = {}
    for where in cells_here:
        mine = found[(*where, judged)]
        for rival, value, both in _rivals(found, judged, where):
            theirs.setdefault(rival, []).append(
                (
                    mean([mine["drops"][s] for s in both]),
                    mean([mine["gaps"][s] for s in both]),
                    mean([value["drops"][s] for s in both]),
                    mean([value["gaps"][s] for s in both]),
                )
            )
    lines = []
    for rival, values in theirs.items():
        ours, gap, drop, other = (mean([v[k] for v in values]) for k in range(4))
        lines.append(
            f"{ours:+.2f} at a gap of {gap:.3f} against {drop:+.2f} at {other:.3f} of {rival} "
            f"({len(values)} cells)"
        )
    return "; ".join(lines) if lines else "no rival"


def _range(values: set[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _beaten(
    found: dict[tuple[str, str, str], dict[str, Any]], judged: str, *where: str
) -> list[str]:
    """Nothing, or the line that says by what the judged is beaten in a cell of the table."""
    name = " ".join(where)
    own = found[(*where, judged)]
    if "drops" not in own:
        return [f"{name}: {judged} has no result ({own['reason']})"]
    if own["met"] < HALF * own["splits"]:
        return [f"{name}: {judged} met the bound in {own['met']} of {own['splits']} splits"]
    best = None
    for rival, value, both in _rivals(found, judged, where):
        drop = mean([value["drops"][seed] for seed in both])
        best = max(best or (drop, rival, both), (drop, rival, both))
    if best is None:
        return []
    theirs, rival, both = best
    ours = mean([own["drops"][seed] for seed in both])
    gaps = [mean([v["gaps"][s] for s in both]) for v in (own, found[(*where, rival)])]
    if ours >= theirs - 0.1 and gaps[0] <= gaps[1] + 0.005:
        return []
    apart = [own["drops"][seed] - found[(*where, rival)]["drops"][seed] for seed in both]
    noise = f" ± {se(apart):.2f}" if len(both) > 1 else ""
    held = [[v["validation"][s] for s in both] for v in (own, found[(*where, rival)])]
    known = None not in (*held[0], *held[1])
    seen = f"; on validation {100 * (mean(held[0]) - mean(held[1])):+.2f}" if known else ""
    return [
        f"{name}: {judged} {ours:+.2f} at a test gap of {gaps[0]:.3f}, {rival} {theirs:+.2f} at "
        f"{gaps[1]:.3f} (our accuracy less theirs: {mean(apart):+.2f}{noise}{seen}; our "
        f"test gap less theirs: {gaps[0] - gaps[1]:+.3f})"
    ]


def _rivals(
    found: dict[tuple[str, str, str], dict[str, Any]], judged: str, where: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any], list[int]]]:
    """Methods to compare with in a cell of the table, with the splits that both have."""
    own = found[(*where, judged)]
    for rival, method in METHODS.items():
        value = found.get((*where, rival), {})
        if method.ours or method.needs_group or rival == "no constraint" or "drops" not in value:
            continue
        both = sorted(set(own.get("drops", ())) & set(value["drops"]))
        if both and value["met"] >= HALF * value["splits"]:
            yield rival, value, both


def _dominated(
    found: dict[tuple[str, str, str], dict[str, Any]], judged: str, where: tuple[str, ...]
) -> bool:
    """Whether a rival is more accurate by more than 0.1 points at a test gap that is no larger."""
    own = found[(*where, judged)]
    return any(
        mean([value["drops"][s] - own["drops"][s] for s in both]) > 0.1
        and mean([value["gaps"][s] - own["gaps"][s] for s in both]) <= 0.005
        for _, value, both in _rivals(found, judged, where)
    )
