"""Malformed messages of other publishers do not break the connection."""

from __future__ import annotations

from natsproto.errors import HeaderError
from natsproto.testing.context import WAIT, Context, raises
from natsproto.testing.peers import RawPeer
from natsproto.testing.suite import check


@check()
async def check_poison_subjects(ctx: Context) -> None:
    """Subjects and replies that are not UTF-8, or very long, arrive; raw_subject is exact."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject + ".>")
    await client.flush(WAIT)
    base = ctx.subject.encode() + b"."
    tails = [b"\xff\xfe", b"caf\xe9", b"nul\0nul", b"x" * 3900, b"\xed\xa0\x80"]
    with RawPeer(ctx.server) as peer:
        for tail in tails:
            peer.send(b"PUB %s 1\r\n1\r\n" % (base + tail))
        peer.send(b"PUB %sreply \xff\xfe.\xe9 1\r\n1\r\n" % base)
        peer.send(b"PUB %slast 1\r\n1\r\n" % base)
        peer.flush()
    msgs = [await sub.next(WAIT) for _ in range(len(tails) + 2)]
    assert [msg.raw_subject for msg in msgs[:-2]] == [base + tail for tail in tails]
    assert all(isinstance(msg.subject + msg.reply, str) for msg in msgs)
    assert msgs[-1].raw_subject == base + b"last"
    assert client.stats.connects == 1


@check()
async def check_poison_headers(ctx: Context) -> None:
    """An invalid header block raises HeaderError on access, and has no other effect."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    blocks = [
        b"garbage",
        b"NATS/1.0\r\nno colon\r\n\r\n",
        b"NATS/1.0\nKey: value\n\n",
        b"HTTP/1.1\r\nKey: value\r\n\r\n",
        b"NATS/1.0",
        b"\r\n\r\n",
        b"\xff\xff\xff\xff",
    ]
    with RawPeer(ctx.server) as peer:
        for block in blocks:
            peer.hpub(ctx.subject.encode(), block, b"payload")
        peer.flush()
    for _ in blocks:
        msg = await sub.next(WAIT)
        assert msg.data == b"payload"
        with raises(HeaderError):
            _ = msg.headers
    assert client.stats.connects == 1


@check()
async def check_poison_statuses(ctx: Context) -> None:
    """A status line that a publisher wrote is a message like any other."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await client.flush(WAIT)
    lines = [b"503", b"100 Idle Heartbeat", b"404 No Messages", b"999999999999", b"abc", b"-1"]
    with RawPeer(ctx.server) as peer:
        for line in lines:
            peer.hpub(ctx.subject.encode(), b"NATS/1.0 %s\r\n\r\n" % line)
        peer.hpub(ctx.subject.encode(), b"NATS/1.0\r\nStatus: 503\r\n\r\n", b"last")
        peer.flush()
    msgs = [await sub.next(WAIT) for _ in range(len(lines) + 1)]
    assert [msg.status for msg in msgs[:3]] == [503, 100, 404]
    assert (msgs[-1].status, msgs[-1].data) == (0, b"last")
    assert client.stats.connects == 1


@check()
async def check_poison_answers(ctx: Context) -> None:
    """A malformed answer settles its own request, and no other."""

    async def answer() -> None:
        with RawPeer(ctx.server) as peer:
            for block in [b"garbage", b"NATS/1.0\r\nno colon\r\n\r\n"]:
                msg = await sub.next(WAIT)
                peer.hpub(msg.reply.encode(), block, msg.data)
            peer.flush()

    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    ctx.start(answer)
    for payload in [b"1", b"2"]:
        assert (await alice.request(ctx.subject, payload, timeout=WAIT)).data == payload
    assert alice.stats.connects == 1
