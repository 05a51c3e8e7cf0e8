"""Confidence: aim inside the bounds by what a certificate needs, and certify what was found.

Rows to certify on are set aside first, and nothing below looks at them before the very end. The
search then aims inside each bound (:class:`Cautious`), and what it found is put in an order, the
safest first, that only training and validation decide. In that order models are tested on the rows
set aside until one fails; the last that passed is kept (:func:`certified`).

Why the claim is valid in spite of the choice: given the rows trained and selected on, the models
and their order are fixed, and the rows set aside are fresh and independent. If the model kept
breaks a bound, then some model tested breaks one and passed; the first such model in the order is
one fixed model, whose own test errs with a chance of at most ``1 - confidence``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from omnifair.certificate import Certificate, first_certified, margins
from omnifair.constraints import GAP, RATIO
from omnifair.errors import CertificateError, TrainingError
from omnifair.evidence import seen_of
from omnifair.fingerprint import Fingerprint, fingerprint_if_any, refuse_seen, share_seen
from omnifair.inputs import Classes, Given, as_given, checked_labels
from omnifair.problem import Array, Bits, Problem, bind_like
from omnifair.rates import Rate
from omnifair.search.loop import Solution, Status, Steps, Strategy, following
from omnifair.training import Proposal, Setting, Trial
from omnifair.validation import ValidationSet, part_off

# How much of what a bound leaves is aimed inside at most: beyond, models are hard to find.
REACH = 0.8
# How likely a certificate shall hold where the search aims, and for the model tested first: that
# one makes up for the risk of the other, which costs less accuracy the less far inside it is.
LIKELY, SAFE = 0.7, 0.97
# How many models are tested at most: each could end the sequence by bad luck.
TESTED = 5
# From which share of rows set aside their twins among those trained on are noted.
MANY_TWINS = 0.01


# -- the rows set aside ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Aside:
    """Rows to certify on, which nothing else looks at; ``known`` are those that are trained on."""

    X: Any
    problem: Problem
    confidence: float
    classes: Classes
    known: Fingerprint | None = None

    def predictions(self, model: Any) -> Bits:
        """What a model says of them."""
        try:
            labels = model.predict(self.X)
        except Exception as error:
            raise TrainingError(
                f"{type(model).__name__} was trained, but failed to predict the rows set aside to "
                f"certify on: {type(error).__name__}: {error} If it is a value that no other row "
                "has (a rare category, say), let the estimator accept unknown values."
            ) from error
        return self.classes.bits(labels)

    def cautious(self, strategy: Strategy, measured: Problem) -> Cautious:
        """The strategy, aiming inside the bounds for a certificate on these rows."""
        return Cautious(strategy, self.confidence, len(self.problem), measured)

    def refuse_validation(self, X: Any, measured: Problem) -> None:
        """Refuse a validation set that holds these rows, or has weights that differ."""
        _refuse_weights(measured.weights)
        refuse_seen(fingerprint_if_any(X, measured.labels), self.X, self.problem.labels)

    def notes(self) -> tuple[str, ...]:
        """What no test can tell: whether rows like those trained on are of the same people."""
        twins = share_seen(self.known, self.X, self.problem.labels)
        if twins < MANY_TWINS:
            return ()
        return (
            f"{twins:.0%} of these rows have a twin among those trained on, as is usual where "
            "columns have few values; but if they are of the same people (rows that were repeated "
            "or oversampled), the certificate says too much of new people: then set rows aside by "
            "person, with certification=(X, y, people)",
        )


def set_aside(
    given: Given,
    problem: Problem,
    certification: float | ValidationSet,
    confidence: float,
    classes: Classes,
    random: np.random.RandomState,
) -> tuple[Any, Problem, Aside]:
    """The features and the problem to go on with, and the rows set aside.

    A share of the rows is drawn without regard to groups and labels: a part drawn within them
    would share their counts with the rest, and not be independent of it.
    """
    # All weights, not those of the part alone: few heavy rows are as likely to be elsewhere.
    _refuse_weights(given.weights)
    if isinstance(certification, ValidationSet):
        labels = checked_labels(
            certification.y, _num_samples(certification.X), of="the certification set's y"
        )
        fresh = as_given(
            certification.X,
            labels,
            certification.sensitive_features,
            certification.sample_weight,
            classes,
        )
        here = bind_like(problem, fresh.frame, fresh.bits, fresh.weights, "the certification set")
        known = fingerprint_if_any(given.X, given.bits)
        aside = _checked(Aside(fresh.X, here, confidence, classes, known))
        refuse_seen(known, fresh.X, here.labels)
        return given.X, problem, aside
    rows, held = part_off(len(problem), certification, random)
    here = problem.take(held, "the certification part")
    X, rest = _safe_indexing(given.X, rows), problem.take(rows)
    known = fingerprint_if_any(X, rest.labels)
    aside = _checked(Aside(_safe_indexing(given.X, held), here, confidence, classes, known))
    return X, rest, aside


def _checked(aside: Aside) -> Aside:
    """Refuse, before anything is trained, what no certificate could be made of."""
    if not len(aside.problem):
        raise CertificateError("There are no rows to certify on: bring more, or more of them.")
    _refuse_weights(aside.problem.weights)
    seen_of(aside.problem, aside.problem.labels, None)
    return aside


def _refuse_weights(weights: Array) -> None:
    if len(np.unique(weights[weights > 0])) > 1:
        raise CertificateError(
            "confidence= with sample_weight that differ: nothing valid can be said of the "
            "population's means unless it is known how large a weight can be. Fit without "
            "confidence, and hand rows of your own to certify(model, ..., max_weight=)."
        )


# -- how far inside --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aims:
    """By row: how far inside its bound to aim, and how far the model that is tested first is."""

    inside: Array
    safer: Array

    def safety(self, violations: Array) -> float:
        """How far inside the bounds a model is, as a multiple of what is aimed at."""
        if np.isnan(violations).any():
            return -math.inf
        free = np.where(violations <= 0, math.inf, -math.inf)
        parts = np.divide(-violations, self.inside, out=free, where=self.inside > 0)
        return float(parts.min(initial=math.inf))


def aims_of(problem: Problem, trial: Trial, rows: int, confidence: float) -> Aims:
    """How far inside each bound to aim, that a certificate on so many rows is likely to hold.

    What chance takes counts twice: where the rates are, is known from the measured rows only.
    """
    most = REACH * _left(problem, trial)
    inside, safer = (
        _both_sides(problem, np.minimum(_needed(problem, trial, rows, confidence, power), most))
        for power in (LIKELY, SAFE)
    )
    return Aims(inside, safer)


def _needed(problem: Problem, trial: Trial, rows: int, confidence: float, power: float) -> Array:
    """How far inside each row one must be; infinitely far where that cannot be said."""
    share = rows / max(len(problem), 1)
    power = float(ndtr(ndtri(power) * math.sqrt(1 + share)))
    needed = margins(problem, trial.measurement.predictions, share, confidence, power)
    # Where no margin can be said (F1, say, or a group too small): that of bets, about.
    z = math.sqrt(-2 * math.log(1 - confidence)) + 0.5 + float(ndtri(power))
    rough = z * problem.spread(trial.measurement) / math.sqrt(share)
    return np.where(np.isnan(needed), np.where(rough > 0, rough, np.inf), needed)


def _left(problem: Problem, trial: Trial) -> Array:
    """How far inside each row's bound the rates could be at all."""
    structure, left = problem.structure, np.empty(problem.structure.n_rows)
    for k, owner in enumerate(structure.owner):
        constraint = structure.constraints[owner]
        bound, rate = constraint.bound, constraint.measure.rate
        if constraint.measure.kind == GAP:
            left[k] = bound
        elif constraint.measure.kind == RATIO:
            rates = trial.measurement.rates[list(structure.metrics_of[owner])]
            left[k] = (1 - bound) * (np.nanmean(rates) if np.isfinite(rates).any() else 0.0)
        else:
            low, high = rate.range if isinstance(rate, Rate) else (0.0, 1.0)
            left[k] = bound - low if constraint.sense == "<=" else high - bound
            for j in np.flatnonzero((structure.matrix @ structure.matrix[[k]].T).toarray() < 0):
                if structure.matrix[[int(j)]].nnz == 1:  # a floor and a ceiling of one rate
                    left[k] = min(left[k], (structure.bounds[k] + structure.bounds[j]) / 2)
    return np.maximum(left, 0.0)


