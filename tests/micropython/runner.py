"""Runs programs for the tests of this directory, and reads the reports of checks/harness.py."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run(command: list[str | Path], **options: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def count(output: str) -> int:
    """Return how many checks ran; none may have failed, and the number must be printed."""
    report = re.search(r"^(\d+) checks, (\d+) failed$", output, re.MULTILINE)
    assert report, f"no report:\n{output}"
    assert report[2] == "0", output
    return int(report[1])
