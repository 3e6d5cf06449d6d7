"""Packages of npm that tests need: installed once for each lock file, below .venv."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from tests.core import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def install(folder: Path) -> Path:
    """Return the node_modules for the package.json and the lock file in this folder.

    Whole or not at all, though others may install the same at the same time.
    """
    locked = [folder / "package.json", folder / "package-lock.json"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in locked)).hexdigest()
    home = ROOT / ".venv" / folder.name / digest[:16]
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as directory:
            _install(locked, home, home.parent / directory / "own")
    return home / "node_modules"


def _install(locked: list[Path], home: Path, own: Path) -> None:
    own.mkdir()
    for file in locked:
        shutil.copy(file, own)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        own.rename(home)
    except OSError:
        if not home.exists():  # no other process was faster
            raise


@functools.cache
def node() -> list[str]:
    """Return the command for a Node with WebSocket; [] if there is no Node."""
    found = shutil.which("node")
    if found is None:
        return []
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    major = int(re.search(r"\d+", version.stdout)[0])
    # Node 20 would also warn that its Ed25519 may change.
    return [found, "--no-warnings", *["--experimental-websocket"] * (major < 22)]
