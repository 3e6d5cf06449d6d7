"""Push consumers: natsproto's JetStream on every runtime against other clients.

    python bench/push.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. The stream is in memory and filled beforehand; each run has its
own consumer, whose state shows whether every message was acknowledged.

iterator: messages are taken one by one. callback: with a callback where a library has them, which
natsproto does not; its iterator is compared with them.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING

from _compare import NODE, RATE, Program, Scenario, compare, run_client
from _push import CONTENDERS

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _compare import Measure, Result

AHEAD = 500
COLUMNS = RATE[:-1]  # there is no raw socket
SCENARIOS = [
    Scenario(
        "push + ack, 128 B", "iterator", 15_000, 128, COLUMNS, even=True, quick=True, check=True
    ),
    Scenario("push + ack, callback, 128 B", "callback", 15_000, 128, COLUMNS, even=True),
]


def fill(js: JetStream, name: str, count: int) -> None:
    js.create_stream(name=name, subjects=["push." + name], storage="memory")
    with js.publisher() as window:
        for number in range(count):
            window.publish("push." + name, b"%08d" % number + bytes(120))


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    numbers = itertools.count(1)
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        most = max(int(each.count * share) for each in scenarios)
        fill(js, "WARM", AHEAD)
        fill(js, "PUSH", most)

        def measure(name: str, scenario: Scenario, count: int) -> Result:
            consumer = f"c{next(numbers)}"
            for stream in ("WARM", "PUSH"):
                js.create_consumer(
                    stream,
                    durable_name=consumer,
                    deliver_subject=f"deliver.{stream}.{consumer}",
                    ack_policy="explicit",
                    max_ack_pending=2 * most,
                    mem_storage=True,
                )
            result = run_client("_push.py", name, scenario, server.url, count, AHEAD, consumer)
            floor = js.consumer("PUSH", consumer).info().ack_floor.stream_seq
            for stream in ("WARM", "PUSH"):
                js.delete_consumer(stream, consumer)
            if result:
                result["lost"] = result["lost"] or count - floor
            return result

        yield measure


PROGRAM = Program(__doc__, SCENARIOS, dict.fromkeys([*CONTENDERS, NODE], 1), session)

if __name__ == "__main__":
    compare(PROGRAM)
