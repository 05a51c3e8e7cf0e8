"""Bind constraints to data: a :class:`Problem` knows groups, counts and linear rows, no models.

Whatever was declared becomes a vector ``r`` of rates (one *metric* for each rate of each group)
and rows ``A r <= b``. Predictions enter through one table, the weight of the rows by atom, label
and prediction; groups are sums over atoms. So measuring is one pass over the rows, however many
groups and constraints there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omnifair.constraints import EACH, GAP, OVERALL, AnyRate, Constraint
from omnifair.errors import DeclarationError, GroupError, UndefinedRateError
from omnifair.frames import Frame
from omnifair.groups import Assignment, Grouping, assign
from omnifair.rates import Coefficients, GroupRows, Rate

Array = NDArray[np.float64]
Bits = NDArray[np.int8]

# A bound counts as met when it is missed by no more than rounding can explain.
TOLERANCE = 1e-9

# Pairs of more groups than these fill the memory, and no data tell so many groups apart.
MOST_PAIRED = 1_000


@dataclass(frozen=True, slots=True)
class Group:
    """One group: how people read it, and where it comes from (None: everybody)."""

    label: str
    grouping: Grouping | None = None
    key: Any = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One rate of one group (its position in ``Structure.groups``)."""

    rate: AnyRate
    group: int


@dataclass(frozen=True)
class Structure:
    """What all parts of the data share: groups, metrics, and the rows ``matrix @ r <= bounds``.

    ``owner[k]`` is the position of the constraint that row ``k`` belongs to. Group 0 is the
    whole population.
    """

    constraints: tuple[Constraint, ...]
    objective: Rate
    groups: tuple[Group, ...]
    member: NDArray[np.bool_]
    metrics: tuple[Metric, ...]
    matrix: sparse.csr_array
    bounds: Array
    owner: NDArray[np.intp]
    metrics_of: tuple[tuple[int, ...], ...]

    @property
    def n_rows(self) -> int:
        """The number of linear rows; a multiplier belongs to each."""
        return len(self.bounds)

    @property
    def sense(self) -> int:
        """+1 where the objective is to be large, -1 where it is to be small."""
        return self.objective.sense

    @cached_property
    def depends_on_predictions(self) -> bool:
        """Whether some weights hold only near one model's predictions."""
        rates = [m.rate for m in self.metrics] + [self.objective]
        return any(rate.depends_on_predictions for rate in rates)

    @cached_property
    def by_rate(self) -> dict[Rate, NDArray[np.intp]]:
        """The positions of the metrics of each rate that is made of cells."""
        found: dict[Rate, list[int]] = {}
        for position, metric in enumerate(self.metrics):
            if isinstance(metric.rate, Rate):
                found.setdefault(metric.rate, []).append(position)
        return {rate: np.array(positions, dtype=np.intp) for rate, positions in found.items()}

    def metric_text(self, position: int) -> str:
        """One metric as people read it: ``selection_rate[sex=Female]``."""
        metric = self.metrics[position]
        return f"{metric.rate}[{self.groups[metric.group].label}]"

    @cached_property
    def row_labels(self) -> tuple[str, ...]:
        """Each linear row as people read it."""
        return tuple(self._row_text(k) for k in range(self.n_rows))

    def _row_text(self, k: int) -> str:
        entries = slice(self.matrix.indptr[k], self.matrix.indptr[k + 1])
        terms: dict[bool, list[str]] = {False: [], True: []}
        for position, factor in zip(
            self.matrix.indices[entries], self.matrix.data[entries], strict=True
        ):
            size = "" if abs(factor) == 1 else f"{abs(factor):g} * "
            terms[bool(factor < 0)].append(f"{size}{self.metric_text(position)}")
        text = " - ".join([" + ".join(terms[False]), *terms[True]]).removeprefix(" - ")
        negated = "" if terms[False] else "-"
        return f"{negated}{text} <= {self.bounds[k]:g}"


@dataclass(frozen=True)
class Measurement:
    """What predictions reach on a problem's rows."""

    cells: Array
    rates: Array
    violations: Array
    measures: tuple[float, ...]
    objective: float
    sense: int
    predictions: Bits

    @property
    def satisfied(self) -> bool:
        """Whether every row is met; an undefined rate meets nothing."""
        return bool(np.all(self.violations <= TOLERANCE))

    @property
    def worst(self) -> float:
        """The largest violation (infinite where a rate is undefined)."""
        return float(np.where(np.isnan(self.violations), np.inf, self.violations).max(initial=0.0))

    @property
    def merit(self) -> float:
        """The objective, signed so that more is better; minus infinity where undefined."""
        return -np.inf if np.isnan(self.objective) else self.sense * self.objective


