"""LightGBM's bins, kept between trainings on the same rows.

LightGBM first sorts the values of each column into bins. These follow from the columns alone, so
labels and weights may change and the bins stay: a fit on kept ones grows the same trees, bit for
bit, as a fit from the start. (XGBoost's bins follow the weights too; to keep them would change
the model, so they are not kept.)
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def can_keep_bins(estimator: Any) -> bool:
    """Whether fits of this estimator can share their bins and stay what they are.

    It is LightGBM's classifier itself, with nothing set by which labels or weights would be
    changed on their way.
    """
    kind = type(estimator)
    if kind.__name__ != "LGBMClassifier" or not kind.__module__.startswith("lightgbm"):
        return False
    return estimator.class_weight is None and not callable(estimator.objective)


@dataclass(frozen=True)
class _First:
    """The first fit on some rows: its model, LightGBM's data set, and how it was trained."""

    X: Any
    model: Any
    data: Any
    parameters: dict[str, Any]
    rounds: int


@dataclass
class Bins:
    """Fits LightGBM's classifier; keeps the bins of the rows that it was last given."""

    _first: _First | None = None

    def fit(self, model: Any, X: Any, y: NDArray[Any], weights: NDArray[np.float64]) -> Any:
        """A model that cannot be told from ``model.fit(X, y, sample_weight=weights)``."""
        first = self._first
        if first is None or first.X is not X or not np.array_equal(np.unique(y), _classes(first)):
            return self._from_the_start(model, X, y, weights)
        import lightgbm

        first.data.set_label(np.searchsorted(_classes(first), y))
        # set_weight() would take weights that are all 1 as a sign to leave those before.
        first.data.set_field("weight", None if np.all(weights == 1) else weights)
        booster = lightgbm.train(first.parameters, first.data, num_boost_round=first.rounds)
        # All else of a fitted model follows from the rows and the settings, as in the first fit.
        fitted = copy.deepcopy(first.model, {id(first.model.booster_): booster.free_dataset()})
        if fitted.booster_ is not booster:  # a version that keeps its trees in another way
            return self._from_the_start(model, X, y, weights)
        return fitted

    def _from_the_start(
        self, model: Any, X: Any, y: NDArray[Any], weights: NDArray[np.float64]
    ) -> Any:
        seen: list[Any] = []

        def keep(step: Any) -> None:
            if not seen:
                seen.append((step.model.train_set, step.params, step.end_iteration))

        model.fit(X, y, sample_weight=weights, callbacks=[keep])
        self._first = _First(X, model, *seen[0])
        return model


def _classes(first: _First) -> NDArray[Any]:
    return np.asarray(first.model.classes_)
