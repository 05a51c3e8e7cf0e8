"""The synthetic population: its true rates are those of what is drawn from it."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from omnifair import DataError
from omnifair.datasets import Population, make_lending

RATES = (
    "selection_rate",
    "accuracy",
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
    "false_discovery_rate",
    "false_omission_rate",
)
# Everything differs between the groups, so that no two rates are equal by accident.
UNEVEN = {
    "groups": 3,
    "shares": [0.5, 0.3, 0.2],
    "base_rates": [0.7, 0.4, 0.2],
    "shifts": [0.0, -0.3, 0.5],
    "separations": [2.0, 1.0, 3.0],
}


def counted(y, chosen):
    """Each rate as a fraction of rows, with the number of rows below the line."""
    y, chosen = np.asarray(y, dtype=bool), np.asarray(chosen)
    shares = {
        "selection_rate": (chosen, np.ones_like(y)),
        "accuracy": (chosen == y, np.ones_like(y)),
        "true_positive_rate": (chosen, y),
        "false_positive_rate": (chosen, ~y),
        "true_negative_rate": (~chosen, ~y),
        "false_negative_rate": (~chosen, y),
        "false_discovery_rate": (~y, chosen),
        "false_omission_rate": (y, ~chosen),
    }
    return {name: (part[of].mean(), of.sum()) for name, (part, of) in shares.items()}


def assert_close(truth, y, chosen):
    """Each rate within five standard errors: one in three million by chance."""
    for name, (value, n) in counted(y, chosen).items():
        error = math.sqrt(truth[name] * (1 - truth[name]) / n)
        assert abs(value - truth[name]) <= 5 * error, name


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.4, 1.5])
def test_the_rates_of_a_threshold_are_those_of_a_large_sample(threshold):
    data = make_lending(400_000, random_state=1, **UNEVEN)
    chosen = data.X["score"].to_numpy() >= threshold
    assert_close(data.population.rates_of_threshold(threshold), data.y, chosen)
    for group in data.population.groups:
        member = (data.sensitive_features["group"] == group).to_numpy()
        truth = data.population.rates_of_threshold(threshold, group)
        assert tuple(truth) == RATES
        assert_close(truth, data.y[member], chosen[member])


def test_the_rates_of_a_linear_classifier_are_those_of_a_large_sample():
    data = make_lending(400_000, random_state=2, proxy_strength=0.7, **UNEVEN)
    coef, intercept = np.array([[1.5, -0.8, 0.3, 0.0, -0.2]]), np.array([0.1])
    chosen = data.X.to_numpy() @ coef[0] + intercept[0] >= 0
    assert_close(data.population.rates_of_linear(coef, intercept[0]), data.y, chosen)
    for group in data.population.groups:
        member = (data.sensitive_features["group"] == group).to_numpy()
        truth = data.population.rates_of_linear(coef, intercept[0], group)
        assert_close(truth, data.y[member], chosen[member])


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_two_to_six_groups_have_their_shares_base_rates_and_selection_rates(k):
    n = 200_000
    data = make_lending(n, random_state=k, groups=k)
    people = data.population
    assert people.groups == tuple("ABCDEF"[:k])
    assert people.base_rates[0] == pytest.approx(0.6)
    assert people.base_rates[-1] == pytest.approx(0.3)
    for group in people.groups:
        member = (data.sensitive_features["group"] == group).to_numpy()
        assert abs(member.mean() - 1 / k) <= 5 * math.sqrt(0.25 / n)
        error = math.sqrt(0.25 / member.sum())
        assert abs(data.y[member].mean() - people.base_rate(group)) <= 5 * error
        truth = people.rates_of_threshold(0.0, group)["selection_rate"]
        assert abs((data.X["score"][member] >= 0).mean() - truth) <= 5 * error


def test_the_rates_are_the_normal_tails_of_the_docstring():
    people = make_lending(1, random_state=0, **UNEVEN).population
    for place, group in enumerate(people.groups):
        p, shift = UNEVEN["base_rates"][place], UNEVEN["shifts"][place]
        half = UNEVEN["separations"][place] / 2
        tpr = 1 - NormalDist(shift + half).cdf(0.4)
        fpr = 1 - NormalDist(shift - half).cdf(0.4)
        truth = people.rates_of_threshold(0.4, group)
        assert truth["true_positive_rate"] == pytest.approx(tpr)
        assert truth["false_positive_rate"] == pytest.approx(fpr)
        assert truth["selection_rate"] == pytest.approx(p * tpr + (1 - p) * fpr)
        assert truth["accuracy"] == pytest.approx(p * tpr + (1 - p) * (1 - fpr))
        assert people.base_rate(group) == pytest.approx(p)


def test_with_equal_separations_the_gap_is_the_difference_of_base_rates_by_that_of_the_tails():
    people = make_lending(1, base_rates=[0.6, 0.35]).population
    rates = [people.rates_of_threshold(0.2, group) for group in people.groups]
    a, b = rates[0]["true_positive_rate"], rates[0]["false_positive_rate"]
    assert rates[0]["selection_rate"] - rates[1]["selection_rate"] == pytest.approx((a - b) * 0.25)


def test_a_shift_gives_the_true_positive_rate_that_was_ordered():
    t, separation = 0.3, 1.6
    shifts = [t - separation / 2 + NormalDist().inv_cdf(r) for r in (0.8, 0.65)]
    people = make_lending(1, separations=separation, shifts=shifts).population
    reached = [people.rates_of_threshold(t, g)["true_positive_rate"] for g in people.groups]
    assert reached == pytest.approx([0.8, 0.65])


def test_a_threshold_is_a_linear_classifier_of_the_score_alone():
    people = make_lending(1, **UNEVEN).population
    for group in (None, *people.groups):
        one = people.rates_of_threshold(0.4, group)
        other = people.rates_of_linear([3.0, 0, 0, 0, 0], -1.2, group)
        assert one == pytest.approx(other)


def test_many_thresholds_at_once_give_what_each_gives_alone():
    people = make_lending(1, **UNEVEN).population
    thresholds = np.linspace(-3, 3, 12).reshape(3, 4)
    for group in (None, *people.groups):
        together = people.rates_of_threshold(thresholds, group)
        for name, values in together.items():
            alone = [people.rates_of_threshold(t, group)[name] for t in thresholds.ravel()]
            assert values.shape == (3, 4)
            assert values.ravel() == pytest.approx(alone)
    rates = people.rates_of_linear([1, 1, 0, 0, 0], [-1.0, 0.0, 1.0])
    assert np.all(np.diff(rates["selection_rate"]) > 0)


def test_a_rate_of_one_threshold_is_a_plain_number():
    value = make_lending(1).population.rates_of_threshold(0.0)["accuracy"]
    assert isinstance(value, float)


@pytest.mark.parametrize("threshold", [-np.inf, -1e6, 1e6, np.inf])
def test_shares_of_nobody_are_nan_and_the_rest_stays_exact(threshold):
    rates = make_lending(1).population.rates_of_threshold(threshold, "A")
    everybody = threshold < 0
    assert rates["selection_rate"] == float(everybody)
    assert math.isnan(rates["false_omission_rate" if everybody else "false_discovery_rate"])
    assert rates["false_discovery_rate" if everybody else "false_omission_rate"] == pytest.approx(
        0.4 if everybody else 0.6
    )


def test_a_classifier_without_coefficients_selects_everybody_or_nobody():
    people = make_lending(1).population
    rates = people.rates_of_linear(np.zeros(5), [0.0, -0.1])
    assert rates["selection_rate"].tolist() == [1.0, 0.0]


def test_the_whole_population_is_its_groups_by_their_shares():
    people = make_lending(1, **UNEVEN).population
    whole = people.rates_of_threshold(0.4)["selection_rate"]
    by_group = [people.rates_of_threshold(0.4, g)["selection_rate"] for g in people.groups]
    assert whole == pytest.approx(np.dot(people.shares, by_group))
    assert people.base_rate() == pytest.approx(np.dot(people.shares, people.base_rates))


# -- what is drawn -----------------------------------------------------------------------------


def test_the_same_seed_draws_the_same_applicants_and_another_seed_others():
    one, two, other = (make_lending(500, random_state=seed) for seed in (7, 7, 8))
    assert one.X.equals(two.X)
    assert one.y.equals(two.y)
    assert one.sensitive_features.equals(two.sensitive_features)
    assert not one.X.equals(other.X)


def test_a_population_draws_what_make_lending_draws():
    one = make_lending(500, random_state=7, **UNEVEN)
    assert one.population.sample(500, 7).X.equals(one.X)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_taken_too_and_move_on(make):
    source = make(3)
    first, second = make_lending(50, source), make_lending(50, source)
    assert first.X.equals(make_lending(50, make(3)).X)
    assert not first.X.equals(second.X)


def test_the_tables_are_those_of_a_data_set():
    data = make_lending(100, random_state=0, noise_features=2)
    assert data.X.columns.tolist() == ["score", "proxy", "noise_1", "noise_2"]
    assert tuple(data.X.columns) == data.population.feature_names
    assert data.y.name == "repaid"
    assert set(data.y) == {0, 1}
    assert data.sensitive_features.columns.tolist() == ["group"]
    assert data.source == "synthetic, make_lending(100, random_state=0)"
    assert repr(data).startswith("<Lending lending: 100 rows, 4 features, ")


def test_the_proxy_tells_the_group_as_strongly_as_asked():
    data = make_lending(100_000, random_state=0, groups=3, proxy_strength=2.0)
    means = data.X["proxy"].groupby(data.sensitive_features["group"]).mean()
    assert means.to_numpy() == pytest.approx([-2.0, 0.0, 2.0], abs=0.03)
    nothing = make_lending(100_000, random_state=0, groups=3, proxy_strength=0.0)
    means = nothing.X["proxy"].groupby(nothing.sensitive_features["group"]).mean()
    assert means.to_numpy() == pytest.approx([0.0, 0.0, 0.0], abs=0.03)


def test_names_can_be_given_to_the_groups_and_one_group_is_enough():
    data = make_lending(200, random_state=0, groups=["east", "west"])
    assert set(data.sensitive_features["group"]) == {"east", "west"}
    alone = make_lending(200, random_state=0, groups=1)
    assert alone.population.base_rates == (0.6,)
    assert set(alone.sensitive_features["group"]) == {"A"}


# -- what makes no sense -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 0}, "n must be 1 or more"),
        ({"groups": 0}, "groups must be from 1 to 26"),
        ({"groups": 27}, "groups must be from 1 to 26"),
        ({"groups": []}, "one or more different names"),
        ({"groups": ["a", "a"]}, "one or more different names"),
        ({"shares": [0.5, 0.4]}, "shares must be positive and sum to 1"),
        ({"shares": [1.0, 0.0]}, "shares must be positive and sum to 1"),
        ({"shares": [1.5, -0.5]}, "shares must be positive and sum to 1"),
        ({"shares": [math.nan, 1.0]}, "shares must be positive and sum to 1"),
        ({"shares": [1.0]}, "shares must be one number, or 2 of them"),
        ({"base_rates": [0.5, 1.0]}, "base_rates must lie strictly between 0 and 1"),
        ({"base_rates": 0.0}, "base_rates must lie strictly between 0 and 1"),
        ({"base_rates": math.nan}, "base_rates must lie strictly between 0 and 1"),
        ({"base_rates": [0.1, 0.2, 0.3]}, "base_rates must be one number, or 2 of them"),
        ({"separations": 0.0}, "separations must be positive"),
        ({"separations": math.inf}, "separations must be positive"),
        ({"shifts": math.inf}, "shifts and proxy_strength must be finite"),
        ({"proxy_strength": math.nan}, "shifts and proxy_strength must be finite"),
        ({"noise_features": -1}, "noise_features must be 0 or more"),
    ],
)
def test_arguments_without_sense_are_refused(arguments, said):
    with pytest.raises(DataError, match=said):
        make_lending(**arguments)


def test_a_population_made_by_hand_needs_a_number_for_each_group():
    with pytest.raises(DataError, match="shifts must hold one number for each"):
        Population(("A", "B"), (0.5, 0.5), (0.5, 0.5), (0.0,), (1.0, 1.0))


def test_questions_without_sense_are_refused():
    people = make_lending(1).population
    with pytest.raises(DataError, match="there is no group 'Z', only A, B"):
        people.rates_of_threshold(0.0, "Z")
    with pytest.raises(DataError, match="coef must hold 5 numbers, for score, proxy, noise_1"):
        people.rates_of_linear([1.0, 2.0])
