"""Bad input: each kind has its own class of error and words that say what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from omnifair import (
    BracketSearch,
    DataError,
    DeclarationError,
    FairClassifier,
    GroupError,
    InfeasibleError,
    LabelError,
    LearnerError,
    PaperSearch,
    TrainingError,
    UndefinedRateError,
    WeightError,
    each,
    gap,
    groups,
    overall,
    ratio,
)
from omnifair.rates import (
    TP,
    accuracy,
    false_discovery_rate,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

N = 200
X = np.random.RandomState(0).normal(size=(N, 3))
Y = (np.arange(N) // 2) % 2
SEX = np.array(["F", "M"])[np.arange(N) % 2]
AGE = 20 + np.arange(N) % 50
FAIR = gap(selection_rate, by="sex") <= 0.5


def fit(constraints=FAIR, *, X=X, y=Y, sensitive=None, weight=None, **parameters):
    """One fit, of which all but the bad part is good."""
    parameters = {"estimator": LogisticRegression(), "random_state": 0} | parameters
    sensitive = {"sex": SEX, "age": AGE} if sensitive is None else sensitive
    return FairClassifier(constraints=constraints, **parameters).fit(
        X, y, sensitive_features=sensitive, sample_weight=weight
    )


def changed(array, where, value):
    """A copy with some entries replaced."""
    array = np.array(array, dtype=object if value is None else None)
    array[where] = value
    return array


def test_the_good_input_is_good():
    assert fit().status_ == "satisfied"


# -- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(N) % 3, "Only binary classification is supported.*3 classes"),
        (np.zeros(N, int), "one class only, 0: a classifier needs two"),
        (np.linspace(0, 1, N), "continuous"),
        (changed(Y.astype(float), 3, np.nan), "y contains NaN"),
        (changed(Y, 3, None), "missing values"),
        (None, "the target y is None"),
    ],
    ids=["three", "one", "continuous", "NaN", "missing", "none"],
)
def test_labels_that_are_not_two_classes(y, words):
    with pytest.raises(LabelError, match=words):
        fit(y=y)


def test_a_positive_class_that_is_not_there():
    with pytest.raises(LabelError, match="pos_label='yes' is not among the labels 0 and 1"):
        fit(pos_label="yes")


def test_one_class_only_among_rows_that_weigh_anything():
    with pytest.raises(LabelError, match=r"only one class in the training part.*positive weight"):
        fit(weight=(Y == 0).astype(float))


def test_labels_of_the_validation_set_that_fit_never_saw():
    y = np.where(Y == 1, 2, 0)
    with pytest.raises(LabelError, match="Label 2 is neither 0 nor 1"):
        fit(validation=(X, y, {"sex": SEX}))


# -- lengths -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"y": Y[:-1]}, DataError, "199 labels, but X has 200 rows"),
        ({"sensitive": {"sex": SEX[:-1]}}, DataError, "sensitive_features has 199 rows.*200"),
        ({"sensitive": {"age": AGE, "sex": SEX[:-1]}}, DataError, "199 rows.*200"),
        ({"sensitive": SEX[:-1]}, DataError, "sensitive_features has 199 rows.*200"),
        ({"weight": np.ones(N - 1)}, WeightError, r"one number per row, shape \(200,\)"),
        ({"weight": np.ones((N, 2))}, WeightError, r"one number per row, shape \(200,\)"),
    ],
    ids=["labels", "sensitive", "one sensitive column", "array", "weights", "two weights"],
)
def test_lengths_that_differ(bad, error, words):
    with pytest.raises(error, match=words):
        fit(**bad)


def test_a_validation_set_of_two_lengths():
    with pytest.raises(DataError, match="validation set's y has 199 labels, but X has 200 rows"):
        fit(validation=(X, Y[:-1], {"sex": SEX}))


# -- sensitive columns ---------------------------------------------------------------------------


def test_a_sensitive_column_that_is_absent():
    words = "Column 'race' is not in sensitive_features or X; the columns there: .*'sex', 'age'"
    with pytest.raises(GroupError, match=words):
        fit(gap(selection_rate, by="race") <= 0.1)


def test_a_sensitive_column_when_none_were_passed():
    words = r"'sex' is not in X; .*Pass it to fit\(\.\.\., sensitive_features="
    with pytest.raises(GroupError, match=words):
        FairClassifier(LogisticRegression(), FAIR).fit(X, Y)


def test_an_array_without_names_for_two_names():
    constraints = [FAIR, gap(selection_rate, by="race") <= 0.5]
    with pytest.raises(GroupError, match=r"has no column names.*pass a dataframe, or a dict"):
        fit(constraints, sensitive=SEX)


@pytest.mark.parametrize("measure", [gap, ratio])
def test_a_sensitive_column_that_is_all_one_value(measure):
    constraint = measure(selection_rate, by="sex")
    constraint = constraint <= 0.1 if measure is gap else constraint >= 0.8
    with pytest.raises(GroupError, match=r"only one group, 'sex=F'.*Is the column all one value"):
        fit(constraint, sensitive={"sex": ["F"] * N})


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=repr)
def test_a_missing_value_is_an_error_unless_its_meaning_is_said(missing):
    sex = SEX.astype(object)
    sex[[5, 6, 7, 8, 9, 10, 11, 12]] = missing
    words = "'sex' has 8 missing values, the first in row 5.*missing='ignore'.*missing='group'"
    with pytest.raises(GroupError, match=words):
        fit(sensitive={"sex": sex})
    for meaning, expected in (
        ("ignore", ["sex=F", "sex=M"]),
        ("group", ["sex=F", "sex=M", "sex=(missing)"]),
    ):
        constraint = gap(selection_rate, by="sex", missing=meaning) <= 1
        model = fit(constraint, sensitive={"sex": sex}, validation="train")
        rows = {r.group: r.count for r in model.report().rates}
        assert list(rows) == expected
        assert sum(rows.values()) == (N if meaning == "group" else N - 8)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (200, r"Group 'income=.*' has no rows in the validation part"),
        (1200, r"every pair of 1,200 groups .* Is 'income' a number or an identifier\?"),
    ],
)
def test_a_number_taken_for_groups(rows, words):
    random = np.random.RandomState(0)
    X, y = random.normal(size=(rows, 2)), np.arange(rows) % 2
    with pytest.raises(GroupError, match=words):
        fit(gap(selection_rate, by="income") <= 0.1, X=X, y=y, sensitive={"income": X[:, 0]})


def test_an_unknown_meaning_of_missing_values():
    with pytest.raises(DeclarationError, match="missing must be one of error, ignore, group"):
        gap(selection_rate, by="sex", missing="drop")


def test_a_missing_number_in_a_predicate():
    by = groups(young="age < 40", old="age >= 40")
    age = changed(AGE.astype(float), 7, np.nan)
    with pytest.raises(GroupError, match="'age' has 1 missing values, the first in row 7"):
        fit(gap(selection_rate, by=by) <= 0.5, sensitive={"age": age})


# -- groups that are empty or cannot be judged -----------------------------------------------------

RARE = changed(SEX, 0, "X")


def test_a_group_that_is_empty_on_the_validation_part():
    with pytest.raises(GroupError, match=r"'sex=X' has no rows in the validation part.*only=\["):
        fit(sensitive={"sex": RARE})


def test_a_group_that_is_empty_on_the_training_part():
    sets = {"X": X, "y": Y, "sensitive_features": {"sex": RARE}}
    with pytest.raises(GroupError, match="'sex=X' has no rows in the data: both parts need every"):
        fit(validation=sets)
    with pytest.raises(GroupError, match="'sex=X' has no rows in the validation set: both parts"):
        fit(sensitive={"sex": RARE}, validation=(X, Y, {"sex": SEX}))


def test_a_group_that_is_empty_in_one_fold():
    words = "'sex=X' has no rows in the training part of fold"
    with pytest.raises(GroupError, match=words):
        fit(sensitive={"sex": RARE}, validation=3)


def test_a_group_whose_rows_all_weigh_nothing():
    with pytest.raises(GroupError, match="'sex=F' has no rows in the training rows"):
        fit(weight=(SEX == "M").astype(float), validation="train")


@pytest.mark.parametrize(
    ("rate", "label", "missing"),
    [(true_positive_rate, 0, "positive"), (false_positive_rate, 1, "negative")],
    ids=str,
)
def test_a_group_without_the_rows_that_its_rate_is_over(rate, label, missing):
    y = np.where(SEX == "F", label, Y)
    words = f"{rate} is undefined for group 'sex=F': it has no {missing} rows.*only="
    with pytest.raises(UndefinedRateError, match=words):
        fit(gap(rate, by="sex") <= 0.1, y=y, validation="train")


def test_only_a_group_that_is_not_there():
    with pytest.raises(GroupError, match="there is no group 'X' by 'sex'; the groups there: 'F'"):
        fit(gap(selection_rate, by="sex", only=["F", "X"]) <= 0.1)


def test_a_reference_that_is_not_there():
    with pytest.raises(GroupError, match="there is no group 'X'; the groups there: 'F', 'M'"):
        fit(gap(selection_rate, by="sex", reference="X") <= 0.1)


class Never(LogisticRegression):
    """Selects nobody."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize("strategy", [None, PaperSearch(max_steps=3)], ids=["default", "paper"])
