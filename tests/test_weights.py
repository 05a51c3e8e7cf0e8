"""The paper's tables, cell by cell, against the code and against rates counted from rows.

``FP`` is the paper's fairness part, ``f(h, g1) - f(h, g2)``, and its ``lambda`` multiplies it.
The library writes the same as the row ``f(g2) - f(g1) <= epsilon`` with that multiplier.
"""

import numpy as np
import pytest

import brute
from brute import bits, problem_of
from omnifair import coefficients, each, gap, overall, ratio
from omnifair.rates import (
    FDR,
    FNR,
    FOR,
    FPR,
    NAMED,
    SP,
    accuracy,
    balanced_accuracy,
    error_cost,
)
from omnifair.weights import (
    Point,
    gains,
    paper_coefficients,
    scaled_cells,
    signed_weights,
    weigh,
)

RANDOM = np.random.default_rng(2)
N = 80
G = RANDOM.choice(["g1", "g2", "neither"], N, p=[0.4, 0.4, 0.2])
Y, H = bits(RANDOM.integers(0, 2, (2, N)))
LAMBDA = 0.17


def count(condition):
    return int(np.sum(condition))


# -- table "Coefficients for different popular group fairness metrics" ---------------------------

# The paper's MR is stated as the accuracy. Its rows FPR, FNR, FOR and FDR have positive
# coefficients and c_0 = 0, so they state the shares of right decisions: 1 - FPR, 1 - FNR,
# 1 - FOR, 1 - FDR. The absolute gap is the same, the sign is not: the appendix derives FOR with
# c_i = -1/|h=0| and c_0 = 1, and the table of weights has the signs of that derivation. Here the
# table is checked as it is printed, and its complements after it.
COEFFICIENTS = {  # metric: (what the printed row computes, c_i of y=0, c_i of y=1, c_0)
    "MR": ("accuracy", lambda y, h: (1 / len(y), 1 / len(y), 0)),
    "SP": ("selection_rate", lambda y, h: (-1 / len(y), 1 / len(y), count(y == 0) / len(y))),
    "FPR": ("true_negative_rate", lambda y, h: (1 / count(y == 0), 0, 0)),
    "FNR": ("true_positive_rate", lambda y, h: (0, 1 / count(y == 1), 0)),
    "FOR": ("negative_predictive_value", lambda y, h: (1 / count(h == 0), 0, 0)),
    "FDR": ("positive_predictive_value", lambda y, h: (0, 1 / count(h == 1), 0)),
}
COMPLEMENTS = {
    "FPR": "false_positive_rate",
    "FNR": "false_negative_rate",
    "FOR": "false_omission_rate",
    "FDR": "false_discovery_rate",
}


def as_the_paper_computes(y, h, negative, positive, constant):
    """``sum of c_i 1(h(x_i) = y_i) + c_0``, row by row."""
    rows = zip(y, h, strict=True)
    return sum((positive if yi else negative) for yi, hi in rows if yi == hi) + constant


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("metric", COEFFICIENTS)
def test_the_papers_table_of_coefficients_holds_cell_by_cell(metric, group):
    name, row = COEFFICIENTS[metric]
    y, h = Y[group == G], H[group == G]
    negative, positive, constant = row(y, h)
    assert as_the_paper_computes(y, h, *row(y, h)) == pytest.approx(brute.rate(name, y, h))
    found = paper_coefficients(NAMED[name], brute.cells(y, h))
    assert found == pytest.approx((constant, negative, positive))


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("metric", COMPLEMENTS)
def test_a_rate_of_mistakes_has_the_tables_coefficients_negated_and_a_constant_of_one(
    metric, group
):
    y, h = Y[group == G], H[group == G]
    negative, positive, _ = COEFFICIENTS[metric][1](y, h)
    computed = as_the_paper_computes(y, h, -negative, -positive, 1)
    assert computed == pytest.approx(brute.rate(COMPLEMENTS[metric], y, h))
    found = paper_coefficients(NAMED[COMPLEMENTS[metric]], brute.cells(y, h))
    assert found == pytest.approx((1, -negative, -positive))


@pytest.mark.parametrize("name", NAMED)
def test_the_papers_coefficients_of_any_rate_compute_that_rate(name):
    constant, negative, positive = paper_coefficients(NAMED[name], brute.cells(Y, H))
    computed = as_the_paper_computes(Y, H, negative, positive, constant)
    assert computed == pytest.approx(brute.rate(name, Y, H))


# -- the appendix --------------------------------------------------------------------------------


