import copy
import math
import operator
import pickle

import numpy as np
import pytest

from omnifair import coefficients, each, gap, groups, overall, ratio
from omnifair.constraints import Constraint, as_constraints, can_be_text
from omnifair.errors import DeclarationError
from omnifair.rates import FN, FP, FPR, SP, TN, TP, accuracy, error_cost


def raw(rows):
    return 0, 1


def by_hand(data):
    return {"a": [0], "b": [1]}


CONSTRAINTS = [
    gap(SP, by="sex") <= 0.03,
    ratio(SP, by=["race", "sex"]) >= 0.8,
    each(FPR, by="race", only=["a", "b"], missing="ignore") <= 0.2,
    each(accuracy, by="race") >= 0.6,
    overall(SP) <= 0.5,
    gap(error_cost(fp=1, fn=5), by=groups(young="age < 25", old="age > 60")) <= 3.5,
    gap(SP, by="race", reference="White", missing="group") <= 0.1,
    gap(coefficients(raw), by=by_hand) <= 100,
]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_equal_declarations_are_equal_hash_the_same_and_can_be_copied_and_pickled(constraint):
    for same in (pickle.loads(pickle.dumps(constraint)), copy.deepcopy(constraint)):
        assert same == constraint
        assert hash(same) == hash(constraint)


def test_different_declarations_are_different():
    assert len(set(CONSTRAINTS)) == len(CONSTRAINTS)
    assert gap(SP, by="sex") != gap(SP, by="race")
    assert (gap(SP, by="sex") <= 0.1) != (gap(SP, by="sex") <= 0.2)


@pytest.mark.parametrize(
    "written",
    [
        lambda: 0.03 >= gap(SP, by="sex"),  # noqa: SIM300 (this way round is what is tested)
        lambda: np.float64(0.03) >= gap(SP, by="sex"),
        lambda: gap((TP + FP) / (TP + FP + FN + TN), by=("sex",)) <= 0.03,
        lambda: gap(SP, by=np.str_("sex")) <= np.float64(0.03),
    ],
)
def test_ways_to_write_the_same_constraint(written):
    assert written() == CONSTRAINTS[0]


def test_a_bound_of_minus_zero_is_zero():
    assert str(gap(SP, by="sex") <= -0.0) == "gap(selection_rate, by='sex') <= 0"


@pytest.mark.parametrize("field", ["bound", "measure"])
def test_a_constraint_cannot_be_changed(field):
    with pytest.raises(AttributeError):
        setattr(CONSTRAINTS[0], field, 0.5)


def test_a_constraint_prints_as_the_expression_that_made_it():
    assert str(CONSTRAINTS[2]) == (
        "each(false_positive_rate, by='race', only=['a', 'b'], missing='ignore') <= 0.2"
    )


NAN = float("nan")

