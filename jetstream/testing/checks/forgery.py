"""Acknowledgments and statuses that a neighbor forges after it has seen earlier reply subjects."""

from __future__ import annotations

from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import fill, js_server, name_of, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.testing.checks.forgery import REAL, forge, guesses, spy
from natsproto.testing.context import WAIT, Context
from natsproto.testing.peers import RawPeer


@check()
async def check_acknowledgments_cannot_be_forged(ctx: Context) -> None:
    """A subscriber that saw one publish of a window cannot acknowledge the next one."""
    victim, neighbor = await ctx.pair(js_server(ctx))
    stream = await spy(neighbor, ctx.subject + ".>")
    async with jetstream_of(victim).publisher() as window:
        first = await window.publish(ctx.subject + ".a")
        await victim.flush(WAIT)
        reply = (await stream.next(WAIT)).reply
        await neighbor.publish(reply, REAL)
        assert (await first.result()).stream == "REAL"
        second = await window.publish(ctx.subject + ".b")
        await victim.flush(WAIT)
        await forge(neighbor, victim, reply)
        assert not second.done
        await neighbor.publish((await stream.next(WAIT)).reply, REAL)
        assert (await second.result()).stream == "REAL"


@check(shares=True)
async def check_pull_statuses_cannot_be_forged(ctx: Context) -> None:
    """A client that saw one pull cannot end the next one."""
    victim, neighbor = await ctx.pair(js_server(ctx))
    stream = await new_stream(ctx, jetstream_of(victim))
    consumer = await stream.create_consumer(durable_name="c")
    other = await open_js(ctx)
    pulls = await spy(neighbor, f"$JS.API.CONSUMER.MSG.NEXT.{name_of(ctx)}.c")
    assert len(await consumer.fetch(1, no_wait=True)) == 0
    reply = (await pulls.next(WAIT)).reply
    fetch = ctx.start(lambda: consumer.fetch(1, expires=WAIT))
    await pulls.next(WAIT)
    with RawPeer(js_server(ctx)) as peer:
        for subject in guesses(reply):
            peer.hpub(subject.encode(), b"NATS/1.0 409 Consumer Deleted\r\n\r\n")
        peer.flush()
    await victim.flush(WAIT)
    await fill(ctx, other, numbers(1))
    assert [msg.data for msg in await fetch.result()] == numbers(1)
