"""Core NATS: natsproto on every runtime against other clients and a raw socket, on a real server.

    python bench/core.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. This process is the other side: a raw socket that publishes bytes
encoded beforehand, or answers requests. The server's count, or an empty message after the last one,
shows whether a message was lost or duplicated.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from _client import WARM_UP
from _compare import LATENCY, NODE, RATE, TIMEOUT, Program, Scenario, command, compare, is_missing
from _contenders import SERVICE
from _core import CONTENDERS
from _raw import dial, pub, send_many

from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from _compare import Measure, Result

SILENCE = 5.0  # a client without the last message by then has dropped it: send another
# Slow clients are what is measured: the server must not disconnect them. The other side answers no
# pings, so there are none.
CONFIG = {"max_pending": 1 << 30, "write_deadline": "60s", "ping_interval": "12h"}
MEMORY = ["MB connected", "less than nats-py", "MB more"]
MIB = 1024 * 1024
# Small publishes are not scaled: the first 20,000 cost nats-py half as much as later ones, which
# its transport has to keep.
SCENARIOS = [
    Scenario("publish 16 B", "publish", 100_000, 16, RATE, quick=True, check=True, whole=True),
    Scenario("publish 128 B", "publish", 100_000, 128, RATE, whole=True),
    Scenario("publish 1 KiB", "publish", 60_000, 1024, RATE),
    Scenario("publish 16 KiB", "publish", 8_000, 16 * 1024, RATE),
    Scenario("publish 1 MiB", "publish", 150, MIB, RATE, even=True),
    Scenario("iterator 16 B", "subscribe", 25_000, 16, RATE, quick=True, check=True),
    Scenario("iterator 128 B", "subscribe", 25_000, 128, RATE),
    Scenario("iterator 16 KiB", "subscribe", 5_000, 16 * 1024, RATE),
    Scenario("iterator 1 MiB", "subscribe", 150, MIB, RATE, even=True),
    Scenario("callback 16 B", "callback", 50_000, 16, RATE),
    Scenario("request 16 B", "request", 2_000, 16, LATENCY, quick=True, check=True),
    Scenario("memory, 1,000 subscriptions", "memory", 1_000, 0, MEMORY, quick=True, stored=False),
]
# How many times as many messages as nats-py, so that all take about the same time; else as many.
TIMES: dict[str, float] = {
    "natsproto asyncio": 4,
    "natsproto uvloop": 4,
    "natsproto trio": 4,
    "natsproto blocking": 4,
    "natsproto threads": 2,
    "nats-core": 2,
    "natsrpy uvloop": 0.1,
    "raw socket": 16,
    NODE: 2,
}


class OtherSide:
    """The raw peer, which publishes to subscribers and answers requests."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._publisher, _ = dial(server.url)
        self._responder, _ = dial(server.url)
        self._responder.sendall(b"SUB %s 1\r\n" % SERVICE.encode())
        threading.Thread(target=self._respond, daemon=True).start()

    def publish(self, size: int, count: int) -> None:
        send_many(self._publisher, pub(bytes(size)), count)
        self.publish_last()

    def publish_in_turn(self, number: int, count: int) -> None:
        """Publish to `number` subjects in turn, `count` messages in all."""
        block = b"".join(pub(b"data", b"bench.many.%d" % each) for each in range(number))
        group = max(1, 64 * 1024 // len(block))
        for _ in range(count // number // group):
            self._publisher.sendall(block * group)
        self._publisher.sendall(block * (count // number % group))

    def publish_last(self) -> None:
        self._publisher.sendall(pub(b""))

    def _respond(self) -> None:
        """Answer with the same payload; there is one request at a time, in one read."""
        while data := self._responder.recv(64 * 1024):
            if b"PING\r\n" in data:  # alone, or before or after a request, whose payload has none
                self._responder.sendall(b"PONG\r\n")
                data = data.replace(b"PING\r\n", b"")
            if not data:
                continue
            line, _, payload = data.partition(b"\r\n")
            reply = line.split(b" ")[3]
            self._responder.sendall(b"PUB %s %d\r\n%s" % (reply, len(payload) - 2, payload))

    def published(self) -> int:
        """Return how many messages the server has received from its clients."""
        count: int = self._server.monitor("/varz")["in_msgs"]
        return count


def measure(server: Server, other: OtherSide, name: str, scenario: Scenario, count: int) -> Result:
    if scenario.kind == "memory":
        count = scenario.count
    if is_missing(name):
        return {}
    before = other.published()
    result = converse(
        command("_core.py", name, scenario, server.url, count, scenario.size),
        f"{name}: {scenario.name}",
        ready=lambda: other.publish(scenario.size, count // WARM_UP),
        go=lambda: other.publish(scenario.size, count),
        silence=other.publish_last,
    )
    if scenario.kind == "publish" and result:
        result["lost"] = lost(before + count // WARM_UP + count, other)
    return result


def converse(
    arguments: dict[str, Any],
    title: str,
    *,
    ready: Callable[[], None],
    go: Callable[[], None],
    silence: Callable[[], None],
) -> Result:
    """Run a client that prints `ready` and `go`; `silence` is called when it prints nothing."""
    result: Result = {}
    process = subprocess.Popen(**arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    killer = threading.Timer(TIMEOUT, process.kill)
    killer.start()
    reminder = threading.Timer(SILENCE, silence)
    try:
        for line in process.stdout:
            reminder.cancel()
            if line == "absent\n":
                return {}
            if line == "ready\n":
                ready()
            elif line == "go\n":
                go()
            else:
                result = json.loads(line)
                break
            reminder = threading.Timer(SILENCE, silence)
            reminder.start()
        _, errors = process.communicate(timeout=TIMEOUT)
    finally:
        reminder.cancel()
        killer.cancel()
        process.kill()
        process.wait()
    if not result:
        print(f"{title}: no result\n{errors}", file=sys.stderr)
    return result


def lost(expected: int, other: OtherSide) -> int:
    """Return the number of lost messages; below 0: duplicates.

    The server counts a read when it has processed it.
    """
    deadline = time.monotonic() + 1.0
    while other.published() < expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return expected - other.published()


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    with Server(config=CONFIG) as server:
        yield partial(measure, server, OtherSide(server))


PROGRAM = Program(
    __doc__, SCENARIOS, {name: TIMES.get(name, 1) for name in [*CONTENDERS, NODE]}, session
)

if __name__ == "__main__":
    compare(PROGRAM)
