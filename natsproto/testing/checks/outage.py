"""Calls without a connection: publish, flush, close, and messages that were not sent."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from natsproto.errors import (
    ConnectionLost,
    MessagesUnconfirmed,
    PayloadTooLarge,
    PendingBufferFull,
    TimeoutExpired,
)
from natsproto.events import Closed, Disconnected, PublishDropped
from natsproto.testing.context import SOON, WAIT, Context, answer, next_event, raises, take
from natsproto.testing.suite import check

from .reconnect import back

if TYPE_CHECKING:
    from collections.abc import Generator

    from natsproto.client import Client
    from natsproto.testing.server import Server


@check()
async def check_publish_while_down(ctx: Context) -> None:
    """Messages that are published without a connection arrive later, once and in order."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    sent = [b"%d" % n for n in range(200)]
    for payload in sent:
        await client.publish(ctx.subject, payload, headers={"Key": "value"})
    server.restart()
    await back(client)
    await client.flush(WAIT)
    assert await take(sub, sub.pending) == sent


@check()
async def check_subscribe_while_down(ctx: Context) -> None:
    """Changes to subscriptions made without a connection take effect when there is one."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    ended = await client.subscribe(ctx.subject)
    limited = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    made = await client.subscribe(ctx.subject)
    await limited.unsubscribe(after=2)
    await ended.unsubscribe()
    for n in range(4):
        await client.publish(ctx.subject, b"%d" % n)
    server.restart()
    assert await take(made, 4) == [b"0", b"1", b"2", b"3"]
    assert [msg.data async for msg in limited] == [b"0", b"1"]
    assert [msg.data async for msg in ended] == []


@check()
async def check_auto_unsubscribe_over_reconnect(ctx: Context) -> None:
    """unsubscribe(after=n) counts across a reconnect, in the client and the server: n in total."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    await sub.unsubscribe(after=5)
    for n in range(3):
        await client.publish(ctx.subject, b"%d" % n)
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    server.restart()
    await back(client)
    for n in range(3, 6):
        await client.publish(ctx.subject, b"%d" % n)
    assert [msg.data async for msg in sub] == [b"%d" % n for n in range(5)]
    await client.flush(WAIT)
    [connection] = server.monitor("/connz")["connections"]
    assert connection["subscriptions"] == 0  # the server has continued to count, too


@check()
async def check_queue_over_reconnect(ctx: Context) -> None:
    """A member of a queue group rejoins it after a reconnect."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    group = [await client.subscribe(ctx.subject, queue="q") for _ in range(2)]
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    server.restart()
    for _ in range(50):
        await client.publish(ctx.subject)
    await client.flush(WAIT)
    assert sum(sub.pending for sub in group) == 50


@check()
async def check_request_over_reconnect(ctx: Context) -> None:
    """A request made without a connection is sent when there is one, and answered."""
    server = ctx.own_server()
    alice, bob = await ctx.pair(server)
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    with raises(TimeoutExpired):  # the inbox exists before, and must still exist afterwards
        await alice.request(ctx.subject, timeout=0.05)
    await sub.next(WAIT)
    server.kill()
    await next_event(alice, Disconnected)
    await next_event(bob, Disconnected)
    server.restart()
    await back(bob)
    await bob.flush(WAIT)
    ctx.start(answer, bob, sub, 1)
    assert (await alice.request(ctx.subject, b"1", timeout=WAIT)).data == b"1"


@check()
async def check_flush_while_down(ctx: Context) -> None:
    """flush without a connection waits for one, at most until its timeout."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    server.kill()
    await next_event(client, Disconnected)
    with raises(TimeoutExpired, within=SOON):
        await client.flush(timeout=0.1)
    server.restart()
    await client.flush(WAIT)
    assert client.state == "CONNECTED"


