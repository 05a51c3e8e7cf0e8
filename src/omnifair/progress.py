"""What ``verbose`` shows of a search: one line that is kept up to date, or a line each training."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass
class Progress:
    """Prints the record of each training against the bounds.

    At a terminal, ``verbose=1`` keeps one line up to date; elsewhere, and from 2 on, every
    training has a line of its own.
    """

    bounds: dict[str, str]  # each measure, and its sense and bound
    objective: str
    limit: int | None
    verbose: int
    stream: TextIO = field(default_factory=lambda: sys.stdout)
    _fits: int = 0

    def __call__(self, record: dict[str, Any]) -> None:
        """Show one more training."""
        if not self.verbose:
            return
        self._fits += int(record["fits"])
        of = f"/{self.limit}" if self.limit else ""
        shown = [f"{self.objective} {record[self.objective]:.4f}"]
        shown += [f"{m} {record[m]:.4f} ({bound})" for m, bound in self.bounds.items()]
        mark = "met" if record["satisfied"] else "not met"
        line = f"omnifair: training {self._fits}{of}, {', '.join(shown)}: {mark}"
        live = self.verbose == 1 and self.stream.isatty()
        self.stream.write(f"\r\x1b[K{line}" if live else f"{line}\n")
        self.stream.flush()

    def close(self) -> None:
        """End the line that was kept up to date."""
        if self.verbose == 1 and self._fits and self.stream.isatty():
            self.stream.write("\n")
