"""The loop and its strategies, with a fake learner whose response to multipliers is known."""

import itertools
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnifair import BracketSearch, GridSearch, LearnerError, PaperSearch, Status, each, gap
from omnifair.frames import Frame
from omnifair.problem import Measurement, bind, measure_value
from omnifair.rates import accuracy, false_discovery_rate, selection_rate
from omnifair.search import search
from omnifair.search.dimensions import dimensions
from omnifair.training import Proposal, Trial

EPS = 0.03
SEX = gap(selection_rate, by="sex") <= EPS
RACE = gap(selection_rate, by="race") <= EPS
FDR = gap(false_discovery_rate, by="sex") <= EPS
FLOOR = each(selection_rate, by="sex", only=["a"]) >= 0.6
CEILING = each(selection_rate, by="sex", only=["a"]) <= 0.4


def problem_of(*constraints):
    """Eight rows: two sexes, two races, both labels."""
    rows = list(itertools.product("ab", "xy", (0, 1)))
    columns = {"sex": [r[0] for r in rows], "race": [r[1] for r in rows]}
    labels = np.array([r[2] for r in rows], dtype=np.int8)
    return bind(constraints, accuracy, Frame(columns, None, 8), labels, np.ones(8))


@dataclass
class FakeTrainer:
    """``response`` gives the rates for a vector of multipliers; accuracy falls as these grow."""

    measured: object
    response: object
    fits_per_trial: int = 1
    objective: object = staticmethod(lambda multipliers: 1 - np.abs(multipliers).sum() / 100)
    trials: list = field(default_factory=list)

    at_once: int = 1

    def cost(self, proposal):
        return self.fits_per_trial

    def train(self, proposals):
        return [self.train_one(p) for p in proposals]

    def train_one(self, proposal):
        structure = self.measured.structure
        rates = np.asarray(self.response(proposal.multipliers), dtype=float)
        measurement = Measurement(
            cells=np.zeros((len(structure.groups), 4)),
            rates=rates,
            violations=structure.matrix @ rates - structure.bounds,
            measures=tuple(
                measure_value(c, structure, list(m), rates)
                for c, m in zip(structure.constraints, structure.metrics_of, strict=True)
            ),
            objective=float(self.objective(proposal.multipliers)),
            sense=1,
            predictions=np.zeros(8, dtype=np.int8),
        )
        trial = Trial(
            number=len(self.trials),
            multipliers=proposal.multipliers,
            measurement=measurement,
            models=("model",) * self.fits_per_trial,
            fits=self.fits_per_trial,
            seconds=0.0,
            proposal=proposal,
        )
        self.trials.append(trial)
        return trial

    @property
    def setting(self):
        """What strategies are told: only the problem, as nothing here has rows to train on."""
        return SimpleNamespace(problem=self.measured)

    def signed(self, dim=0):
        """One demand's signed multiplier in every training: its first row's less its second's."""
        rows = dimensions(self.measured.structure)[dim].rows
        return [
            float(t.multipliers[rows[0]] - (t.multipliers[rows[1]] if len(rows) > 1 else 0.0))
            for t in self.trials
        ]


def run(strategy, trainer, max_fits=None):
    """The loop, quietly."""
    return search(strategy, trainer, max_fits, lambda record: None)


def linear(start, pull):
    """Signed gaps ``start - pull @ signed multipliers``, as rates of a and b, x and y."""
    start, pull = np.atleast_1d(start), np.atleast_2d(pull)

    def response(multipliers):
        gaps = start - pull @ (multipliers[::2] - multipliers[1::2])
        return np.ravel([(0.5 + g / 2, 0.5 - g / 2) for g in gaps])

    return response


# -- Algorithm 1 ---------------------------------------------------------------------------------


def algorithm_1(gap_at, eps=EPS, tau=1e-4, delta=None):
    """The paper's listing: the multipliers that it trains with, in order."""
    tried = [0.0]
    fp = gap_at(0.0)
    if abs(fp) <= eps:
        return tried
    sign = 1.0 if fp > 0 else -1.0  # "change the order of g1 and g2"

    def still_violated(value):
        tried.append(sign * value)
        return sign * gap_at(sign * value) > eps

    low, high = 0.0, delta or 1.0
    step = 1
    while still_violated(high):
        step += 1
        low, high = high, (delta * step if delta else 2 * high)
    while high - low >= tau:
        middle = (low + high) / 2  # printed as (u + u) / 2
        if still_violated(middle):
            low = middle
        else:
            high = middle
    return tried


