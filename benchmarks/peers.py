"""Peers that need packages of their own: an environment each, and calls over files.

``python -m benchmarks peers`` makes the environments under ``.venv-peers`` with pip; one that
cannot be made leaves its reason there, and the tables print it. A peer is run by a script in
``workers/``, in its own Python; matrices go in and out as npz, the rest as JSON.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
HOME = Path(os.environ.get("OMNIFAIR_PEERS", HERE.parent / ".venv-peers"))


@dataclass(frozen=True)
class Peer:
    """What to install, in which Pythons, and what shows that it works."""

    name: str
    packages: tuple[str, ...]
    pythons: tuple[str, ...]
    imports: str
    shows: str


PIP = ("-q", "--disable-pip-version-check", "--no-input", "--prefer-binary")
NEW = ("3.11", "3.12", "3.10")
OLD = ("3.9", "3.10", "3.11")
PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "aif360",
            ("aif360==0.6.1", "numpy<2", "pandas<2.1", "cvxpy<2"),
            NEW,
            "aif360.algorithms.inprocessing",
            "aif360",
        ),
        Peer(
            "scikit-lego",
            # The default solver of later versions of cvxpy fails on Adult; ECOS does not.
            ("scikit-lego==0.9.10", "cvxpy==1.3.4", "ecos<3", "numpy<2", "pandas<3"),
            NEW,
            "sklego.linear_model, cvxpy",
            "scikit-lego",
        ),
        Peer(
            "error-parity",
            ("error-parity==0.3.12", "cloudpickle"),  # its models hold functions
            NEW,
            "error_parity, cloudpickle",
            "error-parity",
        ),
        Peer("oxonfair", ("oxonfair==0.3",), NEW, "oxonfair", "oxonfair"),
        Peer("fairgbm", ("fairgbm==0.9.14", "pandas<3"), OLD, "fairgbm", "fairgbm"),
        Peer(
            "seldonian",
            ("seldonian-engine==0.8.11", "numpy<2"),
            OLD,
            "seldonian.seldonian_algorithm",
            "seldonian-engine",
        ),
    )
}


def python_of(name: str) -> Path:
    """The interpreter of a peer's environment."""
    return HOME / name / "bin" / "python"


def missing(name: str) -> str | None:
    """Why a peer cannot run here, or None."""
    if (HOME / f"{name}.reason").exists():
        return (HOME / f"{name}.reason").read_text().strip()
    if not (HOME / f"{name}.version").exists():
        return f"{name} is not installed here (python -m benchmarks peers installs it)"
    return None


def version(name: str) -> str | None:
    """The version that was installed."""
    stamp = HOME / f"{name}.version"
    return stamp.read_text().strip() if stamp.exists() else None


def install(name: str, seconds: float = 900.0) -> str:
    """Make a peer's environment, or note why it cannot be made; returns what to print."""
    peer = PEERS[name]
    reason, stamp = HOME / f"{name}.reason", HOME / f"{name}.version"
    if stamp.exists():
        return f"{name}: {stamp.read_text().strip()} is there"
    HOME.mkdir(parents=True, exist_ok=True)
    reason.unlink(missing_ok=True)
    python = find_python(peer.pythons)
    if python is None:
        why = f"{name} needs Python {' or '.join(sorted(peer.pythons))}, and none is here"
        reason.write_text(why)
        return why
    try:
        if not python_of(name).exists():
            subprocess.run([python, "-m", "venv", HOME / name], check=True, timeout=seconds)
        _run(
            [python_of(name), "-m", "pip", "install", *PIP, *peer.packages],
            seconds,
        )
        _run([python_of(name), "-W", "ignore", "-c", f"import {peer.imports}"], 300)
        shown = f"from importlib.metadata import version as v; print(v({peer.shows!r}))"
        found = _run([python_of(name), "-c", shown], 60).strip()
    except (subprocess.SubprocessError, OSError) as error:
        why = f"{name} cannot be installed: {_last_line(error)}"
        reason.write_text(why)
        return why
    stamp.write_text(f"{peer.shows} {found}")
    return f"{name}: installed {peer.shows} {found}"


