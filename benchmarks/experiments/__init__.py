"""All experiments of the paper and ours, one a file; each has cells, a run and a section."""

from types import ModuleType

from benchmarks.experiments import (
    accuracy,
    frontier,
    metrics,
    ours,
    races,
    time,
    validation,
    warm,
)

EXPERIMENTS: dict[int, ModuleType] = {
    1: accuracy,
    2: validation,
    3: frontier,
    4: time,
    5: warm,
    6: races,
    7: metrics,
    8: ours,
}
