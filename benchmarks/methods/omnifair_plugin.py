"""omnifair with decisions from a joint model, with and without the plain model beside it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.methods.base import Candidate
from benchmarks.methods.omnifair_base import OmnifairMethod
from benchmarks.objective import Task


class OmnifairPlugIn(OmnifairMethod):
    name = "omnifair PlugIn"
    about = "FairClassifier with strategy=PlugIn(), and with PlugIn(plain=True)"

    def candidates(self, task: Task) -> Iterator[Candidate]:
        from omnifair import PlugIn

        for plain in (False, True):
            yield self.fitted(task, PlugIn(plain=plain), {"plain": plain})
