"""FairClassifier(confidence=): a model with a promise, or a certificate that says why not.

What is certified is compared with certify() on the same rows, and with populations whose true rates
are known.
"""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from brute import bits, problem_of
from omnifair import (
    BestOf,
    CertificateError,
    DeclarationError,
    FairClassifier,
    GridSearch,
    GroupError,
    InfeasibleError,
    InfeasibleWarning,
    LearnerError,
    PaperSearch,
    PlugIn,
    TrainingError,
    certify,
    coefficients,
    each,
    gap,
    groups,
    overall,
    ratio,
)
from omnifair.certificate import Verdict
from omnifair.confidence import Aside, certified
from omnifair.datasets import make_lending
from omnifair.inputs import Classes
from omnifair.rates import accuracy, false_discovery_rate, selection_rate, true_positive_rate
from omnifair.search.loop import Solution, Status
from omnifair.training import Proposal

SP = selection_rate
FAIR = gap(SP, by="group") <= 0.15
LR = LogisticRegression()


def lending(n, seed=0, **more):
    data = make_lending(n, seed, noise_features=0, **more)
    return data.X, data.y.to_numpy(), data.sensitive_features


X, Y, PEOPLE = lending(4_000)
FRESH = lending(1_500, 1)


def confident(constraints=FAIR, **parameters):
    return FairClassifier(
        **{"estimator": LR, "confidence": 0.95, "random_state": 0} | parameters,
        constraints=constraints,
    )


def fitted(constraints=FAIR, **parameters):
    return confident(constraints, **parameters).fit(X, Y, sensitive_features=PEOPLE)


MODEL = fitted()


class Recorder(ClassifierMixin, BaseEstimator):
    """A rule that nothing moves, and that keeps all it is shown."""

    shown: list = []  # noqa: RUF012 - shared by clones on purpose

    def __init__(self, bias=0.1):
        self.bias = bias

    def fit(self, X, y, sample_weight=None):
        self.shown.append(("fit", set(X[:, 2].astype(int))))
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        self.shown.append(("predict", set(X[:, 2].astype(int))))
        return (X[:, 0] + 0.1 * X[:, 1] + self.bias >= 0).astype(int)


def numbered(n=4_000):
    """The rows as an array whose last column is the row's number."""
    return np.column_stack([X.to_numpy()[:n], np.arange(n)])


# -- what comes back -------------------------------------------------------------------------------


def test_a_model_comes_back_with_a_certificate_that_holds():
    assert MODEL.status_ == "certified"
    assert MODEL.certificate_.holds
    assert MODEL.certificate_.confidence == pytest.approx(0.95)
    assert MODEL.certificate_.rows == 1_000
    assert MODEL.report_.measured_on == "the validation part (751 rows)"


def test_the_certificate_is_that_of_the_returned_model_on_the_rows_set_aside():
    model = fitted(certification=FRESH)
    again = certify(model.estimator_, FAIR, *FRESH[:2], sensitive_features=FRESH[2])
    assert model.certificate_.claims == again.claims
    assert model.certificate_.behind == again.behind


def test_the_search_aims_inside_the_bound():
    without = fitted(confidence=None)
    [inside], [at] = MODEL.report_.asked, without.report_.asked
    assert inside.reached < at.reached - 0.02


def test_the_promise_takes_few_more_trainings():
    assert MODEL.report_.trainings <= fitted(confidence=None).report_.trainings + 2


def test_the_same_seed_gives_the_same_model_and_certificate():
    again = fitted()
    assert again.multipliers_ == MODEL.multipliers_
    assert again.certificate_ == MODEL.certificate_


def test_the_report_shows_the_certificate_and_holds_it_as_plain_values():
    text = str(MODEL.report())
    assert "are shown to hold for the population" in text
    assert "omnifair certificate: holds" in text
    assert MODEL.report().to_dict()["certificate"]["verdict"] == "holds"
    assert fitted(confidence=None).report().to_dict()["certificate"] is None


