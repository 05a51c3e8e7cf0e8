"""The README: its examples run as they stand, and print what it shows."""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.M | re.S)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Another version of a learner moves a rate by less than this, and a count by less than a tenth.
NEAR = 0.02


def words(text):
    """Everything but the numbers, and blanks, whose width follows from them."""
    return NUMBER.sub("#", text).split()


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def test_the_examples_print_what_the_readme_shows(tmp_path, monkeypatch):
    folder = os.environ.get("OMNIFAIR_DATA")
    if not folder or not (Path(folder) / "adult.csv.gz").exists():
        pytest.skip("OMNIFAIR_DATA names no folder with adult.csv.gz")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(README)
    assert len(blocks) > 3
    names = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # noqa: S102 (the README's own code)
        assert words(printed.getvalue()) == words(shown)
        # How many trainings the search takes is its own affair.
        assert numbers(re.sub(r"\d+ trainings", "", printed.getvalue())) == pytest.approx(
            numbers(re.sub(r"\d+ trainings", "", shown)), abs=NEAR, rel=0.1
        )


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", text)
    assert targets
    assert [t for t in targets if not (ROOT / t).exists()] == []
