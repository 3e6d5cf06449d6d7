"""Runs programs for the tests of this directory, and reads the reports of checks/harness.py."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from natsproto.testing import Server

LONGEST = 120  # seconds for one dialogue


def run(command: list[str | Path], **options: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def converse(command: list[str | Path], server: Server, **options: Path) -> str:
    """Run a dialogue and return its output; kill and restart the server when it asks for that."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["timeout", str(LONGEST), *command],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "kill\n":
                server.kill()
            elif line == "restart\n":
                server.restart()
                process.stdin.write("restarted\n")
                process.stdin.flush()
    output = "".join(lines)
    assert process.returncode == 0, output
    return output


def count(output: str) -> int:
    """Return how many checks ran; none may have failed, and the number must be printed."""
    report = re.search(r"^(\d+) checks, (\d+) failed$", output, re.MULTILINE)
    assert report, f"no report:\n{output}"
    assert report[2] == "0", output
    return int(report[1])
