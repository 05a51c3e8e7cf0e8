"""How weights reach every kind of learner, and what is refused."""

import numpy as np
import pytest
import sklearn
from catboost import CatBoostClassifier
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from omnifair import FairClassifier, LearnerError, gap
from omnifair.learners import fresh, has_probabilities, learner_for, replicate
from omnifair.rates import selection_rate

N = 400
# One feature, ten values, a coin for each label: what is predicted at a value is a matter of
# which label weighs more there, and no learner can tell rows of one value apart.
X = np.column_stack([np.arange(N) % 10 / 10.0, np.zeros(N)])
Y = (np.arange(N) // 10) % 2
EVEN = np.ones(N)
TO_ONE = np.where(Y == 1, 20.0, 1.0)
TO_ZERO = np.where(Y == 0, 20.0, 1.0)

LR = LogisticRegression()
PIPE = make_pipeline(StandardScaler(), LR)

LEARNERS = {
    "logistic regression": LR,
    "ridge": RidgeClassifier(),
    "stochastic gradient descent": SGDClassifier(loss="log_loss"),
    "perceptron": Perceptron(),
    "tree": DecisionTreeClassifier(),
    "forest": RandomForestClassifier(n_estimators=5),
    "extra trees": ExtraTreesClassifier(n_estimators=5),
    "gradient boosting": GradientBoostingClassifier(n_estimators=30),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=30),
    "adaptive boosting": AdaBoostClassifier(n_estimators=5),
    "bagging": BaggingClassifier(n_estimators=5),
    "support vectors": SVC(),
    "linear support vectors": LinearSVC(),
    "naive bayes": GaussianNB(),
    "neural network": MLPClassifier((4,), solver="lbfgs", max_iter=1000),
    "xgboost": XGBClassifier(n_estimators=30),
    "lightgbm": LGBMClassifier(n_estimators=60, verbose=-1),
    "catboost": CatBoostClassifier(iterations=30, verbose=False, allow_writing_files=False),
    "pipeline": PIPE,
    "pipeline of lightgbm": make_pipeline(
        StandardScaler().set_output(transform="pandas"), LGBMClassifier(n_estimators=60, verbose=-1)
    ),
    "pipeline of catboost": make_pipeline(
        StandardScaler(),
        CatBoostClassifier(iterations=30, verbose=False, allow_writing_files=False),
    ),
    "nested pipeline": make_pipeline(StandardScaler(), PIPE),
    "column transformer": make_pipeline(
        ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="passthrough"), LR
    ),
    "search": GridSearchCV(LR, {"C": [0.1, 1]}, cv=2),
    "search around a pipeline": GridSearchCV(PIPE, {"logisticregression__C": [0.1, 1]}, cv=2),
    "search inside a pipeline": make_pipeline(
        StandardScaler(), GridSearchCV(LR, {"C": [0.1, 1]}, cv=2)
    ),
    "calibrator": CalibratedClassifierCV(LR, cv=2),
    "calibrator around a pipeline": CalibratedClassifierCV(PIPE, cv=2),
    "calibrator of one model around a pipeline": CalibratedClassifierCV(PIPE, cv=2, ensemble=False),
    "calibrator inside a pipeline": make_pipeline(
        StandardScaler(), CalibratedClassifierCV(LR, cv=2)
    ),
    "search around a calibrator": GridSearchCV(
        CalibratedClassifierCV(LR, cv=2), {"estimator__C": [0.1, 1]}, cv=2
    ),
    "vote": VotingClassifier([("a", LR), ("b", DecisionTreeClassifier())]),
    "stack": StackingClassifier([("a", LR), ("b", DecisionTreeClassifier())], cv=2),
    "feature elimination": RFE(LR, n_features_to_select=1),
}


@pytest.mark.parametrize("routing", [False, True], ids=["", "metadata routing"])
@pytest.mark.parametrize("name", LEARNERS)
def test_weights_reach_every_kind_of_learner(name, routing):
    estimator = LEARNERS[name]
    before = repr(estimator.get_params())
    with sklearn.config_context(enable_metadata_routing=routing):
        learner = learner_for(estimator, "sample_weight", seed=0)
        up, down = (learner.fit(X, Y, w).predict(X) for w in (TO_ONE, TO_ZERO))
    assert (up.mean(), down.mean()) == (1, 0)
    assert repr(estimator.get_params()) == before
    assert not [a for a in vars(estimator) if a.endswith("_") and not a.startswith("_")]