def _both_sides(problem: Problem, inside: Array) -> Array:
    """The same for the two sides of a gap: to a search they are one demand, with one bound."""
    structure = problem.structure
    rows = list(zip(structure.owner.tolist(), structure.matrix.toarray(), strict=True))
    place = {(owner, row.tobytes()): k for k, (owner, row) in enumerate(rows)}
    other = [place.get((owner, (0.0 - row).tobytes()), k) for k, (owner, row) in enumerate(rows)]
    return np.maximum(inside, inside[other])


# -- the search ------------------------------------------------------------------------------------


@dataclass
class Cautious:
    """Makes a strategy aim inside the bounds, and keeps the models that might be certified.

    The loop shows it every trial (:meth:`watch`); of these it keeps none that is neither safer
    nor better than another of its kind: those that a strategy would choose, and exploratory ones.

    Parameters
    ----------
    strategy
        How to search.
    confidence, rows
        Of the certificate, and on how many rows it will be.
    problem
        That on which models are measured.
    """

    strategy: Strategy
    confidence: float
    rows: int
    problem: Problem
    aims: Aims | None = None
    kept: list[tuple[float, Trial]] = field(default_factory=list)

    def budget(self, problem: Problem) -> int | None:
        """One more than that of the strategy, for a safer model."""
        most = self.strategy.budget(problem)
        return None if most is None else most + 1

    def watch(self, trial: Trial) -> None:
        """See one more trial."""
        if self.aims is None:
            self.aims = aims_of(self.problem, trial, self.rows, self.confidence)
        if trial.proposal.share >= 1:
            found = (self.aims.safety(trial.measurement.violations), trial)
            explored = trial.proposal.exploratory
            same = [f for f in self.kept if f[1].proposal.exploratory == explored]
            others = [f for f in self.kept if f[1].proposal.exploratory != explored]
            self.kept = sorted(
                [*others, *_front([*same, found])],
                key=lambda f: (-f[0], f[1].proposal.exploratory, f[1].measurement.merit),
            )

    def path(self) -> tuple[Trial, ...]:
        """What to test, the safest first: what is as far inside as was aimed at, or the safest.

        After a model that the strategy would choose no exploratory one is tested: what is kept is
        the last that passes, and the best of many that were only tried has most luck.
        """
        safe = [trial for safety, trial in self.kept if safety >= 1 - 1e-6]
        explored = [trial.proposal.exploratory for trial in safe]
        founded = explored.index(False) if False in explored else len(safe)
        safe = [t for k, t in enumerate(safe) if k < founded or not explored[k]]
        if len(safe) > TESTED:
            places = np.linspace(0, len(safe) - 1, TESTED).round().astype(int)
            safe = [safe[i] for i in places]
        return tuple(safe or [self.kept[0][1]])

    def steps(self, setting: Setting) -> Steps:
        """The strategy's own, with tighter bounds; then one model that is safer."""
        opening, start = self.strategy.steps(setting), None
        waiting = list(next(opening))
        while start is None:
            first = waiting[0]
            try:
                [start] = yield [first]
            except TrainingError as error:  # perhaps the strategy knows another way
                waiting = following(opening.throw, error)
                if not waiting:
                    raise
        opening.close()
        assert self.aims is not None  # the loop has shown it the trial
        inside = self.aims.inside
        inner = self.strategy.steps(replace(setting, problem=_tightened(setting.problem, inside)))
        try:
            waiting = list(next(inner, ()))
            while waiting:
                new = [p for p in waiting if not p.repeats(first)]
                try:
                    found = iter((yield new) if new else ())
                except TrainingError as error:
                    waiting = following(inner.throw, error)
                    continue
                trials = [start if p.repeats(first) else next(found) for p in waiting]
                waiting = following(inner.send, [_seen_inside(t, inside) for t in trials])
        finally:
            inner.close()
        safer = _safer(start, self.path()[-1], self.aims)
        if safer is not None:
            yield [safer]


