"""The report of the search's benchmark: figures by hand from a few made-up runs."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import search
from benchmarks.search import BEGIN, END, Cell, Scaled, report

OURS = Cell(
    kind="one",
    case="SP adult",
    learner="LR",
    split=0,
    method="omnifair",
    trainings=4,
    status="satisfied",
    worst=-0.003,
    plain_worst=0.15,
    validation=0.84,
    test=0.83,
    seconds=2.0,
    plain_seconds=0.5,
)
RUNS = [
    OURS,
    replace(OURS, split=1, trainings=3, worst=-0.006),
    replace(OURS, split=2, trainings=11, seconds=3.0),
    replace(OURS, method="paper", trainings=16, validation=0.838, test=0.831, seconds=6.0),
    replace(OURS, method="fairlearn", trainings=30, seconds=20.0),
]
SIZES = [
    Scaled(10_000, "LR", 3, 3, 0.1, 0.11, 0.2, 4.0, met=True),
    Scaled(300_000, "LR", 4, 2, 2.0, 2.1, 0.02, 2.5, met=True),
]


def line(text, start):
    """The first line that starts so."""
    return next(row for row in text.splitlines() if row.startswith(start))


def test_a_row_tells_trainings_bounds_and_time_and_what_was_wanted():
    told = line(report(RUNS, []), "one constraint").split()
    # 3 runs, median 4, worst 11 of the 10 wanted, all met, bound used 0.9 and 0.9, time 4 times.
    assert told[-10:] == ["3", "4.0", "11", "4,", "10", "NO", "3/3", "0.90,", "0.90", "4.0"]


def test_the_verdicts_are_judged_by_what_was_wanted():
    text = report(RUNS, SIZES)
    assert line(text, "Time of a whole fit").endswith("4.0 (wanted: 4.5 at most): yes")
    assert line(text, "Accuracy on validation").endswith(
        "+0.20 points (wanted: no worse than -0.05): yes"
    )
    assert line(text, "Its time over ours").endswith("10.0 (wanted: 8 at least): yes")
    assert line(text, "The search's own share").endswith("20.0% (wanted: under 5%): NO")
    assert line(text, "The whole fit over a plain one at 300,000").endswith(
        "2.5 (wanted: 3 at most): yes"
    )


@pytest.mark.parametrize("runs", [[], RUNS[:1]], ids=["nothing", "ours only"])
def test_what_is_not_stored_yet_is_left_out(runs):
    text = report(runs, [])
    assert ("Against fairlearn's" in text) == bool(runs)
    assert "nan" not in text


def test_writing_again_replaces_what_was_written(tmp_path, monkeypatch):
    document = tmp_path / "search.md"
    document.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    monkeypatch.setattr(search, "DOCUMENT", document)
    search.write("first")
    search.write("second")
    assert document.read_text() == f"before\n{BEGIN}\n```text\nsecond\n```\n{END}\nafter\n"


def test_the_document_has_a_place_for_the_tables():
    text = search.DOCUMENT.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert text.index(BEGIN) < text.index(END)
