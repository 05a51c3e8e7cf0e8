"""What users see of FairClassifier."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

import omnifair
from omnifair import (
    DataError,
    FairClassifier,
    GuidedSearch,
    InfeasibleError,
    InfeasibleWarning,
    LearnerError,
    PaperSearch,
    PositiveClassWarning,
    Status,
    certify,
    each,
    gap,
    parse,
)
from omnifair.rates import (
    FN,
    FP,
    TP,
    balanced_accuracy,
    error_cost,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

FAIR = gap(selection_rate, by="sex") <= 0.05
LR = LogisticRegression()
# No model of score and height can select all women and no man.
IMPOSSIBLE = [
    each(selection_rate, by="sex", only=["F"]) >= 0.99,
    each(selection_rate, by="sex", only=["M"]) <= 0.01,
]


def make_people(n=800, seed=0):
    """Scores that go with labels and differ between two sexes, and a height that hints at sex."""
    random = np.random.RandomState(seed)
    sex = random.choice(["F", "M"], size=n)
    score = random.normal(size=n) + 0.9 * (sex == "M")
    X = pd.DataFrame({"score": score, "height": (sex == "M") + 0.7 * random.normal(size=n)})
    y = (score + random.normal(size=n) > 0.5).astype(int)
    return X, y, pd.DataFrame({"sex": sex, "age": random.randint(18, 80, size=n)})


X, Y, PEOPLE = make_people()
MALE = (PEOPLE["sex"] == "M").to_numpy()


def gap_of(predicted, positive=1, male=MALE):
    """The difference of selection rates, by hand."""
    chosen = np.asarray(predicted) == positive
    return abs(chosen[male].mean() - chosen[~male].mean())


def fair(constraints=FAIR, **parameters):
    """Measured on the training rows, so that it can be recomputed."""
    given = {"validation": "train", "random_state": 0, "estimator": LR} | parameters
    return FairClassifier(constraints=constraints, **given)


MODEL = fair().fit(X, Y, sensitive_features=PEOPLE)


# -- what comes back -----------------------------------------------------------------------------


def test_the_bound_is_met_and_the_plain_model_would_not_have_met_it():
    assert gap_of(LR.fit(X, Y).predict(X)) > 0.2
    assert gap_of(MODEL.predict(X)) <= 0.05
    assert MODEL.status_ is Status.SATISFIED
    assert MODEL.score(X, Y) > max(Y.mean(), 1 - Y.mean()) + 0.05


def test_the_budget_of_the_default_search_is_kept():
    model = fair(max_trainings=30).fit(X, Y, sensitive_features=PEOPLE)
    assert 1 < model.report().trainings <= 30
    assert gap_of(model.predict(X)) <= 0.05


def test_the_model_is_the_plain_estimator_with_other_weights():
    assert type(MODEL.estimator_) is LogisticRegression
    assert np.array_equal(MODEL.predict(X), MODEL.estimator_.predict(X))
    assert np.array_equal(MODEL.predict_proba(X), MODEL.estimator_.predict_proba(X))
    assert np.array_equal(MODEL.decision_function(X), MODEL.estimator_.decision_function(X))


def test_predicting_needs_no_sensitive_features_and_gives_the_same_every_time():
    one_by_one = [MODEL.predict(X.iloc[[i]])[0] for i in range(20)]
    assert one_by_one == MODEL.predict(X)[:20].tolist() == MODEL.predict(X)[:20].tolist()


def test_fitting_twice_gives_the_same_model():
    again = fair().fit(X, Y, sensitive_features=PEOPLE)
    assert again.multipliers_ == MODEL.multipliers_
    assert np.array_equal(again.estimator_.coef_, MODEL.estimator_.coef_)


def test_multipliers_are_named_by_the_rows_that_bind():
    assert set(MODEL.multipliers_) == {"selection_rate[sex=M] - selection_rate[sex=F] <= 0.05"}
    assert all(value > 0 for value in MODEL.multipliers_.values())


def test_trials_are_ready_for_a_dataframe():
    table = pd.DataFrame(MODEL.trials_)
    assert len(table) == MODEL.report().trainings
    assert table["training"].tolist() == list(range(len(table)))
    assert not table["satisfied"].iloc[0]
    assert table["satisfied"].any()
    assert {"accuracy", "gap(selection_rate, by='sex')", "seconds"} <= set(table.columns)
    plain = LR.fit(X, Y)
    assert table["gap(selection_rate, by='sex')"][0] == pytest.approx(gap_of(plain.predict(X)))
    assert table["accuracy"][0] == pytest.approx(plain.score(X, Y))


def test_the_most_accurate_satisfying_trial_is_the_one_kept():
    table = pd.DataFrame(MODEL.trials_)
    best = table[table["satisfied"]]["accuracy"].max()
    assert MODEL.score(X, Y) == pytest.approx(best)


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_method_is_there_only_if_the_estimator_has_it(method):
    assert hasattr(fair(), method)
    without = {"predict_proba": RidgeClassifier(), "decision_function": DecisionTreeClassifier()}
    assert not hasattr(fair(estimator=without[method]), method)


# -- the report ----------------------------------------------------------------------------------


def test_the_report_says_what_was_asked_reached_and_where():
    text = str(MODEL.report())
    for words in (
        "The constraints are met where they were measured",
        f"LogisticRegression, {len(MODEL.trials_)} trainings",
        "on the training rows (800 rows); positive class 1",
        "gap(selection_rate, by='sex') <= 0.05",
        "yes",
        "sex=F",
    ):
        assert words in text


def test_the_report_as_plain_values_agrees_with_counts_by_hand():
    told = MODEL.report().to_dict()
    chosen = MODEL.predict(X)
    [asked] = told["asked"]
    assert asked["reached"] == pytest.approx(gap_of(chosen))
    assert (asked["met"], asked["bound"], asked["sense"]) == (True, 0.05, "<=")
    assert told["objective_value"] == pytest.approx(np.mean(chosen == Y))
    assert told["plain_objective_value"] == pytest.approx(LR.fit(X, Y).score(X, Y))
    by_group = {r["group"]: r for r in told["rates"]}
    assert by_group["sex=F"]["value"] == pytest.approx(chosen[~MALE].mean())
    assert by_group["sex=M"]["count"] == MALE.sum()
    assert told["status"] == "satisfied"


def test_a_gap_finer_than_the_data_can_tell_is_noted():
    rows = np.flatnonzero(~MALE)[:12].tolist() + np.flatnonzero(MALE).tolist()
    model = fair().fit(X.iloc[rows], Y[rows], sensitive_features=PEOPLE.iloc[rows])
    assert "too little data to tell: selection_rate[sex=F] rests on 12 rows" in str(model.report())


# -- no constraints ------------------------------------------------------------------------------


def test_without_constraints_it_is_the_plain_estimator_trained_on_everything():
    for estimator in (LR, DecisionTreeClassifier(random_state=1)):
        model = FairClassifier(estimator).fit(X, Y)
        plain = clone(estimator).fit(X, Y)
        assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
        assert (model.status_, model.multipliers_) == (Status.UNCONSTRAINED, {})
        assert "no constraints" in str(model.report())


def test_without_constraints_weights_are_the_plain_estimators_weights():
    weight = np.random.RandomState(0).uniform(size=len(Y))
    model = FairClassifier(LR, []).fit(X, Y, sample_weight=weight)
    assert np.array_equal(model.predict_proba(X), LR.fit(X, Y, weight).predict_proba(X))


# -- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("negative", "positive"),
    [(0, 1), (-1, 1), (False, True), (0.0, 1.0)],
    ids=["0 and 1", "-1 and 1", "booleans", "floats"],
)
def test_conventional_labels_need_no_positive_class(negative, positive):
    y = np.where(Y == 1, positive, negative)
    model = fair().fit(X, y, sensitive_features=PEOPLE)
    assert model.classes_.tolist() == [negative, positive]
    assert np.array_equal(model.predict(X) == positive, MODEL.predict(X) == 1)


@pytest.mark.parametrize("as_type", [np.array, list, pd.Series, lambda y: np.array(y, object)])
def test_text_labels_with_a_stated_positive_class(as_type):
    y = as_type(np.where(Y == 1, "good", "bad").tolist())
    model = fair(pos_label="good").fit(X, y, sensitive_features=PEOPLE)
    assert np.array_equal(model.predict(X) == "good", MODEL.predict(X) == 1)
    assert model.score(X, y) == MODEL.score(X, Y)


def test_the_positive_class_may_be_the_first():
    y = np.where(Y == 1, "bad", "good")
    constraint = each(true_positive_rate, by="sex") >= 0.6
    model = fair(constraint, pos_label="bad").fit(X, y, sensitive_features=PEOPLE)
    for sex in (MALE, ~MALE):
        assert np.mean(model.predict(X)[sex & (y == "bad")] == "bad") >= 0.6
    assert "positive class 'bad'" in str(model.report())


def test_a_positive_class_taken_by_order_is_warned_of():
    y = np.where(Y == 1, "yes", "no")
    words = r"'no' and 'yes' .* 'yes' is taken as the positive class. Say pos_label='yes'"
    with pytest.warns(PositiveClassWarning, match=words) as caught:
        model = fair().fit(X, y, sensitive_features=PEOPLE)
    assert np.array_equal(model.predict(X) == "yes", MODEL.predict(X) == 1)
    assert caught[0].filename == __file__


def test_constraints_follow_the_positive_class():
    y = np.where(Y == 1, 0, 1)  # the same people, coded the other way round
    constraint = gap(true_positive_rate, by="sex") <= 0.05
    one = fair(constraint).fit(X, Y, sensitive_features=PEOPLE)
    other = fair(constraint, pos_label=0).fit(X, y, sensitive_features=PEOPLE)
    assert np.mean(one.predict(X) != other.predict(X)) > 0.99


# -- sensitive features --------------------------------------------------------------------------

SEX = PEOPLE["sex"]


@pytest.mark.parametrize(
    "sensitive",
    [
        PEOPLE,
        PEOPLE.sample(frac=1, axis=1, random_state=1).set_axis(range(800, 1600)),
        SEX,
        SEX.rename(None),
        {"sex": SEX.tolist(), "age": PEOPLE["age"].to_numpy()},
        SEX.to_numpy(),
        SEX.to_numpy()[:, None],
        SEX.tolist(),
        pl.DataFrame(PEOPLE.to_dict("list")),
        pl.Series("sex", SEX.tolist()),
        SEX.astype("category"),
    ],
    ids=[
        "pandas",
        "pandas with another index",
        "series",
        "series without a name",
        "dict",
        "array",
        "column",
        "list",
        "polars",
        "polars series",
        "categorical",
    ],
)
def test_sensitive_features_come_in_any_form(sensitive):
    model = fair().fit(X, Y, sensitive_features=sensitive)
    assert np.array_equal(model.estimator_.coef_, MODEL.estimator_.coef_)


def test_columns_of_an_array_go_by_their_position():
    sensitive = PEOPLE[["age", "sex"]].to_numpy()
    model = fair(gap(selection_rate, by=1) <= 0.05).fit(X, Y, sensitive_features=sensitive)
    assert np.array_equal(model.estimator_.coef_, MODEL.estimator_.coef_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_sensitive_columns_may_stand_in_x(frame):
    inside = X.assign(sex=MALE.astype(int))
    expected = fair().fit(inside, Y, sensitive_features=PEOPLE)
    model = fair().fit(frame(inside.to_dict("list")), Y)
    assert np.array_equal(model.estimator_.coef_, expected.estimator_.coef_)


def test_sensitive_features_go_before_columns_of_x_of_the_same_name():
    misleading = X.assign(sex=0)
    model = fair().fit(misleading, Y, sensitive_features=PEOPLE)
    assert gap_of(model.predict(misleading)) <= 0.05


# -- weights and objectives ----------------------------------------------------------------------


def test_weights_count_in_every_rate():
    weight = np.random.RandomState(1).randint(1, 5, size=len(Y))
    model = fair().fit(X, Y, sensitive_features=PEOPLE, sample_weight=weight)
    chosen = model.predict(X)
    rates = [np.average(chosen[sex], weights=weight[sex]) for sex in (MALE, ~MALE)]
    assert model.report().asked[0].reached == pytest.approx(abs(rates[0] - rates[1]))
    assert abs(rates[0] - rates[1]) <= 0.05
    assert model.report().objective_value == pytest.approx(np.average(chosen == Y, weights=weight))


def test_a_weight_of_two_is_the_row_twice():
    weight = np.random.RandomState(1).randint(1, 3, size=len(Y))
    twice = np.repeat(np.arange(len(Y)), weight)
    # In training and in every rate. That two rows tell more than one row of weight two is another
    # matter, so the search must not ask here how much the rows can tell.
    exact = GuidedSearch(resolution=0)
    one = fair(strategy=exact).fit(X, Y, sensitive_features=PEOPLE, sample_weight=weight)
    other = fair(strategy=exact).fit(X.iloc[twice], Y[twice], sensitive_features=PEOPLE.iloc[twice])
    assert one.report().asked[0].reached == pytest.approx(other.report().asked[0].reached)
    assert np.allclose(one.estimator_.coef_, other.estimator_.coef_, rtol=1e-3)


@pytest.mark.parametrize(
    ("confidence", "bound"), [(None, 0.1), (0.9, 0.25)], ids=["as measured", "with a promise"]
)
def test_the_unit_of_weights_changes_nothing_of_a_search(confidence, bound):
    people = make_people(2000)
    # A rate over predictions has no exact test, so what is aimed at rests on standard errors.
    constraint = gap((TP + TP) / (TP + TP + FP + FN), by="sex") <= bound
    found = []
    for unit in (2.0**-10, 1.0, 2.0**10):  # powers of two, so that no learner rounds otherwise
        model = fair(
            constraint,
            estimator=DecisionTreeClassifier(max_depth=4, random_state=0),
            confidence=confidence,
            on_infeasible="closest",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InfeasibleWarning)
            model.fit(*people[:2], sensitive_features=people[2], sample_weight=np.full(2000, unit))
        found.append((model.status_, len(model.trials_), model.multipliers_))
    assert found[0] == found[1] == found[2]
    assert found[1][1] > 1


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    weight = (np.arange(len(Y)) % 4 != 0).astype(float)
    kept = weight > 0
    one = fair().fit(X, Y, sensitive_features=PEOPLE, sample_weight=weight)
    other = fair().fit(X[kept], Y[kept], sensitive_features=PEOPLE[kept])
    assert np.allclose(one.estimator_.coef_, other.estimator_.coef_, rtol=1e-3)


@pytest.mark.parametrize(
    "objective", [balanced_accuracy, "balanced_accuracy", error_cost(fp=1, fn=5)], ids=str
)
def test_another_objective_is_what_is_kept_good(objective):
    constraint = gap(selection_rate, by="sex") <= 0.15
    model = fair(constraint, objective=objective).fit(X, Y, sensitive_features=PEOPLE)
    chosen = model.predict(X)
    report = model.report()
    if "balanced" in str(objective):
        expected = sklearn.metrics.balanced_accuracy_score(Y, chosen)
    else:
        expected = np.mean((chosen > Y) + 5 * (chosen < Y))
        plain = LR.fit(X, Y).predict(X)
        assert chosen.mean() > plain.mean()  # missing a positive costs five times as much
    assert report.objective_value == pytest.approx(expected)
    assert gap_of(chosen) <= 0.15


# -- what cannot be done -------------------------------------------------------------------------


def test_constraints_that_cannot_be_met_raise_with_the_closest_model():
    with pytest.raises(InfeasibleError, match="NOT met") as caught:
        fair(IMPOSSIBLE).fit(X, Y, sensitive_features=PEOPLE)
    error = caught.value
    assert np.isin(error.model.predict(X), [0, 1]).all()
    assert set(error.measures) == set(error.smallest) == {str(c) for c in IMPOSSIBLE}
    floor, ceiling = map(str, IMPOSSIBLE)
    chosen = error.model.predict(X)
    assert error.measures[floor] == pytest.approx(chosen[~MALE].mean())
    assert error.measures[ceiling] == pytest.approx(chosen[MALE].mean())
    assert error.smallest[floor] >= error.measures[floor]
    assert error.smallest[ceiling] <= error.measures[ceiling]
    assert error.binding
    assert all("selection_rate[sex=" in row for row in error.binding)
    assert error.status in ("infeasible", "budget")
    assert "on_infeasible='closest'" in str(error)


def test_the_closest_model_can_be_asked_for_and_comes_with_a_warning():
    with pytest.warns(InfeasibleWarning, match="NOT met") as caught:
        model = fair(IMPOSSIBLE, on_infeasible="closest").fit(X, Y, sensitive_features=PEOPLE)
    assert caught[0].filename == __file__
    assert model.status_ in (Status.INFEASIBLE, Status.BUDGET)
    worst = [record["worst_violation"] for record in model.trials_]
    chosen = model.predict(X)
    missed = max(0.99 - chosen[~MALE].mean(), chosen[MALE].mean() - 0.01)
    assert missed == pytest.approx(min(worst))
    assert "NO" in str(model.report())


def test_a_first_fit_that_fails_leaves_a_model_that_is_not_fitted():
    model = fair(IMPOSSIBLE)
    with pytest.raises(InfeasibleError):
        model.fit(X, Y, sensitive_features=PEOPLE)
    for use in (model.report, lambda: model.predict(X), lambda: check_is_fitted(model)):
        with pytest.raises(NotFittedError):
            use()


@pytest.mark.parametrize(
    ("fails", "error"),
    [({"constraints": IMPOSSIBLE}, InfeasibleError), ({"max_trainings": 0}, LearnerError)],
    ids=["infeasible", "no budget"],
)
def test_a_fit_that_fails_leaves_nothing_of_the_fit_before(fails, error):
    model = fair().fit(X, Y, sensitive_features=PEOPLE)
    model.set_params(**fails)
    with pytest.raises(error):
        model.fit(*make_people(seed=1)[:2], sensitive_features=make_people(seed=1)[2])
    assert not hasattr(model, "status_")
    with pytest.raises(NotFittedError):
        certify(model, FAIR, X, Y, sensitive_features=PEOPLE)  # the rows it was once trained on


def test_a_budget_that_ends_too_early_is_its_own_status():
    with pytest.warns(InfeasibleWarning, match="budget of trainings or of time ended"):
        model = fair(on_infeasible="closest", max_trainings=1).fit(X, Y, sensitive_features=PEOPLE)
    assert model.status_ is Status.BUDGET
    assert np.array_equal(model.predict(X), LR.fit(X, Y).predict(X))


@pytest.mark.parametrize(
    ("parameters", "least"),
    [({}, 1), ({"refit": True}, 2), ({"validation": 3}, 4)],
    ids=["train", "refit", "folds"],
)
def test_a_budget_below_one_trial_is_refused(parameters, least):
    with pytest.raises(LearnerError, match=f"takes {least} trainings; allow for that many"):
        fair(max_trainings=least - 1, **parameters).fit(X, Y, sensitive_features=PEOPLE)
    with pytest.warns(InfeasibleWarning):
        model = fair(max_trainings=least, on_infeasible="closest", **parameters).fit(
            X, Y, sensitive_features=PEOPLE
        )
    assert model.report().trainings == least


# -- as an estimator -----------------------------------------------------------------------------


def test_verbose_prints_a_line_for_each_training(capsys):
    fair().fit(X, Y, sensitive_features=PEOPLE)
    assert capsys.readouterr().out == ""
    model = fair(verbose=1).fit(X, Y, sensitive_features=PEOPLE)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.trials_)
    assert all(line.startswith(f"omnifair: training {i}, ") for i, line in enumerate(lines, 1))
    assert "gap(selection_rate, by='sex') 0." in lines[0]
    assert lines[0].endswith("(<= 0.05): not met")
    assert lines[-1].endswith(": met")


def test_a_fitted_model_can_be_pickled():
    again = pickle.loads(pickle.dumps(MODEL))
    assert np.array_equal(again.predict_proba(X), MODEL.predict_proba(X))
    assert str(again.report()) == str(MODEL.report())


def test_a_clone_has_the_parameters_and_nothing_fitted():
    model = fair([FAIR, parse("each(accuracy, by='sex') >= 0.5")], strategy=PaperSearch(tau=0.1))
    again = clone(model)
    assert again.constraints == model.constraints
    assert again.strategy == model.strategy
    assert not hasattr(clone(MODEL), "estimator_")
    assert "LogisticRegression" in repr(again)


def test_the_estimator_that_was_passed_is_never_fitted():
    mine = LogisticRegression()
    fair(estimator=mine).fit(X, Y, sensitive_features=PEOPLE)
    assert not hasattr(mine, "coef_")


INSIDE = X.assign(sex=MALE.astype(int))


def test_it_works_inside_a_pipeline_with_sensitive_columns_in_x():
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), fair())
    pipeline.fit(INSIDE, Y)
    assert gap_of(pipeline.predict(INSIDE)) <= 0.05


def test_it_works_around_a_pipeline():
    model = fair(estimator=make_pipeline(StandardScaler(), LR))
    model.fit(X, Y, sensitive_features=PEOPLE)
    assert gap_of(model.predict(X)) <= 0.05
    model.set_params(estimator__logisticregression__C=0.5)
    assert model.estimator.steps[-1][1].C == 0.5
    model.set_params(estimator__logisticregression__C=1.0)


def test_it_can_be_cross_validated_and_searched_with_sensitive_columns_in_x():
    assert cross_val_score(fair(), INSIDE, Y, cv=3).min() > 0.6
    search = GridSearchCV(fair(), {"estimator__C": [0.01, 1.0]}, cv=2).fit(INSIDE, Y)
    assert gap_of(search.predict(INSIDE)) <= 0.05


def test_sensitive_features_are_routed_where_they_are_asked_for():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = fair().set_fit_request(sensitive_features=True, sample_weight=True)
        asking.set_score_request(sample_weight=False)
        params = {"sensitive_features": PEOPLE, "sample_weight": np.ones(len(Y))}
        assert cross_val_score(asking, X, Y, cv=3, params=params).min() > 0.6
        search = GridSearchCV(asking, {"estimator__C": [0.01, 1.0]}, cv=2).fit(X, Y, **params)
        assert gap_of(search.predict(X)) <= 0.05
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
        pipeline.fit(X, Y, **params)
        assert gap_of(pipeline.predict(X)) <= 0.05


def test_the_output_of_pipelines_stays_as_it_was_set():
    pipeline = make_pipeline(StandardScaler(), fair()).set_output(transform="pandas")
    pipeline.fit(INSIDE, Y)
    assert isinstance(pipeline[:-1].transform(INSIDE), pd.DataFrame)
    assert isinstance(pipeline.predict(INSIDE), np.ndarray)
    assert pipeline[-1].feature_names_in_.tolist() == INSIDE.columns.tolist()


@pytest.mark.parametrize("strategy", [PaperSearch(), omnifair.GridSearch(points=21)], ids=str)
def test_the_other_strategies_meet_the_bound_too(strategy):
    model = fair(strategy=strategy).fit(X, Y, sensitive_features=PEOPLE)
    assert gap_of(model.predict(X)) <= 0.05
    assert model.score(X, Y) >= MODEL.score(X, Y) - 0.03


def test_several_constraints_hold_together():
    constraints = [
        gap(false_positive_rate, by="sex") <= 0.05,
        each(true_positive_rate, by="sex") >= 0.5,
        gap(selection_rate, by=omnifair.groups(young="age < 40", old="age >= 40")) <= 0.1,
    ]
    model = fair(constraints).fit(X, Y, sensitive_features=PEOPLE)
    chosen, young = model.predict(X), PEOPLE["age"] < 40
    negatives, positives = Y == 0, Y == 1
    assert abs(chosen[MALE & negatives].mean() - chosen[~MALE & negatives].mean()) <= 0.05
    assert min(chosen[MALE & positives].mean(), chosen[~MALE & positives].mean()) >= 0.5
    assert abs(chosen[young].mean() - chosen[~young].mean()) <= 0.1


# -- whatever is asked -----------------------------------------------------------------------------

RATES = [
    omnifair.rates.accuracy,
    omnifair.rates.false_discovery_rate,
    omnifair.rates.false_omission_rate,
    omnifair.rates.positive_predictive_value,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
]


def any_constraint(random):
    """Any measure of any rate of any grouping with any bound that makes sense."""
    rate = RATES[random.randint(len(RATES))]
    by = ["a", "b", ["a", "b"], omnifair.groups(p="a < 1", q="b > 0")][random.randint(4)]
    bound = float(random.choice([0, 0.02, 0.1, 0.3, 0.7, 1]))
    return [
        gap(rate, by=by) <= bound,
        omnifair.ratio(rate, by=by) >= bound,
        each(rate, by=by) <= bound,
        each(rate, by=by) >= bound,
        omnifair.overall(rate) <= bound,
    ][random.randint(5)]


@pytest.mark.parametrize("seed", range(60))
def test_any_request_ends_in_a_status_within_its_budget(seed):
    random = np.random.RandomState(seed)
    n = int(random.choice([30, 100, 400]))
    a, b, x = random.randint(0, 3, n), random.randint(0, 2, n), random.normal(size=(n, 2))
    y = (x[:, 0] + 0.8 * a + random.normal(size=n) > random.choice([0, 2])).astype(int)
    model = FairClassifier(
        DecisionTreeClassifier(max_depth=3) if seed % 2 else LR,
        [any_constraint(random) for _ in range(random.randint(1, 4))],
        validation=["train", 0.3, 3][random.randint(3)],
        refit=bool(random.randint(2)),
        objective=["accuracy", "balanced_accuracy", "error_cost(fp=1, fn=3)"][random.randint(3)],
        max_trainings=20,
        on_infeasible="closest",
        random_state=0,
    )
    weight = [None, random.uniform(size=n), random.randint(0, 3, n)][random.randint(3)]
    refused = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)  # many of these cannot be met
        try:
            model.fit(x, y, sensitive_features={"a": a, "b": b}, sample_weight=weight)
        except DataError as error:  # a group too small to be in both parts
            refused = str(error)
    if refused:
        assert "has no" in refused
        return
    assert model.report().trainings <= 20
    assert (model.status_ is Status.SATISFIED) == all(c.met for c in model.report().asked)
    assert np.isin(model.predict(x), [0, 1]).all()


def test_many_groups_of_few_rows_give_no_warning_of_a_librarys_own():
    rows = np.arange(40)
    group, y = rows // 2, rows % 2
    with pytest.warns(InfeasibleWarning) as caught:
        fair(gap(selection_rate, by="group") <= 0.01, on_infeasible="closest").fit(
            np.random.RandomState(0).normal(size=(40, 2)), y, sensitive_features={"group": group}
        )
    assert [w.category for w in caught] == [InfeasibleWarning]
