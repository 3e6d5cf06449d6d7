"""Concurrent callbacks in the adapters, especially how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from jetstream import JetStream, blocking
from natsproto.adapters import blocking as without_a_loop
from natsproto.adapters import threads as with_threads
from natsproto.errors import InvalidValue
from tests.adapters.runtimes import Runtime

CONFIG = {"name": "S", "subjects": ["s"], "storage": "memory"}


async def ten(client):
    """Return a consumer of ten messages."""
    js = JetStream(client)
    stream = await js.create_stream(CONFIG)
    await stream.purge()
    async with js.publisher() as window:
        for _ in range(10):
            await window.publish("s")
    return await stream.create_consumer(ack_policy="explicit")


@pytest.mark.parametrize("concurrency", [1, 4])
def test_canceled(runtime, js_server, concurrency):
    """The callbacks are canceled, too, and end before `run` does; other messages are returned."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            consumer = await ten(client)
            messages = consumer.consume(max_messages=10)
            begun, ended = [], []

            async def callback(msg):
                begun.append(msg)
                try:
                    await runtime.sleep(20)
                finally:
                    ended.append(msg)

            running = runtime.start(
                lambda: messages.run(callback, concurrency=concurrency, nak=True)
            )
            while len(begun) < concurrency or messages.pending < 10 - concurrency:
                await runtime.sleep(0.01)
            await running.stop()
            assert len(begun) == len(ended) == concurrency
            assert messages.closed
            again = await consumer.fetch(10, expires=0.3)
            assert len(again) == 10 - concurrency
            await client.flush()

    runtime.run(main)


def test_asyncio_leaves_no_task(js_server):
    """No task is left after a cancellation or a failure; a caller's timeout is raised as such."""
    runtime = Runtime("asyncio")

    async def main():
        async with runtime.connect(js_server.url) as client:
            consumer = await ten(client)

            async def wait(msg):
                await asyncio.sleep(20)

            async def fail(msg):
                raise ZeroDivisionError

            before = asyncio.all_tasks()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.consume().run(wait, concurrency=3), 0.1)
            consumer = await ten(client)
            with pytest.raises(ZeroDivisionError):
                await consumer.consume().run(fail, concurrency=3)
            assert asyncio.all_tasks() == before

    runtime.run(main)


def test_a_callback_that_raises_cancelled_error(js_server):
    """A callback on asyncio may await a canceled task. Its CancelledError ends the run."""
    runtime = Runtime("asyncio")

    async def main():
        async with runtime.connect(js_server.url) as client:
            for concurrency in (1, 3):
                consumer = await ten(client)
                messages = consumer.consume()

                async def callback(msg):
                    raise asyncio.CancelledError

                with pytest.raises(asyncio.CancelledError):
                    await messages.run(callback, concurrency=concurrency)
                assert messages.closed

    runtime.run(main)


def test_trio_raises_one_cancelled(js_server):
    """A single Cancelled is raised, not a group of them, so handlers for Cancelled work."""
    trio = pytest.importorskip("trio")
    runtime = Runtime("trio")

    async def main():
        async with runtime.connect(js_server.url) as client:
            consumer = await ten(client)
            seen = []

            async def callback(msg):
                await trio.sleep(20)

            with trio.move_on_after(0.1):
                try:
                    await consumer.consume().run(callback, concurrency=3)
                except BaseException as error:
                    seen.append(type(error))
                    raise
            assert seen == [trio.Cancelled]

    runtime.run(main)


@contextmanager
def blocking_ten(adapter, server):
    with adapter.connect(server.url) as client:
        js = blocking.JetStream(client)
        stream = js.create_stream(CONFIG)
        stream.purge()
        for _ in range(10):
            js.publish("s")
        yield stream.create_consumer(ack_policy="explicit")


def test_threads(js_server):
    """Each callback runs in its own thread, one of them the caller's; no thread is left."""
    meeting = threading.Barrier(3, timeout=5)
    idents = set()

    def callback(msg):
        meeting.wait()
        idents.add(threading.get_ident())
        msg.ack()

    before = threading.active_count()
    with blocking_ten(with_threads, js_server) as consumer:
        consumer.consume(stop_after=9).run(callback, concurrency=3)
        assert len(idents) == 3
        assert threading.get_ident() in idents
    assert threading.active_count() == before


@pytest.mark.parametrize("adapter", [with_threads, without_a_loop], ids=["threads", "blocking"])
def test_ctrl_c(js_server, adapter):
    """Ctrl-C in a callback is raised by run, which has stopped the consume."""
    with blocking_ten(adapter, js_server) as consumer:
        messages = consumer.consume(max_messages=10)
        seen = []

        def callback(msg):
            seen.append(msg)
            os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            messages.run(callback, nak=True)
        assert len(seen) == 1
        assert messages.closed
        seen[0].ack()
        consumer.info()


def test_ctrl_c_while_threads_wait(js_server):
    """All workers wait for a message; the main thread is interrupted, the others end as well."""
    with blocking_ten(with_threads, js_server) as consumer:
        consumer.fetch(10)
        messages = consumer.consume()
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            messages.run(lambda msg: None, concurrency=4)
        timer.join()
        assert messages.closed


def test_a_blocking_client_rejects_concurrent_callbacks(js_server):
    with blocking_ten(without_a_loop, js_server) as consumer:
        messages = consumer.consume(stop_after=10)
        with pytest.raises(InvalidValue, match=r"not for 2 at once: natsproto\.adapters\.threads"):
            messages.run(lambda msg: msg.ack(), concurrency=2)
        messages.run(lambda msg: msg.ack())
        assert consumer.info().num_pending == 0


def test_a_system_without_threads(js_server, monkeypatch):
    """Threads that have started end; run does not wait for those that could not start."""
    started = []

    class Thread(threading.Thread):
        def start(self):
            if len(started) == 2:
                raise RuntimeError("can't start new thread")
            super().start()
            started.append(self)

    with blocking_ten(with_threads, js_server) as consumer:
        messages = consumer.consume()
        monkeypatch.setattr(threading, "Thread", Thread)
        with pytest.raises(RuntimeError, match="new thread"):
            messages.run(lambda msg: msg.ack(), concurrency=5)
        for thread in started:
            thread.join(5)
            assert not thread.is_alive()
        assert messages.closed
