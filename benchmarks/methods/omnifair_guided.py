"""omnifair as users get it."""

from __future__ import annotations

from benchmarks.methods.omnifair_base import OmnifairMethod


class Omnifair(OmnifairMethod):
    name = "omnifair"
    about = "FairClassifier with its default search"
    paper = "OmniFair"