def _front(found: list[tuple[float, Trial]]) -> list[tuple[float, Trial]]:
    """The safest first; of the others those that are better than all that are safer."""
    kept: list[tuple[float, Trial]] = []
    for safety, trial in sorted(found, key=lambda f: (-f[0], -f[1].measurement.merit, f[1].number)):
        if not kept or trial.measurement.merit > kept[-1][1].measurement.merit:
            kept.append((safety, trial))
    return kept


def _tightened(problem: Problem, inside: Array) -> Problem:
    structure = problem.structure
    return replace(problem, structure=replace(structure, bounds=structure.bounds - inside))


def _seen_inside(trial: Trial, inside: Array) -> Trial:
    """A trial as it is seen from tighter bounds."""
    measured = trial.measurement
    return replace(trial, measurement=replace(measured, violations=measured.violations + inside))


def _safer(plain: Trial, best: Trial, aims: Aims) -> Proposal | None:
    """Farther on the way from the plain model to the best one, where that leads to safety."""
    before, after = plain.measurement.violations, best.measurement.violations
    if not best.multipliers.any() or plain.multipliers.any():
        return None
    far = np.linspace(1.0, 2.0, 101)
    worst = (before + far[:, None] * (after - before) + aims.safer).max(axis=1)
    if np.isnan(worst).any():
        return None
    enough = np.flatnonzero(worst <= 0)
    place = int(enough[0]) if len(enough) else int(worst.argmin())
    if place == 0:
        return None
    return replace(
        best.proposal,
        multipliers=far[place] * best.multipliers,
        offset=float(far[place]) * best.proposal.offset,
        at=best,
        cells=None,
        exploratory=False,
    )


