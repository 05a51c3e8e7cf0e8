"""Rates counted row by row, from their definitions as conditional probabilities.

Nothing here uses omnifair's cells or rates: this is what they are compared with. ``y`` are labels,
``h`` predictions (0 and 1), ``w`` weights.
"""

import math

import numpy as np

from omnifair.frames import Frame
from omnifair.problem import bind
from omnifair.rates import accuracy


def probability(y, h, w, event, given=lambda y, h: True):
    """The weighted share of ``event`` among the rows that are ``given``; NaN if there is none."""
    rows = [(yi, hi, wi) for yi, hi, wi in zip(y, h, w, strict=True) if given(yi, hi)]
    size = sum(wi for _, _, wi in rows)
    hits = sum(wi for yi, hi, wi in rows if event(yi, hi))
    return hits / size if size > 0 else math.nan


# name: (event, given)
DEFINITIONS = {
    "selection_rate": (lambda y, h: h == 1, lambda y, h: True),
    "true_positive_rate": (lambda y, h: h == 1, lambda y, h: y == 1),
    "false_positive_rate": (lambda y, h: h == 1, lambda y, h: y == 0),
    "true_negative_rate": (lambda y, h: h == 0, lambda y, h: y == 0),
    "false_negative_rate": (lambda y, h: h == 0, lambda y, h: y == 1),
    "false_discovery_rate": (lambda y, h: y == 0, lambda y, h: h == 1),
    "false_omission_rate": (lambda y, h: y == 1, lambda y, h: h == 0),
    "positive_predictive_value": (lambda y, h: y == 1, lambda y, h: h == 1),
    "negative_predictive_value": (lambda y, h: y == 0, lambda y, h: h == 0),
    "accuracy": (lambda y, h: y == h, lambda y, h: True),
    "error_rate": (lambda y, h: y != h, lambda y, h: True),
}


def rate(name, y, h, w=None):
    """A named rate, counted."""
    w = [1.0] * len(y) if w is None else w
    if name == "balanced_accuracy":
        parts = ("true_positive_rate", "true_negative_rate")
        return sum(probability(y, h, w, *DEFINITIONS[part]) for part in parts) / 2
    return probability(y, h, w, *DEFINITIONS[name])


def average_cost(y, h, w, fp, fn):
    """The average cost of error, counted."""
    cost = sum(wi * (fp if hi else fn) for yi, hi, wi in zip(y, h, w, strict=True) if yi != hi)
    return cost / sum(w)


def cells(y, h, w=None):
    """TP, FP, FN, TN, counted."""
    w = [1.0] * len(y) if w is None else w
    total = {(1, 1): 0.0, (0, 1): 0.0, (1, 0): 0.0, (0, 0): 0.0}
    for yi, hi, wi in zip(y, h, w, strict=True):
        total[int(yi), int(hi)] += wi
    return np.array(list(total.values()))


def problem_of(constraints, columns, y, weights=None, objective=accuracy, X=None):
    """Constraints bound to a dict of columns."""
    y = np.asarray(y, dtype=np.int8)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    return bind(constraints, objective, Frame(columns, X, len(y)), y, weights)


def bits(values):
    """Predictions or labels as the library holds them."""
    return np.asarray(values, dtype=np.int8)
