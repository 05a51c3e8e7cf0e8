"""From stored results to docs/benchmarks.md and its figures. Nothing is run here."""

from __future__ import annotations

from pathlib import Path

from benchmarks import machine, store, tables
from benchmarks.experiments import EXPERIMENTS
from benchmarks.learners import GRIDS, LEARNERS
from benchmarks.methods import METHODS
from benchmarks.objective import COST_FN, COST_FP, FORMS, Form
from benchmarks.store import Cell, Record
from benchmarks.tables import table

Chosen = dict[int, tuple[Form, list[Record]]]

DOCS = Path(__file__).parent.parent / "docs"


def write(folder: Path | None = None, docs: Path | None = None) -> Path:
    """Write the report; returns where it is."""
    docs = docs or DOCS
    docs.mkdir(parents=True, exist_ok=True)
    before = tables.FOLDER
    tables.FOLDER = docs / "figures"
    chosen = {number: choose(number, folder) for number in EXPERIMENTS}
    try:
        parts = [
            HEAD,
            _figures(chosen),
            *(_section(number, *chosen[number]) for number in EXPERIMENTS),
            _methods(),
            _made({form.name for form, _ in chosen.values()}, folder),
        ]
    finally:
        tables.FOLDER = before
    path = docs / "benchmarks.md"
    path.write_text("\n\n".join(part for part in parts if part).rstrip() + "\n")
    return path


HEAD = """# Benchmarks

Written by `python -m benchmarks report` from the stored results in `benchmarks/results`; do not
edit it. `make bench` runs the quick form anew, into a folder of its own; `python -m benchmarks
run --medium` and `--full` run the larger forms, and go on where they were cut off.

Splits are 60/20/20, stratified by group and label. The sensitive column is not among the
features. Everything below is measured on the test part, which no method sees: a method is given
the training and the validation part, and what it returns is asked for predictions of test rows
without their labels. Each method's own hyperparameters are tuned on the validation part: of its
candidates, the most accurate one that meets the bound there is taken, else the one closest to it.
All models are fitted in one thread."""


def choose(number: int, folder: Path | None = None) -> tuple[Form, list[Record]]:
    """The form of an experiment with the most finished cells, the larger one of two alike."""
    found = []
    for form in FORMS.values():
        wanted = {store.key(cell) for cell in EXPERIMENTS[number].cells(form)}
        records = store.read(store.path_of(form.name, number, folder))
        found.append((form, [r for r in records if store.key(r["cell"]) in wanted]))
    return max(reversed(found), key=lambda pair: len(pair[1]))


def _figures(chosen: Chosen) -> str:
    """What was asked for in figures beside what was reached, and every place where it is not so."""
    rows, lost = [], []
    for number, (form, records) in chosen.items():
        for aim in getattr(EXPERIMENTS[number], "aims", lambda _: [])(records):
            name = form.name if aim.kept is not None or records else "-"
            rows.append([number, aim.asked, aim.reached, aim.verdict, name])
            lost += [f"- {number}. {line}" for line in aim.beaten]
    text = [
        "## Figures asked, figures reached",
        table(["experiment", "asked", "reached", "kept", "form"], rows),
        "*open*: too few cells are finished to say.",
    ]
    if lost:
        text += ["## Where omnifair is beaten", "\n".join(dict.fromkeys(lost))]
    return "\n\n".join(text)


def _section(number: int, form: Form, records: list[Record]) -> str:
    experiment = EXPERIMENTS[number]
    head = f"## {number}. {experiment.TITLE}"
    if not records:
        return f"{head}\n\nNot run yet."
    whole = form.max_rows is None or (not form.few and getattr(experiment, "ALL_ROWS", False))
    rows = "all rows" if whole else f"at most {form.max_rows} rows of a data set"
    note = (
        f"*Form: {form.name} ({rows}; limit for each method and task {form.limit:g} s of work). "
        f"{coverage(experiment.cells(form), records)}*"
    )
    return "\n\n".join([head, note, experiment.section(records)])


def coverage(cells: list[Cell], records: list[Record]) -> str:
    """What part of an experiment was run, and with which code."""
    lines = []
    for who, ours in (("omnifair", True), ("the others", False)):
        asked = [cell for cell in cells if machine.is_ours(cell) == ours]
        done = [r for r in records if machine.is_ours(r["cell"]) == ours]
        if not asked:
            continue
        seeds = sorted({r["cell"]["seed"] for r in done})
        text = f"{who}: {len(done)} of {len(asked)} cells"
        if done:
            text += f", splits {', '.join(map(str, seeds))}"
        if ours and done:
            codes = sorted({f"{r.get('measured', 'unknown')} ({r['source']})" for r in done})
            text += f", measured with {'; '.join(codes)}"
        lines.append(text)
    return "Finished: " + ". ".join(lines) + "."


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
    limits = ", ".join(f"{form.limit:g} s ({form.name})" for form in FORMS.values())
    return "\n\n".join(
        [
            "## Methods and what is tuned",
            table(["method", "in the paper", "settings tried", "note"], rows),
            "*short* settings are those of all forms but the full one.",
            "Learners. In the full form, each split's own settings are those with which the plain "
            "learner is most accurate on the validation part, the same for every method; methods "
            "without a knob try all of them.",
            table(["learner", "defaults", "settings tried in the full form"], grids),
            f"A method has {limits} for a task; what it has finished by then is what is chosen "
            "from (in frontiers: 0.4 of that for each bound). The average cost of error (AEC) "
            f"counts a false positive as {COST_FP:g} and a false negative as {COST_FN:g}. Bank's "
            "groups are ages 25 to 60 "
            "against younger or older, which the paper leaves open.",
        ]
    )


def _made(names: set[str], folder: Path | None) -> str:
    parts = ["## Machine and versions"]
    for name in sorted(names):
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
