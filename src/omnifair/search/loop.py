"""The loop that every strategy runs in; it alone counts trainings and keeps what was found.

A strategy is a frozen value. Its :meth:`Strategy.steps` is a generator that yields batches of
proposals and is sent the trials, so that an algorithm reads as it would be written on paper and
cannot train, count or stop anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from time import monotonic
from typing import Any, Protocol

import numpy as np

from omnifair.errors import TrainingError
from omnifair.problem import Measurement, Problem
from omnifair.training import Proposal, Setting, Trainer, Trial

Steps = Generator[Sequence[Proposal], Sequence[Trial], None]


class Status(StrEnum):
    """How a search ended; :attr:`message` says it to people."""

    SATISFIED = "satisfied"
    INFEASIBLE = "infeasible"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    UNCONSTRAINED = "unconstrained"
    CERTIFIED = "certified"
    UNCERTIFIED = "uncertified"

    @property
    def message(self) -> str:
        """One sentence."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.SATISFIED: "The constraints are met where they were measured.",
    Status.INFEASIBLE: "The search ended without meeting the constraints.",
    Status.BUDGET: "The budget of trainings or of time ended before the constraints were met.",
    Status.INTERRUPTED: "The search was interrupted before the constraints were met.",
    Status.UNCONSTRAINED: "There were no constraints: this is the plain estimator.",
    Status.CERTIFIED: "The constraints are shown to hold for the population.",
    Status.UNCERTIFIED: "The constraints could not be shown to hold for the population.",
}


class Strategy(Protocol):
    """A way to look for multipliers."""

    def steps(self, setting: Setting) -> Steps:
        """Yield proposals, be sent their trials, return when there is no more to try."""
        ...

    def budget(self, problem: Problem) -> int | None:
        """How many trainings at most when the user sets no limit; None for no limit."""
        ...


@dataclass(frozen=True)
class Solution:
    """What a search found: the best trial (or the closest), and the record of all.

    ``trials`` are all of them, without their models and predictions; ``cut`` is what ended the
    search where it was not through, whether or not the constraints were met by then. ``failures``
    says of trainings that failed what was wrong, where the strategy went on without them.
    """

    trial: Trial
    status: Status
    records: tuple[dict[str, Any], ...]
    smallest: tuple[Measurement, ...]
    trials: tuple[Trial, ...]
    cut: Status | None = None
    failures: tuple[str, ...] = ()

    @property
    def fits(self) -> int:
        """How often the learner was fitted."""
        return sum(int(r["fits"]) for r in self.records)


def search(
    strategy: Strategy,
    trainer: Trainer,
    max_fits: int | None,
    notify: Callable[[dict[str, Any]], None],
    max_seconds: float | None = None,
    watch: Callable[[Trial], None] | None = None,
) -> Solution:
    """Run a strategy within a budget of fits of the learner and of time.

    Returns the most accurate trial that meets every constraint, or else the closest one. An
    interrupt (Ctrl-C) ends the search with what was found so far. ``watch`` is shown each trial.
    A training that fails is thrown into the strategy as its ``TrainingError``: one that knows
    another way goes on, any other lets it out.
    """
    started = monotonic()
    problem = trainer.setting.problem
    budget = strategy.budget(problem)
    left = max_fits
    if left is None and budget is not None:
        left = budget * trainer.fits_per_trial
    best: Trial | None = None
    records: list[dict[str, Any]] = []
    nearest: list[Measurement] = []
    seen: list[Trial] = []
    failures: list[TrainingError] = []
    steps = strategy.steps(trainer.setting)
    ended: Status | None = None
    try:
        waiting = list(next(steps, ()))
        while waiting and ended is None:
            trials: list[Trial] = []
            failed: TrainingError | None = None
            while waiting:
                batch = waiting[: trainer.at_once]
                if left is not None:
                    batch = _affordable(batch, trainer, left)
                waiting = waiting[len(batch) :]  # what is too dear ends the search, untrained
                late = max_seconds is not None and monotonic() - started >= max_seconds
                if not batch or (late and best is not None):
                    ended = Status.BUDGET
                    break
                costs = sum(map(trainer.cost, batch))
                try:
                    trained = trainer.train(batch)
                except TrainingError as error:
                    left, failed = None if left is None else left - costs, error
                    break
                for trial in trained:
                    left = None if left is None else left - trial.fits
                    best = trial if best is None or _rank(trial) > _rank(best) else best
                    nearest = _nearest(nearest, trial.measurement, problem)
                    seen.append(_bare(trial))
                    records.append(_record(trial, problem))
                    if watch is not None:
                        watch(trial)
                    notify(records[-1])
                    trials.append(trial)
            if failed is not None:
                waiting = following(steps.throw, failed)
                failures.append(failed)
            elif ended is None:
                waiting = following(steps.send, trials)
    except KeyboardInterrupt:
        if best is None:
            raise
        ended = Status.INTERRUPTED
    finally:
        steps.close()
    if best is None:  # the budget allows for one training, which estimator.py checks: it failed
        raise failures[0]
    status = Status.SATISFIED if best.satisfied else ended or Status.INFEASIBLE
    return Solution(
        best,
        status,
        tuple(_same_keys(records)),
        tuple(nearest),
        tuple(seen),
        ended,
        tuple(map(str, failures)),
    )


