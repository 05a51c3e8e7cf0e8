"""Cells and rates: what a constraint compares.

A group's confusion matrix has four cells. A rate is a quotient of two weighted sums of cells, or
a sum of such quotients, and says itself how it moves when one more row is predicted positive::

    >>> from omnifair.rates import TP, FP, TN
    >>> FP / (FP + TN)
    false_positive_rate

Everything here is frozen and knows no data; numbers come in as arrays whose last axis holds the
cells in the order ``TP, FP, FN, TN``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnifair.errors import DeclarationError

Array = NDArray[np.float64]

CELLS = ("TP", "FP", "FN", "TN")


class Declared:
    """What every declared value refuses, so that no slip of Python passes for a constraint."""

    __slots__ = ()
    # NumPy on the left of an operator must leave it to us rather than build an object array.
    __array_ufunc__: ClassVar[None] = None

    def __bool__(self) -> bool:
        raise DeclarationError(
            f"{self} has no truth value. Chained comparisons, 'and', 'or', 'not' and 'if' cannot "
            "combine constraints: write each bound as its own item of a list, such as "
            "[each(rate, by=...) >= 0.1, each(rate, by=...) <= 0.2]."
        )

    def __and__(self, other: Any) -> NoReturn:
        bool(self)
        raise AssertionError  # never reached

    __rand__ = __or__ = __ror__ = __and__

    def __lt__(self, other: Any) -> NoReturn:
        raise DeclarationError("A strict '<' cannot be checked on data: use '<='.")

    def __gt__(self, other: Any) -> NoReturn:
        raise DeclarationError("A strict '>' cannot be checked on data: use '>='.")

    def __le__(self, other: Any) -> Any:
        self._refuse_bound()

    def __ge__(self, other: Any) -> Any:
        self._refuse_bound()

    def _refuse_bound(self) -> NoReturn:
        raise DeclarationError(
            f"{self} cannot be bounded by itself: say over which groups, for example "
            f"gap({self}, by='sex') <= 0.05 or overall({self}) <= 0.3."
        )


def number(value: Any, role: str) -> float:
    """``value`` as a finite float, or a clear refusal; ``role`` names it in the message."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise DeclarationError(f"{role} must be a plain number, got {value!r}.")
    try:
        result = float(value)
    except OverflowError:  # an integer or a fraction beyond the floats
        result = math.inf
    if not math.isfinite(result):
        raise DeclarationError(f"{role} must be finite, got {value!r}.")
    return result


def text_of_number(value: float) -> str:
    """The shortest text that reads back as the same float: ``5`` rather than ``5.0``."""
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


@dataclass(frozen=True, slots=True)
class Count(Declared):
    """A weighted sum of the four cells: ``TP``, ``TP + FP``, ``5 * FN``."""

    TP: float = 0.0
    FP: float = 0.0
    FN: float = 0.0
    TN: float = 0.0

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.weights)):
            raise DeclarationError(f"The weights of cells must be finite, got {self.weights}.")

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """The weight of each cell, in the order of :data:`CELLS`."""
        return (self.TP, self.FP, self.FN, self.TN)

    def value(self, cells: Array) -> Array:
        """The sum at the given cells (last axis)."""
        return np.asarray(cells @ np.asarray(self.weights))

    @property
    def step(self) -> tuple[float, float]:
        """The change when a row of label 0, and one of label 1, turns from predicted 0 to 1."""
        return (self.FP - self.TN, self.TP - self.FN)

    @property
    def depends_on_predictions(self) -> bool:
        """Whether the sum moves with predictions: the labels alone do not settle it."""
        return self.step != (0.0, 0.0)

    def _combine(self, other: Count, sign: float) -> Count:
        # Adding 0.0 turns a negative zero into a plain one, so that equal sums compare equal.
        pairs = zip(self.weights, other.weights, strict=True)
        return Count(*(a + sign * b + 0.0 for a, b in pairs))

    def _scale(self, factor: float) -> Count:
        return Count(*(factor * w + 0.0 for w in self.weights))

    def __add__(self, other: Any) -> Count:
        if isinstance(other, Count):
            return self._combine(other, 1.0)
        if _is_number(other):
            self._refuse_plain_number(other)
        return NotImplemented

    def __sub__(self, other: Any) -> Count:
        if isinstance(other, Count):
            return self._combine(other, -1.0)
        if _is_number(other):
            self._refuse_plain_number(other)
        return NotImplemented

    def __radd__(self, other: Any) -> NoReturn:
        self._refuse_plain_number(other)

    __rsub__ = __radd__

    def __neg__(self) -> Count:
        return self._scale(-1.0)

    def __mul__(self, factor: Any) -> Count:
        if isinstance(factor, Declared):
            raise DeclarationError(f"({self}) * ({factor}): two counts cannot be multiplied.")
        return self._scale(number(factor, "The factor of a count"))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Count):
            return Rate((Quotient(self, other),))
        if isinstance(other, Rate):
            raise DeclarationError(f"({self}) / ({other}): a count cannot be divided by a rate.")
        return self._scale(1.0 / _nonzero(other, "The divisor of a count"))

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise DeclarationError(f"{other!r} / ({self}): a rate needs cells on both sides of '/'.")

    def _refuse_plain_number(self, other: Any) -> NoReturn:
        raise DeclarationError(
            f"A count such as {self} and {other!r} cannot be added: cells add to cells; "
            "divide first to get a rate, as in 1 - FP / (FP + TN)."
        )

    def __str__(self) -> str:
        text = ""
        for weight, cell in zip(self.weights, CELLS, strict=True):
            if weight == 0:
                continue
            size = abs(weight)
            term = cell if size == 1 else f"{text_of_number(size)}*{cell}"
            if text:
                text += f" - {term}" if weight < 0 else f" + {term}"
            else:
                text = f"-{term}" if weight < 0 else term
        return text or "0*TP"

    __repr__ = __str__


