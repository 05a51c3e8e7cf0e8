import math

import numpy as np
import pandas as pd
import pytest

import brute
from brute import bits, problem_of
from omnifair import coefficients, each, gap, groups, overall, ratio
from omnifair.errors import DeclarationError, GroupError, UndefinedRateError
from omnifair.frames import Frame
from omnifair.problem import bind, bind_like, check_objective
from omnifair.rates import (
    FDR,
    FNR,
    FPR,
    NAMED,
    SP,
    accuracy,
    balanced_accuracy,
    error_cost,
    selection_rate,
)

RANDOM = np.random.default_rng(1)
N = 200
RACE = RANDOM.choice(["a", "b", "c"], N)
SEX = RANDOM.choice(["f", "m"], N)
AGE = RANDOM.integers(18, 80, N)
Y, H = bits(RANDOM.integers(0, 2, (2, N)))
W = RANDOM.uniform(0.2, 2, N)
PEOPLE = {"race": RACE, "sex": SEX, "age": AGE}


def rates_by_hand(name, masks):
    return [brute.rate(name, Y[m], H[m], W[m]) for m in masks]


def race(keys="abc"):
    return [key == RACE for key in keys]


def rows_of(problem):
    """Each linear row as ``({group: factor}, bound)``."""
    structure = problem.structure
    labels = [structure.groups[m.group].label for m in structure.metrics]
    dense = structure.matrix.toarray()
    return [
        ({labels[j]: dense[k, j] for j in np.flatnonzero(dense[k])}, structure.bounds[k])
        for k in range(structure.n_rows)
    ]


# -- constraints as linear rows ------------------------------------------------------------------

A, B, C = "race=a", "race=b", "race=c"


@pytest.mark.parametrize(
    ("constraint", "rows"),
    [
        (
            gap(SP, by="race") <= 0.1,
            [({p: 1, q: -1}, 0.1) for p in (A, B, C) for q in (A, B, C) if p != q],
        ),
        (
            gap(SP, by="race", only=["c", "a"]) <= 0.1,
            [({A: 1, C: -1}, 0.1), ({C: 1, A: -1}, 0.1)],
        ),
        (
            gap(SP, by="race", reference="b") <= 0.1,
            [({p: 1, q: -1}, 0.1) for p, q in ((A, B), (B, A), (C, B), (B, C))],
        ),
        (
            ratio(SP, by="race", only=["a", "b"]) >= 0.8,
            [({A: 0.8, B: -1}, 0), ({B: 0.8, A: -1}, 0)],
        ),
        (
            ratio(SP, by="race", reference="c", only=["a", "c"]) >= 0.75,
            [({A: 0.75, C: -1}, 0), ({C: 0.75, A: -1}, 0)],
        ),
        (each(SP, by="race") <= 0.4, [({A: 1}, 0.4), ({B: 1}, 0.4), ({C: 1}, 0.4)]),
        (each(SP, by="race", only=["b"]) >= 0.4, [({B: -1}, -0.4)]),
        (overall(SP) <= 0.4, [({"everybody": 1}, 0.4)]),
        (overall(SP) >= 0.4, [({"everybody": -1}, -0.4)]),
    ],
    ids=str,
)
def test_a_constraint_is_the_linear_rows_that_its_words_say(constraint, rows):
    assert rows_of(problem_of([constraint], PEOPLE, Y)) == rows


def test_rows_read_like_the_inequalities_they_are():
    labels = problem_of(
        [ratio(SP, by="sex") >= 0.8, overall(SP) >= 0.1], PEOPLE, Y
    ).structure.row_labels
    assert labels[0] == "0.8 * selection_rate[sex=f] - selection_rate[sex=m] <= 0"
    assert labels[2] == "-selection_rate[everybody] <= -0.1"


def test_every_row_knows_the_constraint_it_belongs_to():
    constraints = [gap(SP, by="race") <= 0.1, overall(FPR) <= 0.5, each(FNR, by="sex") <= 0.6]
    assert problem_of(constraints, PEOPLE, Y).structure.owner.tolist() == [0] * 6 + [1] + [2] * 2


