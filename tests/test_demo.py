"""The demo that a new user runs first."""

import os
import runpy
from pathlib import Path

import pytest

from omnifair import DatasetError, datasets

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def table(output):
    """The two rows of numbers, by model."""
    lines = [line.split() for line in output.splitlines() if line.startswith(("plain", "fair"))]
    return {name: [float(number) for number in numbers] for name, *numbers in lines}


def assert_fairer(output):
    rows = table(output)
    (*_, plain_gap, plain_trainings), (*_, fair_gap, fair_trainings) = rows["plain"], rows["fair"]
    assert plain_gap > 0.1
    assert fair_gap < 0.05  # 0.03 on the validation rows, and what another sample adds
    assert rows["plain"][0] - rows["fair"][0] < 0.1
    assert (plain_trainings, fair_trainings > 1) == (1, True)


def test_the_demo_compares_a_plain_and_a_fair_model_on_adult(capsys):
    folder = os.environ.get("OMNIFAIR_DATA")
    if not folder or not (Path(folder) / "adult.csv.gz").exists():
        pytest.skip("OMNIFAIR_DATA names no folder with adult.csv.gz")
    runpy.run_path(str(DEMO))
    output = capsys.readouterr().out
    assert f"data         adult: {Path(folder) / 'adult.csv.gz'}\n" in output
    assert "constraint   gap(selection_rate, by='sex') <= 0.03\n" in output
    assert_fairer(output)


def test_the_demo_takes_synthetic_data_where_there_are_no_others_and_says_so(capsys, monkeypatch):
    def adult():
        raise DatasetError("none of its sources gave it")

    monkeypatch.setattr(datasets, "adult", adult)
    runpy.run_path(str(DEMO))
    output = capsys.readouterr().out
    assert output.startswith("Adult could not be had, so these are SYNTHETIC data instead.\nnone")
    assert "data         lending: synthetic, make_lending(45000, random_state=0)\n" in output
    assert_fairer(output)