TP = Count(TP=1.0)
FP = Count(FP=1.0)
FN = Count(FN=1.0)
TN = Count(TN=1.0)
_ALL = Count(1.0, 1.0, 1.0, 1.0)


def _nonzero(value: Any, role: str) -> float:
    divisor = number(value, role)
    if divisor == 0:
        raise DeclarationError(f"{role} must not be 0.")
    return divisor


@dataclass(frozen=True, slots=True)
class Quotient:
    """One weighted sum of cells over another."""

    numerator: Count
    denominator: Count

    def __post_init__(self) -> None:
        weights = self.denominator.weights
        if min(weights) < 0 or max(weights) == 0:
            raise DeclarationError(
                f"The denominator {self.denominator} can be zero or negative on any data: "
                "it must add up cells, such as FP + TN."
            )

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest value at any cells: a quotient is a mean over cells."""
        pairs = list(zip(self.numerator.weights, self.denominator.weights, strict=True))
        values = [n / d for n, d in pairs if d]
        low = -math.inf if any(n < 0 and not d for n, d in pairs) else min(values)
        high = math.inf if any(n > 0 and not d for n, d in pairs) else max(values)
        return low, high

    def __str__(self) -> str:
        return " / ".join(
            str(c) if str(c) in CELLS else f"({c})" for c in (self.numerator, self.denominator)
        )


@dataclass(frozen=True, slots=True)
class Rate(Declared):
    """A quotient of two sums of cells, or a sum of such quotients.

    Made by algebra on ``TP, FP, FN, TN``; the usual ones have names in this module. Two rates are
    equal when they are the same quotients, however they were written down or named.
    """

    terms: tuple[Quotient, ...]

    def __post_init__(self) -> None:
        merged: dict[Count, Count] = {}
        for term in self.terms:
            seen = merged.get(term.denominator)
            merged[term.denominator] = term.numerator if seen is None else seen + term.numerator
        terms = [Quotient(n, d) for d, n in merged.items() if any(n.weights)]
        terms.sort(key=lambda t: (t.denominator.weights, t.numerator.weights))
        if not terms:
            raise DeclarationError("This rate is 0 whatever the predictions.")
        object.__setattr__(self, "terms", tuple(terms))

    # -- what it is at given cells ---------------------------------------------------------

    def value(self, cells: ArrayLike) -> Array:
        """The rate at ``cells`` (last axis ``TP, FP, FN, TN``); NaN where it is undefined."""
        cells = np.asarray(cells, dtype=float)
        total = np.zeros(cells.shape[:-1])
        for term in self.terms:
            total = total + _divide(term.numerator.value(cells), term.denominator.value(cells))
        return total

    def slopes(self, cells: ArrayLike) -> Array:
        """The gain of the rate per unit weight of rows turned from predicted 0 to predicted 1.

        The quotient rule at ``cells``. The last axis of the result holds rows of label 0, then
        rows of label 1. NaN where the rate is undefined.
        """
        cells = np.asarray(cells, dtype=float)
        total = np.zeros((*cells.shape[:-1], 2))
        for term in self.terms:
            size = term.denominator.value(cells)[..., None]
            rate = _divide(term.numerator.value(cells)[..., None], size)
            step = np.asarray(term.numerator.step) - rate * np.asarray(term.denominator.step)
            total = total + _divide(step, size)
        return total

    def variance(self, cells: ArrayLike) -> Array:
        """The sampling variance of the rate where ``cells`` count independent rows."""
        cells = np.asarray(cells, dtype=float)
        total = np.zeros(cells.shape)
        for term in self.terms:  # the change of the rate with one more row in each cell
            size = term.denominator.value(cells)[..., None]
            rate = _divide(term.numerator.value(cells)[..., None], size)
            above, below = np.asarray(term.numerator.weights), np.asarray(term.denominator.weights)
            total = total + _divide(above - rate * below, size)
        return np.asarray((cells * total**2).sum(axis=-1))

    # -- what can be said without data -------------------------------------------------------

    @property
    def depends_on_predictions(self) -> bool:
        """Whether predictions move a denominator: then weights hold only near one model."""
        return any(t.denominator.depends_on_predictions for t in self.terms)

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of the rate at any cells."""
        lows, highs = zip(*(t.range for t in self.terms), strict=True)
        return sum(lows), sum(highs)

    @property
    def sense(self) -> int:
        """+1 where more is better, -1 where less is, 0 where the cells do not settle it.

        More is better when turning a mistake right never lowers the rate.
        """
        signs = set()
        for term in self.terms:
            (n0, n1), (d0, d1) = term.numerator.step, term.denominator.step
            for rate in term.range:
                if math.isfinite(rate):  # a slope is linear in the rate: its ends settle it
                    signs |= {np.sign(-(n0 - rate * d0)), np.sign(n1 - rate * d1)}
        signs -= {0.0}
        return int(signs.pop()) if len(signs) == 1 else 0

    # -- algebra -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Rate:
        if isinstance(other, Rate):
            return Rate(self.terms + other.terms)
        if isinstance(other, Count):
            raise DeclarationError(f"({self}) + ({other}): a rate and a count cannot be added.")
        if not _is_number(other):
            return NotImplemented
        constant = number(other, "A number added to a rate")
        denominator = self.terms[0].denominator
        if constant == 0:
            return self
        return Rate((*self.terms, Quotient(denominator * constant, denominator)))

    __radd__ = __add__

    def __neg__(self) -> Rate:
        return self * -1.0

    def __sub__(self, other: Any) -> Rate:
        if isinstance(other, (Rate, Count)) or _is_number(other):
            negated: Any = -other
            return self.__add__(negated)
        return NotImplemented

    def __rsub__(self, other: Any) -> Rate:
        return (-self).__add__(other)

    def __mul__(self, factor: Any) -> Rate:
        if isinstance(factor, Declared):
            raise DeclarationError(
                f"({self}) * ({factor}): rates cannot be multiplied with each other."
            )
        factor = number(factor, "The factor of a rate")
        return Rate(tuple(Quotient(t.numerator * factor, t.denominator) for t in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Rate:
        if not isinstance(other, Declared):
            return self * (1.0 / _nonzero(other, "The divisor of a rate"))
        if not (
            isinstance(other, Rate)
            and len(self.terms) == len(other.terms) == 1
            and self.terms[0].denominator == other.terms[0].denominator
        ):
            raise DeclarationError(
                f"({self}) / ({other}): rates can be divided only when they share their "
                "denominator. To compare groups by quotient use ratio(rate, by=...)."
            )
        return Rate((Quotient(self.terms[0].numerator, other.terms[0].numerator),))

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise DeclarationError(f"{other!r} / ({self}): a number cannot be divided by a rate.")

    def __str__(self) -> str:
        name = _NAMES.get(self)
        if name:
            return name
        if len(self.terms) == 1 and self.terms[0].denominator == _ALL:
            cells = self.terms[0].numerator
            if cells.TP == cells.TN == 0 and min(cells.FP, cells.FN) >= 0:
                fp, fn = text_of_number(cells.FP), text_of_number(cells.FN)
                return f"error_cost(fp={fp}, fn={fn})"
        return " + ".join(map(str, self.terms))

    __repr__ = __str__


def _divide(numerator: Array, denominator: Array) -> Array:
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    defined = np.broadcast_to(denominator > 0, shape)
    return np.asarray(np.divide(numerator, denominator, out=np.full(shape, np.nan), where=defined))


selection_rate = (TP + FP) / _ALL
true_positive_rate = TP / (TP + FN)
false_positive_rate = FP / (FP + TN)
true_negative_rate = TN / (FP + TN)
false_negative_rate = FN / (TP + FN)
false_discovery_rate = FP / (TP + FP)
false_omission_rate = FN / (FN + TN)
positive_predictive_value = TP / (TP + FP)
negative_predictive_value = TN / (FN + TN)
accuracy = (TP + TN) / _ALL
error_rate = (FP + FN) / _ALL
balanced_accuracy = (true_positive_rate + true_negative_rate) / 2

NAMED: dict[str, Rate] = {
    "selection_rate": selection_rate,
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "true_negative_rate": true_negative_rate,
    "false_negative_rate": false_negative_rate,
    "false_discovery_rate": false_discovery_rate,
    "false_omission_rate": false_omission_rate,
    "positive_predictive_value": positive_predictive_value,
    "negative_predictive_value": negative_predictive_value,
    "accuracy": accuracy,
    "error_rate": error_rate,
    "balanced_accuracy": balanced_accuracy,
}
_NAMES: dict[Rate, str] = {rate: name for name, rate in NAMED.items()}

# The paper's abbreviations. Its MR is the misclassification rate; equal error rates and equal
# accuracies are the same demand, and its tables state MR through the accuracy.
SP = selection_rate
FPR = false_positive_rate
FNR = false_negative_rate
FOR = false_omission_rate
FDR = false_discovery_rate
MR = error_rate
ALIASES: dict[str, Rate] = {"SP": SP, "FPR": FPR, "FNR": FNR, "FOR": FOR, "FDR": FDR, "MR": MR}


def error_cost(fp: float = 1.0, fn: float = 1.0) -> Rate:
    """The average cost of error: ``fp`` for each false positive, ``fn`` for each false negative.

    Parameters
    ----------
    fp, fn
        What one mistake of each kind costs; not negative, not both 0.
    """
    fp, fn = number(fp, "The cost fp"), number(fn, "The cost fn")
    if min(fp, fn) < 0 or fp == fn == 0:
        raise DeclarationError(f"Costs must be positive, got fp={fp!r}, fn={fn!r}.")
    return Rate((Quotient(fp * FP + fn * FN, _ALL),))


@dataclass(frozen=True)
class GroupRows:
    """The rows of one group, as a function given to :func:`coefficients` sees them.

    ``rows["amount"]`` gives a column by name (sensitive features first, then ``X``).
    """

    labels: NDArray[np.int8]
    weights: Array
    column: Callable[[str | int], NDArray[Any]]

    def __getitem__(self, name: str | int) -> NDArray[Any]:
        return self.column(name)

    @cached_property
    def size(self) -> float:
        """The number of rows; with user weights, their sum."""
        return float(self.weights.sum())

    @cached_property
    def positives(self) -> float:
        """The number of rows of label 1; with user weights, their sum."""
        return float(self.weights @ self.labels)

    @cached_property
    def negatives(self) -> float:
        """The number of rows of label 0; with user weights, their sum."""
        return self.size - self.positives


@dataclass(frozen=True, slots=True)
class Coefficients(Declared):
    """The paper's raw metric: ``c_0 + sum of c_i 1(h(x_i) = y_i)`` over a group's rows."""

    function: Callable[..., tuple[float, ArrayLike]]
    depends_on_predictions: bool

    @property
    def range(self) -> tuple[float, float]:
        """Unknown before the data are seen."""
        return -math.inf, math.inf

    def of(self, rows: GroupRows, predictions: NDArray[np.int8] | None) -> tuple[float, Array]:
        """``c_0`` and one ``c_i`` per row, checked."""
        given = (rows, predictions) if self.depends_on_predictions else (rows,)
        result: Any = self.function(*given)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise DeclarationError(
                f"{self} must return the pair (c_0, c_i), got {type(result).__name__}."
            )
        constant = number(result[0], f"c_0 of {self}")
        per_row = np.asarray(result[1], dtype=float)
        if per_row.shape not in ((), rows.labels.shape):
            raise DeclarationError(
                f"{self} must return one c_i, or one per row of the group "
                f"({len(rows.labels)}), got shape {per_row.shape}."
            )
        if not np.isfinite(per_row).all():
            raise DeclarationError(f"{self} returned a c_i that is not finite.")
        return constant, np.broadcast_to(per_row, rows.labels.shape)

    def __str__(self) -> str:
        return f"coefficients({getattr(self.function, '__qualname__', self.function)})"

    __repr__ = __str__


def coefficients(function: Callable[..., tuple[float, ArrayLike]]) -> Coefficients:
    """A rate given by its coefficients, as the paper declares a fairness metric.

    Parameters
    ----------
    function
        Called with the :class:`GroupRows` of one group; returns ``(c_0, c_i)``, where ``c_i`` is
        one number or one per row. The rate is ``c_0 + sum of c_i * 1(h(x_i) = y_i)``, with each
        ``c_i`` counted as often as the row's weight says. A function of *two* arguments also
        gets the group's predictions (0 and 1), and is asked again after every training.

    Examples
    --------
    >>> def money_refused(rows):  # lost loan volume per applicant who would repay
    ...     amount = rows["amount"] * (rows.labels == 1)
    ...     return (amount @ rows.weights) / rows.size, -amount / rows.size
    >>> gap(coefficients(money_refused), by="sex") <= 100
    """
    if not callable(function):
        raise DeclarationError(f"coefficients() takes a function, got {function!r}.")
    required = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) not in (1, 2):
        raise DeclarationError(
            f"The function given to coefficients() takes the group's rows, and the predictions "
            f"if it needs them; {function!r} takes {len(required)} arguments."
        )
    return Coefficients(function, depends_on_predictions=len(required) == 2)
