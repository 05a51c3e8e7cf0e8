"""Report: what was asked, what was reached, on which data, and by which model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import shorten
from typing import Any

import numpy as np

from omnifair.certificate import Certificate
from omnifair.diagnosis import (
    Diagnosis,
    behind,
    diagnose,
    finer_than_noise,
    too_little_data,
)
from omnifair.problem import Problem
from omnifair.search.loop import Solution, Status
from omnifair.tables import aligned


@dataclass(frozen=True)
class Asked:
    """One constraint: what was reached, and the best that any training reached by itself."""

    constraint: str
    measure: str
    sense: str
    bound: float
    reached: float
    met: bool
    smallest: float


@dataclass(frozen=True)
class GroupRate:
    """One rate of one group, and how many rows stand behind it."""

    rate: str
    group: str
    value: float
    count: float


@dataclass(frozen=True)
class Report:
    """Everything a reviewer asks of one fit. ``print`` it, or take it as :meth:`to_dict`.

    ``diagnosis`` says why the constraints were not met; None where they were.
    ``joint`` says whether the model is a ``PlugInClassifier``, which decides by a joint model of
    groups and labels where the gain expected of a positive decision exceeds ``offset``.
    ``plain_objective_value`` is that of the plain estimator, NaN where the search did not train it.
    """

    status: Status
    estimator: str
    objective: str
    objective_value: float
    plain_objective_value: float
    asked: tuple[Asked, ...]
    rates: tuple[GroupRate, ...]
    trainings: int
    measured_on: str
    measured_model: str
    positive: str
    diagnosis: Diagnosis | None = None
    notes: tuple[str, ...] = ()
    certificate: Certificate | None = None
    joint: bool = False
    offset: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        out = {k: getattr(self, k) for k in self.__dataclass_fields__}
        out["status"] = str(self.status)
        out["asked"] = [{k: getattr(a, k) for k in a.__dataclass_fields__} for a in self.asked]
        out["rates"] = [{k: getattr(r, k) for k in r.__dataclass_fields__} for r in self.rates]
        out["diagnosis"] = None if self.diagnosis is None else asdict(self.diagnosis)
        out["notes"] = list(self.notes)
        out["certificate"] = None if self.certificate is None else self.certificate.to_dict()
        return out

    def __str__(self) -> str:
        trainings = "1 training" if self.trainings == 1 else f"{self.trainings} trainings"
        lines = [
            f"omnifair: {self.status.message}",
            f"  model      {self.estimator}, {trainings}; {self.measured_model}",
            f"  measured   on {self.measured_on}; positive class {self.positive}",
        ]
        if self.joint:
            lines[2:2] = [
                "  decides    where a joint model of groups and labels expects a gain of more than "
                f"{self.offset:.4g} (a PlugInClassifier)"
            ]
        if self.status is not Status.UNCONSTRAINED:
            plain = self.plain_objective_value
            beside = "" if np.isnan(plain) else f" (plain model {plain:.4f})"
            lines.append(f"  objective  {self.objective} {self.objective_value:.4f}{beside}")
        if self.asked:
            lines += [
                "",
                *aligned(
                    ("constraint", "reached", "met"),
                    [
                        (a.constraint, f"{a.reached:.4f}", "yes" if a.met else "NO")
                        for a in self.asked
                    ],
                ),
            ]
        if self.diagnosis is not None:
            lines += ["", *(f"  {line}" for line in str(self.diagnosis).splitlines())]
        if self.rates:
            lines += [
                "",
                *aligned(
                    ("rate", "group", "value", "rows behind it"),
                    [(r.rate, r.group, f"{r.value:.4f}", f"{r.count:g}") for r in self.rates],
                ),
            ]
        lines += ["", *(f"  note: {note}" for note in self.notes)] if self.notes else []
        lines += ["", str(self.certificate)] if self.certificate is not None else []
        return "\n".join(lines)


def make_report(
    solution: Solution,
    problem: Problem,
    *,
    estimator: str,
    trainings: int,
    measured_model: str,
    positive: str,
    certificate: Certificate | None = None,
) -> Report:
    """What a search found, as a report."""
    structure, measured = problem.structure, solution.trial.measurement
    asked = []
    for c, constraint in enumerate(structure.constraints):
        violations = measured.violations[structure.owner == c]
        asked.append(
            Asked(
                str(constraint),
                str(constraint.measure),
                constraint.sense,
                constraint.bound,
                measured.measures[c],
                bool(np.all(violations <= 1e-9)),
                solution.smallest[c].measures[c],
            )
        )
    rates = tuple(
        GroupRate(
            str(metric.rate),
            structure.groups[metric.group].label,
            float(measured.rates[p]),
            behind(problem, metric, measured.cells),
        )
        for p, metric in enumerate(structure.metrics)
    )
    return Report(
        status=solution.status,
        estimator=estimator,
        objective=str(structure.objective),
        objective_value=measured.objective,
        plain_objective_value=_plain_value(solution),
        asked=tuple(asked),
        rates=rates,
        trainings=trainings,
        measured_on=f"{problem.part} ({len(problem):,} rows)",
        measured_model=measured_model,
        positive=positive,
        diagnosis=None
        if solution.trial.satisfied
        else diagnose(problem, solution.trials, solution.trial),
        notes=tuple(_notes(solution, problem)),
        certificate=certificate,
        joint=solution.trial.proposal.joint,
        offset=solution.trial.proposal.offset,
    )


def _plain_value(solution: Solution) -> float:
    """The objective of the plain estimator, trained on all rows to train on; NaN without it."""
    for trial in solution.trials:
        if not trial.proposal.joint and trial.proposal.share >= 1 and not trial.multipliers.any():
            return trial.measurement.objective
    return float("nan")


def plain_report(*, estimator: str, positive: str) -> Report:
    """The report of a fit without constraints, which measures nothing."""
    return Report(
        status=Status.UNCONSTRAINED,
        estimator=estimator,
        objective="",
        objective_value=float("nan"),
        plain_objective_value=float("nan"),
        asked=(),
        rates=(),
        trainings=1,
        measured_on="nothing: there are no constraints",
        measured_model="the plain estimator, trained on all rows",
        positive=positive,
    )


_CUT = {
    Status.BUDGET: "the budget of trainings or of time ended before the search did; with more "
    "(max_trainings, time_budget) a model may be found that can be certified",
    Status.INTERRUPTED: "the search was interrupted; a model that can be certified may have been "
    "still to come",
}


def _notes(solution: Solution, problem: Problem) -> list[str]:
    """What a reader must know beside the numbers: undefined rates, too little data."""
    notes = []
    undefined = [r for r in solution.records if r["undefined"]]
    if undefined:
        names = ", ".join(sorted({n for r in undefined for n in r["undefined"].split(", ")}))
        notes.append(
            f"in {len(undefined)} of {len(solution.records)} trainings a rate had an empty "
            f"denominator and could not be judged: {names}"
        )
    if solution.status is Status.UNCERTIFIED and solution.cut is not None:
        notes.append(_CUT[solution.cut])
    notes += [
        f"a training failed and the search went on without it: {shorten(said, 400)}"
        for said in solution.failures
    ]
    notes += too_little_data(problem, solution.trial.measurement)
    if solution.trial.satisfied:  # where they are not met, the diagnosis says it
        notes += finer_than_noise(problem, solution.trial.measurement)
    return notes


def _where(report: Report, asked: Asked) -> str:
    """In which training a constraint came nearest, and what the objective was there."""
    for best in () if report.diagnosis is None else report.diagnosis.nearest:
        if best.constraint == asked.constraint:
            return f" (training {best.training}, {report.objective} {best.objective:.4f})"
    return ""


def explain(report: Report, problem: Problem, solution: Solution) -> str:
    """Why the constraints were not met, and the ways out."""
    lines = [report.status.message]
    kept = "closest" if report.certificate is None else "safest"
    if report.certificate is not None:
        lines += _unproven(report.certificate)
    for asked in report.asked:
        verdict = "met" if asked.met else "NOT met"
        lines.append(
            f"  {asked.constraint}: {verdict}; reached {asked.reached:.4f} in the {kept} model, "
            f"{asked.smallest:.4f} at best{_where(report, asked)}"
        )
    violations = solution.trial.measurement.violations
    if np.isfinite(violations).any() and not solution.trial.satisfied:
        k = int(np.nanargmax(violations))
        lines.append(f"  The row that binds: {problem.structure.row_labels[k]}.")
    if report.diagnosis is not None:
        lines += [f"  {line}" for line in str(report.diagnosis).splitlines()]
    lines += [f"  Note: {note}." for note in report.notes]
    reached = {tuple(r[a.measure] for a in report.asked) for r in solution.records}
    if len(solution.records) > 2 and len(reached) == 1:
        lines.append(
            "  No training changed any rate. Either the constraints ask for what the objective "
            f"asks for already, or {report.estimator} makes no use of sample_weight."
        )
    more = "" if report.certificate is None else " (or a larger share to certify on)"
    lines.append(
        f"  Ways out: a looser bound, more data{more}, a more flexible estimator, more trainings "
        f"(max_trainings), or on_infeasible='closest' to take the {kept} model with a warning."
    )
    return "\n".join(lines)


def _unproven(certificate: Certificate) -> list[str]:
    """What a certificate says against a model."""
    lines = [
        f"  On the {certificate.rows:,} rows set aside to certify on, at confidence "
        f"{certificate.confidence:g}:"
    ]
    for claim in certificate.claims:
        side = "at most" if claim.sense == "<=" else "at least"
        shown = (
            f", {side} {claim.bound:.4f} in the population" if claim.bound == claim.bound else ""
        )
        why = f" ({claim.why})" if claim.why else ""
        lines.append(
            f"    {claim.constraint}: {claim.verdict}; {claim.estimate:.4f} here{shown}{why}"
        )
    return lines
