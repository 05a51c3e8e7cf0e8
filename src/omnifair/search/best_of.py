"""Several strategies one after the other: the best model of all is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omnifair.errors import LearnerError, TrainingError
from omnifair.problem import Problem
from omnifair.search.guided import GuidedSearch
from omnifair.search.loop import Steps, Strategy, following, is_strategy, models_kept
from omnifair.search.plugin import PlugIn
from omnifair.training import Proposal, Setting, Trial


@dataclass(frozen=True)
class BestOf:
    """Run strategies in turn, and keep what is best on the validation rows.

    No strategy is the most accurate on all data and for all learners; this takes the trainings of
    all of them. Where the plain model meets the bounds nothing else is tried, and it is trained
    once, whoever asks for it. A strategy whose training fails (where a learner can tell two labels
    apart, but not groups and labels) ends there; the others go on, and the report notes it.

    Parameters
    ----------
    strategies
        What to run, in this order: where trainings or time are limited, the cheap ones first. By
        default ``PlugIn(plain=True)`` and ``GuidedSearch()``. Those that cannot work with the
        learner or the rates (:class:`PlugIn` without ``predict_proba``, or with rates given by
        ``coefficients()``) are left out, unless all are.
    """

    strategies: Sequence[Strategy] = (PlugIn(plain=True), GuidedSearch())

    def __post_init__(self) -> None:
        given: Any = self.strategies
        wanted = "pass a list of strategies, such as [PlugIn(plain=True), GuidedSearch()]."
        if is_strategy(given) or isinstance(given, str) or not isinstance(given, Iterable):
            raise LearnerError(f"BestOf({given!r}): {wanted}")
        object.__setattr__(self, "strategies", tuple(given))  # a generator is used up only once
        if not self.strategies:
            raise LearnerError(f"BestOf: there are no strategies: {wanted}")
        for strategy in self.strategies:
            if not is_strategy(strategy):
                raise LearnerError(f"BestOf: {strategy!r} is no strategy: {wanted}")

    def models_kept(self, setting: Setting) -> int:
        """How many fitted estimators the kept model consists of at most."""
        return max(models_kept(strategy, setting) for strategy in self._tried(setting))

    def budget(self, problem: Problem) -> int | None:
        """What all of them may take together."""
        each = [strategy.budget(problem) for strategy in self.strategies]
        return None if None in each else sum(most for most in each if most is not None)

    def suits(self, setting: Setting) -> bool:
        """Whether any of them can work with the learner and the rates."""
        return any(_suits(strategy, setting) for strategy in self.strategies)

    def steps(self, setting: Setting) -> Steps:
        """The steps of each, within its own budget."""
        memory, failures, tried = _Memory(), [], self._tried(setting)
        for strategy in tried:
            most = strategy.budget(setting.problem)
            try:
                yield from _remembering(strategy.steps(setting), memory, most)
            except TrainingError as error:
                failures.append(error)
            if memory.plain is not None and memory.plain.satisfied:
                return
        if len(failures) == len(tried) and not memory.met:
            raise failures[0]

    def _tried(self, setting: Setting) -> Sequence[Strategy]:
        """Those that can work here; where none can, all, of which the first says why."""
        return [s for s in self.strategies if _suits(s, setting)] or self.strategies


@dataclass
class _Memory:
    """The plain model, once it is trained, and whether any trial met the bounds."""

    plain: Trial | None = None
    met: bool = False

    def known(self, proposal: Proposal) -> Trial | None:
        """The trial of a proposal that need not be trained again."""
        plain = self.plain
        return plain if plain is not None and proposal.repeats(plain.proposal) else None

    def note(self, trials: Sequence[Trial]) -> None:
        """Remember what matters of new trials."""
        self.met = self.met or any(t.satisfied for t in trials)
        if self.plain is None:
            self.plain = next((t for t in trials if _is_plain(t.proposal)), None)


def _suits(strategy: Strategy, setting: Setting) -> bool:
    """Whether a strategy can work here; those that do not say can."""
    asked = getattr(strategy, "suits", None)
    return asked is None or bool(asked(setting))


def _remembering(steps: Steps, memory: _Memory, most: int | None) -> Steps:
    """A strategy's steps within its budget; the plain model, once trained, is not trained again."""
    spent, joined = 0, False
    try:
        waiting = list(next(steps, ()))
        while waiting:
            known = [memory.known(p) for p in waiting]
            new = [p for p, trial in zip(waiting, known, strict=True) if trial is None]
            affordable: list[Proposal] = []
            for proposal in new:  # a joint model is trained once, and decides for nothing
                spent += not (proposal.joint and joined)
                joined = joined or proposal.joint
                if most is None or spent <= most:
                    affordable.append(proposal)
            if len(affordable) < len(new):  # what is too dear ends the strategy, untrained
                if affordable:
                    memory.note((yield affordable))
                return
            try:
                trained: Iterator[Trial] = iter((yield new) if new else ())
            except TrainingError as error:
                waiting = following(steps.throw, error)
                continue
            trials = [trial or next(trained) for trial in known]
            memory.note(trials)
            waiting = following(steps.send, trials)
    finally:
        steps.close()


def _is_plain(proposal: Proposal) -> bool:
    return proposal.repeats(Proposal(proposal.multipliers)) and not proposal.multipliers.any()
