"""How many trainings a search takes: ours, the paper's, and fairlearn's, on the same splits.

::

    python -m benchmarks.search                 # everything; takes hours, can be cut off
    python -m benchmarks.search --learners LR LightGBM --splits 2
    python -m benchmarks.search --scale         # the cost against the number of rows
    python -m benchmarks.search --report        # the tables, from what is stored
    python -m benchmarks.search --write         # the same, into docs/search.md

One JSON line is stored for each finished cell; a cell that is stored is not run again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.datasets import Split, Table, cut, load
from benchmarks.learners import make
from benchmarks.runner import single_threaded
from omnifair import (
    BestOf,
    Constraint,
    FairClassifier,
    GuidedSearch,
    PaperSearch,
    audit,
    datasets,
    gap,
)
from omnifair.rates import FDR, FNR, FOR, FPR, MR, SP, Rate

STORE = Path(__file__).parent / "results" / "search.jsonl"
SCALE = STORE.with_name("search-scale.jsonl")
DOCUMENT = Path(__file__).parent.parent / "docs" / "search.md"
# Between these lines of the document stand the tables.
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
LEARNERS = ("LR", "RF", "LightGBM", "NN")
DATASETS = ("adult", "compas", "lsac", "bank")
# What is run: the default; the same with more trainings; the most accurate; the paper's.
STRATEGIES: dict[str, Any] = {
    "omnifair": None,
    "thorough": GuidedSearch(worth=5e-4, resolution=0.25, polish=4, enough=16),
    "best": BestOf(),
    "paper": PaperSearch(),
}
# The paper's search has no end of its own for some constraints; nobody would wait for more.
PAPER_LIMIT = 200


@dataclass(frozen=True)
class Case:
    """Constraints on a table; ``kind`` is the row of the summary that it belongs to."""

    kind: str
    name: str
    table: Callable[[], Table]
    constraints: tuple[Constraint, ...]


def one(rate: Rate, kind: str, name: str) -> list[Case]:
    """A gap of 0.03 over the two groups of each of the paper's data sets."""
    bound = gap(rate, by="group") <= 0.03
    return [Case(kind, f"{name} {d}", lambda d=d: load(d), (bound,)) for d in DATASETS]


def crossed(races: tuple[str, ...]) -> Table:
    """Adult by sex and race."""
    data = datasets.adult()
    people = data.sensitive_features
    keep = people["race"].isin(races).to_numpy()
    return Table(
        "adult",
        data.X[keep].reset_index(drop=True),
        np.asarray(data.y)[keep],
        (people["sex"] + " " + people["race"])[keep].to_numpy(dtype=str),
        "sex and race",
        people[keep].reset_index(drop=True),
    )


def cases() -> list[Case]:
    """Everything that is asked of the search."""
    several = gap(SP, by="group") <= 0.05
    wide = ("White", "Black")
    wider = (*wide, "Asian-Pac-Islander")
    found = [
        case
        for rate, name in ((SP, "SP"), (FPR, "FPR"), (FNR, "FNR"), (MR, "MR"))
        for case in one(rate, "one", name)
    ]
    found += [case for rate, name in ((FDR, "FDR"), (FOR, "FOR")) for case in one(rate, name, name)]
    found += [
        Case("groups", "SP, 3 races compas", lambda: load("compas3"), (several,)),
        Case("groups", "SP, 4 groups adult", lambda: crossed(wide), (several,)),
        Case("groups", "SP, 6 groups adult", lambda: crossed(wider), (several,)),
        Case(
            "two",
            "SP and FNR compas",
            lambda: load("compas"),
            (several, gap(FNR, by="group") <= 0.05),
        ),
        *(
            Case(
                "two",
                f"FPR and FNR {d}",
                lambda d=d: load(d),
                (gap(FPR, by="group") <= 0.05, gap(FNR, by="group") <= 0.05),
            )
            for d in ("adult", "compas", "lsac")
        ),
        *(
            Case(
                "infeasible",
                f"SP, FNR and FOR at 0.001 {d}",
                lambda d=d: load(d),
                tuple(gap(rate, by="group") <= 0.001 for rate in (SP, FNR, FOR)),
            )
            for d in ("compas", "adult")
        ),
    ]
    return found


