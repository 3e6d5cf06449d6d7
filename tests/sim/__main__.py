"""python -m tests.sim [--mode consume] [--seed 123] [--count 1000] [-v]"""

from __future__ import annotations

import argparse
import sys
import time

from tests.sim.modes import MODES


def replay(mode: str, seed: int) -> str:
    return f"python -m tests.sim --mode {mode} --seed {seed} -v"


def run(mode: str, seed: int, verbose: bool = False) -> list[str]:
    """Return the trace of one run; an exception names the violated invariant."""
    world = MODES[mode](seed, verbose)
    try:
        world.run()
    except BaseException as error:
        world.note(f"{type(error).__name__}: {error}")
        raise
    return world.trace


def failure(mode: str, seed: int, verbose: bool = False) -> str:
    """Return the violated invariant and how to replay it; "" if there is none."""
    try:
        run(mode, seed, verbose)
    except Exception as error:
        return f"{mode}, seed {seed}: {type(error).__name__}: {error}\n  {replay(mode, seed)}"
    return ""


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
            found = failure(mode, seed, options.verbose)
            if found:
                print(found)
                return 1
        print(f"{mode}: {options.count} seeds in {time.process_time() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
