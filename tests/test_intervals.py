"""Bounds of proportions: exact by enumeration of all outcomes, lawful, and tight."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from omnifair.intervals import (
    Pair,
    approximate_upper,
    difference_upper,
    lower_bound,
    mean_quotient_upper,
    parted,
    quotient_lower,
    upper_bound,
)

GRID = np.linspace(0, 1, 81)


def all_outcomes(n_a, n_b, bound):
    return np.array([[bound(Pair(a, n_a, b, n_b)) for b in range(n_b + 1)] for a in range(n_a + 1)])


def coverage(n_a, n_b, right):
    """The smallest chance, over a fine grid of proportions, that the bound is right."""
    worst = 1.0
    for p_a in GRID:
        for p_b in GRID:
            chance = np.outer(
                binom.pmf(range(n_a + 1), n_a, p_a), binom.pmf(range(n_b + 1), n_b, p_b)
            )
            worst = min(worst, chance[right(p_a, p_b)].sum())
    return worst


@pytest.mark.parametrize(
    ("n_a", "n_b", "error"), [(8, 12, 0.05), (13, 13, 0.05), (20, 5, 0.1), (3, 18, 0.05)]
)
def test_the_bound_of_a_difference_is_right_as_often_as_it_says_at_any_proportions(n_a, n_b, error):
    bounds = all_outcomes(n_a, n_b, lambda pair: difference_upper(pair, error, 0.1))
    found = coverage(n_a, n_b, lambda p_a, p_b: bounds >= p_a - p_b - 1e-12)
    assert 1 - error <= found < 1 - error / 2  # right, and not for being wide


@pytest.mark.parametrize(
    ("n_a", "n_b", "error"), [(8, 12, 0.05), (13, 13, 0.05), (20, 5, 0.1), (3, 18, 0.05)]
)
def test_the_bound_of_a_ratio_is_right_as_often_as_it_says_at_any_proportions(n_a, n_b, error):
    bounds = all_outcomes(n_a, n_b, lambda pair: quotient_lower(pair, error, 0.8))
    found = coverage(n_a, n_b, lambda p_a, p_b: bounds * p_a <= p_b + 1e-12)
    assert 1 - error <= found < 1 - error / 2


@pytest.mark.parametrize("limit", [0.02, 0.2])
def test_a_difference_at_its_limit_is_certified_no_more_often_than_it_may_be(limit):
    bounds = all_outcomes(22, 16, lambda pair: difference_upper(pair, 0.05, limit))
    for p_b in np.linspace(0, 1 - limit, 40):
        chance = np.outer(binom.pmf(range(23), 22, p_b + limit), binom.pmf(range(17), 16, p_b))
        assert chance[bounds <= limit].sum() <= 0.05


@pytest.mark.parametrize("n", [300, 3_000, 50_000])
def test_a_bound_of_many_rows_is_near_the_normal_ideal(n):
    random, p = np.random.default_rng(0), 0.3
    drawn = random.binomial(n, [p + 0.05, p], size=(3, 2))
    bounds = [difference_upper(Pair(int(a), n, int(b), n), 0.05, 0.05) for a, b in drawn]
    ideal = 1.6449 * math.sqrt((0.35 * 0.65 + 0.3 * 0.7) / n)
    for (a, b), bound in zip(drawn, bounds, strict=True):
        assert ideal * 0.9 < bound - (a - b) / n < 1.1 * ideal + 1 / n


counts = st.integers(1, 60)


@st.composite
def pairs(draw):
    n_a, n_b = draw(counts), draw(counts)
    return Pair(draw(st.integers(0, n_a)), n_a, draw(st.integers(0, n_b)), n_b)


@given(pairs())
def test_more_hits_of_a_never_lower_a_bound_and_more_of_b_never_raise_it(pair):
    bound, precision = difference_upper(pair, 0.05), 5e-3
    if pair.hits_a < pair.count_a:
        more = Pair(pair.hits_a + 1, pair.count_a, pair.hits_b, pair.count_b)
        assert difference_upper(more, 0.05) >= bound - precision
    if pair.hits_b < pair.count_b:
        more = Pair(pair.hits_a, pair.count_a, pair.hits_b + 1, pair.count_b)
        assert difference_upper(more, 0.05) <= bound + precision


@given(pairs())
def test_a_bound_is_on_its_side_of_the_estimate_and_misses_turned_round_say_the_same(pair):
    seen = pair.hits_a / pair.count_a - pair.hits_b / pair.count_b
    bound = difference_upper(pair, 0.05)
    assert seen <= bound <= 1
    # Counting misses: (1 - p_b) - (1 - p_a) is the same difference.
    turned = Pair(
        pair.count_b - pair.hits_b, pair.count_b, pair.count_a - pair.hits_a, pair.count_a
    )
    assert difference_upper(turned, 0.05) == pytest.approx(bound, abs=8e-3)
    assert -difference_upper(pair.swapped, 0.05) <= seen


@given(pairs(), st.floats(0.001, 0.4))
def test_less_error_widens_a_bound(pair, error):
    assert difference_upper(pair, error / 2) >= difference_upper(pair, error) - 5e-3


@given(pairs(), st.floats(0.01, 0.99))
def test_what_is_tried_first_does_not_depend_on_the_precision(pair, limit):
    bound = difference_upper(pair, 0.05, limit)
    again = difference_upper(pair, 0.05)
    if abs(again - limit) > 0.01:
        assert (bound <= limit) == (again <= limit)
    assert difference_upper(pair, 0.05, least=bound + 0.1) <= max(bound + 0.1, 1.0)


@given(pairs())
def test_the_order_of_outcomes_rises_with_a_and_falls_with_b(pair):
    a, b = np.arange(pair.count_a + 1), np.arange(pair.count_b + 1)
    table = approximate_upper(a[:, None], b[None, :], pair, 0.8, 1.645)
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) < 0).all()


def test_single_proportions_have_the_bounds_of_clopper_and_pearson():
    for hits, trials in ((0, 7), (3, 7), (7, 7), (120, 4_000)):
        exact = binomtest(hits, trials).proportion_ci(0.9, method="exact")
        assert lower_bound(hits, trials, 0.05) == pytest.approx(exact.low)
        assert upper_bound(hits, trials, 0.05) == pytest.approx(exact.high)


@given(st.floats(0.001, 0.2), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_error_is_parted_without_rest_and_more_of_it_goes_where_rows_are_few(error, a, b):
    one, other = parted(error, a, b)
    assert one + other == pytest.approx(error)
    assert min(one, other) > 0
    if a > 2 * b:
        assert one <= other + 1e-12


def test_betting_on_means_is_right_as_often_as_it_says():
    random, right = np.random.default_rng(0), 0
    values, weights = np.array([0.0, 1.0, 5.0]), np.array([0.5, 2.0])
    truth = 0.2 * 1 + 0.1 * 5
    for _ in range(300):
        v, w = random.choice(values, 80, p=[0.7, 0.2, 0.1]), random.choice(weights, 80)
        largest = (np.array([0.0, 10.0]), np.array([2.0, 2.0]))
        right += mean_quotient_upper(v * w, w, np.ones(80), largest, 0.1) >= truth
    assert right >= 270


def test_betting_on_a_proportion_comes_near_the_exact_bound():
    n, hits = 2_000, 600
    rows = np.array([0.0, 1.0]), np.ones(2), np.array([n - hits, hits])
    found = mean_quotient_upper(*rows, (np.array([0.0, 1.0]), np.ones(2)), 0.05)
    exact = float(upper_bound(hits, n, 0.05))
    assert exact < found < 0.3 + 2 * (exact - 0.3)
