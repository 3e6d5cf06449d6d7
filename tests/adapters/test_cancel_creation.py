"""Calls that create a consumer are canceled at each of their suspensions: no consumer is left."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from jetstream import JetStream
from natsproto.errors import NatsError
from natsproto.testing import Server
from tests.adapters.runtimes import RUNTIMES, Runtime

CONFIG = {"name": "S", "subjects": ["s"], "storage": "memory"}


@pytest.fixture(scope="module")
def js_server():
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture(params=RUNTIMES)
def runtime(request) -> Runtime:
    return Runtime(request.param)


async def open_ordered(js, other):
    await (await js.stream("S")).ordered_consumer()


async def pull_subscribe(js, other):
    await js.pull_subscribe("s", stream="S")


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
    await ordered.fetch(1, expires=0.05)


async def consume(js, other):
    ordered = await _ordered_without_consumer(js, other)
    async with ordered.consume() as messages:
        await messages.next(0.05)


class Canceler:
    """Cancels the call when it suspends for the `nth` time: `before` or after what it waits for."""

    def __init__(self, runtime, client, nth, before):
        self._trio = runtime.name == "trio"
        self._port = client.session.port
        self._nth = nth
        self._before = before
        self._scope = None

    async def _cancel(self):
        if self._trio:
            import trio

            self._scope.cancel()
            await trio.lowlevel.checkpoint()
        else:
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    async def _wait(self, waitable):
        self._nth -= 1
        if self._nth == 0 and self._before:
            await self._cancel()
        await type(self._port).wait(self._port, waitable)
        if self._nth == 0:
            await self._cancel()

    async def run(self, call):
        """True if it was canceled."""
        if self._trio:
            import trio

            with trio.CancelScope() as self._scope:
                await self._watched(call)
            return self._scope.cancelled_caught
        task = asyncio.ensure_future(self._watched(call))
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    async def _watched(self, call):
        self._port.wait = self._wait
        try:
            await call
        except NatsError:
            pass
        finally:
            del self._port.wait


CALLS = [open_ordered, pull_subscribe, push_in_order, fetch, consume]


@pytest.mark.rule("ORDERED-29")
@pytest.mark.rule("ORDPUSH-11")
@pytest.mark.rule("JSSUB-17")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_canceled_at_each_suspension(runtime, js_server, call, before):
    async def main():
        async with (
            runtime.connect(js_server.url) as client,
            runtime.connect(js_server.url) as another,
        ):
            other = JetStream(another)
            await other.create_or_update_stream(CONFIG)
            js = JetStream(client)
            nth = 1
            while await Canceler(runtime, client, nth, before).run(call(js, other)):
                nth += 1
            assert nth > 1
            # The last one came to its end, and its consumer may stay.
            await other.delete_stream("S")
            await other.create_stream(CONFIG)
            seen = 0
            for each in range(1, nth):
                # A call may suspend less often than before: answers arrive together.
                if await Canceler(runtime, client, each, before).run(call(js, other)):
                    seen += 1
                    while await other.consumer_names("S"):
                        await runtime.sleep(0.01)
                else:
                    await other.delete_stream("S")
                    await other.create_stream(CONFIG)
            assert seen

    runtime.run(main)
