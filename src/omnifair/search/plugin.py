"""Multipliers for a joint model: one training, and then none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnifair.problem import Problem
from omnifair.search.guide import Guide
from omnifair.search.guided import GuidedSearch
from omnifair.search.joint import some_rows
from omnifair.search.loop import Steps
from omnifair.search.surrogate import Surrogate
from omnifair.training import Proposal, Setting

# More rows than this do not make multipliers better, only slower to find.
ROWS = 20_000


@dataclass(frozen=True)
class PlugIn:
    """Train one joint model of groups and labels, and decide by it.

    The user's estimator is trained once, to tell apart all pairs of group and label (it needs
    ``predict_proba`` for several classes). A positive decision is made where the gain expected
    under its probabilities is positive: on ``x`` alone, deterministic, and for any multipliers
    without another training. The kept model is a :class:`PlugInClassifier`.

    Parameters
    ----------
    tries
        How many multipliers are tried and measured at most. They cost no training.
    """

    tries: int = 60

    def budget(self, problem: Problem) -> int | None:
        """One."""
        return 1

    def steps(self, setting: Setting) -> Steps:
        """The joint model's own decisions, then those for better and better multipliers."""
        problem = setting.problem
        kind = Proposal(np.zeros(problem.structure.n_rows), joint=True)
        [plain] = yield [kind]
        if plain.satisfied or plain.chances is None:
            return
        random = np.random.RandomState(setting.learner.seed)
        rows = some_rows(np.flatnonzero(problem.weights > 0), ROWS, random)
        surrogate = Surrogate.of(problem, plain.chances[rows], rows)
        if surrogate is None:
            return
        # Trying costs nothing, so it goes on for longer and uses the bounds to the full. (What is
        # at stake is told in units of ``worth``, which therefore is not quite nothing.)
        search = GuidedSearch(
            slack=0.01,
            resolution=0.0,
            worth=1e-9,
            polish=self.tries // 3,
            patience=self.tries // 3,
            enough=self.tries,
        )
        yield from search.pursue(Guide.of(surrogate, plain), kind)
