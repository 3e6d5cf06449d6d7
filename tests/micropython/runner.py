"""Runs programs for the tests of this directory, and reads the reports of checks/harness.py."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
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


def install(locked: list[Path], home: Path) -> None:
    """Whole or not at all, though others install it at the same time."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as directory:
        own = Path(directory, "own")
        own.mkdir()
        for file in locked:
            shutil.copy(file, own)
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=own)
        try:
            own.rename(home)
        except OSError:
            if not home.exists():  # no other process was faster
                raise
