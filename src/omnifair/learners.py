"""What an estimator can take: how weights reach it, and how it is made for each training.

A :class:`Learner` hides the differences: a plain estimator, a pipeline (the weight goes to its
final step), a search or a calibrator around either, or, by explicit choice, an estimator without
weights that is trained on replicated rows.

A search inside (``GridSearchCV``) trains its candidates on the weights and compares them without:
its scorers see the labels, those that were flipped among them, and no weights. What it chooses
may then differ from training to training; a search around :class:`FairClassifier` does not have
this trouble.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from omnifair.bins import Bins, can_keep_bins
from omnifair.errors import LearnerError

SAMPLE_WEIGHT, RESAMPLE = "sample_weight", "resample"

# How often a row of average weight is repeated where weights have no small common measure.
COPIES = 4

# A network remembers how good it was, and stops where it gets no better. Under other weights that
# means nothing, so it goes on from its coefficients as if it had not been tried.
UNTRIED: dict[str, Any] = {
    "best_loss_": np.inf,
    "best_validation_score_": -np.inf,
    "loss_curve_": [],
    "validation_scores_": [],
    "n_iter_": 0,
    "t_": 0,
    "_no_improvement_count": 0,
}


@dataclass(frozen=True)
class Learner:
    """An estimator and the way weights reach it.

    ``keywords`` are the names under which ``fit`` takes the weights; empty where rows are
    replicated instead. ``warm`` says whether a fit goes on from the plain model, ``binned``
    whether it may use the bins of a fit on the same rows.
    """

    estimator: Any
    keywords: tuple[str, ...]
    seed: int
    warm: bool = False
    binned: bool = False

    def fit(
        self,
        X: Any,
        y: NDArray[Any],
        weights: NDArray[np.float64],
        start: Any = None,
        bins: Bins | None = None,
    ) -> Any:
        """A new fitted model; the estimator itself is never touched.

        ``start`` is a model that was fitted before, from whose coefficients to go on; ``bins``
        are those of fits before, on the same rows.
        """
        asked = y[weights > 0]
        if len(asked) and np.all(asked == asked[0]):
            # The weights ask for one decision for everybody, which few learners can be asked.
            constant = DummyClassifier(strategy="constant", constant=asked[0])
            return constant.fit(np.zeros((len(y), 1)), y)
        if bins is not None:
            return bins.fit(fresh(self.estimator, self.seed), X, y, weights)
        if start is not None:
            try:
                begun = _started(fresh(self.estimator, self.seed), start)
                return _as_asked(self._trained(begun, X, y, weights), self.estimator)
            except ValueError:
                # The coefficients do not fit: a step before them selected other columns, or met
                # fewer categories. What is wrong for another reason is so without them too.
                pass
        return self._trained(fresh(self.estimator, self.seed), X, y, weights)

    def _trained(self, model: Any, X: Any, y: NDArray[Any], weights: NDArray[np.float64]) -> Any:
        # By keyword, weights reach the same learners whatever the user's configuration says:
        # under metadata routing some would refuse them, others would have to ask for them.
        with config_context(enable_metadata_routing=False), warnings.catch_warnings():
            # A calibrator does not see that its pipeline gets weights too, by a keyword.
            warnings.filterwarnings("ignore", "Since Pipeline does not appear to accept sample_w")
            if self.keywords:
                model.fit(X, y, **dict.fromkeys(self.keywords, weights))
                return model
            copies = replicate(weights, np.random.RandomState(self.seed))
            rows = np.repeat(np.arange(len(y)), copies)
            model.fit(_safe_indexing(X, rows), y[rows])
            return model


def learner_for(
    estimator: Any,
    weighting: str,
    seed: int,
    warm_start: bool | None = False,
    keep_bins: bool = False,
) -> Learner:
    """Find out how weights reach this estimator, or say what to do."""
    for method in ("fit", "predict"):
        # A StackingClassifier shows its predict() only when it is fitted.
        later = _kind(estimator) == "classifier" and hasattr(type(estimator), method)
        if not hasattr(estimator, method) and not later:
            raise LearnerError(
                f"{_name(estimator)} has no {method}(): pass a classifier, such as "
                "LogisticRegression()."
            )
    if inspect.isclass(estimator):
        raise LearnerError(f"{estimator.__name__} is a class: pass an instance of it.")
    if _kind(estimator) == "regressor":
        raise LearnerError(f"{_name(estimator)} is a regressor: pass a classifier.")
    _refuse_frozen(estimator)
    if weighting == RESAMPLE:
        keywords: tuple[str, ...] = ()
    elif weighting == SAMPLE_WEIGHT:
        keywords = weight_keywords(estimator)
    else:
        raise LearnerError(
            f"weighting must be {SAMPLE_WEIGHT!r} or {RESAMPLE!r}, got {weighting!r}."
        )
    binned = keep_bins and keywords == (SAMPLE_WEIGHT,) and can_keep_bins(estimator)
    return Learner(estimator, keywords, seed, can_start_warm(estimator, asked=warm_start), binned)


def has_probabilities(estimator: Any) -> bool:
    """Whether it has ``predict_proba``, or may have it once it is fitted.

    One that shows not even its ``predict`` before (a ``StackingClassifier``) tells nothing by that.
    """
    later = not hasattr(estimator, "predict") and hasattr(type(estimator), "predict_proba")
    return later or hasattr(estimator, "predict_proba")


def can_start_warm(estimator: Any, *, asked: bool | None) -> bool:
    """Whether trainings go on from the coefficients of a model: by itself where it is safe.

    It is for penalised logistic regression, which reaches the same optimum from anywhere.
    ``asked`` also allows it where the way matters (neural networks, stochastic gradient descent).
    """
    final = _final(estimator)
    if asked is False:
        return False
    logistic = isinstance(final, LogisticRegression) and final.solver != "liblinear"
    # Without a penalty there is no optimum where a line parts the labels.
    safe = logistic and final.penalty is not None and bool(np.isfinite(getattr(final, "C", np.inf)))
    if logistic or not asked:
        return safe or bool(asked)
    # What goes on from coef_ or coefs_; forests would add trees instead.
    from sklearn.linear_model import Perceptron, SGDClassifier
    from sklearn.neural_network import MLPClassifier

    if not isinstance(final, (SGDClassifier, Perceptron, MLPClassifier)):
        raise LearnerError(
            f"warm_start=True: {_name(final)} cannot go on from another model. Leave it out."
        )
    return True


def _final(estimator: Any) -> Any:
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _started(model: Any, start: Any) -> Any:
    """The unfitted model with the fitted state that its final step may go on from."""
    if type(model) is not type(start):  # a constant decision has nothing to go on from
        return model
    begun = copy.deepcopy(_final(start)).set_params(warm_start=True)
    for name, value in UNTRIED.items():
        if getattr(begun, name, None) is not None:
            setattr(begun, name, copy.copy(value))
    if not isinstance(model, Pipeline):
        return begun
    path, inner = [], model
    while isinstance(inner, Pipeline):
        path.append(inner.steps[-1][0])
        inner = inner.steps[-1][1]
    return model.set_params(**{"__".join(path): begun})


def _as_asked(model: Any, estimator: Any) -> Any:
    """The model with the user's own setting of ``warm_start``."""
    if hasattr(_final(model), "warm_start"):
        _final(model).set_params(warm_start=_final(estimator).warm_start)
    return model


