"""certify(): verdicts that are right about the population, and clear refusals."""

import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from brute import bits, problem_of
from omnifair import (
    Certificate,
    CertificateError,
    DeclarationError,
    GroupError,
    LabelError,
    LearnerError,
    certify,
    each,
    gap,
    groups,
    overall,
    ratio,
    sample_size,
)
from omnifair.certificate import (
    Verdict,
    certify_predictions,
    first_certified,
    groups_of,
    margin,
    margins,
)
from omnifair.datasets import make_lending
from omnifair.fingerprint import fingerprint
from omnifair.intervals import Pair, difference_upper, evidence, quotient_lower
from omnifair.rates import (
    FN,
    FP,
    TP,
    accuracy,
    balanced_accuracy,
    coefficients,
    error_cost,
    false_discovery_rate,
    selection_rate,
    true_positive_rate,
)

SP = selection_rate
HOLDS, VIOLATED, NOT_ENOUGH = Verdict


@dataclass
class Says:
    """A fitted model that predicts its first column."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return np.asarray(X)[:, 0].astype(int)


def rows(**selected):
    """X, y and groups: ``a=(hits, count)`` of each group is predicted positive."""
    h = np.concatenate([np.repeat([1, 0], [hits, n - hits]) for hits, n in selected.values()])
    sex = np.repeat(list(selected), [n for _, n in selected.values()])
    return h[:, None].astype(float), np.resize([0, 1], len(h)), pd.DataFrame({"sex": sex})


def of(constraints, counts, **more):
    X, y, people = rows(**counts)
    return certify(Says(), constraints, X, y, sensitive_features=people, **more)


EVEN = {"a": (300, 1_000), "b": (290, 1_000)}
APART = {"a": (500, 1_000), "b": (290, 1_000)}
FEW = {"a": (3, 10), "b": (3, 10)}


@pytest.mark.parametrize(
    ("constraint", "counts", "verdict"),
    [
        (gap(SP, by="sex") <= 0.05, EVEN, HOLDS),
        (gap(SP, by="sex") <= 0.05, APART, VIOLATED),
        (gap(SP, by="sex") <= 0.05, FEW, NOT_ENOUGH),
        (gap(SP, by="sex") <= 0.0, EVEN, NOT_ENOUGH),
        (ratio(SP, by="sex") >= 0.8, EVEN, HOLDS),
        (ratio(SP, by="sex") >= 0.8, APART, VIOLATED),
        (ratio(SP, by="sex") >= 0.8, FEW, NOT_ENOUGH),
        (ratio(SP, by="sex") >= 0.8, {"a": (0, 500), "b": (0, 500)}, NOT_ENOUGH),
        (each(SP, by="sex") >= 0.25, EVEN, HOLDS),
        (each(SP, by="sex") >= 0.4, EVEN, VIOLATED),
        (each(SP, by="sex") <= 0.31, EVEN, NOT_ENOUGH),
        (overall(SP) <= 0.4, EVEN, HOLDS),
        (overall(SP) >= 0.4, EVEN, VIOLATED),
        (overall(SP) >= 0.295, EVEN, NOT_ENOUGH),
        (gap(error_cost(1, 5), by="sex") <= 2.0, EVEN, HOLDS),
        (gap(balanced_accuracy, by="sex") <= 0.2, EVEN, HOLDS),
        (gap(balanced_accuracy, by="sex") <= 0.01, EVEN, NOT_ENOUGH),
    ],
)
def test_a_verdict_says_what_the_rows_show(constraint, counts, verdict):
    certificate = of(constraint, counts)
    [claim] = certificate.claims
    assert claim.verdict is certificate.verdict is verdict
    assert certificate.holds == (verdict is HOLDS)
    assert (claim.why != "") == (verdict is NOT_ENOUGH)
    if constraint.sense == "<=":
        assert claim.estimate <= claim.bound
        assert (claim.bound <= constraint.bound) == (verdict is HOLDS)
    else:
        assert claim.estimate >= claim.bound
        assert (claim.bound >= constraint.bound) == (verdict is HOLDS)


def test_bounds_are_those_of_the_exact_tests():
    certificate = of([gap(SP, by="sex") <= 0.05, ratio(SP, by="sex") >= 0.8], EVEN)
    up, down = certificate.claims
    assert up.bound == difference_upper(Pair(300, 1_000, 290, 1_000), 1 - 0.95, 0.05)
    assert down.bound == quotient_lower(Pair(300, 1_000, 290, 1_000), 1 - 0.95, 0.8)
    floor = of(each(SP, by="sex") >= 0.2, EVEN).claims[0].bound
    exact = binomtest(290, 1_000).proportion_ci(0.9, method="exact")
    assert floor == pytest.approx(exact.low)


def test_all_pairs_are_shown_to_hold_without_a_price_for_their_number():
    two = of(gap(SP, by="sex") <= 0.1, EVEN).claims[0]
    many = of(
        gap(SP, by="sex") <= 0.1, EVEN | {"c": (295, 1_000), "d": (296, 1_000), "e": (297, 1_000)}
    ).claims[0]
    assert many.bound == pytest.approx(two.bound, abs=2e-4)
    assert many.worst == "selection_rate[sex=a] - selection_rate[sex=b]"


def test_violated_says_no_more_than_all_pairs_together_allow():
    # A pair that would be shown to be apart by itself, among many that might have been.
    counts = {"a": (360, 1_000), "b": (290, 1_000)}
    assert of(gap(SP, by="sex") <= 0.02, counts).verdict is VIOLATED
    crowd = {f"c{i}": (320, 1_000) for i in range(10)}
    assert of(gap(SP, by="sex") <= 0.02, counts | crowd).verdict is NOT_ENOUGH


def test_more_evidence_of_the_same_kind_narrows_a_bound():
    bounds = [
        of(gap(SP, by="sex") <= 0.05, {"a": (30 * k, 100 * k), "b": (29 * k, 100 * k)}).claims[0]
        for k in (1, 3, 10, 40, 150)
    ]
    assert all(np.diff([claim.bound for claim in bounds]) < 0)
    needed = [c.needed for c in bounds if c.verdict is NOT_ENOUGH]
    assert all(400 < n < 10_000 for n in needed)


def test_what_is_needed_settles_it_nine_times_in_ten():
    claim = of(gap(SP, by="sex") <= 0.1, {"a": (90, 300), "b": (75, 300)}).claims[0]
    assert claim.verdict is NOT_ENOUGH
    n, random = claim.needed // 2, np.random.default_rng(0)
    shown = [
        evidence(Pair(int(a), n, int(b), n), 0.05).rules_out(1, 0.1)
        for a, b in random.binomial(n, [0.3, 0.25], size=(200, 2))
    ]
    assert 0.83 <= np.mean(shown) <= 0.97


def test_a_rate_without_rows_is_no_evidence_by_name():
    X, y, people = rows(a=(5, 50), b=(5, 50))
    y = np.where(people["sex"] == "a", 0, y)
    constraints = [gap(true_positive_rate, by="sex") <= 0.9, gap(SP, by="sex") <= 0.5]
    one, two = certify(Says(), constraints, X, y, sensitive_features=people).claims
    assert one.verdict is NOT_ENOUGH
    assert np.isnan(one.bound)
    assert "undefined" in one.why
    assert "true_positive_rate[sex=a]" in one.why
    assert two.verdict is HOLDS


def test_one_class_of_labels_is_enough_where_the_rate_needs_no_more():
    X, _, people = rows(**EVEN)
    constraints = [gap(SP, by="sex") <= 0.05, gap(true_positive_rate, by="sex") <= 0.05]
    found = certify(Says(), constraints, X, np.zeros(2_000, int), sensitive_features=people)
    assert [c.verdict for c in found.claims] == [HOLDS, NOT_ENOUGH]


def test_rates_with_predictions_below_are_tested_on_the_rows_below():
    X, y, people = rows(**EVEN)
    claim = certify(
        Says(), gap(false_discovery_rate, by="sex") <= 0.2, X, y, sensitive_features=people
    ).claims[0]
    pair = Pair(150, 300, 145, 290)
    both = [difference_upper(p, 1 - 0.95, 0.2) for p in (pair, pair.swapped)]
    assert claim.bound == pytest.approx(max(both), abs=1e-12)


def test_groups_that_overlap_are_not_taken_as_independent():
    X, y, people = rows(**EVEN)
    people["age"] = np.resize([20, 40, 70], 2_000)
    apart = groups(young="age < 30", old="age > 60")
    across = groups(young="age < 50", old="age > 30")
    found = [
        certify(Says(), gap(SP, by=by) <= 0.1, X, y, sensitive_features=people)
        for by in (apart, across)
    ]
    assert "taken to share nobody" in " ".join(found[0].notes)
    assert "overlap" in " ".join(found[1].notes)
    # Twice as many rows, but each proportion has its own half of the error.
    reach = [c.claims[0].bound - c.claims[0].estimate for c in found]
    assert reach[1] > 0.95 * reach[0]


def test_equal_weights_are_none_and_others_need_their_largest():
    plain, heavy = (
        of(gap(SP, by="sex") <= 0.05, EVEN, sample_weight=w) for w in (None, np.full(2_000, 3.0))
    )
    assert plain.claims == heavy.claims
    weights = np.resize([1.0, 2.0], 2_000)
    with pytest.raises(CertificateError, match="max_weight"):
        of(gap(SP, by="sex") <= 0.05, EVEN, sample_weight=weights)
    with pytest.raises(CertificateError, match="at least the largest"):
        of(gap(SP, by="sex") <= 0.05, EVEN, sample_weight=weights, max_weight=1)
    bounds = [
        of(gap(SP, by="sex") <= 0.2, EVEN, sample_weight=weights, max_weight=m).claims[0].bound
        for m in (2, 10)
    ]
    assert plain.claims[0].bound < bounds[0] < bounds[1] < 0.2


def test_a_rate_that_is_no_proportion_is_bet_on():
    f1 = (2 * TP) / (2 * TP + FP + FN)
    low, high = (of(overall(f1) >= bound, EVEN).claims[0] for bound in (0.2, 0.9))
    assert low.verdict is HOLDS
    assert high.verdict is VIOLATED


def test_every_false_statement_is_as_rare_as_was_promised():
    random, gaps = np.random.default_rng(1), {"at": 0.1, "above": 0.12}
    for true in gaps.values():
        wrong = 0
        for a, b, c in random.binomial(40, [0.3 + true, 0.3, 0.35], size=(200, 3)):
            counts = {"a": (a, 40), "b": (b, 40), "c": (c, 40)}
            wrong += of(gap(SP, by="sex") <= 0.1, counts).verdict is HOLDS
        assert wrong / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_a_population_that_is_known_is_certified_truly():
    train, fresh = make_lending(2_000, 0), make_lending(20_000, 1)
    model = LogisticRegression().fit(train.X, train.y)
    rates = [
        fresh.population.rates_of_linear(model.coef_, model.intercept_[0], g)["selection_rate"]
        for g in ("A", "B")
    ]
    true = float(rates[0] - rates[1])
    for limit, verdict in ((true + 0.03, HOLDS), (true - 0.04, VIOLATED), (true, NOT_ENOUGH)):
        found = certify(
            model,
            gap(SP, by="group") <= limit,
            fresh.X,
            fresh.y,
            sensitive_features=fresh.sensitive_features,
        )
        assert found.verdict is verdict


# -- what it is ------------------------------------------------------------------------------------


def test_a_certificate_prints_pickles_and_is_plain_values():
    constraints = [gap(SP, by="sex") <= 0.05, each(accuracy, by="sex") >= 0.9]
    certificate = of(constraints, EVEN)
    assert isinstance(certificate, Certificate)
    assert pickle.loads(pickle.dumps(certificate)) == certificate
    text = str(certificate)
    for words in (
        "violated",
        "gap(selection_rate, by='sex') <= 0.05",
        "at most 0.0",
        "sex=a",
        "1,000",
        "0.95",
    ):
        assert words in text
    plain = certificate.to_dict()
    assert plain["verdict"] == "violated"
    assert plain["claims"][0]["verdict"] == "holds"
    assert plain["behind"][0]["hits"] == 300
    assert certificate.verdict == "violated"


def test_text_labels_take_the_positive_class_of_the_model():
    X, y, people = rows(**EVEN)
    names = np.array(["no", "yes"])
    model = SimpleNamespace(
        predict=lambda X: names[X[:, 0].astype(int)], classes_=names, pos_label="no"
    )
    found = certify(model, overall(SP) >= 0.6, X, names[y], sensitive_features=people)
    assert found.claims[0].estimate == pytest.approx(0.705)
    again = certify(model, overall(SP) >= 0.2, X, names[y], pos_label="yes")
    assert again.claims[0].estimate == pytest.approx(0.295)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.5, 1, 95, True, "0.9", float("nan")])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(DeclarationError, match="confidence"):
        of(gap(SP, by="sex") <= 0.05, EVEN, confidence=confidence)


def test_what_cannot_be_certified_is_refused():
    X, y, people = rows(**EVEN)
    bound = gap(SP, by="sex") <= 0.05
    with pytest.raises(DeclarationError, match="no constraints"):
        certify(Says(), [], X, y)
    with pytest.raises(LearnerError, match="predict"):
        certify(object(), bound, X, y, sensitive_features=people)
    with pytest.raises(CertificateError, match="no rows"):
        certify(Says(), bound, X[:0], y[:0], sensitive_features=people[:0])
    with pytest.raises(GroupError, match="only one group"):
        certify(Says(), bound, X[:9], y[:9], sensitive_features=people[:9])
    with pytest.raises(CertificateError, match="coefficients"):
        certify(Says(), overall(coefficients(lambda rows: (0.0, 1 / rows.size))) >= 0.1, X, y)
    with pytest.raises(CertificateError, match="any number"):
        certify(Says(), overall(FP / (TP + FN)) <= 0.5, X, y)
    silent = SimpleNamespace(predict=lambda X: np.zeros(len(X), int))
    with pytest.raises(LabelError, match="classes_"):
        certify(silent, overall(SP) <= 0.5, X, np.zeros(len(X), int))


def test_rows_that_the_model_was_trained_on_are_refused():
    random = np.random.default_rng(0)
    X, y, people = rows(**EVEN)
    X = np.column_stack([X, random.normal(size=len(X))])
    model = Says()
    model.fingerprint_ = fingerprint(X[::2], y[::2])
    with pytest.raises(CertificateError, match="trained"):
        certify(model, gap(SP, by="sex") <= 0.05, X, y, sensitive_features=people)
    here = slice(1, None, 2)
    fresh = certify(
        model, gap(SP, by="sex") <= 0.2, X[here], y[here], sensitive_features=people[here]
    )
    assert fresh.holds


def test_a_group_that_the_model_was_fitted_with_must_be_there():
    constraint = gap(SP, by="sex") <= 0.2
    _, y, people = rows(**EVEN, c=(5, 50))
    model = Says()
    model.groups_ = groups_of(problem_of([constraint], people, y))
    X, y, people = rows(**EVEN)
    with pytest.raises(GroupError, match="'sex=c' has no rows"):
        certify(model, constraint, X, y, sensitive_features=people)


# -- under selection -------------------------------------------------------------------------------


def test_candidates_are_tested_in_order_until_one_fails():
    _, y, people = rows(a=(0, 1_000), b=(0, 1_000))
    problem = problem_of([gap(SP, by="sex") <= 0.1], people, y)

    def candidate(hits_a, hits_b):
        return bits(rows(a=(hits_a, 1_000), b=(hits_b, 1_000))[0][:, 0])

    asked = []

    def lazily():
        asked.append(1)
        return candidate(310, 300)

    found = first_certified(
        problem, [candidate(300, 300), lazily, candidate(400, 200), candidate(300, 300)]
    )
    assert (found.position, len(found.certificates), asked) == (1, 3, [1])
    assert found.certificates[1].holds
    none = first_certified(problem, [candidate(400, 200), candidate(300, 300)])
    assert (none.position, len(none.certificates)) == (None, 1)


def test_a_selection_among_many_candidates_is_false_no_more_often_than_one_is():
    random, wrong, limit = np.random.default_rng(0), 0, 0.1
    true = np.linspace(0.02, 0.2, 10)  # the gaps of the candidates, from safe to not
    people = rows(a=(0, 150), b=(0, 150))[2]
    problem = problem_of([gap(SP, by="sex") <= limit], people, np.resize([0, 1], 300))
    for _ in range(150):
        u = random.random(300)  # the same rows judge all candidates
        chance = np.where(people["sex"] == "a", 0.3 + true[:, None], 0.3)
        position = first_certified(problem, bits(u < chance)).position
        wrong += position is not None and true[position] > limit
    assert wrong / 150 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)


@pytest.mark.parametrize(
    ("constraint", "p"),
    [
        (gap(SP, by="sex") <= 0.1, (0.35, 0.3)),
        (ratio(SP, by="sex") >= 0.8, (0.5, 0.45)),
        (each(SP, by="sex") >= 0.2, (0.3, 0.35)),
    ],
)
def test_who_aims_inside_by_the_margin_is_certified_as_often_as_it_says(constraint, p):
    random, counts = np.random.default_rng(0), (700, 1_300)
    found = margin(constraint, counts, p, power=0.8)
    _, y, people = rows(a=(0, 700), b=(0, 1_300))
    h = bits(rows(a=(round(700 * p[0]), 700), b=(round(1_300 * p[1]), 1_300))[0][:, 0])
    problem = problem_of([constraint], people, y)
    assert margins(problem, h, 1.0, power=0.8).max() == pytest.approx(found, rel=0.1)
    # Rates just at the target: how often are they certified?
    inside = {
        "gap": (0.3 + 0.1 - found, 0.3),
        "ratio": (0.5, 0.8 * 0.5 + found),
        "each": (0.2 + found, 0.5),
    }[constraint.measure.kind]
    shown = [
        of(constraint, {"a": (a, 700), "b": (b, 1_300)}).holds
        for a, b in random.binomial(counts, inside, size=(60, 2))
    ]
    assert 0.65 <= np.mean(shown) <= 0.95


def test_margins_shrink_as_the_rows_to_certify_on_grow():
    _, y, people = rows(**EVEN)
    h = bits(rows(**EVEN)[0][:, 0])
    constraints = [gap(SP, by="sex") <= 0.1, overall(accuracy) >= 0.2, ratio(SP, by="sex") >= 0]
    problem = problem_of(constraints, people, y)
    small, large = margins(problem, h, 0.3), margins(problem, h, 3.0)
    assert small.shape == problem.structure.bounds.shape
    assert (large[:3] < small[:3]).all()
    assert (large[3:] == 0).all()


# -- how many rows ---------------------------------------------------------------------------------


def test_the_sample_size_is_near_the_normal_ideal_and_simulation_confirms_it():
    found = sample_size(gap(SP, by="sex") <= 0.1, rates={"F": 0.25, "M": 0.3}, power=0.8)
    ideal = 2 * (1.6449 + 0.8416) ** 2 * (0.25 * 0.75 + 0.3 * 0.7) / 0.05**2
    assert 0.97 * ideal < found.total < 1.15 * ideal
    assert found.rows["F"] == found.rows["M"]
    n, random = found.rows["F"], np.random.default_rng(0)
    shown = [
        evidence(Pair(int(a), n, int(b), n), 0.05).rules_out(1, 0.1)
        for a, b in random.binomial(n, [0.3, 0.25], size=(400, 2))
    ]
    assert 0.74 <= np.mean(shown) <= 0.87


def test_a_harder_promise_needs_more_rows():
    def size(limit=0.15, confidence=0.95, power=0.8, **more):
        more = {"rates": [0.3, 0.28]} | more
        return sample_size(
            gap(SP, by="sex") <= limit, confidence=confidence, power=power, **more
        ).total

    for harder in (
        {"limit": 0.1},
        {"confidence": 0.99},
        {"power": 0.95},
        {"rates": [0.33, 0.28]},
        {"shares": [0.1, 0.9]},
        {"behind": 0.3},
        {"shares": [1, 1, 1], "rates": 0.29},
    ):
        if "shares" in harder and "rates" in harder:
            assert size(**harder) > size(rates=0.29)
        else:
            assert size(**harder) > size()


def test_floors_and_ratios_have_sample_sizes_too():
    floor = sample_size(each(true_positive_rate, by="sex") >= 0.7, rates=0.8, behind=[0.5, 0.1])
    assert floor.total > 1_000
    assert list(floor.rows) == [0, 1]
    assert sample_size(overall(SP) <= 0.5, rates=0.4).total < 300
    assert sample_size(ratio(SP, by="sex") >= 0.8, rates=0.5).total < 3_000


@pytest.mark.parametrize(
    ("constraint", "arguments", "words"),
    [
        (gap(SP, by="sex") <= 0.05, {"rates": [0.3, 0.2]}, "does not hold"),
        (gap(SP, by="sex") <= 0.0, {"rates": 0.3}, "does not hold"),
        (gap(balanced_accuracy, by="sex") <= 0.1, {"rates": 0.8}, "one proportion"),
        (gap(SP, by="sex") <= 0.05, {"rates": 0.3, "power": 1.5}, "power"),
        (gap(SP, by="sex") <= 0.05, {"rates": 0.3, "confidence": 95}, "confidence"),
        (gap(SP, by="sex") <= 0.05, {"rates": {"a": 0.3, "b": 0.3}, "shares": [1]}, "2 numbers"),
        (gap(SP, by="sex") <= 0.05, {"rates": [0.3]}, "two groups"),
        (gap(SP, by="sex") <= 0.05, {"rates": [0.3, 1.3]}, "between"),
        (gap(SP, by="sex"), {"rates": 0.3}, "no bound"),
    ],
)
def test_a_sample_size_that_cannot_be_said_is_refused(constraint, arguments, words):
    with pytest.raises(DeclarationError, match=words):
        sample_size(constraint, **arguments)


def test_a_problem_is_certified_without_a_model():
    _, y, people = rows(**EVEN)
    problem = problem_of([gap(SP, by="sex") <= 0.05], people, y)
    h = bits(rows(**EVEN)[0][:, 0])
    assert certify_predictions(problem, h, 0.9).confidence == 0.9


def test_the_sample_size_of_several_constraints_is_asked_for_one_by_one():
    with pytest.raises(DeclarationError, match="one constraint at a time"):
        sample_size([gap(selection_rate, by="sex") <= 0.05], rates=[0.1, 0.12])


def test_a_model_that_keeps_no_record_of_its_rows_is_certified_with_a_word_about_it():
    population = make_lending(400, random_state=0)
    model = LogisticRegression().fit(population.X[["score"]], population.y)
    told = certify(
        model,
        overall(selection_rate) <= 1,
        population.X[["score"]],
        population.y,
        sensitive_features=population.sensitive_features,
    )
    assert "whether these rows are new could not be checked: LogisticRegression" in str(told)