@pytest.mark.parametrize("start", [0.3, -0.3, 0.04, 0.029, -0.9])
@pytest.mark.parametrize("pull", [0.1, 1.0, 0.013])
def test_one_multiplier_is_doubled_from_one_then_bisected(start, pull):
    trainer = FakeTrainer(problem_of(SEX), linear(start, pull))
    solution = run(PaperSearch(), trainer)
    assert trainer.signed() == algorithm_1(lambda value: start - pull * value)
    assert solution.status is Status.SATISFIED
    if abs(start) > EPS:  # the gentlest multiplier that will do, to within tau
        needed = (abs(start) - EPS) / pull
        assert needed <= abs(solution.trial.multipliers).sum() + 1e-9
        assert abs(solution.trial.multipliers).sum() < needed + 1e-4


def test_the_width_at_which_bisection_ends_is_tau():
    trainer = FakeTrainer(problem_of(SEX), linear(0.3, 0.1))
    run(PaperSearch(tau=0.01), trainer)
    assert trainer.signed() == algorithm_1(lambda value: 0.3 - 0.1 * value, tau=0.01)
    # 0, then 1, 2, 4, then the interval of 2 is halved 8 times: 2 / 2**8 < 0.01
    assert len(trainer.trials) == 1 + 3 + 8


def test_rates_with_predictions_below_are_bounded_by_steps_of_delta():
    trainer = FakeTrainer(problem_of(FDR), linear(0.313, 20.0))
    solution = run(PaperSearch(), trainer)
    expected = algorithm_1(lambda value: 0.313 - 20.0 * value, delta=1e-3)
    assert trainer.signed() == expected
    assert expected[:4] == [0.0, 0.001, 0.002, 0.003]
    assert solution.status is Status.SATISFIED


def test_such_weights_are_the_papers_and_taken_at_the_lower_end_of_the_interval():
    trainer = FakeTrainer(problem_of(FDR), linear(0.313, 20.0))
    run(PaperSearch(), trainer)
    first, *rest = trainer.trials
    assert first.proposal.at is None
    assert all(trial.proposal.fixed for trial in rest)
    for trial in rest:
        value = abs(trial.multipliers).sum()
        below = [
            t
            for t in trainer.trials[: trial.number]
            if t.measurement.measures[0] > EPS and abs(t.multipliers).sum() < value
        ]
        assert trial.proposal.at is max(below, key=lambda t: abs(t.multipliers).sum())


def test_where_one_direction_does_not_lead_there_the_other_is_tried():
    trainer = FakeTrainer(problem_of(FDR), linear(0.3, -20.0))  # the weights push the wrong way
    solution = run(PaperSearch(max_steps=15), trainer)
    steps = [round(value * 1000, 6) for value in trainer.signed()]
    assert steps[:16] == list(range(16))
    assert steps[16:30] == [-k for k in range(1, 15)]
    assert solution.status is Status.SATISFIED


def test_where_neither_direction_leads_there_it_ends_within_the_stated_steps():
    trainer = FakeTrainer(problem_of(FDR), linear(0.3, 0.0))
    solution = run(PaperSearch(max_steps=15, rounds=1), trainer)
    assert len(trainer.trials) == 1 + 2 * 15
    assert solution.status is Status.INFEASIBLE


def test_doubling_ends_at_two_to_the_twentieth():
    trainer = FakeTrainer(problem_of(SEX), linear(0.3, 0.0))
    solution = run(PaperSearch(rounds=1), trainer)
    assert trainer.signed() == [0.0, *(2.0**k for k in range(21))]
    assert solution.status is Status.INFEASIBLE


def test_what_is_met_at_once_takes_one_training():
    trainer = FakeTrainer(problem_of(SEX, RACE), linear([0.01, -0.03], np.eye(2)))
    assert run(PaperSearch(), trainer).fits == 1


# -- Algorithm 2 ---------------------------------------------------------------------------------


def algorithm_2(gaps_at, k, eps=EPS):
    """The paper's hill climbing: the multipliers of every training, in order."""
    current = np.zeros(k)
    tried = [current]
    for _ in range(5 * k):
        excess = np.abs(gaps_at(current)) - eps
        if (excess <= 1e-9).all():
            break
        i = int(excess.argmax())

        at = partial(replaced, current, i)
        values = algorithm_1(lambda value, at=at, i=i: gaps_at(at(value))[i], eps)
        # Where this multiplier is 0 already, that model is there.
        tried += [at(value) for value in (values if current[i] else values[1:])]
        good = [v for v in values if abs(gaps_at(at(v))[i]) <= eps + 1e-9]
        current = at(min(good, key=abs))
    return tried


