import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import brute
from omnifair import coefficients
from omnifair.errors import DeclarationError
from omnifair.language import parse_rate
from omnifair.rates import (
    ALIASES,
    FN,
    FP,
    FPR,
    NAMED,
    TN,
    TP,
    Count,
    GroupRows,
    Rate,
    accuracy,
    error_cost,
    false_positive_rate,
    selection_rate,
)

RANDOM = np.random.default_rng(0)
Y, H = RANDOM.integers(0, 2, (2, 40))
W = RANDOM.uniform(0.1, 3, 40)
CELLS = brute.cells(Y, H, W)

CUSTOM = [
    1 - FP / (FP + TN),
    FPR + selection_rate,
    selection_rate - 2 * FPR,
    (TP - FP) / (TP + FP + FN + TN),
    -FP / (FP + TN),
    FP / TP,
    2.5 * FP / (TP + 0.125 * FP),
    error_cost(fp=1, fn=5),
    error_cost(fp=0, fn=0.25),
    TP / (TP + FN) / 3 + 1e-7 * TN / (FP + TN),
    FP / (FP + TN) + 0.1,
]
ALL_RATES = [*NAMED.values(), *CUSTOM]


# -- what rates are ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_a_named_rate_is_the_share_counted_from_rows(name, weights):
    found = NAMED[name].value(brute.cells(Y, H, weights))
    assert found == pytest.approx(brute.rate(name, Y, H, weights))


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("SP", "selection_rate"),
        ("FPR", "false_positive_rate"),
        ("FNR", "false_negative_rate"),
        ("FOR", "false_omission_rate"),
        ("FDR", "false_discovery_rate"),
        ("MR", "error_rate"),
    ],
)
def test_the_papers_abbreviations_name_the_same_rates(alias, name):
    assert ALIASES[alias] == NAMED[name]


def test_error_cost_is_the_average_cost_counted_from_rows():
    cost = error_cost(fp=1.5, fn=4)
    assert cost.value(CELLS) == pytest.approx(brute.average_cost(Y, H, W, fp=1.5, fn=4))


def test_error_cost_of_ones_is_the_error_rate():
    assert error_cost() == NAMED["error_rate"]


@pytest.mark.parametrize("name", ["false_discovery_rate", "true_positive_rate"])
def test_a_rate_over_no_rows_is_nan_without_a_warning(name):
    assert math.isnan(NAMED[name].value([0.0, 0.0, 0.0, 5.0]))


def test_cells_of_many_groups_are_valued_at_once():
    both = np.stack([CELLS, CELLS[::-1]])
    found = false_positive_rate.value(both)
    assert found.tolist() == [false_positive_rate.value(c) for c in both]


# -- algebra -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "weights"),
    [
        (TP + FP, (1, 1, 0, 0)),
        (TP - FN, (1, 0, -1, 0)),
        (5 * FN, (0, 0, 5, 0)),
        (FN * 5 / 2, (0, 0, 2.5, 0)),
        (-(TP + TN), (-1, 0, 0, -1)),
        (np.float64(2) * TN, (0, 0, 0, 2)),
        (Fraction(1, 2) * TN, (0, 0, 0, 0.5)),
    ],
    ids=str,
)
def test_counts_add_up_cells(count, weights):
    assert count.weights == weights


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ((FP + TP) / (TN + FN + FP + TP), selection_rate),
        (1 - FP / (FP + TN), TN / (FP + TN)),
        (FP / (FP + TN) + 0, FPR),
        (np.float64(1) - FPR, TN / (FP + TN)),
        (FPR + accuracy, accuracy + FPR),
        (2 * FPR / 2, FPR),
        ((TP + FP + FN + TN) * 0 + FP, FP),
        (TP / (TP + FN + FP + TN) / selection_rate, TP / (TP + FP)),
    ],
    ids=str,
)
def test_rates_that_are_the_same_quotients_are_equal_and_hash_the_same(written, same):
    assert written == same
    assert hash(written) == hash(same)


def test_sums_and_multiples_of_rates_have_the_values_of_their_parts():
    rate = 2 * FPR - selection_rate / 4 + 0.5
    parts = 2 * FPR.value(CELLS) - selection_rate.value(CELLS) / 4 + 0.5
    assert rate.value(CELLS) == pytest.approx(parts)


@pytest.mark.parametrize("rate", ALL_RATES, ids=str)
def test_a_rate_as_text_reads_back_as_the_same_rate(rate):
    assert parse_rate(str(rate)) == rate


@pytest.mark.parametrize("rate", ALL_RATES, ids=str)
def test_a_rate_can_be_pickled(rate):
    assert pickle.loads(pickle.dumps(rate)) == rate


