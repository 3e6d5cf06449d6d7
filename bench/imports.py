"""The cost of an import: milliseconds of CPU and megabytes, compared with a fresh interpreter.

    python bench/imports.py [--rounds N]

Each import runs in a separate process, with .pyc files and without site; the minimum of the rounds
counts. Memory is the growth of the resident set, where /proc reports it.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys

MODULES = [
    "natsproto",
    "jetstream",
    "jetstream.context",
    "jetstream.blocking",
    "typing",
    "json",
    "asyncio",
    "nats",
    "nats.client",
]
NAMES = {
    "jetstream.context": "jetstream.JetStream",
    "nats": "nats (nats-py)",
    "nats.client": "nats.client (nats-core)",
}

CHILD = """
import sys
import time

def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0

resident()
before = resident()
start = time.process_time()
import {module}
taken = time.process_time() - start
print(taken, resident() - before)
"""


def measure(module: str, rounds: int) -> tuple[float, float] | None:
    """Return seconds and bytes; None if the module is not installed."""
    # -I -S keep the path and the imports of this environment out; its packages are put back in.
    paths = [path for path in sys.path[1:] if path]
    code = f"import sys\nsys.path[:0] = {paths!r}\n" + CHILD.format(module=module)
    results: list[tuple[float, float]] = []
    for _ in range(rounds + 1):  # the first one writes the .pyc files
        run = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True
        )
        if run.returncode != 0:
            return None
        seconds, size = run.stdout.split()
        results.append((float(seconds), float(size)))
    return min(row[0] for row in results), min(row[1] for row in results[1:])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    print(f"{platform.python_implementation()} {platform.python_version()}\n")
    print(f"{'import':24}{'ms':>8}{'MB':>8}")
    for module in MODULES:
        cost = measure(module, rounds)
        if cost is not None:
            print(f"{NAMES.get(module, module):24}{cost[0] * 1e3:8.1f}{cost[1] / 1e6:8.2f}")


if __name__ == "__main__":
    main()