def weight_keywords(estimator: Any) -> tuple[str, ...]:
    """The names under which ``fit`` takes one weight per row, down to the final step."""
    _refuse_frozen(estimator)
    if isinstance(estimator, Pipeline):
        name, final = estimator.steps[-1]
        if final is None or final == "passthrough":
            raise LearnerError("The pipeline has no classifier as its final step.")
        return tuple(f"{name}__{keyword}" for keyword in weight_keywords(final))
    parameters = inspect.signature(estimator.fit).parameters
    inner = getattr(estimator, "estimator", None)
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if SAMPLE_WEIGHT in parameters:
        return (SAMPLE_WEIGHT, *_below_calibrator(estimator, inner))
    if hasattr(estimator, "response_method"):  # FixedThresholdClassifier and its like
        raise LearnerError(
            f"{_name(estimator)} moves the decision threshold and takes no sample_weight: pass "
            "the classifier inside it."
        )
    if passes_on and hasattr(inner, "fit"):  # searches, feature elimination
        return weight_keywords(inner)
    if passes_on and getattr(estimator, "estimators", None):  # voting, stacking
        for _, member in estimator.estimators:
            if hasattr(member, "fit") and weight_keywords(member) != (SAMPLE_WEIGHT,):
                raise LearnerError(
                    f"{_name(estimator)} passes weights on only to members that take "
                    f"sample_weight themselves; {_name(member)} does not. Put what all members "
                    "share in front: make_pipeline(..., VotingClassifier(...))."
                )
        return (SAMPLE_WEIGHT,)
    raise LearnerError(
        f"{_name(estimator)} takes no sample_weight, so it cannot be trained on weighted "
        "examples. Choose weighting='resample' to train it on replicated rows instead."
    )


