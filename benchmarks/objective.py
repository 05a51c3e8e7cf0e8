"""What is asked of a method, what it is given, and how its predictions are judged.

The counts here are the harness's own: no rate is taken from omnifair or from a peer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.datasets import Part, Split

# The average cost of error: a false negative costs five times what a false positive does.
COST_FP, COST_FN = 1.0, 5.0


@dataclass(frozen=True)
class Goal:
    """Gaps over groups and their bounds: ``Goal((("SP", 0.03), ("FNR", 0.03)))``."""

    bounds: tuple[tuple[str, float], ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(metric for metric, _ in self.bounds)

    @property
    def only(self) -> str | None:
        """The metric, if there is one only."""
        return self.metrics[0] if len(self.bounds) == 1 else None

    @property
    def eps(self) -> float:
        """The smallest bound."""
        return min(eps for _, eps in self.bounds)

    def excess(self, gaps: dict[str, float]) -> float:
        """By how much the worst gap is over its bound; an undefined gap is infinitely far."""
        over = [gaps[m] - eps if np.isfinite(gaps[m]) else np.inf for m, eps in self.bounds]
        return float(max(over))


@dataclass(frozen=True)
class Form:
    """How much is run.

    ``few`` is for fewer cells (data sets, bounds, panels), ``short`` for the short grids of the
    methods' own settings, with the learners at their defaults.
    """

    name: str
    seeds: tuple[int, ...]
    limit: float
    max_rows: int | None
    few: bool
    short: bool


SMOKE = Form("smoke", seeds=(0,), limit=10.0, max_rows=1500, few=True, short=True)
QUICK = Form("quick", seeds=(0,), limit=6.0, max_rows=5000, few=True, short=True)
MEDIUM = Form("medium", seeds=tuple(range(10)), limit=45.0, max_rows=10000, few=False, short=True)
FULL = Form("full", seeds=tuple(range(10)), limit=120.0, max_rows=None, few=False, short=False)
FORMS = {form.name: form for form in (SMOKE, QUICK, MEDIUM, FULL)}


@dataclass(frozen=True, eq=False)
class Task:
    """All that a method is given. There is no test part in it."""

    dataset: str
    sensitive: str
    learner: str
    settings: dict[str, Any]
    train: Part
    validation: Part
    goal: Goal
    seed: int
    # Whether a method tries the short grid of its own settings.
    short: bool
    limit: float
    # Whether it is one of many bounds, whose candidates are pooled.
    pooled: bool = False

    def aiming(self, goal: Goal) -> Task:
        """The same task with another goal."""
        return replace(self, goal=goal)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a fitted method is given to predict: no labels."""

    X: NDArray[np.float64]
    group: NDArray[Any]
    frame: pd.DataFrame


def rows_of(part: Part) -> Rows:
    """A part without its labels."""
    return Rows(part.X, part.group, part.frame)


@dataclass(frozen=True)
class Score:
    """Predictions, judged."""

    accuracy: float
    gaps: dict[str, float]
    auc: float | None = None


def rate(metric: str, y: NDArray[Any], h: NDArray[Any]) -> float:
    """One rate of one group; NaN where it is undefined."""
    fp, fn = np.sum((h == 1) & (y == 0)), np.sum((h == 0) & (y == 1))
    top, bottom = {
        "SP": (np.sum(h == 1), len(h)),
        "FPR": (fp, np.sum(y == 0)),
        "FNR": (fn, np.sum(y == 1)),
        "FDR": (fp, np.sum(h == 1)),
        "FOR": (fn, np.sum(h == 0)),
        "MR": (fp + fn, len(h)),
        "AEC": (COST_FP * fp + COST_FN * fn, len(h)),
    }[metric]
    return float(top / bottom) if bottom else float("nan")


METRICS = ("SP", "FPR", "FNR", "FDR", "FOR", "MR", "AEC")


def gap(metric: str, y: NDArray[Any], h: NDArray[Any], group: NDArray[Any]) -> float:
    """The largest rate less the smallest, over all groups."""
    rates = [rate(metric, y[group == g], h[group == g]) for g in np.unique(group)]
    return float(max(rates) - min(rates)) if np.all(np.isfinite(rates)) else float("nan")


def judge(part: Part, h: NDArray[Any], score: NDArray[Any] | None = None) -> Score:
    """Accuracy and every gap of predictions for a part; the area under the ROC curve of scores."""
    h = np.asarray(h).ravel().astype(int)
    auc = None
    if score is not None and np.all(np.isfinite(score)):
        from sklearn.metrics import roc_auc_score

        auc = float(roc_auc_score(part.y, score))
    gaps = {metric: gap(metric, part.y, h, part.group) for metric in METRICS}
    return Score(float(np.mean(h == part.y)), gaps, auc)


def task_of(
    split: Split, sensitive: str, learner: str, settings: dict[str, Any], goal: Goal, form: Form
) -> Task:
    """A task from a split: its test part stays behind."""
    return Task(
        split.name,
        sensitive,
        learner,
        settings,
        split.train,
        split.validation,
        goal,
        split.seed,
        form.short,
        form.limit,
    )
