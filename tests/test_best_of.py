"""BestOf: strategies in turn, the best of all kept, nothing trained twice."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

from omnifair import (
    BestOf,
    BracketSearch,
    FairClassifier,
    GuidedSearch,
    InfeasibleWarning,
    LearnerError,
    PlugIn,
    PlugInClassifier,
    Status,
    TrainingError,
    coefficients,
    each,
    gap,
)
from omnifair.rates import accuracy, selection_rate
from omnifair.training import Proposal

FAIR = gap(selection_rate, by="sex") <= 0.05
IMPOSSIBLE = [each(selection_rate, by="sex") >= 0.7, each(selection_rate, by="sex") <= 0.2]
BOTH = PlugIn(plain=True), GuidedSearch()


def people(n=800, seed=0):
    random = np.random.RandomState(seed)
    sex = random.randint(2, size=n)
    signal = random.normal(size=n) + 0.8 * sex
    y = (signal + random.normal(size=n) > 0.5).astype(int)
    return np.column_stack([signal, sex + random.normal(size=n)]), y, {"sex": sex}


def fit(strategy, estimator=None, constraints=FAIR, seed=0, **parameters):
    X, y, sensitive = people(seed=seed)
    estimator = LogisticRegression() if estimator is None else estimator
    model = FairClassifier(
        estimator, constraints, strategy=strategy, **{"random_state": 0, **parameters}
    )
    return model.fit(X, y, sensitive_features=sensitive)


def reached(model):
    return model.report().objective_value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learner", [LogisticRegression(), DecisionTreeClassifier(max_depth=5)])
@pytest.mark.filterwarnings("ignore::omnifair.InfeasibleWarning")  # a tree may step over the bound
def test_the_better_of_the_two_is_kept(learner, seed):
    both, *alone = (
        fit(s, learner, seed=seed, on_infeasible="closest") for s in (BestOf(BOTH), *BOTH)
    )
    met = [model for model in alone if model.status_ is Status.SATISFIED]
    assert both.status_ is Status.SATISFIED
    assert reached(both) == max(map(reached, met))


def test_all_trials_are_reported_and_the_plain_model_is_trained_once():
    both, plugin, guided = (fit(s) for s in (BestOf(BOTH), *BOTH))
    assert len(both.trials_) == len(guided.trials_) + len(plugin.trials_) - 1
    assert both.report().trainings == guided.report().trainings + plugin.report().trainings - 1
    assert [t["training"] for t in both.trials_] == list(range(len(both.trials_)))


def test_by_default_it_is_the_plug_in_with_the_plain_model_and_then_the_guided_search():
    assert BestOf() == BestOf(BOTH)
    assert pickle.loads(pickle.dumps(BestOf())) == BestOf()
    model = pickle.loads(pickle.dumps(fit(BestOf())))
    assert set(model.predict(people()[0])) == {0, 1}


def test_where_the_plain_model_meets_the_bounds_nothing_else_is_tried():
    loose = gap(selection_rate, by="sex") <= 0.9
    assert fit(BestOf(), constraints=loose).report().trainings == 1


def test_a_strategy_that_cannot_work_with_the_learner_is_left_out():
    both, guided = (fit(s, RidgeClassifier()) for s in (BestOf(), None))
    assert reached(both) == reached(guided)
    assert len(both.trials_) == len(guided.trials_)
    with pytest.raises(TrainingError, match="no predict_proba"):
        fit(BestOf([PlugIn()]), RidgeClassifier())


def test_a_refit_leaves_room_only_for_what_strategies_that_can_work_here_keep():
    loose = gap(selection_rate, by="sex") <= 0.9
    model = fit(BestOf(), RidgeClassifier(), loose, refit=True, max_trainings=2)
    assert model.report().trainings == 2
    with pytest.raises(LearnerError, match="takes 3 trainings"):
        fit(BestOf(), LogisticRegression(), loose, refit=True, max_trainings=2)


def test_a_strategy_may_have_fields_of_any_name():
    class Halves:
        parts = 8

        def budget(self, problem):
            return 1

        def steps(self, setting):
            yield [Proposal(np.zeros(setting.problem.structure.n_rows))]

    loose = gap(selection_rate, by="sex") <= 0.9
    for strategy in (Halves(), BestOf([Halves()])):
        model = fit(strategy, constraints=loose, refit=True, max_trainings=2)
        assert model.report().trainings == 2


def test_a_strategy_that_cannot_work_with_the_rates_is_left_out():
    @coefficients
    def selected(rows):
        y = rows.labels
        return (y == 0).mean(), (2.0 * y - 1) / len(y)

    model = fit(BestOf(), constraints=gap(selected, by="sex") <= 0.05)
    assert model.status_ is Status.SATISFIED
    assert not isinstance(model.estimator_, PlugInClassifier)


def test_one_inside_another_is_as_good_as_all_side_by_side():
    nested = fit(BestOf([BestOf([BracketSearch()]), PlugIn()]))
    assert reached(nested) == reached(fit(BestOf([BracketSearch(), PlugIn()])))


def test_each_keeps_to_its_own_budget_and_all_to_that_of_the_fit():
    class Endless:
        def budget(self, problem):
            return 3

        def steps(self, setting):
            for k in range(100):
                yield [Proposal(np.full(setting.problem.structure.n_rows, 0.001 * k))]

    model = fit(BestOf([Endless(), PlugIn()]))
    assert model.report().trainings == 3 + 1
    assert BestOf([Endless(), PlugIn(plain=True)]).budget(None) == 5
    with pytest.warns(InfeasibleWarning, match="budget"):
        model = fit(BestOf([Endless(), PlugIn()]), max_trainings=2, on_infeasible="closest")
    assert model.report().trainings == 2


def test_few_trainings_are_enough_for_the_cheap_one():
    hard = [gap(selection_rate, by="sex") <= 0.002, gap(accuracy, by="sex") <= 0.01]
    model = fit(BestOf(), constraints=hard, max_trainings=6)
    assert model.status_ is Status.SATISFIED
    assert isinstance(model.estimator_, PlugInClassifier)


@pytest.mark.parametrize("parameters", [{"validation": 3}, {"refit": True}], ids=str)
def test_folds_and_a_refit_work_as_with_one_strategy(parameters):
    model = fit(BestOf(), **parameters)
    assert model.status_ is Status.SATISFIED
    assert set(model.predict(people()[0])) == {0, 1}


@pytest.mark.parametrize(
    "wrong",
    [(), iter(()), GuidedSearch(), PlugIn, [PlugIn], "PlugIn", ["PlugIn"], None, 3, [None]],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_list_of_strategies_is_refused_with_what_to_pass(wrong):
    with pytest.raises(LearnerError, match=r"pass a list of strategies, such as \[PlugIn"):
        BestOf(wrong)


def test_strategies_of_a_generator_are_there_for_every_fit():
    best = BestOf(strategy for strategy in BOTH)
    assert best == BestOf(list(BOTH)) == BestOf(BOTH)
    assert len(fit(best).trials_) == len(fit(best).trials_) > 1


def test_as_much_of_a_batch_is_trained_as_a_strategy_s_own_budget_allows_for():
    class Batches:
        def budget(self, problem):
            return 3

        def steps(self, setting):
            sizes = np.arange(10) / 1000
            yield [Proposal(np.full(setting.problem.structure.n_rows, size)) for size in sizes]
            raise AssertionError("it has nothing left")

    with pytest.warns(InfeasibleWarning):
        model = fit(BestOf([Batches()]), on_infeasible="closest", constraints=IMPOSSIBLE)
    assert model.report().trainings == 3


def binary_only():
    return LogisticRegression(solver="liblinear")


def test_a_strategy_whose_training_fails_ends_there_and_the_report_says_so():
    guided = fit(None, binary_only())
    for order in (BOTH, BOTH[::-1], [PlugIn(), BOTH[1]]):
        model = fit(BestOf(order), binary_only())
        assert model.status_ is Status.SATISFIED
        assert reached(model) == reached(guided)
        assert "failed, as the joint model of groups and labels: ValueError" in str(model.report())
        assert model.report().trainings == guided.report().trainings
    assert "failed" not in str(guided.report())


def test_where_the_joint_model_fails_a_model_can_still_be_certified():
    for order in (BOTH, [PlugIn(), BOTH[1]], [BestOf([PlugIn()]), BOTH[1]]):
        model = fit(
            BestOf(order),
            binary_only(),
            gap(selection_rate, by="sex") <= 0.4,
            confidence=0.6,
            on_infeasible="closest",
        )
        assert model.certificate_ is not None
        assert not isinstance(model.estimator_, PlugInClassifier)


@pytest.mark.parametrize("strategy", [PlugIn(), PlugIn(plain=True), BestOf([PlugIn()])], ids=str)
def test_where_all_fail_the_error_is_raised(strategy):
    with pytest.raises(TrainingError, match="the joint model of groups and labels: ValueError"):
        fit(strategy, binary_only())


def test_where_trainings_fail_within_the_budget_the_error_is_raised():
    with pytest.raises(TrainingError, match="the joint model"):
        fit(BestOf([PlugIn(), GuidedSearch()]), binary_only(), max_trainings=1)
