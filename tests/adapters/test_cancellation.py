"""Calls that are canceled at any await leave the connection intact and lose no message."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

import pytest

from natsproto.connection import Connection
from natsproto.connection.effects import Dial
from natsproto.errors import NoResponders
from tests.adapters.canceling import Canceler


def test_next(runtime, server):
    """A reader is canceled again and again, at different times after its start."""

    async def main():
        async with runtime.connect(server.url) as client, runtime.connect(server.url) as other:
            sub = await client.subscribe("numbers")
            await client.flush()
            got = []

            async def take():
                while True:
                    got.append(int((await sub.next()).data))

            for round_ in range(50):
                taker = runtime.start(take)
                for _ in range(round_ % 5):
                    await other.publish("numbers", b"%d" % round_)
                    await client.flush()
                await other.publish("numbers", b"%d" % round_)
                await other.flush()
                await taker.stop()
            await client.flush()
            while sub.pending:
                got.append(int((await sub.next()).data))
            assert got == [number for number in range(50) for _ in range(number % 5 + 1)]

    runtime.run(main)


def test_iteration(runtime, server):
    """An iteration can also be canceled at its checkpoints, where messages are available."""

    async def main():
        async with runtime.connect(server.url) as client:
            sub = await client.subscribe("numbers")
            for number in range(2000):
                await client.publish("numbers", b"%d" % number)
            await client.flush()
            got = []

            async def take():
                async for msg in sub:
                    number = int(msg.data)
                    got.append(number)

            while sub.pending:
                taker = runtime.start(take)
                await client.flush()
                await taker.stop()
            assert got == list(range(2000))

    runtime.run(main)


def test_request(runtime, server):
    async def main():
        async with runtime.connect(server.url) as client:
            sub = await client.subscribe("service")
            request = runtime.start(lambda: client.request("service", b"first", timeout=20))
            first = await sub.next(timeout=5)
            await request.stop()
            # The unexpected answer does no harm; the next request gets its own.
            await client.publish(first.reply, b"late")
            request = runtime.start(lambda: client.request("service", b"second", timeout=5))
            second = await sub.next(timeout=5)
            await client.publish(second.reply, b"in time")
            assert (await request.result()).data == b"in time"
            with pytest.raises(NoResponders):
                await client.request("nobody")
            assert client.stats.connects == 1

    runtime.run(main)


def test_publish_while_the_server_does_not_read(runtime, own_server):
    """No partial frame is left on the wire, and accepted messages arrive."""
    size = 300_000

    async def main():
        async with runtime.connect(own_server.url) as client:
            sub = await client.subscribe("big", max_msgs=1000, max_bytes=1000 * size)
            await client.flush()
            own_server.freeze()
            begun = []
            done = []

            async def publish():
                while True:
                    begun.append(None)
                    await client.publish("big", b"%d " % len(begun) + bytes(size))
                    done.append(None)

            publisher = runtime.start(publish)
            # It blocks when the buffers of the system and of the client are full.
            seen = -1
            while seen < len(begun):
                seen = len(begun)
                await runtime.sleep(0.2)
            assert len(begun) == len(done) + 1
            await publisher.stop()
            own_server.thaw()
            await client.flush()
            numbers = [int((await sub.next(timeout=5)).data.split()[0]) for _ in begun]
            assert numbers == list(range(1, len(begun) + 1))
            assert client.stats.connects == 1

    runtime.run(main)


INFO = b'INFO {"server_id":"S","version":"2.11.0","max_payload":1048576}\r\n'


@pytest.mark.parametrize("greeting", [b"", INFO])
def test_connect(runtime, greeting):
    """The server does not send INFO, or PONG; a canceled connect leaves nothing open."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = "nats://127.0.0.1:%d" % listener.getsockname()[1]

        async def connect():
            async with runtime.connect(url, connect_timeout=20):
                raise AssertionError("there is no server")

        async def until(possible):
            while True:
                with suppress(BlockingIOError):
                    return possible()
                await runtime.sleep(0.01)

        async def main():
            attempt = runtime.start(connect)
            conn, _ = await until(listener.accept)
            with conn:
                conn.settimeout(0)
                conn.sendall(greeting)
                if greeting:
                    assert (await until(lambda: conn.recv(4096))).endswith(b"PING\r\n")
                await attempt.stop()
                assert await until(lambda: conn.recv(4096)) == b""

        runtime.run(main)


def test_dial(runtime, monkeypatch):
    """The listener's queue is full: the system tries to connect until the call is canceled."""
    dialed = []
    take_effects = Connection.take_effects

    def note(connection):
        effects = take_effects(connection)
        dialed.extend(effect for effect in effects if isinstance(effect, Dial))
        return effects

    monkeypatch.setattr(Connection, "take_effects", note)

    async def main(url):
        attempt = runtime.start(lambda: runtime.connect(url, connect_timeout=20).__aenter__())
        while not dialed:
            await runtime.sleep(0.001)
        await attempt.stop()

    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        url = "nats://127.0.0.1:%d" % listener.getsockname()[1]
        begin = time.monotonic()
        runtime.run(lambda: main(url))
        assert time.monotonic() - begin < 10


@pytest.mark.parametrize("call", ["flush", "drain", "close"])
def test_flush_drain_and_close(runtime, own_server, call):
    """Canceled while the server is frozen; afterwards the client can be closed as usual."""

    async def main():
        async with runtime.connect(own_server.url) as client:
            await client.subscribe("a")
            await client.flush()
            own_server.freeze()
            try:
                ending = getattr(client, call)(timeout=20)
                assert await Canceler(runtime, client, 1, before=True).run(ending)
                assert client.state == ("CLOSED" if call == "close" else "CONNECTED")
            finally:
                own_server.thaw()
        assert client.state == "CLOSED"

    runtime.run(main)
