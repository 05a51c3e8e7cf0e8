"""Experiment 8: what only omnifair does: ratios, floors, intersections, both parities, scale."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Part
from benchmarks.learners import make
from benchmarks.methods.base import stopwatch
from benchmarks.objective import Form
from benchmarks.store import Cell, Record
from benchmarks.tables import by, mean, percent, table
from benchmarks.tuning import split_of, table_of

NUMBER = 8
TITLE = "omnifair alone: ratios, floors, intersections, both predictive parities, scale"
ALONE = True
CASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ratio": ("adult", "LR", ('ratio(selection_rate, by="sex") >= 0.8',)),
    "floor": ("adult", "LightGBM", ('each(true_positive_rate, by="race") >= 0.6',)),
    "intersections": ("adult", "LightGBM", ('gap(selection_rate, by=["race", "sex"]) <= 0.1',)),
    "predictive parities": (
        "lsac",
        "LightGBM",
        (
            'gap(false_discovery_rate, by="race") <= 0.05',
            'gap(false_omission_rate, by="race") <= 0.05',
        ),
    ),
}
SIZES = (30_000, 100_000, 300_000)
SCALE = {"acs_income": "SEX", "kdd_census": "sex"}


def cells(form: Form) -> list[Cell]:
    cases: list[Cell] = [{"case": case, "seed": seed} for seed in form.seeds for case in CASES]
    if form.name == "smoke":
        return cases
    sizes = SIZES[:1] if form.few else SIZES
    learners = ("LR",) if form.few else ("LR", "LightGBM")
    return cases + [
        {"case": "scale", "dataset": dataset, "learner": learner, "size": size, "seed": seed}
        for seed in form.seeds[:3]
        for dataset in (("acs_income",) if form.few else SCALE)
        for learner in learners
        for size in sizes
    ]


def run(cell: Cell, form: Form) -> dict[str, Any]:
    if cell["case"] == "scale":
        dataset, learner, rows = cell["dataset"], cell["learner"], cell["size"]
        texts: tuple[str, ...] = (f'gap(selection_rate, by="{SCALE[dataset]}") <= 0.03',)
    else:
        dataset, learner, texts = CASES[cell["case"]]
        # Small groups need more rows than the quick form's other experiments have.
        rows = None if form.max_rows is None else 3 * form.max_rows
    return fit(dataset, learner, texts, cell["seed"], rows)


def fit(
    dataset: str, learner: str, texts: tuple[str, ...], seed: int, rows: int | None
) -> dict[str, Any]:
    """omnifair and the plain learner on a split; measures by omnifair's own audit."""
    from omnifair import FairClassifier, parse

    split = split_of(dataset, seed, rows)
    people = table_of(dataset).people

    def of(part: Part) -> Any:
        return people.iloc[part.rows].reset_index(drop=True)

    train, part, test = split.train, split.validation, split.test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with stopwatch() as seconds:
            plain = make(learner).fit(train.X, train.y)
            plain_seconds = seconds()
        model = FairClassifier(
            make(learner),
            [parse(text) for text in texts],
            validation=(part.X, part.y, of(part)),
            on_infeasible="closest",
            random_state=seed,
        )
        with stopwatch() as seconds:
            model.fit(train.X, train.y, sensitive_features=of(train))
            taken = seconds()
        found = {
            name: _measures(texts, test, of(test), predictor.predict(test.X))
            for name, predictor in (("plain", plain), ("fair", model))
        }
    return {
        **found,
        "rows": len(train) + len(part) + len(test),
        "seconds": taken,
        "plain_seconds": plain_seconds,
        "trainings": int(model.report().trainings),
        "status": str(model.status_.name),
        "validation": [float(asked.reached) for asked in model.report().asked],
    }


def _measures(texts: tuple[str, ...], test: Part, people: Any, h: NDArray[Any]) -> dict[str, Any]:
    """Accuracy, and each constraint's measure on the test part, counted here."""
    values = [measure(text, test.y, h, people) for text in texts]
    return {"accuracy": float(np.mean(h == test.y)), "measures": values}


def measure(text: str, y: NDArray[Any], h: NDArray[Any], people: Any) -> float | None:
    """A gap, a ratio or the smallest rate of a constraint's text, by plain counting.

    Groups of fewer than 30 rows of the test part (or of positives, for a true positive rate) are
    left out: their rates are noise.
    """
    names = people[_columns(text)].astype(str).agg("|".join, axis=1).to_numpy()
    name = text.split("(")[1].split(",", maxsplit=1)[0]
    base, top = {
        "selection_rate": (np.ones(len(y), bool), h == 1),
        "true_positive_rate": (y == 1, h == 1),
        "false_discovery_rate": (h == 1, y == 0),
        "false_omission_rate": (h == 0, y == 1),
    }[name]
    rates = [
        float(top[base & (names == g)].mean())
        for g in np.unique(names)
        if (base & (names == g)).sum() >= 30
    ]
    if not rates:
        return None
    if text.startswith("gap"):
        return max(rates) - min(rates)
    if text.startswith("ratio"):
        return min(rates) / max(rates) if max(rates) > 0 else None
    return min(rates)


def _columns(text: str) -> list[str]:
    inside = text.split("by=")[1].split(")", maxsplit=1)[0]
    return [part.strip(' "[]') for part in inside.split(",")]


def section(records: list[Record]) -> str:
    rows, scale = [], []
    for (case, dataset, learner, size), group in by(
        records, "case", "dataset", "learner", "size"
    ).items():
        done = [r["result"] for r in group if "fair" in r["result"]]
        if not done:
            reasons = {r["result"].get("reason", "") for r in group}
            rows.append([case, "; ".join(sorted(reasons)), "", "", "", "", "", ""])
            continue
        accuracy = [percent(mean([r[k]["accuracy"] for r in done])) for k in ("plain", "fair")]
        reached = [_reached(done, k) for k in ("plain", "fair")]
        satisfied = f"{sum(r['status'] == 'SATISFIED' for r in done)}/{len(group)}"
        trainings = f"{mean([r['trainings'] for r in done]):.1f}"
        if case == "scale":
            factor = mean([r["seconds"] / r["plain_seconds"] for r in done])
            seconds = mean([r["seconds"] for r in done])
            numbers = [f"{seconds:.2f}", f"{factor:.1f}", trainings]
            scale.append([dataset, learner, size, *numbers, *reached, *accuracy])
        else:
            name, used, texts = CASES[case][0], CASES[case][1], CASES[case][2]
            asked = "<br>".join(f"`{t}`" for t in texts)
            rows.append(
                [f"{case} ({name}, {used})", asked, *reached, *accuracy, satisfied, trainings]
            )
    heads = ["case", "asked", "plain reaches", "fair reaches", "plain", "fair", "met", "trainings"]
    text = [
        "On the test part; *met*: splits in which the validation part met all bounds. Groups with "
        "fewer than 30 counted rows in the test part are left out of what is reached.",
        table(heads, rows),
    ]
    if scale:
        heads = ["data", "learner", "rows", "s", "plain fits", "trainings", "plain gap", "fair gap"]
        text.append(table([*heads, "plain", "fair"], scale))
    return "\n\n".join(text)


def _reached(done: list[dict[str, Any]], which: str) -> str:
    columns = zip(*(r[which]["measures"] for r in done), strict=True)
    return "<br>".join(f"{mean(list(values)):.3f}" for values in columns)