def test_a_rate_that_is_undefined_at_every_training_is_said_in_the_end(strategy):
    constraint = gap(false_discovery_rate, by="sex") <= 0.1
    with pytest.raises(InfeasibleError, match="had an empty denominator and could not be judged: "):
        fit(constraint, estimator=Never(), strategy=strategy, validation="train")


class AtFirstNever(LogisticRegression):
    """Selects nobody as long as the weights are even."""

    def fit(self, X, y, sample_weight):
        self.even_ = np.ptp(sample_weight) == 0
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return np.zeros(len(X), dtype=int) if self.even_ else super().predict(X)


def test_a_rate_that_is_undefined_at_one_training_is_noted_in_the_report():
    constraints = [
        gap(false_discovery_rate, by="sex") <= 1,
        overall(selection_rate) >= 0.1,
    ]
    model = fit(constraints, estimator=AtFirstNever(), validation="train", strategy=BracketSearch())
    assert model.status_ == "satisfied"
    assert np.isnan(model.trials_[0]["gap(false_discovery_rate, by='sex')"])
    assert "in 1 of " in str(model.report())
    assert "false_discovery_rate[sex=F]" in str(model.report())


# -- predicates and functions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("height < 40", "Column 'height' is not in sensitive_features or X"),
        ("age < '40'", "a=.*: age is a number, but '40' is text: they cannot be compared"),
        ("sex > 3", "sex is text, but 3 is a number"),
        ("age + 1", "is not true or false but a number"),
        ("sex + 1 > 2", "sex is text, not a number"),
        ("age and sex == 'F'", "age is a number, not true or false"),
        ("age > 200", r"Group 'a' \(age > 200\) has no rows"),
    ],
)
def test_predicates_that_do_not_fit_the_data(predicate, words):
    by = groups(a=predicate, b="age >= 0")
    with pytest.raises(GroupError, match=words):
        fit(gap(selection_rate, by=by) <= 0.5)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"a": [0, N]}, f"row {N} is not among rows 0 to {N - 1}"),
        ({"a": [-1]}, "row -1 is not among rows"),
        ({"a": [0.5]}, "given by position.*float64"),
        ({"a": ["0"]}, "given by position"),
        ({"a": [[0, 1]]}, "must be one-dimensional"),
        ({"a": [0, 0]}, "some row is listed twice"),
        ({"a": np.ones(3, bool)}, r"one entry per row \(200\), got 3"),
        ({"a": []}, "Group 'a' has no rows"),
        ({}, "at least one group"),
        ([0, 1], "must return a dict.*got list"),
        (None, "must return a dict.*got NoneType"),
    ],
    ids=repr,
)
def test_grouping_functions_that_return_bad_indices(found, words):
    def by_hand(data):
        return found

    with pytest.raises(GroupError, match=words):
        fit(each(accuracy, by=by_hand) >= 0.1)


