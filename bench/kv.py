"""The key-value store: natsproto on every runtime against other clients.

    python bench/kv.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. The bucket is in memory and has 10,000 keys of 128 bytes. Every
client must find all of them.

get, put: one after the other; microseconds and CPU for each.
watch: the initial values of all keys, entry by entry. keys: the list of keys.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from _compare import LATENCY, NODE, Program, Scenario, compare, run_client
from _kv import BUCKET, CONTENDERS, KEYS

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _compare import Measure, Result

SIZE = 128
RATE = ["keys/s", "x", "CPU us", "CPU x"]
SCENARIOS = [
    Scenario("KV get 128 B", "get", 2_000, SIZE, LATENCY, quick=True, check=True),
    Scenario("KV put 128 B", "put", 2_000, SIZE, LATENCY, quick=True),
    Scenario("KV watch, 10,000 keys", "watch", 3, SIZE, RATE, quick=True, check=True),
    Scenario("KV keys, 10,000 keys", "keys", 3, SIZE, RATE, quick=True),
]


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        js.create_key_value(bucket=BUCKET, storage="memory")
        with js.publisher() as window:
            for number in range(KEYS):
                window.publish(f"$KV.{BUCKET}.orders.{number}", bytes(SIZE))

        def measure(name: str, scenario: Scenario, count: int) -> Result:
            return run_client("_kv.py", name, scenario, server.url, count, scenario.size)

        yield measure


PROGRAM = Program(__doc__, SCENARIOS, dict.fromkeys([*CONTENDERS, NODE], 1), session)

if __name__ == "__main__":
    compare(PROGRAM)
