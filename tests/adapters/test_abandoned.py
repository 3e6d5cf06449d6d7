"""Iterators that are dropped while in use: garbage collection stops them, with a warning."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from contextlib import contextmanager

import pytest

from jetstream import JetStream, blocking
from natsproto.adapters import blocking as without_a_loop
from natsproto.adapters import threads as with_threads
from tests.adapters.runtimes import Runtime

CONFIG = {"name": "S", "subjects": ["s"], "storage": "memory"}


@contextmanager
def one_warning(what):
    """Expect exactly one ResourceWarning, which names the dropped object."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    texts = [str(each.message) for each in caught if each.category is ResourceWarning]
    ours = [text for text in texts if "garbage-collected while in use" in text]
    assert len(ours) == 1
    assert what in ours[0]


async def consumed(js):
    """Leave a consume() by break, without a block."""
    stream = await js.create_stream(CONFIG)
    await stream.purge()
    for _ in range(10):
        await js.publish("s")
    consumer = await stream.create_consumer(ack_policy="explicit")
    return consumer


DROPS = ["here", "in another thread"]


@pytest.mark.parametrize("nak", [False, True])
@pytest.mark.parametrize("where", DROPS)
def test_consume(runtime, js_server, where, nak):
    """No pull is left at the server; with `nak_on_exit` the next reader gets the rest."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            consumer = await consumed(JetStream(client))
            with one_warning("consume()"):
                messages = consumer.consume(max_messages=20, nak_on_exit=nak)
                async for msg in messages:
                    await msg.ack()
                    break
                while messages.pending < 9:
                    await runtime.sleep(0.01)
                held = [messages]
                del messages
                if where == "here":
                    held.clear()
                else:
                    thread = threading.Thread(target=held.clear)
                    thread.start()
                    thread.join()
            while (await consumer.info()).num_waiting:
                await runtime.sleep(0.01)
            again = await consumer.fetch(9, expires=0.3)
            assert len(again) == (9 if nak else 0)
            assert client.session.connection.subscriptions.by_sid.keys() <= {
                1,
                3,
            }  # the inbox of answers, and the fetch
            await client.flush()

    runtime.run(main)


def test_push_and_watch(runtime, js_server):
    """Dropped subscriptions and watches are unsubscribed; the consumer of a watch is deleted."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            js = JetStream(client)
            await consumed(js)
            kv = await js.create_key_value(bucket="b")
            await kv.put("k", b"v")
            before = len(client.session.connection.subscriptions.by_sid)
            with one_warning("the subscription"):
                async for _ in await js.subscribe("s", ack_policy="explicit"):
                    break
            with one_warning("consume()"):
                async for _ in await kv.watch():
                    break
            while await js.consumer_names("KV_b"):
                await runtime.sleep(0.01)
            assert len(client.session.connection.subscriptions.by_sid) == before
            await js.delete_key_value("b")

    runtime.run(main)


def test_there_is_no_warning_about_iterators_that_have_ended(runtime, js_server):
    async def main():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            async with runtime.connect(js_server.url) as client:
                consumer = await consumed(JetStream(client))
                async with consumer.consume(max_messages=1):
                    pass
                async for _ in consumer.consume(stop_after=1):
                    pass
                await consumer.consume().drain()
                kept = consumer.consume()
            del kept
            gc.collect()

    runtime.run(main)


@pytest.mark.parametrize("adapter", [without_a_loop, with_threads])
@pytest.mark.parametrize("where", DROPS)
def test_consume_without_a_loop(adapter, js_server, where):
    """Only the thread that runs the connection, or the next call, touches the machine."""
    with adapter.connect(js_server.url) as client:
        js = blocking.JetStream(client)
        stream = js.create_stream(CONFIG)
        stream.purge()
        for _ in range(10):
            js.publish("s")
        consumer = stream.create_consumer(ack_policy="explicit")
        with one_warning("consume()"):
            messages = consumer.consume(max_messages=20, nak_on_exit=True)
            for msg in messages:
                msg.ack()
                break
            held = [messages]
            del messages
            if where == "here":
                held.clear()
            else:
                thread = threading.Thread(target=held.clear)
                thread.start()
                thread.join()
        deadline = time.monotonic() + 5.0
        while consumer.info().num_waiting:
            assert time.monotonic() < deadline
        assert len(consumer.fetch(9, expires=1.0)) == 9


def test_a_closed_loop(js_server):
    """An iterator that outlives its event loop is dropped without a warning."""
    runtime = Runtime("asyncio")
    kept = []

    async def main():
        async with runtime.connect(js_server.url) as client:
            kept.append((await consumed(JetStream(client))).consume())
            await kept[0].next(1.0)

    runtime.run(main)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.clear()
        gc.collect()
