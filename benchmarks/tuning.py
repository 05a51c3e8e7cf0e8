"""Tune one method on the validation part, within its time; only then score it on the test part."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks import deadline
from benchmarks.datasets import Part, Split, Table, cut, load
from benchmarks.learners import GRIDS, make
from benchmarks.methods import Candidate, Method, Refused
from benchmarks.objective import Form, Goal, Score, Task, judge, rows_of


@dataclass(frozen=True, eq=False)
class Tried:
    """A candidate and how it did on the validation part."""

    candidate: Candidate
    score: Score


@dataclass(frozen=True, eq=False)
class Tuned:
    """All that a method tried; ``why`` says what ended it early, if anything did."""

    tried: tuple[Tried, ...]
    why: str | None

    @property
    def seconds(self) -> float:
        return sum(t.candidate.seconds for t in self.tried)

    @property
    def trainings(self) -> int | None:
        counts = [t.candidate.trainings for t in self.tried]
        return None if None in counts else sum(c for c in counts if c is not None)

    def choose(self, goal: Goal) -> Tried:
        """The most accurate that meets the bounds on validation; else the closest to them."""
        met = [t for t in self.tried if goal.excess(t.score.gaps) <= 1e-12]
        if met:
            return max(met, key=lambda t: t.score.accuracy)
        return min(self.tried, key=lambda t: goal.excess(t.score.gaps))


def tune(method: Method, task: Task) -> Tuned:
    """Every candidate that was finished in time, judged on the validation part."""
    tried: list[Tried] = []
    why = None
    rows = rows_of(task.validation)
    try:
        with deadline.limit(task.limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for candidate in method.candidates(task):
                score = judge(task.validation, candidate.predict(rows))
                tried.append(Tried(candidate, score))
                deadline.check()
    except TimeoutError:
        why = f"NA: no model within {task.limit:g} s" if not tried else "time is up"
    except Refused as refusal:
        why = str(refusal)
    except Exception as error:  # a peer's failure is a result
        text = (str(error).strip().splitlines() or [""])[0]
        why = f"NA: {type(error).__name__}: {text[:160]}"
    return Tuned(tuple(tried), why)


def result(method: Method, tuned: Tuned, goal: Goal, test: Part) -> dict[str, Any]:
    """The chosen candidate, scored on the test part: one record of plain values."""
    chosen = tuned.choose(goal)
    once = tuned.tried[0].candidate
    rows = rows_of(test)
    score = chosen.candidate.score
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tested = judge(test, chosen.candidate.predict(rows), None if score is None else score(rows))
    return {
        "settings": chosen.candidate.settings,
        "met": goal.excess(chosen.score.gaps) <= 1e-12,
        "validation_accuracy": chosen.score.accuracy,
        "validation_gaps": {m: chosen.score.gaps[m] for m in goal.metrics},
        "accuracy": tested.accuracy,
        "gaps": {m: tested.gaps[m] for m in goal.metrics},
        "auc": tested.auc,
        "majority": float(max(test.y.mean(), 1 - test.y.mean())),
        "seconds": tuned.seconds,
        "seconds_once": tuned.seconds if method.whole_grid else once.seconds,
        "trainings": tuned.trainings,
        "trainings_once": tuned.trainings if method.whole_grid else once.trainings,
        "candidates": len(tuned.tried),
        "note": tuned.why,
    }


def run(method: Method, task: Task, test: Part) -> dict[str, Any]:
    """One method on one task: its result, or ``{"reason": ...}``."""
    reason = method.reason(task)
    if reason is not None:
        return {"reason": reason}
    tuned = tune(method, task)
    if not tuned.tried:
        return {"reason": tuned.why or "NA: it fitted nothing"}
    return result(method, tuned, task.goal, test)


@lru_cache(maxsize=8)
def table_of(name: str) -> Table:
    """A table, loaded once: all of them take little memory, and much time to read."""
    return load(name)


@lru_cache(maxsize=2)
def split_of(name: str, seed: int, max_rows: int | None) -> Split:
    """A split, cut once."""
    return cut(table_of(name), seed, max_rows)


@lru_cache(maxsize=8)
def learner_settings(name: str, learner: str, seed: int, form: Form) -> dict[str, Any]:
    """The learner's own settings, tuned by the validation accuracy of the plain model.

    They are the same for every method, so that what differs is what is done for fairness.
    """
    if form.short:
        return {}
    split = split_of(name, seed, form.max_rows)
    part = split.validation

    def accuracy(settings: dict[str, Any]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(learner, settings).fit(split.train.X, split.train.y)
            return float((model.predict(part.X) == part.y).mean())

    return max(GRIDS[learner], key=accuracy)