def test_the_appendix_on_false_omission_holds():
    predicted_negative = count(H == 0)
    by_hand = 1 - sum(1 / predicted_negative for y, h in zip(Y, H, strict=True) if y == h == 0)
    assert by_hand == pytest.approx(brute.rate("false_omission_rate", Y, H))
    assert paper_coefficients(FOR, brute.cells(Y, H)) == pytest.approx(
        (1, -1 / predicted_negative, 0)
    )


@pytest.mark.parametrize(("fp", "fn"), [(1, 5), (3, 0.5), (0, 1)])
def test_the_appendix_on_the_average_cost_of_error_holds(fp, fn):
    constant = (fp * count(Y == 0) + fn * count(Y == 1)) / N
    negative, positive = -fp / N, -fn / N
    by_hand = as_the_paper_computes(Y, H, negative, positive, constant)
    assert by_hand == pytest.approx(brute.average_cost(Y, H, np.ones(N), fp, fn))
    found = paper_coefficients(error_cost(fp=fp, fn=fn), brute.cells(Y, H))
    assert found == pytest.approx((constant, negative, positive))


# -- table "Weights for popular group fairness metrics" ------------------------------------------

# metric: (rate, weights of y=0 in g1, y=1 in g1, y=0 in g2, y=1 in g2); MR through the accuracy.
WEIGHTS = {
    "MR": (
        accuracy,
        lambda n1, n2, *_: (
            (1 + LAMBDA * N / n1, 1 + LAMBDA * N / n1, 1 - LAMBDA * N / n2, 1 - LAMBDA * N / n2)
        ),
    ),
    "SP": (
        SP,
        lambda n1, n2, *_: (
            (1 - LAMBDA * N / n1, 1 + LAMBDA * N / n1, 1 + LAMBDA * N / n2, 1 - LAMBDA * N / n2)
        ),
    ),
    "FPR": (
        FPR,
        lambda n1, n2, y, h: (
            (1 - LAMBDA * N / count(y["g1"] == 0), 1, 1 + LAMBDA * N / count(y["g2"] == 0), 1)
        ),
    ),
    "FNR": (
        FNR,
        lambda n1, n2, y, h: (
            (1, 1 - LAMBDA * N / count(y["g1"] == 1), 1, 1 + LAMBDA * N / count(y["g2"] == 1))
        ),
    ),
    "FOR": (
        FOR,
        lambda n1, n2, y, h: (
            (1 - LAMBDA * N / count(h["g1"] == 0), 1, 1 + LAMBDA * N / count(h["g2"] == 0), 1)
        ),
    ),
    "FDR": (
        FDR,
        lambda n1, n2, y, h: (
            (1, 1 - LAMBDA * N / count(h["g1"] == 1), 1, 1 + LAMBDA * N / count(h["g2"] == 1))
        ),
    ),
}


def papers_weights(metric):
    """One weight per row from the printed table; 1 for the rows of neither group."""
    y = {g: Y[g == G] for g in ("g1", "g2")}
    h = {g: H[g == G] for g in ("g1", "g2")}
    row = WEIGHTS[metric][1](len(y["g1"]), len(y["g2"]), y, h)
    table = dict(zip([("g1", 0), ("g1", 1), ("g2", 0), ("g2", 1)], row, strict=True))
    return np.array([table.get((g, int(label)), 1.0) for g, label in zip(G, Y, strict=True)])


def two_groups(rate):
    """The problem, and the multipliers that are the paper's ``lambda FP``."""
    problem = problem_of([gap(rate, by="g", only=["g1", "g2"]) <= 0.1], {"g": G}, Y)
    assert problem.structure.row_labels[1].startswith(f"{rate}[g=g2] - {rate}[g=g1]")
    return problem, np.array([0, LAMBDA])


@pytest.mark.parametrize("metric", WEIGHTS)
def test_the_papers_table_of_weights_holds_cell_by_cell(metric):
    problem, multipliers = two_groups(WEIGHTS[metric][0])
    found = signed_weights(problem, multipliers, Point(problem.cells(H), H, fixed=True))
    assert found == pytest.approx(papers_weights(metric))


@pytest.mark.parametrize("metric", ["MR", "SP", "FPR", "FNR"])
def test_the_quotient_rule_gives_the_papers_weights_where_denominators_stay(metric):
    problem, multipliers = two_groups(WEIGHTS[metric][0])
    assert signed_weights(problem, multipliers, Point(problem.cells(H))) == pytest.approx(
        papers_weights(metric)
    )


