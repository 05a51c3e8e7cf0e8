"""Everything omnifair raises or warns, in one tree.

::

    OmnifairError
    ├── DeclarationError        a constraint that makes no sense, whatever the data
    │   └── ParseError          ... said as text
    ├── DataError               the data do not fit what was declared
    │   ├── LabelError          labels that are not two classes, a positive class that is not there
    │   ├── GroupError          a column, group or predicate that the data do not have
    │   ├── UndefinedRateError  a rate whose denominator is empty, so that nothing can be judged
    │   ├── WeightError         user weights that are negative, NaN or all zero
    │   └── CertificateError    nothing valid can be said about unseen data from these
    ├── LearnerError            an estimator or parameter that cannot be used as asked
    ├── TrainingError           the estimator failed in one training (the original is chained)
    ├── InfeasibleError         the constraints were not met, or not shown to hold
    └── DatasetError            a data set that cannot be had or is damaged

    OmnifairWarning
    ├── InfeasibleWarning       the closest model is returned, as was asked for
    └── PositiveClassWarning    the positive class was not stated and had to be taken by order
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class OmnifairError(Exception):
    """The root of all errors that omnifair raises itself."""


# A wrong operator (``and``, ``<``) is a TypeError to Python and a wrong value a ValueError; in a
# declaration such as ``0.1 <= gap(...) <= 0.2`` the two cannot be told apart, so it is both.
class DeclarationError(OmnifairError, TypeError, ValueError):
    """A constraint that makes no sense, whatever the data."""


class ParseError(DeclarationError):
    """Text that is not a constraint."""


class DataError(OmnifairError, ValueError):
    """The data do not fit what was declared."""


class LabelError(DataError):
    """Labels that are not two classes, or a positive class that is not there."""


class GroupError(DataError):
    """A column, group or predicate that the data do not have."""


class UndefinedRateError(DataError):
    """A rate whose denominator is empty in a group, so that its constraint cannot be judged."""


class WeightError(DataError):
    """Weights that are negative, NaN, infinite or all zero."""


class CertificateError(DataError):
    """Data, or rates, from which nothing valid can be said about unseen data."""


class LearnerError(OmnifairError, TypeError, ValueError):
    """An estimator or a parameter that cannot be used as asked."""


# It stands for whatever the estimator raised, so it can be caught as what estimators raise.
class TrainingError(OmnifairError, RuntimeError, ValueError, TypeError):
    """The estimator failed in one training, or on rows set aside; the original is chained."""


class InfeasibleError(OmnifairError, RuntimeError):
    """The search ended without meeting the constraints, or they could not be certified.

    Attributes
    ----------
    model
        The closest model that was trained; with ``confidence`` the safest: a fitted estimator.
    multipliers
        The multipliers it was trained with, by constraint row.
    measures
        What it reached, by constraint: ``{str(constraint): value}``.
    smallest
        The best value reached for each constraint by itself over all trainings.
    binding
        The constraint rows that were still violated, the worst first.
    diagnosis
        Which constraints were never met, or never together; ``print`` it.
    status
        Why the search ended.
    certificate
        With ``confidence``: what the rows set aside show of the model, and why it is not enough.
    """

    def __init__(
        self,
        message: str,
        *,
        model: Any = None,
        multipliers: Mapping[str, float] | None = None,
        measures: Mapping[str, float] | None = None,
        smallest: Mapping[str, float] | None = None,
        binding: tuple[str, ...] = (),
        diagnosis: Any = None,
        status: str | None = None,
        certificate: Any = None,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.multipliers = dict(multipliers or {})
        self.measures = dict(measures or {})
        self.smallest = dict(smallest or {})
        self.binding = binding
        self.diagnosis = diagnosis
        self.status = status
        self.certificate = certificate


class DatasetError(OmnifairError, OSError):
    """A data set that cannot be had here, or is damaged."""


class OmnifairWarning(UserWarning):
    """The root of all warnings that omnifair gives itself."""


class InfeasibleWarning(OmnifairWarning):
    """The constraints were not met; the closest model is returned, as was asked for."""


class PositiveClassWarning(OmnifairWarning):
    """The positive class was not stated; the second in sorted order is taken."""
