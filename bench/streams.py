"""Publishing to a stream: natsproto's JetStream on every runtime against other clients.

    python bench/streams.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. The stream is in memory and keeps the last 10,000 messages. Its
sequence shows whether every acknowledged message is stored.

sequential: each publish waits for its acknowledgment; microseconds and CPU per publish.
window: 1000 acknowledgments are outstanding at a time, with the means of each library.
load: many messages in the cheapest way of each library: fast batches, or its window.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from _client import warm_up
from _compare import LATENCY, NODE, RATE, Program, Scenario, compare, run_client
from _streams import CONTENDERS, SUBJECT, WINDOW

from jetstream.blocking import JetStream, Stream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _compare import Measure, Result

SCENARIOS = [
    Scenario("JetStream publish 128 B", "sequential", 2_000, 128, LATENCY, quick=True, check=True),
    Scenario("window 1000, 128 B", "window", 20_000, 128, RATE, quick=True, check=True),
    Scenario("window 1000, 16 KiB", "window", 4_000, 16 * 1024, RATE),
    Scenario("load a stream, 128 B", "load", 20_000, 128, RATE, quick=True),
]
# As in core.py.
TIMES = {
    "natsproto asyncio": 3,
    "natsproto uvloop": 3,
    "natsproto trio": 3,
    "natsproto blocking": 3,
    "natsproto threads": 2,
    "raw socket": 6,
}


def measure(server: Server, stream: Stream, name: str, scenario: Scenario, count: int) -> Result:
    ahead = warm_up(count)
    if scenario.kind != "sequential":
        count = max(1, count // WINDOW) * WINDOW
        ahead = 2 * WINDOW
    before = stream.info().state.last_seq
    result = run_client("_streams.py", name, scenario, server.url, count, scenario.size)
    if result:
        result["lost"] = before + ahead + count - stream.info().state.last_seq
    return result


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    with Server(jetstream=True) as server, connect(server.url) as client:
        stream = JetStream(client).create_stream(
            name="BENCH",
            subjects=[SUBJECT],
            storage="memory",
            max_msgs=10_000,
            allow_batched=True,
        )
        yield partial(measure, server, stream)


PROGRAM = Program(
    __doc__, SCENARIOS, {name: TIMES.get(name, 1) for name in [*CONTENDERS, NODE]}, session
)

if __name__ == "__main__":
    compare(PROGRAM)
