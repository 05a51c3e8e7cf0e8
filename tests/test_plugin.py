"""PlugInClassifier: what it decides by, with and without a second model of the labels."""

import pickle
from copy import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from omnifair import (
    BestOf,
    FairClassifier,
    GuidedSearch,
    PlugIn,
    PlugInClassifier,
    gap,
    overall,
)
from omnifair.plugin import chance_of, with_labels
from omnifair.rates import error_cost, selection_rate

FAIR = gap(selection_rate, by="sex") <= 0.05


def people(n=800, seed=0):
    random = np.random.RandomState(seed)
    sex = random.randint(2, size=n)
    signal = random.normal(size=n) + 0.8 * sex
    y = (signal + random.normal(size=n) > 0.5).astype(int)
    return np.column_stack([signal, sex + random.normal(size=n)]), y, sex


X, Y, SEX = people()
LR, TREE = LogisticRegression(), DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
MODELS = [
    PlugInClassifier(LR).fit(X, Y, SEX),
    PlugInClassifier(LR, label_estimator=TREE).fit(X, Y, SEX),
    PlugInClassifier(TREE, label_estimator=LR).fit(X, Y, SEX),
]
NUMBERS = st.floats(-5, 5)


def by_label(table):
    return table.reshape(len(table), -1, 2)


@pytest.mark.parametrize("model", MODELS, ids=["one", "with a tree", "of a tree"])
@given(gains=arrays(float, (2, 2), elements=NUMBERS), offset=NUMBERS)
def test_what_is_taken_off_all_gains_is_taken_off_the_expected_one(model, gains, offset):
    before, after = copy(model), copy(model)
    before.gains, after.gains = gains, gains - offset
    assert np.allclose(after.decision_function(X), before.decision_function(X) - offset)


@pytest.mark.parametrize("model", MODELS, ids=["one", "with a tree", "of a tree"])
def test_chances_sum_to_one_and_survive_pickling(model):
    chances = model.chances(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert (chances >= 0).all()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.chances(X), chances)
    assert np.array_equal(again.predict(X), model.predict(X))


def test_two_models_agree_half_and_half_on_labels_and_one_says_the_groups():
    joint, both = MODELS[0].chances(X), MODELS[1].chances(X)
    said = MODELS[1].label_estimator_.predict_proba(X)[:, 1]
    assert np.allclose(both[:, 1::2].sum(axis=1), (joint[:, 1::2].sum(axis=1) + said) / 2)
    share, same = (by_label(t) / by_label(t).sum(axis=1, keepdims=True) for t in (joint, both))
    assert np.allclose(share, same)


@given(
    table=arrays(float, (3, 6), elements=st.floats(0.01, 1)),
    label=st.sampled_from([0, 1]),
    positive=arrays(float, 3, elements=st.floats(0, 1)),
)
def test_a_label_without_a_chance_has_the_groups_of_the_other(table, label, positive):
    by_label(table)[:, :, label] = 0
    table = table / table.sum(axis=1, keepdims=True)
    found = with_labels(table, positive)
    assert np.allclose(found.sum(axis=1), 1)
    assert np.allclose(found[:, 1::2].sum(axis=1), positive)
    groups = by_label(table).sum(axis=2)
    assert np.allclose(by_label(found).sum(axis=2), groups)


def test_a_model_that_met_one_label_says_that_one():
    alone = DummyClassifier().fit(X, np.zeros(len(X), dtype=int))
    assert np.array_equal(chance_of(alone, X, 1), np.zeros(len(X)))
    assert np.array_equal(chance_of(alone, X, 0), np.ones(len(X)))


