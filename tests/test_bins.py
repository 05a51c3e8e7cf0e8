"""LightGBM's bins, kept between trainings: the models are those of plain fits."""

import functools
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from omnifair import FairClassifier, GridSearch, GuidedSearch, InfeasibleWarning, gap
from omnifair.bins import Bins, can_keep_bins
from omnifair.rates import false_discovery_rate, selection_rate

N = 600
RANDOM = np.random.RandomState(0)
MATRIX = RANDOM.normal(size=(N, 4))
MATRIX[:, 1] = np.round(MATRIX[:, 1])
MATRIX[RANDOM.uniform(size=MATRIX.shape) < 0.05] = np.nan
TABLE = pd.DataFrame(MATRIX, columns=list("abcd")).assign(
    town=pd.Categorical(RANDOM.choice(["north", "south", "east"], N))
)
LABELS = np.where(np.nan_to_num(MATRIX).sum(axis=1) + RANDOM.normal(size=N) > 0, "yes", "no")
FLIPPED = np.where(RANDOM.uniform(size=N) < 0.1, "yes", LABELS)
WEIGHTS = RANDOM.uniform(size=N)
TREES = LGBMClassifier(n_estimators=8, num_leaves=7, min_child_samples=5, n_jobs=1, verbosity=-1)

# What changes between trainings; weights of 1 have to undo those before.
TRAININGS = [
    (LABELS, WEIGHTS),
    (FLIPPED, WEIGHTS * (WEIGHTS > 0.2)),
    (FLIPPED, np.ones(N)),
    (LABELS, 3 * WEIGHTS),
]


def seen(model, X):
    """All that can be seen of a fitted model."""
    return (
        type(model),
        model.get_params(),
        model.booster_.model_to_string(),
        model.predict_proba(X).tolist(),
        model.classes_.tolist(),
        model.n_features_in_,
        list(model.feature_name_),
        model.best_iteration_,
        model.evals_result_,
        model.feature_importances_.tolist(),
        sorted(vars(model)),
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.5, "random_state": 3},
        {"boosting_type": "goss"},
        {"boosting_type": "dart"},
        {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1},
        {"is_unbalance": True},
        {"extra_trees": True},
        {"min_child_samples": 100},
        {"max_bin": 7, "learning_rate": 0.3},
        {"objective": "cross_entropy"},
    ],
    ids=str,
)
def test_a_fit_on_kept_bins_cannot_be_told_from_a_plain_one(settings):
    estimator, bins = clone(TREES).set_params(**settings), Bins()
    for labels, weights in TRAININGS:
        model = bins.fit(clone(estimator), MATRIX, labels, weights)
        plain = clone(estimator).fit(MATRIX, labels, sample_weight=weights)
        assert seen(model, MATRIX) == seen(plain, MATRIX)


@pytest.mark.parametrize(
    "X",
    [MATRIX, MATRIX.astype(np.float32), TABLE, sparse.csr_matrix(np.nan_to_num(MATRIX))],
    ids=["matrix", "float32", "table with categories", "sparse"],
)
def test_any_kind_of_rows_may_be_given(X):
    bins = Bins()
    for labels, weights in TRAININGS:
        model = bins.fit(clone(TREES), X, labels, weights)
        plain = clone(TREES).fit(X, labels, sample_weight=weights)
        assert seen(model, X) == seen(plain, X)


def test_models_of_kept_bins_are_independent_and_can_be_pickled():
    bins = Bins()
    models = [bins.fit(clone(TREES), TABLE, *training) for training in TRAININGS]
    before = [model.predict_proba(TABLE) for model in models]
    models[0].set_params(learning_rate=0.5, path_smooth=0.1)
    assert models[1].get_params() == TREES.get_params()
    again = [pickle.loads(pickle.dumps(model)).predict_proba(TABLE) for model in models]
    assert np.array_equal(before, again)
    models[1].fit(TABLE[:50], LABELS[:50])
    assert np.array_equal(models[2].predict_proba(TABLE), before[2])


def test_other_rows_or_classes_are_begun_anew():
    bins = Bins()
    bins.fit(clone(TREES), MATRIX, LABELS, WEIGHTS)
    for X, labels in (
        (MATRIX[:300], LABELS[:300]),
        (MATRIX.copy(), LABELS),
        (MATRIX, LABELS > "o"),
    ):
        weights = WEIGHTS[: len(labels)]
        model = bins.fit(clone(TREES), X, labels, weights)
        assert seen(model, X) == seen(clone(TREES).fit(X, labels, sample_weight=weights), X)


class Renamed(LGBMClassifier):
    """A classifier that may do anything in its fit."""


@pytest.mark.parametrize(
    "estimator",
    [
        LGBMClassifier(class_weight="balanced"),
        LGBMClassifier(objective=lambda y, p: (p - y, np.ones_like(p))),
        Renamed(),
        LogisticRegression(),
        make_pipeline(StandardScaler(), TREES),
    ],
    ids=["class weights", "own objective", "subclass", "other", "pipeline"],
)
def test_bins_are_not_kept_where_fits_may_differ_by_more(estimator):
    assert can_keep_bins(TREES)
    assert not can_keep_bins(estimator)


@pytest.fixture
def fits(monkeypatch):
    """A list that grows with every plain fit of LightGBM's."""
    counted, plain = [], LGBMClassifier.fit

    @functools.wraps(plain)
    def fit(*args, **kwargs):
        counted.append(True)
        return plain(*args, **kwargs)

    monkeypatch.setattr(LGBMClassifier, "fit", fit)
    return counted


@pytest.mark.parametrize(
    ("rate", "parameters", "begun"),
    [
        (selection_rate, {}, 1),
        (selection_rate, {"validation": 3}, 3 + 1),  # each fold, and the refit
        (false_discovery_rate, {}, 1),
        (selection_rate, {"strategy": GuidedSearch(subsample=100)}, 2),  # a share, then all
        (selection_rate, {"strategy": GridSearch(points=5), "n_jobs": 2}, None),
    ],
    ids=["one", "folds", "predictions below", "subsample", "threads"],
)
def test_a_search_finds_the_same_with_and_without_kept_bins(rate, parameters, begun, fits):
    sex = np.where(MATRIX[:, 0] > 0, "M", "F")  # NaN counts as F
    found = []
    for keep in (True, False):
        fits.clear()
        model = FairClassifier(
            TREES,
            gap(rate, by="sex") <= 0.1,
            keep_bins=keep,
            pos_label="yes",
            on_infeasible="closest",
            random_state=0,
            **parameters,
        )
        with warnings.catch_warnings(), joblib.parallel_backend("threading", n_jobs=1):
            warnings.simplefilter("ignore", InfeasibleWarning)  # the same is what matters here
            model.fit(MATRIX, LABELS, sensitive_features={"sex": sex})
        found.append(
            (
                seen(model.estimator_, MATRIX),
                [{k: v for k, v in t.items() if k != "seconds"} for t in model.trials_],
            )
        )
        if begun is not None:
            assert len(fits) == (begun if keep else model.report().trainings)
    assert found[0] == found[1]
