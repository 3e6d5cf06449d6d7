"""Type checkers accept the files of this folder, and know the type of every public name.

The files are checked, not run, by mypy, and by pyright if there is Node.

For both, a comment that ignores an error where there is none is itself an error, so mistakes.py
proves that each mistake is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core import PACKAGES, ROOT

HERE = Path(__file__).parent
FILES = [str(path) for path in sorted(HERE.glob("*.py")) if not path.match("test_*")]


def check(*command: str) -> None:
    # pyright --verifytypes finds other packages by the python in PATH alone.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    run = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_mypy():
    pytest.importorskip("mypy")
    check("mypy", "--strict", *FILES)


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright runs on Node")
def test_pyright():
    pytest.importorskip("pyright")
    check("pyright", "--project", str(HERE), "--pythonpath", sys.executable)


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright runs on Node")
@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_type(package: str):
    """Without inference: other type checkers may infer another type."""
    pytest.importorskip("pyright")
    options = ["--verifytypes", package, "--ignoreexternal", "--pythonpath", sys.executable]
    check("pyright", *options)
