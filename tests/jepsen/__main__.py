"""python -m tests.jepsen [--operations 1000000] [--faults 1000] [--seed 0]

SIGINT and SIGTERM end the run after the current round, with its verdict; a second one ends it at
once.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
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
    problems = asyncio.run(run_until_stopped(run))
    print(f"{run.summary()}; {time.monotonic() - started:.0f} s", flush=True)
    if run.done < options.operations:
        print(f"  stopped before {options.operations:,} operations")
    for problem in problems[:20]:
        print("  " + problem.replace("\n", "\n  "))
    if problems:
        print(f"  {len(problems)} problems")
    return 1 if problems else 0


async def run_until_stopped(run: Jepsen) -> list[str]:
    """Run to the end, or to that of the round in which a signal arrives."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        run.stop()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stop)
    return await run.run(lambda line: print(line, flush=True))


if __name__ == "__main__":
    sys.exit(main())
