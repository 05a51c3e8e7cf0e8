"""Diagnosis: why no training met all constraints, from what every training measured.

It is a pure computation over the trainings of one search and claims no more than they show: what
was never met, what was never met *together*, and how near each constraint came while the others
held. Beside it is said what no model could do, and whether the sample could show the bound at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from omnifair.constraints import GAP, RATIO
from omnifair.feasibility import contradiction
from omnifair.problem import TOLERANCE, Array, Measurement, Metric, Problem
from omnifair.rates import Rate
from omnifair.training import Trial

# More conflicts than this are counted, not told.
TOLD = 5


@dataclass(frozen=True)
class Nearest:
    """How near one constraint came in any training.

    ``met_in`` counts the trainings that met it by itself; ``objective`` is what this one reached
    of it. ``alike`` are groups of the constraint of which everybody is decided alike: such a model
    meets much and is worth little.
    """

    constraint: str
    value: float
    training: int
    met_in: int
    objective: float
    alike: tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """The nearest that one constraint came while others held.

    To hold is to be met, or (``held_met`` False) to be as near as it ever came.
    """

    constraint: str
    value: float
    training: int
    held: tuple[str, ...]
    held_met: bool
    alike: tuple[str, ...]


@dataclass(frozen=True)
class Conflict:
    """Constraints that no training met together, though it met any of them without one.

    A conflict of one constraint is one that was never met; its sides say which others stand
    against it.
    """

    constraints: tuple[str, ...]
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Sample:
    """What the measured rows can tell of a constraint.

    ``thinnest`` is the rate that rests on the fewest rows, ``step`` by how much one row moves it.
    ``error`` is the standard error of the constraint's worst row in the closest model, ``missed``
    by how much that is violated. ``finest`` is the size of deviation that the bound allows (None
    where a bound is no size, as that of a rate itself).
    """

    constraint: str
    thinnest: str
    rows: float
    step: float
    error: float
    missed: float
    finest: float | None

    @property
    def too_coarse(self) -> bool:
        """Whether one row moves the rate by more than the bound allows."""
        return self.finest is not None and self.rows > 0 and self.finest < self.step

    @property
    def too_noisy(self) -> bool:
        """Whether chance alone moves it by more than the bound allows."""
        return self.finest is not None and self.finest < self.error


@dataclass(frozen=True)
class Diagnosis:
    """What stood in the way: each constraint by itself, conflicts, and what the sample can tell.

    ``impossible`` are constraints that no decisions at all meet together on these rows.
    """

    trainings: int
    closest: int
    nearest: tuple[Nearest, ...]
    conflicts: tuple[Conflict, ...]
    samples: tuple[Sample, ...]
    impossible: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(lines(self))


# -- what the trainings show -------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """Every training's result for every constraint: tables of trainings by constraints."""

    problem: Problem
    trials: Sequence[Trial]
    names: tuple[str, ...]
    values: Array
    misses: Array  # infinite where a rate was undefined

    @property
    def met(self) -> NDArray[np.bool_]:
        return np.asarray(self.misses <= TOLERANCE)

    def nearest(self, constraint: int, among: NDArray[np.intp] | slice = slice(None)) -> int:
        """The position of the training, among these, that comes nearest to a constraint."""
        positions = np.arange(len(self.trials))[among]
        return int(positions[np.argmin(self.misses[positions, constraint])])

    def side(self, constraint: int, held: Sequence[int]) -> tuple[Side, float]:
        """How near a constraint came while others held, and by how much it was missed."""
        among = np.flatnonzero(self.met[:, list(held)].all(axis=1))
        held_met = len(among) > 0
        if not held_met:  # a single one that was never met: where it came nearest
            among = np.array([self.nearest(held[0])])
        at = self.nearest(constraint, among)
        missed = float(self.misses[at, constraint])
        names = tuple(self.names[c] for c in held)
        value = float(self.values[at, constraint])
        number, alike = self.trials[at].number, self.alike(at, constraint)
        return Side(self.names[constraint], value, number, names, held_met, alike), missed

    def alike(self, at: int, constraint: int) -> tuple[str, ...]:
        """The groups of a constraint of which a training's model decides alike about everybody."""
        structure, cells = self.problem.structure, self.trials[at].measurement.cells
        groups = dict.fromkeys(structure.metrics[p].group for p in structure.metrics_of[constraint])
        told = []
        for group in groups:
            hits, false, missed, rest = cells[group]
            if cells[group].sum() > 0 and (hits + false == 0 or missed + rest == 0):
                told.append(structure.groups[group].label)
        return tuple(told)