@dataclass(frozen=True)
class Problem:
    """A structure on one part of the rows: labels (0 and 1), weights, atoms."""

    structure: Structure
    labels: Bits
    weights: Array
    atom: NDArray[np.intp]
    frame: Frame
    index: NDArray[np.intp] | None = None  # the rows of ``frame``; None is all of them
    part: str = "the data"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())

    @cached_property
    def code(self) -> NDArray[np.intp]:
        """Atom and label as one number: where the row stands in an (atom, label) table."""
        return self.atom * 2 + self.labels

    @cached_property
    def label_mass(self) -> Array:
        """The weight of each group's rows of label 0 and of label 1."""
        table = np.bincount(self.code, self.weights, 2 * len(self.structure.member))
        return np.asarray(self.structure.member.T.astype(float) @ table.reshape(-1, 2))

    @cached_property
    def unevenness(self) -> Array:
        """By group, the sum of squared weights over that of weights: 1 where all weigh 1.

        Divided by it, a weight of rows becomes the number of equal rows that would tell as much
        (Kish's effective number), whatever the unit of weights. So weights say how much a row
        counts, not how often it was seen: two rows tell more than one row of weight 2, though
        they train and measure alike.
        """
        # Squares of very small or large weights would be lost.
        unit = float(self.weights.max(initial=0.0)) or 1.0
        relative = replace(self, weights=self.weights / unit)
        weights, squares = (p.label_mass.sum(axis=1) for p in (relative, relative.squared()))
        ratio = np.divide(squares, weights, out=np.ones(len(weights)), where=squares > 0)
        return np.asarray(unit * ratio)

    def take(self, rows: NDArray[np.intp], part: str | None = None) -> Problem:
        """The same problem on some of its rows."""
        index = rows if self.index is None else self.index[rows]
        return replace(
            self,
            labels=self.labels[rows],
            weights=self.weights[rows],
            atom=self.atom[rows],
            index=index,
            part=part or self.part,
        )

    def squared(self) -> Problem:
        """The same with squared weights: what effective numbers of rows are computed from."""
        return replace(self, weights=self.weights**2)

    def group_rows(self, group: int) -> NDArray[np.intp]:
        """The positions of a group's rows."""
        return np.flatnonzero(self.structure.member[self.atom, group])

    # -- measuring -----------------------------------------------------------------------------

    def cells(self, predictions: Bits) -> Array:
        """Each group's ``TP, FP, FN, TN`` at these predictions."""
        size = 4 * len(self.structure.member)
        table = np.bincount(self.code * 2 + predictions, self.weights, size).reshape(-1, 4)
        # columns: (label 0, pred 0), (0, 1), (1, 0), (1, 1)
        by_group = self.structure.member.T.astype(float) @ table
        return np.asarray(by_group[:, [3, 1, 2, 0]])

    def rates(self, cells: Array, predictions: Bits | None) -> Array:
        """The vector ``r``: every metric's value."""
        values = np.empty(len(self.structure.metrics))
        for position, metric in enumerate(self.structure.metrics):
            if isinstance(metric.rate, Rate):
                values[position] = metric.rate.value(cells[metric.group])
            else:
                rows, constant, per_row = self.coefficients(metric, predictions)
                assert predictions is not None  # only cells are asked for without them
                right = predictions[rows] == self.labels[rows]
                values[position] = constant + (per_row * self.weights[rows]) @ right
        return values

    def coefficients(
        self, metric: Metric, predictions: Bits | None
    ) -> tuple[NDArray[np.intp], float, Array]:
        """The group's rows, ``c_0`` and ``c_i`` of a raw metric."""
        rows = self.group_rows(metric.group)
        where = rows if self.index is None else self.index[rows]
        view = GroupRows(
            self.labels[rows], self.weights[rows], lambda name: self.frame.raw(name)[where]
        )
        assert isinstance(metric.rate, Coefficients)
        guess = None if predictions is None else predictions[rows]
        return rows, *metric.rate.of(view, guess)

    def spread(self, measured: Measurement) -> Array:
        """The standard error of each row's ``A r``: what this sample can tell apart.

        Groups of one row count as independent; a raw metric's own error is unknown and left out.
        Rows count by their weights relative to each other: the unit of weights changes nothing.
        """
        rows = measured.cells / self.unevenness[:, None]
        variance = np.zeros(len(self.structure.metrics))
        for position, metric in enumerate(self.structure.metrics):
            if isinstance(metric.rate, Rate):
                variance[position] = metric.rate.variance(rows[metric.group])
        squared = self.structure.matrix.multiply(self.structure.matrix)
        return np.asarray(np.sqrt(squared @ np.nan_to_num(variance)))

    def measure(self, predictions: Bits) -> Measurement:
        """Everything that the constraints and the objective say of these predictions."""
        cells = self.cells(predictions)
        rates = self.rates(cells, predictions)
        structure = self.structure
        return Measurement(
            cells=cells,
            rates=rates,
            violations=np.asarray(structure.matrix @ rates - structure.bounds),
            measures=tuple(
                measure_value(c, structure, list(m), rates)
                for c, m in zip(structure.constraints, structure.metrics_of, strict=True)
            ),
            objective=float(structure.objective.value(cells[0])),
            sense=structure.sense,
            predictions=predictions,
        )

    # -- checks --------------------------------------------------------------------------------

    def check_judgeable(self) -> None:
        """Refuse groups without rows, and rates whose denominator is empty for any predictions."""
        structure = self.structure
        everybody, *parts = zip(structure.groups, self.label_mass, strict=True)
        for group, mass in (*parts, everybody):  # the first to be named is one that can be helped
            if mass.sum() <= 0:
                raise GroupError(
                    f"Group {group.label!r} has no rows in {self.part}. Leave it out (only=[...]), "
                    "join it with another group, or bring more data."
                )
        for metric in structure.metrics:
            if not isinstance(metric.rate, Rate):
                continue
            negatives, positives = self.label_mass[metric.group]
            # Any predictions do: such denominators do not move with them.
            cells = np.array([positives, negatives, 0.0, 0.0])
            for term in metric.rate.terms:
                fixed = not term.denominator.depends_on_predictions
                if fixed and term.denominator.value(cells) <= 0:
                    label = structure.groups[metric.group].label
                    missing = "positive" if positives <= 0 else "negative"
                    raise UndefinedRateError(
                        f"{metric.rate} is undefined for group {label!r}: it has no {missing} "
                        f"rows in {self.part}, so its constraint cannot be judged. Leave the "
                        "group out (only=[...]), join it with another, or bring more data."
                    )


