"""What concerns only the adapter of anyio: its backends, and its cancel scopes."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from natsproto.errors import ConnectFailed, InvalidState
from natsproto.testing import free_port

anyio = pytest.importorskip("anyio")

from natsproto.adapters.anyio import connect  # noqa: E402
from natsproto.testing.anyio_runner import AnyioRunner  # noqa: E402


@pytest.fixture(params=["asyncio", "trio"])
def backend(request):
    pytest.importorskip(request.param)
    return request.param


def run(backend, main):
    AnyioRunner(backend).run(main, timeout=30)


def test_the_backend_chooses_the_adapter(backend, server):
    async def main():
        async with connect(server.url) as client:
            name = type(client.session.port).__module__
            assert name == {"asyncio": "natsproto.adapters.anyio"}.get(
                backend, "natsproto.adapters.trio"
            )
            await client.flush()

    run(backend, main)


def test_a_canceled_block_sends_what_it_has_published_and_closes_its_socket(backend, own_server):
    """The scope is canceled for good: on asyncio every later await would be canceled again."""

    async def main():
        async with connect(own_server.url) as other:
            sub = await other.subscribe("last.words")
            await other.flush()
            began = 0.0
            with anyio.CancelScope() as scope:
                async with connect(own_server.url) as client:
                    for number in range(100):
                        await client.publish("last.words", b"%d" % number)
                    scope.cancel()
                    began = time.monotonic()
                    await anyio.sleep(30)
            assert time.monotonic() - began < 5
            assert client.state == "CLOSED"
            closed = [event async for event in client.events][-1]
            assert closed.unconfirmed == 0  # the server has confirmed all of them
            for number in range(100):
                assert (await sub.next(timeout=10)).data == b"%d" % number
            assert await connections(own_server) == 1  # that of `other`

    run(backend, main)


async def connections(server):
    """Return how many clients the server has, when it has noticed those that left."""
    deadline = time.monotonic() + 10
    while True:
        count = server.monitor("/connz")["num_connections"]
        if count == 1 or time.monotonic() > deadline:
            return count
        await anyio.sleep(0.01)


def test_leaving_a_canceled_block_does_not_wait_for_a_frozen_server(backend, own_server):
    async def main():
        with anyio.CancelScope() as scope:
            async with connect(own_server.url) as client:
                own_server.freeze()
                await client.publish("a", b"in vain")
                scope.cancel()
                await anyio.sleep(30)
        assert client.state == "CLOSED"

    try:
        began = time.monotonic()
        run(backend, main)
        assert time.monotonic() - began < 5
    finally:
        own_server.thaw()


def test_a_timeout_around_connect_leaves_nothing_open(backend):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        url = "nats://127.0.0.1:%d" % listener.getsockname()[1]

        async def main():
            with anyio.move_on_after(0.2) as scope:
                async with connect(url, connect_timeout=20):
                    raise AssertionError("there is no server")
            assert scope.cancelled_caught

        run(backend, main)
        conn, _ = listener.accept()
        with conn:
            conn.settimeout(10)
            assert conn.recv(100) == b""


def test_a_canceled_run_waits_for_its_callbacks(backend, server):
    """A canceled callback cleans up, which takes a moment, before `run` raises."""
    ended = []

    async def callback(msg):
        try:
            await anyio.sleep(30)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            ended.append(msg.data)

    async def main():
        async with connect(server.url) as client:
            sub = await client.subscribe("work")
            for each in (b"1", b"2"):
                await client.publish("work", each)
            await client.flush()
            with anyio.move_on_after(0.1):
                await sub.run(callback, concurrency=2)
            assert sorted(ended) == [b"1", b"2"]

    run(backend, main)


def test_errors_are_not_wrapped_in_groups(backend):
    async def main():
        with pytest.raises(ConnectFailed):
            async with connect(f"nats://127.0.0.1:{free_port()}"):
                pass

    run(backend, main)


def test_without_a_task():
    with pytest.raises(InvalidState, match="must be called in a task"):
        connect("nats://127.0.0.1:1")
    loop = asyncio.new_event_loop()
    raised = []

    def callback():
        try:
            connect("nats://127.0.0.1:1")
        except InvalidState as error:
            raised.append(error)

    loop.call_soon(callback)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert raised
