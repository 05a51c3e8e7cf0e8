"""What users pass as labels, weights and data, checked once and made plain.

Labels become 0 and 1, weights floats, sensitive features a :class:`~omnifair.frames.Frame`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from omnifair.errors import DataError, LabelError, LearnerError, PositiveClassWarning, WeightError
from omnifair.frames import Frame


@dataclass(frozen=True)
class Given:
    """Rows as they were given, checked: bits are 0 and 1."""

    X: Any
    bits: NDArray[np.int8]
    weights: NDArray[np.float64]
    frame: Frame


@dataclass(frozen=True)
class Classes:
    """The two class labels; the first is the negative one."""

    negative: Any
    positive: Any

    def labels(self, bits: NDArray[np.int8]) -> NDArray[Any]:
        """0 and 1 as class labels."""
        return np.asarray([self.negative, self.positive])[bits]

    def bits(self, labels: Any) -> NDArray[np.int8]:
        """Class labels, as predicted by a model, as 0 and 1."""
        found = np.asarray(labels)
        found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
        positive = found == self.positive
        if found.ndim != 1 or not np.all(positive | (found == self.negative)):
            raise LearnerError(
                f"predict() must return the class labels {plain(self.negative)!r} and "
                f"{plain(self.positive)!r}, one per row; it returned "
                f"{found.ravel()[:3].tolist()!r}... Is it a regressor, or does it need labels "
                "0 and 1?"
            )
        return np.asarray(positive, dtype=np.int8)


def as_given(
    X: Any, labels: NDArray[Any], sensitive: Any, sample_weight: Any, classes: Classes
) -> Given:
    """Everything about some rows, checked to belong together."""
    unknown = ~np.isin(labels, [classes.negative, classes.positive])
    if unknown.any():
        raise LabelError(
            f"Label {plain(labels[unknown][0])!r} is neither {plain(classes.negative)!r} nor "
            f"{plain(classes.positive)!r}."
        )
    n = len(labels)
    weights = np.ones(n) if sample_weight is None else checked_weights(sample_weight, n)
    return Given(X, classes.bits(labels), weights, Frame(sensitive, X, n))


def checked_labels(y: Any, n: int, of: str = "y", beside: str = "X") -> NDArray[Any]:
    """The labels as an array, one for each of ``n`` rows, of two classes at most."""
    if y is None:
        raise LabelError("FairClassifier requires y to be passed, but the target y is None.")
    labels = column_or_1d(y, warn=True)
    if len(labels) != n:
        raise DataError(
            f"{of} has {len(labels)} labels, but {beside} has {n} rows (inconsistent numbers of "
            "samples)."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise LabelError(f"Input {of} contains NaN or infinity.")
    if labels.dtype == object and any(v is None or v != v for v in labels):
        raise LabelError(f"Input {of} contains missing values (None or NaN).")
    try:
        check_classification_targets(labels)
        distinct = np.unique(labels)
    except (TypeError, ValueError) as error:
        raise LabelError(f"{of}: {error}") from error
    if len(distinct) > 2:
        raise LabelError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"{of} has {len(distinct)} classes."
        )
    if len(distinct) < 2 and of == "y":
        raise LabelError(
            f"{of} has one class only, {plain(distinct[0])!r}: a classifier needs two classes."
            if len(distinct)
            else f"{of} is empty: found array with 0 sample(s) while a minimum of 1 is required."
        )
    return np.asarray(labels)


def as_classes(distinct: NDArray[Any], pos_label: Any) -> Classes:
    """Which of two labels is the positive one: ``pos_label``, or the conventional one."""
    values = [plain(v) for v in distinct]
    if pos_label is None:
        if set(values) not in ({0, 1}, {-1, 1}):  # booleans are among the first
            warnings.warn(
                f"The labels are {values[0]!r} and {values[1]!r} and pos_label is not given: "
                f"{values[1]!r} is taken as the positive class. Say pos_label={values[1]!r} (or "
                f"pos_label={values[0]!r}) to settle it.",
                PositiveClassWarning,
                stacklevel=3,
            )
        pos_label = values[1]
    if pos_label not in values:
        raise LabelError(
            f"pos_label={pos_label!r} is not among the labels {values[0]!r} and {values[1]!r}."
        )
    position = values.index(pos_label)
    return Classes(distinct[1 - position], distinct[position])


def checked_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """User weights as floats: one for each row, none negative, not all 0."""
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError) as error:
        raise WeightError(f"sample_weight must be numbers: {error}") from error
    if weights.shape != (n,):
        raise WeightError(
            f"sample_weight must hold one number per row, shape ({n},); got {weights.shape}. "
            "Sample weights must be 1D array or scalar."
        )
    for wrong, what in (
        (~np.isfinite(weights), "NaN or infinite"),
        (weights < 0, "negative"),
    ):
        if wrong.any():
            raise WeightError(
                f"sample_weight is {what} in row {int(wrong.argmax())}: a weight says how often a "
                "row counts."
            )
    if not weights.any():
        raise WeightError("sample_weight is zero for every row: nothing would count.")
    return weights


def plain(value: Any) -> Any:
    """A NumPy scalar as a plain Python value, so that it prints as people write it."""
    return value.item() if isinstance(value, np.generic) else value
