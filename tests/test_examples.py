"""Every example runs to its end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.core import ROOT

EXAMPLES = sorted(ROOT.glob("examples/*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr
