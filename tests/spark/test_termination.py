"""The end of a query's process, without Spark."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.core import ROOT

# It says when its call starts, and ends the call when it reads a line.
PROGRAM = """
import importlib.machinery, signal, sys
from jetstream.spark import termination

def call():
    print("called", flush=True)
    sys.stdin.readline()
    print("finished", flush=True)

name = sys.argv[1] or termination.PROCESS
__spec__ = importlib.machinery.ModuleSpec(name, None)
termination.call_at_termination(call, float(sys.argv[2]))
print("ready", flush=True)
while True:
    signal.pause()
"""


def start(name: str = "", longest: float = 60.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, name, str(longest)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("signals", [1, 2, 3])
def test_the_call_is_finished_however_often_the_process_is_terminated(signals):
    """Spark sends the signal twice, and the second one must not end the call of the first."""
    with start() as process:
        process.terminate()
        assert process.stdout.readline() == "called\n"
        for _ in range(signals - 1):
            process.terminate()
        output, _ = process.communicate("\n", timeout=60.0)
        assert output == "finished\n"
        assert process.returncode == -signal.SIGTERM


def test_a_call_that_hangs_is_ended():
    with start(longest=0.1) as process:
        process.terminate()
        assert process.stdout.readline() == "called\n"
        assert process.wait(60.0) == -signal.SIGALRM


def test_other_processes_end_as_usual():
    with start("another") as process:
        process.terminate()
        assert process.wait(60.0) == -signal.SIGTERM
        assert process.stdout.read() == ""