def test_constraints_that_ask_for_the_same_rates_share_them():
    constraints = [
        gap(SP, by="race") <= 0.1,
        each(selection_rate, by="race") >= 0.2,
        gap(SP, by="race", reference="a") <= 0.05,
        gap(FPR, by="race") <= 0.1,
    ]
    structure = problem_of(constraints, PEOPLE, Y).structure
    assert len(structure.groups) == 1 + 3
    assert len(structure.metrics) == 2 * 3
    assert structure.metrics_of[0] == structure.metrics_of[1] == structure.metrics_of[2]


# -- measuring -----------------------------------------------------------------------------------

OVERLAP = groups(young="age < 40", women="sex == 'f'", rest="age >= 40")
MANY = [
    gap(SP, by="race") <= 0.1,
    ratio(FPR, by=["race", "sex"]) >= 0.8,
    each(FDR, by=OVERLAP) <= 0.3,
    each(accuracy, by="sex") >= 0.7,
    overall(error_cost(fp=1, fn=5)) <= 0.9,
    gap(balanced_accuracy, by="race", reference="b") <= 0.1,
    ratio(SP, by="race", reference="c") >= 0.9,
]


def many_by_hand():
    crossed = [(r == RACE) & (s == SEX) for r in "abc" for s in "fm"]
    overlapping = [AGE < 40, SEX == "f", AGE >= 40]
    sp, fpr = rates_by_hand("selection_rate", race()), rates_by_hand("false_positive_rate", crossed)
    balanced = rates_by_hand("balanced_accuracy", race())
    return [
        max(sp) - min(sp),
        min(fpr) / max(fpr),
        max(rates_by_hand("false_discovery_rate", overlapping)),
        min(rates_by_hand("accuracy", [SEX == "f", SEX == "m"])),
        brute.average_cost(Y, H, W, fp=1, fn=5),
        max(abs(b - balanced[1]) for b in balanced),
        min(min(v, sp[2]) / max(v, sp[2]) for v in sp),
    ]


def test_measures_over_many_groupings_at_once_are_those_counted_from_rows():
    measured = problem_of(MANY, PEOPLE, Y, W).measure(H)
    assert measured.measures == pytest.approx(many_by_hand())
    assert measured.objective == pytest.approx(brute.rate("accuracy", Y, H, W))


@pytest.mark.parametrize("constraint", MANY, ids=str)
def test_a_constraint_is_measured_the_same_alone_and_among_others(constraint):
    position = MANY.index(constraint)
    alone = problem_of([constraint], PEOPLE, Y, W).measure(H).measures
    assert alone == pytest.approx([many_by_hand()[position]])


@pytest.mark.parametrize("name", NAMED)
def test_cells_and_rates_of_overlapping_groups_are_those_counted_from_rows(name):
    measured = problem_of([each(NAMED[name], by=OVERLAP) <= 1], PEOPLE, Y, W).measure(H)
    masks = [AGE < 40, SEX == "f", AGE >= 40]
    everybody = np.ones(N, dtype=bool)
    cells = [brute.cells(Y[m], H[m], W[m]) for m in (everybody, *masks)]
    assert measured.cells == pytest.approx(np.array(cells))
    assert measured.rates == pytest.approx(rates_by_hand(name, masks))


def test_fairlearn_counts_the_same_rates():
    metrics = pytest.importorskip("fairlearn.metrics", reason="fairlearn is not installed")
    theirs = {
        "selection_rate": metrics.selection_rate,
        "true_positive_rate": metrics.true_positive_rate,
        "false_positive_rate": metrics.false_positive_rate,
        "true_negative_rate": metrics.true_negative_rate,
        "false_negative_rate": metrics.false_negative_rate,
    }
    frame = metrics.MetricFrame(
        metrics=theirs,
        y_true=Y,
        y_pred=H,
        sensitive_features=RACE,
        sample_params={name: {"sample_weight": W} for name in theirs},
    )
    for name in theirs:
        rate = NAMED[name]
        problem = problem_of([gap(rate, by="race") <= 1, ratio(rate, by="race") >= 0], PEOPLE, Y, W)
        measured = problem.measure(H)
        assert measured.rates == pytest.approx(frame.by_group[name].to_numpy(dtype=float))
        assert measured.measures[0] == pytest.approx(frame.difference()[name])
        assert measured.measures[1] == pytest.approx(frame.ratio()[name])