def test_the_certificate_is_stored_with_the_model():
    again = pickle.loads(pickle.dumps(MODEL))
    assert again.certificate_ == MODEL.certificate_
    assert np.array_equal(again.predict(X), MODEL.predict(X))


def test_it_composes_with_scikit_learn():
    chosen = GridSearchCV(
        clone(confident(max_trainings=6)), {"confidence": [0.6, 0.9]}, cv=2, error_score="raise"
    ).fit(X, Y, sensitive_features=PEOPLE)
    assert chosen.best_estimator_.certificate_.holds
    model = fitted(estimator=make_pipeline(StandardScaler(), LR))
    assert model.certificate_.holds


# -- rows set aside --------------------------------------------------------------------------------


@pytest.mark.parametrize("refit", [False, True])
def test_no_training_and_no_choice_sees_the_rows_set_aside(refit):
    Recorder.shown.clear()
    model = confident(
        gap(SP, by="group") <= 0.5, estimator=Recorder(), certification=0.3, refit=refit
    ).fit(numbered(), Y, sensitive_features=PEOPLE)
    *before, (what, held) = Recorder.shown
    assert what == "predict"
    assert len(held) == 1_200 == model.certificate_.rows
    assert all(held.isdisjoint(rows) for _, rows in before)
    last = [rows for kind, rows in before if kind == "fit"][-1]
    assert len(last) == (2_800 if refit else 2_100)


def test_the_rows_set_aside_are_drawn_without_regard_to_groups_and_labels():
    # A part that held each group's and label's share would have the same counts for every seed.
    counts = set()
    for seed in range(8):
        Recorder.shown.clear()
        confident(
            gap(SP, by="group") <= 0.5, estimator=Recorder(), random_state=seed, max_trainings=1
        ).fit(numbered(), Y, sensitive_features=PEOPLE)
        held = sorted(Recorder.shown[-1][1])
        counts.add((int(Y[held].sum()), int((PEOPLE["group"].to_numpy()[held] == "A").sum())))
    assert len(counts) > 4


def test_what_the_rows_set_aside_show_does_not_guide_the_search():
    upside_down = (FRESH[0], 1 - FRESH[1], FRESH[2].iloc[::-1].reset_index(drop=True))
    one, two = (
        fitted(certification=rows, on_infeasible="closest", constraints=gap(SP, by="group") <= 0.6)
        for rows in (FRESH, upside_down)
    )
    several = [
        [{k: v for k, v in trial.items() if k != "seconds"} for trial in model.trials_]
        for model in (one, two)
    ]
    assert several[0] == several[1]
    assert one.certificate_ != two.certificate_


def test_rows_that_were_trained_or_selected_on_are_refused():
    here = slice(0, 1_000)
    with pytest.raises(CertificateError, match="trained or selected on"):
        fitted(certification=(X[here], Y[here], PEOPLE[here]))
    with pytest.raises(CertificateError, match="trained or selected on"):
        fitted(certification=FRESH, validation=FRESH)
    for model in (MODEL, fitted(confidence=None)):
        with pytest.raises(CertificateError, match="trained or selected on"):
            certify(model, FAIR, X[here], Y[here], sensitive_features=PEOPLE[here])
        assert certify(model, FAIR, *FRESH[:2], sensitive_features=FRESH[2]).rows == 1_500


def test_rows_that_were_repeated_are_noted_on_the_certificate_and_distinct_ones_are_not():
    drawn = np.random.RandomState(0).choice(1_500, 6_000)
    again = (X.iloc[drawn], Y[drawn], PEOPLE.iloc[drawn])
    rule = each(accuracy, by="group") >= 0.85
    parameters = {"estimator": DecisionTreeClassifier(), "max_trainings": 2}
    learned_by_heart = confident(rule, **parameters).fit(*again[:2], sensitive_features=again[2])
    assert learned_by_heart.status_ == "certified"
    assert "have a twin among those trained on" in str(learned_by_heart.certificate_)
    by_person = confident(rule, certification=FRESH, on_infeasible="closest", **parameters)
    with pytest.warns(InfeasibleWarning, match="violated"):
        by_person.fit(*again[:2], sensitive_features=again[2])
    for model in (by_person, MODEL):
        assert "twin" not in str(model.certificate_)


