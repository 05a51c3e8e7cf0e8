"""The README: its examples run as they stand, and print what it shows.

``python tests/test_readme.py`` writes what they print now into it.
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Another version of a learner moves a rate by less than this, and a count by less than a tenth.
NEAR = 0.02


def words(text):
    """Everything but the numbers, and blanks, whose width follows from them."""
    return NUMBER.sub("#", text).split()


def numbers(text):
    """All but how many trainings the search took, which is its own affair."""
    without = re.sub(r"\d+ trainings?", "", text)
    return [float(number.replace(",", "")) for number in NUMBER.findall(without)]


def printed(code, names):
    """What some code prints; ``names`` are there, and it adds to them."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, names)  # noqa: S102 (the README's own code)
    return output.getvalue()


def test_the_examples_print_what_the_readme_shows(tmp_path, monkeypatch):
    folder = os.environ.get("OMNIFAIR_DATA")
    if not folder or not (Path(folder) / "adult.csv.gz").exists():
        pytest.skip("OMNIFAIR_DATA names no folder with adult.csv.gz")
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") > 3
    names = {}
    for code, shown in blocks:
        output = printed(code, names)
        assert words(output) == words(shown)
        assert numbers(output) == pytest.approx(numbers(shown), abs=NEAR, rel=0.1)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", text)
    assert targets
    assert [t for t in targets if not (ROOT / t).exists()] == []


def rewrite():
    """Put what the examples print into the README."""
    names, text = {}, README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = BLOCK.sub(
            lambda b: f"```python\n{b[1]}```\n```text\n{printed(b[1], names).rstrip()}\n```", text
        )
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