@pytest.mark.parametrize("slack", [-0.01, 0.0, 0.01])
@pytest.mark.parametrize("position", range(len(MANY)))
def test_a_constraint_is_satisfied_when_its_measure_keeps_its_bound(position, slack):
    measure, value = MANY[position].measure, many_by_hand()[position]
    if MANY[position].sense == "<=":
        constraint = measure <= value + slack
    else:
        constraint = measure >= value - slack
    measured = problem_of([constraint], PEOPLE, Y, W).measure(H)
    assert measured.satisfied == (slack >= 0)
    assert (measured.worst <= 1e-9) == (slack >= 0)


def test_equal_rates_have_ratio_one_even_when_all_are_zero():
    nobody = np.zeros(N, dtype=np.int8)
    measured = problem_of([ratio(SP, by="race") >= 0.8], PEOPLE, Y).measure(nobody)
    assert (measured.measures, measured.satisfied) == ((1.0,), True)


def test_a_ratio_to_a_zero_rate_is_zero():
    only_a = bits(RACE == "a")
    measured = problem_of([ratio(SP, by="race") >= 0.8], PEOPLE, Y).measure(only_a)
    assert (measured.measures, measured.satisfied) == ((0.0,), False)


@pytest.mark.parametrize("constraint", [gap(FDR, by="race") <= 1, each(FDR, by="race") >= 0])
def test_a_rate_that_is_undefined_meets_nothing(constraint):
    no_b = H * bits(RACE != "b")
    measured = problem_of([constraint], PEOPLE, Y).measure(no_b)
    assert math.isnan(measured.measures[0])
    assert not measured.satisfied
    assert measured.worst == math.inf


@pytest.mark.parametrize(
    ("objective", "sense"), [(accuracy, 1), (error_cost(fp=1, fn=5), -1), (balanced_accuracy, 1)]
)
def test_merit_is_the_objective_signed_so_that_more_is_better(objective, sense):
    measured = problem_of([overall(SP) <= 1], PEOPLE, Y, W, objective).measure(H)
    assert measured.merit == sense * measured.objective


def test_an_objective_that_right_decisions_both_raise_and_lower_is_refused():
    with pytest.raises(DeclarationError, match="whether it should be large or small"):
        check_objective(selection_rate)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1000.0])
def test_the_unit_of_weights_changes_no_standard_error(unit):
    constraints = [gap(SP, by="race") <= 0.1, each(FDR, by="sex") <= 0.2, overall(FNR) <= 0.3]
    one, other = (problem_of(constraints, PEOPLE, Y, W * c) for c in (1.0, unit))
    errors = one.spread(one.measure(H))
    assert np.all(errors > 0)
    assert other.spread(other.measure(H)) == pytest.approx(errors)


def test_equal_weights_of_any_size_give_the_standard_error_of_the_rows_as_they_are():
    problem = problem_of([overall(SP) <= 0.5], PEOPLE, Y, np.full(N, 7.0))
    rate = H.mean()
    assert problem.spread(problem.measure(H)) == pytest.approx([math.sqrt(rate * (1 - rate) / N)])


