"""Certificates: what rows that played no part in training show of the whole population.

A constraint that is met on some rows need not be met by the people whom the model will judge.
:func:`certify` says of each constraint that it holds for the population, that it is violated, or
that there is not enough evidence to tell. Either claim is false with a chance of at most
``1 - confidence``, at any number of rows and for any model. ``docs/certificates.md`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnifair.constraints import EACH, OVERALL, RATIO, Constraint, as_constraints
from omnifair.errors import CertificateError, DeclarationError, GroupError, LabelError, LearnerError
from omnifair.evidence import (
    POWER,
    Row,
    Seen,
    counted_once,
    from_cells,
    proportions_of,
    rows_of,
    seen_of,
)
from omnifair.fingerprint import refuse_seen
from omnifair.groups import Columns, Grouping
from omnifair.inputs import Classes, as_classes, as_given, checked_labels, plain
from omnifair.problem import Array, Bits, Problem, Structure, bind, measure_value
from omnifair.rates import Rate, accuracy
from omnifair.tables import aligned


class Verdict(StrEnum):
    """What the rows show of a constraint."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_ENOUGH = "not enough evidence"


@dataclass(frozen=True)
class Claim:
    """One constraint, and what is shown of it.

    Attributes
    ----------
    estimate
        The measure on these rows.
    bound
        What the measure of the population is, with the certificate's confidence: at most that
        for ``<=``, at least that for ``>=``. NaN where a rate is undefined.
    worst
        The groups that the bound comes from.
    needed
        Where there is not enough evidence: about how many rows in all would settle it nine times
        in ten, were the rates as they look here; None where no number can be said.
    why
        Why there is not enough evidence.
    """

    constraint: str
    sense: str
    limit: float
    estimate: float
    bound: float
    verdict: Verdict
    worst: str
    needed: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Behind:
    """One rate of one group: ``hits`` among ``count`` rows (NaN where it is no one proportion)."""

    rate: str
    group: str
    value: float
    hits: float
    count: float


