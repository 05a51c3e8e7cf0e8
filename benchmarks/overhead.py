"""What omnifair itself costs: ``python -m benchmarks.overhead [section ...]``.

Sections: ``training`` (binding, weighing and measuring against one fit of a learner, and whether
``X`` is copied) and ``importing`` (against scikit-learn's linear models). Both times of a ratio
are taken in the same run, in turn; everything is drawn here, nothing is read from disk.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks.runner import single_threaded
from omnifair import FairClassifier, GuidedSearch, gap
from omnifair.constraints import as_constraints
from omnifair.frames import Frame
from omnifair.problem import Problem, bind
from omnifair.rates import accuracy, false_negative_rate, selection_rate
from omnifair.weights import Point, weigh

ROWS, COLUMNS, GROUPS = 300_000, 10, 8
REPETITIONS = 7
# What is promised.
SHARE, IMPORT = 0.10, 1.5
HEAVY = (
    "pandas", "polars", "pyarrow", "matplotlib", "xgboost", "lightgbm", "catboost", "fairlearn",
    "platformdirs", "sklearn.ensemble", "sklearn.neural_network",
)  # fmt: skip
CONSTRAINTS = as_constraints(
    [gap(selection_rate, by="group") <= 0.05, gap(false_negative_rate, by="group") <= 0.05]
)


# -- training --------------------------------------------------------------------------------------


def people() -> tuple[Any, Any, Any]:
    """Rows, labels and groups, as a user has them: an array, and a table with a column of text."""
    random = np.random.RandomState(0)
    X = random.normal(size=(ROWS, COLUMNS))
    group = random.randint(GROUPS, size=ROWS)
    y = (X @ random.normal(size=COLUMNS) + 0.2 * group + random.logistic(size=ROWS) > 0).astype(int)
    return X, y, pd.DataFrame({"group": np.array([f"group {g}" for g in range(GROUPS)])[group]})


def seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def bound(X: Any, y: Any, sensitive: Any) -> Problem:
    weights = np.ones(len(y))
    return bind(CONSTRAINTS, accuracy, Frame(sensitive, X, len(y)), y.astype(np.int8), weights)


def training() -> bool:
    """Each stage's time as a share of one fit; the memory that they need beside ``X``."""
    X, y, sensitive = people()
    problem = bound(X, y, sensitive)
    multipliers = np.linspace(0, 0.1, problem.structure.n_rows)
    predictions = problem.labels
    point = Point(problem.cells(predictions))
    stages: dict[str, Callable[[], Any]] = {
        "bind": lambda: bound(X, y, sensitive),
        "weigh": lambda: weigh(problem, multipliers, point),
        "measure": lambda: problem.measure(predictions),
        "fit": lambda: LogisticRegression().fit(X, y),
    }
    taken: dict[str, list[float]] = {name: [] for name in stages}
    for _ in range(REPETITIONS):
        for name, work in stages.items():
            taken[name].append(seconds(work))
    # The quickest of several: whatever else the machine does only slows things.
    times = {name: min(values) for name, values in taken.items()}
    share = sum(times[name] for name in ("bind", "weigh", "measure")) / times["fit"]
    print(
        f"{ROWS:,} rows, {COLUMNS} columns, {GROUPS} groups, {problem.structure.n_rows} linear rows"
    )
    for name, value in times.items():
        print(f"  {name:<8}{1000 * value:8.1f} ms  {value / times['fit']:7.1%} of a fit")
    good = verdict("bind + weigh + measure", f"{share:.1%} of a fit", share < SHARE, f"{SHARE:.0%}")
    return good & copies(X, y, sensitive, stages)


def copies(X: Any, y: Any, sensitive: Any, stages: dict[str, Callable[[], Any]]) -> bool:
    """Whether the stages ever need as much memory as ``X``, and what the learner is handed."""
    tracemalloc.start()
    for name in ("bind", "weigh", "measure"):
        stages[name]()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    good = verdict("memory at most", f"{peak / X.nbytes:.0%} of that of X", peak < X.nbytes, "100%")
    # Without trying multipliers out on a share of the rows, which are a (small) copy.
    strategy = GuidedSearch(subsample=None)
    model = FairClassifier(Witness(), CONSTRAINTS, strategy=strategy, validation="train")
    Witness.handed.clear()
    model.fit(X, y, sensitive_features=sensitive)
    own = [np.shares_memory(handed, X) for handed in Witness.handed]
    print(f"  the learner was handed rows {len(own)} times, X itself {sum(own)} times")
    return good & all(own)


class Witness(LogisticRegression):
    """Keeps what it is handed."""

    handed: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        Witness.handed.append(X)
        return super().fit(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        Witness.handed.append(X)
        return super().predict(X)


# -- importing -------------------------------------------------------------------------------------


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def timed_import(module: str) -> float:
    """Seconds that an import takes in a new interpreter, whose own start is not counted."""
    return float(
        fresh(f"from time import perf_counter as t; s = t(); import {module}; print(t() - s)")
    )


def importing() -> bool:
    """``import omnifair`` over ``import sklearn.linear_model``."""
    taken: dict[str, list[float]] = {"sklearn.linear_model": [], "omnifair": []}
    for _ in range(REPETITIONS + 1):
        for name, values in taken.items():
            values.append(timed_import(name))
    times = {name: median(values[1:]) for name, values in taken.items()}  # the first fills caches
    for name, value in times.items():
        print(f"  import {name:<22}{1000 * value:8.0f} ms")
    ratio = times["omnifair"] / times["sklearn.linear_model"]
    good = verdict("import", f"{ratio:.2f} times as long", ratio < IMPORT, f"{IMPORT}")
    loaded = (
        "import sys, sklearn.linear_model; before = set(sys.modules); import omnifair; "
        f"print(*sorted(set({HEAVY}) & (set(sys.modules) - before)))"
    )
    extra = fresh(loaded)
    print(f"  optional or heavy packages that omnifair brings with it: {extra or 'none'}")
    return good & (not extra)


# -- all -------------------------------------------------------------------------------------------


def verdict(what: str, reached: str, good: bool, target: str) -> bool:
    print(f"  {what}: {reached} (wanted: below {target}): {'yes' if good else 'NO'}")
    return good


SECTIONS: dict[str, Callable[[], bool]] = {"training": training, "importing": importing}


def main(names: Sequence[str]) -> int:
    good = True
    for name in names or SECTIONS:
        print(f"{name}:")
        good &= SECTIONS[name]()
    return 0 if good else 1


if __name__ == "__main__":
    single_threaded()
    sys.exit(main(sys.argv[1:]))
