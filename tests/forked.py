"""Runs pytest many times, each in a fork of one process that is ready to collect tests.

Most of the time of a short run is spent on imports of pytest, its plugins and hypothesis. Here that
is done once. Nothing of the packages is imported before a fork, so each run sees the files as they
are when it begins.

`python -m tests.forked` reads lines of JSON from stdin, each with the tests of one run, and answers
with the exit code and the output of pytest.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import IO

import pytest

# Captured output stays in memory: the forks would share a file.
OPTIONS = ["-q", "-p", "no:cacheprovider", "--tb=short", "-rfE", "--capture=sys"]
PACKAGES = {"natsproto", "jetstream"}
LONGEST = 120  # for a run, in seconds


class ForkedPytest:
    """The process that forks, in a directory that holds `tests` and the packages."""

    def __init__(self, root: Path) -> None:
        # Variables of this pytest are not passed on.
        kept = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked"],
            cwd=root,
            env={**kept, "PYTHONPATH": str(root), "COLUMNS": "200"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: tuple[str, ...]) -> tuple[int, str]:
        """Return pytest's exit code, negative if it took too long or crashed, and its output."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(tests) + "\n")
        self._process.stdin.flush()
        code, output = json.loads(self._process.stdout.readline())
        return code, output

    def __enter__(self) -> ForkedPytest:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()


class Forks:
    """A plugin that forks for each line that it reads, as soon as pytest can collect tests.

    In a fork pytest continues with the tests of that line. The parent stops at the end of input.
    """

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self.results: int | None = None  # in a fork: the file to write to
        self._requests = requests
        self._answers = answers

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        imported = {module.partition(".")[0] for module in sys.modules}
        assert not imported & PACKAGES, "imported before the fork"
        gc.freeze()
        # A for loop would read ahead; the forks inherit what has been read.
        while line := self._requests.readline():
            results, self.results = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(results)
                signal.alarm(LONGEST)
                session.config.args[:] = json.loads(line)
                return None
            os.close(self.results)
            self.results = None
            with open(results, encoding="utf-8") as file:
                output = file.read()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(json.dumps([code, output]), file=self._answers, flush=True)
        return True


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # for processes that tests start
    said = io.StringIO()
    forks = Forks(sys.stdin, answers)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = int(pytest.main([*OPTIONS, "tests"], plugins=[forks]))
        except Exception:  # pytest raises what it finds when it ends, such as files left open
            if forks.results is None:
                raise
            traceback.print_exc()
            code = 1  # as of any program
    if forks.results is not None:
        with open(forks.results, "w", encoding="utf-8") as file:
            file.write(said.getvalue())
        os._exit(code)


if __name__ == "__main__":
    main()
