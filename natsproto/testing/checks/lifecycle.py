"""From connect to close."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import TYPE_CHECKING

from natsproto.errors import (
    ConnectFailed,
    ConnectionClosed,
    InvalidState,
    InvalidValue,
    MessagesUnconfirmed,
    ProtocolError,
    TimeoutExpired,
)
from natsproto.events import Closed, Connected
from natsproto.testing.context import SOON, WAIT, Context, raises, take
from natsproto.testing.peers import Listener
from natsproto.testing.server import free_port
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.subscription import Subscription


@check()
async def check_rtt(ctx: Context) -> None:
    """The round trip to the server is measured."""
    client = await ctx.client()
    started = time.monotonic()
    seconds = await client.rtt(WAIT)
    assert 0 < seconds <= time.monotonic() - started


@check()
async def check_servers_in_one_text(ctx: Context) -> None:
    """Servers may be separated by commas; those that are down are skipped."""
    down = f"nats://127.0.0.1:{free_port()}"
    client = await ctx.connect(f"{down}, {ctx.server.url}", shuffle=False)
    assert sorted(client.servers) == sorted([down, ctx.server.url])
    assert client.connected_url == ctx.server.url


@check()
async def check_connect(ctx: Context) -> None:
    """The client that connect returns is connected and knows its server."""
    client = await ctx.client(name="me")
    assert client.state == "CONNECTED"
    assert client.connected_url == ctx.server.url
    assert client.servers == [ctx.server.url]
    assert client.info is not None
    assert client.info.version == ".".join(map(str, ctx.server.version))
    names = [each["name"] for each in ctx.server.monitor("/connz")["connections"]]
    assert "me" in names


@check()
async def check_connect_without_a_listener(ctx: Context) -> None:
    """Without a listener, connect fails at once and names the addresses that were tried."""
    urls = [f"nats://127.0.0.1:{free_port()}" for _ in range(2)]
    with raises(ConnectFailed, within=SOON) as caught:
        await ctx.connect(urls)
    assert sorted(url for url, _ in caught.error.errors) == sorted(urls)


@check()
async def check_connect_second_server(ctx: Context) -> None:
    """If the first server is not reachable, the next one is used."""
    dead = f"nats://127.0.0.1:{free_port()}"
    client = await ctx.connect([dead, ctx.server.url], shuffle=False)
    assert client.connected_url == ctx.server.url


@check()
async def check_connect_frozen_server(ctx: Context) -> None:
    """connect_timeout bounds an attempt to reach a server that accepts but stays silent."""
    server = ctx.own_server()
    server.freeze()
    with raises(ConnectFailed, within=SOON) as caught:
        await ctx.connect(server, connect_timeout=0.2)
    assert isinstance(caught.error.errors[0][1], TimeoutExpired)


@check()
async def check_connect_by_name(ctx: Context) -> None:
    """A host name is resolved, and its addresses are tried until one answers."""
    client = await ctx.connect(f"nats://localhost:{ctx.server.port}")
    assert client.connected_url == f"nats://localhost:{ctx.server.port}"
    with raises(ConnectFailed):
        await ctx.connect("nats://no-such-host.invalid:4222", connect_timeout=0.5)


@check()
async def check_connect_to_another_protocol(ctx: Context) -> None:
    """connect fails at once if the peer does not speak NATS."""
    with ctx.enter(Listener(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as listener:
        with raises(ConnectFailed, within=SOON) as caught:
            await ctx.connect(f"nats://{listener.address}")
        assert isinstance(caught.error.errors[0][1], ProtocolError)


@check()
async def check_connect_wrong_options(ctx: Context) -> None:
    """Invalid options are rejected before anything is dialed."""
    with raises(InvalidValue):
        await ctx.connect("http://127.0.0.1")
    with raises(InvalidValue):
        await ctx.client(ping_interval=-1)
    with raises(InvalidValue):
        await ctx.client(creds="/there/is/no/such.creds")


@check()
async def check_flush(ctx: Context) -> None:
    """After flush the server has received everything that was published."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    for _ in range(100):
        await alice.publish(ctx.subject)
    await alice.flush(WAIT)
    await bob.flush(WAIT)
    assert sub.pending == 100


@check()
async def check_flush_frozen_server(ctx: Context) -> None:
    """flush returns at its timeout; the connection continues when the server does."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    server.freeze()
    with raises(TimeoutExpired, within=SOON):
        await client.flush(timeout=0.1)
    server.thaw()
    await client.flush(WAIT)
    assert client.stats.connects == 1


@check()
async def check_close(ctx: Context) -> None:
    """close sends published messages and may be called again; Closed is the last event."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    await alice.publish(ctx.subject, b"1")
    await alice.close()
    assert alice.state == "CLOSED"
    assert alice.connected_url == ""
    await alice.close()
    assert await take(sub, 1) == [b"1"]
    events = [event async for event in alice.events]
    assert [type(event) for event in events] == [Connected, Closed]
    with raises(ConnectionClosed):
        await alice.events.next(WAIT)


