"""The package as a whole: its names, its imports, its manners."""

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import omnifair

SOURCE = Path(omnifair.__file__).parent
ARCHITECTURE = Path(__file__).parents[1] / "ARCHITECTURE.md"
MODULES = sorted(SOURCE.rglob("*.py"))
OPTIONAL = [
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "xgboost",
    "lightgbm",
    "catboost",
    "fairlearn",
    "platformdirs",
]

# Notes, in the set ``asked``, which of them a module of omnifair asks for by itself.
WATCH = f"""
import builtins
asked, real = set(), builtins.__import__
def watch(name, globals=None, *rest):
    if (globals or {{}}).get("__name__", "").startswith("omnifair"):
        asked.update({{name.partition(".")[0]}} & set({OPTIONAL}))
    return real(name, globals, *rest)
builtins.__import__ = watch
"""

# Names that are fixed from the start; others may stand beside them.
FIXED = [
    "Certificate",
    "FairClassifier",
    "GridSearch",
    "InfeasibleError",
    "PaperSearch",
    "PlugIn",
    "audit",
    "certify",
    "each",
    "gap",
    "groups",
    "overall",
    "parse",
    "rates",
    "ratio",
    "sample_size",
]


def test_the_public_names_are_those_listed_and_each_is_there():
    imported = {
        alias.asname or alias.name
        for node in ast.parse((SOURCE / "__init__.py").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(omnifair.__all__)
    assert len(omnifair.__all__) == len(imported)
    assert all(hasattr(omnifair, name) for name in omnifair.__all__)


@pytest.mark.parametrize("name", FIXED)
def test_a_promised_name_is_there(name):
    assert name in omnifair.__all__


def test_a_star_import_brings_the_public_names_only():
    names = {}
    exec("from omnifair import *", names)  # noqa: S102 (a star import works at this level only)
    assert names.keys() - {"__builtins__"} == set(omnifair.__all__)


@pytest.mark.parametrize("name", sorted(omnifair.__all__))
def test_every_public_name_is_documented(name):
    assert getattr(omnifair, name).__doc__


def test_the_version_is_that_of_the_package():
    assert omnifair.__version__ == metadata.version("omnifair")


def test_it_is_typed():
    assert (SOURCE / "py.typed").is_file()


def run(code):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("module", ["omnifair", "omnifair.datasets"])
def test_importing_it_imports_no_optional_package(module):
    # scikit-learn looks for pandas itself, so the question is what is there beyond its doing.
    code = f"import sys, sklearn.linear_model, narwhals, joblib; known = set(sys.modules); {WATCH}"
    code += f"import {module}; print(*sorted(asked | ({set(OPTIONAL)} & set(sys.modules) - known)))"
    assert run(code) == []


def test_it_works_where_no_optional_package_is_installed():
    code = f"""
import sys
class Absent:
    def find_spec(name, *rest):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
import numpy as np, omnifair, omnifair.datasets
from sklearn.linear_model import LogisticRegression
x = np.random.RandomState(0).normal(size=(200, 2))
sex, y = (x[:, 1] > 0).astype(int), (x.sum(axis=1) > 0).astype(int)
bound = omnifair.gap(omnifair.rates.selection_rate, by="sex") <= 0.2
model = omnifair.FairClassifier(LogisticRegression(), bound, random_state=0)
print(model.fit(x, y, sensitive_features={{"sex": sex}}).status_)
"""
    assert run(code) == ["satisfied"]


def test_importing_it_prints_nothing_and_warns_of_nothing():
    assert run("import warnings; warnings.simplefilter('error'); import omnifair") == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_prints_only_where_it_was_asked_to(path):
    lines = path.read_text().splitlines()
    prints = [
        lines[node.end_lineno - 1]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]
    assert all("verbose asks for it" in line for line in prints)
    assert not prints or path.name == "estimator.py"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_by_itself(path):
    name = ".".join(["omnifair", *path.relative_to(SOURCE).with_suffix("").parts])
    assert __import__(name.removesuffix(".__init__"), fromlist=["x"]).__doc__


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_stands_in_the_architecture(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert name == "__init__" or f"| `{name}` |" in text


def test_the_architecture_names_no_module_that_is_gone():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    table = re.findall(r"^\| `([a-z_.]+)` \|", text, re.M)
    places = [SOURCE.joinpath(*name.split(".")) for name in table]
    assert [p for p in places if not p.with_suffix(".py").exists() and not p.is_dir()] == []


def test_the_data_sets_are_there_without_an_import_of_their_own():
    code = "import omnifair; print(omnifair.datasets.make_lending.__name__)"
    assert run(code) == ["make_lending"]


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'fair'"):
        _ = omnifair.fair