# -- where there is no promise ---------------------------------------------------------------------


def test_too_few_rows_are_said_with_how_many_would_do():
    n = 300
    with pytest.raises(InfeasibleError, match="not enough evidence") as caught:
        confident(gap(SP, by="group") <= 0.1).fit(X[:n], Y[:n], sensitive_features=PEOPLE[:n])
    error = caught.value
    assert "could not be shown" in str(error)
    assert "75 rows set aside" in str(error)
    assert error.status == "uncertified"
    assert error.certificate.claims[0].needed > 75
    assert len(error.model.predict(X)) == len(X)


def test_a_budget_that_ended_before_a_promise_is_said_and_the_model_is_called_the_safest():
    tight, said = gap(SP, by="group") <= 0.06, "budget of trainings or of time ended"
    with pytest.raises(InfeasibleError, match=said) as caught:
        fitted(tight, max_trainings=1)
    assert "in the safest model" in str(caught.value)
    assert "closest model" not in str(caught.value)
    with pytest.warns(InfeasibleWarning, match=said):
        model = fitted(tight, max_trainings=1, on_infeasible="closest")
    assert any(said in note for note in model.report().notes)
    with pytest.raises(InfeasibleError) as caught:
        fitted(tight, strategy=GridSearch(points=1))
    assert said not in str(caught.value)


def test_a_violation_is_said_to_be_one():
    impossible = [
        each(SP, by="group", only=["A"]) <= 0.05,
        each(SP, by="group", only=["B"]) >= 0.95,
    ]
    with pytest.warns(InfeasibleWarning, match="violated"):
        model = fitted(impossible, on_infeasible="closest", max_trainings=6)
    assert model.status_ == "uncertified"
    assert model.certificate_.verdict is Verdict.VIOLATED
    assert "omnifair certificate: violated" in str(model.report())


def test_an_interrupt_leaves_what_was_found_with_its_certificate():
    def stop(record):
        raise KeyboardInterrupt

    with pytest.warns(InfeasibleWarning, match="interrupted"):
        model = fitted(callback=stop)
    assert model.status_ == "interrupted"
    assert len(model.trials_) == 1
    assert not model.certificate_.holds
    assert fitted(gap(SP, by="group") <= 0.5, callback=stop).status_ == "certified"


def test_a_bound_of_zero_cannot_be_certified():
    with pytest.raises(InfeasibleError, match=r"not enough evidence|violated"):
        fitted(gap(SP, by="group") <= 0.0, max_trainings=5)


def test_a_group_without_rows_to_certify_on_is_named():
    people = PEOPLE.copy()
    people.loc[[int(i) for i in np.flatnonzero(Y == 1)[:3]], "group"] = "C"
    people.loc[[int(i) for i in np.flatnonzero(Y == 0)[:3]], "group"] = "C"
    with pytest.raises(InfeasibleError, match=r"selection_rate\[group=C\]"):
        confident(gap(SP, by="group") <= 0.9, certification=0.01, max_trainings=2).fit(
            X, Y, sensitive_features=people
        )
    with pytest.raises(GroupError, match="group=C"):
        confident(certification=FRESH).fit(X, Y, sensitive_features=people)


@pytest.mark.parametrize("confidence", [0.5, 1.0, 95, "high", True])
def test_a_confidence_that_is_none_is_refused(confidence):
    for constraints in (FAIR, ()):
        with pytest.raises(DeclarationError, match=r"between 0\.5 and 1"):
            fitted(constraints, confidence=confidence)


@pytest.mark.parametrize("certification", [0, 1.0, 5, "train", None])
def test_a_certification_part_that_is_none_is_refused(certification):
    with pytest.raises(LearnerError, match="certification="):
        fitted(certification=certification)


