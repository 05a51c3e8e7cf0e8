"""Benchmarks of omnifair against its peers, from the same splits in the same run.

objective.py     what is asked, what a method is given, how predictions are judged
datasets.py      the data and their splits
learners.py      the learners and the settings of each that are tuned
methods/         one method a file: candidates, or the reason why there are none
workers/         what runs in the Python of a peer that has an environment of its own
peers.py         those environments, and calls over files
tuning.py        a choice among candidates on validation; only then the test part
deadline.py      the time limit of a method
experiments/     one experiment a file: cells, run, section of the report
store.py         one JSON line for each finished cell
runner.py        the cells that are missing, in processes
paper.py         the numbers that the paper published
report.py        docs/benchmarks.md from what is stored; tables.py and machine.py help
overhead.py, certificates.py, search.py   the library by itself: python -m benchmarks.overhead

::

    python -m benchmarks peers            # make the peers' environments
    python -m benchmarks run              # the quick form; --full for all; goes on where it was
    python -m benchmarks run 1 3 --full --method omnifair --jobs 2 --minutes 60
    python -m benchmarks report           # from stored results only
"""