def replaced(point, i, value):
    """The point with one coordinate changed."""
    return np.array([value if j == i else old for j, old in enumerate(point)])


@pytest.mark.parametrize(
    ("start", "pull"),
    [
        ([0.3, 0.2], [[1.0, 0.0], [0.0, 1.0]]),
        ([0.2, 0.3], [[1.0, 0.0], [0.0, 1.0]]),
        ([0.3, -0.2], [[1.0, 0.3], [0.2, 0.7]]),
        ([0.02, 0.3], [[1.0, 0.5], [0.4, 1.0]]),
    ],
    ids=["first", "second", "coupled", "disturbed"],
)
def test_the_most_violated_constraint_is_tuned_while_the_others_stand_still(start, pull):
    trainer = FakeTrainer(problem_of(SEX, RACE), linear(start, pull))
    run(PaperSearch(), trainer)
    expected = algorithm_2(lambda point: np.array(start) - np.array(pull) @ point, 2)
    assert np.column_stack([trainer.signed(0), trainer.signed(1)]).tolist() == [
        point.tolist() for point in expected
    ]
    assert len({tuple(point != 0) for point in expected}) >= 2


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_hill_climbing_ends_after_the_stated_rounds_for_each_constraint(rounds):
    # A floor above a ceiling: meeting one always breaks the other.
    def response(multipliers):
        return [0.5 + 0.1 * (multipliers[0] - multipliers[1])]

    trainer = FakeTrainer(problem_of(FLOOR, CEILING), response)
    solution = run(PaperSearch(rounds=rounds), trainer)
    # A round that takes up a multiplier again starts it from 0.
    moved = [
        int(np.flatnonzero(b.multipliers != a.multipliers)[0])
        for a, b in itertools.pairwise(trainer.trials)
    ]
    assert len(list(itertools.groupby(moved))) == rounds * 2
    assert solution.status is Status.INFEASIBLE
    assert min(t.multipliers.min() for t in trainer.trials) >= 0


def test_an_undefined_rate_is_no_end_and_no_crash():
    def response(multipliers):
        value = multipliers[0] - multipliers[1]
        return [np.nan, 0.5] if 1.5 < value < 3 else [0.8 - 0.1 * value, 0.5]

    trainer = FakeTrainer(problem_of(SEX), response)
    solution = run(PaperSearch(), trainer)
    assert solution.status is Status.SATISFIED
    assert any(record["undefined"] == "selection_rate[sex=a]" for record in solution.records)


def test_rates_undefined_from_the_start_end_the_search_as_infeasible():
    for strategy in (PaperSearch(), BracketSearch(), GridSearch(points=3)):
        trainer = FakeTrainer(problem_of(SEX), lambda multipliers: [np.nan, np.nan])
        solution = run(strategy, trainer, max_fits=50)
        assert solution.status is not Status.SATISFIED
        assert np.isnan(solution.records[0]["gap(selection_rate, by='sex')"])
        assert solution.records[0]["worst_violation"] == np.inf


# -- the grid ------------------------------------------------------------------------------------


def test_the_grid_holds_every_combination_the_gentlest_first():
    trainer = FakeTrainer(problem_of(SEX, RACE, FLOOR), lambda multipliers: [0.5] * 5)
    run(GridSearch(points=5, limit=0.4), trainer)
    tried = list(zip(trainer.signed(0), trainer.signed(1), trainer.signed(2), strict=True))
    two_sided, one_sided = [-0.4, -0.2, 0.0, 0.2, 0.4], [0.0, 0.1, 0.2, 0.3, 0.4]
    expected = set(itertools.product(two_sided, two_sided, one_sided))
    assert {tuple(np.round(t, 9) + 0.0) for t in tried} == expected
    assert len(tried) == len(expected)
    assert tried[0] == (0, 0, 0)
    sizes = [sum(map(abs, t)) for t in tried]
    assert np.all(np.diff(sizes) >= -1e-9)


def test_an_even_grid_holds_zero_too():
    trainer = FakeTrainer(problem_of(SEX), linear(0.3, 1.0))
    run(GridSearch(points=2, limit=0.3), trainer)
    assert sorted(trainer.signed()) == [-0.3, 0.0, 0.3]


