"""Answers forged by another client of the account that has seen earlier reply subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.testing.context import WAIT, Context, arrived
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.subscription import Subscription

_FORGED = b'{"stream":"FORGED","seq":1}'
REAL = b'{"stream":"REAL","seq":2}'
_ALPHABETS = (
    "0123456789",
    "0123456789ABCDEF",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
)


def guesses(seen: str) -> list[str]:
    """Return the next reply subjects if tokens counted up, in any common alphabet."""
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


async def forge(neighbor: Client, victim: Client, seen: str) -> None:
    """Publish to every guess; return when the victim has received all of them."""
    for subject in guesses(seen):
        await neighbor.publish(subject, _FORGED)
    await arrived(neighbor, victim)


async def spy(client: Client, subject: str) -> Subscription:
    sub = await client.subscribe(subject)
    await client.flush(WAIT)
    return sub


@check(shares=True)
async def check_answers_cannot_be_forged(ctx: Context) -> None:
    """A client that answered one request cannot answer the next one, which it does not see."""
    victim, neighbor = await ctx.pair()
    service = await ctx.client()
    seen = await spy(neighbor, ctx.subject + ".seen")
    asked = await spy(service, ctx.subject + ".hidden")
    first = ctx.start(lambda: victim.request(ctx.subject + ".seen", timeout=WAIT))
    reply = (await seen.next(WAIT)).reply
    await neighbor.publish(reply, b"first")
    assert (await first.result()).data == b"first"
    second = ctx.start(lambda: victim.request(ctx.subject + ".hidden", timeout=WAIT))
    hidden = await asked.next(WAIT)
    await forge(neighbor, victim, reply)
    await service.publish(hidden.reply, REAL)
    assert (await second.result()).data == REAL