WAYS = {"omnifair": "the default", "thorough": "thorough", "best": "BestOf()"}
KINDS = {
    "one": "one constraint: SP, FPR, FNR, MR at 0.03",
    "FDR": "FDR at 0.03",
    "FOR": "FOR at 0.03",
    "groups": "SP over 3 to 6 groups at 0.05",
    "two": "SP and FNR, FPR and FNR at 0.05",
    "infeasible": "SP, FNR and FOR at 0.001",
}

# How many trainings are wanted at most: in the median, and ever.
WANTED = {
    "one": (4, 10),
    "FDR": (6, 15),
    "FOR": (6, 15),
    "groups": (8, 20),
    "two": (10, 25),
    "infeasible": (25, 40),
}
# What else is wanted of the medians.
MULTIPLE, MULTIPLE_AT_SCALE, POINTS, FASTER, OWN = 4.5, 3.0, 0.05, 8.0, 0.05


@dataclass(frozen=True)
class Cell:
    """One run, and what came of it."""

    kind: str
    case: str
    learner: str
    split: int
    method: str
    trainings: int
    status: str
    worst: float
    plain_worst: float
    validation: float
    test: float
    seconds: float
    plain_seconds: float

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What tells a cell from all others."""
        return self.case, self.learner, self.split, self.method


# -- running -------------------------------------------------------------------------------------


def plain_seconds(estimator: Any, split: Split, repeats: int = 3) -> float:
    """One plain fit of the learner: the median of a few."""
    times = []
    for _ in range(repeats):
        start = process_time()
        clone(estimator).fit(split.train.X, split.train.y)
        times.append(process_time() - start)
    return float(np.median(times))


def run(case: Case, learner: str, number: int, method: str, split: Split) -> Cell:
    """Run one cell."""
    estimator = make(learner)
    plain = plain_seconds(estimator, split)
    start = process_time()
    if method == "fairlearn":
        model, trainings = fairlearn(case, estimator, split)
        seconds = process_time() - start
        predict = lambda X: model.predict(X, random_state=0)  # noqa: E731
        # fairlearn bounds what it trains on.
        worst = excess(case, split.train.y, predict(split.train.X), split.train.group)
        status, first = ("satisfied" if worst <= 0 else "infeasible"), float("nan")
        validation = float(np.mean(predict(split.validation.X) == split.validation.y))
    else:
        model = FairClassifier(
            estimator,
            case.constraints,
            strategy=STRATEGIES[method],
            max_trainings=PAPER_LIMIT if method == "paper" else None,
            validation=(split.validation.X, split.validation.y, {"group": split.validation.group}),
            on_infeasible="closest",
            random_state=number,
        ).fit(split.train.X, split.train.y, sensitive_features={"group": split.train.group})
        seconds = process_time() - start
        predict = model.predict
        trainings, status = int(model.report().trainings), str(model.status_)
        bits = predict(split.validation.X)
        worst = excess(case, split.validation.y, bits, split.validation.group)
        validation = float(np.mean(bits == split.validation.y))
        first = model.trials_[0]["worst_violation"]
    return Cell(
        case.kind,
        case.name,
        learner,
        number,
        method,
        trainings,
        status,
        worst,
        first,
        validation,
        float(np.mean(predict(split.test.X) == split.test.y)),
        seconds,
        plain,
    )


def excess(case: Case, y: Any, predictions: Any, group: Any) -> float:
    """By how much the worst constraint is missed, counted anew by ``audit``."""
    rates = [c.measure.rate for c in case.constraints]
    table = audit(y, predictions, pd.Series(group, name="group"), rates=rates)
    gaps = table[table["measure"] == "gap"]["value"].to_numpy()
    bounds = np.array([c.bound for c in case.constraints])
    return float(np.max(np.where(np.isnan(gaps), np.inf, gaps - bounds)))


def fairlearn(case: Case, estimator: Any, split: Split) -> tuple[Any, int]:
    """ExponentiatedGradient with the same learner and bound."""
    from fairlearn import reductions

    moments = {
        SP: reductions.DemographicParity,
        FPR: reductions.FalsePositiveRateParity,
        FNR: reductions.TruePositiveRateParity,
        MR: reductions.ErrorRateParity,
    }
    [constraint] = case.constraints
    # Its bound holds each group against everybody, so twice it is the gap of two groups.
    moment = moments[constraint.measure.rate](difference_bound=constraint.bound / 2)
    model = reductions.ExponentiatedGradient(clone(estimator), moment)
    model.fit(split.train.X, split.train.y, sensitive_features=split.train.group)
    return model, int(model.n_oracle_calls_)


def methods_of(case: Case, learner: str, number: int, asked: Iterable[str]) -> list[str]:
    """What is compared where: the others take so long that they run on fewer splits."""
    slow = learner in ("RF", "NN")
    found = ["omnifair"]
    if case.kind in ("one", "two") and (number < 1 if slow else True):
        found += ["thorough", "best", "paper"]
    if case.kind == "one" and case.name.startswith(("SP", "FPR")) and number < 1:
        found.append("fairlearn")
    return [m for m in found if m in asked]


def cells(arguments: argparse.Namespace) -> Iterator[Cell]:
    """Run what is asked for and not stored."""
    done = {cell.key for cell in stored()}
    for case, number in product(cases(), range(arguments.splits)):
        if arguments.kinds and case.kind not in arguments.kinds:
            continue
        split = None
        for learner in arguments.learners:
            for method in methods_of(case, learner, number, arguments.methods):
                if (case.name, learner, number, method) in done:
                    continue
                split = split or cut(case.table(), number)
                yield run(case, learner, number, method, split)


def stored() -> list[Cell]:
    """All finished cells."""
    if not STORE.exists():
        return []
    return [Cell(**json.loads(line)) for line in STORE.read_text().splitlines()]


def scaled() -> list[Scaled]:
    """All finished runs of the cost against size."""
    if not SCALE.exists():
        return []
    return [Scaled(**json.loads(line)) for line in SCALE.read_text().splitlines()]


# -- reporting -----------------------------------------------------------------------------------


def report(found: list[Cell], scaled: list[Scaled]) -> str:
    """The tables, as text."""
    lines: list[str] = []
    if found:
        table = pd.DataFrame([asdict(cell) for cell in found])
        bounds = {case.name: case.constraints[0].bound for case in cases()}
        # The measure of the constraint that is worst off: 1 is the bound itself.
        table["used"] = 1 + table["worst"] / table["case"].map(bounds)
        lines += [*_trainings(table[table["method"] == "omnifair"])]
        lines += ["", *_against(table, "paper", "PaperSearch (its Algorithms 1 and 2)")]
        lines += ["", *_bought(table)]
        lines += ["", *_against(table, "fairlearn", "fairlearn's ExponentiatedGradient")]
    if scaled:
        lines += ["", *_sizes(scaled)]
    return "\n".join(lines).strip("\n")


def _trainings(ours: pd.DataFrame) -> list[str]:
    head = (
        f"{'case':44}{'runs':>5}{'median':>8}{'worst':>7}{'wanted':>9}{'':>5}{'met':>9}"
        f"{'reached / bound':>17}{'time / plain fit':>18}"
    )
    lines = [
        "Trainings of omnifair's default search, and where they led",
        "",
        head,
        "-" * len(head),
    ]
    for kind, title in KINDS.items():
        here = ours[ours["kind"] == kind]
        if here.empty:
            continue
        lines.append(_summary(title, here, WANTED[kind]))
        if kind == "one":
            lines += [_summary(f"  {learner}", part) for learner, part in here.groupby("learner")]
    multiple = _multiple(ours[ours["kind"] == "one"])
    lines += [
        "",
        f"Time of a whole fit over one plain fit, one constraint, median: {multiple:.1f} "
        f"(wanted: {MULTIPLE:g} at most): {_verdict(multiple <= MULTIPLE)}",
    ]
    return lines


def _summary(title: str, here: pd.DataFrame, wanted: tuple[int, int] | None = None) -> str:
    met = f"{int((here['status'] == 'satisfied').sum())}/{len(here)}"
    median, worst = here["trainings"].median(), here["trainings"].max()
    asked, verdict = "", ""
    if wanted:
        asked = f"{wanted[0]}, {wanted[1]}"
        verdict = _verdict(median <= wanted[0] and worst <= wanted[1])
    used = f"{here['used'].median():.2f}, {here['used'].max():.2f}"
    return (
        f"{title:44}{len(here):5d}{median:8.1f}{worst:7d}{asked:>9}{verdict:>5}{met:>9}"
        f"{used:>17}{_multiple(here):18.1f}"
    )


def _multiple(here: pd.DataFrame) -> float:
    return float((here["seconds"] / here["plain_seconds"]).median())


def _verdict(good: bool) -> str:
    return "yes" if good else "NO"


def _against(table: pd.DataFrame, method: str, title: str) -> list[str]:
    keys = ["kind", "case", "learner", "split"]
    ours, other = (table[table["method"] == name] for name in ("omnifair", method))
    both = ours.merge(other, on=keys, suffixes=("", "_other"))
    lines = [f"Against {title}, same splits", ""]
    if both.empty:
        return [*lines, "nothing is stored"]
    head = f"{'case':44}{'runs':>5}{'trainings':>16}{'met':>16}{'accuracy, points':>24}{'time':>8}"
    lines += [head, f"{'':49}{'ours, theirs':>16}{'ours, theirs':>16}{'validation, test':>24}"]
    lines.append("-" * len(head))
    for kind, title_ in KINDS.items():
        here = both[both["kind"] == kind]
        if here.empty:
            continue
        met = [int((here[c] == "satisfied").sum()) for c in ("status", "status_other")]
        points = [_points(here, column) for column in ("validation", "test")]
        median = [here[c].median() for c in ("trainings", "trainings_other")]
        lines.append(
            f"{title_:44}{len(here):5d}{f'{median[0]:.0f}, {median[1]:.0f}':>16}"
            f"{f'{met[0]}, {met[1]}':>16}{f'{points[0]:+.2f}, {points[1]:+.2f}':>24}"
            f"{f'{_speed(here):.1f}x':>8}"
        )
    if method == "paper":
        points = [_points(both, "validation")]
        said = f"Accuracy on validation where both met the bounds, mean: {points[0]:+.2f} points "
        said += f"(wanted: no worse than -{POINTS:g}): {_verdict(points[0] >= -POINTS)}"
    else:
        said = f"Its time over ours, median: {_speed(both):.1f} (wanted: {FASTER:g} at least): "
        said += _verdict(_speed(both) >= FASTER)
    return [*lines, "", said]


def _bought(table: pd.DataFrame) -> list[str]:
    """What more trainings buy: each way of ours against PaperSearch on the same cells."""
    keys = ["kind", "case", "learner", "split"]
    paper = table[(table["method"] == "paper") & (table["kind"] == "one")]
    ways = [m for m in STRATEGIES if m != "paper"]
    found = {
        m: table[table["method"] == m].merge(paper, on=keys, suffixes=("", "_other")) for m in ways
    }
    head = (
        f"{'':14}{'learner':10}{'runs':>5}{'trainings':>11}{'worst':>7}{'time / plain fit':>18}"
        f"{'accuracy against PaperSearch: validation, test':>48}"
    )
    title = "What more trainings buy: one constraint, against PaperSearch in its 16"
    lines = [title, "", head, "-" * len(head)]
    for name, both in found.items():
        for learner, here in [("all", both), *both.groupby("learner")]:
            if here.empty:
                continue
            points = ", ".join(f"{_points(here, c):+.2f}" for c in ("validation", "test"))
            lines.append(
                f"{WAYS[name] if learner == 'all' else '':14}{learner:10}{len(here):5d}"
                f"{here['trainings'].median():11.1f}{here['trainings'].max():7d}"
                f"{_multiple(here):18.1f}{points:>48}"
            )
    return lines


def _points(both: pd.DataFrame, column: str) -> float:
    """By how many points of accuracy ours is better, where both met the bounds."""
    fair = both[(both["status"] == "satisfied") & (both["status_other"] == "satisfied")]
    return 100 * float((fair[column] - fair[f"{column}_other"]).mean())


def _speed(both: pd.DataFrame) -> float:
    """In plain fits, each beside its own: the machine's mood of the hour plays no part."""
    times = [both[f"seconds{s}"] / both[f"plain_seconds{s}"] for s in ("_other", "")]
    return float((times[0] / times[1]).median())


