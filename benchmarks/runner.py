"""Run cells that are not stored yet, and store each as soon as it is finished."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import machine, store
from benchmarks.objective import Form
from benchmarks.store import Cell

Found = tuple[Cell, dict[str, Any]]


def todo(
    number: int,
    form: Form,
    folder: Path | None = None,
    methods: tuple[str, ...] = (),
    seeds: int | None = None,
    whose: str | None = None,
) -> list[Cell]:
    """The cells of an experiment that are not stored.

    Of these methods only, if any are named, of the first ``seeds`` splits only, and of those
    that measure omnifair (``whose="ours"``) or another project (``"peers"``) only.
    """
    from benchmarks.experiments import EXPERIMENTS

    path = store.path_of(form.name, number, folder)
    done = {store.key(record["cell"]) for record in store.read(path)}
    return [
        cell
        for cell in EXPERIMENTS[number].cells(form)
        if store.key(cell) not in done
        and (not methods or cell.get("method") in methods)
        and (seeds is None or cell["seed"] in form.seeds[:seeds])
        and (whose is None or machine.is_ours(cell) == (whose == "ours"))
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


def timed_cell(number: int, cell: Cell, form: Form) -> Found:
    """One cell, with its wall time."""
    start = time.perf_counter()
    result = run_cell(number, cell, form)
    return cell, {"result": result, "wall": time.perf_counter() - start}


def run(
    numbers: Iterable[int],
    form: Form,
    *,
    folder: Path | None = None,
    jobs: int = 0,
    minutes: float | None = None,
    methods: tuple[str, ...] = (),
    seeds: int | None = None,
    whose: str | None = None,
    quiet: bool = False,
) -> int:
    """Run what is missing; returns how many cells were finished.

    ``jobs`` processes are used, or none but this one; ``minutes`` ends it early. Each experiment
    then has an equal share of the time that is left, so that none goes without; what the short
    ones leave over goes to those that were cut off.
    """
    machine.write(form.name, folder)
    rounds = [list(numbers)] * (1 if minutes is None else 2)
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes
    finished = 0
    for last, queue in enumerate(rounds, 2 - len(rounds)):
        for place, number in enumerate(queue):
            cells = todo(number, form, folder, methods, seeds, whose)
            now = time.monotonic()
            if (not cells and last) or now > end:
                continue
            share = end if last else now + (end - now) / (len(queue) - place)
            finished += _experiment(number, cells, form, folder, jobs, share, quiet)
    if time.monotonic() > end and not quiet:
        print("time is up; the same command goes on from here", flush=True)
    return finished


def _experiment(
    number: int,
    cells: list[Cell],
    form: Form,
    folder: Path | None,
    jobs: int,
    end: float,
    quiet: bool,
) -> int:
    """These cells, until the clock says so; returns how many were finished."""
    from benchmarks.experiments import EXPERIMENTS

    path = store.path_of(form.name, number, folder)
    if not quiet:
        print(f"experiment {number}: {len(cells)} cells to run -> {path}", flush=True)
    # What measures time has the machine for itself.
    many = min(jobs, 1) if getattr(EXPERIMENTS[number], "ALONE", False) else jobs
    done = _in_processes(number, cells, form, many) if many else _here(number, cells, form)
    count = 0
    for count, (cell, found) in enumerate(done, 1):
        record = {
            "cell": cell,
            **found,
            "limit": form.limit,
            "max_rows": form.max_rows,
            "source": machine.commit(),
            "measured": machine.measured(cell),
        }
        store.append(path, record)
        if not quiet:
            print(f"  {count}/{len(cells)} {_line(cell, found)}", flush=True)
        if time.monotonic() > end:
            done.close()
            break
    return count


def _here(number: int, cells: list[Cell], form: Form) -> Iterator[Found]:
    for cell in cells:
        yield timed_cell(number, cell, form)


def _in_processes(number: int, cells: list[Cell], form: Form, jobs: int) -> Iterator[Found]:
    """In processes of their own. Where one dies, what is left goes on one by one."""
    left = {store.key(cell): cell for cell in cells}
    pool = ProcessPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(timed_cell, number, c, form) for c in cells]):
            found = future.result()
            del left[store.key(found[0])]
            yield found
    except BrokenProcessPool:
        for cell in left.values():
            yield _by_itself(number, cell, form)
    finally:
        pool.shutdown(cancel_futures=True)


def _by_itself(number: int, cell: Cell, form: Form) -> Found:
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(timed_cell, number, cell, form).result()
        except BrokenProcessPool:
            return cell, {"result": {"reason": "NA: its process died"}, "wall": 0.0}


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
    """One thread for all libraries, so that times compare: here, and in processes begun from here.

    What is imported has read the environment already, and is told; what is not yet, reads it.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    threadpool_limits(1)
