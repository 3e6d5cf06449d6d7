"""What only adapters on an event loop have to care for: how blocks end, and idle loops."""

from __future__ import annotations

import asyncio
import time

import pytest

from natsproto.adapters import asyncio as on_asyncio
from natsproto.errors import ConnectFailed, ConnectionClosed, InvalidState
from natsproto.testing import free_port
from tests.adapters.runtimes import RUNTIMES, Runtime


@pytest.fixture(params=RUNTIMES)
def runtime(request) -> Runtime:
    return Runtime(request.param)


@pytest.mark.parametrize("error", [ValueError, ConnectionClosed, KeyboardInterrupt])
def test_what_the_block_raises_comes_out_as_it_is(runtime, server, error):
    mine = error("mine")

    async def main():
        with pytest.raises(error) as caught:
            async with runtime.connect(server.url) as client:
                raise mine
        assert caught.value is mine
        assert client.state == "CLOSED"

    runtime.run(main)


def test_so_does_what_connect_raises(runtime):
    async def main():
        with pytest.raises(ConnectFailed):
            async with runtime.connect(f"nats://127.0.0.1:{free_port()}"):
                raise AssertionError("there is no server")

    runtime.run(main)


def test_a_name_that_dns_cannot_carry(runtime):
    async def main():
        with pytest.raises(ConnectFailed):
            async with runtime.connect("nats://%s.example:4222" % ("x" * 70), connect_timeout=20):
                raise AssertionError("there is no server")

    begin = time.monotonic()
    runtime.run(main)
    assert time.monotonic() - begin < 10


def test_a_cancelled_block_ends_soon(runtime, own_server):
    """With a frozen server as well: nothing can be flushed."""

    async def hang():
        async with runtime.connect(own_server.url) as client:
            await client.publish("a", bytes(100))
            clients.append(client)
            await runtime.sleep(60)

    async def main():
        task = runtime.start(hang)
        while not clients:
            await runtime.sleep(0.01)
        own_server.freeze()
        begin = time.monotonic()
        await task.stop()
        assert time.monotonic() - begin < 1.5
        assert clients[0].state == "CLOSED"

    clients = []
    try:
        runtime.run(main)
    finally:
        own_server.thaw()


def test_a_cancelled_block_sends_what_it_has_published(runtime, server):
    async def publish():
        async with runtime.connect(server.url) as client:
            await client.publish("a", b"1")
            begun.append(client)
            await runtime.sleep(60)

    async def main():
        async with runtime.connect(server.url) as watcher:
            sub = await watcher.subscribe("a")
            await watcher.flush()
            task = runtime.start(publish)
            while not begun:
                await runtime.sleep(0.001)
            await task.stop()
            assert (await sub.next(timeout=5)).data == b"1"

    begun = []
    runtime.run(main)


def test_an_idle_client_sleeps(runtime, server, monkeypatch):
    async def main():
        async with runtime.connect(server.url) as client:
            await client.flush()
            turns = []
            port = client.session.port
            real = port.carry_out
            monkeypatch.setattr(port, "carry_out", lambda: (turns.append(None), real()))
            await runtime.sleep(0.3)
            assert len(turns) <= 1

    runtime.run(main)


def test_reconnecting_leaves_nothing_behind(runtime, server):
    async def main():
        async with runtime.connect(server.url, name="mover") as client:
            for _ in range(20):
                await client.force_reconnect()
                await client.flush()
            others = [each["name"] for each in server.monitor("/connz")["connections"]]
            assert others.count("mover") == 1

    runtime.run(main)


def test_await_connect(server):
    async def main():
        client = await on_asyncio.connect(server.url)
        await client.flush()
        await client.close()

    asyncio.run(main())


def test_trio_is_told_from_asyncio():
    from natsproto.adapters.trio import connect

    async def main():
        async with connect():
            pass

    with pytest.raises(InvalidState, match="is for tasks of trio"):
        asyncio.run(main())


def test_a_timer_of_trio_that_is_moved_up(server):
    """The first deadline is that of a PING, minutes away; a time-out comes before it."""
    trio = pytest.importorskip("trio")
    from natsproto.adapters.trio import connect

    async def main():
        async with connect(server.url) as client:
            sub = await client.subscribe("a")
            with trio.fail_after(5), pytest.raises(Exception, match="in time"):
                await sub.next(timeout=0.05)

    trio.run(main)