@pytest.mark.parametrize("metric", ["FOR", "FDR"])
def test_the_quotient_rule_leaves_the_papers_weights_where_denominators_move(metric):
    problem, multipliers = two_groups(WEIGHTS[metric][0])
    found = signed_weights(problem, multipliers, Point(problem.cells(H)))
    assert not np.allclose(found, papers_weights(metric))


@pytest.mark.parametrize("metric", WEIGHTS)
def test_the_papers_weighted_sum_is_accuracy_plus_lambda_times_the_fairness_part(metric):
    """The paper's chain of equations, at the very predictions that weights were taken at."""
    problem, multipliers = two_groups(WEIGHTS[metric][0])
    w = signed_weights(problem, multipliers, Point(problem.cells(H), H, fixed=True))
    name = str(WEIGHTS[metric][0])
    parts, constant = [], 0.0
    for g, sign in (("g1", 1), ("g2", -1)):
        y, h = Y[g == G], H[g == G]
        parts.append(sign * brute.rate(name, y, h))
        constant += sign * paper_coefficients(NAMED[name], brute.cells(y, h))[0]
    left = brute.rate("accuracy", Y, H) + LAMBDA * sum(parts)
    assert w @ (H == Y) / N + LAMBDA * constant == pytest.approx(left)


# -- the derivative of the Lagrangian ------------------------------------------------------------

W = RANDOM.uniform(0.2, 3, N)
AMOUNT = RANDOM.uniform(1, 9, N)


def amount_right(rows):
    return 0.5, rows["amount"] / rows.size


def lagrangian(constraints, objective, multipliers, h):
    """``objective - sum of lambda (A r - b)``, with rates counted from rows."""
    problem = problem_of(constraints, {"g": G, "amount": AMOUNT}, Y, W, objective)
    structure = problem.structure
    rates = []
    for metric in structure.metrics:
        key = structure.groups[metric.group].key
        mask = np.ones(N, dtype=bool) if key is None else key == G
        y, w = Y[mask], W[mask]
        if str(metric.rate) in NAMED:
            rates.append(brute.rate(str(metric.rate), y, h[mask], w))
        else:
            right = (h[mask] == y) * w * AMOUNT[mask]
            rates.append(0.5 + right.sum() / w.sum())
    merit = structure.sense * brute.rate(str(objective), Y, h, W)
    return merit - multipliers @ (structure.matrix @ np.array(rates) - structure.bounds)


FIXED = {
    "gap": [gap(SP, by="g") <= 0.1],
    "ratio": [ratio(FPR, by="g") >= 0.8],
    "each": [each(FNR, by="g") <= 0.3],
    "overall": [overall(SP) >= 0.3],
    "reference": [gap(balanced_accuracy, by="g", reference="g2") <= 0.1],
    "raw": [gap(coefficients(amount_right), by="g") <= 0.1],
    "several": [gap(SP, by="g") <= 0.1, each(FPR, by="g") <= 0.3, overall(accuracy) >= 0.5],
}


@pytest.mark.parametrize("objective", [accuracy, NAMED["error_rate"], balanced_accuracy], ids=str)
@pytest.mark.parametrize("kind", FIXED)
def test_a_gain_is_what_flipping_one_prediction_does_to_the_lagrangian(kind, objective):
    problem = problem_of(FIXED[kind], {"g": G, "amount": AMOUNT}, Y, W, objective)
    multipliers = RANDOM.uniform(0, 0.5, problem.structure.n_rows)
    found = gains(problem, multipliers, Point(problem.cells(H), H))
    for row in range(0, N, 9):
        on, off = H.copy(), H.copy()
        on[row], off[row] = 1, 0
        change = lagrangian(FIXED[kind], objective, multipliers, on) - lagrangian(
            FIXED[kind], objective, multipliers, off
        )
        assert found[row] == pytest.approx(change * W.sum())


@pytest.mark.parametrize("rate", [FDR, FOR, NAMED["positive_predictive_value"]], ids=str)
def test_with_moving_denominators_a_gain_is_the_derivative_at_the_last_model(rate):
    problem = problem_of([gap(rate, by="g") <= 0.1], {"g": G}, Y, W)
    multipliers = RANDOM.uniform(0, 0.5, problem.structure.n_rows)
    found = gains(problem, multipliers, Point(problem.cells(H)))

    def lagrangian_at(cells):
        rates = [cells_rate(str(rate), c) for c in cells[1:]]
        tp, _, _, tn = cells[0]
        return (tp + tn) / W.sum() - multipliers @ (problem.structure.matrix @ rates)

    for row in range(0, N, 9):
        cells = [brute.cells(Y[m], H[m], W[m]) for m in masks_of_row_groups()]
        step = 1e-5 * (np.array([1, 0, -1, 0]) if Y[row] else np.array([0, 1, 0, -1]))
        up = [c + step * m[row] for c, m in zip(cells, masks_of_row_groups(), strict=True)]
        down = [c - step * m[row] for c, m in zip(cells, masks_of_row_groups(), strict=True)]
        slope = (lagrangian_at(up) - lagrangian_at(down)) / 2e-5
        assert found[row] == pytest.approx(slope * W[row] * W.sum(), rel=1e-5)


