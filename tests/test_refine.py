"""What PlugIn chooses where trying costs nothing: measured exactly, expected by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from brute import bits, cells, problem_of
from omnifair import FairClassifier, InfeasibleWarning, PlugIn, Status, each, gap, groups
from omnifair.rates import (
    balanced_accuracy,
    error_cost,
    false_discovery_rate,
    false_negative_rate,
    selection_rate,
)
from omnifair.search import refine
from omnifair.search.refine import View, calibrated
from omnifair.training import Proposal

FAIR = gap(selection_rate, by="sex") <= 0.05


def people(n=800, seed=0, sexes=2):
    random = np.random.RandomState(seed)
    sex = random.randint(sexes, size=n)
    signal = random.normal(size=n) + 0.8 * sex
    y = (signal + random.normal(size=n) > 0.5).astype(int)
    return np.column_stack([signal, sex + random.normal(size=n)]), y, {"sex": sex}


def fit(constraints=FAIR, estimator=None, n=800, seed=0, sexes=2, **parameters):
    X, y, sensitive = people(n, seed, sexes)
    estimator = LogisticRegression() if estimator is None else estimator
    parameters = {"strategy": PlugIn(), "random_state": 0, **parameters}
    model = FairClassifier(estimator, constraints, **parameters)
    return model.fit(X, y, sensitive_features=sensitive)


# -- exactly measured, rightly expected ------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_cells_are_those_that_counting_gives(seed, weighted):
    random = np.random.RandomState(seed)
    n = 40
    group = np.resize([0, 1], n)
    y = bits(np.resize([0, 0, 1, 1], n))
    weights = random.uniform(0.5, 2, n) if weighted else np.ones(n)
    problem = problem_of([gap(selection_rate, by="g") <= 0.1], {"g": group}, y, weights)
    expected = random.dirichlet(np.ones(4), n) * weights[:, None]
    terms = random.normal(size=(n, 2))
    view = View(problem, np.array([0]), np.array([1.0]), terms, expected, 1.0)
    multipliers, offsets = np.array([0.7]), np.array([-0.5, 0.0, 0.1, 0.8])
    measured, hoped = view.cells(multipliers, offsets)
    for k, offset in enumerate(offsets):
        h = bits(terms @ [1.0, 0.7] > offset)
        assert np.allclose(measured[k], problem.cells(h))
        for j, codes in enumerate(([0, 1, 2, 3], [0, 1], [2, 3])):
            by_label = [
                cells(
                    np.full(n, label), h, expected[:, [c for c in codes if c % 2 == label]].sum(1)
                )
                for label in (0, 1)
            ]
            assert np.allclose(hoped[k, j], sum(by_label))


@pytest.mark.parametrize("objective", [None, error_cost(fp=1, fn=3), balanced_accuracy], ids=str)
def test_the_value_is_the_mean_of_measured_and_expected_and_more_is_better(objective):
    random = np.random.RandomState(1)
    n = 200
    y, group = bits(random.randint(2, size=n)), random.randint(2, size=n)
    more = {} if objective is None else {"objective": objective}
    problem = problem_of([gap(selection_rate, by="g") <= 0.9], {"g": group}, y, **more)
    expected = random.dirichlet(np.ones(4), n)
    terms = random.normal(size=(n, 1))
    view = View(problem, np.array([], dtype=int), np.zeros(0), terms, expected, 1.0)
    met, value = view.judged(np.zeros(0), np.array([0.2]))
    h = bits(terms[:, 0] > 0.2)
    chance = expected[:, 1::2].sum(axis=1)
    rate = problem.structure.objective
    hoped = cells(np.ones(n), h, chance) + cells(np.zeros(n), h, 1 - chance)
    mean = (float(rate.value(cells(y, h))) + float(rate.value(hoped))) / 2
    assert met.all()
    assert value == pytest.approx(rate.sense * mean)


def test_calibrated_chances_are_as_frequent_as_they_say_and_in_the_same_order():
    random = np.random.RandomState(0)
    true = random.uniform(0.02, 0.98, size=20_000)
    y = bits(random.uniform(size=len(true)) < true)
    said = expit(3 * np.log(true / (1 - true)) + 1)  # too sure of itself, and too high
    problem = problem_of([gap(selection_rate, by="g") <= 0.1], {"g": np.resize([0, 1], len(y))}, y)
    found = calibrated(problem, said, np.arange(len(said)))
    assert np.abs(found - true).mean() < 0.03 < np.abs(said - true).mean()
    assert (np.diff(found[np.argsort(said)]) >= 0).all()


def test_chances_of_one_label_only_stay_as_they_are():
    problem = problem_of([gap(selection_rate, by="g") <= 0.1], {"g": [0, 1, 0]}, [1, 1, 1])
    said = np.array([0.2, 0.5, 0.9])
    assert np.array_equal(calibrated(problem, said, np.arange(len(said))), said)


# -- what is kept ----------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    bound=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    tree=st.booleans(),
    rate=st.sampled_from([selection_rate, false_negative_rate, false_discovery_rate]),
)
@pytest.mark.filterwarnings("ignore::omnifair.InfeasibleWarning")
def test_where_any_trial_meets_the_bounds_so_does_what_is_kept(seed, bound, tree, rate):
    learner = DecisionTreeClassifier(min_samples_leaf=10, random_state=0) if tree else None
    model = fit(gap(rate, by="sex") <= bound, learner, seed=seed, n=300, on_infeasible="closest")
    met = any(t["satisfied"] for t in model.trials_)
    assert (model.status_ is Status.SATISFIED) == met
    assert met == all(a.met for a in model.report().asked)


class Shown:
    """A joint model's own decisions to explore; then, or not, those beyond an offset."""

    def __init__(self, *offsets):
        self.offsets = offsets

    def budget(self, problem):
        return 1

    def steps(self, setting):
        own = Proposal(np.zeros(setting.problem.structure.n_rows), joint=True, exploratory=True)
        yield [own]
        for offset in self.offsets:
            yield [replace(own, offset=offset, exploratory=False)]


