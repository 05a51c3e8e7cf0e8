"""Measures and constraints: what is compared over groups, and how far apart it may be.

``gap``, ``ratio``, ``each`` and ``overall`` make a :class:`Measure`; ``<=`` or ``>=`` with a
number makes a :class:`Constraint`. Neither has seen data, and both refuse at once what no data
could make sense of.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from omnifair.errors import DeclarationError
from omnifair.groups import ByFunction, Grouping, Predicates, as_grouping, plain_key
from omnifair.rates import Coefficients, Declared, Rate, number, text_of_number

AnyRate = Rate | Coefficients

GAP, RATIO, EACH, OVERALL = "gap", "ratio", "each", "overall"


@dataclass(frozen=True, slots=True)
class Measure(Declared):
    """What is compared: made by :func:`gap`, :func:`ratio`, :func:`each`, :func:`overall`."""

    kind: str
    rate: AnyRate
    grouping: Grouping | None = None
    reference: Hashable | None = None

    def __le__(self, bound: Any) -> Constraint:
        return Constraint(self, "<=", _bound(self, bound))

    def __ge__(self, bound: Any) -> Constraint:
        return Constraint(self, ">=", _bound(self, bound))

    def __str__(self) -> str:
        parts = [str(self.rate)]
        if self.grouping is not None:
            parts.append(f"by={self.grouping.source}")
            if self.grouping.only is not None:
                parts.append(f"only={list(self.grouping.only)!r}")
            if self.reference is not None:
                parts.append(f"reference={self.reference!r}")
            if self.grouping.missing != "error":
                parts.append(f"missing={self.grouping.missing!r}")
        return f"{self.kind}({', '.join(parts)})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Constraint(Declared):
    """A measure and its bound: ``gap(selection_rate, by='sex') <= 0.03``."""

    measure: Measure
    sense: str
    bound: float

    def __post_init__(self) -> None:
        kind, bound = self.measure.kind, self.bound
        low, high = self.measure.rate.range
        if kind == GAP:
            if self.sense == ">=":
                raise DeclarationError(
                    f"{self}: a gap is bounded from above only, and by one comparison: write "
                    f"gap(...) <= {bound:g}."
                )
            low, high = 0.0, high - low
        elif kind == RATIO:
            if self.sense == "<=":
                raise DeclarationError(
                    f"{self}: a ratio (smallest over largest) is bounded from below; write "
                    f"ratio(...) >= {bound:g}."
                )
            low, high = 0.0, 1.0
        if not low <= bound <= high:
            scope = f"between {low:g} and {high:g}" if math.isfinite(high) else f"{low:g} or more"
            raise DeclarationError(f"{self}: the bound must be {scope}, where {kind} lives.")

    def _refuse_bound(self) -> Any:
        raise DeclarationError(
            f"({self}) has a bound already. Two bounds are two constraints: write a list, such "
            "as [each(rate, by=...) >= 0.1, each(rate, by=...) <= 0.2]."
        )

    def __str__(self) -> str:
        return f"{self.measure} {self.sense} {text_of_number(self.bound)}"

    __repr__ = __str__


def _bound(measure: Measure, bound: Any) -> float:
    if isinstance(bound, Declared):
        raise DeclarationError(f"{measure} can be bounded by a number only, not by {bound}.")
    return number(bound, f"The bound of {measure}") + 0.0


def gap(
    rate: AnyRate, *, by: Any, only: Any = None, reference: Any = None, missing: str = "error"
) -> Measure:
    """The largest rate over groups minus the smallest: every pair of groups is compared.

    Parameters
    ----------
    rate
        A rate from :mod:`omnifair.rates`, or one made by its algebra.
    by
        A column's name; a list of names to cross; :func:`groups`; or a function that takes the
        data and returns ``{group id: row indices}``.
    only
        Keep these groups; rows of others belong to none.
    reference
        Compare each group with this one rather than every pair.
    missing
        What a missing value in a column of ``by`` means: ``"error"``, ``"ignore"`` (in no
        group) or ``"group"`` (a group of its own).

    Examples
    --------
    >>> gap(selection_rate, by="sex") <= 0.03
    """
    return _compared(GAP, rate, by, only, reference, missing)


def ratio(
    rate: AnyRate, *, by: Any, only: Any = None, reference: Any = None, missing: str = "error"
) -> Measure:
    """The smallest rate over groups divided by the largest: the four-fifths rule is ``>= 0.8``.

    With ``reference``, the smaller of the two rates over the larger, for each group against
    that one. Equal rates have ratio 1, also where both are 0. Parameters as in :func:`gap`.
    """
    measure = _compared(RATIO, rate, by, only, reference, missing)
    if isinstance(rate, Rate) and rate.range[0] < 0:
        raise DeclarationError(f"{measure}: the rate can be negative, where a ratio says nothing.")
    return measure


def each(rate: AnyRate, *, by: Any, only: Any = None, missing: str = "error") -> Measure:
    """Every group's own rate, for a floor or a ceiling. Parameters as in :func:`gap`."""
    return Measure(EACH, _rate(rate), as_grouping(by, only, missing))


