"""Drain: the graceful end of subscriptions and clients."""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, TimeoutExpired
from natsproto.events import Closed, Disconnected
from natsproto.testing.context import SOON, WAIT, Context, arrived, next_event, raises, take
from natsproto.testing.suite import check


@check()
async def check_drain_subscription(ctx: Context) -> None:
    """drain() of a subscription delivers the messages in transit, then the iteration ends."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    other = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    for n in range(100):
        await alice.publish(ctx.subject, b"%d" % n)
    await alice.flush(WAIT)
    await sub.drain(WAIT)
    await alice.publish(ctx.subject, b"late")
    await arrived(alice, bob)
    assert [msg.data async for msg in sub] == [b"%d" % n for n in range(100)]
    assert (await take(other, 101))[-1] == b"late"


@check()
async def check_drain_client(ctx: Context) -> None:
    """drain() of a client with nothing to deliver flushes and closes without an error."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    await alice.publish(ctx.subject, b"1")
    await alice.drain(WAIT)
    assert alice.state == "CLOSED"
    assert (await next_event(alice, Closed)).error is None
    assert await take(sub, 1) == [b"1"]
    await alice.drain(WAIT)
    with raises(ConnectionClosed):
        await alice.publish(ctx.subject)


@check(shares=True)
async def check_drain_client_delivers(ctx: Context) -> None:
    """drain() of a client waits until all messages are taken, and sends their answers."""
    alice, bob = await ctx.pair()
    answers = await alice.subscribe(ctx.subject + ".answers")
    sub = await bob.subscribe(ctx.subject)
    await arrived(alice, bob)
    for n in range(50):
        await alice.publish(ctx.subject, b"%d" % n, reply=ctx.subject + ".answers")
    await arrived(alice, bob)
    drain = ctx.start(bob.drain, WAIT)
    async for msg in sub:
        await bob.publish(msg.reply, msg.data)
    await drain.result()
    assert bob.state == "CLOSED"
    assert await take(answers, 50) == [b"%d" % n for n in range(50)]


@check()
async def check_drain_by_hand(ctx: Context) -> None:
    """Draining the subscriptions, handling their messages and closing sends all answers."""
    alice, bob = await ctx.pair()
    answers = await alice.subscribe(ctx.subject + ".answers")
    sub = await bob.subscribe(ctx.subject)
    await arrived(alice, bob)
    for n in range(50):
        await alice.publish(ctx.subject, b"%d" % n, reply=ctx.subject + ".answers")
    await arrived(alice, bob)
    await sub.drain(WAIT)
    async for msg in sub:
        await bob.publish(msg.reply, msg.data)
    await bob.drain(WAIT)
    assert await take(answers, 50) == [b"%d" % n for n in range(50)]


@check()
async def check_drain_of_untaken_messages(ctx: Context) -> None:
    """If messages are not taken in time, drain says how many, and the client is closed."""
    client = await ctx.client()
    await client.subscribe(ctx.subject)
    for _ in range(3):
        await client.publish(ctx.subject)
    await client.flush(WAIT)
    with raises(TimeoutExpired, within=SOON) as caught:
        await client.drain(timeout=0.2)
    assert "3 messages" in str(caught.error)
    assert client.state == "CLOSED"


@check()
async def check_drain_frozen_server(ctx: Context) -> None:
    """drain() returns at its timeout if the server does not answer, and closes the client."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.freeze()
    with raises(TimeoutExpired, within=SOON):
        await client.drain(timeout=0.2)
    assert client.state == "CLOSED"


@check()
async def check_drain_subscription_frozen_server(ctx: Context) -> None:
    """drain() of a subscription returns at its timeout if the server does not answer."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    server.freeze()
    with raises(TimeoutExpired, within=SOON):
        await sub.drain(timeout=0.2)
    server.thaw()
    await client.flush(WAIT)


@check()
async def check_drain_without_connection(ctx: Context) -> None:
    """drain() while disconnected delivers received messages and closes within its timeout."""
    server = ctx.own_server()
    client = await ctx.connect(server)
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    await client.flush(WAIT)
    server.kill()
    await next_event(client, Disconnected)
    assert await take(sub, 1) == [b"1"]
    try:
        await client.drain(timeout=0.3)
    except TimeoutExpired:
        pass  # there was no server to flush to
    assert client.state == "CLOSED"
