"""python -m tests.sim [--mode consume] [--seed 123] [--count 1000] [--jobs 2] [--skip 0,3] [-v]

One seed shows its run, with -v byte by byte. Many seeds run on all cores; each failure is shown
with the fewest faults that it needs, and with the arguments that repeat it.
"""

from __future__ import annotations

import argparse
import sys

from tests.sim.modes import MODES
from tests.sim.runs import Failure, attempt, minimize, search, trace_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--mode", choices=sorted(MODES), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one for each core")
    parser.add_argument("--skip", default="", help="faults and steps to leave out, by number")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    modes = options.mode or list(MODES)
    if options.count == 1:
        skip = tuple(int(number) for number in options.skip.split(",") if number)
        return max(run_one(mode, options.seed, options.verbose, skip) for mode in modes)
    failed = 0
    for mode, seconds, failures in search(modes, options.seed, options.count, options.jobs):
        print(f"{mode}: {options.count} seeds in {seconds:.1f} s", flush=True)
        for found in failures:
            show(found)
        failed += len(failures)
    return 1 if failed else 0


def run_one(mode: str, seed: int, verbose: bool, skip: tuple[int, ...]) -> int:
    found = attempt(mode, seed, verbose, skip)
    if found is None:
        print(f"{mode}: seed {seed} holds")
        return 0
    show(found if skip or verbose else minimize(found))
    return 1


def show(found: Failure) -> None:
    """Print a failure with its trace."""
    print(found)
    for line in trace_of(found):
        print("  " + line)


if __name__ == "__main__":
    sys.exit(main())