def models_kept(strategy: Strategy, setting: Setting) -> int:
    """How many fitted estimators a strategy's model consists of at most; one unless it says."""
    asked = getattr(strategy, "models_kept", None)
    return 1 if asked is None else int(asked(setting))


def is_strategy(value: Any) -> bool:
    """Whether it has what a strategy needs; a class of them is none."""
    methods = (getattr(value, name, None) for name in ("steps", "budget"))
    return all(map(callable, methods)) and not isinstance(value, type)


def following(go: Callable[[Any], Sequence[Proposal]], value: Any) -> list[Proposal]:
    """What a strategy's generator asks for next, sent (or thrown) a value; nothing at its end."""
    try:
        return list(go(value))
    except StopIteration:
        return []


def _affordable(batch: list[Proposal], trainer: Trainer, left: int) -> list[Proposal]:
    """As much of a batch, from its beginning, as the fits that are left allow for."""
    costs = accumulate(trainer.cost(p) for p in batch)
    return [p for p, cost in zip(batch, costs, strict=True) if cost <= left]


def _rank(trial: Trial) -> tuple[bool, bool, bool, float, float, float, int]:
    """Satisfying trials by merit, the others by how little they miss; then the gentlest, first.

    A model of a share of the rows is never what is returned, where there is another; nor is what
    was only exploratory, where there is another that meets the bounds.
    """
    measured, size = trial.measurement, float(np.abs(trial.multipliers).sum())
    full, met = trial.proposal.share >= 1, trial.satisfied
    chosen = met and not trial.proposal.exploratory
    first, second = measured.merit, -measured.worst
    if not met:
        first, second = second, first
    return full, met, chosen, first, second, -size, -trial.number


def _nearest(kept: list[Measurement], new: Measurement, problem: Problem) -> list[Measurement]:
    """For each constraint the measurement that came closest to it by itself."""
    if not kept:
        return [new] * len(problem.structure.constraints)
    return [
        new if _miss(new, problem, c) < _miss(old, problem, c) else old
        for c, old in enumerate(kept)
    ]


def _bare(trial: Trial) -> Trial:
    """A trial without what takes memory."""
    measurement = replace(trial.measurement, predictions=trial.measurement.predictions[:0])
    proposal = replace(trial.proposal, at=None, plain=None)
    return replace(trial, measurement=measurement, models=(), proposal=proposal, chances=None)


def _miss(measured: Measurement, problem: Problem, constraint: int) -> float:
    violations = measured.violations[problem.structure.owner == constraint]
    return float(np.where(np.isnan(violations), np.inf, violations).max(initial=-np.inf))


def _record(trial: Trial, problem: Problem) -> dict[str, Any]:
    """A trial as plain values, ready to be a row of a dataframe."""
    measured, structure = trial.measurement, problem.structure
    undefined = [structure.metric_text(int(p)) for p in np.flatnonzero(np.isnan(measured.rates))]
    record: dict[str, Any] = {
        "training": trial.number,
        "fits": trial.fits,
        "share": trial.proposal.share,
        "satisfied": trial.satisfied,
        str(structure.objective): measured.objective,
    }
    for constraint, value in zip(structure.constraints, measured.measures, strict=True):
        record[str(constraint.measure)] = value
    record["worst_violation"] = measured.worst
    record["undefined"] = ", ".join(undefined)
    record["seconds"] = trial.seconds
    if trial.proposal.joint:
        record["joint"] = True
    if trial.proposal.offset:
        record["offset"] = trial.proposal.offset
    for k in np.flatnonzero(trial.multipliers):
        record[f"multiplier of {structure.row_labels[k]}"] = float(trial.multipliers[k])
    return record


def _same_keys(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A multiplier that a training did not use was 0 there; most are not joint."""
    keys = dict.fromkeys(key for record in records for key in record)
    return [{key: record.get(key, key != "joint" and 0.0) for key in keys} for record in records]
