"""Requests and their answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from natsproto.errors import InvalidValue, NoResponders, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, answer, raises
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.client import Client
    from natsproto.subscription import Subscription
    from natsproto.wire.frames import Msg


async def _responder(ctx: Context, count: int) -> Client:
    """Start a client that answers requests, and return another one to send them."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    ctx.start(answer, bob, sub, count)
    return alice


@check()
async def check_request(ctx: Context) -> None:
    """Requests get their answers, one after the other."""
    client = await _responder(ctx, 20)
    for n in range(20):
        assert (await client.request(ctx.subject, b"%d" % n, timeout=WAIT)).data == b"%d" % n


@check()
async def check_respond(ctx: Context) -> None:
    """A request is answered with `respond`; a message that is not a request cannot be."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    await alice.publish(ctx.subject, b"no request")
    with raises(InvalidValue):
        await bob.respond(await sub.next(WAIT), b"answer")
    ctx.start(answer, bob, sub, 1)
    assert (await alice.request(ctx.subject, b"request", timeout=WAIT)).data == b"request"


@check()
async def check_request_with_headers(ctx: Context) -> None:
    """Requests and answers can have headers."""
    client = await _responder(ctx, 1)
    reply = await client.request(ctx.subject, b"", headers={"Key": "value"}, timeout=WAIT)
    assert reply.headers is not None
    assert reply.headers["Key"] == "value"


@check()
async def check_request_of_one_megabyte(ctx: Context) -> None:
    """Request and answer may be as large as any message."""
    client = await _responder(ctx, 1)
    payload = b"x" * 1024 * 1024
    assert (await client.request(ctx.subject, payload, timeout=WAIT)).data == payload


@check()
async def check_request_without_responders(ctx: Context) -> None:
    """Without a responder a request fails at once."""
    client = await ctx.client()
    with raises(NoResponders, within=SOON) as caught:
        await client.request(ctx.subject, b"anybody?", timeout=WAIT)
    assert caught.error.subject == ctx.subject


@check()
async def check_request_times_out(ctx: Context) -> None:
    """Without an answer a request ends at its timeout."""
    alice, bob = await ctx.pair()
    await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    with raises(TimeoutExpired, within=SOON):
        await alice.request(ctx.subject, b"anybody?", timeout=0.1)


@check()
async def check_late_answer_is_dropped(ctx: Context) -> None:
    """A late response is not mistaken for the response to the next request."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    with raises(TimeoutExpired):
        await alice.request(ctx.subject, b"first", timeout=0.05)
    late = await sub.next(WAIT)
    await bob.publish(late.reply, b"late")
    await bob.flush(WAIT)
    ctx.start(answer, bob, sub, 1)
    assert (await alice.request(ctx.subject, b"second", timeout=WAIT)).data == b"second"


@check()
async def check_first_answer_counts(ctx: Context) -> None:
    """A request returns the first of several answers."""

    async def answer_twice() -> None:
        for _ in range(2):
            msg = await sub.next(WAIT)
            await bob.publish(msg.reply, b"1 " + msg.data)
            await bob.publish(msg.reply, b"2 " + msg.data)

    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    ctx.start(answer_twice)
    for payload in [b"a", b"b"]:
        assert (await alice.request(ctx.subject, payload, timeout=WAIT)).data == b"1 " + payload


@check()
async def check_inbox_prefix(ctx: Context) -> None:
    """Responses are received on subjects below inbox_prefix."""
    alice = await ctx.client(inbox_prefix=ctx.subject + ".inbox")
    bob = await ctx.client()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    replies: list[str] = []

    async def note() -> None:
        msg = await sub.next(WAIT)
        replies.append(msg.reply)
        await bob.publish(msg.reply)

    task = ctx.start(note)
    await alice.request(ctx.subject, timeout=WAIT)
    await task.result()
    assert replies[0].startswith(ctx.subject + ".inbox.")


@check(shares=True)
async def check_two_hundred_requests_in_flight(ctx: Context) -> None:
    """Responses that arrive out of order are matched to the right requests."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    requests = [ctx.start(_ask, alice, ctx.subject, b"%d" % n) for n in range(200)]
    waiting = [await sub.next(WAIT) for _ in requests]
    for msg in reversed(waiting):
        await bob.publish(msg.reply, msg.data)
    assert [await request.result() for request in requests] == [b"%d" % n for n in range(200)]


async def _ask(client: Client, subject: str, payload: bytes) -> bytes:
    return (await client.request(subject, payload, timeout=WAIT)).data


@check(shares=True)
async def check_answer_within_one_client(ctx: Context) -> None:
    """A client can answer its own requests."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    ctx.start(answer, client, sub, 10)
    for n in range(10):
        assert await _ask(client, ctx.subject, b"%d" % n) == b"%d" % n


