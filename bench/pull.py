"""Pulling from a stream: natsproto's JetStream on every runtime against other clients.

    python bench/pull.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. The streams are in memory and filled beforehand. Each run has its
own consumer, whose state shows whether a message was lost, delivered twice or not acknowledged.

fetch(n) + ack: fetches of n messages, each acknowledged.
consume: a buffer of 500, refilled by the library; nats-py has no equivalent and fetches 500.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from _compare import NODE, RATE, Program, Scenario, compare, run_client
from _pull import CONTENDERS, HEADER, KINDS, warm_up
from _tables import progress

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _compare import Measure, Result

MIB = 1024 * 1024
SCENARIOS = [
    Scenario("fetch(100) + ack, 128 B", "fetch100", 8_000, 128, RATE, quick=True, check=True),
    Scenario("fetch(500) + ack, 128 B", "fetch500", 10_000, 128, RATE, check=True),
    Scenario("consume + ack, 128 B", "consume", 10_000, 128, RATE, quick=True, check=True),
    Scenario("consume, no acks, 128 B", "none", 15_000, 128, RATE),
    Scenario("consume + ack, headers unread", "unread", 10_000, 128, RATE),
    Scenario("consume + ack, header read", "headers", 10_000, 128, RATE, check=True),
    Scenario("consume + ack, 16 KiB", "consume", 1_000, 16 * 1024, RATE, check=True),
    Scenario("consume + ack, 1 MiB", "consume", 100, MIB, RATE, even=True),
]
MORE = 4  # as many times as nats-py's do natsproto and the raw socket get
TIMES = {name: MORE if name.startswith(("natsproto", "raw")) else 1 for name in [*CONTENDERS, NODE]}
_numbers = itertools.count(1)


def stream_of(scenario: Scenario) -> str:
    return f"S{scenario.size}" + ("H" if scenario.kind in ("headers", "unread") else "")


def fill(js: JetStream, scenarios: list[Scenario], share: float) -> None:
    """Fill a stream for each kind of message, with as many as the fastest of its clients takes."""
    for name in sorted({stream_of(each) for each in scenarios}):
        mine = [each for each in scenarios if stream_of(each) == name]
        js.create_stream(name=name, subjects=["pull." + name], storage="memory")
        most = max(each.count * (1 if each.even else MORE) for each in mine)
        count = int(most * share) + 2 * warm_up(mine[0].size)
        headers = {HEADER: "4711", "Order-Kind": "coffee"} if name.endswith("H") else None
        size = mine[0].size
        with js.publisher() as window:
            for number in range(count):
                data = b"%08d" % number + bytes(size - 8)
                if headers:
                    window.publish("pull." + name, data, headers=headers)
                else:
                    window.publish("pull." + name, data)


def measure(server: Server, js: JetStream, name: str, scenario: Scenario, count: int) -> Result:
    stream = stream_of(scenario)
    ack = KINDS[scenario.kind][1]
    consumer = js.create_consumer(
        stream,
        durable_name=f"c{next(_numbers)}",
        ack_policy="explicit" if ack else "none",
        max_ack_pending=20_000,
        mem_storage=True,
    )
    result = run_client(
        "_pull.py", name, scenario, server.url, stream, consumer.name, count, scenario.size
    )
    info = consumer.info()
    consumer.delete()
    if not result:
        return {}
    lost = int(result.get("lost", 0))
    if ack:
        lost = lost or warm_up(scenario.size) + count - info.ack_floor.stream_seq
    result["lost"] = lost or info.delivered.stream_seq - info.delivered.consumer_seq
    return result


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        progress("the streams are filled")
        fill(js, scenarios, share)
        yield partial(measure, server, js)


PROGRAM = Program(__doc__, SCENARIOS, TIMES, session)

if __name__ == "__main__":
    compare(PROGRAM)