@check(shares=True)
async def check_flush_that_is_cut_off(ctx: Context) -> None:
    """A flush whose answer is lost with the connection raises: messages may be lost."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    server.freeze()
    await client.publish(ctx.subject)
    flush = ctx.start(client.flush, WAIT)
    with raises(TimeoutExpired):
        await client.flush(timeout=0.1)  # the other one was sent before this one
    server.kill()
    with raises(ConnectionLost, within=SOON):
        await flush.result()


@check()
async def check_out_buffer_full(ctx: Context) -> None:
    """Without a connection at most max_pending_out bytes are kept, and all of them arrive."""
    server = ctx.own_server()
    client = await ctx.connect(server, max_pending_out=10_000)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    kept = 0
    with raises(PendingBufferFull):
        while kept < 100:
            await client.publish(ctx.subject, b"x" * 1000)
            kept += 1
    assert kept == 9
    server.restart()
    assert await take(sub, 9) == [b"x" * 1000] * 9
    await client.flush(WAIT)
    assert not sub.pending


@check()
async def check_out_buffer_off(ctx: Context) -> None:
    """With max_pending_out=0 publishing without a connection fails at once."""
    server = ctx.own_server()
    client = await ctx.connect(server, max_pending_out=0)
    server.kill()
    await next_event(client, Disconnected)
    with raises(PendingBufferFull, within=SOON):
        await client.publish(ctx.subject, b"1")
    server.restart()
    await back(client)
    await client.publish(ctx.subject, b"2")
    await client.flush(WAIT)


# Closing clients that are not connected


@contextmanager
def restarting(server: Server) -> Generator[None, None, None]:
    """Start the server again while the block runs."""
    thread = threading.Thread(target=server.restart)
    thread.start()
    try:
        yield
    finally:
        thread.join()


async def without_server(ctx: Context, server: Server, count: int) -> Client:
    """Return a client whose server is gone and that has published this many messages since."""
    client = await ctx.connect(server, max_reconnects=-1)
    server.kill()
    await next_event(client, Disconnected)
    for _ in range(count):
        await client.publish(ctx.subject, b"x")
    return client


@check()
async def check_close_while_down(ctx: Context) -> None:
    """close without a connection waits for one and sends the published messages."""
    server = ctx.own_server()
    client = await without_server(ctx, server, 3)
    with restarting(server):
        await client.close(WAIT)
    assert server.monitor("/varz")["in_msgs"] == 3
    assert (await next_event(client, Closed)).unconfirmed == 0


@check()
async def check_drain_while_down(ctx: Context) -> None:
    """drain does the same."""
    server = ctx.own_server()
    client = await without_server(ctx, server, 3)
    with restarting(server):
        await client.drain(WAIT)
    assert server.monitor("/varz")["in_msgs"] == 3


@check()
async def check_close_without_server(ctx: Context) -> None:
    """If no server returns, close ends at its timeout and reports the messages once."""
    client = await without_server(ctx, ctx.own_server(), 3)
    with raises(MessagesUnconfirmed, within=SOON) as caught:
        await client.close(timeout=0.2)
    assert (caught.error.unsent, caught.error.in_doubt) == (3, 0)
    assert client.state == "CLOSED"
    assert (await next_event(client, Closed)).unconfirmed == 3
    await client.close()


@check()
async def check_drain_without_server(ctx: Context) -> None:
    """drain does the same."""
    client = await without_server(ctx, ctx.own_server(), 3)
    with raises(MessagesUnconfirmed, within=SOON) as caught:
        await client.drain(timeout=0.2)
    assert (caught.error.unsent, caught.error.in_doubt) == (3, 0)
    assert client.state == "CLOSED"


@check()
async def check_close_without_server_and_nothing_to_send(ctx: Context) -> None:
    """If nothing is left to send, close does not wait."""
    client = await without_server(ctx, ctx.own_server(), 0)
    begin = time.monotonic()
    await client.close(WAIT)
    assert time.monotonic() - begin < SOON
    assert (await next_event(client, Closed)).unconfirmed == 0


@check()
async def check_block_without_server(ctx: Context) -> None:
    """The end of a block closes the client within a timeout and reports unsent messages."""
    client = await without_server(ctx, ctx.own_server(), 0)
    with raises(MessagesUnconfirmed) as caught:
        async with client:
            await client.publish(ctx.subject, b"x")
    assert caught.error.unsent == 1


@check()
async def check_block_that_fails_without_server(ctx: Context) -> None:
    """An error in a block is not replaced by the error of its end."""
    client = await without_server(ctx, ctx.own_server(), 1)
    mine = TimeoutExpired("mine")
    with raises(TimeoutExpired) as caught:
        async with client:
            raise mine
    assert caught.error is mine
    assert (await next_event(client, Closed)).unconfirmed == 1


@check()
async def check_failure_for_good_with_messages_left(ctx: Context) -> None:
    """If reconnecting fails for good, the first close reports the unsent messages."""
    server = ctx.own_server()
    client = await ctx.connect(server, max_reconnects=10)
    server.kill()
    await next_event(client, Disconnected)
    await client.publish(ctx.subject, b"x")
    assert (await next_event(client, Closed)).unconfirmed == 1
    with raises(MessagesUnconfirmed, within=SOON):
        await client.close()
    await client.close()


# The next server accepts less


async def away(ctx: Context, server: Server) -> Client:
    """Return a client that has lost its server and waits for this one, which is down."""
    old = ctx.own_server()
    client = await ctx.connect(old, max_reconnects=-1)
    server.kill()
    client.set_servers(server.url)
    old.kill()
    await next_event(client, Disconnected)
    return client


@check()
async def check_held_publish_that_is_too_large(ctx: Context) -> None:
    """A held message above the next server's max_payload is dropped and reported, alone."""
    server = ctx.own_server(max_payload=1000)
    client = await away(ctx, server)
    sub = await client.subscribe(ctx.subject)
    for data in (b"1", b"x" * 1001, b"2", b"y" * 1000):
        await client.publish(ctx.subject, data)
    with restarting(server):
        dropped = await next_event(client, PublishDropped)
    assert (dropped.subject, dropped.size) == (ctx.subject, 1001)
    assert await take(sub, 3) == [b"1", b"2", b"y" * 1000]
    assert client.stats.reconnects == 1


@check()
async def check_held_request_that_is_too_large(ctx: Context) -> None:
    """A held request above the next server's max_payload fails as soon as that is known."""
    server = ctx.own_server(max_payload=1000)
    client = await away(ctx, server)
    with restarting(server), raises(PayloadTooLarge):
        await client.request(ctx.subject, b"x" * 1001, timeout=2 * WAIT)
    await client.flush(WAIT)
    assert client.stats.reconnects == 1
