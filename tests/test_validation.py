"""Which rows are trained on and which are measured."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from omnifair import FairClassifier, LearnerError, Status, ValidationSet, gap
from omnifair.rates import selection_rate
from omnifair.validation import folds, holdout

STRATA = st.lists(st.integers(0, 5), min_size=1, max_size=80).map(np.array)
FAIR = gap(selection_rate, by="sex") <= 0.05
N = 400


class Recorder(ClassifierMixin, BaseEstimator):
    """Logistic regression that notes which rows (column 0) it was trained on and asked about."""

    trained: list = []  # noqa: RUF012 (one list for all clones is the point)
    asked: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight):
        self.trained.append(np.asarray(X[:, 0], dtype=int).tolist())
        self.inner_ = LogisticRegression().fit(X[:, 1:], y, sample_weight)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        self.asked.append(np.asarray(X[:, 0], dtype=int).tolist())
        return self.inner_.predict(X[:, 1:])


def people(n=N, seed=0, first=0):
    """Rows numbered from ``first``; two sexes of different base rates."""
    random = np.random.RandomState(seed)
    sex = random.randint(2, size=n)
    signal = random.normal(size=n) + 0.8 * sex
    y = (signal + random.normal(size=n) > 0.5).astype(int)
    return np.column_stack([np.arange(first, first + n), signal, sex]), y, {"sex": sex}


def fit(**parameters):
    """One fit of a fresh recorder."""
    Recorder.trained.clear()
    Recorder.asked.clear()
    X, y, sensitive = people()
    model = FairClassifier(Recorder(), FAIR, random_state=0, **parameters)
    model.fit(X, y, sensitive_features=sensitive)
    assert len(Recorder.trained) == model.report().trainings
    return model


def distinct(rows):
    """The different sets of rows in a log."""
    return {frozenset(r) for r in rows}


# -- splitting -----------------------------------------------------------------------------------


@given(STRATA, st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_holdout_parts_the_rows_and_every_stratum_of_two_stands_on_both_sides(
    strata, fraction, seed
):
    train, held = holdout(strata, fraction, np.random.RandomState(seed))
    assert sorted([*train, *held]) == list(range(len(strata)))
    for stratum in set(strata):
        size, there = (strata == stratum).sum(), (strata[held] == stratum).sum()
        if size >= 2:
            assert 1 <= there <= size - 1
            assert abs(there - fraction * size) <= 1
        else:
            assert there == 0  # a single row is better trained on than measured on


@given(STRATA, st.integers(2, 6), st.integers(0, 9))
def test_folds_measure_each_row_once_and_share_out_every_stratum(strata, k, seed):
    parts = folds(strata, k, np.random.RandomState(seed))
    assert len(parts) == k
    assert sorted(np.concatenate([held for _, held in parts])) == list(range(len(strata)))
    for train, held in parts:
        assert sorted([*train, *held]) == list(range(len(strata)))
        for stratum in set(strata):
            share = (strata == stratum).sum() / k
            assert abs((strata[held] == stratum).sum() - share) < 1 + 1e-9


# -- what fit looks at ---------------------------------------------------------------------------


def test_a_fraction_is_held_out_of_every_training_and_only_that_is_predicted():
    model = fit()
    [train], [held] = distinct(Recorder.trained), distinct(Recorder.asked)
    assert train | held == set(range(N))
    assert not train & held
    assert abs(len(held) - N / 4) <= 2  # rounded within each of four strata
    assert model.status_ is Status.SATISFIED
    assert f"on the validation part ({len(held)} rows)" in str(model.report())


def test_the_split_depends_on_random_state_only():
    held = []
    for _ in range(2):
        fit(validation=0.4)
        held.append(distinct(Recorder.asked))
    X, y, sensitive = people()
    Recorder.asked.clear()
    FairClassifier(Recorder(), FAIR, validation=0.4, random_state=1).fit(
        X, y, sensitive_features=sensitive
    )
    assert held[0] == held[1] != distinct(Recorder.asked)


def test_the_split_is_stratified_by_group_and_label():
    fit(validation=0.2)
    _, y, sensitive = people()
    [held] = distinct(Recorder.asked)
    held = sorted(held)
    for s in (0, 1):
        for label in (0, 1):
            there = (sensitive["sex"] == s) & (y == label)
            assert abs(there[held].sum() - 0.2 * there.sum()) <= 0.5


def test_train_measures_on_the_training_rows():
    model = fit(validation="train")
    assert distinct(Recorder.trained) == distinct(Recorder.asked) == {frozenset(range(N))}
    X, y, _ = people()
    assert model.report().objective_value == np.mean(model.predict(X) == y)


SEEN = people(200, seed=1, first=N)


def test_the_learner_is_handed_the_users_own_rows_and_no_copy():
    handed = []

    class Witness(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            handed.append(X)
            return super().fit(X, y, sample_weight)

        def predict(self, X):
            handed.append(X)
            return super().predict(X)

    X, y, sensitive = people()
    model = FairClassifier(Witness(), FAIR, validation="train")
    model.fit(X[:, 1:], y, sensitive_features=sensitive)
    assert len(handed) > 2
    assert all(np.shares_memory(rows, X) for rows in handed)


@pytest.mark.parametrize(
    "validation",
    [
        SEEN,
        list(SEEN),
        {"X": SEEN[0], "y": SEEN[1], "sensitive_features": SEEN[2]},
        ValidationSet(SEEN[0], SEEN[1], sensitive_features=SEEN[2], sample_weight=np.ones(200)),
    ],
    ids=["tuple", "list", "dict", "ValidationSet"],
)
def test_an_explicit_set_is_measured_and_never_trained_on(validation):
    model = fit(validation=validation)
    assert distinct(Recorder.trained) == {frozenset(range(N))}
    assert distinct(Recorder.asked) == {frozenset(range(N, N + 200))}
    assert "on the validation set (200 rows)" in str(model.report())
    assert model.report().objective_value == np.mean(model.predict(SEEN[0]) == SEEN[1])


def test_weights_of_the_validation_set_count_in_every_rate():
    X, y, sensitive = SEEN
    weight = np.random.RandomState(0).randint(1, 4, size=len(y))
    model = fit(validation=(X, y, sensitive, weight))
    assert model.report().objective_value == pytest.approx(
        np.average(model.predict(X) == y, weights=weight)
    )


def test_sensitive_columns_of_a_validation_set_are_found_in_its_x():
    X, y, _ = people()
    names = ["row", "signal", "sex"]
    seen = pd.DataFrame(SEEN[0], columns=names)
    model = FairClassifier(LogisticRegression(), FAIR, validation=(seen, SEEN[1]), random_state=0)
    model.fit(pd.DataFrame(X, columns=names), y)
    assert model.status_ is Status.SATISFIED


def test_folds_predict_every_row_by_a_model_that_did_not_see_it():
    model = fit(validation=4)
    per_trial = [Recorder.asked[i : i + 4] for i in range(0, 4 * len(model.trials_), 4)]
    for number, asked in enumerate(per_trial):
        assert sorted(row for rows in asked for row in rows) == list(range(N))
        for k, rows in enumerate(asked):
            assert not set(rows) & set(Recorder.trained[4 * number + k])
    assert sorted(Recorder.trained[-1]) == list(range(N))  # the returned model: all rows
    report = model.report()
    assert report.trainings == len(Recorder.trained) == 4 * len(model.trials_) + 1
    assert "trained on all rows, the measures are of the models of the folds" in str(report)


def test_folds_in_processes_find_the_same():
    X, y, sensitive = people()
    one, two = (
        FairClassifier(LogisticRegression(), FAIR, validation=3, n_jobs=n, random_state=0).fit(
            X, y, sensitive_features=sensitive
        )
        for n in (None, 2)
    )
    assert one.multipliers_ == two.multipliers_
    assert np.array_equal(one.predict(X), two.predict(X))


def test_refit_trains_once_more_on_all_rows_and_the_report_says_so():
    plain, again = fit(), fit(refit=True)
    assert sorted(Recorder.trained[-1]) == list(range(N))
    assert len(distinct(Recorder.trained[:-1])) == 1
    assert len(Recorder.trained[0]) < 0.8 * N
    assert again.multipliers_ == plain.multipliers_
    assert again.multipliers_
    assert again.report().trainings == plain.report().trainings + 1 == len(Recorder.trained)
    assert again.report().objective_value == plain.report().objective_value
    assert "the measures are of the returned model" in str(plain.report())
    assert "trained on all rows, the measures are of the model before that" in str(again.report())


def test_the_same_multipliers_on_all_rows_are_what_refit_trains_with():
    X, y, sensitive = people()
    model = FairClassifier(LogisticRegression(), FAIR, refit=True, random_state=0)
    model.fit(X, y, sensitive_features=sensitive)
    # Selection rate: weight 1 - N lambda y' / n_a for the group to lower, + for the one to raise.
    sex, weight = sensitive["sex"], np.ones(N)
    signed = 2.0 * y - 1
    for row, multiplier in model.multipliers_.items():
        high = int(row.startswith("selection_rate[sex=1]"))
        weight[sex == high] -= N * multiplier * signed[sex == high] / (sex == high).sum()
        weight[sex != high] += N * multiplier * signed[sex != high] / (sex != high).sum()
    target = np.where(weight < 0, 1 - y, y)
    expected = LogisticRegression().fit(X, target, np.abs(weight))
    assert np.allclose(model.estimator_.coef_, expected.coef_, rtol=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [0, 1, 1.0, 0.0, -0.25, 1.5, True, "test", None, (1,), {"X": 1}, {"X": 1, "y": 2, "z": 3}],
    ids=repr,
)
def test_other_values_are_refused_with_those_that_are_not(wrong):
    X, y, sensitive = people()
    with pytest.raises(
        LearnerError, match=r"a fraction such as 0\.25, a number of folds such as 5"
    ):
        FairClassifier(Recorder(), FAIR, validation=wrong).fit(X, y, sensitive_features=sensitive)