def test_a_row_of_weight_three_measures_like_three_rows_and_tells_less():
    # Whether rows of a weight are many people or one is unknown: the error is not understated.
    weights = np.where(np.arange(N) % 2, 3.0, 1.0)
    copies = np.repeat(np.arange(N), weights.astype(int))
    weighted = problem_of([overall(SP) <= 0.5], PEOPLE, Y, weights)
    people = {name: values[copies] for name, values in PEOPLE.items()}
    copied = problem_of([overall(SP) <= 0.5], people, Y[copies])
    seen, twin = weighted.measure(H), copied.measure(H[copies])
    assert seen.rates == pytest.approx(twin.rates)
    rate, effective = float(seen.rates[0]), weights.sum() ** 2 / (weights**2).sum()
    assert weighted.spread(seen) == pytest.approx([math.sqrt(rate * (1 - rate) / effective)])
    assert np.all(weighted.spread(seen) > copied.spread(twin))


# -- raw coefficients ----------------------------------------------------------------------------

AMOUNT = RANDOM.uniform(1, 9, N)


def money_refused(rows):
    owed = rows["amount"] * rows.labels
    return owed @ rows.weights / rows.size, -owed / rows.size


def precision(rows, predictions):
    return 0, rows.labels / (predictions @ rows.weights)


def money_by_hand(mask):
    refused = mask & (Y == 1) & (H == 0)
    return sum(AMOUNT[refused] * W[refused]) / sum(W[mask])


@pytest.mark.parametrize("X", [pd.DataFrame({"amount": AMOUNT}), {"amount": AMOUNT}])
@pytest.mark.parametrize("features", [{"race": RACE}, RACE, RACE.tolist()])
def test_raw_coefficients_measure_amounts_in_the_columns(features, X):
    problem = problem_of([gap(coefficients(money_refused), by="race") <= 1], features, Y, W, X=X)
    assert problem.measure(H).rates == pytest.approx([money_by_hand(m) for m in race()])


def test_raw_coefficients_may_ask_for_predictions():
    measured = problem_of([each(coefficients(precision), by="race") >= 0], PEOPLE, Y, W).measure(H)
    assert measured.rates == pytest.approx(rates_by_hand("positive_predictive_value", race()))


def test_raw_coefficients_see_their_own_rows_after_a_split():
    data = {"race": RACE, "amount": AMOUNT}
    problem = problem_of([overall(coefficients(money_refused)) <= 9], data, Y, W)
    rows = RANDOM.permutation(N)[:25]
    part = problem.take(rows[:20], "a part").take(np.arange(3, 15), "a part of it")
    mask = np.isin(np.arange(N), rows[3:15])
    assert part.measure(H[rows[3:15]]).rates == pytest.approx([money_by_hand(mask)])


@pytest.mark.parametrize("reference", [None, "a"])
def test_a_ratio_of_negative_raw_metrics_is_undefined(reference):
    def negative(rows):
        return -1, 0

    constraint = ratio(coefficients(negative), by="race", reference=reference) >= 0.8
    measured = problem_of([constraint], PEOPLE, Y).measure(H)
    assert math.isnan(measured.measures[0])
    assert not measured.satisfied


# -- parts of the data ---------------------------------------------------------------------------


def test_some_rows_of_a_problem_measure_like_a_problem_of_those_rows():
    rows = RANDOM.permutation(N)[:50]
    part = problem_of(MANY, PEOPLE, Y, W).take(rows, "the part")
    alone = problem_of(MANY, {k: v[rows] for k, v in PEOPLE.items()}, Y[rows], W[rows])
    assert part.measure(H[rows]).measures == pytest.approx(alone.measure(H[rows]).measures)
    assert len(part) == 50
    assert part.label_mass == pytest.approx(alone.label_mass)


def like(problem, columns, y, part="the validation set"):
    return bind_like(problem, Frame(columns, None, len(y)), bits(y), np.ones(len(y)), part)


def test_other_data_bind_to_the_same_rows():
    constraints = [gap(SP, by="race") <= 0.1, each(FPR, by="sex") <= 0.2]
    problem = problem_of(constraints, PEOPLE, Y)
    turned = like(problem, {k: v[::-1] for k, v in PEOPLE.items()}, Y[::-1])
    assert turned.structure.row_labels == problem.structure.row_labels
    assert turned.measure(H[::-1]).rates == pytest.approx(problem.measure(H).rates)


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        (["a", "b", "c"], ["a", "b", "b"], "'race=c' has no rows in the validation set"),
        (["a", "b", "b"], ["a", "b", "c"], "'race=c' has no rows in the data"),
    ],
)
def test_a_group_on_one_side_only_is_refused_with_the_side_that_lacks_it(there, here, words):
    problem = problem_of([gap(SP, by="race") <= 0.1], {"race": there}, [0, 1, 1])
    with pytest.raises(GroupError, match=words):
        like(problem, {"race": here}, [0, 1, 1])