# -- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "a rate times a rate": (lambda: FPR * accuracy, "cannot be multiplied"),
    "a count times a count": (lambda: TP * FP, "cannot be multiplied"),
    "a count plus a number": (lambda: TP + 1, "cells add to cells"),
    "a number plus a count": (lambda: 1 - TP, "cells add to cells"),
    "a count plus True": (lambda: TP + True, "cells add to cells"),
    "sum() over counts": (lambda: sum([TP, FP]), "cells add to cells"),
    "a rate plus a count": (lambda: FPR + TP, "a rate and a count"),
    "a rate minus a count": (lambda: FPR - TP, "a rate and a count"),
    "a count over a rate": (lambda: TP / FPR, "cannot be divided by a rate"),
    "a number over a count": (lambda: 1 / TP, "cells on both sides"),
    "a number over a rate": (lambda: 1 / FPR, "cannot be divided by a rate"),
    "rates of two denominators": (lambda: FPR / accuracy, r"ratio\(rate, by="),
    "a denominator of 0": (lambda: TP / (FP - FP), "must add up cells"),
    "a negative denominator": (lambda: TP / (FP - TN), "must add up cells"),
    "a rate that is 0": (lambda: (TP - TP) / (TP + FP), "0 whatever"),
    "a count over 0": (lambda: TP / 0, "must not be 0"),
    "a rate over 0": (lambda: FPR / 0, "must not be 0"),
    "a rate times NaN": (lambda: FPR * math.nan, "must be finite"),
    "a count times infinity": (lambda: TP * math.inf, "must be finite"),
    "a rate plus NaN": (lambda: FPR + math.nan, "must be finite"),
    "a number beyond the floats": (lambda: TP * 10**400, "must be finite"),
    "a sum beyond the floats": (lambda: 1e308 * TP + 1e308 * TP, "must be finite"),
    "a product beyond the floats": (lambda: 1e300 * TP * 1e300, "must be finite"),
    "a rate times True": (lambda: FPR * True, "plain number"),
    "a rate plus True": (lambda: FPR + True, "plain number"),
    "a count times text": (lambda: TP * "2", "plain number"),
    "a count times an array": (lambda: TP * np.array([1, 2]), "plain number"),
    "an array times a count": (lambda: np.array([1, 2]) * TP, "plain number"),
    "an array plus a count": (lambda: np.array([1, 2]) + TP, "cells add to cells"),
    "an array times a rate": (lambda: np.array([1.0]) * FPR, "plain number"),
    "a bounded rate": (lambda: FPR <= 0.1, "over which groups"),
    "a bounded count": (lambda: TP >= 3, "over which groups"),
    "NumPy's bound on a rate": (lambda: np.float64(0.1) >= FPR, "over which groups"),
    "a strict bound": (lambda: FPR < 0.1, "use '<='"),
    "a strict bound the other way": (lambda: FPR > 0.1, "use '>='"),
    "a chained comparison": (lambda: 0.1 <= FPR <= 0.2, "over which groups"),
    "the truth of a rate": (lambda: bool(FPR), "no truth value"),
    "the truth of a count": (lambda: TP and FP, "no truth value"),
    "a negative cost": (lambda: error_cost(fp=-1), "must be positive"),
    "no cost at all": (lambda: error_cost(fp=0, fn=0), "must be positive"),
    "a cost of True": (lambda: error_cost(fp=True), "plain number"),
    "a cell of infinite weight": (lambda: Count(TP=math.inf), "must be finite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_a_rate_is_refused_with_advice(case):
    build, words = REFUSED[case]
    with pytest.raises(DeclarationError, match=words):
        build()


@pytest.mark.parametrize(
    "build",
    [lambda: FPR + "a", lambda: FPR - None, lambda: TP - "a", lambda: np.ones(2) - FPR],
)
def test_what_cannot_be_added_to_a_rate_is_a_type_error(build):
    with pytest.raises(TypeError):
        build()


# -- derivatives and what is known without data --------------------------------------------------


@pytest.mark.parametrize("rate", ALL_RATES, ids=str)
def test_slopes_are_the_derivative_of_moving_weight_to_predicted_positive(rate):
    step = 1e-6 * np.array([[0, 1, 0, -1], [1, 0, -1, 0]])  # of label 0, of label 1
    differences = (rate.value(CELLS + step) - rate.value(CELLS - step)) / 2e-6
    assert rate.slopes(CELLS) == pytest.approx(differences, abs=1e-6)


@pytest.mark.parametrize("name", [n for n, r in NAMED.items() if not r.depends_on_predictions])
@pytest.mark.parametrize("label", [0, 1])
def test_the_slope_is_exactly_what_flipping_one_row_changes(name, label):
    row = np.flatnonzero(np.equal(Y, label) & (H == 0))[0]
    flipped = H.copy()
    flipped[row] = 1
    change = brute.rate(name, Y, flipped, W) - brute.rate(name, Y, H, W)
    assert NAMED[name].slopes(CELLS)[label] * W[row] == pytest.approx(change)


def test_slopes_are_nan_where_the_rate_is_undefined():
    assert np.isnan(NAMED["false_discovery_rate"].slopes([0.0, 0.0, 1.0, 2.0])).all()


@pytest.mark.parametrize("rate", ALL_RATES, ids=str)
def test_a_rate_depends_on_predictions_when_a_denominator_moves_with_them(rate):
    def denominators(h):
        return [t.denominator.value(brute.cells(Y, h, W)) for t in rate.terms]

    moved = not np.allclose(denominators(H), denominators(1 - Y))
    assert rate.depends_on_predictions == moved


@pytest.mark.parametrize("rate", ALL_RATES, ids=str)
def test_no_cells_take_a_rate_out_of_its_range(rate):
    values = rate.value(RANDOM.exponential(size=(2000, 4)) ** 3)
    low, high = rate.range
    assert low - 1e-12 <= values.min()
    assert values.max() <= high + 1e-12


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (accuracy, (0, 1)),
        (error_cost(fp=1, fn=5), (0, 5)),
        (FP / TP, (0, math.inf)),
        ((TP - FP) / (TP + FP), (-1, 1)),
        ((TP - FP) / (TP + FN), (-math.inf, 1)),
        (FPR + accuracy, (0, 2)),
    ],
    ids=str,
)
def test_the_range_of_a_rate_follows_from_its_cells(rate, expected):
    assert rate.range == expected