@check()
async def check_close_frozen_server(ctx: Context) -> None:
    """close returns at its timeout if the server is silent, and counts messages in doubt."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    await client.publish(ctx.subject, b"1")
    await client.flush(WAIT)
    server.freeze()
    await client.publish(ctx.subject, b"x" * 1000)
    with raises(MessagesUnconfirmed, within=SOON) as caught:
        await client.close(timeout=0.2)
    assert (caught.error.unsent, caught.error.in_doubt) == (0, 1)
    assert client.state == "CLOSED"
    await client.close()


@check()
async def check_close_frozen_server_with_nothing_sent(ctx: Context) -> None:
    """A silent server is not an error if everything was confirmed before."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    await client.publish(ctx.subject, b"1")
    await client.flush(WAIT)
    server.freeze()
    begin = time.monotonic()
    await client.close(timeout=0.2)
    assert time.monotonic() - begin < SOON
    assert client.state == "CLOSED"


@check()
async def check_use_after_close(ctx: Context) -> None:
    """Every call on a closed client raises ConnectionClosed."""
    client = await ctx.client()
    await client.close()
    with raises(ConnectionClosed):
        await client.publish(ctx.subject)
    with raises(ConnectionClosed):
        await client.subscribe(ctx.subject)
    with raises(ConnectionClosed):
        await client.request(ctx.subject)
    with raises(ConnectionClosed):
        await client.request_many(ctx.subject)
    with raises(ConnectionClosed):
        await client.flush()
    with raises(ConnectionClosed):
        await client.force_reconnect()


@check()
async def check_iteration_ends_on_close(ctx: Context) -> None:
    """After close a subscription delivers its received messages, and ends."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    await client.flush(WAIT)
    await client.close()
    assert [msg.data async for msg in sub] == [b"1"]
    with raises(InvalidState):
        await sub.next(WAIT)


@check(shares=True)
async def check_close_wakes_everybody(ctx: Context) -> None:
    """close wakes every task that waits for a message or an answer, with an error."""
    alice, bob = await ctx.pair()
    sub = await alice.subscribe(ctx.subject + ".never")
    asked = await bob.subscribe(ctx.subject)
    await alice.flush(WAIT)
    await bob.flush(WAIT)
    iteration = ctx.start(_collect, sub)
    request = ctx.start(alice.request, ctx.subject)
    await asked.next(WAIT)  # both are waiting now, or will find the client closed
    await alice.close()
    with raises(ConnectionClosed, within=SOON):
        await request.result()
    assert await iteration.result() == []


async def _collect(sub: Subscription) -> list[bytes]:
    return [msg.data async for msg in sub]


@check()
async def check_nothing_is_left_open(ctx: Context) -> None:
    """Clients that are closed or failed to connect leave no socket and no thread."""
    server = ctx.own_server()
    dead = f"nats://127.0.0.1:{free_port()}"
    await ctx.connect(server)  # resources that an adapter creates once exist by now
    before = _open_things()
    for _ in range(5):
        client = await ctx.connect(server)
        await client.force_reconnect()
        await client.flush(WAIT)
        await client.close()
        with raises(ConnectFailed):
            await ctx.connect(dead)
    assert _open_things() == before


def _open_things() -> tuple[int, int]:
    """Count the open files and the threads, except those in which asyncio looks up names."""
    gc.collect()
    threads = [each for each in threading.enumerate() if not each.name.startswith("asyncio_")]
    return len(os.listdir("/dev/fd")), len(threads)


@check()
async def check_secrets_do_not_show(ctx: Context) -> None:
    """Neither the client's texts nor its errors show the credentials in a URL."""
    server = ctx.shared_server(authorization={"user": "joe", "password": "hush-hush"})
    host = f"127.0.0.1:{server.port}"
    client = await ctx.connect(f"nats://joe:hush-hush@{host}")
    event = await client.events.next(WAIT)
    texts = [
        repr(client),
        client.connected_url,
        repr(client.servers),
        repr(event),
        repr(client.info),
    ]
    await client.close()
    with raises(ConnectFailed) as caught:
        await ctx.connect(f"nats://joe:hush-hush@127.0.0.1:{free_port()}")
    texts += [str(caught.error), repr(caught.error), repr(caught.error.errors)]
    assert not [text for text in texts if "hush-hush" in text]