def test_weights_that_differ_are_refused_before_anything_is_trained():
    Recorder.shown.clear()
    weights = np.resize([1.0, 2.0], len(X))
    with pytest.raises(CertificateError, match="max_weight"):
        confident(estimator=Recorder()).fit(
            numbered(), Y, sensitive_features=PEOPLE, sample_weight=weights
        )
    assert Recorder.shown == []
    equal = confident().fit(X, Y, sensitive_features=PEOPLE, sample_weight=np.full(len(X), 2.0))
    assert equal.certificate_.holds


def test_few_heavy_rows_are_refused_wherever_the_draw_puts_them():
    heavy = np.ones(len(X))
    heavy[:3] = 4_000.0
    light = np.ones(len(FRESH[1]))
    uneven = np.where(np.arange(len(light)) < 3, 4_000.0, 1.0)
    for weights, parameters in [
        *((heavy, {"random_state": seed}) for seed in range(8)),
        (heavy, {"certification": FRESH}),
        (None, {"certification": (*FRESH, uneven)}),
        (None, {"validation": (*FRESH, uneven)}),
    ]:
        trained = []
        with pytest.raises(CertificateError, match="max_weight"):
            confident(on_infeasible="closest", callback=trained.append, **parameters).fit(
                X, Y, sensitive_features=PEOPLE, sample_weight=weights
            )
        assert trained == []
    assert fitted(validation=(*FRESH, 2 * light)).certificate_.holds


def test_coefficients_by_row_are_refused():
    rate = coefficients(lambda rows: (0.0, np.full(len(rows.labels), 1 / len(rows.labels))))
    with pytest.raises(CertificateError, match="coefficients"):
        fitted(gap(rate, by="group") <= 0.1)


def test_a_category_that_only_rows_set_aside_have_fails_with_an_error_that_names_them():
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    pipeline = make_pipeline(encoder, LR)
    rows = FRESH[0].assign(town=np.resize(["a", "b", "c"], len(FRESH[0])))
    with pytest.raises(TrainingError, match=r"rows set aside to certify on.*unknown") as caught:
        confident(estimator=pipeline, certification=(rows, *FRESH[1:])).fit(
            X.assign(town=np.resize(["a", "b"], len(X))), Y, sensitive_features=PEOPLE
        )
    assert type(caught.value.__cause__) is ValueError


def test_without_rows_there_is_nothing_to_certify_on():
    with pytest.raises(CertificateError, match="no rows to certify on"):
        fitted(certification=1e-5)


def test_without_constraints_it_is_the_plain_estimator_and_there_is_no_certificate():
    model = fitted(())
    assert model.status_ == "unconstrained"
    assert model.certificate_ is None
    assert np.allclose(model.estimator_.coef_, LogisticRegression().fit(X, Y).coef_)


# -- other ways to search, to measure, to compare --------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"strategy": PaperSearch(tau=0.05)},
        {"strategy": GridSearch(points=9)},
        {"strategy": PlugIn()},
        {"strategy": PlugIn(), "validation": 3},
        {"strategy": PlugIn(plain=True)},
        {"strategy": PlugIn(plain=True), "refit": True},
        {"strategy": BestOf()},
        {"strategy": BestOf(), "validation": 3},
        {"validation": "train"},
        {"validation": 3},
        {"validation": lending(1_500, 2)},
        {"refit": True},
        {"weighting": "resample"},
        {"certification": 0.4, "confidence": 0.8},
    ],
    ids=lambda p: " ".join(f"{k}={v}"[:30] for k, v in p.items()),
)
def test_any_strategy_and_any_validation_can_be_certified(parameters):
    model = fitted(**parameters)
    assert model.status_ == "certified"
    assert model.certificate_.holds
    assert model.report_.trainings >= len({t["training"] for t in model.trials_ if t["fits"]})


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


def test_what_is_only_exploratory_is_not_certified_where_another_is_as_safe():
    loose = gap(SP, by="group") <= 0.9
    for offset in (-0.6, 0.6):
        model = fitted(loose, strategy=Shown(offset))
        explored, chosen = model.trials_
        assert explored["accuracy"] > chosen["accuracy"] == model.report().objective_value