def test_what_is_only_exploratory_is_not_kept_where_another_meets_the_bounds():
    loose = gap(selection_rate, by="sex") <= 0.9
    model = fit(loose, strategy=Shown(0.5))
    explored, chosen = model.trials_
    assert explored["satisfied"]
    assert explored["accuracy"] > chosen["accuracy"] == model.report().objective_value


@pytest.mark.parametrize("offsets", [(), (0.02,)])
def test_but_it_is_kept_where_none_other_meets_the_bounds(offsets):
    at = fit(gap(selection_rate, by="sex") <= 0.9, strategy=Shown(*offsets)).trials_
    gaps = [t["gap(selection_rate, by='sex')"] for t in at]
    if offsets:
        assert gaps[0] != gaps[1]
    bound = gaps[0] if len(gaps) == 1 else min(gaps)
    model = fit(gap(selection_rate, by="sex") <= bound, strategy=Shown(*offsets))
    best = int(np.argmin(gaps))
    assert model.report().objective_value == model.trials_[best]["accuracy"]


def test_a_learner_too_sure_of_itself_gets_an_offset_and_trials_say_so():
    model = fit(estimator=RandomForestClassifier(30, random_state=0), validation=0.5)
    assert model.trials_[-1]["offset"] != 0
    assert all(t["offset"] == 0 for t in model.trials_[:-1])


def test_the_same_data_give_the_same_model():
    one, two = (fit(estimator=RandomForestClassifier(10, random_state=0)) for _ in range(2))
    assert np.array_equal(one.estimator_.gains, two.estimator_.gains)


def test_a_bound_that_nothing_met_may_be_met_by_an_offset():
    floor = each(selection_rate, by="sex") >= 0.62
    ceiling = each(selection_rate, by="sex") <= 0.75
    model = fit([floor, ceiling])
    assert model.status_ is Status.SATISFIED


@pytest.mark.parametrize("seed", [0, 3, 11])
def test_looking_at_some_rows_first_misses_no_bound_that_all_rows_meet(seed, monkeypatch):
    monkeypatch.setattr(refine, "ROWS", 200)
    model = fit(
        gap(false_discovery_rate, by="sex") <= 0.004,
        GaussianNB(),
        n=4000,
        seed=seed,
        strategy=PlugIn(tries=5),
        validation="train",
    )
    *explored, chosen = model.trials_
    assert chosen["satisfied"]
    assert len(explored) <= 5


