"""python -m tests.soak [--messages 100000] [--faults 10] [--seed N] [--where single] [--times 1]"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.soak.faults import PLACES
from tests.soak.load import Soak


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--where", choices=sorted(PLACES), action="append")
    parser.add_argument("--times", type=int, default=1, help="with this seed and those after it")
    options = parser.parse_args(arguments)
    failed = 0
    for seed in range(options.seed, options.seed + options.times):
        for where in options.where or PLACES:
            soak = Soak(where, options.messages, options.faults, seed)
            complaints = asyncio.run(soak.run())
            print(soak.summary(), flush=True)
            for complaint in complaints:
                print("  " + complaint)
            if complaints:
                failed += 1
                again = f"--messages {options.messages} --faults {options.faults} --seed {seed}"
                print(f"  python -m tests.soak {again} --where {where}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