def test_but_it_is_where_no_other_is_safe():
    alone = fitted(gap(SP, by="group") <= 0.9, strategy=Shown())
    assert alone.status_ == "certified"
    everybody = each(SP, by="group") <= 0.9
    model = fitted(everybody, strategy=Shown(-2.0))  # which selects everybody
    explored, chosen = model.trials_
    assert not chosen["satisfied"]
    assert model.report().objective_value == explored["accuracy"]


def test_a_joint_model_can_be_certified_by_itself():
    model = fitted(strategy=PlugIn(), certification=FRESH)
    again = certify(model.estimator_, FAIR, *FRESH[:2], sensitive_features=FRESH[2])
    assert again.claims == model.certificate_.claims


@pytest.mark.parametrize(
    "constraints",
    [
        ratio(SP, by="group") >= 0.6,
        each(true_positive_rate, by="group") >= 0.6,
        [each(SP, by="group") <= 0.65, each(SP, by="group") >= 0.25],
        overall(accuracy) >= 0.7,
        [FAIR, gap(true_positive_rate, by="group") <= 0.3],
        gap(false_discovery_rate, by="group") <= 0.3,
        gap(SP, by=groups(some="score > 1", more="score > -1")) <= 0.9,
    ],
    ids=str,
)
def test_any_constraint_can_be_certified(constraints):
    people = PEOPLE.assign(score=np.random.RandomState(0).normal(size=len(X)))
    model = confident(constraints, max_trainings=12).fit(X, Y, sensitive_features=people)
    assert model.certificate_.holds


def test_a_budget_of_one_training_is_kept():
    loose = gap(SP, by="group") <= 0.5
    model = fitted(loose, max_trainings=1)
    assert model.report_.trainings == 1
    assert model.certificate_.holds
    with pytest.raises(LearnerError, match="3 trainings"):
        fitted(loose, max_trainings=2, refit=True)


# -- selection -------------------------------------------------------------------------------------


def after_testing(*selected):
    """certified() on models of which these numbers of group A and of B (of 1,000) are selected."""
    group = np.repeat(["A", "B"], 1_000)
    problem = problem_of([gap(SP, by="group") <= 0.1], {"group": group}, np.resize([0, 1], 2_000))

    def model(hits):
        h = np.concatenate([np.repeat([1, 0], [n, 1_000 - n]) for n in hits])
        return SimpleNamespace(predict=lambda X: bits(h))

    path = [SimpleNamespace(models=(model(hits),), hits=hits) for hits in selected]
    solution = Solution(path[-1], Status.SATISFIED, (), (), ())
    return certified(solution, path, Aside(None, problem, 0.95, Classes(0, 1)), None)


def test_the_last_model_that_passes_is_kept_and_no_more_are_asked():
    found = after_testing((300, 300), (320, 300), (450, 300), (300, 300))
    assert found.solution.trial.hits == (320, 300)
    assert found.solution.status is Status.CERTIFIED
    assert found.certificate.holds
    assert "model 2 of 4" in found.certificate.notes[-1]


def test_where_the_safest_fails_it_is_what_comes_back():
    found = after_testing((450, 300), (300, 300))
    assert found.solution.trial.hits == (450, 300)
    assert found.solution.status is Status.UNCERTIFIED
    assert found.certificate.verdict is Verdict.VIOLATED


def test_a_model_at_the_edge_is_certified_falsely_no_more_often_than_promised():
    times, wrong = 40, 0
    population = make_lending(1, 0, base_rates=[0.7, 0.3], noise_features=0).population
    rates = [population.rates_of_linear([1, 0.1], 0.1, g)["selection_rate"] for g in "AB"]
    edge = gap(SP, by="group") <= abs(rates[0] - rates[1]) * 0.999
    for seed in range(times):
        data = population.sample(800, seed)
        table = np.column_stack([data.X.to_numpy(), np.arange(800)])
        try:
            confident(edge, estimator=Recorder(), max_trainings=1, certification=0.5).fit(
                table, data.y, sensitive_features=data.sensitive_features
            )
            wrong += 1
        except InfeasibleError:
            pass
    assert wrong / times <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)
