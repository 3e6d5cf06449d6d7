"""The short form of the measurement of steady memory (`make soak`), and that it can fail."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.soak.steady import LIMIT, SAMPLES, SLOPE, WARM_UP, complaints, slope

MESSAGES = 40_000


def run(*arguments):
    command = [sys.executable, "-m", "tests.soak.steady", "--messages", str(MESSAGES), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_memory_is_steady():
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_leak_is_noticed():
    """200 bytes of each message: 6 MiB in the part of this short run that counts."""
    done = run("--leak", "200")
    assert done.returncode == 1, done.stdout
    assert "memory grows by" in done.stdout


FLAT = [50_000_000 + 1000 * (index % 3) for index in range(SAMPLES)]


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (lambda index: 0, 0),
        (lambda index: -20_000_000 if index < WARM_UP else 0, 0),  # warming up
        (lambda index: index * SLOPE // (SAMPLES - WARM_UP - 3), 1),  # slowly, and all the time
        (lambda index: 2 * LIMIT if index == 9 else 0, 1),  # a single peak
        (lambda index: index * LIMIT // 5, 2),
    ],
)
def test_complaints(change, count):
    assert len(complaints([each + change(index) for index, each in enumerate(FLAT)])) == count


def test_slope():
    assert slope([10, 20, 30]) == 20
    assert slope([7, 7, 7, 7]) == 0
    assert slope([30, 20, 10]) == -20
