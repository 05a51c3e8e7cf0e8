"""How many trainings a search takes: ours, the paper's, and fairlearn's, on the same splits.

::

    python -m benchmarks.search                 # everything; takes hours, can be cut off
    python -m benchmarks.search --learners LR LightGBM --splits 2
    python -m benchmarks.search --report        # the tables, from what is stored
    python -m benchmarks.search --scale         # the cost against the number of rows

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
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.datasets import Split, Table, cut, load
from benchmarks.learners import make
from omnifair import Constraint, FairClassifier, PaperSearch, audit, datasets, gap
from omnifair.rates import FDR, FNR, FOR, FPR, MR, SP, Rate

STORE = Path(__file__).parent / "results" / "search.jsonl"
LEARNERS = ("LR", "RF", "LightGBM", "NN")
DATASETS = ("adult", "compas", "lsac", "bank")
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


KINDS = {
    "one": "one constraint: SP, FPR, FNR, MR at 0.03",
    "FDR": "FDR at 0.03",
    "FOR": "FOR at 0.03",
    "groups": "SP over 3 to 6 groups at 0.05",
    "two": "SP and FNR, FPR and FNR at 0.05",
    "infeasible": "SP, FNR and FOR at 0.001",
}


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
        start = perf_counter()
        clone(estimator).fit(split.train.X, split.train.y)
        times.append(perf_counter() - start)
    return float(np.median(times))


def run(case: Case, learner: str, number: int, method: str, split: Split) -> Cell:
    """Run one cell."""
    estimator = make(learner)
    plain = plain_seconds(estimator, split)
    start = perf_counter()
    if method == "fairlearn":
        model, trainings = fairlearn(case, estimator, split)
        seconds = perf_counter() - start
        predict = lambda X: model.predict(X, random_state=0)  # noqa: E731
        # fairlearn bounds what it trains on.
        worst = excess(case, split.train.y, predict(split.train.X), split.train.group)
        status, first = ("satisfied" if worst <= 0 else "infeasible"), float("nan")
        validation = float(np.mean(predict(split.validation.X) == split.validation.y))
    else:
        model = FairClassifier(
            estimator,
            case.constraints,
            strategy=PaperSearch() if method == "paper" else None,
            max_trainings=PAPER_LIMIT if method == "paper" else None,
            validation=(split.validation.X, split.validation.y, {"group": split.validation.group}),
            on_infeasible="closest",
            random_state=number,
        ).fit(split.train.X, split.train.y, sensitive_features={"group": split.train.group})
        seconds = perf_counter() - start
        predict = model.predict
        trainings, status = len(model.trials_), str(model.status_)
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
        found.append("paper")
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


# -- reporting -----------------------------------------------------------------------------------


def report(found: list[Cell]) -> str:
    """The tables, as text."""
    table = pd.DataFrame([asdict(cell) for cell in found])
    ours = table[table["method"] == "omnifair"]
    lines = ["Trainings of omnifair's default search", ""]
    head = f"{'case':44}{'runs':>5}{'median':>8}{'worst':>7}{'met':>8}{'time / plain fit':>18}"
    lines += [head, "-" * len(head)]
    for kind, title in KINDS.items():
        here = ours[ours["kind"] == kind]
        if len(here):
            lines.append(_summary(title, here))
            if kind == "one":
                lines += [
                    _summary(f"  {learner}", part) for learner, part in here.groupby("learner")
                ]
    lines += ["", *_against(table, "paper", "PaperSearch (its Algorithms 1 and 2)")]
    lines += ["", *_against(table, "fairlearn", "fairlearn's ExponentiatedGradient")]
    return "\n".join(lines)


def _summary(title: str, here: pd.DataFrame) -> str:
    met = f"{int((here['status'] == 'satisfied').sum())}/{len(here)}"
    multiple = (here["seconds"] / here["plain_seconds"]).median()
    return (
        f"{title:44}{len(here):5d}{here['trainings'].median():8.1f}{here['trainings'].max():7d}"
        f"{met:>8}{multiple:18.1f}"
    )


def _against(table: pd.DataFrame, method: str, title: str) -> list[str]:
    keys = ["kind", "case", "learner", "split"]
    ours = table[table["method"] == "omnifair"].set_index(keys)
    other = table[table["method"] == method].set_index(keys)
    both = ours.join(other, rsuffix="_other", how="inner").reset_index()
    lines = [f"Against {title}, same splits", ""]
    head = f"{'case':44}{'runs':>5}{'trainings':>16}{'met':>16}{'accuracy, points':>24}{'time':>8}"
    lines += [head, f"{'':49}{'ours, theirs':>16}{'ours, theirs':>16}{'validation, test':>24}"]
    lines.append("-" * len(head))
    for kind, title_ in KINDS.items():
        here = both[both["kind"] == kind]
        if here.empty:
            continue
        met = [int((here[c] == "satisfied").sum()) for c in ("status", "status_other")]
        fair = here[(here["status"] == "satisfied") & (here["status_other"] == "satisfied")]
        points = [
            100 * float((fair[c] - fair[f"{c}_other"]).mean()) for c in ("validation", "test")
        ]
        median = [here[c].median() for c in ("trainings", "trainings_other")]
        speed = (here["seconds_other"] / here["seconds"]).median()
        lines.append(
            f"{title_:44}{len(here):5d}{f'{median[0]:.0f}, {median[1]:.0f}':>16}"
            f"{f'{met[0]}, {met[1]}':>16}{f'{points[0]:+.2f}, {points[1]:+.2f}':>24}"
            f"{f'{speed:.1f}x':>8}"
        )
    return lines


# -- cost against size -----------------------------------------------------------------------------


def scale() -> Iterator[str]:
    """The same case on more and more rows of ACS income."""
    yield (
        f"{'rows':>8} {'learner':10}{'trainings':>10}{'plain fit':>11}{'a training':>11}"
        f"{'search itself':>15}{'whole / plain':>15}"
    )
    table = load("acs_income")
    for rows, learner in product((10_000, 30_000, 100_000, 300_000), ("LR", "LightGBM")):
        split = cut(table, 0, rows)
        estimator = make(learner)
        plain = plain_seconds(estimator, split)
        start = perf_counter()
        model = FairClassifier(
            estimator,
            gap(SP, by="group") <= 0.03,
            validation=(split.validation.X, split.validation.y, {"group": split.validation.group}),
            random_state=0,
        ).fit(split.train.X, split.train.y, sensitive_features={"group": split.train.group})
        whole = perf_counter() - start
        trainings = [trial["seconds"] for trial in model.trials_]
        own = 1 - sum(trainings) / whole
        yield (
            f"{rows:8d} {learner:10}{len(trainings):10d}{plain:10.2f}s{np.median(trainings):10.2f}s"
            f"{own:15.1%}{whole / plain:15.1f}"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS))
    parser.add_argument("--methods", nargs="+", default=("omnifair", "paper", "fairlearn"))
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    parser.add_argument("--scale", action="store_true", help="the cost against the rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.scale:
        for line in scale():
            print(line, flush=True)
        return
    STORE.parent.mkdir(exist_ok=True)
    for cell in [] if arguments.report else cells(arguments):
        with STORE.open("a") as file:
            file.write(json.dumps(asdict(cell)) + "\n")
        print(
            f"{cell.case} {cell.learner} split {cell.split} {cell.method}: {cell.trainings} "
            f"trainings, {cell.status}, {cell.seconds / cell.plain_seconds:.1f} plain fits",
            flush=True,
        )
    print(report(stored()))


if __name__ == "__main__":
    main()