async def _answer_often(bob: Client, sub: Subscription, answers: list[bytes]) -> None:
    msg = await sub.next(WAIT)
    for each in answers:
        await bob.publish(msg.reply, each)
    await bob.flush(WAIT)


async def _crowd(ctx: Context, *answers: bytes) -> Client:
    """Return a client whose next request gets all of these answers."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    ctx.start(_answer_often, bob, sub, list(answers))
    return alice


def _payloads(replies: list[Msg]) -> list[bytes]:
    return [reply.data for reply in replies]


@check()
async def check_request_many_up_to_a_number(ctx: Context) -> None:
    """request_many(max_msgs=n) returns with the n-th answer, without waiting for more."""
    client = await _crowd(ctx, b"1", b"2", b"3", b"4")
    begin = time.monotonic()
    replies = await client.request_many(ctx.subject, max_msgs=3, timeout=WAIT)
    assert _payloads(replies) == [b"1", b"2", b"3"]
    assert time.monotonic() - begin < SOON


@check()
async def check_request_many_until_a_pause(ctx: Context) -> None:
    """request_many(stall=s) returns when no response arrives for that long after the last one."""
    client = await _crowd(ctx, b"1", b"2")
    begin = time.monotonic()
    replies = await client.request_many(ctx.subject, stall=0.1, timeout=WAIT)
    assert _payloads(replies) == [b"1", b"2"]
    took = time.monotonic() - begin
    assert 0.09 <= took < SOON, took


@check()
async def check_request_many_until_a_sentinel(ctx: Context) -> None:
    """request_many(sentinel=f) returns at the answer for which f is true, and omits it."""
    client = await _crowd(ctx, b"1", b"2", b"", b"3")
    begin = time.monotonic()
    replies = await client.request_many(
        ctx.subject, sentinel=lambda msg: not msg.data, timeout=WAIT
    )
    assert _payloads(replies) == [b"1", b"2"]
    assert time.monotonic() - begin < SOON


@check()
async def check_request_many_until_the_deadline(ctx: Context) -> None:
    """request_many returns the answers that arrived before its timeout."""
    client = await _crowd(ctx, b"1", b"2")
    begin = time.monotonic()
    replies = await client.request_many(ctx.subject, timeout=0.3)
    assert _payloads(replies) == [b"1", b"2"]
    took = time.monotonic() - begin
    assert 0.29 <= took < SOON, took


@check()
async def check_request_many_without_an_answer(ctx: Context) -> None:
    """No answer in time is an empty list, not an error."""
    client = await _crowd(ctx)
    assert await client.request_many(ctx.subject, stall=0.05, timeout=0.2) == []


@check()
async def check_request_many_without_responders(ctx: Context) -> None:
    """Without a responder request_many fails at once."""
    client = await ctx.client()
    with raises(NoResponders, within=SOON):
        await client.request_many(ctx.subject, timeout=WAIT)


@check()
async def check_iter_request_many(ctx: Context) -> None:
    """The iteration returns each response on arrival, and ends by its limits."""
    client = await _crowd(ctx, b"1", b"2", b"", b"3")
    found: list[bytes] = []
    async for msg in client.iter_request_many(
        ctx.subject, sentinel=lambda msg: not msg.data, timeout=WAIT
    ):
        found.append(msg.data)  # noqa: PERF401 - blocking views are no async generators
    assert found == [b"1", b"2"]


async def _answer_by_turns(bob: Client, sub: Subscription, turns: Subscription) -> None:
    msg = await sub.next(WAIT)
    for n in range(3):
        await bob.respond(msg, b"%d" % n)
        await bob.flush(WAIT)
        await turns.next(WAIT)


@check()
async def check_iter_request_many_without_an_end(ctx: Context) -> None:
    """Without a timeout the iteration waits for each response; leaving it ends the request."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    turns = await bob.subscribe(ctx.subject + ".turn")
    await bob.flush(WAIT)
    task = ctx.start(_answer_by_turns, bob, sub, turns)
    found: list[bytes] = []
    async for msg in alice.iter_request_many(ctx.subject, timeout=None):
        found.append(msg.data)
        await alice.publish(ctx.subject + ".turn")
        if msg.data == b"2":
            break
    assert found == [b"0", b"1", b"2"]
    await task.result()
    with raises(NoResponders, within=SOON):
        await alice.request(ctx.subject + ".nobody", timeout=WAIT)


@check()
async def check_iter_request_many_without_responders(ctx: Context) -> None:
    """Without a responder the first step of the iteration fails at once."""
    client = await ctx.client()
    with raises(NoResponders, within=SOON):
        async for _ in client.iter_request_many(ctx.subject, timeout=WAIT):
            pass