# -- certifying what was found ---------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """What comes of a search: a model, what is shown of it, and the fits of its refits."""

    solution: Solution
    model: Any
    refits: int
    certificate: Certificate | None = None


def certified(
    solution: Solution,
    path: Sequence[Trial],
    aside: Aside,
    refit: Callable[[Trial], tuple[Any, int]] | None,
) -> Kept:
    """Test what a search found, the safest first; keep the last that passed, or the safest.

    With ``refit`` models are trained anew before they are tested, only the safest and the best.
    """
    if refit is not None and len(path) > 2:
        path = [path[0], path[-1]]
    models: list[Any] = []
    refits: list[int] = []

    def tested() -> Iterator[Bits]:
        for trial in path:
            model, took = (trial.models[0], 0) if refit is None else refit(trial)
            models.append(model)
            refits.append(took)
            yield aside.predictions(models[-1])

    found = first_certified(aside.problem, tested(), aside.confidence)
    place = found.position or 0
    certificate, status = found.certificates[place], Status.CERTIFIED
    certificate = replace(certificate, notes=(*certificate.notes, *aside.notes()))
    if found.position is None:
        interrupted = solution.status is Status.INTERRUPTED
        status = Status.INTERRUPTED if interrupted else Status.UNCERTIFIED
    elif len(path) > 1:
        note = (
            f"model {place + 1} of {len(path)} that were to be tested in a fixed order: the "
            "verdict is valid under this choice, a bound is the model's own"
        )
        certificate = replace(certificate, notes=(*certificate.notes, note))
    return Kept(
        replace(solution, trial=path[place], status=status),
        models[place],
        sum(refits),
        certificate,
    )