# -- X and weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_x_that_is_not_finite_is_left_to_the_learner(value):
    bad = changed(X, (3, 1), value)
    with pytest.raises(
        TrainingError, match=r"Training 0 of LogisticRegression failed.*(infinity|NaN)"
    ):
        fit(X=bad, validation="train")
    if np.isnan(value):
        assert fit(X=bad, estimator=HistGradientBoostingClassifier(max_iter=3)).status_


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (changed(np.ones(N), 7, -1.0), "sample_weight is negative in row 7"),
        (changed(np.ones(N), 7, np.nan), "sample_weight is NaN or infinite in row 7"),
        (changed(np.ones(N), 7, np.inf), "sample_weight is NaN or infinite in row 7"),
        (np.zeros(N), "sample_weight is zero for every row"),
        (["a"] * N, "sample_weight must be numbers"),
    ],
    ids=["negative", "NaN", "infinite", "zero", "text"],
)
@pytest.mark.parametrize("constraints", [FAIR, []], ids=["", "no constraints"])
def test_weights_that_say_nothing(weight, words, constraints):
    with pytest.raises(WeightError, match=words):
        fit(constraints, weight=weight)


# -- estimators and parameters ---------------------------------------------------------------------


class Breaks(DecisionTreeClassifier):
    """Fails as soon as weights are uneven."""

    def fit(self, X, y, sample_weight):
        if np.ptp(sample_weight) > 0:
            raise RuntimeError("out of luck")
        return super().fit(X, y)


