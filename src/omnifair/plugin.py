"""A classifier that decides by a joint model: positive where the expected gain is positive."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    assert_all_finite,
    check_is_fitted,
    column_or_1d,
    validate_data,
)


class PlugInClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Decide by ``P(group, label | x)`` and what a positive decision gains in each case.

    One probabilistic classifier is trained to tell apart the pairs of group and label. The
    decision at ``x`` is positive where the gain expected under its probabilities is. It needs
    ``x`` alone, and other gains need no other training. Its probabilities sum to 1, so that what
    is taken off all gains is what an expected gain has to exceed.

    Parameters
    ----------
    estimator
        A classifier with ``predict_proba``, for as many classes as there are pairs.
    gains
        What a positive decision gains, by group (in sorted order) and label: an array of shape
        ``(groups, 2)``. By default -1 for label 0 and 1 for label 1: the most likely label.
    label_estimator
        A second classifier with ``predict_proba``, for the two labels. Where there is one, the
        two say together how likely a label is (the mean of their probabilities), and
        ``estimator`` alone how likely a group is, given the label.

    Attributes
    ----------
    classes_
        The two class labels, the negative one first.
    groups_
        The distinct groups, in order.
    estimator_
        The fitted joint model; its classes are ``2 * group + label``, by position.
    label_estimator_
        The fitted model of labels, or None.
    """

    def __init__(self, estimator: Any, gains: Any = None, label_estimator: Any = None) -> None:
        self.estimator = estimator
        self.gains = gains
        self.label_estimator = label_estimator

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Train the models; without ``groups`` everybody is in one."""
        validate_data(self, X, skip_check_array=True)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self.classes_, code = np.unique(labels, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported: a classifier needs two classes, and "
                f"y has {len(self.classes_)} class(es)."
            )
        if groups is None:
            groups = np.zeros(len(labels), dtype=int)
        self.groups_, group = np.unique(np.asarray(groups), return_inverse=True)
        keywords = {}
        if sample_weight is not None:
            keywords["sample_weight"] = _check_sample_weight(sample_weight, X)
        joint = clone(self.estimator).fit(X, _dense(2 * group + code)[1], **keywords)
        said = None
        if self.label_estimator is not None:
            said = clone(self.label_estimator).fit(X, labels, **keywords)
        self._keep(joint, np.unique(2 * group + code), said)
        return self

    @classmethod
    def of(
        cls,
        joint: Any,
        codes: NDArray[np.intp],
        gains: NDArray[np.float64],
        classes: NDArray[Any],
        said: Any = None,
        odds: float = 1.0,
    ) -> Self:
        """From a fitted joint model whose classes 0, 1, ... are these codes.

        ``said`` is a fitted model of the labels, ``odds`` by what its weights multiplied theirs.
        """
        model = cls(joint, gains, said)
        model.classes_ = classes
        model.groups_ = np.arange(len(gains))
        if hasattr(joint, "n_features_in_"):
            model.n_features_in_ = joint.n_features_in_
        if hasattr(joint, "feature_names_in_"):
            model.feature_names_in_ = joint.feature_names_in_
        model._keep(joint, codes, said, odds)
        return model

    def _keep(
        self, joint: Any, codes: NDArray[np.intp], said: Any = None, odds: float = 1.0
    ) -> None:
        self.estimator_, self.label_estimator_ = joint, said
        self._codes, self._odds = codes, odds

    def chances(self, X: Any) -> NDArray[np.float64]:
        """``P(group, label | x)`` by ``2 * group + label``."""
        check_is_fitted(self)
        table = spread(self.estimator_, self._codes, 2 * len(self.groups_), X)
        if self.label_estimator_ is None:
            return table
        return averaged(table, chance_of(self.label_estimator_, X, self.classes_[1], self._odds))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The expected gain of a positive decision."""
        check_is_fitted(self)
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, reset=False, skip_check_array=True)
        gains = self.gains
        if gains is None:
            gains = np.tile([-1.0, 1.0], (len(self.groups_), 1))
        return np.asarray(self.chances(X) @ np.asarray(gains, dtype=float).ravel())

    def predict(self, X: Any) -> NDArray[Any]:
        """The positive class where it is expected to gain."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _dense(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct codes, and each row's as the position of its own (XGBoost asks for that)."""
    distinct, inverse = np.unique(codes, return_inverse=True)
    return distinct, inverse


def spread(joint: Any, codes: NDArray[np.intp], size: int, X: Any) -> NDArray[np.float64]:
    """A joint model's probabilities in the columns of their codes."""
    table = np.zeros((_num_samples(X), size))
    table[:, codes[np.asarray(joint.classes_, dtype=np.intp)]] = joint.predict_proba(X)
    return table


def chance_of(model: Any, X: Any, positive: Any, odds: float = 1.0) -> NDArray[np.float64]:
    """How likely the positive label is by a model of labels.

    ``odds`` is how many times the weight of a negative a positive had when it was trained.
    """
    classes = list(model.classes_)
    if positive not in classes:
        return np.zeros(_num_samples(X))
    said = np.asarray(model.predict_proba(X), dtype=float)[:, classes.index(positive)]
    return np.asarray(said / (said + (1 - said) * odds))


def averaged(chances: NDArray[np.float64], said: NDArray[np.float64]) -> NDArray[np.float64]:
    """Joint chances with labels that are as likely as they and another model say on average."""
    return with_labels(chances, (chances[:, 1::2].sum(axis=1) + said) / 2)


def with_labels(chances: NDArray[np.float64], positive: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same chances of groups within each label, with other chances of the label 1.

    Where a row's chances give a label none, its groups are as likely as within the other.
    """
    by_label = chances.reshape(len(chances), -1, 2)
    known = np.where(
        by_label.sum(axis=1, keepdims=True) > 0, by_label, by_label.sum(axis=2, keepdims=True)
    )
    wanted = np.column_stack([1 - positive, positive])[:, None, :]
    scaled = known * (wanted / known.sum(axis=1, keepdims=True))
    return np.asarray(scaled.reshape(len(chances), -1))