def test_odds_undo_the_weights_that_a_model_of_labels_was_trained_with():
    random = np.random.RandomState(0)
    y = (random.uniform(size=20_000) < 0.3).astype(int)
    nothing = np.zeros((len(y), 1))
    heavy = LR.fit(nothing, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    assert heavy.predict_proba(nothing)[0, 1] > 0.6
    assert chance_of(heavy, nothing, 1, odds=5.0)[0] == pytest.approx(y.mean(), abs=0.002)


def fit(estimator=LR, strategy=None, labels=Y, **parameters):
    strategy = PlugIn(plain=True) if strategy is None else strategy
    parameters = {"random_state": 0, **parameters}
    model = FairClassifier(estimator, FAIR, strategy=strategy, **parameters)
    return model.fit(X, labels, sensitive_features={"sex": SEX})


def test_the_kept_model_holds_both_models_and_needs_neither_group_nor_library_state():
    model = fit(make_pipeline(StandardScaler(), LogisticRegression()))
    kept = model.estimator_
    assert isinstance(kept, PlugInClassifier)
    assert kept.label_estimator_.predict_proba(X).shape == (len(X), 2)
    assert kept.estimator_.predict_proba(X).shape == (len(X), 4)
    again = pickle.loads(pickle.dumps(kept))
    assert np.array_equal(again.predict(X), model.predict(X))
    fresh = clone(kept).fit(X, Y, SEX)
    assert set(fresh.predict(X)) <= {0, 1}


@pytest.mark.parametrize("names", [("no", "yes"), ("yes", "no"), (True, False)])
def test_labels_of_any_kind_and_order_give_the_same_decisions(names):
    numbers = fit()
    words = fit(labels=np.asarray(names)[Y], pos_label=names[1])
    assert np.array_equal(words.predict(X) == names[1], numbers.predict(X) == 1)


@pytest.mark.parametrize("validation", [0.25, 3])
@pytest.mark.parametrize("plain", [False, True])
def test_trials_of_one_joint_model_share_one_table_of_chances(validation, plain):
    class Watching(PlugIn):
        def steps(self, setting):
            steps = super().steps(setting)
            trials = yield next(steps)
            for _ in range(5):
                seen.extend(trials)
                trials = yield steps.send(trials)

    seen = []
    fit(strategy=Watching(plain=plain), validation=validation, on_infeasible="closest")
    tables = [trial.chances for trial in seen if trial.chances is not None]
    assert len(tables) > 2
    assert all(table is tables[0] for table in tables)


def test_an_estimator_that_shows_its_methods_only_when_fitted_can_be_a_joint_model():
    stack = StackingClassifier([("a", LR), ("b", TREE)], cv=2)
    for strategy in (PlugIn(), BestOf([PlugIn(plain=True)])):
        assert isinstance(fit(stack, strategy).estimator_, PlugInClassifier)


def test_columns_are_known_by_name():
    table = pd.DataFrame(X, columns=["signal", "noisy"])
    model = FairClassifier(LR, FAIR, strategy=PlugIn(plain=True), random_state=0)
    model.fit(table, Y, sensitive_features={"sex": SEX})
    assert list(model.estimator_.feature_names_in_) == ["signal", "noisy"]


def test_chances_are_of_the_people_even_where_the_objective_weighs_labels():
    model = fit(objective=error_cost(fp=1, fn=5))
    chances = model.estimator_.chances(X)[:, 1::2].sum(axis=1)
    assert model.estimator_.label_estimator_.predict_proba(X)[:, 1].mean() > Y.mean() + 0.1
    assert chances.mean() == pytest.approx(Y.mean(), abs=0.04)


def test_an_objective_that_asks_for_one_decision_leaves_labels_to_the_joint_model():
    asked = [FAIR, overall(selection_rate) >= 0.2]
    model = FairClassifier(
        LR, asked, strategy=PlugIn(plain=True), objective=error_cost(fp=1, fn=0), random_state=0
    ).fit(X, Y, sensitive_features={"sex": SEX})
    assert model.status_ == "satisfied"
    assert model.estimator_.label_estimator_ is None
    before = model.report().trainings
    model.set_params(refit=True).fit(X, Y, sensitive_features={"sex": SEX})
    assert model.estimator_.label_estimator_ is None
    assert model.report().trainings == before + 1


def test_a_report_compares_with_the_plain_model_only_where_there_is_one():
    alone, both = fit(strategy=PlugIn()).report(), fit().report()
    assert np.isnan(alone.plain_objective_value)
    assert "(plain model" not in str(alone)
    value = fit(strategy=None).trials_[0]["accuracy"]
    for report in (both, fit(strategy=BestOf([PlugIn(), GuidedSearch()])).report()):
        assert report.plain_objective_value == value
        assert f"(plain model {value:.4f})" in str(report)
