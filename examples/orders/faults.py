"""What the demo breaks on the way: Python workers of Spark, and the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.testing import Server

DOWN = 1.5  # seconds that the server stays down
WORKER = "pyspark.daemon pyspark.worker"  # the command of the workers and of their daemon
CAN_KILL_WORKERS = sys.platform != "win32"  # where Spark forks its workers from a daemon


def worker_pids() -> list[int]:
    """Return the Python workers for tasks that Spark has forked below this process."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    for line in listing.splitlines():
        pid, parent, command = line.split(maxsplit=2)
        parents[int(pid)] = int(parent)
        if command.endswith(WORKER):
            daemons.add(int(pid))
    return [
        pid for pid in daemons if parents[pid] in daemons and is_below(pid, os.getpid(), parents)
    ]


def is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


def kill_workers() -> int:
    """Kill all workers of this moment, so that one that runs a task is among them."""
    pids = worker_pids()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


class Outage:
    """Kills the server at one moment, and starts it again some seconds later."""

    def __init__(self, server: Server, clock: Callable[[], float]) -> None:
        self._server = server
        self._clock = clock
        self._down_since: float | None = None
        self.began = False

    def begin(self) -> None:
        self.began = True
        self._down_since = self._clock()
        self._server.kill()

    def end_if_due(self) -> bool:
        """Restart the server if it was down for long enough; return whether it did."""
        if self._down_since is None or self._clock() - self._down_since < DOWN:
            return False
        self._server.restart()
        self._down_since = None
        return True

    def end(self) -> bool:
        """Restart the server now if it is down; return whether it was."""
        if self._down_since is None:
            return False
        self._down_since -= DOWN
        return self.end_if_due()