def find_python(versions: tuple[str, ...]) -> str | None:
    """An interpreter of one of these versions, on the path or among pyenv's."""
    for wanted in versions:
        homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{wanted}.*/bin/python"))
        for path in [*map(str, homes), shutil.which(f"python{wanted}"), shutil.which("python3")]:
            if path is None:
                continue
            test = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != {_pair(wanted)})"
            if subprocess.run([path, "-c", test], capture_output=True, check=False).returncode == 0:
                return path
    return None


def _pair(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _run(command: list[Any], seconds: float) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env=environment(),
    )
    if done.returncode:
        raise subprocess.SubprocessError(done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or [type(error).__name__])[-1].strip()[:200]


# A process may wait that many times its limit for a busy machine.
PATIENCE = 6


def used(pid: int) -> float:
    """The seconds that a process has worked, where the system tells; else no end of them."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return float("inf")


@functools.cache
def environment() -> dict[str, str]:
    """One thread, and no other environment's packages."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**kept, **dict.fromkeys(threads, "1"), "PYTHONWARNINGS": "ignore"}


@dataclass(frozen=True, eq=False)
class Fitted:
    """One setting, fitted by a worker: what it took, what it gave, or why it failed."""

    settings: dict[str, Any]
    seconds: float
    arrays: dict[str, NDArray[Any]]
    error: str | None
    number: int


class Worker:
    """A script of ``workers/`` in its peer's Python, with a folder of its own."""

    def __init__(self, peer: str, script: str) -> None:
        self.command = [str(python_of(peer)), "-W", "ignore", str(HERE / "workers" / script)]
        self.path = Path(tempfile.mkdtemp(prefix="omnifair-peer-"))
        # Models live there for as long as anything can still ask for their predictions.
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def fit(
        self, settings: list[dict[str, Any]], arrays: dict[str, NDArray[Any]], limit: float
    ) -> Iterator[Fitted]:
        """Fit at every setting in one process; each comes out as soon as it is finished.

        ``limit`` is of the process's own time; one that hangs is ended all the same.
        """
        np.savez(self.path / "in.npz", **arrays)
        (self.path / "in.json").write_text(json.dumps({"settings": settings}))
        start = time.monotonic()
        log = (self.path / "log").open("w")
        process = subprocess.Popen(
            [*self.command, "fit", str(self.path)],
            stdout=log,
            stderr=log,
            env=environment(),
            cwd=self.path,
        )
        try:
            for number, setting in enumerate(settings):
                done = self.path / f"{number}.json"
                while not done.exists():
                    waited = time.monotonic() - start
                    if waited > limit and (waited > PATIENCE * limit or used(process.pid) > limit):
                        raise TimeoutError
                    if process.poll() is not None and not done.exists():
                        raise RuntimeError(self._said())
                    time.sleep(0.02)
                yield self._read(number, setting)
        finally:
            process.kill()
            process.wait()
            log.close()

    def predict(self, number: int, **arrays: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Predict with the model of one setting."""
        np.savez(self.path / "rows.npz", **arrays)
        done = subprocess.run(
            [*self.command, "predict", str(self.path), str(number)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
            cwd=self.path,
        )
        if done.returncode:
            raise RuntimeError(_last_line(RuntimeError(done.stderr)))
        return dict(np.load(self.path / "predicted.npz"))

    def _read(self, number: int, setting: dict[str, Any]) -> Fitted:
        record = json.loads((self.path / f"{number}.json").read_text())
        path = self.path / f"{number}.npz"
        arrays = dict(np.load(path)) if path.exists() else {}
        return Fitted(setting, record["seconds"], arrays, record.get("error"), number)

    def _said(self) -> str:
        return _last_line(RuntimeError((self.path / "log").read_text()))
