"""Fetches that are canceled, left or dropped: no message is lost, and no pull is left."""

from __future__ import annotations

import gc
import itertools
import threading

import pytest

from jetstream import JetStream
from jetstream import blocking as js_blocking
from natsproto.adapters import blocking, threads
from tests.adapters.runtimes import Runtime

_numbers = itertools.count()


async def new_consumer(client, **config):
    """Return a consumer of a new stream, and a function that fills it."""
    js = JetStream(client)
    name = f"S{next(_numbers)}"
    stream = await js.create_stream(name=name, subjects=[name], storage="memory")

    async def fill(*payloads):
        for payload in payloads:
            await js.publish(name, payload)

    return js, await stream.create_consumer(durable_name="c", **config), fill


async def until(runtime, look):
    for _ in range(500):
        if await look():
            return
        await runtime.sleep(0.01)
    pytest.fail("it did not happen")


def pending(consumer, count):
    """Return whether this many messages are counted, which may be after their PubAcks."""

    async def look():
        return (await consumer.info()).num_pending == count

    return look


def waiting(consumer, count):
    """Return whether this many pulls wait at the server."""

    async def look():
        return (await consumer.info()).num_waiting == count

    return look


def data(batch):
    return [msg.data for msg in batch]


def test_canceled_fetches_keep_received_messages(runtime, js_server):
    """Messages that arrived for several fetches of one handle are kept for the next one."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            _, consumer, fill = await new_consumer(client)
            tasks = [runtime.start(lambda: consumer.fetch(10, expires=20.0)) for _ in range(3)]
            await until(runtime, waiting(consumer, 3))
            await fill(*[b"%d" % n for n in range(6)])
            await client.flush()
            for task in tasks:
                await task.stop()
            batch = await consumer.fetch(6, expires=2.0)
            assert data(batch) == [b"%d" % n for n in range(6)]
            assert all(msg.metadata.delivered == 1 for msg in batch)

    runtime.run(main)


def test_a_canceled_fetch_returns_its_pull(runtime, js_server):
    """Later messages go to another handle at once, not to the canceled fetch."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            js, consumer, fill = await new_consumer(client)
            other = await js.consumer(consumer.stream, "c")
            task = runtime.start(lambda: consumer.fetch(10, expires=20.0))
            await until(runtime, waiting(other, 1))
            await task.stop()
            await client.flush()
            await fill(*[b"%d" % n for n in range(5)])
            assert data(await other.fetch(5, expires=2.0)) == [b"%d" % n for n in range(5)]

    runtime.run(main)


def test_canceled_at_any_moment(runtime, js_server):
    """Fetches are canceled while messages arrive: none is lost or duplicated."""

    async def main():
        async with runtime.connect(js_server.url) as client, runtime.connect(js_server.url) as more:
            # A message that the server sends at the moment of the UNSUB is redelivered after
            # ack_wait.
            _, consumer, fill = await new_consumer(client, ack_wait=1.0)
            got = []

            async def take(msg):
                got.append(msg.data)
                await msg.ack()

            async def iterate():
                async for msg in consumer.fetch(3, expires=5.0):
                    await take(msg)

            async def fetch():
                for msg in await consumer.fetch(3, expires=5.0):
                    await take(msg)

            sent = []
            for turn in range(40):
                task = runtime.start(fetch if turn % 2 else iterate)
                payloads = [b"%d.%d" % (turn, n) for n in range(turn % 3)]
                sent += payloads
                await fill(*payloads)
                for _ in range(turn % 5):
                    await more.flush()
                await client.flush()
                await task.stop()
            while len(got) < len(sent):
                for msg in await consumer.fetch(len(sent) - len(got), expires=0.5):
                    await take(msg)
            assert sorted(got) == sorted(sent)

    runtime.run(main)


def test_an_iteration_that_is_left(runtime, js_server):
    """Its pull is canceled soon, and untaken messages are not lost."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            js, consumer, fill = await new_consumer(client)
            await fill(b"1", b"2")
            await until(runtime, pending(consumer, 2))
            async for msg in consumer.fetch(10, expires=20.0):
                assert msg.data == b"1"
                break
            other = await js.consumer(consumer.stream, "c")
            await until(runtime, waiting(other, 0))
            await fill(b"3")
            assert data(await other.fetch(1, expires=2.0)) == [b"3"]
            assert data(await consumer.fetch(1, expires=2.0)) == [b"2"]

    runtime.run(main)


def subscriptions(server, client):
    connz = server.monitor(f"/connz?cid={client.info.client_id}&subs=1")
    return connz["connections"][0].get("subscriptions_list", [])


def test_a_handle_for_each_fetch(runtime, js_server):
    """Dropped handles leave no subscriptions, neither here nor at the server."""

    async def main():
        async with runtime.connect(js_server.url) as client:
            js, consumer, fill = await new_consumer(client)
            await fill(*[b"x"] * 50)
            for _ in range(50):
                handle = await js.consumer(consumer.stream, "c")
                assert len(await handle.fetch(1, expires=2.0)) == 1
            del handle
            gc.collect()

            async def gone():
                await client.flush()
                return len(subscriptions(js_server, client)) <= 2

            await until(runtime, gone)

    runtime.run(main)


@pytest.mark.parametrize("adapter", [blocking, threads], ids=["blocking", "threads"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_handle_for_each_fetch_without_a_loop(adapter, elsewhere, js_server):
    """The same holds without async code, whichever thread runs the garbage collector."""
    with adapter.connect(js_server.url) as client:
        js = js_blocking.JetStream(client)
        name = f"S{next(_numbers)}"
        stream = js.create_stream(name=name, subjects=[name], storage="memory")
        stream.create_consumer(durable_name="c")
        for _ in range(20):
            js.publish(name, b"x")
            handles = [stream.consumer("c")]
            for _msg in handles[0].iter_fetch(5, expires=5.0):
                break
            if elsewhere:
                thread = threading.Thread(target=handles.clear)
                thread.start()
                thread.join()
            else:
                handles.clear()
        gc.collect()
        for _ in range(100):
            client.flush()
            if (
                len(subscriptions(js_server, client)) <= 2
                and stream.consumer("c").cached_info.num_waiting == 0
            ):
                break
        else:
            pytest.fail("subscriptions or pulls are left")
        assert client.stats.connects == 1


def test_as_tasks_of_asyncio(js_server):
    """asyncio accepts a fetch wherever it accepts a coroutine."""
    asyncio = pytest.importorskip("asyncio")
    runtime = Runtime("asyncio")

    async def main():
        async with runtime.connect(js_server.url) as client:
            _, consumer, fill = await new_consumer(client)
            await fill(*[b"x"] * 4)
            assert len(await asyncio.create_task(consumer.fetch(1))) == 1
            assert len(await asyncio.wait_for(consumer.fetch(1), 5.0)) == 1
            assert len(await asyncio.ensure_future(consumer.fetch(1))) == 1
            [batch] = await asyncio.gather(consumer.fetch(1))
            assert len(batch) == 1
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.fetch(1, expires=20.0), 0.05)

    runtime.run(main)


def test_as_tasks_of_trio(js_server):
    trio = pytest.importorskip("trio")
    runtime = Runtime("trio")

    async def main():
        async with runtime.connect(js_server.url) as client:
            _, consumer, fill = await new_consumer(client)
            await fill(b"x")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(consumer.fetch, 1)
            assert (await consumer.info()).num_ack_pending == 1

    runtime.run(main)
