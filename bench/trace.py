"""The cost of a trace: microseconds of CPU a message, for each sink, without a server.

    python bench/trace.py [--rounds N] [--count N]

`off` is a connection that is not traced, which is what a program without `trace` has. The minimum
of the rounds counts; the rounds of the rows are interleaved.
"""

from __future__ import annotations

import argparse
import io
import platform
import random
import time
from typing import TYPE_CHECKING

from natsproto.connection import Connection
from natsproto.options import Options
from natsproto.trace import FlightRecorder, JsonSink, TextSink, TracedConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

INFO = b'INFO {"headers":true,"max_payload":1048576}\r\n'
DATA = b"0123456789abcdef"
MESSAGE = b"MSG a.b.c 1 16\r\n" + DATA + b"\r\n"
READ = 64 * 1024
JOINED = 100  # publishes between two writes


class Null(io.StringIO):
    """A file that keeps nothing."""

    def write(self, text: str) -> int:
        """Discard the text."""
        return len(text)


def ignore(step: object) -> None:
    """Do nothing."""


SINKS: dict[str, Callable[[], Any] | None] = {
    "off": None,
    "a function that does nothing": lambda: ignore,
    "flight recorder": FlightRecorder,
    "text": lambda: TextSink(Null()),
    "JSON": lambda: JsonSink(Null()),
}


def connected(sink: Any) -> Connection:
    """Return a connection after its handshake."""
    rng = random.Random(1)
    made = (
        Connection(Options(), rng=rng)
        if sink is None
        else TracedConnection(Options(), rng=rng, sink=sink)
    )
    made.connect(0.0)
    made.take_effects()
    made.transport_opened(0.0)
    made.receive_data(INFO, 0.0)
    made.data_to_send()
    made.receive_data(b"PONG\r\n", 0.0)
    return made


def measure(sink: Any, count: int) -> tuple[float, float]:
    """Return the microseconds of a message that is received, and of one that is published."""
    connection = connected(sink)
    box = connection.mailbox(10**6, 10**9)
    connection.subscribe("a.b.c", box)
    connection.data_to_send()
    data = MESSAGE * count
    start = time.process_time()
    for place in range(0, len(data), READ):
        connection.receive_data(data[place : place + READ], 0.0)
        connection.take_ready()
        while box.pending():
            box.pop()
    received = time.process_time() - start
    start = time.process_time()
    for number in range(count):
        connection.publish("a.b.c", DATA)
        if not number % JOINED:
            connection.data_to_send()
    connection.data_to_send()
    published = time.process_time() - start
    return received / count * 1e6, published / count * 1e6


def main() -> None:
    """Measure all sinks and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=20_000)
    arguments = parser.parse_args()
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in SINKS}
    for _ in range(arguments.rounds):
        for name, make in SINKS.items():
            results[name].append(measure(make() if make else None, arguments.count))
    print(f"Python {platform.python_version()}, microseconds of CPU a message of 16 bytes\n")
    print("| trace | receive | publish |\n|---|---|---|")
    for name, rows in results.items():
        received, published = (min(row[i] for row in rows) for i in (0, 1))
        print(f"| {name} | {received:.2f} | {published:.2f} |")


if __name__ == "__main__":
    main()