def test_the_grid_keeps_the_most_accurate_point_that_satisfies():
    trainer = FakeTrainer(problem_of(SEX), linear(0.3, 1.0))
    solution = run(GridSearch(points=11, limit=0.5), trainer)
    assert solution.status is Status.SATISFIED
    assert abs(solution.trial.multipliers).sum() == pytest.approx(0.3)


def test_grid_weights_that_depend_on_predictions_are_taken_at_the_nearest_model():
    trainer = FakeTrainer(problem_of(FDR), linear(0.3, 1.0))
    run(GridSearch(points=7), trainer)
    assert trainer.trials[0].proposal.at is None
    for trial in trainer.trials[1:]:
        distances = [
            abs(t.multipliers - trial.multipliers).sum() for t in trainer.trials[: trial.number]
        ]
        at = trial.proposal.at
        assert abs(at.multipliers - trial.multipliers).sum() == min(distances)


def test_a_grid_that_is_too_large_is_refused_before_it_is_begun():
    trainer = FakeTrainer(problem_of(SEX, RACE, FLOOR), lambda multipliers: [0.5] * 5)
    with pytest.raises(LearnerError, match=r"21 points for each of 3 demands .* fewer points"):
        run(GridSearch(max_points=1000), trainer)
    assert not trainer.trials


# -- the loop ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Script:
    """Proposes batches of given single multipliers, whatever comes back."""

    batches: tuple
    own_budget: int | None = None

    def budget(self, problem):
        return self.own_budget

    def steps(self, setting):
        for batch in self.batches:
            proposals = [
                Proposal(np.array([value] + [0.0] * (setting.problem.structure.n_rows - 1)))
                for value in batch
            ]
            trials = yield proposals
            assert [t.proposal for t in trials] == proposals


BATCHES = st.lists(
    st.lists(st.floats(0, 5), min_size=1, max_size=4).map(tuple), min_size=1, max_size=6
).map(tuple)
STRATEGIES = st.one_of(
    BATCHES.map(Script),
    st.builds(Script, BATCHES, st.integers(1, 9)),
    st.sampled_from(
        [PaperSearch(), PaperSearch(max_steps=7), GridSearch(points=5), BracketSearch()]
    ),
)


@settings(deadline=None)
@given(
    STRATEGIES,
    st.integers(1, 40),
    st.integers(1, 5),
    st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    st.sampled_from([SEX, FDR]),
    st.floats(-0.5, 2),
)
def test_a_budget_is_never_exceeded(strategy, budget, fits_per_trial, start, constraint, pull):
    budget = max(budget, fits_per_trial)  # less is refused before the loop
    response = linear(start, [[pull, 0.1], [0.2, pull]])
    trainer = FakeTrainer(problem_of(constraint, RACE), response, fits_per_trial)
    solution = run(strategy, trainer, budget)
    assert solution.fits == len(trainer.trials) * fits_per_trial <= budget
    assert len(solution.records) == len(trainer.trials) >= 1


@given(BATCHES, st.integers(1, 12), st.integers(2, 4))
def test_a_strategy_is_sent_all_it_proposed_or_ended_by_the_budget(batches, budget, at_once):
    wanted = sum(map(len, batches))
    trainer = FakeTrainer(problem_of(SEX), linear(1.0, 0.0), at_once=at_once)
    solution = run(Script(batches), trainer, budget)  # the script asserts what it is sent
    assert len(trainer.trials) == min(budget, wanted)
    assert solution.status is (Status.BUDGET if wanted > budget else Status.INFEASIBLE)


@given(BATCHES, st.integers(1, 30), st.integers(1, 4))
def test_a_strategys_own_budget_counts_trials_and_gives_way_to_the_users(batches, own, fits):
    script, wanted = Script(batches, own), sum(map(len, batches))
    trainer = FakeTrainer(problem_of(SEX), linear(1.0, 0.0), fits)
    solution = run(script, trainer)
    assert len(trainer.trials) == min(own, wanted)
    assert solution.status is (Status.BUDGET if wanted > own else Status.INFEASIBLE)
    trainer = FakeTrainer(problem_of(SEX), linear(1.0, 0.0), fits)
    run(script, trainer, 1000)
    assert len(trainer.trials) == wanted


TABLES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.02, 0.1, 0.3, np.nan]), st.sampled_from([0.5, 0.7, 0.9])),
    min_size=1,
    max_size=12,
)


