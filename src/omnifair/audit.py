"""Audit: every rate of any predictions, by group, with counts and intervals, as a dataframe."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any

import narwhals as nw
import numpy as np

from omnifair.constraints import as_constraints, each
from omnifair.errors import DataError, DeclarationError, GroupError, LabelError
from omnifair.inputs import as_classes, as_given, checked_labels, plain
from omnifair.intervals import Bounds, Tails, rate_bounds, tails_of
from omnifair.language import parse_rate
from omnifair.problem import Array, Problem, bind
from omnifair.rates import NAMED, Rate, accuracy

UNNAMED = "sensitive_feature"
COLUMNS = ("measure", "rate", "by", "group", "value", "low", "high", "hits", "count", "rows")


def audit(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any = None,
    *,
    by: Any = None,
    rates: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "error",
    confidence: float = 0.95,
) -> Any:
    """Every rate of some predictions, by group, with counts and intervals, gaps and ratios.

    Parameters
    ----------
    y_true, y_pred
        Labels and predictions of two classes, from any model.
    sensitive_features
        A dataframe, a series, a dict of columns or an array.
    by
        The groups, as :func:`omnifair.gap` takes them. By default every column of
        ``sensitive_features`` by itself.
    rates
        A list of rates, or of their names. By default all of :data:`omnifair.rates.NAMED`.
    pos_label
        The positive class, as in :class:`omnifair.FairClassifier`.
    sample_weight
        How much each row counts.
    missing
        What a missing sensitive value means, as in :func:`omnifair.gap`.
    confidence
        That of each interval by itself.

    Returns
    -------
    dataframe
        In the library of ``sensitive_features`` (else pandas, polars or pyarrow, whichever is
        there), one row for each

        - ``overall`` rate of everybody and ``each`` group's own: ``value``, the interval
          ``low`` to ``high``, and the ``hits`` among the ``count`` of rows in the denominator
          (NaN where the rate is no single proportion), out of ``rows``;
        - ``gap`` (largest minus smallest) and ``ratio`` (smallest over largest) over the groups
          of one ``by``; ``group`` names the two, ``count`` is the smallest of any group.

        A rate without rows in its denominator is NaN, and so is what compares it: undefined is
        not 0.

    Notes
    -----
    Intervals are exact (Clopper and Pearson), for gaps and ratios conservative: true at any
    sample size, for predictions made without a look at these labels. With ``sample_weight`` the
    number of rows is Kish's effective one, which makes them approximate.
    """
    if isinstance(confidence, bool) or not 0.5 < confidence < 1:
        raise DeclarationError(f"confidence={confidence!r}: pass a number between 0.5 and 1.")
    labels = checked_labels(y_true, len(y_true), of="y_true")
    predictions = checked_labels(y_pred, len(labels), of="y_pred", beside="y_true")
    try:
        distinct = np.unique(np.concatenate([np.unique(labels), np.unique(predictions)]))
    except TypeError as error:
        raise LabelError(
            f"y_true and y_pred hold labels of different kinds: {plain(labels[0])!r} and "
            f"{plain(predictions[0])!r}."
        ) from error
    if len(distinct) > 2:
        raise LabelError(
            f"y_true and y_pred hold {len(distinct)} classes between them "
            f"({', '.join(repr(plain(v)) for v in distinct[:5])}): two are wanted."
        )
    if len(distinct) < 2:
        distinct = _both(distinct, pos_label)
    classes = as_classes(distinct, pos_label)
    given = as_given(None, labels, sensitive_features, sample_weight, classes)
    # A floor of 0 asks for nothing: it brings the groups.
    wanted = [each(accuracy, by=g, missing=missing) >= 0 for g in _groupings(by, given.frame)]
    problem = bind(as_constraints(wanted), accuracy, given.frame, given.bits, given.weights)
    table = _table(problem, classes.bits(predictions), _rates(rates), 1 - confidence)
    return _as_dataframe(table, sensitive_features)


def _both(distinct: Any, pos_label: Any) -> Any:
    """Two classes where labels and predictions show only one."""
    pair = next((p for p in ((0, 1), (-1, 1)) if set(distinct.tolist()) <= set(p)), None)
    if pair is None and pos_label is not None and len(distinct) and pos_label != distinct[0]:
        pair = (plain(distinct[0]), pos_label)
    if pair is None or not len(distinct):
        shown = f"only {plain(distinct[0])!r}" if len(distinct) else "nothing"
        raise LabelError(f"y_true and y_pred hold {shown}: two classes are wanted. Say pos_label=.")
    return np.asarray(pair)


def _groupings(by: Any, frame: Any) -> list[Any]:
    if by is not None:
        return [by]
    if frame.sensitive is None:
        raise GroupError("audit() needs sensitive_features to find groups in.")
    return frame.names() or [UNNAMED]


def _rates(rates: Any) -> dict[str, Rate]:
    if rates is None:
        return dict(NAMED)
    listed = [rates] if isinstance(rates, (str, Rate)) else list(rates)
    found = [r if isinstance(r, Rate) else parse_rate(r) for r in listed]
    return {str(rate): rate for rate in found}


def _table(
    problem: Problem, predictions: Any, rates: Mapping[str, Rate], error: float
) -> dict[str, list[Any]]:
    structure = problem.structure
    cells = problem.cells(predictions)
    squares = problem.squared().cells(predictions)
    groupings = list(dict.fromkeys(g.grouping for g in structure.groups))
    rows: list[tuple[Any, ...]] = []
    for name, rate in rates.items():
        values = rate.value(cells)
        tails = tails_of([(t.numerator.weights, t.denominator.weights) for t in rate.terms])
        own = _bounds(rate, tails, cells, squares, error / 2)
        hits, count = _counts(tails, cells)
        for grouping in groupings:
            inside = [j for j, g in enumerate(structure.groups) if g.grouping == grouping]
            by = "" if grouping is None else str(grouping.source).strip("'")
            rows += [
                (
                    "overall" if grouping is None else "each",
                    *(name, by, structure.groups[j].label),
                    *(values[j], own.low[j], own.high[j]),
                    *(hits[j], count[j], cells[j].sum()),
                )
                for j in inside
            ]
            if len(inside) > 1:
                labels = [structure.groups[j].label for j in inside]
                pair = _bounds(rate, tails, cells[inside], squares[inside], error / 4)
                joint = _bounds(
                    rate, tails, cells[inside], squares[inside], error / (4 * len(inside))
                )
                total = cells[inside].sum()
                rows += [
                    (measure, name, by, *found, np.nan, count[inside].min(), total)
                    for measure, found in (
                        ("gap", _gap(labels, values[inside], pair, joint)),
                        ("ratio", _ratio(labels, values[inside], pair, joint)),
                    )
                ]
    return {column: [plain(row[i]) for row in rows] for i, column in enumerate(COLUMNS)}


def _bounds(rate: Rate, tails: Tails | None, cells: Array, squares: Array, error: float) -> Bounds:
    """Bounds of the rate in each group, no wider than where the rate lives."""
    least, most = rate.range
    if tails is None:
        return Bounds(np.full(len(cells), least), np.full(len(cells), most))
    found = rate_bounds(tails, cells, squares, error)
    return Bounds(np.maximum(found.low, least), np.minimum(found.high, most))


def _counts(tails: Tails | None, cells: Array) -> tuple[Array, Array]:
    """The rows that hit and those in the denominator, where the rate is one proportion."""
    if tails is None or len({tail.counts for tail in tails.tails}) != 1:
        unknown = np.full(len(cells), np.nan)
        return unknown, unknown
    [*_, last] = tails.tails
    count = cells[:, last.counts].sum(axis=1)
    if len(tails.tails) > 1:
        return np.full(len(cells), np.nan), count
    return cells[:, last.hits].sum(axis=1), count


# The pair that is farthest apart in truth has bounds of its own, each side with a quarter of the
# error; so whichever pair it is, the largest of all upper bounds holds. A lower bound for some
# pair has to be right for all of them: the error is shared among the groups.
def _gap(labels: list[str], values: Array, pair: Bounds, joint: Bounds) -> tuple[Any, ...]:
    """``group, value, low, high`` of the largest difference."""
    pairs = list(permutations(range(len(values)), 2))
    high = max(float(pair.high[a] - pair.low[b]) for a, b in pairs)
    low = max(0.0, *(float(joint.low[a] - joint.high[b]) for a, b in pairs))
    if np.isnan(values).any():
        return _undefined(labels, values), np.nan, low, high
    a, b = int(values.argmax()), int(values.argmin())
    return f"{labels[a]} - {labels[b]}", values[a] - values[b], low, high


def _ratio(labels: list[str], values: Array, pair: Bounds, joint: Bounds) -> tuple[Any, ...]:
    """``group, value, low, high`` of the smallest quotient."""
    pairs = list(permutations(range(len(values)), 2))
    low = min(_quotient(pair.low[b], pair.high[a]) for a, b in pairs)
    high = min(1.0, *(_quotient(joint.high[b], joint.low[a]) for a, b in pairs))
    if np.isnan(values).any():
        return _undefined(labels, values), np.nan, low, high
    a, b = int(values.argmax()), int(values.argmin())
    return f"{labels[b]} / {labels[a]}", _quotient(values[b], values[a]), low, high


def _undefined(labels: Iterable[str], values: Array) -> str:
    which = [label for label, value in zip(labels, values, strict=True) if np.isnan(value)]
    return f"undefined for {', '.join(which)}"


def _quotient(small: float, large: float) -> float:
    if small == large:
        return 1.0  # as ratio() says of equal rates, also where both are 0
    return float(small / large) if large > 0 else np.inf


def _as_dataframe(table: dict[str, list[Any]], like: Any) -> Any:
    native = nw.from_native(like, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, (nw.DataFrame, nw.Series)):
        return nw.from_dict(table, backend=native.implementation).to_native()
    for backend in ("pandas", "polars", "pyarrow"):
        try:
            importlib.import_module(backend)
        except ImportError:
            continue
        return nw.from_dict(table, backend=backend).to_native()
    raise DataError("audit() returns a dataframe: install pandas, polars or pyarrow.")
