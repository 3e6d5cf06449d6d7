"""Answers that a neighbor in the account forges after it has seen earlier reply subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.testing.context import WAIT, Context, arrived
from natsproto.testing.peers import RawPeer
from natsproto.testing.streams import fill, js_server, name_of, new_stream, numbers, open_js
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.subscription import Subscription

_FORGED = b'{"stream":"FORGED","seq":1}'
_REAL = b'{"stream":"REAL","seq":2}'
_ALPHABETS = (
    "0123456789",
    "0123456789ABCDEF",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
)


def _guesses(seen: str) -> list[str]:
    """The reply subjects that would follow if tokens counted up, in any common alphabet."""
    inbox, _, token = seen.rpartition(".")
    subjects: list[str] = []
    for alphabet in _ALPHABETS:
        if not set(token) <= set(alphabet):
            continue
        number = 0
        for char in token:
            number = number * len(alphabet) + alphabet.index(char)
        for step in range(1, 51):
            digits, rest = "", number + step
            while rest or len(digits) < len(token):
                rest, digit = divmod(rest, len(alphabet))
                digits = alphabet[digit] + digits
            subjects.append(f"{inbox}.{digits}")
    return subjects


async def _forge(neighbor: Client, victim: Client, seen: str) -> None:
    """Publish to every guess; returns when the victim has received all of it."""
    for subject in _guesses(seen):
        await neighbor.publish(subject, _FORGED)
    await arrived(neighbor, victim)


async def _spy(client: Client, subject: str) -> Subscription:
    sub = await client.subscribe(subject)
    await client.flush(WAIT)
    return sub


@check(shares=True)
async def check_answers_cannot_be_forged(ctx: Context) -> None:
    """A client that answered one request cannot answer the next one, which it does not see."""
    victim, neighbor = await ctx.pair()
    service = await ctx.client()
    seen = await _spy(neighbor, ctx.subject + ".seen")
    asked = await _spy(service, ctx.subject + ".hidden")
    first = ctx.start(lambda: victim.request(ctx.subject + ".seen", timeout=WAIT))
    reply = (await seen.next(WAIT)).reply
    await neighbor.publish(reply, b"first")
    assert (await first.result()).data == b"first"
    second = ctx.start(lambda: victim.request(ctx.subject + ".hidden", timeout=WAIT))
    hidden = await asked.next(WAIT)
    await _forge(neighbor, victim, reply)
    await service.publish(hidden.reply, _REAL)
    assert (await second.result()).data == _REAL


@check()
async def check_acknowledgments_cannot_be_forged(ctx: Context) -> None:
    """A subscriber that saw one publish of a window cannot acknowledge the next one."""
    victim, neighbor = await ctx.pair(js_server(ctx))
    stream = await _spy(neighbor, ctx.subject + ".>")
    async with ctx.jetstream(victim).publisher() as window:
        first = await window.publish(ctx.subject + ".a")
        await victim.flush(WAIT)
        reply = (await stream.next(WAIT)).reply
        await neighbor.publish(reply, _REAL)
        assert (await first.result()).stream == "REAL"
        second = await window.publish(ctx.subject + ".b")
        await victim.flush(WAIT)
        await _forge(neighbor, victim, reply)
        assert not second.done
        await neighbor.publish((await stream.next(WAIT)).reply, _REAL)
        assert (await second.result()).stream == "REAL"


@check(shares=True)
async def check_pull_statuses_cannot_be_forged(ctx: Context) -> None:
    """A client that saw one pull cannot end the next one."""
    victim, neighbor = await ctx.pair(js_server(ctx))
    stream = await new_stream(ctx, ctx.jetstream(victim))
    consumer = await stream.create_consumer(durable_name="c")
    other = await open_js(ctx)
    pulls = await _spy(neighbor, f"$JS.API.CONSUMER.MSG.NEXT.{name_of(ctx)}.c")
    assert len(await consumer.fetch(1, no_wait=True)) == 0
    reply = (await pulls.next(WAIT)).reply
    fetch = ctx.start(lambda: consumer.fetch(1, expires=WAIT))
    await pulls.next(WAIT)
    with RawPeer(js_server(ctx)) as peer:
        for subject in _guesses(reply):
            peer.hpub(subject.encode(), b"NATS/1.0 409 Consumer Deleted\r\n\r\n")
        peer.flush()
    await victim.flush(WAIT)
    await fill(ctx, other, numbers(1))
    assert [msg.data for msg in await fetch.result()] == numbers(1)
