"""All methods, one a file, in the order of the tables."""

from benchmarks.methods.agarwal import Agarwal
from benchmarks.methods.agarwal_grid import AgarwalGrid
from benchmarks.methods.base import Candidate, Method, Refused
from benchmarks.methods.calmon import Calmon
from benchmarks.methods.celis import Celis
from benchmarks.methods.error_parity import ErrorParity
from benchmarks.methods.fairgbm import FairGBM
from benchmarks.methods.kamiran import Kamiran
from benchmarks.methods.omnifair_best import OmnifairBestOf
from benchmarks.methods.omnifair_grid import OmnifairGrid
from benchmarks.methods.omnifair_guided import Omnifair
from benchmarks.methods.omnifair_paper import OmnifairPaper
from benchmarks.methods.omnifair_plugin import OmnifairPlugIn
from benchmarks.methods.oxonfair import OxonFair, OxonFairInferred
from benchmarks.methods.plain import Plain
from benchmarks.methods.thomas import Thomas
from benchmarks.methods.threshold import Threshold
from benchmarks.methods.zafar import Zafar

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Plain(),
        Omnifair(),
        OmnifairBestOf(),
        OmnifairPlugIn(),
        OmnifairPaper(),
        Kamiran(),
        Calmon(),
        Zafar(),
        Celis(),
        Agarwal(),
        AgarwalGrid(),
        Thomas(),
        FairGBM(),
        OxonFairInferred(),
        Threshold(),
        OxonFair(),
        ErrorParity(),
    )
}
# Not in the tables of experiment 1: what experiment 7 compares with.
GRID = OmnifairGrid()

__all__ = ["GRID", "METHODS", "Candidate", "Method", "Refused"]