# -- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "a strict bound": (lambda: gap(SP, by="s") < 0.1, "use '<='"),
    "a strict bound the other way": (lambda: ratio(SP, by="s") > 0.8, "use '>='"),
    "a strict bound on a constraint": (lambda: (overall(SP) <= 0.5) < 1, "use '<='"),
    "a chained comparison": (lambda: 0.1 <= each(SP, by="s") <= 0.2, "each bound as its own item"),
    "a chained comparison of a gap": (lambda: 0.1 <= gap(SP, by="s") <= 0.2, "from above"),
    "a second bound": (lambda: (each(SP, by="s") <= 0.2) >= 0.1, "has a bound already"),
    "and": (lambda: (overall(SP) <= 0.2) and (overall(SP) >= 0.1), "'and'"),
    "or": (lambda: (overall(SP) <= 0.2) or (overall(SP) >= 0.1), "'or'"),
    "not": (lambda: not (overall(SP) <= 0.2), "'not'"),
    "the truth of a measure": (lambda: bool(gap(SP, by="s")), "no truth value"),
    "a gap bounded from below": (lambda: gap(SP, by="s") >= 0.1, r"write gap\(...\) <= 0.1"),
    "a ratio bounded from above": (lambda: ratio(SP, by="s") <= 0.8, r"ratio\(...\) >= 0.8"),
    "a gap above what there can be": (lambda: gap(SP, by="s") <= 1.5, "between 0 and 1"),
    "a negative gap": (lambda: gap(SP, by="s") <= -0.1, "between 0 and 1"),
    "a ratio above 1": (lambda: ratio(SP, by="s") >= 1.25, "between 0 and 1"),
    "a floor above 1": (lambda: each(SP, by="s") >= 2, "between 0 and 1"),
    "a negative ceiling": (lambda: overall(SP) <= -0.5, "between 0 and 1"),
    "a cost above the costliest": (
        lambda: overall(error_cost(fp=1, fn=5)) <= 6,
        "between 0 and 5",
    ),
    "a negative bound of odds": (lambda: each(FP / TP, by="s") <= -1, "0 or more"),
    "a bound of True": (lambda: gap(SP, by="s") <= True, "plain number"),
    "a bound of text": (lambda: gap(SP, by="s") <= "0.1", "plain number"),
    "a bound of None": (lambda: gap(SP, by="s") <= None, "plain number"),
    "NaN": (lambda: gap(SP, by="s") <= NAN, "must be finite"),
    "infinity": (lambda: gap(SP, by="s") <= math.inf, "must be finite"),
    "a number beyond the floats": (lambda: gap(SP, by="s") <= 10**400, "must be finite"),
    "an array": (lambda: gap(SP, by="s") <= np.array([0.1]), "plain number"),
    "an array on the left": (lambda: np.array([0.1]) >= gap(SP, by="s"), "plain number"),
    "NumPy's True": (lambda: np.True_ >= gap(SP, by="s"), "plain number"),
    "a measure as a bound": (
        lambda: overall(SP) <= overall(FPR),
        "by a number only",
    ),
    "a bounded raw metric": (lambda: coefficients(raw) <= 1, "over which groups"),
    "a text for a rate": (lambda: gap("SP", by="s"), "is not a rate"),
    "a count for a rate": (lambda: gap(TP, by="s"), "is not a rate"),
    "a function for a rate": (lambda: gap(raw, by="s"), "is not a rate"),
    "a ratio of what can be negative": (
        lambda: ratio((TP - FP) / (TP + FP), by="s"),
        "can be negative",
    ),
    "only one group to compare": (lambda: gap(SP, by="s", only=["a"]), "nothing to compare"),
    "a reference that is left out": (
        lambda: ratio(SP, by="s", only=["a", "b"], reference="c"),
        "is not among only=",
    ),
    "a reference that cannot be a group": (
        lambda: gap(SP, by="s", reference={"a": 1}),
        "cannot name a group",
    ),
    "unknown words for missing": (lambda: each(SP, by="s", missing="drop"), "must be one of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_on_any_data_is_refused_at_once(case):
    build, words = REFUSED[case]
    with pytest.raises(DeclarationError, match=words):
        build()


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_a_refusal_is_both_a_type_error_and_a_value_error(kind):
    with pytest.raises(kind):
        bool(gap(SP, by="sex"))


def test_groups_have_to_be_said_by_name():
    with pytest.raises(TypeError):
        gap(SP, "sex")


@pytest.mark.parametrize(
    "declare",
    [
        lambda: gap(FPR + accuracy, by="s") <= 2,
        lambda: gap(FP / TP, by="s") <= 1e6,
        lambda: each((TP - FP) / (TP + FP), by="s") >= -1,
        lambda: overall(coefficients(raw)) <= -100,
        lambda: gap(SP, by="s") <= 0,
        lambda: ratio(SP, by="s") >= 1,
    ],
)
def test_bounds_within_reach_of_the_rate_are_taken(declare):
    assert isinstance(declare(), Constraint)


# -- lists of constraints ------------------------------------------------------------------------


def test_one_constraint_and_any_iterable_of_them_are_taken():
    one, two = CONSTRAINTS[:2]
    assert as_constraints(one) == (one,)
    for several in ([one, two], (one, two), iter([one, two]), np.array([one, two], dtype=object)):
        assert as_constraints(several) == (one, two)
    assert as_constraints([]) == ()


def test_a_constraint_said_twice_counts_once():
    again = gap(SP, by="sex") <= 0.03
    assert as_constraints([*CONSTRAINTS, again]) == tuple(CONSTRAINTS)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (gap(SP, by="sex"), r"has no bound: write gap\(selection_rate, by='sex'\) <= a number"),
        ([ratio(SP, by="sex")], "has no bound: write .* >= a number"),
        ([gap(SP, by="sex") == 0.03], "plain False.*never =="),
        ([CONSTRAINTS[0], True], "plain True"),
        ("gap(SP, by='sex') <= 0.03", r"is text: pass parse\("),
        (["gap(SP, by='sex') <= 0.03"], "is text: pass parse"),
        ({"gap": CONSTRAINTS[0]}, "is text: pass parse"),
        (SP, "is not a constraint"),
        ([coefficients(raw)], "is not a constraint"),
        (None, "is not a constraint"),
        ([[CONSTRAINTS[0]]], "is not a constraint"),
        (0.03, "is not a constraint"),
    ],
    ids=str,
)
def test_what_is_not_a_list_of_constraints_is_refused_with_what_to_write(value, words):
    with pytest.raises(DeclarationError, match=words):
        as_constraints(value)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (CONSTRAINTS[0], True),
        (CONSTRAINTS[4], True),
        (CONSTRAINTS[5], True),
        (CONSTRAINTS[7], False),
        (gap(SP, by=by_hand) <= 0.1, False),
        (gap(SP, by="day", only=[np.datetime64("2020-01-01"), None]) <= 0.1, False),
        (gap(SP, by="x", reference=math.inf) <= 0.1, False),
        (gap(SP, by=groups(**{"under 25": "age < 25", "class": "age > 60"})) <= 0.1, False),
    ],
    ids=str,
)
def test_a_constraint_can_be_text_when_all_of_it_is_plain_constants(constraint, expected):
    assert can_be_text(constraint) == expected


def test_constraints_combined_by_signs_are_told_to_be_items_of_a_list():
    one, other = gap(SP, by="sex") <= 0.1, overall(SP) <= 0.3
    for combine in (operator.and_, operator.or_):
        with pytest.raises(DeclarationError, match="its own item of a list"):
            combine(one, other)
