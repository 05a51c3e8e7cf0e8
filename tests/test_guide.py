"""What the default search expects of learners: slopes, sureness, and very many demands."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from omnifair import FairClassifier, InfeasibleWarning, gap
from omnifair.frames import Frame
from omnifair.problem import bind
from omnifair.rates import accuracy, error_rate, false_negative_rate, selection_rate
from omnifair.search.guide import MANY, Guide
from omnifair.search.joint import Calibration
from omnifair.search.surrogate import Surrogate

RATES = {rate: gap(rate, by="group") <= 0.05 for rate in (selection_rate, false_negative_rate)}


def problem_of(*constraints, groups=3, n=600, seed=0):
    random = np.random.RandomState(seed)
    group = random.randint(groups, size=n)
    labels = (random.random_sample(n) < 0.3 + 0.4 * group / groups).astype(np.int8)
    frame = Frame({"group": group.astype(str)}, None, n)
    return bind(constraints, accuracy, frame, labels, 0.5 + random.random_sample(n))


def surrogate_of(problem, seed=1):
    """Chances that know something, but not all, of the group and the label."""
    random = np.random.RandomState(seed)
    chances = random.dirichlet(np.ones(2 * len(problem.structure.member)), len(problem))
    chances[np.arange(len(problem)), problem.code] += 0.5
    return Surrogate.of(problem, chances / 1.5, np.arange(len(problem)))


def trial_of(problem, multipliers, predictions):
    """All that a guide looks at of a training."""
    measurement = problem.measure(predictions)
    proposal = SimpleNamespace(share=1.0, cells=measurement.cells, at=None)
    return SimpleNamespace(multipliers=multipliers, measurement=measurement, proposal=proposal)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("rate", RATES, ids=str)
def test_slopes_by_pull_are_those_of_the_rates_by_every_multiplier(rate, learned):
    problem = problem_of(RATES[rate])
    surrogate, size = surrogate_of(problem), problem.structure.n_rows
    cells = problem.cells(problem.labels)
    if learned:
        for k in (0, 1):
            bits = np.random.RandomState(k).randint(2, size=len(problem)).astype(np.int8)
            surrogate, _ = surrogate.learn(0.1 * k * np.ones(size), cells, bits, None)
    at = np.linspace(0.02, 0.1, size)
    slopes = surrogate.response(at, cells).slopes @ surrogate.matrix.T
    step = 1e-6  # (how softly decisions are made moves too, which slopes leave out)
    for k in range(size):
        moved = at + step * (np.arange(size) == k)
        back = at - step * (np.arange(size) == k)
        ends = [surrogate.response(m, cells).rates for m in (moved, back)]
        assert slopes[:, k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=0.1, abs=0.01)


def test_of_very_many_demands_those_at_work_and_the_farthest_off_are_looked_at():
    problem = problem_of(gap(selection_rate, by="group") <= 0.05, groups=20, n=4000)
    surrogate, size = surrogate_of(problem), problem.structure.n_rows
    plain = trial_of(problem, np.zeros(size), problem.labels)
    guide = Guide.of(surrogate, plain)
    assert len(guide.demands) == 190 > MANY
    begin = np.zeros(size)
    begin[guide.demands[7].rows[1]] = 0.01  # at work, though its row may be met
    aim = problem.structure.bounds
    first, second, two = guide._at_work(begin, aim)
    assert len(first) == len(second) == len(two) == MANY
    over = surrogate.matrix @ guide.expect(begin)[1] - aim
    farthest = {d.rows: over[list(d.rows)].max() for d in guide.demands}
    kept = set(zip(first.tolist(), second.tolist(), strict=True))
    assert guide.demands[7].rows in kept
    left = max(value for rows, value in farthest.items() if rows not in kept)
    inside = sorted(value for rows, value in farthest.items() if rows in kept)
    assert inside[1] >= left  # but for the one at work


def test_forty_groups_are_searched_together():
    random = np.random.RandomState(0)
    n, groups = 6000, 40
    group = random.randint(groups, size=n)
    X = random.normal(size=(n, 3)) + np.outer(np.linspace(-0.5, 0.5, groups)[group], [1, 0, 0])
    y = (X[:, 0] + X[:, 1] + random.normal(size=n) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        model = FairClassifier(
            LogisticRegression(),
            gap(selection_rate, by="group") <= 0.15,
            validation="train",
            on_infeasible="closest",
            max_trainings=10,
        ).fit(X, y, sensitive_features={"group": group})
    first, best = model.trials_[0], min(t["worst_violation"] for t in model.trials_)
    assert first["worst_violation"] > 0.1
    assert best < first["worst_violation"] / 2


# -- how sure a learner may be ---------------------------------------------------------------------


@given(
    st.lists(st.floats(-1, 1), min_size=1),
    st.floats(0.01, 10),
    st.floats(-3, 3),
)
def test_tempered_margins_keep_their_decisions_and_their_order(margins, slope, intercept):
    margins = np.array(margins)
    tempered = Calibration(slope, intercept).tempered(margins)
    assert np.all(np.abs(tempered) <= 1)
    assert np.all((tempered > 1e-9) <= (margins > 0))
    assert np.all((tempered < -1e-9) <= (margins < 0))
    order = np.argsort(margins)
    assert np.all(np.diff(tempered[order]) >= 0)


def test_a_calibration_finds_how_much_too_sure_chances_are():
    random = np.random.RandomState(0)
    odds = random.normal(size=4000)
    problem = problem_of(RATES[selection_rate], n=4000)
    labels = (random.random_sample(4000) < expit(odds)).astype(np.int8)
    judged = SimpleNamespace(labels=labels, weights=np.ones(4000))
    loud = Calibration.of(expit(3 * odds), judged, np.arange(4000))
    assert loud.slope == pytest.approx(1 / 3, rel=0.15)
    wrong = np.abs(loud.chance(expit(3 * odds)) - expit(odds))
    assert np.quantile(wrong, 0.99) < 0.05  # but where they are as good as certain
    alike = SimpleNamespace(labels=np.ones(4000, dtype=np.int8), weights=problem.weights)
    assert Calibration.of(expit(odds), alike, np.arange(4000)) is None


class Loud(ClassifierMixin, BaseEstimator):
    """Logistic regression that decides the same, and says it too loudly (or too softly)."""

    def __init__(self, times=1.0):
        self.times = times

    def fit(self, X, y, sample_weight=None):
        self.model_ = LogisticRegression().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        if not hasattr(self, "model_"):
            raise NotFittedError
        return self.model_.predict(X)

    def predict_proba(self, X):
        said = np.clip(self.model_.predict_proba(X)[:, 1], 1e-9, 1 - 1e-9)
        said = expit(self.times * logit(said))
        return np.column_stack([1 - said, said])


def people(n=4000):
    random = np.random.RandomState(0)
    sex = random.randint(2, size=n)
    X = random.normal(size=(n, 3)) + np.outer(sex, [0.8, 0.3, 0])
    y = (X[:, 0] + X[:, 1] + 2 * random.normal(size=n) > 0.7).astype(int)
    return X, y, {"sex": sex}


@pytest.mark.parametrize("rate", [selection_rate, error_rate])
@pytest.mark.parametrize("times", [2.0, 4.0])
def test_how_loudly_a_learner_speaks_hardly_moves_the_first_multipliers(rate, times):
    X, y, sensitive = people()
    first = []
    for learner in (Loud(), Loud(times)):
        model = FairClassifier(
            learner, gap(rate, by="sex") <= 0.02, random_state=0, on_infeasible="closest"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InfeasibleWarning)
            model.fit(X, y, sensitive_features=sensitive)
        [key] = [k for k in model.trials_[1] if k.startswith("multiplier") and model.trials_[1][k]]
        first.append((key, model.trials_[1][key]))
    assert first[0][0] == first[1][0]
    assert first[0][1] == pytest.approx(first[1][1], rel=0.15)
