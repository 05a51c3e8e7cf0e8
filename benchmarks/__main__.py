"""The command line: ``python -m benchmarks peers | run | drop | report | list``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from benchmarks.runner import single_threaded


def main(arguments: list[str] | None = None) -> int:
    single_threaded()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    peer = verbs.add_parser("peers", help="make the environments of peers that need their own")
    peer.add_argument("names", nargs="*", help="which (default: all)")
    peer.add_argument("--again", action="store_true", help="remove and make them anew")
    run = verbs.add_parser("run", help="run cells that are not stored yet")
    run.add_argument("experiments", nargs="*", type=int, help="1 .. 8 (default: all)")
    size = run.add_mutually_exclusive_group()
    size.add_argument("--full", dest="form", action="store_const", const="full")
    size.add_argument("--medium", dest="form", action="store_const", const="medium")
    size.add_argument("--smoke", dest="form", action="store_const", const="smoke")
    run.add_argument("--jobs", type=int, default=1, help="processes (timings always run alone)")
    run.add_argument(
        "--minutes", type=float, help="stop after the cell that ends past this (shared)"
    )
    run.add_argument("--seeds", type=int, help="the first so many splits only")
    run.add_argument("--method", action="append", default=[], help="this method's cells only")
    whose = run.add_mutually_exclusive_group()
    whose.add_argument(
        "--peers", dest="whose", action="store_const", const="peers", help="other projects only"
    )
    whose.add_argument(
        "--ours", dest="whose", action="store_const", const="ours", help="omnifair's cells only"
    )
    run.add_argument("--results", type=Path, help="folder of the results")
    drop = verbs.add_parser("drop", help="forget stored cells, so that they are run again")
    drop.add_argument("experiments", nargs="*", type=int, help="1 .. 8 (default: all)")
    drop.add_argument("--form", help="of this form only")
    drop.add_argument("--stale", action="store_true", help="measured with other code than is here")
    drop.add_argument("--method", action="append", default=[], help="of this method")
    drop.add_argument("--results", type=Path)
    report = verbs.add_parser("report", help="write docs/benchmarks.md from the stored results")
    report.add_argument("--results", type=Path)
    report.add_argument("--docs", type=Path)
    left = verbs.add_parser("list", help="how many cells there are, and how many are stored")
    left.add_argument("--results", type=Path)
    given = parser.parse_args(arguments)
    return _VERBS[given.verb](given)


def _peers(given: argparse.Namespace) -> int:
    from benchmarks import peers

    for name in given.names or peers.PEERS:
        if given.again:
            shutil.rmtree(peers.HOME / name, ignore_errors=True)
            (peers.HOME / f"{name}.version").unlink(missing_ok=True)
        print(peers.install(name), flush=True)
    return 0


def _run(given: argparse.Namespace) -> int:
    from benchmarks import runner
    from benchmarks.experiments import EXPERIMENTS
    from benchmarks.objective import FORMS

    runner.run(
        given.experiments or list(EXPERIMENTS),
        FORMS[given.form or "quick"],
        folder=given.results,
        jobs=given.jobs,
        minutes=given.minutes,
        methods=tuple(given.method),
        seeds=given.seeds,
        whose=given.whose,
    )
    return 0


def _drop(given: argparse.Namespace) -> int:
    from benchmarks import machine, store
    from benchmarks.experiments import EXPERIMENTS
    from benchmarks.objective import FORMS

    def wanted(record: store.Record) -> bool:
        stale = given.stale and machine.is_stale(record)
        return not stale and record["cell"].get("method") not in given.method

    for form in [given.form] if given.form else FORMS:
        for number in given.experiments or EXPERIMENTS:
            path = store.path_of(form, number, given.results)
            gone = store.keep(path, wanted)
            if gone:
                print(f"{path.name}: {gone} cells dropped")
    return 0


def _report(given: argparse.Namespace) -> int:
    from benchmarks import report

    print(report.write(given.results, given.docs))
    return 0


def _list(given: argparse.Namespace) -> int:
    from benchmarks import runner, store
    from benchmarks.experiments import EXPERIMENTS
    from benchmarks.objective import FORMS

    for name in ("quick", "medium", "full"):
        for number, experiment in EXPERIMENTS.items():
            form = FORMS[name]
            total = len(experiment.cells(form))
            left = len(runner.todo(number, form, given.results))
            path = store.path_of(name, number, given.results)
            print(f"{total - left:5} of {total:5}  {path.name:20}{experiment.TITLE}")
    return 0


_VERBS = {"peers": _peers, "run": _run, "drop": _drop, "report": _report, "list": _list}


if __name__ == "__main__":
    sys.exit(main())
