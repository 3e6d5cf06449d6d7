"""Commands as programs: started, read line by line, interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.core import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAIT = 60.0  # for things that happen soon, even on a busy machine


class Done(NamedTuple):
    """A program that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the value that was printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Return the values that were printed, one in each line."""
        return [json.loads(line) for line in self.out.splitlines()]


def environment(home: Path | str, **more: str) -> dict[str, str]:
    """Return an environment without settings of the user."""
    # Without compiled modules every start of a program would compile them.
    left_out = ("NATS_", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    own = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(home), "COLUMNS": "100"}
    return {**kept, **own, **more}


class Program:
    """A command line, such as `python -m natsproto`, with the options that it always has."""

    def __init__(self, home: Path | str, *command: str, **env: str) -> None:
        self._command = [sys.executable, *command]
        self._env = environment(home, **env)

    def run(self, *args: str, stdin: bytes = b"", **env: str) -> Done:
        """Run to the end."""
        done = subprocess.run(
            [*self._command, *args],
            input=stdin,
            capture_output=True,
            env={**self._env, **env},
            timeout=WAIT * 2,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextlib.contextmanager
    def start(self, *args: str, **env: str) -> Iterator[Running]:
        """Start, and kill at the end of the block unless it has ended."""
        process = subprocess.Popen(
            [*self._command, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self._env, **env},
        )
        running = Running(process)
        try:
            yield running
        finally:
            process.kill()
            process.wait()
            running.close()


class Running:
    """A program that runs; its lines are read by threads."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._lines: dict[str, queue.Queue[str | None]] = {
            "out": queue.Queue(),
            "err": queue.Queue(),
        }
        self._threads = [
            threading.Thread(target=self._read, args=(process.stdout, self._lines["out"])),
            threading.Thread(target=self._read, args=(process.stderr, self._lines["err"])),
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(file: Any, lines: queue.Queue[str | None]) -> None:
        for line in file:
            lines.put(line.decode(errors="surrogateescape").rstrip("\n"))
        lines.put(None)

    def line(self, source: str = "out", containing: str = "") -> str:
        """Return the next line that contains the text."""
        while True:
            line = self._lines[source].get(timeout=WAIT)
            assert line is not None, f"the program has ended, without {containing!r}"
            if containing in line:
                return line

    def rest(self, source: str = "out") -> list[str]:
        """Return the remaining lines, after the end."""
        lines = list(iter(lambda: self._lines[source].get(timeout=WAIT), None))
        self._lines[source].put(None)
        return lines

    def interrupt(self, number: int = signal.SIGINT) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(WAIT)

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        return self.process.wait(WAIT)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(WAIT)
        for file in (self.process.stdout, self.process.stderr):
            if file is not None:
                file.close()
