"""Where and with what the results were made."""

from __future__ import annotations

import functools
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
    """The commit that is checked out, with a plus if the package differs from it."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "--short", "HEAD")
        return head + ("+" if _git(here, "status", "--porcelain", "--", "../src") else "")
    except (subprocess.SubprocessError, OSError):
        return "unknown"


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
