"""Calls that create a consumer are canceled at each of their suspensions: no consumer is left."""

from __future__ import annotations

from contextlib import suppress

import pytest

from jetstream import JetStream
from natsproto.errors import NatsError
from tests.adapters.canceling import FOR_GOOD, Canceler, until_empty

CONFIG = {"name": "S", "subjects": ["s"], "storage": "memory"}
PATIENCE = 20.0  # nothing here takes that long


async def open_ordered(js, other):
    await (await js.stream("S")).ordered_consumer()


async def pull_subscribe(js, other):
    await js.pull_subscribe("s", stream="S", inactive_threshold=FOR_GOOD)


async def push_in_order(js, other):
    async with await js.subscribe("s", stream="S", ordered=True):
        pass


async def _ordered_without_consumer(js, other):
    ordered = await (await js.stream("S")).ordered_consumer()
    for name in await other.consumer_names("S"):
        with suppress(NatsError):
            await other.delete_consumer("S", name)
    return ordered


async def fetch(js, other):
    ordered = await _ordered_without_consumer(js, other)
    assert len(await ordered.fetch(1, expires=PATIENCE)) == 1


async def consume(js, other):
    ordered = await _ordered_without_consumer(js, other)
    async with ordered.consume() as messages:
        assert (await messages.next(PATIENCE)).data == b"1"


CALLS = [  # the call, and at how many points it suspends
    (open_ordered, 2),
    (pull_subscribe, 1),
    (push_in_order, 1),
    (fetch, 6),
    (consume, 4),
]


@pytest.mark.rule("D-ORDERED-29")
@pytest.mark.rule("D-ORDPUSH-11")
@pytest.mark.rule("D-JSSUB-17")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("call", "points"), CALLS)
def test_canceled_at_each_suspension(runtime, js_server, call, points, before):
    async def main():
        async with (
            runtime.connect(js_server.url) as client,
            runtime.connect(js_server.url) as another,
        ):
            other = JetStream(another)
            await other.create_stream(CONFIG)
            await other.publish("s", b"1")
            js = JetStream(client)
            for nth in range(1, points + 1):
                canceler = Canceler(runtime, client, nth, before)
                assert await canceler.run(call(js, other))
                assert canceler.suspensions == nth
                await until_empty(runtime, lambda: other.consumer_names("S"))
            canceler = Canceler(runtime, client, points + 1, before)
            assert not await canceler.run(call(js, other))
            assert canceler.suspensions == points
            await other.delete_stream("S")

    runtime.run(main)
