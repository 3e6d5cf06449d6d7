"""An established connection whose credentials expire: the client closes if they are rejected."""

from __future__ import annotations

import asyncio

from natsproto.compat import nats

INFO = b'INFO {"server_id":"s","version":"2.15.1","max_payload":1024}\r\n'
EXPIRED = b"-ERR 'User Authentication Expired'\r\n"


async def program() -> tuple[int, list[str]]:
    """Return how often the client connects to such a server, and the calls of its callbacks."""
    dialed, calls, closed = 0, [], asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dialed
        dialed += 1
        writer.write(INFO)
        while await reader.readline() != b"PING\r\n":
            pass
        if dialed == 1:
            writer.write(b"PONG\r\n")
            await reader.readline()  # until the client has connected and sends something
        writer.write(EXPIRED)
        await writer.drain()
        writer.close()

    async def on_disconnected() -> None:
        calls.append("disconnected")

    async def on_closed() -> None:
        calls.append("closed")
        closed.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        nc = await nats.connect(
            f"nats://u:p@127.0.0.1:{server.sockets[0].getsockname()[1]}",
            disconnected_cb=on_disconnected,
            closed_cb=on_closed,
            error_cb=ignore,
            reconnect_time_wait=0.01,
        )
        await nc.publish("a")
        await closed.wait()
        assert nc.is_closed
    return dialed, calls


async def ignore(error: Exception) -> None:
    pass


def test_the_client_closes_when_expired_credentials_are_rejected_again():
    dialed, calls = asyncio.run(asyncio.wait_for(program(), 10))
    assert dialed == 2
    assert calls == ["disconnected", "disconnected", "closed"]