def _below_calibrator(estimator: Any, inner: Any) -> tuple[str, ...]:
    """The further keywords by which a calibrator hands weights to what it calibrates.

    It takes ``sample_weight`` for itself, and passes it on only where the inner ``fit`` names it.
    """
    from sklearn.calibration import CalibratedClassifierCV

    if not isinstance(estimator, CalibratedClassifierCV) or inner is None:
        return ()
    below = weight_keywords(inner)
    if SAMPLE_WEIGHT not in below:
        return below
    if SAMPLE_WEIGHT not in inspect.signature(inner.fit).parameters:
        raise LearnerError(
            f"{_name(estimator)} would not pass weights on to {_name(inner)}: put the calibrator "
            f"inside, {_name(inner)}({_name(estimator)}(...))."
        )
    return below[1:]


def _refuse_frozen(estimator: Any) -> None:
    """Refuse what is never trained again, also as the final step of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    if isinstance(estimator, FrozenEstimator):
        raise LearnerError(
            f"{_name(estimator)} ignores weights and is never trained again, so that no "
            "constraint can reach it. Pass the estimator itself, not frozen."
        )
    if hasattr(getattr(estimator, "estimator", None), "fit"):
        _refuse_frozen(estimator.estimator)


def _kind(estimator: Any) -> str | None:
    """What the estimator says that it is; None where it says nothing."""
    if hasattr(estimator, "__sklearn_tags__") and not inspect.isclass(estimator):
        return str(get_tags(estimator).estimator_type)
    return getattr(estimator, "_estimator_type", None)


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def fresh(estimator: Any, seed: int) -> Any:
    """An unfitted copy whose free random states are set, so that trainings can be compared.

    A training with other weights should differ by its weights, not by its luck: every copy gets
    the same seed wherever the user left ``random_state=None``.
    """
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    model = clone(estimator)
    free = {
        name: seed
        for name, value in model.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    if free:
        model.set_params(**free)
    return model


def replicate(weights: NDArray[np.float64], random: np.random.RandomState) -> NDArray[np.intp]:
    """How often to repeat each row so that repetition stands for weight.

    Where all weights are small multiples of one number the copies are exact: weights 0.4 and
    0.6 become 2 and 3 copies. Otherwise rows of average weight are repeated :data:`COPIES` times
    and the rest is rounded along the order of weights, so that any set of equally weighted rows
    keeps its total within one copy.
    """
    total, positive = weights.sum(), weights[weights > 0]
    relative = weights / positive.min()
    for factor in range(1, 11):
        scaled = relative * factor
        counts = np.rint(scaled)
        if counts.sum() > 10 * len(weights):
            break
        if np.allclose(scaled, counts, rtol=0, atol=1e-6):
            return np.asarray(counts, dtype=np.intp)
    order = np.lexsort((random.permutation(len(weights)), weights))
    edges = np.floor(np.cumsum(weights[order]) * (COPIES * len(weights) / total) + random.uniform())
    copies = np.empty(len(weights), dtype=np.intp)
    copies[order] = np.diff(edges, prepend=0.0).astype(np.intp)
    return copies
