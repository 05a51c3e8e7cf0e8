"""What has to hold for any data: hypothesis looks for a counterexample."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import brute
from brute import bits, problem_of
from omnifair import FairClassifier, GridSearch, each, gap, overall, ratio
from omnifair.rates import FDR, FNR, FPR, NAMED, SP, accuracy
from omnifair.weights import Point, signed_weights, weigh

CONSTRAINTS = [
    gap(SP, by="g") <= 0.1,
    ratio(accuracy, by="g") >= 0.8,
    each(FDR, by="g") <= 0.2,
    gap(FNR, by="k", reference=0) <= 0.1,
    overall(FPR) <= 0.2,
]


@st.composite
def people(draw):
    """Columns ``g`` and ``k``, labels, predictions and whole weights of a few rows."""
    n = draw(st.integers(6, 16))

    def column(*values):
        more = draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
        return np.array([*values, *more][:n])  # each value occurs

    zeros_and_ones = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    weights = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    columns = {"g": column("a", "b", "c"), "k": column(0, 1)}
    labels, predictions = bits(draw(zeros_and_ones)), bits(draw(zeros_and_ones))
    return columns, labels, predictions, np.array(weights, dtype=float)


def multipliers_of(problem, seed):
    return np.random.default_rng(seed).uniform(0, 2, problem.structure.n_rows)


def on_rows(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


def approx(values):
    return pytest.approx(values, rel=1e-9, abs=1e-9, nan_ok=True)


seeds = st.integers(0, 2**32 - 1)


# -- measuring -----------------------------------------------------------------------------------


@given(people(), st.sampled_from(sorted(NAMED)))
def test_every_rate_of_every_group_is_the_one_counted_from_rows(data, name):
    columns, y, h, w = data
    problem = problem_of([each(NAMED[name], by=["g", "k"]) <= 1], columns, y, w)
    crossed = list(zip(columns["g"], columns["k"], strict=True))
    counted = []
    for key in sorted(set(crossed)):
        mask = np.array([c == key for c in crossed])
        counted.append(brute.rate(name, y[mask], h[mask], w[mask]))
    assert problem.measure(h).rates == approx(counted)


@given(people(), seeds)
def test_the_order_of_rows_changes_nothing(data, seed):
    columns, y, h, w = data
    order = np.random.default_rng(seed).permutation(len(y))
    problem = problem_of(CONSTRAINTS, columns, y, w)
    turned = problem_of(CONSTRAINTS, on_rows(columns, order), y[order], w[order])
    assert turned.structure.row_labels == problem.structure.row_labels
    assert turned.measure(h[order]).measures == approx(problem.measure(h).measures)
    multipliers = multipliers_of(problem, seed)
    found = signed_weights(turned, multipliers, Point(turned.cells(h[order])))
    expected = signed_weights(problem, multipliers, Point(problem.cells(h)))
    assert found == approx(expected[order])


@given(people(), seeds, st.permutations("abc"))
def test_the_names_of_groups_change_nothing(data, seed, names):
    columns, y, h, w = data
    new = dict(zip("abc", names, strict=True))
    problem = problem_of([gap(SP, by="g") <= 0.1, each(FDR, by="g") <= 0.2], columns, y, w)
    renamed = problem_of(
        problem.structure.constraints, {"g": np.array([new[g] for g in columns["g"]])}, y, w
    )
    assert renamed.measure(h).measures == approx(problem.measure(h).measures)
    # The same multipliers for the rows that say the same; only their order may differ.
    multipliers = dict(
        zip(problem.structure.row_labels, multipliers_of(problem, seed), strict=True)
    )
    translated = {rename(label, new): value for label, value in multipliers.items()}
    found = signed_weights(
        renamed,
        [translated[label] for label in renamed.structure.row_labels],
        Point(renamed.cells(h)),
    )
    expected = signed_weights(problem, list(multipliers.values()), Point(problem.cells(h)))
    assert found == approx(expected)


def rename(label, new):
    for old, name in new.items():
        label = label.replace(f"[g={old}]", f"[g=>{name}]")
    return label.replace("=>", "=")


@given(people(), seeds)
def test_a_whole_weight_is_that_many_copies_of_the_row(data, seed):
    columns, y, h, w = data
    copies = np.repeat(np.arange(len(y)), w.astype(int))
    problem = problem_of(CONSTRAINTS, columns, y, w)
    copied = problem_of(CONSTRAINTS, on_rows(columns, copies), y[copies])
    assert copied.measure(h[copies]).measures == approx(problem.measure(h).measures)
    multipliers = multipliers_of(problem, seed)
    single = weigh(copied, multipliers, Point(copied.cells(h[copies])))
    whole = weigh(problem, multipliers, Point(problem.cells(h)))
    assert single.values == approx((whole.values / w)[copies])
    firm = single.values > 1e-6  # a gain that is 0 up to rounding has no side
    assert single.labels[firm].tolist() == whole.labels[copies][firm].tolist()


# -- weighing ------------------------------------------------------------------------------------


@given(people(), seeds, seeds, st.floats(-2, 3), st.booleans())
def test_weights_are_affine_in_the_multipliers_at_fixed_predictions(data, one, two, share, fixed):
    columns, y, h, w = data
    problem = problem_of(CONSTRAINTS, columns, y, w)
    point = Point(problem.cells(h), h, fixed)
    first, second = multipliers_of(problem, one), multipliers_of(problem, two)

    def weights(multipliers):
        return signed_weights(problem, multipliers, point)

    mixed = weights(share * first + (1 - share) * second)
    assert mixed == approx(share * weights(first) + (1 - share) * weights(second))
    assert weights(np.zeros(problem.structure.n_rows)) == approx(w)


@given(people(), seeds, st.lists(st.integers(0, 1), min_size=16, max_size=16))
def test_flipping_labels_keeps_the_weighted_loss_up_to_a_constant(data, seed, other):
    columns, y, h, w = data
    problem = problem_of(CONSTRAINTS, columns, y, w)
    multipliers, point = 3 * multipliers_of(problem, seed), Point(problem.cells(h))
    signed, flipped = (f(problem, multipliers, point) for f in (signed_weights, weigh))

    def difference(predictions):
        as_flipped = flipped.values @ (predictions != flipped.labels)
        return as_flipped - signed @ (predictions != y)

    constant = -signed[signed < 0].sum()
    assert difference(h) == approx(constant)
    assert difference(bits(other[: len(y)])) == approx(constant)


# -- the paper's lemmas, for a learner that finds the best of its models -------------------------

CELLS_OF_X = 5
ALL_MODELS = np.array(list(itertools.product([0, 1], repeat=CELLS_OF_X)), dtype=np.int8)
THRESHOLDS = np.array(
    [[x >= cut for x in range(CELLS_OF_X)] for cut in range(CELLS_OF_X + 1)], dtype=np.int8
)


def best(models, x, problem, multipliers):
    """The predictions of the model with the least weighted 0-1 loss, found by trying all."""
    # Denominators do not move here, so any predictions will do to take the weights at.
    weights = weigh(problem, multipliers, Point(problem.cells(problem.labels)))
    loss = (models[:, x] != weights.labels) @ weights.values
    return models[np.argmin(loss)][x]


LINEAR = [
    gap(SP, by="g") <= 0.1,
    gap(FPR, by="g") <= 0.1,
    ratio(SP, by="g") >= 0.8,
    each(FNR, by="g") <= 0.2,
    overall(SP) <= 0.3,
]


@st.composite
def learnable(draw):
    """People with labels of both kinds in every group, their ``x``, and a linear row."""
    random = np.random.default_rng(draw(seeds))
    n = draw(st.integers(12, 30))
    y = bits(np.r_[[0, 0, 1, 1], random.integers(0, 2, n - 4)])
    g = np.r_[["a", "b", "a", "b"], random.choice(["a", "b"], n - 4)]
    x = random.integers(0, CELLS_OF_X, n)
    constraint = draw(st.sampled_from(LINEAR))
    problem = problem_of([constraint], {"g": g}, y, random.uniform(0.5, 2, n))
    row = draw(st.integers(0, problem.structure.n_rows - 1))
    return problem, x, row


@pytest.mark.parametrize("models", [ALL_MODELS, THRESHOLDS], ids=["all labelings", "thresholds"])
@given(data=learnable(), others=st.floats(0, 0.5), steps=st.lists(st.floats(0.05, 1), max_size=8))
def test_a_rows_violation_never_grows_with_its_own_multiplier(models, data, others, steps):
    problem, x, row = data
    reached = []
    for value in np.cumsum([0.0, *steps]):
        multipliers = np.full(problem.structure.n_rows, others)
        multipliers[row] = value
        reached.append(problem.measure(best(models, x, problem, multipliers)).violations[row])
    assert np.all(np.diff(reached) <= 1e-9)


@pytest.mark.parametrize("models", [ALL_MODELS, THRESHOLDS], ids=["all labelings", "thresholds"])
@given(data=learnable(), steps=st.lists(st.floats(0.05, 1), max_size=8))
def test_accuracy_never_grows_with_a_single_multiplier(models, data, steps):
    problem, x, row = data
    reached = []
    for value in np.cumsum([0.0, *steps]):
        multipliers = np.zeros(problem.structure.n_rows)
        multipliers[row] = value
        reached.append(problem.measure(best(models, x, problem, multipliers)).objective)
    assert np.all(np.diff(reached) <= 1e-9)


@given(data=learnable(), value=st.floats(0, 3))
def test_the_weighted_loss_ranks_models_as_the_lagrangian_does(data, value):
    problem, x, row = data
    multipliers = np.zeros(problem.structure.n_rows)
    multipliers[row] = value
    weights = weigh(problem, multipliers, Point(problem.cells(problem.labels)))
    constants = []
    for model in ALL_MODELS:
        measured = problem.measure(model[x])
        lagrangian = measured.objective - multipliers @ measured.violations
        loss = weights.values @ (model[x] != weights.labels)
        constants.append(lagrangian + loss / problem.total)
    assert np.ptp(constants) == approx(0)


# -- end to end ----------------------------------------------------------------------------------

LEARNERS = {
    "logistic regression": LogisticRegression(tol=1e-10, max_iter=5000),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
}


def population(seed=3, n=400):
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], n)
    X = np.c_[random.normal(size=(n, 2)), sex == "m"].round(3)
    y = (X[:, 0] + 0.9 * X[:, 2] + random.normal(scale=0.7, size=n) > 0.5).astype(int)
    return X, y, sex, random.integers(1, 4, n)


def fair(learner, X, y, sex, **options):
    model = FairClassifier(
        LEARNERS[learner],
        gap(SP, by="sex") <= 0.08,
        strategy=GridSearch(points=33, limit=0.5),  # no choice of its own, unlike other searches
        validation="train",
        random_state=0,
    )
    return model.fit(X, y, sensitive_features={"sex": sex}, **options)


@pytest.mark.parametrize("learner", LEARNERS)
def test_fitting_with_whole_weights_is_fitting_with_copies(learner):
    X, y, sex, w = population()
    rows = np.repeat(np.arange(len(y)), w)
    weighted = fair(learner, X, y, sex, sample_weight=w)
    copied = fair(learner, X[rows], y[rows], sex[rows])
    assert weighted.multipliers_ == pytest.approx(copied.multipliers_)
    assert len(weighted.multipliers_) > 0
    assert (weighted.predict(X) == copied.predict(X)).all()


@pytest.mark.parametrize("learner", LEARNERS)
def test_fitting_does_not_depend_on_the_names_of_groups_nor_on_the_order_of_rows(learner):
    X, y, sex, _ = population()
    order = np.random.default_rng(0).permutation(len(y))
    renamed = np.where(sex == "f", "z", "a")
    plain = fair(learner, X, y, sex)
    turned = fair(learner, X[order], y[order], renamed[order])
    assert list(plain.multipliers_.values()) == pytest.approx(list(turned.multipliers_.values()))
    assert (plain.predict(X) == turned.predict(X)).all()
