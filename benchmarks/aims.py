"""What was asked for in figures, and what the stored results say to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Aim:
    """One figure: what was asked, what was reached, and where omnifair is beaten.

    ``kept`` is None where the results do not say, as not enough was run.
    """

    asked: str
    reached: str
    kept: bool | None
    beaten: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "yes", False: "**no**", None: "open"}[self.kept]

    @property
    def text(self) -> str:
        """As a paragraph, with the places where it is not so."""
        head = f"Asked: {self.asked}. Reached: {self.reached} ({self.verdict})."
        lines = [f"- {line}" for line in self.beaten]
        return "\n".join([head, *(["", "Where omnifair is beaten:", "", *lines] if lines else [])])


def not_run(asked: str) -> Aim:
    """A figure that the results say nothing about."""
    return Aim(asked, "-", None)