@pytest.mark.parametrize("rate", ALL_RATES, ids=str)
def test_the_sense_says_what_turning_mistakes_right_does(rate):
    changes = set()
    for tp, fp, fn, tn in RANDOM.integers(1, 9, (500, 4)).astype(float):
        before = rate.value([tp, fp, fn, tn])
        for right in ([tp, fp - 1, fn, tn + 1], [tp + 1, fp, fn - 1, tn]):
            change = rate.value(right) - before
            changes |= {np.sign(change)} if abs(change) > 1e-12 else set()
    seen = changes.pop() if len(changes) == 1 else 0
    # A sum of quotients is judged term by term: it may stay unsettled, but is never wrong.
    assert rate.sense == seen or (len(rate.terms) > 1 and rate.sense == 0)


# -- the raw interface ---------------------------------------------------------------------------


def group_rows(labels=(0, 1, 1), weights=(1.0, 2.0, 3.0), **columns):
    return GroupRows(
        np.array(labels, dtype=np.int8), np.array(weights), lambda n: np.asarray(columns[n])
    )


def test_group_rows_count_weights_and_find_columns():
    rows = group_rows(amount=[7, 8, 9])
    assert (rows.size, rows.positives, rows.negatives) == (6, 5, 1)
    assert rows["amount"].tolist() == [7, 8, 9]


def of_labels(rows):
    return 0.5, rows.labels / rows.size


def of_predictions(rows, predictions):
    return 0, 1 / predictions.sum()


def test_a_function_of_one_argument_gets_the_rows_only():
    raw = coefficients(of_labels)
    constant, per_row = raw.of(group_rows(), None)
    assert (constant, per_row.tolist()) == (0.5, [0, 1 / 6, 1 / 6])
    assert not raw.depends_on_predictions


def test_a_function_of_two_arguments_gets_the_predictions_too():
    raw = coefficients(of_predictions)
    constant, per_row = raw.of(group_rows(), np.array([0, 1, 1], dtype=np.int8))
    assert (constant, per_row.tolist()) == (0, [0.5, 0.5, 0.5])
    assert raw.depends_on_predictions


def test_an_argument_with_a_default_does_not_ask_for_predictions():
    assert not coefficients(lambda rows, scale=2: (0, scale)).depends_on_predictions


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ([0, 1], "must return the pair"),
        ((0, 1, 2), "must return the pair"),
        (None, "must return the pair"),
        (("0", 1), "c_0"),
        ((math.nan, 1), "c_0"),
        ((True, 1), "c_0"),
        ((0, [1, 2]), r"one per row of the group \(3\)"),
        ((0, [[1, 2, 3]]), "one per row"),
        ((0, [1, 2, math.nan]), "not finite"),
        ((0, math.inf), "not finite"),
    ],
)
def test_wrong_coefficients_are_refused_with_what_to_return(returned, words):
    with pytest.raises(DeclarationError, match=words):
        coefficients(lambda rows: returned).of(group_rows(), None)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (3, "takes a function"),
        ("accuracy", "takes a function"),
        (lambda: (0, 0), "takes 0 arguments"),
        (lambda a, b, c: (0, 0), "takes 3 arguments"),
    ],
)
def test_what_cannot_give_coefficients_is_refused_at_once(function, words):
    with pytest.raises(DeclarationError, match=words):
        coefficients(function)


def test_a_named_function_of_coefficients_can_be_pickled():
    raw = coefficients(of_labels)
    assert pickle.loads(pickle.dumps(raw)) == raw


def test_every_named_rate_is_a_rate_and_prints_its_name():
    assert all(isinstance(rate, Rate) and str(rate) == name for name, rate in NAMED.items())