@pytest.mark.parametrize(
    ("estimator", "has"),
    [
        (LR, True),
        (PIPE, True),
        (StackingClassifier([("a", LR)]), True),
        (make_pipeline(StandardScaler(), StackingClassifier([("a", LR)])), True),
        (StackingClassifier([("a", LR)], final_estimator=LinearSVC()), False),
        (make_pipeline(StandardScaler(), RidgeClassifier()), False),
        (SGDClassifier(), False),
        (GridSearchCV(LinearSVC(), {}), False),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_probabilities_are_known_of_before_a_fit(estimator, has):
    assert has_probabilities(estimator) == has
    assert hasattr(clone(estimator).fit(X, Y), "predict_proba") == has


class WeightRecorder(LogisticRegression):
    """Notes the weights that each fit was given."""

    seen: list = []  # noqa: RUF012 (one list for all clones is the point)

    def fit(self, X, y, sample_weight=None):
        WeightRecorder.seen.append(sample_weight)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("routing", [False, True], ids=["", "metadata routing"])
@pytest.mark.parametrize(
    ("wrap", "fits"),
    [
        (lambda e: CalibratedClassifierCV(e, cv=2), 2),
        (lambda e: CalibratedClassifierCV(make_pipeline(StandardScaler(), e), cv=2), 2),
        (lambda e: CalibratedClassifierCV(make_pipeline(make_pipeline(e)), cv=2), 2),
        (lambda e: GridSearchCV(make_pipeline(e), {"weightrecorder__C": [1, 2]}, cv=2), 5),
    ],
    ids=["calibrator", "around a pipeline", "around nested pipelines", "search"],
)
def test_every_inner_fit_gets_the_weights_of_its_own_rows(wrap, fits, routing):
    WeightRecorder.seen.clear()
    with sklearn.config_context(enable_metadata_routing=routing):
        learner_for(wrap(WeightRecorder()), "sample_weight", 0).fit(X, Y, TO_ONE)
    seen = WeightRecorder.seen
    assert len(seen) == fits
    assert all(w is not None and set(w) == {1.0, 20.0} for w in seen)


def test_weights_stop_at_the_final_step():
    class Scaler(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            assert sample_weight is None
            return super().fit(X, y)

    learner = learner_for(make_pipeline(Scaler(), LR), "sample_weight", 0)
    assert learner.keywords == ("logisticregression__sample_weight",)
    assert learner.fit(X, Y, TO_ONE).predict(X).all()


def test_a_learner_without_weights_is_refused_with_the_way_out():
    with pytest.raises(
        LearnerError, match=r"KNeighborsClassifier takes no sample_weight.*resample"
    ):
        learner_for(make_pipeline(StandardScaler(), KNeighborsClassifier()), "sample_weight", 0)


def test_a_learner_without_weights_is_trained_on_replicated_rows():
    learner = learner_for(KNeighborsClassifier(30), "resample", 0)
    assert learner.fit(X, Y, TO_ONE).predict(X).all()
    assert not learner.fit(X, Y, TO_ZERO).predict(X).any()


def test_resampling_is_deterministic_under_random_state():
    random = np.random.RandomState(3)
    data = random.normal(size=(300, 2))
    sex = random.randint(2, size=300)
    label = (data[:, 0] + sex + random.normal(size=300) > 0.5).astype(int)

    def fit(seed):
        return FairClassifier(
            KNeighborsClassifier(25),
            gap(selection_rate, by="sex") <= 0.15,
            weighting="resample",
            on_infeasible="closest",
            random_state=seed,
        ).fit(data, label, sensitive_features={"sex": sex})

    def without_time(model):
        return [{k: v for k, v in r.items() if k != "seconds"} for r in model.trials_]

    first, again, other = fit(0), fit(0), fit(1)
    assert without_time(first) == without_time(again)
    assert np.array_equal(first.predict(data), again.predict(data))
    assert without_time(first) != without_time(other)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30).filter(any), st.floats(0.01, 100))
def test_small_multiples_are_replicated_exactly(counts, unit):
    counts = np.array(counts)
    copies = replicate(counts * unit, np.random.RandomState(0))
    scale = copies.sum() / counts.sum()
    assert np.allclose(copies, scale * counts, rtol=1e-9, atol=0)


def test_weights_of_two_and_three_fifths_are_two_and_three_copies():
    assert replicate(np.array([0.4, 0.6]), np.random.RandomState(0)).tolist() == [2, 3]


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.31, 1.0, 1.4142, 2.7182]), min_size=5, max_size=60),
    st.integers(0, 99),
)
def test_rows_of_one_weight_keep_their_total_within_one_copy(values, seed):
    weights = np.array([*values, np.pi / 10])
    copies = replicate(weights, np.random.RandomState(seed))
    assert copies.min() >= 0
    assert not copies[weights == 0].any()
    share = copies.sum() / weights.sum()
    for value in set(weights):
        here = weights == value
        # one copy for the rounding at either end, and the same for the total of all
        assert abs(copies[here].sum() - share * weights[here].sum()) <= 2


