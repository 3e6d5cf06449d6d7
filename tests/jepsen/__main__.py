"""python -m tests.jepsen [--operations 1000000] [--faults 1000] [--seed 0]"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from tests.jepsen.load import Jepsen


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--faults", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    started = time.monotonic()
    run = Jepsen(options.operations, options.faults, options.seed)
    problems = asyncio.run(run.run(lambda line: print(line, flush=True)))
    print(f"{run.summary()}; {time.monotonic() - started:.0f} s", flush=True)
    for problem in problems[:20]:
        print("  " + problem.replace("\n", "\n  "))
    if problems:
        print(f"  {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