def measure_value(
    constraint: Constraint, structure: Structure, positions: Sequence[int], rates: Array
) -> float:
    """The number that a constraint bounds, from the rates of its groups."""
    measure, values = constraint.measure, rates[list(positions)]
    if np.isnan(values).any():
        return float("nan")
    if measure.kind in (EACH, OVERALL):
        return float(values.max() if constraint.sense == "<=" else values.min())
    low, high = float(values.min()), float(values.max())
    if measure.reference is None:
        return high - low if measure.kind == GAP else _ratio(low, high)
    keys = [structure.groups[structure.metrics[p].group].key for p in positions]
    against = float(values[keys.index(measure.reference)])
    if measure.kind == GAP:
        return float(np.abs(values - against).max())
    return float(np.min([_ratio(*sorted((float(v), against))) for v in values]))


def _ratio(low: float, high: float) -> float:
    if low < 0:  # only raw coefficients can be: a quotient of them says nothing
        return float("nan")
    return 1.0 if low == high else low / high


# -- binding ------------------------------------------------------------------------------------


def bind(
    constraints: Sequence[Constraint],
    objective: Rate,
    frame: Frame,
    labels: Bits,
    weights: Array,
    part: str = "the data",
) -> Problem:
    """Bind constraints to data."""
    groupings = list(
        dict.fromkeys(c.measure.grouping for c in constraints if c.measure.grouping is not None)
    )
    names = {name for g in groupings for name in g.names}
    found = [assign(g, frame, sole=len(names) == 1) for g in groupings]
    atom, member = _common_atoms(found, len(labels))
    groups = [Group("everybody")]
    first: dict[Grouping, int] = {}
    for grouping, assignment in zip(groupings, found, strict=True):
        first[grouping] = len(groups)
        groups += [Group(grouping.label(key), grouping, key) for key in assignment.keys]
    structure = _structure(tuple(constraints), objective, tuple(groups), first, member)
    return Problem(structure, labels, weights, atom, frame, part=part)


def bind_like(problem: Problem, frame: Frame, labels: Bits, weights: Array, part: str) -> Problem:
    """Bind the same constraints to other data, which must have exactly the same groups."""
    structure = problem.structure
    other = bind(structure.constraints, structure.objective, frame, labels, weights, part)
    known, here = (
        {(g.grouping, g.key): g.label for g in s.groups} for s in (structure, other.structure)
    )
    for missing, place in ((known.keys() - here.keys(), part), (here.keys() - known.keys(), "")):
        for identity in missing:
            label = known.get(identity) or here[identity]
            raise GroupError(
                f"Group {label!r} has no rows in {place or problem.part}: both parts need every "
                "group. Leave it out with only=[...]."
            )
    # A user's function may list the groups in another order here; rows and multipliers go by it.
    position = {(g.grouping, g.key): j for j, g in enumerate(other.structure.groups)}
    order = [position[g.grouping, g.key] for g in structure.groups]
    return replace(other, structure=replace(structure, member=other.structure.member[:, order]))