@dataclass(frozen=True)
class Certificate:
    """What is shown of each constraint. ``print`` it, or take it as :meth:`to_dict`."""

    confidence: float
    rows: int
    claims: tuple[Claim, ...]
    behind: tuple[Behind, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """That of all constraints together."""
        verdicts = {claim.verdict for claim in self.claims}
        if Verdict.VIOLATED in verdicts:
            return Verdict.VIOLATED
        return Verdict.NOT_ENOUGH if Verdict.NOT_ENOUGH in verdicts else Verdict.HOLDS

    @property
    def holds(self) -> bool:
        """Whether every constraint is shown to hold."""
        return self.verdict is Verdict.HOLDS

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "verdict": str(self.verdict),
            "confidence": self.confidence,
            "rows": self.rows,
            "claims": [
                {f.name: getattr(c, f.name) for f in fields(c)} | {"verdict": str(c.verdict)}
                for c in self.claims
            ],
            "behind": [{f.name: getattr(b, f.name) for f in fields(b)} for b in self.behind],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [
            f"omnifair certificate: {self.verdict}",
            f"  confidence {self.confidence:g}, on {self.rows:,} rows",
            "",
            *aligned(
                ("constraint", "here", "population", "verdict"),
                [
                    (
                        c.constraint,
                        f"{c.estimate:.4f}",
                        f"{'at most' if c.sense == '<=' else 'at least'} {c.bound:.4f}",
                        str(c.verdict),
                    )
                    for c in self.claims
                ],
            ),
            "",
            *aligned(
                ("rate", "group", "value", "hits", "of rows"),
                [
                    (b.rate, b.group, f"{b.value:.4f}", _count_text(b.hits), f"{b.count:,.0f}")
                    for b in self.behind
                ],
            ),
        ]
        notes = [f"{c.constraint}: {c.why}" for c in self.claims if c.why] + list(self.notes)
        return "\n".join([*lines, *([""] if notes else []), *(f"  note: {n}" for n in notes)])


def _count_text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


# -- certifying ------------------------------------------------------------------------------------


def certify(
    model: Any,
    constraints: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    max_weight: float | None = None,
    pos_label: Any = None,
    confidence: float = 0.95,
) -> Certificate:
    """What fresh rows show of constraints on a fitted classifier, for the whole population.

    Parameters
    ----------
    model
        Anything with ``predict``, fitted; ours or not.
    constraints
        One constraint or a list of them.
    X, y, sensitive_features
        Rows drawn like those that the model will judge, which played no part in its training or
        selection. Predictions have to be the model's own for each row by itself.
    sample_weight
        How much each row counts in every rate.
    max_weight
        With weights that differ: the largest that any row of the population can have. Nothing
        valid can be said of means without it.
    pos_label
        The positive class, as in :class:`omnifair.FairClassifier`; that of the model unless told.
    confidence
        Between 0.5 and 1.

    Returns
    -------
    Certificate
        ``print`` it. The statement that all constraints with the verdict *holds* do hold is
        false with a chance of at most ``1 - confidence``; so is the statement that all those
        with the verdict *violated* are.

    Examples
    --------
    >>> certificate = certify(model, gap(selection_rate, by="sex") <= 0.05, X_new, y_new)
    >>> certificate.verdict
    <Verdict.HOLDS: 'holds'>
    """
    error = 1 - checked_confidence(confidence)
    bound = as_constraints(constraints)
    if not bound:
        raise DeclarationError("There are no constraints to certify.")
    if not callable(getattr(model, "predict", None)):
        raise LearnerError(f"{type(model).__name__} has no predict(): pass a fitted classifier.")
    labels = checked_labels(y, _length(X, y), of="the labels to certify on")
    if not len(labels):
        raise CertificateError("There are no rows to certify on.")
    predicted = np.asarray(model.predict(X))
    classes = _classes(model, labels, predicted, pos_label)
    given = as_given(X, labels, sensitive_features, sample_weight, classes)
    record = getattr(model, "fingerprint_", None)
    refuse_seen(record, X, given.bits)
    problem = bind(bound, accuracy, given.frame, given.bits, given.weights, "the rows to certify")
    refuse_missing(_known_groups(model), problem)
    found = certify_predictions(problem, classes.bits(predicted), 1 - error, max_weight=max_weight)
    if record is not None:
        return found
    note = (
        f"whether these rows are new could not be checked: {type(model).__name__} keeps no record "
        "of those that it was trained on"
    )
    return replace(found, notes=(*found.notes, note))


def checked_confidence(confidence: Any) -> float:
    """``confidence``, between 0.5 and 1."""
    number = isinstance(confidence, (int, float, np.floating)) and not isinstance(confidence, bool)
    if not number or not 0.5 < confidence < 1:
        raise DeclarationError(
            f"confidence={confidence!r}: pass a number between 0.5 and 1, such as 0.95."
        )
    return float(confidence)


def _length(X: Any, y: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X) if hasattr(X, "__len__") else len(y)


def _classes(model: Any, labels: NDArray[Any], predicted: NDArray[Any], pos_label: Any) -> Classes:
    known = getattr(model, "classes_", None)
    if known is None or len(known) != 2:
        known = np.unique(np.concatenate([np.unique(labels), np.unique(predicted)]))
    if len(known) != 2:
        shown = ", ".join(repr(plain(v)) for v in known[:5])
        raise LabelError(
            f"Labels and predictions hold {shown}, and the model does not say its two classes_: "
            "two classes are wanted."
        )
    chosen = getattr(model, "pos_label", None) if pos_label is None else pos_label
    return as_classes(np.asarray(known), chosen)


def certify_predictions(
    problem: Problem,
    predictions: Bits,
    confidence: float = 0.95,
    *,
    max_weight: float | None = None,
) -> Certificate:
    """The certificate of some predictions on a problem's rows.

    For rows that were drawn at random and played no part in what made the predictions.
    """
    error = 1 - checked_confidence(confidence)
    rates = seen_of(problem, predictions, max_weight)
    rows = rows_of(problem, rates)
    values = np.array([rate.value for rate in rates])
    claims = []
    for c, constraint in enumerate(problem.structure.constraints):
        mine = [row for row in rows if row.constraint is constraint]
        estimate = _estimate(constraint, problem.structure, c, values)
        claims.append(_claim(constraint, estimate, mine, error, error / len(rows), problem))
    return Certificate(
        confidence=1 - error,
        rows=len(problem),
        claims=tuple(claims),
        behind=tuple(_behind(problem, rates)),
        notes=tuple(_notes(problem, rows, rates)),
    )


def _estimate(constraint: Constraint, structure: Structure, c: int, values: Array) -> float:
    return measure_value(constraint, structure, structure.metrics_of[c], values)


def _claim(
    constraint: Constraint,
    estimate: float,
    rows: Sequence[Row],
    error: float,
    share: float,
    problem: Problem,
) -> Claim:
    text, sense, limit = str(constraint), constraint.sense, constraint.bound
    empty = [rate.name for row in rows for rate in row.rates if not rate.defined]
    if empty:
        names = ", ".join(dict.fromkeys(empty))
        why = f"undefined, with no rows in the denominator: {names}"
        return Claim(
            text, sense, limit, estimate, math.nan, Verdict.NOT_ENOUGH, "", needed=None, why=why
        )
    # Every row has to hold, and the bound of the worst is right if its own is: an
    # intersection-union test. So no row's error is shared, and a row whose bound is shown not to
    # be the worst needs none of its own.
    bound = -math.inf if sense == "<=" else math.inf
    if constraint.measure.kind == RATIO:
        bound = 1.0  # the smallest over the largest
    worst = rows[0]
    for row in sorted(rows, key=Row.excess, reverse=True):
        found = row.bound(error, bound)
        if (found > bound) if sense == "<=" else (found < bound):
            bound, worst = found, row
    if bound <= limit if sense == "<=" else bound >= limit:
        return Claim(text, sense, limit, estimate, bound, Verdict.HOLDS, worst.name)
    # That some row is violated is right only if it is right for each that might be named: here
    # the error is shared among all rows of all constraints.
    broken = [row for row in rows if row.excess() > 0]
    for row in broken:
        if row.violated(share):
            return Claim(text, sense, limit, estimate, bound, Verdict.VIOLATED, row.name)
    doubt = [row for row in rows if row.excess() <= 0]
    if broken:  # the rows that are easiest to show as violated; else all have to be shown to hold
        factors = [min(row.factor(share) for row in broken)]
    else:
        factors = [row.factor(error) for row in doubt]
    factor = max(1.0, *factors)
    needed = _round_up(len(problem) * factor) if factor < 1e6 else None
    what = "that it is violated" if broken else "that it holds"
    why = (
        f"about {needed:,} rows would show {what}, were the rates as they look here"
        if needed
        else "the rates look to be at the bound itself, where no number of rows settles it"
    )
    return Claim(
        text, sense, limit, estimate, bound, Verdict.NOT_ENOUGH, worst.name, needed=needed, why=why
    )


def _round_up(value: float) -> int:
    """With two digits: more would be a pretence."""
    unit = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return int(math.ceil(value / unit) * unit)


def _behind(problem: Problem, rates: Sequence[Seen]) -> Iterable[Behind]:
    for metric, rate in zip(problem.structure.metrics, rates, strict=True):
        one = len(rate.counts) == 1
        yield Behind(
            str(metric.rate),
            problem.structure.groups[metric.group].label,
            rate.value,
            rate.counts[0][0] if one else math.nan,
            min((count for _, count in rate.counts), default=rate.rows),
        )


def _notes(problem: Problem, rows: Sequence[Row], rates: Sequence[Seen]) -> Iterable[str]:
    if any(rate.bets is not None for rate in rates):
        yield "weighted rows, or rates that are no proportion: bounds of means, by betting"
    if any(row.other is not None and not row.independent for row in rows):
        yield "groups overlap: their rates hang together, so bounds are wider"
    sources = [g.grouping.source for g in problem.structure.groups if g.grouping is not None]
    if any(not isinstance(s, Columns) for s in sources) and any(r.independent for r in rows):
        yield "groups that share no row here are taken to share nobody"


# -- groups that a model was fitted on -------------------------------------------------------------


def groups_of(problem: Problem) -> tuple[tuple[Grouping, Hashable], ...]:
    """The groups that a model was fitted on, which it has to be certified for."""
    return tuple((g.grouping, g.key) for g in problem.structure.groups if g.grouping is not None)


def _known_groups(model: Any) -> list[tuple[Grouping, Hashable]]:
    """What a model of ours says it was fitted on; others may have groups_ of another kind."""
    known = getattr(model, "groups_", ())
    return [g for g in known if isinstance(g, tuple)] if isinstance(known, tuple) else []


def refuse_missing(known: Iterable[tuple[Grouping, Hashable]], problem: Problem) -> None:
    """Refuse rows that lack a group which the model was fitted on."""
    here = set(groups_of(problem))
    asked = {grouping for grouping, _ in here}
    for grouping, key in known:
        if grouping in asked and (grouping, key) not in here:
            raise GroupError(
                f"Group {grouping.label(key)!r} has no rows among those to certify on, but the "
                "model was fitted with it: nothing can be said of it. Leave it out "
                "(only=[...]) or bring rows of it."
            )


# -- under selection -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Selected:
    """The last candidate of the passing ones (None: the first fails), and all certificates."""

    position: int | None
    certificates: tuple[Certificate, ...]


def first_certified(
    problem: Problem,
    candidates: Iterable[Bits | Callable[[], Bits]],
    confidence: float = 0.95,
    *,
    max_weight: float | None = None,
) -> Selected:
    """Test candidates in order until one fails; keep the last that passed.

    The order has to be fixed before the problem's rows were looked at, the safest first: then
    the chance that the candidate kept violates a constraint is at most ``1 - confidence``
    whatever their number, since each of them is tested only if all before it passed
    (fixed-sequence testing, as in *Learn then Test*).

    Parameters
    ----------
    problem
        The constraints on the rows to certify on: drawn at random, without regard to groups and
        labels, from the rows that are neither trained nor selected on.
    candidates
        Each one's predictions, or a function that makes them when they are needed.
    confidence, max_weight
        As in :func:`certify`.
    """
    certificates: list[Certificate] = []
    position = None
    for number, candidate in enumerate(candidates):
        predictions = candidate() if callable(candidate) else candidate
        certificates.append(
            certify_predictions(problem, predictions, confidence, max_weight=max_weight)
        )
        if not certificates[-1].holds:
            break
        position = number
    return Selected(position, tuple(certificates))


def margins(
    problem: Problem,
    predictions: Bits,
    share: float,
    confidence: float = 0.95,
    power: float = POWER,
) -> Array:
    """How far inside each linear row to aim, that a certificate on other rows is likely to hold.

    Aim at ``A r <= b - margins``. Weights are left out of account; NaN where a rate is undefined
    or no such number can be said.

    Parameters
    ----------
    problem, predictions
        Rows to learn the rates of groups from (validation rows, say), as they are now.
    share
        How many rows to certify on there will be for each row of the problem.
    confidence
        That of the certificate.
    power
        How likely each row is to be shown to hold, where the rates are just at the target.
    """
    error, structure = 1 - checked_confidence(confidence), problem.structure
    counted = counted_once(problem).cells(predictions)
    unknown = Seen("", math.nan, math.nan, math.nan, None, ())
    rates = [
        (
            from_cells("", metric.rate, np.rint(counted[metric.group] * share))
            if isinstance(metric.rate, Rate)
            else None
        )
        or unknown
        for metric in structure.metrics
    ]
    found = np.full(structure.n_rows, np.nan)
    free = [
        c.measure.kind == RATIO and c.bound == 0
        for c in (structure.constraints[i] for i in structure.owner)
    ]
    places = np.flatnonzero(~np.array(free, dtype=bool))
    found[np.array(free, dtype=bool)] = 0.0
    for k, row in zip(places, rows_of(problem, rates), strict=True):
        margin = row.margin(error, power, exact=False)
        found[k] = margin if math.isfinite(margin) else np.nan
    return found


# -- how many rows ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleSize:
    """How many rows a promise needs.

    ``rows`` by group (all rows of the group, also those outside of the rate's denominator), and
    ``total``: all of them.
    """

    rows: Mapping[Hashable, int]
    total: int


def margin(
    constraint: Constraint,
    counts: Sequence[int],
    rates: Sequence[float],
    confidence: float = 0.95,
    power: float = POWER,
) -> float:
    """How far inside its bound a constraint must be, that its certificate is likely to hold.

    In the terms of its linear rows: ``r_a - r_b <= bound - margin`` for a gap,
    ``bound * r_a - r_b <= -margin`` for a ratio.

    Parameters
    ----------
    constraint
        On a rate that is one proportion.
    counts, rates
        By group: the rows in the rate's denominator there will be, and the rate expected.
    confidence, power
        Of the certificate, and how likely it shall hold.
    """
    error = 1 - checked_confidence(confidence)
    return max(row.margin(error, power) for row in _expected(constraint, counts, rates))


def _expected(constraint: Constraint, counts: Sequence[float], rates: Sequence[float]) -> list[Row]:
    """Linear rows where everything is as expected."""
    rate, kind = constraint.measure.rate, constraint.measure.kind
    tails = proportions_of(rate) if isinstance(rate, Rate) else None
    if tails is None or len(tails.tails) != 1:
        raise DeclarationError(
            f"{constraint.measure}: a number of rows can be said only for a rate that is one "
            "proportion, such as selection_rate or false_positive_rate."
        )
    [tail] = tails.tails
    seen = []
    for j, (count, value) in enumerate(zip(counts, rates, strict=True)):
        share, n = (value - tails.constant) / tail.size, max(1, round(count))
        hits = float(min(n, max(0, round(share * n))))
        at = tails.constant + tail.size * hits / n
        variance = tail.size**2 * max(share * (1 - share), 0.25 / n) / n
        seen.append(Seen(str(j), at, variance, float(n), tails, ((hits, float(n)),)))
    if kind in (EACH, OVERALL):
        return [Row(constraint, s.name, s) for s in seen]
    where = range(len(seen))
    return [
        Row(constraint, f"{a}, {b}", seen[a], seen[b], True) for a in where for b in where if a != b
    ]


def sample_size(
    constraint: Constraint,
    *,
    rates: Any,
    shares: Any = None,
    behind: Any = 1.0,
    confidence: float = 0.95,
    power: float = POWER,
) -> SampleSize:
    """How many rows a certificate needs, that a constraint is likely to be shown to hold.

    Parameters
    ----------
    constraint
        On a rate that is one proportion.
    rates
        The rate expected of each group: ``{group: rate}``, a list, or one number for all (two
        groups, unless ``shares`` lists more).
    shares
        Each group's share of the rows: equal unless told.
    behind
        The share of a group's rows that are in the rate's denominator, by group or one number:
        for the true positive rate that of positives.
    confidence
        That of the certificate.
    power
        How likely the certificate is to hold, for each pair of groups, where the rates are as
        expected.

    Examples
    --------
    >>> sample_size(gap(selection_rate, by="sex") <= 0.05, rates={"F": 0.28, "M": 0.3}).total
    7956
    """
    error = 1 - checked_confidence(confidence)
    if not 0 < power < 1:
        raise DeclarationError(f"power={power!r}: pass a number between 0 and 1, such as 0.9.")
    if len(as_constraints(constraint)) != 1 or not isinstance(constraint, Constraint):
        raise DeclarationError(
            "sample_size takes one constraint at a time: ask for each, and take the largest."
        )
    names, expected, parts, within = _by_group(constraint, rates, shares, behind)
    exact = [row.excess() for row in _expected(constraint, [10**9] * len(names), expected)]
    if max(exact) > -1e-7:
        raise DeclarationError(
            f"{constraint} does not hold at the rates expected ({_said(names, expected)}), or only "
            "just: no number of rows can show it."
        )

    def enough(n: int) -> bool:
        counts = [n * part * inside for part, inside in zip(parts, within, strict=True)]
        rows = _expected(constraint, counts, expected)
        # The expected rates exactly: hits are whole numbers, a small sample's rate is not.
        return all(row.margin(error, power) <= -away for row, away in zip(rows, exact, strict=True))

    # From about where a normal approximation says.
    start = 10**6
    counts = [start * part * inside for part, inside in zip(parts, within, strict=True)]
    about = max(row.factor(error, power) for row in _expected(constraint, counts, expected))
    most = max(2, math.ceil(start * about))
    while not enough(most):
        most = math.ceil(most * 1.25)
        if most > 2**33:
            raise DeclarationError(f"{constraint}: no number of rows in reach can show it.")
    least = math.floor(most / 1.25)
    while least > 1 and enough(least):
        least, most = math.floor(least / 1.25), least
    while most - least > max(1, most // 500):
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    rows = {name: math.ceil(most * part) for name, part in zip(names, parts, strict=True)}
    return SampleSize(rows, sum(rows.values()))


def _by_group(
    constraint: Constraint, rates: Any, shares: Any, behind: Any
) -> tuple[list[Hashable], list[float], list[float], list[float]]:
    names: list[Hashable] | None = None
    for given in (rates, shares, behind):
        if names is None and isinstance(given, Mapping):
            names = list(given)
        elif names is None and hasattr(given, "__len__"):
            names = list(range(len(given)))
    if names is None:
        grouping = constraint.measure.grouping
        only = None if grouping is None else grouping.only
        one = constraint.measure.kind in (EACH, OVERALL)
        names = list(only) if only is not None else [0] if one else [0, 1]
    values = []
    for role, given in (
        ("rates", rates),
        ("shares", 1.0 if shares is None else shares),
        ("behind", behind),
    ):
        found: list[float]
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise DeclarationError(f"{role} must name the groups {names}, not {list(given)}.")
            found = [float(given[name]) for name in names]
        else:
            found = np.atleast_1d(np.asarray(given, dtype=float)).tolist()
            found = found * len(names) if np.ndim(given) == 0 else found
        if len(found) != len(names):
            raise DeclarationError(f"{role} must hold {len(names)} numbers, one for each group.")
        if not all(math.isfinite(v) and (v > 0 or role == "rates") for v in found):
            raise DeclarationError(f"{role} must be positive numbers, got {found}.")
        values.append(found)
    expected, parts, within = values
    low, high = constraint.measure.rate.range
    if not all(low <= v <= high for v in expected) or max(within) > 1:
        raise DeclarationError(
            f"rates must lie between {low:g} and {high:g} and behind between 0 and 1, got "
            f"{expected} and {within}."
        )
    if constraint.measure.kind not in (EACH, OVERALL) and len(names) < 2:
        raise DeclarationError(f"{constraint}: name two groups or more.")
    return names, expected, [p / sum(parts) for p in parts], within


def _said(names: Sequence[Hashable], values: Sequence[float]) -> str:
    return ", ".join(f"{name}: {value:g}" for name, value in zip(names, values, strict=True))
