"""Regenerate the explanations of the recordings: `python -m tests.cli.golden`.

tests/cli/explained has a file for each recording of tests/vectors: what `natsproto explain` prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.tools.cli.trace.transcript import read_steps
from tests.core import ROOT

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = sorted((ROOT / "tests" / "vectors").glob("*.json"))
FOLDER = ROOT / "tests" / "cli" / "explained"


def explained(path: Path) -> str:
    """Return the explanation of a recording."""
    lines = [line for step in read_steps(path) for line in step.lines()]
    return "\n".join(lines) + "\n"


def golden(path: Path) -> Path:
    """Return the file with the explanation of a recording."""
    return FOLDER / f"{path.stem}.txt"


if __name__ == "__main__":
    for path in VECTORS:
        golden(path).write_text(explained(path), encoding="utf-8", errors="surrogateescape")