def write(text: str) -> None:
    """Put the tables into their place in the document."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n```text\n{text}\n```\n{END}{after}")


# -- cost against size -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled:
    """One search on so many rows; ``training`` is one on all of those it trains on."""

    rows: int
    learner: str
    trainings: int
    full: int
    plain_seconds: float
    training: float
    own: float
    multiple: float
    met: bool


def scale(sizes: Iterable[int], learners: Iterable[str]) -> Iterator[Scaled]:
    """SP over the two sexes at 0.03 on more and more rows of ACS income."""
    table = load("acs_income")
    for rows, learner in product(sizes, learners):
        split = cut(table, 0, rows)
        estimator = make(learner)
        plain = [plain_seconds(estimator, split)]
        start, begun = process_time(), perf_counter()
        model = FairClassifier(
            estimator,
            gap(SP, by="group") <= 0.03,
            validation=(split.validation.X, split.validation.y, {"group": split.validation.group}),
            random_state=0,
        ).fit(split.train.X, split.train.y, sensitive_features={"group": split.train.group})
        whole, passed = process_time() - start, perf_counter() - begun
        plain.append(plain_seconds(estimator, split))  # before and after: other work comes and goes
        every = [trial["seconds"] for trial in model.trials_]
        full = [trial["seconds"] for trial in model.trials_ if trial["share"] >= 1]
        yield Scaled(
            rows,
            learner,
            len(every),
            len(full),
            float(np.mean(plain)),
            float(np.median(full)),
            1 - sum(every) / passed,  # a training says how much time passed
            whole / float(np.mean(plain)),
            model.status_ == "satisfied",
        )


def _sizes(scaled: list[Scaled]) -> list[str]:
    head = (
        f"{'rows':>8}  {'learner':10}{'trainings':>10}{'on all rows':>13}{'plain fit':>11}"
        f"{'a training / plain':>20}{'search itself':>15}{'whole / plain':>15}{'met':>5}"
    )
    lines = ["Cost against the number of rows (ACS income, SP at 0.03)", "", head, "-" * len(head)]
    lines += [
        f"{r.rows:8d}  {r.learner:10}{r.trainings:10d}{r.full:13d}{r.plain_seconds:10.2f}s"
        f"{r.training / r.plain_seconds:20.2f}{r.own:15.1%}{r.multiple:15.1f}{_verdict(r.met):>5}"
        for r in scaled
    ]
    largest = max(r.rows for r in scaled)
    whole = max(r.multiple for r in scaled if r.rows == largest)
    own = max(r.own for r in scaled)
    return [
        *lines,
        "",
        f"The search's own share, largest: {own:.1%} (wanted: under {OWN:.0%}): "
        f"{_verdict(own < OWN)}",
        f"The whole fit over a plain one at {largest:,} rows, largest: {whole:.1f} (wanted: "
        f"{MULTIPLE_AT_SCALE:g} at most): {_verdict(whole <= MULTIPLE_AT_SCALE)}",
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS))
    parser.add_argument("--methods", nargs="+", default=("omnifair", "paper", "fairlearn"))
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--write", action="store_true", help="and write it into docs/search.md")
    parser.add_argument("--scale", action="store_true", help="the cost against the rows")
    parser.add_argument(
        "--rows",
        nargs="+",
        type=int,
        default=(10_000, 30_000, 100_000, 300_000),
        help="for --scale",
    )
    arguments = parser.parse_args()
    single_threaded()
    warnings.simplefilter("ignore")
    STORE.parent.mkdir(exist_ok=True)
    if arguments.scale:
        learners = [name for name in arguments.learners if name in ("LR", "LightGBM")]
        kept = [r for r in scaled() if r.rows not in arguments.rows or r.learner not in learners]
        for result in scale(arguments.rows, learners):
            kept = sorted([*kept, result], key=lambda r: (r.rows, r.learner))
            SCALE.write_text("".join(json.dumps(asdict(r)) + "\n" for r in kept))
            print(f"{result.rows} rows {result.learner}: {result.trainings} trainings", flush=True)
    elif not (arguments.report or arguments.write):
        for cell in cells(arguments):
            with STORE.open("a") as file:
                file.write(json.dumps(asdict(cell)) + "\n")
            print(
                f"{cell.case} {cell.learner} split {cell.split} {cell.method}: {cell.trainings} "
                f"trainings, {cell.status}, {cell.seconds / cell.plain_seconds:.1f} plain fits",
                flush=True,
            )
    text = report(stored(), scaled())
    print(text)
    if arguments.write:
        write(text)


if __name__ == "__main__":
    main()
