"""What no decisions at all can do is told as impossible; whatever some decisions do is not."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from omnifair import FairClassifier, InfeasibleError, coefficients, each, gap, overall, ratio
from omnifair.feasibility import contradiction
from omnifair.frames import Frame
from omnifair.problem import bind
from omnifair.rates import (
    accuracy,
    error_rate,
    false_discovery_rate,
    false_negative_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)

SEX, LABELS = [*"aaaabbbb"], [0, 0, 1, 1, 0, 1, 1, 1]


def problem_of(*constraints, sex=SEX, labels=LABELS, weights=None):
    labels = np.array(labels, dtype=np.int8)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights)
    return bind(constraints, accuracy, Frame({"sex": sex}, None, len(labels)), labels, weights)


def some_decisions_do(problem):
    """Whether any of all decisions meets everything."""
    every = itertools.product((0, 1), repeat=len(problem))
    return any(problem.measure(np.array(bits, dtype=np.int8)).satisfied for bits in every)


CONTRADICTIONS = {
    "floor above ceiling": (
        [overall(selection_rate) <= 0.1, overall(selection_rate) >= 0.2],
        (0, 1),
    ),
    "everybody found, nobody chosen": (
        [
            gap(selection_rate, by="sex") <= 0.5,
            each(true_positive_rate, by="sex") >= 0.9,
            overall(selection_rate) <= 0.3,
        ],
        (1, 2),
    ),
    "a rate of both": (
        [each(false_negative_rate, by="sex") <= 0.1, each(error_rate, by="sex") >= 0.9],
        (0, 1),
    ),
    "precision of all chosen": (
        [overall(selection_rate) >= 0.9, overall(positive_predictive_value) >= 0.9],
        (0, 1),
    ),
    "ratio of what one group cannot have": (
        [
            ratio(selection_rate, by="sex") >= 0.9,
            each(selection_rate, by="sex", only=["a"]) <= 0.2,
            each(selection_rate, by="sex", only=["b"]) >= 0.7,
        ],
        (0, 1, 2),
    ),
}


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_found_with_just_the_constraints_that_it_needs(name, unit):
    constraints, needed = CONTRADICTIONS[name]
    problem = problem_of(*constraints, weights=np.full(8, unit))
    assert contradiction(problem) == needed
    assert not some_decisions_do(problem_of(*(constraints[c] for c in needed)))
    for c in needed:
        assert contradiction(problem_of(*(constraints[d] for d in needed if d != c))) == ()


def test_constraints_that_one_decision_for_all_meets_are_no_contradiction():
    gaps = [gap(rate, by="sex") <= 0 for rate in (selection_rate, false_negative_rate)]
    assert contradiction(problem_of(*gaps)) == ()


def test_what_is_not_linear_is_left_out():
    assert contradiction(problem_of(gap(false_discovery_rate, by="sex") <= 0.01)) == ()
    raw = coefficients(lambda rows: (0.0, np.ones(len(rows.labels)) / len(rows.labels)))
    assert contradiction(problem_of(gap(raw, by="sex") <= 0.01)) == ()


BOUNDS = st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
RATES = st.sampled_from(
    [selection_rate, true_positive_rate, error_rate, positive_predictive_value, accuracy]
)


@st.composite
def demands(draw):
    rate, bound = draw(RATES), draw(BOUNDS)
    kind = draw(st.sampled_from(["gap", "each", "overall"]))
    if kind == "gap":
        return gap(rate, by="sex") <= bound
    measure = overall(rate) if kind == "overall" else each(rate, by="sex")
    return measure <= bound if draw(st.booleans()) else measure >= bound


@settings(max_examples=60, deadline=None)
@given(st.lists(demands(), min_size=1, max_size=4, unique_by=str))
def test_nothing_that_some_decisions_do_is_called_impossible(constraints):
    problem = problem_of(*constraints)
    if contradiction(problem):
        assert not some_decisions_do(problem)


def test_the_user_is_told_and_the_search_ends_soon():
    random = np.random.RandomState(0)
    X, sex = random.normal(size=(600, 3)), random.randint(2, size=600)
    y = (X[:, 0] + random.normal(size=600) > 0).astype(int)
    demands = [
        gap(selection_rate, by="sex") <= 0.3,
        each(true_positive_rate, by="sex") >= 0.9,
        overall(selection_rate) <= 0.2,
    ]
    with pytest.raises(InfeasibleError, match="No model can meet each") as caught:
        FairClassifier(LogisticRegression(), demands, random_state=0).fit(
            X, y, sensitive_features={"sex": sex}
        )
    diagnosis = caught.value.diagnosis
    assert diagnosis.impossible == (str(demands[1]), str(demands[2]))
    assert "not even by someone who knew every label and group" in str(caught.value)
    assert diagnosis.trainings <= 12
