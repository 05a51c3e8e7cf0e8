"""Run cells that are not stored yet, and store each as soon as it is finished."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks import machine, store
from benchmarks.objective import Form
from benchmarks.store import Cell


def todo(
    number: int, form: Form, folder: Path | None = None, methods: tuple[str, ...] = ()
) -> list[Cell]:
    """The cells of an experiment that are not stored; of these methods only, if any are named."""
    from benchmarks.experiments import EXPERIMENTS

    path = store.path_of(form.name, number, folder)
    done = {store.key(record["cell"]) for record in store.read(path)}
    return [
        cell
        for cell in EXPERIMENTS[number].cells(form)
        if store.key(cell) not in done and (not methods or cell.get("method") in methods)
    ]


def run_cell(number: int, cell: Cell, form: Form) -> dict[str, Any]:
    """One cell: its result, or its reason, whatever happens."""
    from benchmarks.experiments import EXPERIMENTS

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return EXPERIMENTS[number].run(cell, form)
    except Exception as error:  # one cell must not end the run
        text = (str(error).strip().splitlines() or [""])[0]
        return {"reason": f"NA: {type(error).__name__}: {text[:160]}"}


def run_group(number: int, cells: list[Cell], form: Form) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells of one split, one after another."""
    for cell in cells:
        start = time.perf_counter()
        result = run_cell(number, cell, form)
        yield cell, {"result": result, "wall": time.perf_counter() - start}


def _in_process(number: int, cell: Cell, form: Form) -> tuple[Cell, dict[str, Any]]:
    return next(iter(run_group(number, [cell], form)))


def run(
    numbers: Iterable[int],
    form: Form,
    *,
    folder: Path | None = None,
    jobs: int = 1,
    minutes: float | None = None,
    methods: tuple[str, ...] = (),
    quiet: bool = False,
) -> int:
    """Run what is missing; returns how many cells were finished. ``minutes`` ends it early."""
    from benchmarks.experiments import EXPERIMENTS

    end = None if minutes is None else time.monotonic() + 60 * minutes
    finished = 0
    for number in numbers:
        cells = todo(number, form, folder, methods)
        path = store.path_of(form.name, number, folder)
        total = len(cells)
        if not quiet:
            print(f"experiment {number}: {total} cells to run -> {path}", flush=True)
        # What measures time runs by itself.
        alone = jobs == 1 or getattr(EXPERIMENTS[number], "ALONE", False)
        done = _one_by_one(number, cells, form) if alone else _together(number, cells, form, jobs)
        for count, (cell, found) in enumerate(done, 1):
            record = {
                "cell": cell,
                **found,
                "limit": form.limit,
                "max_rows": form.max_rows,
                "source": machine.commit(),
            }
            store.append(path, record)
            finished += 1
            if not quiet:
                print(f"  {count}/{total} {_line(cell, found)}", flush=True)
            if end is not None and time.monotonic() > end:
                if not quiet:
                    print("time is up; the same command goes on from here", flush=True)
                done.close()
                return finished
        machine.write(form.name, folder)
    return finished


def _one_by_one(
    number: int, cells: list[Cell], form: Form
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    yield from run_group(number, cells, form)


def _together(
    number: int, cells: list[Cell], form: Form, jobs: int
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(_in_process, number, cell, form) for cell in cells]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _line(cell: Cell, found: dict[str, Any]) -> str:
    result = found["result"]
    name = " ".join(str(v) for v in cell.values())
    if "reason" in result:
        said = result["reason"]
    elif "accuracy" in result and "met" in result:
        gaps = ", ".join(f"{m} {g:.3f}" for m, g in result["gaps"].items())
        said = f"accuracy {result['accuracy']:.4f}, {gaps}, {'met' if result['met'] else 'not met'}"
    else:
        said = f"{len(result['points'])} points" if "points" in result else "done"
    return f"{name}: {said} ({found['wall']:.1f} s)"


def single_threaded() -> None:
    """One thread for all libraries, so that times compare; before they are imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