def _common_atoms(
    found: Sequence[Assignment], n_rows: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Atoms that respect all groupings, and the membership of each in every group."""
    if not found:  # everybody is in one group
        return np.zeros(n_rows, dtype=np.intp), np.ones((1, 1), dtype=bool)
    first, *others = found
    atom, member = first.atom, np.insert(first.member, 0, True, axis=1)
    for assignment in others:
        size = len(assignment.member)
        joint = atom * size + assignment.atom
        present = np.flatnonzero(np.bincount(joint, minlength=1))
        place = np.zeros(int(present.max(initial=0)) + 1, dtype=np.intp)
        place[present] = np.arange(len(present))
        member = np.hstack([member[present // size], assignment.member[present % size]])
        atom = place[joint]
    return atom, member


def _structure(
    constraints: tuple[Constraint, ...],
    objective: Rate,
    groups: tuple[Group, ...],
    first: dict[Grouping, int],
    member: NDArray[np.bool_],
) -> Structure:
    metrics: dict[Metric, int] = {}
    rows: list[tuple[dict[int, float], float]] = []
    owner: list[int] = []
    metrics_of: list[tuple[int, ...]] = []
    for number, constraint in enumerate(constraints):
        grouping = constraint.measure.grouping
        inside = [0]
        if grouping is not None:
            inside = [j for j, g in enumerate(groups) if g.grouping == grouping]
        positions = [
            metrics.setdefault(Metric(constraint.measure.rate, j), len(metrics)) for j in inside
        ]
        keys = [groups[j].key for j in inside]
        new = _rows_of(constraint, positions, keys)
        rows += new
        owner += [number] * len(new)
        metrics_of.append(tuple(positions))
    return Structure(
        constraints=constraints,
        objective=objective,
        groups=groups,
        member=member,
        metrics=tuple(metrics),
        matrix=_matrix([factors for factors, _ in rows], len(metrics)),
        bounds=np.array([bound for _, bound in rows], dtype=float),
        owner=np.array(owner, dtype=np.intp),
        metrics_of=tuple(metrics_of),
    )


def _matrix(rows: Sequence[dict[int, float]], width: int) -> sparse.csr_array:
    matrix = sparse.csr_array(
        (
            np.array([factor for row in rows for factor in row.values()], dtype=float),
            np.array([position for row in rows for position in row], dtype=np.intp),
            np.cumsum([0, *map(len, rows)]),
        ),
        shape=(len(rows), width),
    )
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _rows_of(
    constraint: Constraint, positions: Sequence[int], keys: Sequence[Any]
) -> list[tuple[dict[int, float], float]]:
    """A constraint as linear rows ``(factors by metric, bound)``, each ``<=``."""
    measure, bound = constraint.measure, constraint.bound
    if measure.kind in (EACH, OVERALL):
        sign = 1.0 if constraint.sense == "<=" else -1.0
        return [({p: sign}, sign * bound) for p in positions]
    if len(positions) < 2:
        assert measure.grouping is not None  # a gap or a ratio has one
        raise GroupError(
            f"{constraint}: there is only one group, {measure.grouping.label(keys[0])!r}, so there "
            "is nothing to compare. Is the column all one value?"
        )
    if measure.reference is None:
        if len(positions) > MOST_PAIRED:
            assert measure.grouping is not None
            raise GroupError(
                f"{constraint}: every pair of {len(positions):,} groups would be compared. Is "
                f"{measure.grouping.source} a number or an identifier? Make groups of it, as in "
                "by=groups(young='age < 25', senior='age >= 60'), keep some (only=[...]), or "
                "compare with one (reference=...)."
            )
        pairs = [(a, b) for a in positions for b in positions if a != b]
    else:
        if measure.reference not in keys:
            known = ", ".join(map(repr, keys))
            raise GroupError(
                f"{constraint}: there is no group {measure.reference!r}; the groups there: {known}."
            )
        against = positions[list(keys).index(measure.reference)]
        pairs = [p for a in positions if a != against for p in ((a, against), (against, a))]
    if measure.kind == GAP:
        return [({a: 1.0, b: -1.0}, bound) for a, b in pairs]
    return [({a: bound, b: -1.0}, 0.0) for a, b in pairs]


def check_objective(rate: Rate) -> Rate:
    """Refuse an objective of which it cannot be said whether more or less of it is better."""
    if rate.sense == 0:
        raise DeclarationError(
            f"objective={rate}: it cannot be told whether it should be large or small, since "
            "some right decisions raise it and others lower it. Use accuracy, "
            "balanced_accuracy, or error_cost(fp=, fn=)."
        )
    return rate
