"""The adapter that docs/adapters.md teaches passes the conformance checks like any other.

In a process of its own: gevent brings a hub, and what it touches should not be ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from jetstream import testing as jetstream_testing
from natsproto.testing import CHECKS
from tests.core import ROOT

ADAPTER = ROOT / "examples" / "gevent_adapter.py"


# JetStream is the same code on every adapter, and its checks take a minute more; but running
# callbacks at the same time is the adapter's, and so are the random numbers in reply subjects.
NAMES = [
    *CHECKS,
    *(
        name
        for name, check in jetstream_testing.CHECKS.items()
        if check.group in ("forgery", "run")
    ),
]


def test_every_check_of_the_core_passes():
    pytest.importorskip("gevent")
    run = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "gevent_checks.py"), *NAMES],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr
    told = re.match(r"(\d+) checks passed, (\d+) left out\n", run.stdout)
    assert told, run.stdout
    assert int(told[1]) + int(told[2]) == len(NAMES)


def test_it_is_as_short_as_the_others():
    assert len(ADAPTER.read_text(encoding="utf-8").splitlines()) < 200
