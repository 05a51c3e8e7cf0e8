"""The harness of the benchmarks on small real samples: not its numbers, but its honesty."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the benchmarks stand outside the package

from benchmarks import machine, peers, report, runner, store, tuning  # noqa: E402 (after the path)
from benchmarks.__main__ import main as benchmarks_main  # noqa: E402
from benchmarks.datasets import cut, load  # noqa: E402
from benchmarks.experiments import EXPERIMENTS, accuracy, common, frontier  # noqa: E402
from benchmarks.learners import GRIDS, LEARNERS, make  # noqa: E402
from benchmarks.methods import GRID, METHODS  # noqa: E402
from benchmarks.methods.base import Candidate, Method, learner, plain_candidate  # noqa: E402
from benchmarks.objective import (  # noqa: E402
    FULL,
    SMOKE,
    Goal,
    Score,
    gap,
    judge,
    rows_of,
    task_of,
)

from omnifair import DatasetError  # noqa: E402

GOAL = Goal((("SP", 0.03),))
TINY = replace(SMOKE, max_rows=800)


@pytest.fixture(scope="module")
def table():
    try:
        return load("compas")
    except DatasetError as error:
        pytest.skip(f"COMPAS is not here: {error}")


@pytest.fixture(scope="module")
def split(table):
    return cut(table, seed=0, max_rows=TINY.max_rows)


@pytest.fixture
def task(split, table):
    return task_of(split, table.sensitive, "LR", {}, GOAL, TINY)


# -- splits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_a_split_is_60_20_20_and_its_parts_share_no_row(table, seed):
    split = cut(table, seed)
    parts = [set(part.rows) for part in (split.train, split.validation, split.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(table)
    assert [round(len(part) / len(table), 3) for part in parts] == [0.6, 0.2, 0.2]


def test_the_same_seed_cuts_the_same_and_another_does_not(table):
    first, again, other = (cut(table, seed, 500) for seed in (3, 3, 4))
    assert np.array_equal(first.test.rows, again.test.rows)
    assert set(first.test.rows) != set(other.test.rows)


def test_parts_hold_the_rows_that_they_name(table, split):
    for part in (split.train, split.validation, split.test):
        assert np.array_equal(part.y, table.y[part.rows])
        assert np.array_equal(part.group, table.group[part.rows])
        assert part.frame.equals(table.X.iloc[part.rows])


def test_the_encoding_is_learned_on_the_training_part_only(table, split):
    numbers = table.X.select_dtypes("number").iloc[split.train.rows]
    ours = split.train.X[:, : numbers.shape[1]]
    assert np.allclose(ours.mean(axis=0), 0, atol=1e-9)
    assert not np.allclose(split.test.X[:, : numbers.shape[1]].mean(axis=0), 0, atol=1e-9)


def test_the_sensitive_column_is_no_feature(table):
    assert table.sensitive not in table.X.columns


# -- the test part stays behind -----------------------------------------------------------------


def contents(value, seen=None):
    """Every array in a value, however deep."""
    if isinstance(value, np.ndarray):
        yield value
    elif hasattr(value, "to_numpy"):
        yield value.to_numpy()
    elif isinstance(value, dict):
        for item in value.values():
            yield from contents(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from contents(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from contents(getattr(value, name))


class Spy(Method):
    """Writes down what it is given, and when."""

    name = "spy"

    def __init__(self):
        self.tasks, self.asked = [], []

    def candidates(self, task):
        self.tasks.append(task)
        for constant in (0, 1):

            def predict(rows, constant=constant):
                self.asked.append(rows)
                return np.full(len(rows.X), constant)

            yield Candidate({"constant": constant}, predict, 0.0)


def test_a_method_gets_no_row_of_the_test_part_to_fit_or_tune(task, split):
    spy = Spy()
    tuned = tuning.tune(spy, task)
    for given in [*spy.tasks, *spy.asked]:
        for array in contents(given):
            assert not np.shares_memory(array, split.test.X) if array.dtype == float else True
            assert len(array) != len(split.test) or not np.array_equal(array, split.test.rows)
    assert all(rows.X is split.validation.X for rows in spy.asked)
    rows = {*spy.tasks[0].train.rows, *spy.tasks[0].validation.rows}
    assert rows.isdisjoint(split.test.rows)
    before = len(spy.asked)
    tuning.result(spy, tuned, GOAL, split.test)
    assert [rows.X is split.test.X for rows in spy.asked[before:]] == [True]


def test_rows_to_predict_carry_no_labels(split):
    rows = rows_of(split.test)
    assert not hasattr(rows, "y")
    assert all(not np.array_equal(array, split.test.y) for array in contents(rows))


def test_a_perfect_peek_at_test_labels_changes_no_choice(task, split):
    flipped = replace(split.test, y=1 - split.test.y)
    method = METHODS["omnifair"]
    one, other = (tuning.run(method, task, test) for test in (split.test, flipped))
    assert one["validation_gaps"] == other["validation_gaps"]
    assert one["accuracy"] == pytest.approx(1 - other["accuracy"])


# -- tuning ------------------------------------------------------------------------------------


def tried(accuracy, gap):
    return tuning.Tried(Candidate({}, None, 1.0), Score(accuracy, {"SP": gap}))


def test_the_most_accurate_candidate_within_the_bound_is_chosen():
    tuned = tuning.Tuned((tried(0.9, 0.2), tried(0.7, 0.01), tried(0.8, 0.03)), None)
    assert tuned.choose(GOAL).score.accuracy == 0.8


def test_without_one_within_the_bound_the_closest_is_chosen():
    tuned = tuning.Tuned((tried(0.9, 0.2), tried(0.7, 0.05), tried(0.8, float("nan"))), None)
    assert tuned.choose(GOAL).score.accuracy == 0.7


def test_a_method_out_of_time_keeps_what_it_has_finished(task):
    class Slow(Method):
        name = "slow"

        def candidates(self, task):
            model = make("LR").fit(task.train.X, task.train.y)
            yield plain_candidate(model, {}, 0.0)
            while True:
                learner(task).fit(task.train.X, task.train.y)

    tuned = tuning.tune(Slow(), replace(task, limit=0.5))
    assert (len(tuned.tried), tuned.why) == (1, "time is up")


def test_a_method_that_fails_gives_its_reason(task, split):
    class Broken(Method):
        name = "broken"

        def candidates(self, task):
            raise ArithmeticError("it does not converge")
            yield

    result = tuning.run(Broken(), task, split.test)
    assert result == {"reason": "NA: ArithmeticError: it does not converge"}


# -- judging -----------------------------------------------------------------------------------


def test_gaps_are_those_that_fairlearn_counts(split):
    metrics = pytest.importorskip("fairlearn.metrics", reason="fairlearn is not installed")
    random = np.random.default_rng(0)
    h = random.integers(0, 2, len(split.test))
    score = judge(split.test, h)
    part = split.test
    for name, count in (
        ("SP", metrics.selection_rate),
        ("FPR", metrics.false_positive_rate),
        ("FNR", metrics.false_negative_rate),
    ):
        frame = metrics.MetricFrame(
            metrics=count, y_true=part.y, y_pred=h, sensitive_features=part.group
        )
        assert score.gaps[name] == pytest.approx(frame.difference())


def test_a_rate_without_a_denominator_leaves_the_gap_undefined():
    y, h, group = np.array([0, 1, 0, 1]), np.array([1, 1, 0, 0]), np.array(["a", "a", "b", "b"])
    assert np.isnan(gap("FDR", y, h, group))
    assert Goal((("FDR", 0.1),)).excess({"FDR": float("nan")}) == np.inf


def test_the_area_under_a_frontier_is_that_of_its_steps():
    points = [(0.0, 0.6), (0.05, 0.8)]
    assert frontier.area(points, width=0.1, floor=0.5) == pytest.approx(0.7)
    assert frontier.area([(0.2, 0.9)], width=0.1, floor=0.5) == 0.5


# -- storage -----------------------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_run_again_and_spoils_no_other(tmp_path):
    path = tmp_path / "x.jsonl"
    store.append(path, {"cell": {"n": 1}, "result": 1})
    with path.open("a") as file:
        file.write('{"cell": {"n": 2}, "res')
    assert [r["cell"]["n"] for r in store.read(path)] == [1]
    store.append(path, {"cell": {"n": 3}, "result": 3})
    assert [r["cell"]["n"] for r in store.read(path)] == [1, 3]


def test_a_run_that_is_killed_goes_on_with_the_cells_that_are_missing(table, tmp_path):
    # No process of its own beside, which would outlive the killed one.
    command = [sys.executable, "-m", "benchmarks", "run", "2", "--smoke", "--jobs", "0"]
    command += ["--results", tmp_path]
    path = store.path_of("smoke", 2, tmp_path)
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while len(store.read(path)) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = path.read_text().splitlines()
    done = store.read(path)
    assert len(done) >= 3
    missing = runner.todo(2, SMOKE, tmp_path)
    assert len(missing) == len(EXPERIMENTS[2].cells(SMOKE)) - len(done)
    plain = [cell for cell in missing if cell["method"] == "no constraint"]
    runner.run([2], SMOKE, folder=tmp_path, methods=("no constraint",), quiet=True)
    after = path.read_text().splitlines()
    assert after[: len(before)] == before
    assert len(store.read(path)) == len(done) + len(plain)


def test_a_finished_run_has_nothing_left_to_do(table, tmp_path):
    for _ in range(2):
        runner.run([2], TINY, folder=tmp_path, methods=("no constraint",), quiet=True)
    lines = store.path_of("smoke", 2, tmp_path).read_text().splitlines()
    assert len(lines) == len({store.key(json.loads(line)["cell"]) for line in lines}) == 3


def test_cells_measured_with_other_code_are_told_and_dropped_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "version", lambda name: f"{name} 1.0")
    path = store.path_of("smoke", 2, tmp_path)
    cells = [{"method": name, "n": n} for name in ("omnifair", "OxonFair") for n in (1, 2)]
    for cell in cells:
        before = "an older code" if cell["n"] == 1 else machine.measured(cell)
        store.append(path, {"cell": cell, "result": 1, "measured": before})
    assert [machine.is_ours(cell) for cell in cells] == [True, True, False, False]
    assert benchmarks_main(["drop", "2", "--form", "smoke", "--results", str(tmp_path)]) == 0
    assert len(store.read(path)) == 4
    benchmarks_main(["drop", "2", "--form", "smoke", "--stale", "--results", str(tmp_path)])
    assert [r["cell"]["n"] for r in store.read(path)] == [2, 2]
    benchmarks_main(["drop", "2", "--method", "OxonFair", "--results", str(tmp_path)])
    assert [r["cell"]["method"] for r in store.read(path)] == ["omnifair"]


def test_cells_of_a_peer_that_is_not_here_are_not_stale(monkeypatch):
    monkeypatch.setattr(peers, "version", lambda name: None)
    record = {"cell": {"method": "OxonFair"}, "measured": "oxonfair 0.3"}
    assert not machine.is_stale(record)


def test_ours_and_peers_share_the_cells_between_them(tmp_path):
    for number in EXPERIMENTS:
        whole, *halves = (
            {store.key(c) for c in runner.todo(number, SMOKE, tmp_path, whose=whose)}
            for whose in (None, "ours", "peers")
        )
        assert set.union(*halves) == whole
        assert not set.intersection(*halves)


def test_experiments_share_the_time_so_that_none_goes_without(tmp_path, monkeypatch):
    clock = [0.0]

    def a_minute_each(number, cell, form):
        clock[0] += 60
        return cell, {"result": {"reason": "NA: nothing"}, "wall": 60.0}

    monkeypatch.setattr(runner, "timed_cell", a_minute_each)
    monkeypatch.setattr(runner.time, "monotonic", lambda: clock[0])
    runner.run([2, 7], SMOKE, folder=tmp_path, minutes=3, methods=("no constraint",), quiet=True)
    stored = [len(store.read(store.path_of("smoke", number, tmp_path))) for number in (2, 7)]
    assert stored == [2, 2]  # of three each: 1.5 minutes, then what is left
    runner.run([2, 7], SMOKE, folder=tmp_path, minutes=3, methods=("no constraint",), quiet=True)
    stored = [len(store.read(store.path_of("smoke", number, tmp_path))) for number in (2, 7)]
    assert stored == [3, 3]


# -- methods and peers -------------------------------------------------------------------------


def test_every_setting_of_every_grid_can_be_made():
    assert set(GRIDS) == set(LEARNERS)
    for name, grid in GRIDS.items():
        if name in ("XGB", "LightGBM"):
            module = {"XGB": "xgboost", "LightGBM": "lightgbm"}[name]
            pytest.importorskip(module, reason=f"{module} is not installed")
        for settings in grid:
            assert make(name, settings).get_params().items() >= settings.items()


def test_a_peer_that_is_not_installed_is_a_printed_reason(task, split, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "HOME", tmp_path)
    (tmp_path / "scikit-lego.reason").write_text("scikit-lego cannot be installed: no wheel\n")
    told = tuning.run(METHODS["scikit-lego (Zafar)"], task, split.test)["reason"]
    assert told == "NA: scikit-lego cannot be installed: no wheel"
    told = tuning.run(METHODS["AIF360 Reweighing"], task, split.test)["reason"]
    assert told.startswith("NA: aif360 is not installed here")


def test_a_peer_without_its_python_leaves_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "HOME", tmp_path)
    monkeypatch.setattr(peers, "find_python", lambda versions: None)
    told = peers.install("fairgbm")
    assert "needs Python 3.10 or 3.11 or 3.9" in told
    assert peers.missing("fairgbm") == told


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if not m.peer])
def test_methods_of_this_environment_run(name, task, split):
    result = tuning.run(METHODS[name], task, split.test)
    if "reason" in result:
        pytest.skip(result["reason"])
    assert 0.4 < result["accuracy"] <= 1
    assert result["candidates"] >= 1


# The others take longer to start than tests should.
@pytest.mark.parametrize("name", ["AIF360 Reweighing", "OxonFair"])
def test_methods_with_an_environment_of_their_own_run(name, task, split):
    method = METHODS[name]
    if peers.missing(method.peer):
        pytest.skip(peers.missing(method.peer))
    result = tuning.run(method, task, split.test)
    assert "reason" not in result, result
    assert 0.4 < result["accuracy"] <= 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell")
def test_a_process_is_charged_for_its_work_and_not_for_waiting():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        time.sleep(0.3)
        assert peers.used(process.pid) < 0.3
        process.kill()
    assert peers.used(process.pid) == np.inf


@pytest.mark.parametrize(
    ("name", "goal", "learner"),
    [
        ("AIF360 MetaFairClassifier", GOAL, "RF"),
        ("fairlearn ExponentiatedGradient", Goal((("FDR", 0.03),)), "LR"),
        ("fairlearn GridSearch", Goal((("SP", 0.03), ("FNR", 0.03))), "LR"),
        ("FairGBM", GOAL, "XGB"),
    ],
)
def test_what_a_method_does_not_support_is_na_2(name, goal, learner, task):
    asked = replace(task, goal=goal, learner=learner)
    assert METHODS[name].reason(asked).startswith("NA(2): ")


# -- the report --------------------------------------------------------------------------------


def stored(folder, monkeypatch):
    """Made-up results of experiment 1 in the folder."""
    path = store.path_of("smoke", 1, folder)
    for method, right, wide, met in (
        ("no constraint", 0.85, 0.17, False),
        ("omnifair", 0.84, 0.02, True),
        ("fairlearn GridSearch", 0.845, 0.025, True),
        ("AIF360 Reweighing", 0.849, 0.08, False),
    ):
        cell = {"dataset": "adult", "learner": "LR", "method": method, "seed": 0}
        result = {"accuracy": right, "gaps": {"SP": wide}, "met": met, "seconds": 1.0}
        store.append(path, {"cell": cell, "result": result, "source": "abc"})
    cell = {"dataset": "adult", "learner": "LR", "method": "omnifair PlugIn", "seed": 0}
    reason = {"reason": "NA: no model within 10 s"}
    store.append(path, {"cell": cell, "result": reason, "source": "abc"})


def test_the_report_is_written_from_stored_results_alone(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    stored(tmp_path / "results", monkeypatch)
    for name in ("tune", "run"):
        monkeypatch.setattr(tuning, name, lambda *_: pytest.fail("the report ran a method"))
    path = report.write(tmp_path / "results", tmp_path / "docs")
    text = path.read_text()
    beside = "| **omnifair** | -1.0<br>gap 0.020, met 1/1 | -2.1 |"  # the paper's own number
    assert beside in text
    assert "NA(1)<br>[-0.1<br>gap 0.080, met 0/1]" in text
    assert "- omnifair PlugIn: NA: no model within 10 s" in text
    assert "adult LR: omnifair -1.00 at a test gap of 0.020, fairlearn GridSearch -0.50" in text
    assert "Not run yet." in text
    assert "omnifair: 2 of 32 cells, splits 0" in text
    assert "| 0 of 1 cells, over 1 split(s); in 0 a rival" in text  # GridSearch's gap is larger
    assert report.write(tmp_path / "results", tmp_path / "docs").read_text() == text


def test_the_form_with_the_most_finished_cells_is_shown(tmp_path):
    for form, count in ((FULL, 1), (SMOKE, 2)):
        for cell in accuracy.cells(form)[:count]:
            store.append(store.path_of(form.name, 1, tmp_path), {"cell": cell, "result": {}})
    form, records = report.choose(1, tmp_path)
    assert (form.name, len(records)) == ("smoke", 2)


def test_a_figure_is_kept_only_by_the_whole_table():
    def record(dataset, learner, method, right):
        cell = {"dataset": dataset, "learner": learner, "method": method, "seed": 0}
        result = {"accuracy": right, "gaps": {"SP": 0.02}, "met": method != "no constraint"}
        return {"cell": cell, "result": result}

    rows = [
        record(dataset, learner, method, right)
        for dataset in common.DATASETS
        for learner in accuracy.LEARNERS
        for method, right in (
            ("no constraint", 0.9),
            ("omnifair", 0.89),
            ("AIF360 Reweighing", 0.8),
        )
    ]
    aim, best = accuracy.aims(rows)
    assert (aim.kept, aim.beaten) == (True, ())
    assert best.kept is None  # nothing of BestOf is stored
    aim, _ = accuracy.aims(rows[:-3])
    assert aim.kept is None
    for worse in rows[2 : 3 * 4 : 3]:
        worse["result"]["accuracy"] = 0.895  # now ahead of omnifair in four cells
    aim, _ = accuracy.aims(rows)
    assert (aim.kept, len(aim.beaten)) == (False, 4)
    assert "adult LR: omnifair -1.00" in aim.beaten[0]
    other = [{**r, "cell": {**r["cell"], "method": "omnifair BestOf"}} for r in rows[1::3]]
    _, best = accuracy.aims([*rows, *other])
    assert (best.kept, len(best.beaten)) == (False, 4)  # by the same rule
    assert "adult LR: omnifair BestOf -1.00" in best.beaten[0]


def test_cells_of_all_experiments_differ_and_name_known_methods():
    for form in (SMOKE, replace(SMOKE, name="full", seeds=(0, 1))):
        for number, experiment in EXPERIMENTS.items():
            cells = experiment.cells(form)
            assert len({store.key(cell) for cell in cells}) == len(cells) > 0
            names = {cell["method"] for cell in cells if "method" in cell}
            assert names <= {*METHODS, GRID.name}, number
    assert {cell["method"] for cell in accuracy.cells(SMOKE)} == set(METHODS)


def test_benchmarks_run_in_one_thread_though_numpy_was_imported_before():
    script = (
        "import numpy, threadpoolctl\n"
        "from benchmarks.runner import single_threaded\n"
        "single_threaded()\n"
        "numpy.ones((50, 50)) @ numpy.ones((50, 50))\n"
        "print(max(pool['num_threads'] for pool in threadpoolctl.threadpool_info()))"
    )
    several = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **several},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "1"


def test_the_harness_needs_no_data_to_be_imported():
    environment = {**os.environ, "OMNIFAIR_DATA": os.devnull}
    command = [sys.executable, "-m", "benchmarks", "list"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