@pytest.mark.parametrize("validation", ["train", 2], ids=["one fit", "folds"])
def test_an_estimator_that_fails_in_one_training(validation):
    strict = each(selection_rate, by="sex") >= 0.9
    words = (
        r"Training 1 of Breaks failed, with multipliers -selection_rate\[sex=.\] <= -0\.9: 0\.\d+: "
        "RuntimeError: out of luck"
    )
    with pytest.raises(TrainingError, match=words) as caught:
        fit(strict, estimator=Breaks(), strategy=BracketSearch(), validation=validation)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_estimator_that_fails_in_its_first_training():
    class Broken(LogisticRegression):
        def fit(self, X, y, sample_weight):
            raise KeyError("no")

    words = r"Training 0 of Broken failed, with no multipliers \(the plain estimator\): KeyError"
    with pytest.raises(TrainingError, match=words):
        fit(estimator=Broken())


class Scores(LogisticRegression):
    """Predicts scores, as regressors do."""

    def predict(self, X):
        return super().predict_proba(X)[:, 1]


def test_an_estimator_that_does_not_predict_the_labels():
    with pytest.raises(TrainingError, match=r"predict\(\) must return the class labels 0 and 1"):
        fit(estimator=Scores())


def test_a_learner_that_takes_labels_0_and_1_only_says_so():
    y = np.where(Y == 1, "good", "bad")
    words = r"Training 0 of XGBClassifier failed.*Expected: \[0 1\], got \['bad' 'good'\]"
    with pytest.raises(TrainingError, match=words):
        fit(y=y, pos_label="good", estimator=XGBClassifier(n_estimators=3))


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"on_infeasible": "ignore"}, LearnerError, "'raise' or 'closest', got 'ignore'"),
        ({"max_trainings": 0}, LearnerError, "one trial .* takes 1 trainings"),
        ({"max_trainings": True}, LearnerError, "max_trainings=True"),
        ({"max_trainings": 20.0}, LearnerError, r"max_trainings=20.0: pass a whole number"),
        ({"max_trainings": "20"}, LearnerError, "max_trainings='20': pass a whole number"),
        ({"time_budget": "1h"}, LearnerError, "time_budget='1h': pass a number of seconds"),
        ({"time_budget": 0}, LearnerError, "a number of seconds above 0"),
        ({"strategy": PaperSearch}, LearnerError, r"strategy=.*: pass a strategy such as Gui"),
        ({"strategy": "paper"}, LearnerError, r"strategy='paper': pass a strategy such as Guid"),
        ({"warm_start": "never"}, LearnerError, "warm_start='never': pass 'auto', True or Fal"),
        ({"refit": "no"}, LearnerError, "refit='no': pass True or False"),
        ({"keep_bins": "no"}, LearnerError, "keep_bins='no': pass True or False"),
        ({"keep_bins": None}, LearnerError, "keep_bins=None: pass True or False"),
        ({"callback": 3}, LearnerError, "callback=3: pass a function"),
        ({"validation": "test"}, LearnerError, r"validation='test': pass a fraction"),
        ({"weighting": "none"}, LearnerError, "'sample_weight' or 'resample'"),
        ({"objective": "akkuracy"}, DeclarationError, "akkuracy"),
        ({"objective": selection_rate}, DeclarationError, "cannot be told whether"),
        ({"objective": 3}, DeclarationError, "3"),
        ({"constraints": "gap(selection_rate, by='sex') <= 0.1"}, DeclarationError, "parse"),
        ({"constraints": [True]}, DeclarationError, "plain True"),
        ({"constraints": [gap(selection_rate, by="sex")]}, DeclarationError, "has no bound"),
        ({"constraints": [TP]}, DeclarationError, "is not a constraint"),
        ({"constraints": 0.1}, DeclarationError, "is not a constraint"),
    ],
    ids=lambda v: next(iter(v.items())).__repr__() if isinstance(v, dict) else None,
)
def test_parameters_that_mean_nothing(bad, error, words):
    with pytest.raises(error, match=words):
        fit(**bad)


def test_constructor_arguments_are_checked_in_fit_only():
    model = FairClassifier("no estimator", "no constraint", validation="nowhere")
    assert model.get_params(deep=False)["validation"] == "nowhere"
