"""python -m tests.sim [--mode consume] [--seed 123] [--count 1000] [--jobs 2] [--skip 0,3] [-v]

One seed shows its run, with -v byte by byte. Many seeds run on all cores; each failure is shown
with the fewest faults that it needs, and with the arguments that repeat it.

With --record FILE the seeds below --count run by the thousand, each mode in turn, and the file
keeps how far each of them is: a run that is stopped continues there the next time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.progress import Progress
from tests.sim.modes import MODES, NEW_MODES
from tests.sim.runs import CHUNK, attempt, minimize, search

STEP = 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--mode", choices=sorted(MODES), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one for each core")
    parser.add_argument("--skip", default="", help="faults and steps to leave out, by number")
    parser.add_argument("--record", type=Path, help="continue where the last run ended")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    modes = options.mode or list(MODES)
    if options.count == 1:
        skip = tuple(int(number) for number in options.skip.split(",") if number)
        return max(run_one(mode, options.seed, options.verbose, skip) for mode in modes)
    if options.record is not None:
        progress = Progress(options.record)
        return resume(options.mode or list(NEW_MODES), options.count, options.jobs, progress)
    return run_many(modes, options.seed, options.count, options.jobs)


def resume(modes: list[str], count: int, jobs: int, progress: Progress) -> int:
    """Run the seeds below the count that have not run yet; stop after a failure."""
    while True:
        mode = min(modes, key=progress.__getitem__)
        first = progress[mode]
        step = min(STEP, count - first)
        if step <= 0:
            return 0
        print(f"from {first}: ", end="")
        if run_many([mode], first, step, jobs):
            return 1
        progress.add(mode, step)


def run_many(modes: list[str], first: int, count: int, jobs: int) -> int:
    failed = 0
    for mode, seconds, failures in search(modes, first, count, jobs):
        done = f"{count} seeds"
        if failures:
            done = f"{len(failures)} failed, the first of each {min(CHUNK, count)} seeds,"
        print(f"{mode}: {done} in {seconds:.1f} s", *failures, sep="\n", flush=True)
        failed += len(failures)
    return 1 if failed else 0


def run_one(mode: str, seed: int, verbose: bool, skip: tuple[int, ...]) -> int:
    found = attempt(mode, seed, verbose, skip)
    if found is None:
        print(f"{mode}: seed {seed} holds")
        return 0
    if verbose:
        print(found._replace(trace=()))  # it was printed on the way
    else:
        print(found if skip else minimize(found))
    return 1


if __name__ == "__main__":
    sys.exit(main())