def overall(rate: AnyRate) -> Measure:
    """The rate of the whole population."""
    return Measure(OVERALL, _rate(rate))


def _compared(
    kind: str, rate: AnyRate, by: Any, only: Any, reference: Any, missing: str
) -> Measure:
    grouping = as_grouping(by, only, missing)
    if grouping.only is not None and len(grouping.only) < 2:
        raise DeclarationError(f"{kind}: only={list(grouping.only)!r} leaves nothing to compare.")
    reference = plain_key(reference)
    if reference is not None and grouping.only is not None and reference not in grouping.only:
        raise DeclarationError(f"reference={reference!r} is not among only={list(grouping.only)}.")
    return Measure(kind, _rate(rate), grouping, reference)


def _rate(rate: Any) -> AnyRate:
    if isinstance(rate, (Rate, Coefficients)):
        return rate
    raise DeclarationError(
        f"{rate!r} is not a rate: take one from omnifair.rates, such as selection_rate, or make "
        "one from its cells, such as FP / (FP + TN)."
    )


def can_be_text(constraint: Constraint) -> bool:
    """Whether ``str(constraint)`` says all of it: functions have no text, nor has a date."""
    measure, grouping = constraint.measure, constraint.measure.grouping
    if isinstance(measure.rate, Coefficients):
        return False
    if grouping is None:
        return True
    if isinstance(grouping.source, ByFunction):
        return False
    names = grouping.source.items if isinstance(grouping.source, Predicates) else ()
    return all(name.isidentifier() and not iskeyword(name) for name, _ in names) and all(
        map(_is_literal, (measure.reference, *(grouping.only or ())))
    )


def _is_literal(key: Hashable) -> bool:
    if isinstance(key, tuple):
        return all(map(_is_literal, key))
    if isinstance(key, float):
        return math.isfinite(key)
    return key is None or isinstance(key, (str, bytes, int))


def as_constraints(value: Any) -> tuple[Constraint, ...]:
    """What a user passes as ``constraints``: one, or a list of them; checked."""
    if isinstance(value, Constraint):
        return (value,)
    if isinstance(value, (Measure, Rate, Coefficients, str, bytes)) or not hasattr(
        value, "__iter__"
    ):
        raise DeclarationError(_what_is_wrong(value))
    constraints = tuple(value)
    for item in constraints:
        if not isinstance(item, Constraint):
            raise DeclarationError(_what_is_wrong(item))
    return tuple(dict.fromkeys(constraints))


def _what_is_wrong(item: Any) -> str:
    if isinstance(item, Measure):
        return f"{item} has no bound: write {item} {'>=' if item.kind == RATIO else '<='} a number."
    if isinstance(item, bool):
        return (
            f"The list of constraints holds a plain {item}: some comparison was answered by "
            "Python itself. Bounds are written with <= or >=, never ==."
        )
    if isinstance(item, str):
        return f"{item!r} is text: pass parse({item!r})."
    return f"{item!r} is not a constraint, such as gap(selection_rate, by='sex') <= 0.03."