def in_order_of_appearance(data):
    return {key: np.flatnonzero(data["race"] == key) for key in dict.fromkeys(data["race"])}


def test_groups_that_a_function_lists_in_another_order_keep_their_rows():
    by = in_order_of_appearance
    problem = problem_of([each(SP, by=by) <= 0.5], {"race": np.array(["b", "a", "a"])}, [0, 1, 1])
    other = like(problem, {"race": np.array(["a", "b", "b", "b"])}, [0, 1, 1, 1])
    assert other.structure.row_labels == problem.structure.row_labels
    assert other.measure(bits([1, 0, 0, 1])).rates == pytest.approx([1 / 3, 1])  # b, then a


def test_a_gap_over_one_group_is_refused():
    with pytest.raises(GroupError, match="only one group, 'race=a'"):
        problem_of([gap(SP, by="race") <= 0.1], {"race": ["a", "a"]}, [0, 1])


def test_an_unknown_reference_is_refused_with_the_groups_there():
    with pytest.raises(GroupError, match="no group 'z'; the groups there: 'a', 'b', 'c'"):
        problem_of([gap(SP, by="race", reference="z") <= 0.1], PEOPLE, Y)


# -- what can be judged --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "labels", "missing"),
    [
        ("false_positive_rate", [1, 1, 0, 1], "negative"),
        ("true_negative_rate", [1, 1, 0, 1], "negative"),
        ("true_positive_rate", [0, 0, 0, 1], "positive"),
        ("false_negative_rate", [0, 0, 0, 1], "positive"),
        ("balanced_accuracy", [0, 0, 0, 1], "positive"),
    ],
)
def test_a_rate_over_labels_that_a_group_does_not_have_is_refused(rate, labels, missing):
    problem = problem_of([gap(NAMED[rate], by="g") <= 0.1], {"g": ["x", "x", "z", "z"]}, labels)
    with pytest.raises(UndefinedRateError, match=f"'g=x': it has no {missing} rows in the data"):
        problem.check_judgeable()


@pytest.mark.parametrize(
    "rate", ["selection_rate", "accuracy", "error_rate", "false_discovery_rate"]
)
def test_a_rate_over_other_rows_can_be_judged_without_those_labels(rate):
    problem = problem_of([gap(NAMED[rate], by="g") <= 0.1], {"g": ["x", "z"]}, [0, 1])
    assert problem.check_judgeable() is None


def test_a_group_that_a_part_lacks_is_refused_with_the_name_of_the_part():
    problem = problem_of([each(SP, by="race") <= 0.5], PEOPLE, Y)
    part = problem.take(np.flatnonzero(RACE != "b"), "the validation part")
    with pytest.raises(GroupError, match="'race=b' has no rows in the validation part"):
        part.check_judgeable()


def test_a_group_whose_weights_are_all_zero_counts_as_empty():
    problem = problem_of([each(SP, by="race") <= 0.5], PEOPLE, Y, W * (RACE != "b"))
    with pytest.raises(GroupError, match="'race=b' has no rows"):
        problem.check_judgeable()


def test_binding_finds_a_nameless_feature_only_when_one_name_is_asked_for():
    constraints = [gap(SP, by="race") <= 0.1, gap(SP, by="sex") <= 0.1]
    frame = Frame(RACE, None, N)
    assert len(bind(constraints[:1], accuracy, frame, Y, W).structure.groups) == 4
    with pytest.raises(GroupError, match="no column names"):
        bind(constraints, accuracy, frame, Y, W)
