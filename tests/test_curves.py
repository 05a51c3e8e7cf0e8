"""The default search against learners whose answers to the weights are known curves."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from omnifair import FairClassifier, InfeasibleWarning, Status, gap
from omnifair.rates import false_discovery_rate, selection_rate

N = 2000
EPS = 0.05
BUDGET = 40  # the default strategy's own

# Every crossing of two groups, two races and two labels has the same number of rows.
SEX, RACE, LABEL = (np.arange(N) // k % 2 for k in (1, 2, 4))
PEOPLE = {"sex": SEX, "race": RACE}
# A score that goes with the label, to choose by, and a number by which to know a row again.
X = np.column_stack([SEX, RACE, LABEL + np.random.RandomState(0).normal(size=N), np.arange(N)])


class Known(ClassifierMixin, BaseEstimator):
    """Answers weights that pull on the two sexes (and races) by gaps that ``curve`` gives.

    The pull on a grouping is how much more often the weights want group 0 chosen than group 1; it
    starts at 0 and ends before 1. Group 1 is chosen more often than group 0 by ``curve(pulls)``;
    under ``fdr`` it is the share of the wrong among the chosen that is larger by so much.
    """

    def __init__(self, curve, fdr=False):
        self.curve = curve
        self.fdr = fdr

    def fit(self, X, y, sample_weight):
        self.classes_ = np.array([0, 1])
        pulls = []
        for column in (0, 1):
            wanted = [
                np.average(y[X[:, column] == g], weights=sample_weight[X[:, column] == g])
                for g in (0, 1)
            ]
            pulls.append(wanted[0] - wanted[1])
        self.gaps_ = np.atleast_1d(self.curve(np.array(pulls)))
        return self

    def predict(self, X):
        chosen = np.zeros(len(X), dtype=int)
        for sex in (0, 1):
            for race in (0, 1):
                rows = np.flatnonzero((X[:, 0] == sex) & (X[:, 1] == race))
                rows = rows[np.argsort(-X[rows, 2])]
                sides = np.array([2 * sex - 1, 2 * race - 1])[: len(self.gaps_)]
                rate = (0.3 if self.fdr else 0.5) + sides @ self.gaps_ / 2
                if np.isnan(rate):  # nobody at all: a rate of the chosen is undefined
                    continue
                rate = np.clip(rate, 0, 1)
                if not self.fdr:
                    chosen[rows[: round(rate * len(rows))]] = 1
                    continue
                half = len(rows) // 2
                for label, share in ((0, rate), (1, 1 - rate)):
                    these = rows[LABEL[X[rows, 3].astype(int)] == label]
                    chosen[these[: round(share * half)]] = 1
        return chosen


def fitted(curve, *constraints, fdr=False, **parameters):
    """The default search on a known curve, measured on the training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        return FairClassifier(
            Known(curve, fdr),
            constraints or [gap(false_discovery_rate if fdr else selection_rate, by="sex") <= EPS],
            validation="train",
            on_infeasible="closest",
            random_state=0,
            **parameters,
        ).fit(X, LABEL, sensitive_features=PEOPLE)


def straight(slope, start=0.3):
    """A gap that falls by ``slope`` for each unit of pull."""
    return lambda pull: start - slope * pull[0]


def noise(pull, size):
    """The same noise for the same pull, another for one next to it."""
    return size * np.sin(1e6 * pull + 1)


CURVES = {
    "as expected": straight(1.0),
    "steep": straight(20.0),
    "very steep": straight(200.0),
    "flat": straight(0.35),
    "flat at first, then steep": lambda pull: 0.3 - max(0.0, 10 * (pull[0] - 0.4)),
    "steep at first, then flat": lambda pull: 0.3 - 0.27 * np.tanh(20 * pull[0]),
    "in small steps": lambda pull: 0.3 - 0.02 * np.floor(pull[0] / 0.02),
    "in large steps": lambda pull: 0.3 - 0.08 * np.floor(pull[0] / 0.05),
    "one jump": lambda pull: 0.3 if pull[0] < 0.2 else 0.01,
    "a jump across": lambda pull: 0.3 - 0.5 * pull[0] if pull[0] < 0.25 else -0.02,
    "noisy": lambda pull: 0.3 - pull[0] + noise(pull[0], 0.02),
    "very noisy": lambda pull: 0.3 - pull[0] + noise(pull[0], 0.06),
    "waves": lambda pull: 0.3 - pull[0] + 0.03 * np.sin(60 * pull[0]),
    "up before down": lambda pull: 0.3 + 0.5 * pull[0] - 4 * pull[0] ** 2,
    "the other group": lambda pull: -0.3 - pull[0],
}


@pytest.mark.parametrize("name", CURVES)
def test_a_bound_that_some_multiplier_meets_is_met_in_few_trainings(name):
    model = fitted(CURVES[name])
    assert model.status_ is Status.SATISFIED
    assert model.report().asked[0].reached <= EPS + 1e-9
    assert len(model.trials_) <= 16


