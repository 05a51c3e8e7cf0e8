"""audit(): rates of any predictions, against counts by hand and other libraries."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

from omnifair import DataError, DeclarationError, GroupError, LabelError, audit, groups
from omnifair.rates import FN, FP, NAMED, TP, error_cost

# TP, FP, FN, TN by group.
COUNTS = {"a": (3, 1, 1, 3), "b": (1, 2, 1, 4)}
ROWS = [
    (name, label, prediction)
    for name, counts in COUNTS.items()
    for (label, prediction), count in zip([(1, 1), (0, 1), (1, 0), (0, 0)], counts, strict=True)
    for _ in range(count)
]
SEX = np.array([row[0] for row in ROWS])
Y = np.array([row[1] for row in ROWS])
H = np.array([row[2] for row in ROWS])


def line(table, measure, rate, group=None):
    here = table[(table["measure"] == measure) & (table["rate"] == rate)]
    if group is not None:
        here = here[here["group"] == group]
    [found] = here.to_dict("records")
    return found


@pytest.fixture
def table():
    return audit(Y, H, pd.DataFrame({"sex": SEX}))


def test_every_named_rate_stands_for_everybody_each_group_the_gap_and_the_ratio(table):
    assert list(table["rate"].unique()) == list(NAMED)
    for _, part in table.groupby("rate"):
        assert list(part["measure"]) == ["overall", "each", "each", "gap", "ratio"]


@pytest.mark.parametrize(
    ("rate", "a", "b"),
    [
        ("selection_rate", (4, 8), (3, 8)),
        ("true_positive_rate", (3, 4), (1, 2)),
        ("false_positive_rate", (1, 4), (2, 6)),
        ("false_discovery_rate", (1, 4), (2, 3)),
        ("false_omission_rate", (1, 4), (1, 5)),
        ("accuracy", (6, 8), (5, 8)),
    ],
)
def test_values_counts_and_intervals_are_those_counted_by_hand(table, rate, a, b):
    for name, (hits, count) in (("a", a), ("b", b)):
        found = line(table, "each", rate, f"sex={name}")
        assert (found["hits"], found["count"], found["rows"]) == (hits, count, 8)
        assert found["value"] == pytest.approx(hits / count)
        exact = binomtest(hits, count).proportion_ci(0.95, method="exact")
        assert (found["low"], found["high"]) == pytest.approx((exact.low, exact.high))
    low, high = sorted([a[0] / a[1], b[0] / b[1]])
    assert line(table, "gap", rate)["value"] == pytest.approx(high - low)
    assert line(table, "ratio", rate)["value"] == pytest.approx(low / high)


def test_a_gap_and_a_ratio_name_the_groups_that_make_them(table):
    assert line(table, "gap", "selection_rate")["group"] == "sex=a - sex=b"
    assert line(table, "ratio", "selection_rate")["group"] == "sex=b / sex=a"


def test_a_rate_without_rows_behind_it_is_nan_and_never_0():
    sex = pd.Series(["a", "a", "b", "b"], name="sex")
    table = audit([1, 0, 0, 0], [1, 0, 0, 1], sex)
    found = line(table, "each", "true_positive_rate", "sex=b")
    assert np.isnan(found["value"])
    assert (found["low"], found["high"], found["count"]) == (0, 1, 0)
    gap = line(table, "gap", "true_positive_rate")
    assert np.isnan(gap["value"])
    assert gap["group"] == "undefined for sex=b"


def test_intervals_of_gap_and_ratio_hold_at_least_as_often_as_they_say():
    random, truth = np.random.default_rng(0), {"a": 0.4, "b": 0.3, "c": 0.35}
    names = pd.Series(np.repeat(list(truth), 60), name="g")
    chance = np.repeat(list(truth.values()), 60)
    held = {"gap": 0, "ratio": 0}
    for _ in range(100):
        drawn = (random.random(180) < chance).astype(int)
        table = audit(np.resize([0, 1], 180), drawn, names, rates=["SP"], confidence=0.9)
        for measure, true in (("gap", 0.1), ("ratio", 0.75)):
            found = line(table, measure, "selection_rate")
            held[measure] += found["low"] <= true <= found["high"]
    assert min(held.values()) >= 90


def test_a_rate_of_several_values_has_an_interval_around_it():
    rate = error_cost(fp=1, fn=5)
    table = audit(Y, H, pd.Series(SEX, name="sex"), rates=[rate])
    found = line(table, "each", str(rate), "sex=a")
    assert found["value"] == pytest.approx((1 + 5) / 8)
    assert 0 <= found["low"] < found["value"] < found["high"] <= 5
    assert found["count"] == 8


def test_a_rate_that_is_no_average_of_rows_gets_the_range_it_lives_in():
    f1 = (2 * TP) / (2 * TP + FP + FN)
    found = line(audit(Y, H, pd.Series(SEX, name="sex"), rates=f1), "each", str(f1), "sex=a")
    assert found["value"] == pytest.approx(6 / 8)
    assert (found["low"], found["high"]) == (0, 1)


def test_equal_weights_change_no_interval_and_unequal_ones_widen_it(table):
    people, counts = pd.DataFrame({"sex": SEX}), ["hits", "count", "rows"]
    doubled = audit(Y, H, people, sample_weight=np.full(16, 2.0))
    pd.testing.assert_frame_equal(doubled.drop(columns=counts), table.drop(columns=counts))
    uneven = audit(Y, H, people, sample_weight=np.resize([1.0, 9.0], 16))
    widths = [
        line(t, "overall", "accuracy")["high"] - line(t, "overall", "accuracy")["low"]
        for t in (table, uneven)
    ]
    assert widths[0] < widths[1]


def test_every_column_is_audited_by_itself_and_by_says_otherwise():
    people = {"sex": SEX, "age": np.resize([20, 70], 16)}
    assert set(audit(Y, H, people)["by"]) == {"", "sex", "age"}
    crossed = audit(Y, H, people, by=["sex", "age"])
    assert set(crossed.query("measure == 'each'")["group"]) == {
        f"sex={s} & age={a}" for s in "ab" for a in (20, 70)
    }
    overlapping = audit(Y, H, people, by=groups(young="age < 30", all="age > 0"))
    assert set(overlapping.query("measure == 'each'")["group"]) == {"young", "all"}


def test_the_table_comes_in_the_library_of_the_sensitive_features():
    assert isinstance(audit(Y, H, pl.DataFrame({"sex": SEX})), pl.DataFrame)
    assert isinstance(audit(Y, H, pl.Series("sex", SEX)), pl.DataFrame)
    assert isinstance(audit(Y, H, SEX), pd.DataFrame)


def test_the_positive_class_of_text_labels_can_be_stated():
    answers = np.array(["no", "yes"])
    table = audit(answers[Y], answers[H], pd.Series(SEX, name="sex"), pos_label="no")
    assert line(table, "overall", "selection_rate")["value"] == pytest.approx(9 / 16)


def test_rates_agree_with_fairlearn():
    metrics = pytest.importorskip("fairlearn.metrics", reason="fairlearn is not installed")
    names = ["selection_rate", "true_positive_rate", "false_positive_rate", "false_negative_rate"]
    theirs = metrics.MetricFrame(
        metrics={name: getattr(metrics, name) for name in names},
        y_true=Y,
        y_pred=H,
        sensitive_features=SEX,
    )
    table = audit(Y, H, pd.Series(SEX, name="sex"))
    for name in names:
        for key in COUNTS:
            ours = line(table, "each", name, f"sex={key}")["value"]
            assert ours == pytest.approx(theirs.by_group.loc[key, name])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([0, 1, 2], [0, 1, 1], list("aab")), LabelError, "multiclass"),
        (([0, 1, 1], [0, 1, 5], list("aab")), LabelError, "3 classes|multiclass"),
        ((["a", "a"], ["a", "a"], list("xy")), LabelError, "pos_label"),
        (([0, 1], [0, 1]), GroupError, "sensitive_features"),
        (([0, 1], [0, 1, 1], ["a", "b"]), DataError, "y_pred has 3 labels, but y_true has 2 rows"),
        (
            (pd.Series(["no", "yes"]), [0, 1], ["a", "b"]),
            LabelError,
            "different kinds: 'no' and 0|hold 4 classes",
        ),
    ],
)
def test_what_cannot_be_audited_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        audit(*arguments)


@pytest.mark.parametrize("confidence", [0.5, 1, 95, True])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(DeclarationError, match="confidence"):
        audit(Y, H, SEX, confidence=confidence)