def diagnose(problem: Problem, trials: Sequence[Trial], closest: Trial) -> Diagnosis:
    """Compare what all trainings measured; ``closest`` is the one that is kept."""
    structure = problem.structure
    seen = _Seen(
        problem,
        trials,
        tuple(map(str, structure.constraints)),
        np.array([t.measurement.measures for t in trials]),
        np.array([_misses(t.measurement, problem) for t in trials]),
    )
    nearest = []
    for c, name in enumerate(seen.names):
        at = seen.nearest(c)
        nearest.append(
            Nearest(
                name,
                value=float(seen.values[at, c]),
                training=trials[at].number,
                met_in=int(seen.met[:, c].sum()),
                objective=trials[at].measurement.objective,
                alike=seen.alike(at, c),
            )
        )
    return Diagnosis(
        len(trials),
        closest.number,
        tuple(nearest),
        tuple(_conflict(seen, members) for members in _never_together(seen.met)),
        samples(problem, closest.measurement),
        tuple(seen.names[c] for c in contradiction(problem)),
    )


def _misses(measured: Measurement, problem: Problem) -> list[float]:
    """By how much each constraint is missed; negative where there is room, infinite unknown."""
    known = np.where(np.isnan(measured.violations), np.inf, measured.violations)
    owner = problem.structure.owner
    return [float(known[owner == c].max()) for c in range(len(problem.structure.constraints))]


