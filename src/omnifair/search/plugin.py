"""Multipliers for a joint model: one training, and then none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from omnifair.problem import Problem
from omnifair.search.guide import Guide
from omnifair.search.guided import GuidedSearch
from omnifair.search.joint import some_rows
from omnifair.search.loop import Steps
from omnifair.search.refine import refined, standing
from omnifair.search.surrogate import Surrogate
from omnifair.training import Proposal, Setting, Trial, why_not_joint

# More rows than this do not make multipliers better, only slower to find.
ROWS = 20_000


@dataclass(frozen=True)
class PlugIn:
    """Train one joint model of groups and labels, and decide by it.

    The user's estimator is trained once, to tell apart all pairs of group and label (it needs
    ``predict_proba`` for several classes). A positive decision is made where the gain expected
    under its probabilities is positive: on ``x`` alone, deterministic, and for any multipliers
    without another training. The kept model is a :class:`PlugInClassifier`.

    Since trying costs nothing, much is tried: multipliers first, then their sizes together with
    the gain that a positive decision has to exceed, for learners that are too sure of themselves.
    What is chosen meets the bounds on the validation rows. To choose among many without choosing
    luck, the objective is the mean of what is measured there and what the probabilities let
    expect, and bounds should be met by that mean too.

    Parameters
    ----------
    tries
        How many multipliers are measured one by one, at most where they meet the bounds. The search
        for better ones ends before where a third as many brought nothing better; where bounds are
        not met it goes on while they come closer. They cost no training.
    plain
        Whether to train the plain estimator too: where it meets the bounds it is what is kept,
        and where it does not, it says with the joint model how likely a label is. This is more
        accurate as a rule, for a second training.
    """

    tries: int = 60
    plain: bool = False

    def budget(self, problem: Problem) -> int | None:
        """One; two with the plain model."""
        return 2 if self.plain else 1

    def models_kept(self, setting: Setting) -> int:
        """How many fitted estimators the kept model consists of."""
        return 2 if self.plain else 1

    def suits(self, setting: Setting) -> bool:
        """Whether the learner has probabilities, and rates are made of counts."""
        return why_not_joint(setting.learner, setting.problem) is None

    def steps(self, setting: Setting) -> Steps:
        """The joint model's own decisions, those for better and better multipliers, the best."""
        nothing = np.zeros(setting.problem.structure.n_rows)
        plain: Trial | None = None
        if self.plain:
            [plain] = yield [Proposal(nothing)]
            if plain.satisfied:
                return
        kind = Proposal(nothing, joint=True, plain=plain, exploratory=True)
        [start] = yield [kind]
        seen: Sequence[Trial] = [start]
        surrogate = None if start.satisfied else self._surrogate(setting, start)
        if surrogate is not None:
            # Trying costs nothing, so it goes on for longer and uses the bounds to the full.
            # (What is at stake is told in units of ``worth``, which therefore is not quite
            # nothing.)
            search = GuidedSearch(
                slack=0.01,
                resolution=0.0,
                worth=1e-9,
                polish=self.tries // 3,
                patience=self.tries // 3,
                enough=self.tries,
            )
            seen = (yield from search.pursue(Guide.of(surrogate, start), kind)).seen
        best = max(seen, key=standing)
        [trial] = yield [refined(setting, seen)]
        if best.satisfied and not trial.satisfied:
            # The best was judged there too. Rounding, where gains tie with the offset, parted what
            # was judged from what is decided.
            yield [replace(best.proposal, exploratory=False)]

    @staticmethod
    def _surrogate(setting: Setting, start: Trial) -> Surrogate | None:
        """What the joint model decides at other multipliers, on some rows."""
        assert start.chances is not None  # a joint model's trial has them
        random = np.random.RandomState(setting.learner.seed)
        rows = some_rows(np.flatnonzero(setting.problem.weights > 0), ROWS, random)
        return Surrogate.of(setting.problem, start.chances[rows], rows)