@pytest.mark.parametrize(("seed", "depth"), [(3, 2), (3, 3), (4, 2), (4, 3)])
def test_the_unit_of_weights_does_not_matter_where_choices_are_equal(seed, depth):
    X, y, sensitive = people(300, seed)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    model = FairClassifier(
        tree, gap(selection_rate, by="sex") <= 0.02, strategy=PlugIn(tries=6), random_state=0
    )
    found = []
    for unit in (1.0, 0.1, 1 / 7):
        weights = np.full(len(y), unit)
        model.fit(np.round(X), y, sensitive_features=sensitive, sample_weight=weights)
        found.append([model.report().offset, *model.multipliers_.values()])
    assert np.allclose(found[1:], found[0])


def test_a_report_says_by_what_offset_a_joint_model_decides_and_trials_that_they_are_joint():
    model = fit(strategy=PlugIn(plain=True))
    report = model.report()
    assert [t["joint"] for t in model.trials_] == [False] + [True] * (len(model.trials_) - 1)
    assert report.joint
    assert report.offset in [t["offset"] for t in model.trials_]
    assert f"expects a gain of more than {report.offset:.4g} (a PlugInClassifier)" in str(report)
    plain = fit(strategy=None)
    assert not plain.report().joint
    assert "PlugInClassifier" not in str(plain.report())
    assert not any("joint" in trial for trial in plain.trials_)


def test_what_cannot_be_met_is_said_as_before():
    asked = [each(selection_rate, by="sex") >= 0.7, each(selection_rate, by="sex") <= 0.2]
    with pytest.warns(InfeasibleWarning):
        model = fit(asked, on_infeasible="closest")
    assert model.status_ is Status.INFEASIBLE


CASES = {
    "two": [FAIR, gap(false_negative_rate, by="sex") <= 0.2],
    "precision": gap(false_discovery_rate, by="sex") <= 0.05,
    "overlapping": gap(selection_rate, by=groups(young="age < 40", old="age > 30")) <= 0.05,
    "three": gap(selection_rate, by="sex") <= 0.05,
}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"validation": 3}, {"refit": True}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_constraints_of_all_kinds_are_met_on_x_alone(name, parameters, plain):
    X, y, sensitive = people(900, 3, sexes=3 if name == "three" else 2)
    sensitive["age"] = np.random.RandomState(0).randint(18, 70, size=len(y)) + 4 * sensitive["sex"]
    model = FairClassifier(
        LogisticRegression(),
        CASES[name],
        strategy=PlugIn(plain=plain),
        random_state=0,
        **parameters,
    ).fit(X, y, sensitive_features=sensitive, sample_weight=1 + y % 3)
    assert model.status_ is Status.SATISFIED
    assert set(model.predict(X)) == {0, 1}


def test_chances_are_calibrated_once_however_many_trials_are_looked_at(monkeypatch):
    calls = []

    def counted(*args):
        calls.append(args)
        return calibrated(*args)

    monkeypatch.setattr(refine, "calibrated", counted)
    fit(gap(false_discovery_rate, by="sex") <= 0.01)
    assert len(calls) == 1


# -- what it costs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "parameters", "trainings"),
    [
        (False, {}, 1),
        (True, {}, 2),
        (False, {"validation": 3}, 4),
        (True, {"validation": 3}, 8),
        (True, {"refit": True}, 4),
    ],
)
def test_trainings_are_counted_and_few(plain, parameters, trainings):
    model = fit(strategy=PlugIn(plain=plain), **parameters)
    assert model.report().trainings == trainings


def test_a_budget_counts_both_models_of_a_refit():
    model = fit(strategy=PlugIn(plain=True), refit=True, max_trainings=4)
    assert model.report().trainings == 4
    with pytest.warns(InfeasibleWarning, match="budget"):
        model = fit(
            strategy=PlugIn(plain=True), refit=True, max_trainings=3, on_infeasible="closest"
        )
    assert model.report().trainings <= 3


def test_a_plain_model_that_meets_the_bounds_is_kept_as_it_is():
    model = fit(gap(selection_rate, by="sex") <= 0.9, strategy=PlugIn(plain=True))
    assert isinstance(model.estimator_, LogisticRegression)
    assert len(model.trials_) == 1


def test_many_rows_are_looked_at_in_part_first():
    model = fit(n=60_000, validation=0.5)
    assert model.status_ is Status.SATISFIED