FROZEN = FrozenEstimator(clone(LR).fit(X, Y))


@pytest.mark.parametrize("weighting", ["sample_weight", "resample"])
@pytest.mark.parametrize(
    "estimator",
    [
        FROZEN,
        make_pipeline(StandardScaler(), FROZEN),
        CalibratedClassifierCV(FROZEN),
        CalibratedClassifierCV(make_pipeline(StandardScaler(), FROZEN)),
    ],
    ids=["itself", "in a pipeline", "in a calibrator", "in a pipeline in a calibrator"],
)
def test_what_is_never_trained_again_is_refused(estimator, weighting):
    with pytest.raises(LearnerError, match="FrozenEstimator ignores weights"):
        learner_for(estimator, weighting, 0)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (LinearRegression(), "LinearRegression is a regressor: pass a classifier"),
        (LogisticRegression, "LogisticRegression is a class: pass an instance"),
        (StandardScaler(), r"StandardScaler has no predict\(\): pass a classifier"),
        ("logistic", r"str has no fit\(\)"),
        (None, r"NoneType has no fit\(\)"),
        (make_pipeline(StandardScaler(), "passthrough"), r"has no predict\(\)"),
        (
            VotingClassifier([("a", PIPE), ("b", LR)]),
            "passes weights on only to members .* Pipeline does not.*in front",
        ),
        (
            CalibratedClassifierCV(GridSearchCV(LR, {"C": [1]})),
            r"put the calibrator inside, GridSearchCV\(CalibratedClassifierCV",
        ),
        (FixedThresholdClassifier(LR), "pass the classifier inside it"),
    ],
    ids=lambda v: v if isinstance(v, str) else getattr(v, "__name__", type(v).__name__),
)
def test_what_cannot_be_trained_on_weights_is_refused_with_the_way_out(estimator, words):
    with pytest.raises(LearnerError, match=words):
        learner_for(estimator, "sample_weight", 0)


def test_an_unknown_weighting_is_refused():
    with pytest.raises(LearnerError, match="'sample_weight' or 'resample', got 'bootstrap'"):
        learner_for(LR, "bootstrap", 0)


class Bare:
    """Nothing but what is asked for: no base class, no parameters."""

    def fit(self, X, y, sample_weight):
        self.most = int(sample_weight[y == 1].sum() > sample_weight[y == 0].sum())
        # returns nothing, unlike scikit-learn's

    def predict(self, X):
        return np.full(len(X), self.most)


def test_an_estimator_of_no_library_is_copied_and_trained():
    bare = Bare()
    learner = learner_for(bare, "sample_weight", 0)
    assert learner.fit(X, Y, TO_ONE).predict(X).all()
    assert not vars(bare)


def test_free_random_states_are_set_wherever_they_are():
    tree = DecisionTreeClassifier()
    model = fresh(Pipeline([("a", BaggingClassifier(tree)), ("b", RandomForestClassifier(3))]), 7)
    states = {k: v for k, v in model.get_params().items() if k.endswith("random_state")}
    assert len(states) == 3
    assert set(states.values()) == {7}
    assert fresh(DecisionTreeClassifier(random_state=3), 7).random_state == 3
    assert tree.random_state is None


def test_one_wanted_decision_for_everybody_is_a_constant_model():
    model = learner_for(LR, "sample_weight", 0).fit(X, np.ones(N, dtype=int), EVEN)
    assert model.predict(X).all()
    assert not learner_for(LR, "sample_weight", 0).fit(X, Y, TO_ONE * (Y == 0)).predict(X).any()