@given(TABLES)
def test_the_best_satisfying_trial_is_returned_and_otherwise_the_closest(table):
    def gap_of(multipliers):
        value = table[int(multipliers[0])][0]
        return [0.5 + value, 0.5]

    trainer = FakeTrainer(
        problem_of(SEX), gap_of, objective=lambda multipliers: table[int(multipliers[0])][1]
    )
    solution = run(Script((tuple(map(float, range(len(table)))),)), trainer)
    chosen = solution.trial.number
    good = [i for i, (value, _) in enumerate(table) if value <= EPS]
    if good:
        expected = max(good, key=lambda i: (table[i][1], -i))
        assert solution.status is Status.SATISFIED
    else:
        miss = [np.inf if np.isnan(value) else value for value, _ in table]
        expected = min(range(len(table)), key=lambda i: (miss[i], -table[i][1], i))
        assert solution.status is Status.INFEASIBLE
    assert chosen == expected  # of equals the gentlest: here, the first


def test_meeting_the_constraints_late_in_the_budget_counts_as_met():
    trainer = FakeTrainer(problem_of(SEX), linear(0.3, 1.0))
    solution = run(Script(((0.0, 0.29), (0.4,))), trainer, 2)
    assert solution.status is Status.SATISFIED
    assert len(trainer.trials) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status.SATISFIED, "are met where they were measured"),
        (Status.INFEASIBLE, "ended without meeting"),
        (Status.BUDGET, "budget of trainings or of time ended"),
        (Status.INTERRUPTED, "interrupted"),
        (Status.UNCONSTRAINED, "no constraints"),
        (Status.CERTIFIED, "shown to hold"),
        (Status.UNCERTIFIED, "could not be shown"),
    ],
)
def test_a_status_is_text_and_has_a_sentence(status, words):
    assert words in status.message
    assert status == str(status) == status.value
    assert set(Status) == {
        "satisfied",
        "infeasible",
        "budget",
        "interrupted",
        "unconstrained",
        "certified",
        "uncertified",
    }


@settings(deadline=None)
@given(STRATEGIES, st.integers(1, 30))
def test_records_have_the_same_keys_and_plain_values(strategy, budget):
    trainer = FakeTrainer(problem_of(SEX, RACE), linear([0.4, -0.3], [[1, 0.2], [0.1, 1]]))
    seen = []
    solution = search(strategy, trainer, budget, seen.append)
    assert len({tuple(record) for record in solution.records}) == 1
    assert [r["training"] for r in solution.records] == list(range(len(trainer.trials)))
    assert len(seen) == len(solution.records)
    for record, trial in zip(solution.records, trainer.trials, strict=True):
        assert all(type(value) in (int, float, bool, str) for value in record.values())
        assert record["accuracy"] == trial.measurement.objective
        assert record["gap(selection_rate, by='sex')"] == trial.measurement.measures[0]
        total = sum(v for k, v in record.items() if k.startswith("multiplier of "))
        assert total == pytest.approx(abs(trial.multipliers).sum())


def test_the_smallest_violation_of_each_constraint_is_kept_by_itself():
    # SEX is best at the first point and RACE at the second, which never meet.
    def response(multipliers):
        sex, race = (0.1, 0.5) if multipliers[0] == 0 else (0.4, 0.2)
        return [0.5 + sex, 0.5, 0.5 + race, 0.5]

    trainer = FakeTrainer(problem_of(SEX, RACE), response)
    solution = run(Script(((0.0, 1.0),)), trainer)
    assert solution.smallest[0].measures[0] == pytest.approx(0.1)
    assert solution.smallest[1].measures[1] == pytest.approx(0.2)


def test_a_strategy_is_closed_when_the_budget_ends():
    closed = []

    class Endless:
        def budget(self, problem):
            return None

        def steps(self, setting):
            try:
                while True:
                    yield [Proposal(np.zeros(setting.problem.structure.n_rows))]
            finally:
                closed.append(True)

    solution = run(Endless(), FakeTrainer(problem_of(SEX), linear(0.5, 0.0)), 3)
    assert (solution.status, closed) == (Status.BUDGET, [True])


@pytest.mark.parametrize("strategy", [PaperSearch(), GridSearch(), BracketSearch()])
def test_strategies_are_frozen_values(strategy):
    assert type(strategy)() == strategy
    assert hash(type(strategy)()) == hash(strategy)
    with pytest.raises(AttributeError):
        strategy.anything = 1
