"""The learners of the experiments, and the settings of each that are tuned.

::

    make("LR")  # a fresh estimator with its defaults
    make("XGB", {"max_depth": 3})  # with a setting of its grid
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier


def logistic_regression(**settings: Any) -> BaseEstimator:
    """Logistic regression by L-BFGS, C = 1."""
    return LogisticRegression(**{"max_iter": 1000, **settings})


def random_forest(**settings: Any) -> BaseEstimator:
    """50 trees, leaves of 5 rows or more."""
    defaults = {"n_estimators": 50, "min_samples_leaf": 5, "n_jobs": 1, "random_state": 0}
    return RandomForestClassifier(**{**defaults, **settings})


def xgboost(**settings: Any) -> BaseEstimator:
    """100 trees of depth 4, learning rate 0.1."""
    from xgboost import XGBClassifier

    defaults = {"n_estimators": 100, "max_depth": 4, "learning_rate": 0.1, "tree_method": "hist"}
    return XGBClassifier(**{**defaults, "n_jobs": 1, "random_state": 0, **settings})


def neural_network(**settings: Any) -> BaseEstimator:
    """One hidden layer of 32 units, stopped early on a tenth of what it is given."""
    defaults = {
        "hidden_layer_sizes": (32,),
        "max_iter": 40,
        "batch_size": 128,
        "learning_rate_init": 0.005,
        "early_stopping": True,
        "n_iter_no_change": 8,
        "random_state": 0,
    }
    return MLPClassifier(**{**defaults, **settings})


def lightgbm(**settings: Any) -> BaseEstimator:
    """100 trees of 31 leaves, learning rate 0.1."""
    from lightgbm import LGBMClassifier

    defaults = {"n_estimators": 100, "num_leaves": 31, "learning_rate": 0.1, "verbosity": -1}
    return LGBMClassifier(**{**defaults, "n_jobs": 1, "random_state": 0, **settings})


LEARNERS: dict[str, Callable[..., BaseEstimator]] = {
    "LR": logistic_regression,
    "RF": random_forest,
    "XGB": xgboost,
    "NN": neural_network,
    "LightGBM": lightgbm,
}

# The learner's own settings that the full form tunes; the other forms take the defaults.
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "LR": ({"C": 0.01}, {"C": 0.1}, {"C": 1.0}, {"C": 10.0}),
    "RF": ({"min_samples_leaf": 2}, {"min_samples_leaf": 5}, {"min_samples_leaf": 20}),
    "XGB": ({"max_depth": 3}, {"max_depth": 4}, {"max_depth": 6}),
    "NN": ({"alpha": 1e-4}, {"alpha": 1e-2}, {"alpha": 1.0}),
    "LightGBM": ({"num_leaves": 7}, {"num_leaves": 15}, {"num_leaves": 31}),
}


def make(name: str, settings: Mapping[str, Any] | None = None) -> BaseEstimator:
    """A fresh learner; ``settings`` on top of its defaults."""
    return LEARNERS[name](**(settings or {}))
