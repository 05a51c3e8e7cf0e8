"""FairClassifier: the wiring of declare, bind, weigh, train, search, report into one estimator."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
    validate_data,
)

from omnifair.certificate import Certificate, checked_confidence, groups_of
from omnifair.confidence import Aside, Kept, certified, set_aside
from omnifair.constraints import as_constraints
from omnifair.errors import (
    InfeasibleError,
    InfeasibleWarning,
    LabelError,
    LearnerError,
)
from omnifair.fingerprint import fingerprint_if_any
from omnifair.inputs import (
    Classes,
    as_classes,
    as_given,
    checked_labels,
    checked_weights,
    plain,
)
from omnifair.language import parse_rate
from omnifair.learners import Learner, fresh, learner_for, weight_keywords
from omnifair.problem import TOLERANCE, Problem, bind, bind_like, check_objective
from omnifair.progress import Progress
from omnifair.rates import Rate
from omnifair.report import Report, explain, make_report, plain_report
from omnifair.search import GuidedSearch, Status, search
from omnifair.search.loop import is_strategy, models_kept
from omnifair.training import Fold, Setting, Trainer, Trial
from omnifair.validation import (
    TRAIN,
    ValidationSet,
    as_certification,
    as_validation,
    folds,
    holdout,
)


def _estimator_has(method: str) -> Any:
    def check(self: FairClassifier) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class FairClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Train a classifier of your own so that it meets fairness constraints.

    The estimator is trained on reweighted examples for a few settings of the multipliers; kept
    is the most accurate model that meets every constraint on the validation rows. It is one
    plain fitted model: deterministic, and without need of the sensitive features to predict.

    Parameters
    ----------
    estimator
        Any binary classifier whose ``fit`` takes ``sample_weight``; a pipeline, a search or a
        calibrator around one; or, with ``weighting="resample"``, any classifier at all.
    constraints
        One constraint or a list of them, such as ``gap(selection_rate, by="sex") <= 0.03``.
        With an empty list this is the plain estimator, trained on everything.
    objective
        What to keep as good as possible: a rate, or its text. Whether it should be large or
        small follows from its cells.
    strategy
        How to look for multipliers: by default :class:`GuidedSearch`; or
        :class:`PaperSearch`, :class:`GridSearch`, or one of your own.
    validation
        Where the constraints have to be met: a fraction of the rows, held out within each group
        and label; a number of folds (out-of-fold predictions of all rows); ``"train"`` (the
        training rows themselves); or a validation set ``(X, y[, sensitive_features[,
        sample_weight]])``. Nothing else is ever looked at.
    refit
        Train once more with the chosen multipliers on all rows given to ``fit``. The measures of
        the report then belong to the model before. (With folds this is always done, as there is
        no other model to return.)
    confidence
        Between 0.5 and 1, such as 0.95: the constraints have to hold for people who were not
        seen. Rows are set aside, the search aims inside the bounds, and a model is kept only
        with a :class:`Certificate` on those rows. That it says *holds* where a constraint does
        not hold in the population has a chance of at most ``1 - confidence``, the choice of the
        model included. Each row has to be another person: where rows are repeated (by a
        bootstrap, or oversampling), twins stand on both sides, which the certificate can only
        note; set rows aside by person then. (``docs/certificates.md``.)
    certification
        With ``confidence``: the share of the rows to certify on, drawn without regard to groups
        and labels; or rows of its own, as for ``validation``, which are drawn like the people
        whom the model will judge.
    on_infeasible
        ``"raise"`` an :class:`InfeasibleError`, or return the ``"closest"`` model with a warning.
    weighting
        ``"sample_weight"``, or ``"resample"`` for estimators without weights: rows are
        replicated instead.
    max_trainings
        How often the estimator may be fitted at most, all folds and refits counted. None leaves
        it to the strategy.
    time_budget
        After how many seconds no other training is begun, but for refits (of ``refit`` and of
        folds). None leaves it to the strategy.
    warm_start
        Whether trainings go on from the coefficients of the plain model: ``"auto"`` where that
        reaches the same optimum (penalised logistic regression), True also for neural networks
        and stochastic gradient descent, where the way matters; False never.
    keep_bins
        Whether LightGBM's trainings share the bins of their columns. The models are the same.
    callback
        Called with the record of each training, as in ``trials_``; what it raises ends the fit.
    pos_label
        The positive class. By default 1 for labels {0, 1} and {-1, 1}, True for booleans;
        for other labels the second in sorted order is taken, with a warning.
    n_jobs
        How many folds, or points of a grid, are trained at the same time, through joblib.
    random_state
        Decides the split and any replication, and is given to every training in which the
        estimator's own ``random_state`` is None.
    verbose
        1 shows the last training against the bounds, 2 prints a line for each training.

    Attributes
    ----------
    estimator_
        The fitted model.
    classes_
        The two class labels.
    multipliers_
        The multipliers it was trained with, by constraint row; those that are not 0.
    trials_
        A record of every training: a list of flat dicts, as ``pandas.DataFrame`` takes it.
    status_
        How the search ended: a :class:`Status`.
    certificate_
        With ``confidence``: the :class:`Certificate` of the fitted model; else None.
    groups_, fingerprint_
        The groups and (hashes of) the rows given to ``fit``, for :func:`certify` to ask that
        all groups are there and to refuse rows that are not new.

    Examples
    --------
    >>> from omnifair import FairClassifier, gap
    >>> from omnifair.rates import selection_rate
    >>> model = FairClassifier(
    ...     LogisticRegression(), gap(selection_rate, by="sex") <= 0.03, random_state=0
    ... ).fit(X, y, sensitive_features=people)
    """

    def __init__(
        self,
        estimator: Any,
        constraints: Any = (),
        *,
        objective: Any = "accuracy",
        strategy: Any = None,
        validation: Any = 0.25,
        refit: bool = False,
        confidence: float | None = None,
        certification: Any = 0.25,
        on_infeasible: str = "raise",
        weighting: str = "sample_weight",
        max_trainings: int | None = None,
        time_budget: float | None = None,
        warm_start: bool | str = "auto",
        keep_bins: bool = True,
        callback: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.objective = objective
        self.strategy = strategy
        self.validation = validation
        self.refit = refit
        self.confidence = confidence
        self.certification = certification
        self.on_infeasible = on_infeasible
        self.weighting = weighting
        self.max_trainings = max_trainings
        self.time_budget = time_budget
        self.warm_start = warm_start
        self.keep_bins = keep_bins
        self.callback = callback
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Find the multipliers and keep the best model.

        Parameters
        ----------
        X, y
            Features, as the estimator takes them, and labels of two classes.
        sensitive_features
            The columns that constraints name: a dataframe, a series, a dict of columns or an
            array; rows in the order of ``X``, whatever their index. Names that are not there are
            looked up in ``X``. Not needed to predict.
        sample_weight
            How much each row counts, in training and in every rate.
        """
        _check_settings(self)
        constraints = as_constraints(self.constraints)
        objective = check_objective(_as_rate(self.objective))
        if self.on_infeasible not in ("raise", "closest"):
            raise LearnerError(
                f"on_infeasible must be 'raise' or 'closest', got {self.on_infeasible!r}."
            )
        confidence = None if self.confidence is None else checked_confidence(self.confidence)
        certification = None if confidence is None else as_certification(self.certification)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        (X,) = indexable(X)
        _forget(self)
        validate_data(self, X, skip_check_array=True)
        labels = checked_labels(y, _num_samples(X))
        self.classes_ = np.unique(labels)
        if not constraints:
            return self._fit_plain(X, labels, sample_weight, seed)

        classes = as_classes(self.classes_, self.pos_label)
        warm = None if self.warm_start == "auto" else bool(self.warm_start)
        learner = learner_for(
            self.estimator, self.weighting, seed, warm, keep_bins=bool(self.keep_bins)
        )
        given = as_given(X, labels, sensitive_features, sample_weight, classes)
        problem = bind(constraints, objective, given.frame, given.bits, given.weights)
        self.groups_, self.fingerprint_ = groups_of(problem), fingerprint_if_any(X, given.bits)
        aside: Aside | None = None
        if confidence is not None and certification is not None:
            X, problem, aside = set_aside(
                given, problem, certification, confidence, classes, random
            )
        parts, measured = self._parts(X, problem, classes, random)
        if aside is not None and isinstance(as_validation(self.validation), ValidationSet):
            aside.refuse_validation(parts[0].X_test, measured)
        trainer = Trainer(Setting(learner, parts, measured, classes), self.n_jobs)
        return self._keep(self._search(trainer, X, problem, aside), trainer)

    def _search(self, trainer: Trainer, X: Any, problem: Problem, aside: Aside | None) -> Kept:
        """Search, refit on ``X`` where that is asked for, certify where rows were set aside."""
        strategy, parts = self.strategy, trainer.setting.folds
        strategy = GuidedSearch() if strategy is None else strategy
        cautious = None if aside is None else aside.cautious(strategy, trainer.setting.problem)
        refits = (1 if aside is None else 2) * (bool(self.refit) or len(parts) > 1)
        each = models_kept(strategy, trainer.setting)  # what one refit trains at most
        fits = self._max_fits(trainer.fits_per_trial, refits * each)
        structure = problem.structure
        progress = Progress(
            {str(c.measure): f"{c.sense} {c.bound:g}" for c in structure.constraints},
            str(structure.objective),
            fits,
            int(self.verbose),
        )

        def notify(record: dict[str, Any]) -> None:
            progress(record)
            if self.callback is not None:
                self.callback(record)

        try:
            solution = search(
                cautious or strategy,
                trainer,
                fits,
                notify,
                self._max_seconds(),
                cautious.watch if cautious else None,
            )
        finally:
            progress.close()

        def refit(trial: Trial) -> tuple[Any, int]:
            return trainer.refit(trial, X, problem)

        if aside is not None and cautious is not None:
            return certified(solution, cautious.path(), aside, refit if refits else None)
        model, took = refit(solution.trial) if refits else (solution.trial.models[0], 0)
        return Kept(solution, model, took)

    def _fit_plain(self, X: Any, labels: NDArray[Any], sample_weight: Any, seed: int) -> Self:
        """No constraints: the estimator as it is, with its own errors."""
        if sample_weight is None:
            self.estimator_ = fresh(self.estimator, seed).fit(X, labels)
        else:
            weights = checked_weights(sample_weight, len(labels))
            keywords = weight_keywords(self.estimator) if self.weighting != "resample" else ()
            self.estimator_ = Learner(self.estimator, keywords, seed).fit(X, labels, weights)
        self.multipliers_: dict[str, float] = {}
        self.trials_: list[dict[str, Any]] = [{"training": 0, "fits": 1, "satisfied": True}]
        self.status_ = Status.UNCONSTRAINED
        self.certificate_: Certificate | None = None
        positive = self.classes_[-1] if self.pos_label is None else self.pos_label
        self.groups_, self.fingerprint_ = (), fingerprint_if_any(X, labels == positive)
        self.report_ = plain_report(
            estimator=type(self.estimator).__name__, positive=repr(plain(self.classes_[-1]))
        )
        return self

    def _parts(
        self,
        X: Any,
        problem: Problem,
        classes: Classes,
        random: np.random.RandomState,
    ) -> tuple[list[Fold], Problem]:
        """What is trained on and what is measured, both checked to hold every group."""
        kind = as_validation(self.validation)
        if isinstance(kind, ValidationSet):
            train = _part(problem, None, "the training part")
            seen = as_given(
                kind.X,
                checked_labels(kind.y, _num_samples(kind.X), of="the validation set's y"),
                kind.sensitive_features,
                kind.sample_weight,
                classes,
            )
            measured = bind_like(problem, seen.frame, seen.bits, seen.weights, "the validation set")
            measured.check_judgeable()
            return [Fold(X, train, kind.X, np.arange(len(measured)))], measured
        if kind == TRAIN:
            measured = _part(problem, None, "the training rows")
            return [Fold(X, measured, X, np.arange(len(measured)))], measured
        if isinstance(kind, float):
            rows, held = holdout(problem.code, kind, random)
            train = _part(problem, rows, "the training part")
            measured = _part(problem, held, "the validation part")
            here = np.arange(len(held))
            return [Fold(_safe_indexing(X, rows), train, _safe_indexing(X, held), here)], measured
        assert isinstance(kind, int)  # as_validation allows nothing else
        measured = _part(problem, None, f"all rows, out of fold ({kind} folds)")
        return [
            Fold(
                _safe_indexing(X, rows),
                _part(problem, rows, f"the training part of fold {number}"),
                _safe_indexing(X, held),
                held,
            )
            for number, (rows, held) in enumerate(folds(problem.code, kind, random), 1)
        ], measured

    def _max_fits(self, fits_per_trial: int, refits: int) -> int | None:
        if self.max_trainings is None:
            return None
        least = fits_per_trial + refits
        if isinstance(self.max_trainings, bool) or not self.max_trainings >= least:
            raise LearnerError(
                f"max_trainings={self.max_trainings!r}: one trial with these settings takes "
                f"{least} trainings; allow for that many at least."
            )
        return int(self.max_trainings) - refits

    def _max_seconds(self) -> float | None:
        if self.time_budget is None:
            return None
        if isinstance(self.time_budget, bool) or not self.time_budget > 0:
            raise LearnerError(
                f"time_budget={self.time_budget!r}: pass a number of seconds above 0, or None."
            )
        return float(self.time_budget)

    def _keep(self, kept: Kept, trainer: Trainer) -> Self:
        """The fitted attributes; or the error that says why there is no model."""
        solution, certificate = kept.solution, kept.certificate
        trial, measured = solution.trial, trainer.setting.problem
        failed = solution.status not in (Status.SATISFIED, Status.CERTIFIED)
        whose = "the measures are of the returned model"
        if kept.refits:
            rows = "all rows" if certificate is None else "all rows but those to certify on"
            whose = f"the returned model was trained on {rows}, the measures are of " + (
                "the models of the folds" if len(trial.models) > 1 else "the model before that"
            )
        report = make_report(
            solution,
            measured,
            estimator=type(self.estimator).__name__,
            trainings=solution.fits + kept.refits,
            measured_model=whose,
            positive=repr(plain(trainer.setting.classes.positive)),
            certificate=certificate,
        )
        multipliers = {
            measured.structure.row_labels[k]: float(trial.multipliers[k])
            for k in np.flatnonzero(trial.multipliers)
        }
        if failed:
            message = explain(report, measured, solution)
            if self.on_infeasible == "raise" and solution.status is not Status.INTERRUPTED:
                worst = np.argsort(-trial.measurement.violations, kind="stable")
                raise InfeasibleError(
                    message,
                    model=kept.model,
                    multipliers=multipliers,
                    measures={a.constraint: a.reached for a in report.asked},
                    smallest={a.constraint: a.smallest for a in report.asked},
                    binding=tuple(
                        measured.structure.row_labels[k]
                        for k in worst
                        if not trial.measurement.violations[k] <= TOLERANCE
                    ),
                    diagnosis=report.diagnosis,
                    status=str(solution.status),
                    certificate=certificate,
                )
            warnings.warn(message, InfeasibleWarning, stacklevel=3)
        self.estimator_ = kept.model
        self.multipliers_ = multipliers
        self.trials_ = list(solution.records)
        self.status_ = solution.status
        self.report_ = report
        self.certificate_ = certificate
        return self

    # -- using ---------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def report(self) -> Report:
        """What was asked, what was reached, on which data; ``print`` it."""
        check_is_fitted(self)
        return self.report_

    def _fitted(self, X: Any) -> Any:
        """The fitted model, once it is clear that ``X`` has the columns it was fitted on."""
        check_is_fitted(self)
        if len(getattr(X, "shape", ())) == 2:  # anything else is the estimator's to judge
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.estimator_

    def predict(self, X: Any) -> NDArray[Any]:
        """The fitted model's decisions."""
        return np.asarray(self._fitted(X).predict(X))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The fitted model's probabilities (of the examples as they were weighted)."""
        return np.asarray(self._fitted(X).predict_proba(X))

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """The fitted model's scores."""
        return np.asarray(self._fitted(X).decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            tags.non_deterministic = inner.non_deterministic
        return tags


# -- what fit is made of ----------------------------------------------------------------------


def _forget(model: FairClassifier) -> None:
    """Drop what an earlier fit left, that one which fails leaves no model beside other rows."""
    for name in [n for n in vars(model) if n.endswith("_") and not n.startswith("_")]:
        delattr(model, name)


def _check_settings(model: FairClassifier) -> None:
    """Refuse settings of the search that would be misread, before anything is trained."""
    strategy, callback = model.strategy, model.callback
    known = strategy is None or is_strategy(strategy)
    for fine, name, wanted in (
        (known, "strategy", "a strategy such as GuidedSearch(), or None"),
        (callback is None or callable(callback), "callback", "a function, or None"),
        (model.warm_start in ("auto", True, False), "warm_start", "'auto', True or False"),
        (_is_switch(model.refit), "refit", "True or False"),
        (_is_switch(model.keep_bins), "keep_bins", "True or False"),
        (_is_number(model.max_trainings, Integral), "max_trainings", "a whole number, or None"),
        (_is_number(model.time_budget, Real), "time_budget", "a number of seconds, or None"),
    ):
        if not fine:
            raise LearnerError(f"{name}={getattr(model, name)!r}: pass {wanted}.")


def _is_switch(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_number(value: Any, kind: type) -> bool:
    return value is None or isinstance(value, kind)


def _as_rate(objective: Any) -> Rate:
    if isinstance(objective, Rate):
        return objective
    return parse_rate(objective)


def _part(problem: Problem, rows: NDArray[np.intp] | None, name: str) -> Problem:
    part = problem.take(np.arange(len(problem)) if rows is None else rows, name)
    part.check_judgeable()
    weighted = np.bincount(part.labels, part.weights, minlength=2) > 0
    if not weighted.all():
        raise LabelError(f"There is only one class in {name}, counting rows of positive weight.")
    return part
