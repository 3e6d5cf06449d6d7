"""Watches the memory of Spark's Python processes while rows pass through them.

A sample contains the memory of a process, and the number of messages that the server had received
and sent by then. So a quarter of the samples is a quarter of the messages, not of the time:
starting, planning and the load of the machine make no difference.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.testing import Server

MEGABYTE = 1024 * 1024
INTERVAL = 0.25
Sample = tuple[int, str, float]  # messages, the module of the process, megabytes


class Watch:
    """`with Watch(server) as watch: ...`, then `watch.check(...)`."""

    def __init__(self, server: Server) -> None:
        if not Path("/proc/self/statm").exists():
            pytest.skip("memory is read from /proc, which only Linux has")
        self._server = server
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.samples: list[Sample] = []

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(INTERVAL):
            state = self._server.monitor("/varz")
            messages = state["in_msgs"] + state["out_msgs"]
            self.samples += [(messages, kind, size) for kind, size in python_processes()]

    def check(self, *kinds: str, margin: float, most: float) -> dict[str, tuple[float, float]]:
        """Check the peaks of all kinds of processes, including these; return them: see `peaks`."""
        found = peaks(self.samples)
        assert set(kinds) <= set(found), found
        for kind, (early, late) in found.items():
            assert late <= early + margin, (kind, early, late)
            assert max(early, late) <= most, (kind, early, late)
        return found


def peaks(samples: list[Sample]) -> dict[str, tuple[float, float]]:
    """Return the megabytes of the largest process of each kind: first quarter, second half."""
    first, last = samples[0][0], samples[-1][0]
    quarter, half = first + (last - first) // 4, first + (last - first) // 2
    early = _largest(samples, lambda messages: messages <= quarter)
    late = _largest(samples, lambda messages: messages >= half)
    return {kind: (early[kind], late[kind]) for kind in early if kind in late}


def _largest(samples: list[Sample], when: Callable[[int], bool]) -> dict[str, float]:
    found: dict[str, float] = {}
    for messages, kind, size in samples:
        if when(messages):
            found[kind] = max(size, found.get(kind, 0.0))
    return found


def python_processes() -> list[tuple[str, float]]:
    """Return the module and the megabytes of each process of this session."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int(_stat(path)[1])
            words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        modules = [word for word in words if word.startswith("pyspark.")]
        if modules:
            names[int(path.name)] = modules[-1]  # pyspark.daemon <module>, or <module>
    found: list[tuple[str, float]] = []
    for pid, name in names.items():
        if _descends(pid, os.getpid(), parents):
            try:
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            found.append((name, pages * os.sysconf("SC_PAGESIZE") / MEGABYTE))
    return found


def _stat(path: Path) -> list[Any]:
    """Return the fields after the name, which may contain anything: state, parent, ..."""
    return (path / "stat").read_text().rpartition(")")[2].split()


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor
