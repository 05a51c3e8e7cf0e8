"""What an estimator can take: how weights reach it, and how it is made for each training.

A :class:`Learner` hides the differences: a plain estimator, a pipeline (the weight goes to its
final step), a search or a calibrator around either, or, by explicit choice, an estimator without
weights that is trained on replicated rows.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from omnifair.errors import LearnerError

SAMPLE_WEIGHT, RESAMPLE = "sample_weight", "resample"

# How often a row of average weight is repeated where weights have no small common measure.
COPIES = 4


@dataclass(frozen=True)
class Learner:
    """An estimator and the way weights reach it.

    ``keywords`` are the names under which ``fit`` takes the weights; empty where rows are
    replicated instead.
    """

    estimator: Any
    keywords: tuple[str, ...]
    seed: int

    def fit(self, X: Any, y: NDArray[Any], weights: NDArray[np.float64]) -> Any:
        """A new fitted model; the estimator itself is never touched."""
        if len(np.unique(y[weights > 0])) == 1:
            # The weights ask for one decision for everybody, which few learners can be asked.
            constant = DummyClassifier(strategy="constant", constant=y[weights > 0][0])
            return constant.fit(np.zeros((len(y), 1)), y)
        model = fresh(self.estimator, self.seed)
        if self.keywords:
            return model.fit(X, y, **dict.fromkeys(self.keywords, weights))
        copies = replicate(weights, np.random.RandomState(self.seed))
        rows = np.repeat(np.arange(len(y)), copies)
        return model.fit(_safe_indexing(X, rows), y[rows])


def learner_for(estimator: Any, weighting: str, seed: int) -> Learner:
    """Find out how weights reach this estimator, or say what to do."""
    for method in ("fit", "predict"):
        if not hasattr(estimator, method):
            raise LearnerError(
                f"{_name(estimator)} has no {method}(): pass a classifier, such as "
                "LogisticRegression()."
            )
    if inspect.isclass(estimator):
        raise LearnerError(f"{estimator.__name__} is a class: pass an instance of it.")
    if getattr(estimator, "_estimator_type", "classifier") == "regressor" or _is_regressor(
        estimator
    ):
        raise LearnerError(f"{_name(estimator)} is a regressor: pass a classifier.")
    if weighting == RESAMPLE:
        return Learner(estimator, (), seed)
    if weighting != SAMPLE_WEIGHT:
        raise LearnerError(
            f"weighting must be {SAMPLE_WEIGHT!r} or {RESAMPLE!r}, got {weighting!r}."
        )
    return Learner(estimator, weight_keywords(estimator), seed)


def weight_keywords(estimator: Any) -> tuple[str, ...]:
    """The names under which ``fit`` takes one weight per row, down to the final step."""
    if isinstance(estimator, FrozenEstimator):
        raise LearnerError(
            f"{_name(estimator)} ignores weights and is never trained again, so that no "
            "constraint can reach it. Pass the estimator itself, not frozen."
        )
    if isinstance(estimator, Pipeline):
        name, final = estimator.steps[-1]
        if final is None or final == "passthrough":
            raise LearnerError("The pipeline has no classifier as its final step.")
        return tuple(f"{name}__{keyword}" for keyword in weight_keywords(final))
    parameters = inspect.signature(estimator.fit).parameters
    inner = getattr(estimator, "estimator", None)
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if SAMPLE_WEIGHT in parameters:
        # A calibrator takes weights itself and hands the rest to what it calibrates.
        below = weight_keywords(inner) if passes_on and hasattr(inner, "fit") else ()
        return tuple(dict.fromkeys((SAMPLE_WEIGHT, *below)))
    if passes_on and hasattr(inner, "fit"):  # searches, threshold tuning, feature elimination
        return weight_keywords(inner)
    if passes_on and getattr(estimator, "estimators", None):  # voting, stacking
        for _, member in estimator.estimators:
            if hasattr(member, "fit") and weight_keywords(member) != (SAMPLE_WEIGHT,):
                raise LearnerError(
                    f"{_name(estimator)} passes weights on only to members that take "
                    f"sample_weight themselves; {_name(member)} does not."
                )
        return (SAMPLE_WEIGHT,)
    raise LearnerError(
        f"{_name(estimator)} takes no sample_weight, so it cannot be trained on weighted "
        "examples. Choose weighting='resample' to train it on replicated rows instead."
    )


def _is_regressor(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    return isinstance(estimator, BaseEstimator) and is_regressor(estimator)


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def fresh(estimator: Any, seed: int) -> Any:
    """An unfitted copy whose free random states are set, so that trainings can be compared.

    A training with other weights should differ by its weights, not by its luck: every copy gets
    the same seed wherever the user left ``random_state=None``.
    """
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    model = clone(estimator)
    free = {
        name: seed
        for name, value in model.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    if free:
        model.set_params(**free)
    if get_config()["enable_metadata_routing"]:
        _request_weights(model)
    return model


def _request_weights(model: Any) -> None:
    """Under metadata routing a weight goes only where it was asked for: ask for it."""
    if isinstance(model, Pipeline):
        _request_weights(model.steps[-1][1])
        return
    inner = getattr(model, "estimator", None)
    if hasattr(inner, "fit"):
        _request_weights(inner)
    for _, member in getattr(model, "estimators", None) or ():
        if hasattr(member, "fit"):
            _request_weights(member)
    if (
        hasattr(model, "set_fit_request")
        and SAMPLE_WEIGHT in inspect.signature(model.fit).parameters
    ):
        model.set_fit_request(sample_weight=True)


def replicate(weights: NDArray[np.float64], random: np.random.RandomState) -> NDArray[np.intp]:
    """How often to repeat each row so that repetition stands for weight.

    Where all weights are small multiples of one number the copies are exact: weights 0.4 and
    0.6 become 2 and 3 copies. Otherwise rows of average weight are repeated :data:`COPIES` times
    and the rest is rounded along the order of weights, so that any set of equally weighted rows
    keeps its total within one copy.
    """
    total, positive = weights.sum(), weights[weights > 0]
    relative = weights / positive.min()
    for factor in range(1, 11):
        scaled = relative * factor
        counts = np.rint(scaled)
        if counts.sum() > 10 * len(weights):
            break
        if np.allclose(scaled, counts, rtol=0, atol=1e-6):
            return np.asarray(counts, dtype=np.intp)
    order = np.lexsort((random.permutation(len(weights)), weights))
    edges = np.floor(np.cumsum(weights[order]) * (COPIES * len(weights) / total) + random.uniform())
    copies = np.empty(len(weights), dtype=np.intp)
    copies[order] = np.diff(edges, prepend=0.0).astype(np.intp)
    return copies
