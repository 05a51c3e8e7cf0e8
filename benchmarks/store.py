"""Finished cells: one JSON line each, appended and flushed, so that nothing done is ever lost."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
Cell = dict[str, Any]
Record = dict[str, Any]


def key(cell: Cell) -> str:
    """What makes two cells the same."""
    return json.dumps(cell, sort_keys=True)


def path_of(form: str, experiment: int, folder: Path | None = None) -> Path:
    """Where the results of an experiment stand."""
    return (folder or RESULTS) / f"{form}-{experiment}.jsonl"


def read(path: Path) -> list[Record]:
    """All whole lines; of cells that were run twice, the last."""
    if not path.exists():
        return []
    records: dict[str, Record] = {}
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # a line that was cut off
            continue
        records[key(record["cell"])] = record
    return list(records.values())


def append(path: Path, record: Record) -> None:
    """Add one line and see it to the disk; a line that was cut off before is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    start = ""
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            start = "" if file.read(1) == b"\n" else "\n"
    with path.open("a") as file:
        file.write(start + _line(record))
        file.flush()
        os.fsync(file.fileno())


def keep(path: Path, wanted: Callable[[Record], bool]) -> int:
    """Keep the records that are wanted only; returns how many are gone."""
    records = read(path)
    kept = [record for record in records if wanted(record)]
    if len(kept) < len(records):
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(_line(record) for record in kept))
        temporary.replace(path)
    return len(records) - len(kept)


def _line(record: Record) -> str:
    return json.dumps(plain(record), sort_keys=True, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Values that JSON has: NumPy's numbers as Python's, no NaN, five or six digits."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