def masks_of_row_groups():
    return [np.ones(N, dtype=bool), *(g == G for g in ("g1", "g2", "neither"))]


def cells_rate(name, cells):
    tp, fp, fn, tn = cells
    return {
        "false_discovery_rate": lambda: fp / (tp + fp),
        "false_omission_rate": lambda: fn / (fn + tn),
        "positive_predictive_value": lambda: tp / (tp + fp),
    }[name]()


# -- what is handed to the learner ---------------------------------------------------------------


@pytest.mark.parametrize("kind", FIXED)
def test_without_multipliers_labels_and_user_weights_are_handed_on(kind):
    problem = problem_of(FIXED[kind], {"g": G, "amount": AMOUNT}, Y, W)
    weights = weigh(problem, np.zeros(problem.structure.n_rows), Point(problem.cells(H), H))
    assert weights.labels.tolist() == Y.tolist()
    assert weights.values == pytest.approx(W)


def test_a_negative_weight_becomes_the_other_label_with_its_size():
    problem, multipliers = two_groups(SP)
    point = Point(problem.cells(H))
    signed = signed_weights(problem, 9 * multipliers, point)
    weights = weigh(problem, 9 * multipliers, point)
    assert (signed < 0).any()
    assert weights.values == pytest.approx(np.abs(signed))
    assert weights.labels.tolist() == np.where(signed < 0, 1 - Y, Y).tolist()


def test_an_objective_of_costs_weighs_mistakes_by_what_they_cost():
    problem = problem_of([overall(SP) <= 1], {}, Y, objective=error_cost(fp=1, fn=5))
    weights = weigh(problem, np.zeros(1), Point(problem.cells(H)))
    assert weights.labels.tolist() == Y.tolist()
    assert weights.values == pytest.approx(np.where(Y == 1, 5.0, 1.0))


def test_a_row_of_no_gain_keeps_its_label_with_weight_zero():
    problem = problem_of([each(FPR, by="g") >= 0.5], {"g": ["x", "x", "z"]}, [0, 1, 0])
    weights = weigh(problem, [1 / 3, 0], Point(problem.cells(bits([0, 1, 0]))))
    assert weights.labels.tolist() == [0, 1, 0]
    assert weights.values == pytest.approx([0, 1, 1])


def test_an_undefined_rate_moves_no_weight():
    problem = problem_of([gap(FDR, by="g", only=["g1", "g2"]) <= 0.1], {"g": G}, Y)
    nobody = np.zeros(N, dtype=np.int8)
    found = signed_weights(problem, [0.3, 0.1], Point(problem.cells(nobody)))
    assert found.tolist() == [1.0] * N


def test_rows_in_two_groups_take_part_in_both():
    """The paper: ``w_i = 1 + N lambda c_i^{g1} - N lambda c_i^{g2}`` in the overlap."""

    def by(data):
        return {"g1": [0, 1, 2, 3], "g2": [3, 4]}

    y = bits([0, 1, 1, 1, 0, 1])
    problem = problem_of([gap(SP, by=by) <= 0.1], {}, y)
    found = signed_weights(problem, [0, LAMBDA], Point(problem.cells(y)))
    step = 6 * LAMBDA
    expected = [1 - step / 4, *[1 + step / 4] * 2, 1 + step / 4 - step / 2, 1 + step / 2, 1]
    assert found == pytest.approx(expected)


def test_cells_of_another_part_are_scaled_by_group_and_label():
    problem = problem_of([gap(SP, by="g") <= 0.1], {"g": G}, Y, W)
    twice = problem.take(np.repeat(np.arange(N), 2), "every row twice")
    measured = problem.measure(H)
    assert scaled_cells(measured.cells, problem, twice) == pytest.approx(2 * measured.cells)
    half = problem.take(np.flatnonzero(Y == 1), "the positive half")
    cells = scaled_cells(measured.cells, problem, half)
    assert cells[:, [1, 3]].tolist() == [[0, 0]] * 4
    assert cells[:, [0, 2]] == pytest.approx(measured.cells[:, [0, 2]])
