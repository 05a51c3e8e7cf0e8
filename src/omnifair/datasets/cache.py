"""The folder where data sets are kept, one gzip-compressed CSV file each."""

from __future__ import annotations

import gzip
import os
import uuid
import warnings
import zlib
from pathlib import Path

from omnifair.datasets.dataset import need
from omnifair.errors import DatasetError, OmnifairWarning

VARIABLE = "OMNIFAIR_DATA"


def folder(data_home: str | os.PathLike[str] | None) -> Path:
    """Where data sets are kept: `data_home`, else the environment's, else the platform's."""
    chosen = data_home or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return Path(need("platformdirs").user_cache_dir("omnifair", appauthor=False))


def file_in(home: Path, stem: str) -> Path:
    """Name the file of a copy."""
    return home / f"{stem}.csv.gz"


def read(path: Path) -> bytes | None:
    """Give the decompressed content of a kept file, or None where there is no such file."""
    try:
        return gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        return None
    except (EOFError, zlib.error, OSError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: Exception) -> DatasetError:
    """Say that a kept file is not what it should be."""
    return DatasetError(
        f"{path} is damaged or not the expected file: {why}. Delete it to have it downloaded "
        "again, or put a good copy in its place."
    )


def write(path: Path, content: bytes) -> None:
    """Keep a download. Data that were had are worth more than a cache: a failure only warns."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # No time stamp, so that equal content makes equal files.
            part.write_bytes(gzip.compress(content, mtime=0))
            part.replace(path)  # a reader never meets half a file
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(
            f"The download could not be kept as {path} ({error}); it will be made again next "
            f"time. Set {VARIABLE} or data_home to a folder that can be written.",
            OmnifairWarning,
            stacklevel=4,  # where the user calls adult() or another
        )