# What these weights ask of false discovery rates is known up to its sign and size only.
FDR_CURVES = {
    "as expected": straight(1.0),
    "steep": straight(20.0),
    "in steps": lambda pull: 0.3 - 0.02 * np.floor(pull[0] / 0.02),
    "undefined beyond the bound": lambda pull: 0.3 - pull[0] if pull[0] < 0.32 else np.nan,
    "undefined before the bound": lambda pull: (
        np.nan if 0.05 < pull[0] < 0.15 else 0.3 - pull[0] if pull[0] < 0.5 else -0.2
    ),
    "undefined in stretches": lambda pull: (
        np.nan if pull[0] > 0.02 and int(pull[0] / 0.04) % 2 else 0.3 - pull[0]
    ),
}


@pytest.mark.parametrize("name", FDR_CURVES)
def test_undefined_stretches_of_a_false_discovery_rate_are_passed(name):
    model = fitted(FDR_CURVES[name], fdr=True)
    assert model.status_ is Status.SATISFIED
    assert len(model.trials_) <= 20


HOPELESS = {
    "no answer at all": lambda pull: 0.3,
    "flat above the bound": lambda pull: 0.3 - 0.2 * np.tanh(20 * pull[0]),
    "a jump over the bound": lambda pull: 0.3 if pull[0] < 0.2 else -0.3,
    "noise above the bound": lambda pull: 0.2 + noise(pull[0], 0.05),
    "back again": lambda pull: 0.3 - 0.15 * np.sin(10 * pull[0]),
    "the wrong way": lambda pull: 0.3 + 0.5 * pull[0],
    "ever closer, never there": lambda pull: 0.08 + 0.22 * np.exp(-8 * pull[0]),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_a_bound_that_no_multiplier_meets_ends_as_infeasible_before_the_budget(name):
    model = fitted(HOPELESS[name])
    assert model.status_ is Status.INFEASIBLE
    assert len(model.trials_) < BUDGET
    reached = [trial["gap(selection_rate, by='sex')"] for trial in model.trials_]
    assert model.report().asked[0].reached == pytest.approx(min(reached))
    [conflict] = model.report().diagnosis.conflicts
    assert conflict.constraints == (f"gap(selection_rate, by='sex') <= {EPS}",)


def test_a_rate_that_is_undefined_wherever_it_could_be_met_ends_with_a_word_about_it():
    model = fitted(lambda pull: 0.3 if pull[0] < 0.1 else np.nan, fdr=True)
    assert model.status_ is Status.INFEASIBLE
    assert len(model.trials_) <= BUDGET
    assert "a rate had an empty denominator" in str(model.report())


BOTH = [gap(selection_rate, by=by) <= EPS for by in ("sex", "race")]
START = np.array([0.3, 0.2])


def coupled(matrix, start=START):
    """Two gaps, each answering to both pulls."""
    return lambda pulls: start - np.asarray(matrix) @ pulls


SEVERAL = {
    "independent": coupled([[1, 0], [0, 1]]),
    "one steep, one flat": coupled([[3, 0], [0, 0.6]]),
    "helping each other": coupled([[1, 0.6], [0.6, 1]]),
    "hindering each other": coupled([[1, -0.4], [-0.4, 1]], np.array([0.3, 0.1])),
    "one needs nothing": coupled([[1, 0], [0, 1]], np.array([0.3, 0.0])),
    "the second is disturbed": coupled([[1, 0], [-0.8, 1]], np.array([0.3, 0.0])),
    "in steps": lambda pulls: np.round((START - pulls) / 0.04) * 0.04,
    "noisy": lambda pulls: START - pulls + noise(pulls, 0.02),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_two_constraints_that_some_multipliers_meet_are_met(name):
    model = fitted(SEVERAL[name], *BOTH)
    assert model.status_ is Status.SATISFIED
    assert len(model.trials_) <= 25


def test_two_constraints_that_exclude_each_other_end_as_infeasible_and_are_named():
    # Whatever moves one gap moves the other as far: they stay 0.2 apart.
    model = fitted(coupled([[1, 1], [1, 1]], np.array([0.3, 0.1])), *BOTH)
    assert model.status_ is Status.INFEASIBLE
    assert len(model.trials_) < BUDGET
    assert [a.met for a in model.report().asked].count(True) <= 1
    told = str(model.report().diagnosis)
    assert all(str(constraint) in told for constraint in BOTH)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_a_budget_of_the_users_ends_any_of_them_with_the_status_that_says_so(most):
    for curve in (CURVES["flat at first, then steep"], HOPELESS["no answer at all"]):
        model = fitted(curve, max_trainings=most)
        assert len(model.trials_) <= most
        met = min(trial["worst_violation"] for trial in model.trials_) <= 1e-9
        assert (model.status_ is Status.SATISFIED) == met
        assert model.status_ in (Status.SATISFIED, Status.BUDGET)
