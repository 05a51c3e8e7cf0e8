"""Agarwal et al.: fairlearn's GridSearch over multipliers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.methods.agarwal import moment, no_fairlearn
from benchmarks.methods.base import Candidate, Method, learner, plain_candidate, stopwatch
from benchmarks.objective import Task


class AgarwalGrid(Method):
    name = "fairlearn GridSearch"
    about = "a grid of 41 multipliers (short: 15), grid_limit 2; every model is a candidate"
    paper = "Agarwal et al."
    bound_free = True
    whole_grid = True
    metrics = ("SP", "FPR", "FNR", "MR")
    many_groups = True

    def missing(self) -> str | None:
        return no_fairlearn()

    def candidates(self, task: Task) -> Iterator[Candidate]:
        from fairlearn.reductions import GridSearch

        size = 15 if task.short else 41
        with warnings.catch_warnings(), stopwatch() as seconds:
            warnings.simplefilter("ignore")
            search = GridSearch(learner(task), moment(task.goal.only, 1e-4), grid_size=size)
            search.fit(task.train.X, task.train.y, sensitive_features=task.train.group)
            taken = seconds()
        columns = search.lambda_vecs_.columns
        for number, model in enumerate(search.predictors_):
            multiplier = float(np.abs(search.lambda_vecs_[columns[number]]).max())
            share = taken / len(search.predictors_)
            yield plain_candidate(model, {"multiplier": multiplier}, share)
