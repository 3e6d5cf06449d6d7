"""The entry point of the command `natsproto`.

If another distribution overwrote the package `jetstream`, importing the commands fails. The error
then says what happened, and how to repair it (D-CLI-11).
"""

from __future__ import annotations

import sys

from natsproto.cli.doctor import check_package
from natsproto.cli.exits import USAGE


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from .main import main as run
    except ImportError as error:
        found = check_package()
        if found.state != "problem":
            raise
        sys.stderr.write(f"natsproto: {error}\n{found.text}\n")
        return USAGE
    return run()
