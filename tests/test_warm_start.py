"""Trainings that go on from the plain model, and trainings at the same time: the same models."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from omnifair import (
    FairClassifier,
    GridSearch,
    GuidedSearch,
    InfeasibleWarning,
    LearnerError,
    Status,
    gap,
)
from omnifair.learners import can_start_warm, learner_for
from omnifair.rates import false_discovery_rate, selection_rate

N = 1500
RANDOM = np.random.RandomState(0)
SEX = RANDOM.choice(["F", "M"], N)
X = pd.DataFrame(
    {"score": RANDOM.normal(size=N) + 0.9 * (SEX == "M"), "other": RANDOM.normal(size=N)}
)
Y = (X["score"] + RANDOM.normal(size=N) > 0.5).to_numpy(dtype=int)
FAIR = gap(selection_rate, by="sex") <= 0.05

# Solved to the last digits, so that what is left is where they started.
EXACT = {
    "lbfgs": LogisticRegression(tol=1e-10, max_iter=1000),
    "newton": LogisticRegression(solver="newton-cholesky", tol=1e-10),
    "sag": LogisticRegression(solver="sag", tol=1e-10, max_iter=10_000),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=1000)),
}


def logistic(model):
    """The logistic regression in a model."""
    return model[-1] if hasattr(model, "steps") else model


@pytest.mark.parametrize("name", EXACT)
def test_logistic_regression_reaches_the_same_optimum_from_another_start(name):
    learner = learner_for(EXACT[name], "sample_weight", 0, None)
    assert learner.warm
    first = learner.fit(X, Y, np.ones(N))
    before = logistic(first).coef_.copy()
    weights = RANDOM.uniform(0.2, 3, N)
    warm, cold = learner.fit(X, Y, weights, first), learner.fit(X, Y, weights)
    np.testing.assert_allclose(logistic(warm).coef_, logistic(cold).coef_, atol=1e-6)
    assert np.array_equal(warm.predict(X), cold.predict(X))
    assert not np.allclose(logistic(cold).coef_, before, atol=1e-3)
    assert np.array_equal(logistic(first).coef_, before)  # the first model is left alone
    assert logistic(warm).n_iter_.sum() <= logistic(cold).n_iter_.sum()
    assert repr(warm.get_params()) == repr(cold.get_params())


def fit(estimator, **parameters):
    """A search; neither how well it converged nor whether it met its bound is asked here."""
    given = {"constraints": FAIR, "random_state": 0, "on_infeasible": "closest"} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", InfeasibleWarning)
        return FairClassifier(estimator, **given).fit(X, Y, sensitive_features={"sex": SEX})


@pytest.mark.parametrize("strategy", [None, GridSearch(points=9), GuidedSearch(subsample=100)])
def test_a_search_finds_the_same_with_and_without_warm_starts(strategy):
    warm, cold = (
        fit(EXACT["lbfgs"], strategy=strategy, warm_start=start) for start in ("auto", False)
    )
    assert [t["gap(selection_rate, by='sex')"] for t in warm.trials_] == pytest.approx(
        [t["gap(selection_rate, by='sex')"] for t in cold.trials_], abs=1e-9
    )
    np.testing.assert_allclose(warm.estimator_.coef_, cold.estimator_.coef_, atol=1e-6)
    assert warm.multipliers_ == pytest.approx(cold.multipliers_, abs=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier((4,), max_iter=60, random_state=0),
        MLPClassifier((4,), max_iter=60, early_stopping=True),
        SGDClassifier(loss="log_loss"),
        SGDClassifier(average=True),
        make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=60)),
        LogisticRegression(C=np.inf),
    ],
    ids=["network", "network stopped early", "sgd", "averaged sgd", "pipeline", "no penalty"],
)
def test_where_the_way_matters_it_is_for_the_asking_and_deterministic(estimator):
    assert not can_start_warm(estimator, asked=None)
    first, second = (fit(estimator, warm_start=True) for _ in range(2))
    assert first.status_ is Status.SATISFIED
    assert np.array_equal(first.predict(X), second.predict(X))
    assert first.multipliers_ == second.multipliers_
    assert not logistic(first.estimator_).warm_start  # the user's own setting


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(), LogisticRegression(solver="liblinear")]
)
def test_what_cannot_go_on_from_a_model_says_so_when_asked(estimator):
    assert not can_start_warm(estimator, asked=None)
    with pytest.raises(LearnerError, match="cannot go on from another model"):
        fit(estimator, warm_start=True)


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
@pytest.mark.parametrize("estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=4)])
@pytest.mark.parametrize(
    "parameters",
    [
        {"strategy": GridSearch(points=7)},
        {"validation": 3},
        {"validation": 2, "strategy": GridSearch(points=5)},
        {"constraints": gap(false_discovery_rate, by="sex") <= 0.1},
    ],
    ids=["grid", "folds", "grid of folds", "one at a time"],
)
def test_how_many_are_trained_at_once_changes_nothing(estimator, parameters, n_jobs):
    with joblib.parallel_backend("threading", n_jobs=1):
        alone, together = (fit(estimator, n_jobs=n, **parameters) for n in (None, n_jobs))
    kept = [
        [{k: v for k, v in trial.items() if k != "seconds"} for trial in model.trials_]
        for model in (alone, together)
    ]
    assert kept[0] == kept[1]
    assert np.array_equal(alone.predict(X), together.predict(X))


def test_points_of_a_grid_are_handed_to_joblib_together():
    batches = []

    class Noting(joblib.parallel.ThreadingBackend):
        def start_call(self):
            batches.append(self.parallel.n_jobs)

    joblib.register_parallel_backend("noting", Noting)
    with joblib.parallel_backend("noting", n_jobs=1):
        fit(LogisticRegression(), strategy=GridSearch(points=7), n_jobs=3)
    assert batches == [3, 3]  # six points beside the origin
