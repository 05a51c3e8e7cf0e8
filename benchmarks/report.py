"""From stored results to docs/benchmarks.md and its figures. Nothing is run here."""

from __future__ import annotations

from pathlib import Path

from benchmarks import machine, store, tables
from benchmarks.experiments import EXPERIMENTS
from benchmarks.learners import GRIDS, LEARNERS
from benchmarks.methods import METHODS
from benchmarks.objective import COST_FN, COST_FP, FORMS
from benchmarks.tables import table

DOCS = Path(__file__).parent.parent / "docs"


def write(folder: Path | None = None, docs: Path | None = None) -> Path:
    """Write the report; returns where it is."""
    docs = docs or DOCS
    docs.mkdir(parents=True, exist_ok=True)
    before = tables.FOLDER
    tables.FOLDER = docs / "figures"
    try:
        parts = [_head(), *(_section(n, folder) for n in EXPERIMENTS), _methods(), _made(folder)]
    finally:
        tables.FOLDER = before
    path = docs / "benchmarks.md"
    path.write_text("\n\n".join(part for part in parts if part).rstrip() + "\n")
    return path


def _head() -> str:
    return """# Benchmarks

Written by `python -m benchmarks report` from the stored results in `benchmarks/results`; do not
edit it. `make bench` runs the quick form; `python -m benchmarks run --full` the full one, which
goes on where it was cut off.

Splits are 60/20/20, stratified by group and label. The sensitive column is not among the
features. Everything below is measured on the test part, which no method sees: a method is given
the training and the validation part, and what it returns is asked for predictions of test rows
without their labels. Each method's own hyperparameters are tuned on the validation part: of its
candidates, the most accurate one that meets the bound there is taken, else the one closest to it.
All models are fitted in one thread."""


def _section(number: int, folder: Path | None) -> str:
    experiment = EXPERIMENTS[number]
    head = f"## {number}. {experiment.TITLE}"
    for name in ("full", "quick", "smoke"):
        form = FORMS[name]
        records = store.read(store.path_of(name, number, folder))
        wanted = {store.key(cell) for cell in experiment.cells(form)}
        records = [r for r in records if store.key(r["cell"]) in wanted]
        if not records:
            continue
        sources = sorted({r["source"] for r in records})
        rows = "all rows" if form.max_rows is None else f"{form.max_rows} rows of each data set"
        note = (
            f"*Form: {name} ({rows}; limit for each method and task {form.limit:g} s). "
            f"{len(records)} of {len(wanted)} cells are finished. "
            f"Code at {', '.join(sources)}.*"
        )
        return "\n\n".join([head, note, experiment.section(records)])
    return f"{head}\n\nNot run yet."


def _methods() -> str:
    rows = []
    for method in METHODS.values():
        marks = [
            text
            for text, on in (
                ("needs the group at prediction", method.needs_group),
                ("decisions drawn at random", method.randomised),
            )
            if on
        ]
        rows.append([method.name, method.paper or "-", method.about, ", ".join(marks)])
    grids = [
        [name, (builder.__doc__ or "").strip(), "; ".join(str(s) for s in GRIDS[name])]
        for name, builder in LEARNERS.items()
    ]
    full = FORMS["full"]
    return "\n\n".join(
        [
            "## Methods and what is tuned",
            table(["method", "in the paper", "settings tried", "note"], rows),
            "Learners. In the full form, each split's own settings are those with which the plain "
            "learner is most accurate on the validation part, the same for every method; methods "
            "without a knob try all of them.",
            table(["learner", "defaults", "settings tried in the full form"], grids),
            f"A method has {full.limit:g} s for a task in the full form; what it has finished by "
            "then is what is chosen from. The average cost of error (AEC) counts a false positive "
            f"as {COST_FP:g} and a false negative as {COST_FN:g}. Bank's groups are ages 25 to 60 "
            "against younger or older, which the paper leaves open.",
        ]
    )


def _made(folder: Path | None) -> str:
    parts = ["## Machine and versions"]
    for name in ("full", "quick", "smoke"):
        noted = machine.read(name, folder)
        if noted is None:
            continue
        lines = [
            f"- {noted['processor']}, {noted['cores']} cores, {noted['system']}, "
            f"Python {noted['python']}",
            "- " + ", ".join(f"{k} {v}" for k, v in noted["packages"].items()),
            "- peers with an environment of their own: "
            + ", ".join(str(v) for v in noted["peers"].values()),
        ]
        parts.append(f"{name} form:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)
