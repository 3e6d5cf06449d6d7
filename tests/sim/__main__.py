"""python -m tests.sim [--mode consume] [--seed 123] [--count 1000] [-v]"""

from __future__ import annotations

import argparse
import sys
import time

from tests.sim.scenarios import MODES


def replay(mode: str, seed: int) -> str:
    return f"python -m tests.sim --mode {mode} --seed {seed} -v"


def run(mode: str, seed: int, verbose: bool = False) -> list[str]:
    """The trace of one run; an exception says what does not hold."""
    world = MODES[mode](seed, verbose)
    try:
        world.run()
    except BaseException as error:
        world.note(f"{type(error).__name__}: {error}")
        raise
    return world.trace


def run_many(mode: str, first: int, count: int) -> int:
    """Steps in all; prints how to replay the first seed that fails, and raises."""
    for seed in range(first, first + count):
        try:
            run(mode, seed)
        except BaseException as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n  {replay(mode, seed)}") from error
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--mode", choices=sorted(MODES), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    for mode in options.mode or MODES:
        began = time.process_time()
        for seed in range(options.seed, options.seed + options.count):
            try:
                run(mode, seed, options.verbose)
            except AssertionError as error:
                print(f"{mode}, seed {seed}: {error}\n  {replay(mode, seed)}")
                return 1
        print(f"{mode}: {options.count} seeds in {time.process_time() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
