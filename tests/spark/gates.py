"""Conditions that tasks wait for: a gate that a test opens, and rows that are stored."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from typing_extensions import Self

    from jetstream.blocking import Stream

PATIENCE = 120.0
POLL = 0.02


class Gate:
    """`await_tasks` returns when this many tasks wait; `open` lets these and all others pass."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.2)
        self._waiting: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]

    def await_tasks(self, count: int, jobs: Iterable[Future[None]]) -> None:
        """Wait for `count` tasks; if a job fails before, raise its error."""
        deadline = time.monotonic() + PATIENCE
        while len(self._waiting) < count:
            with contextlib.suppress(TimeoutError):
                self._waiting.append(self._listener.accept()[0])
            for job in jobs:
                if job.done():
                    job.result()
            assert time.monotonic() < deadline, f"no task came to the gate within {PATIENCE:g} s"

    def open(self) -> None:
        self._listener.close()
        for connection in self._waiting:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.open()


def pass_gate(port: int) -> None:
    """Wait, in a task, until the gate is open."""
    with contextlib.suppress(ConnectionError):  # it is open already
        connection = socket.create_connection(("127.0.0.1", port))
        with connection:
            connection.recv(1)


def stored_on(stream: Stream, subject: str) -> int:
    """Return the number of messages of this subject."""
    return stream.info(subjects_filter=subject).state.subjects.get(subject, 0)


def wait_for_subject(servers: str, name: str, subject: str, count: int) -> None:
    """Wait, in a task, until this many messages of the subject are stored."""
    with connect(servers.split(",")) as client:
        stream = JetStream(client).stream(name)
        while stored_on(stream, subject) < count:
            time.sleep(POLL)
