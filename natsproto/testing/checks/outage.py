"""What is done while there is no server, or was not done when it went, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.errors import (
    ConnectionLost,
    OutBufferFull,
    TimeoutExpired,
)
from natsproto.events import Disconnected
from natsproto.testing.context import SOON, WAIT, Context, answer, next_event, raises, take
from natsproto.testing.suite import check

from .reconnect import back

if TYPE_CHECKING:
    pass


@check()
async def check_publish_while_down(ctx: Context) -> None:
    """What is published without a connection arrives later: exactly once and in order."""
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
    """Subscriptions made, changed and ended without a connection are so when there is one."""
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
    """unsubscribe(after=n) counts over a reconnect, here and at the server: n in all."""
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
    assert connection["subscriptions"] == 0  # the server has counted on, too


@check()
async def check_queue_over_reconnect(ctx: Context) -> None:
    """A member of a queue group is one again after a reconnect."""
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
    with raises(TimeoutExpired):  # the inbox is known before, and has to be so afterwards
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
    """flush without a connection waits for one, at most for its time-out."""
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
    """A flush whose answer is lost with its connection says so: what it was for may be lost."""
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
    """Without a connection, no more than max_pending_out bytes are kept; what is kept arrives."""
    server = ctx.own_server()
    client = await ctx.connect(server, max_pending_out=10_000)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    kept = 0
    with raises(OutBufferFull):
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
    with raises(OutBufferFull, within=SOON):
        await client.publish(ctx.subject, b"1")
    server.restart()
    await back(client)
    await client.publish(ctx.subject, b"2")
    await client.flush(WAIT)
