"""Where and with what the results were made."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import peers, store

PACKAGES = (
    "omnifair", "numpy", "scipy", "scikit-learn", "xgboost-cpu", "xgboost", "lightgbm", "fairlearn",
)  # fmt: skip


@functools.cache
def commit() -> str:
    """The last commit of the package's code, with a plus if what is here differs from it."""
    here = Path(__file__).parent
    try:
        head = _git(here, "log", "-1", "--format=%h", "--", "../src/omnifair")
        return head + ("+" if _git(here, "status", "--porcelain", "--", "../src") else "")
    except (subprocess.SubprocessError, OSError):
        return "unknown"


MISSING = "is not here"


@functools.cache
def code() -> str:
    """omnifair's version and a hash of its source: what a measurement of it is good for."""
    import omnifair

    folder = Path(omnifair.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return f"omnifair {omnifair.__version__} {digest.hexdigest()[:10]}"


def measured(cell: store.Cell) -> str:
    """The version of what a cell measures: omnifair's code, or another project's release."""
    from benchmarks.methods import METHODS

    method = METHODS.get(cell.get("method", ""))
    if method is None or method.ours:
        return code()
    if method.peer is not None:
        return peers.version(method.peer) or f"{method.peer} {MISSING}"
    package = "fairlearn" if method.name.startswith("fairlearn") else "scikit-learn"
    return f"{package} {_version(package) or MISSING}"


def is_stale(record: store.Record) -> bool:
    """Whether a record was measured with another version than is here (if one is here)."""
    here = measured(record["cell"])
    return not here.endswith(MISSING) and record.get("measured") != here


def is_ours(cell: store.Cell) -> bool:
    """Whether a cell measures omnifair: by one of its methods, or by its nature."""
    from benchmarks.methods import METHODS

    method = METHODS.get(cell.get("method", ""))
    return method is None or method.ours


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def describe() -> dict[str, Any]:
    """The machine, and the version of everything."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "peers": {name: peers.version(name) or peers.missing(name) for name in peers.PEERS},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def path_of(form: str, folder: Path | None = None) -> Path:
    """Where it is written."""
    return (folder or store.RESULTS) / f"{form}-machine.json"


def write(form: str, folder: Path | None = None) -> None:
    """Note it beside the results."""
    path = path_of(form, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(describe(), indent=1, sort_keys=True) + "\n")


def read(form: str, folder: Path | None = None) -> dict[str, Any] | None:
    """What was noted."""
    path = path_of(form, folder)
    return json.loads(path.read_text()) if path.exists() else None
