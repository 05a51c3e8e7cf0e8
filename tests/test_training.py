"""How trainings follow one another: warm starts, limits, who is told, what an interrupt leaves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from omnifair import (
    FairClassifier,
    GridSearch,
    GuidedSearch,
    InfeasibleWarning,
    LearnerError,
    PlugIn,
    PlugInClassifier,
    Status,
    gap,
)
from omnifair.rates import selection_rate

FAIR = gap(selection_rate, by="sex") <= 0.05


def people(n=600):
    random = np.random.RandomState(0)
    sex = random.randint(2, size=n)
    signal = random.normal(size=n) + 0.8 * sex
    y = (signal + random.normal(size=n) > 0.5).astype(int)
    return np.column_stack([signal, sex]), y, {"sex": sex}


X, Y, SENSITIVE = people()
SIGNAL = X[:, 0]


def fit(estimator=None, **parameters):
    estimator = LogisticRegression() if estimator is None else estimator
    model = FairClassifier(estimator, FAIR, random_state=0, **parameters)
    return model.fit(X, Y, sensitive_features=SENSITIVE)


# -- warm starts -------------------------------------------------------------------------------


class Counting:
    """Notes whether a training had coefficients to start from."""

    started: list = []  # noqa: RUF012 (one list for all clones is the point)

    def fit(self, X, y, sample_weight=None):
        has = hasattr(self, "coef_") or hasattr(self, "coefs_")
        self.started.append(self.warm_start and has)
        return super().fit(X, y, sample_weight=sample_weight)


class CountingLogistic(Counting, LogisticRegression): ...


class CountingSGD(Counting, SGDClassifier): ...


class CountingNetwork(Counting, MLPClassifier): ...


@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: make_pipeline(StandardScaler(), e)])
@pytest.mark.parametrize("asked", ["auto", True, False])
def test_logistic_regression_goes_on_from_a_training_before_unless_told(wrap, asked):
    Counting.started.clear()
    model = fit(wrap(CountingLogistic()), warm_start=asked)
    first, *later = Counting.started
    assert len(later) > 1
    assert not first
    assert all(later) == any(later) == (asked is not False)
    inner = model.estimator_[-1] if hasattr(model.estimator_, "steps") else model.estimator_
    assert inner.warm_start is False  # as the user had it


def test_a_warm_start_finds_the_same_model():
    warm, cold = (fit(LogisticRegression(tol=1e-8), warm_start=asked) for asked in (True, False))
    assert warm.multipliers_ == pytest.approx(cold.multipliers_, rel=1e-4)
    assert warm.estimator_.coef_ == pytest.approx(cold.estimator_.coef_, rel=1e-3)


@pytest.mark.filterwarnings("ignore::omnifair.InfeasibleWarning")  # a coarse grid
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("asked", ["auto", True, False])
@pytest.mark.parametrize(
    "estimator",
    [CountingSGD(loss="log_loss"), CountingNetwork((3,), max_iter=5)],
    ids=["s", "n"],
)
def test_learners_whose_way_matters_start_warm_only_when_asked(estimator, asked):
    Counting.started.clear()
    fit(estimator, warm_start=asked, strategy=GridSearch(3), on_infeasible="closest")
    assert Counting.started == [False, asked is True, asked is True]


def test_asking_for_a_warm_start_where_there_is_none_is_refused():
    with pytest.raises(LearnerError, match="RandomForestClassifier cannot go on from"):
        fit(RandomForestClassifier(5), warm_start=True)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # scikit-learn changes l1_ratios' default
def test_logistic_regression_without_a_warm_start_is_trained_afresh():
    model = fit(LogisticRegressionCV(Cs=2, cv=2, scoring="accuracy"))
    assert len(model.trials_) > 1
    assert model.status_ is Status.SATISFIED


def test_categories_that_a_share_of_the_rows_does_not_have_are_met_by_all_rows():
    random = np.random.RandomState(0)
    X = pd.DataFrame({"signal": SIGNAL, "town": random.randint(200, size=len(Y)).astype(str)})
    pipeline = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"
        ),
        LogisticRegression(),
    )
    model = FairClassifier(pipeline, FAIR, strategy=GuidedSearch(subsample=100), random_state=0)
    model.fit(X, Y, sensitive_features=SENSITIVE)
    assert {t["share"] < 1 for t in model.trials_} == {True, False}


# -- side by side ------------------------------------------------------------------------------


def test_points_of_a_grid_trained_side_by_side_give_what_they_give_one_by_one():
    one, two = (fit(strategy=GridSearch(21), n_jobs=jobs) for jobs in (None, 2))
    assert [t["accuracy"] for t in one.trials_] == [t["accuracy"] for t in two.trials_]
    assert one.multipliers_ == two.multipliers_


# -- limits, and who is told -----------------------------------------------------------------------


def test_a_callback_is_told_of_every_training_as_it_ends():
    seen = []
    model = fit(callback=seen.append)
    assert [r["training"] for r in seen] == [t["training"] for t in model.trials_]
    assert seen[-1]["accuracy"] == model.trials_[-1]["accuracy"]


def test_what_a_callback_raises_ends_the_fit():
    def stop(record):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        fit(callback=stop)


def test_no_training_is_begun_after_the_time_budget_but_the_first():
    with pytest.warns(InfeasibleWarning, match="or of time ended"):
        model = fit(time_budget=1e-9, on_infeasible="closest")
    assert len(model.trials_) == 1
    assert model.status_ is Status.BUDGET


def test_a_refit_is_made_after_the_time_budget_all_the_same():
    with pytest.warns(InfeasibleWarning, match="or of time ended"):
        model = fit(time_budget=1e-9, refit=True, on_infeasible="closest")
    assert len(model.trials_) == 1
    assert model.report().trainings == 2


def interrupt_after(trainings):
    def callback(record):
        if record["training"] + 1 == trainings:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_keeps_the_best_model_so_far():
    best = fit(strategy=GridSearch(21))
    met = next(t["training"] for t in best.trials_ if t["satisfied"])
    model = fit(strategy=GridSearch(21), callback=interrupt_after(met + 1))
    assert len(model.trials_) == met + 1 < len(best.trials_)
    assert model.status_ is Status.SATISFIED


def test_an_interrupt_before_the_bounds_are_met_warns_and_keeps_the_closest():
    with pytest.warns(InfeasibleWarning, match="interrupted before the constraints were met"):
        model = fit(callback=interrupt_after(1))
    assert model.status_ is Status.INTERRUPTED
    assert len(model.trials_) == 1
    assert set(model.predict(X)) == {0, 1}


# -- one joint model -------------------------------------------------------------------------------


def test_plug_in_meets_the_bound_with_one_training_and_decides_on_x_alone():
    model = fit(strategy=PlugIn())
    assert model.status_ is Status.SATISFIED
    assert model.report().trainings == sum(t["fits"] for t in model.trials_) == 1
    assert isinstance(model.estimator_, PlugInClassifier)
    assert (model.predict(X) == model.estimator_.predict(X)).all()
    assert len(model.trials_) > 1