def _never_together(met: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The smallest sets of constraints that no training met together."""
    count = met.shape[1]
    found: list[tuple[int, ...]] = []
    for size in range(1, min(count, 3) + 1):
        for members in combinations(range(count), size):
            known = any(set(smaller) <= set(members) for smaller in found)
            if not known and not met[:, members].all(axis=1).any():
                found.append(members)
    if not found and not met.all(axis=1).any():
        members = tuple(range(count))  # more than three: leave out what can be left out
        for c in range(count):
            fewer = tuple(m for m in members if m != c)
            if not met[:, fewer].all(axis=1).any():
                members = fewer
        found.append(members)
    return found


def _conflict(seen: _Seen, members: tuple[int, ...]) -> Conflict:
    names = tuple(seen.names[c] for c in members)
    if len(members) > 1:
        sides = [seen.side(c, [m for m in members if m != c]) for c in members]
        return Conflict(names, tuple(side for side, _ in sides))
    # Never met: the others that keep it farther off than it came without them.
    [c] = members
    best = float(seen.misses[:, c].min())
    others = [seen.side(c, [other]) for other in range(len(seen.names)) if other != c]
    return Conflict(names, tuple(side for side, missed in others if missed > best + TOLERANCE))


# -- what the sample can tell ------------------------------------------------------------------


def behind(problem: Problem, metric: Metric, cells: Array) -> float:
    """The weight of the rows in a rate's denominator (the smallest, of several)."""
    if not isinstance(metric.rate, Rate):
        return float(problem.label_mass[metric.group].sum())
    here = cells[metric.group]
    return min(
        float(here @ (np.asarray(term.denominator.weights) > 0)) for term in metric.rate.terms
    )


def _effective(problem: Problem, metric: Metric, cells: Array) -> float:
    """As how many rows of equal weight those behind a rate count."""
    return behind(problem, metric, cells) / float(problem.unevenness[metric.group])


def samples(problem: Problem, measured: Measurement) -> tuple[Sample, ...]:
    """What the measured rows can tell of each constraint, at one model."""
    structure = problem.structure
    errors = problem.spread(measured)
    found = []
    for c, constraint in enumerate(structure.constraints):
        positions = structure.metrics_of[c]
        counts = [_effective(problem, structure.metrics[p], measured.cells) for p in positions]
        least = int(np.argmin(counts))
        rows = np.flatnonzero(structure.owner == c)
        violations = measured.violations[rows]
        worst = int(rows[0 if np.isnan(violations).all() else np.nanargmax(violations)])
        finest = None
        if constraint.measure.kind == GAP:
            finest = constraint.bound
        elif constraint.measure.kind == RATIO:  # what a rate may fall short of the others
            rates = measured.rates[list(positions)]
            if np.isfinite(rates).any():
                finest = (1 - constraint.bound) * float(np.nanmax(rates))
        found.append(
            Sample(
                str(constraint),
                structure.metric_text(positions[least]),
                counts[least],
                1 / counts[least] if counts[least] > 0 else np.inf,
                float(errors[worst]),
                float(measured.violations[worst]),
                finest,
            )
        )
    return tuple(found)


def too_little_data(problem: Problem, measured: Measurement) -> list[str]:
    """By name, every rate that one row moves by more than its constraint allows."""
    notes = []
    structure = problem.structure
    for c, sample in enumerate(samples(problem, measured)):
        finest = sample.finest
        if finest is None:
            continue
        constraint = structure.constraints[c]
        for p in structure.metrics_of[c]:
            count = _effective(problem, structure.metrics[p], measured.cells)
            if count > 0 and finest < 1 / count:
                leaves = "" if constraint.measure.kind == GAP else f" leaves ({finest:.2g})"
                notes.append(
                    f"too little data to tell: {structure.metric_text(p)} rests on {count:.4g} "
                    f"rows, so it moves in steps of {1 / count:.2g}, more than the bound "
                    f"{constraint.bound:g} of {constraint.measure}{leaves}"
                )
    return notes


def finer_than_noise(problem: Problem, measured: Measurement) -> list[str]:
    """Every constraint whose bound chance alone may cross, though one row cannot."""
    return [
        _noise(sample)
        for sample in samples(problem, measured)
        if sample.too_noisy and not sample.too_coarse
    ]


# -- in words ----------------------------------------------------------------------------------


def lines(found: Diagnosis) -> list[str]:
    """The diagnosis as people read it."""
    nearest = {n.constraint: n for n in found.nearest}
    told: list[str] = []
    if found.impossible:
        what = " and ".join(found.impossible)
        together = " together" if len(found.impossible) > 1 else ""
        told.append(
            f"No model can meet {what}{together} on these rows: no decisions at all do, not even "
            "by someone who knew every label and group. Loosen or leave out one of them."
        )
    for conflict in found.conflicts[:TOLD]:
        told += (_alone if len(conflict.constraints) == 1 else _together)(conflict, found, nearest)
    if len(found.conflicts) > TOLD:
        told.append(f"... and {len(found.conflicts) - TOLD} more such conflicts.")
    for sample in found.samples:
        told += _of_sample(sample)
    return told


def _alone(conflict: Conflict, found: Diagnosis, nearest: dict[str, Nearest]) -> list[str]:
    [name] = conflict.constraints
    best = nearest[name]
    if not np.isfinite(best.value):
        return [f"{name}: a rate in it was undefined in every training."]
    told = [
        f"{name} was met in none of {_trainings(found.trainings)}: {best.value:.4f} at best "
        f"{_where(best)}."
    ]
    told += [f"  With {_held(side, nearest)} {_came('it', side)}." for side in conflict.sides]
    if len(nearest) > 1 and not conflict.sides:
        told.append("  In none of them did another constraint keep it farther off.")
    return told


def _together(conflict: Conflict, found: Diagnosis, nearest: dict[str, Nearest]) -> list[str]:
    names = " and ".join(conflict.constraints)
    any_but_one = "" if len(conflict.constraints) == 2 else ", though all but any one of them were"
    told = [f"{names} were never met together in {_trainings(found.trainings)}{any_but_one}."]
    for side in conflict.sides:
        often = f" (in {_trainings(nearest[side.held[0]].met_in)})" if len(side.held) == 1 else ""
        told.append(f"  With {' and '.join(side.held)} met{often}, {_came(side.constraint, side)}.")
    return told


def _held(side: Side, nearest: dict[str, Nearest]) -> str:
    [name] = side.held
    if side.held_met:
        return f"{name} met"
    return f"{name} as near as it came ({nearest[name].value:.4f})"


def _came(what: str, side: Side) -> str:
    if np.isnan(side.value):
        return f"{what} was undefined {_where(side)}"
    return f"{what} came to {side.value:.4f} at best {_where(side)}"


def _where(found: Nearest | Side) -> str:
    if not found.alike:
        return f"(training {found.training})"
    groups = ", ".join(found.alike)
    return f"(training {found.training}, which decides alike about everybody in {groups})"


def _of_sample(sample: Sample) -> list[str]:
    """Only what was missed by so little that it may be chance, or could not be shown at all."""
    if not sample.missed > TOLERANCE or not np.isfinite(sample.error) or sample.too_coarse:
        return []  # met; or told by name among the notes
    if sample.too_noisy:
        return [f"{_noise(sample)}."]
    if sample.missed < sample.error:
        return [
            f"{sample.constraint} is missed by {sample.missed:.4f}, less than its standard error "
            f"on these rows ({sample.error:.4f}): that may be chance."
        ]
    return []


def _noise(sample: Sample) -> str:
    return (
        f"{sample.constraint} is finer than these rows can show: its standard error here is "
        f"about {sample.error:.4f} ({sample.thinnest} rests on {sample.rows:.4g} rows)"
    )


def _trainings(count: int) -> str:
    return "1 training" if count == 1 else f"{count} trainings"
