"""Publish and subscribe."""

from __future__ import annotations

from natsproto.errors import InvalidState, TimeoutExpired
from natsproto.testing.context import WAIT, Context, arrived, raises, take
from natsproto.testing.suite import check


@check()
async def check_publish_reaches_subscriber(ctx: Context) -> None:
    """A message reaches a subscription of another client unchanged."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    await alice.publish(ctx.subject, b"hello", reply="answer.to")
    msg = await sub.next(WAIT)
    assert (msg.subject, msg.data, msg.reply) == (ctx.subject, b"hello", "answer.to")
    assert msg.headers is None
    assert msg.sid == sub.sid


@check()
async def check_empty_payload(ctx: Context) -> None:
    """A message without a payload is delivered."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject)
    await client.publish(ctx.subject, b"", headers={"Key": "value"})
    assert await take(sub, 2) == [b"", b""]


@check()
async def check_payload_like_protocol(ctx: Context) -> None:
    """CR LF, NUL and whole protocol lines in a payload are delivered as payload."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    payloads = [b"\r\n", b"\0", b"\r\nPING\r\n", b"MSG a 1 5\r\nhello\r\n", b"-ERR 'no'\r\n", b"\n"]
    for payload in payloads:
        await client.publish(ctx.subject, payload)
    assert await take(sub, len(payloads)) == payloads
    assert client.stats.connects == 1


@check()
async def check_payload_of_all_bytes(ctx: Context) -> None:
    """Every byte value is transmitted unchanged, from every kind of buffer."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    payload = bytes(range(256)) * 4
    await client.publish(ctx.subject, payload)
    await client.publish(ctx.subject, bytearray(payload))
    await client.publish(ctx.subject, memoryview(payload))
    assert await take(sub, 3) == [payload] * 3


@check()
async def check_payload_of_one_megabyte(ctx: Context) -> None:
    """The largest payload that the server accepts arrives complete, several times in a row."""
    alice, bob = await ctx.pair()
    assert alice.info is not None
    size = alice.info.max_payload
    assert size == 1024 * 1024
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    payloads = [bytes([n]) * size for n in range(4)]
    for payload in payloads:
        await alice.publish(ctx.subject, payload)
    for payload in payloads:
        assert (await sub.next(WAIT)).data == payload


@check()
async def check_buffer_is_free_after_publish(ctx: Context) -> None:
    """A buffer may be changed as soon as publish has returned."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    buffer = bytearray(b"before")
    await client.publish(ctx.subject, buffer)
    buffer[:] = b"after!"
    assert await take(sub, 1) == [b"before"]


@check()
async def check_unicode_subject(ctx: Context) -> None:
    """Subjects may contain any UTF-8 text."""
    client = await ctx.client()
    subject = ctx.subject + ".größe.数"
    sub = await client.subscribe(subject)
    await client.publish(subject, b"1")
    assert (await sub.next(WAIT)).subject == subject


@check()
async def check_wildcards(ctx: Context) -> None:
    """`*` matches one token, and `>` matches one or more."""
    client = await ctx.client()
    star = await client.subscribe(ctx.subject + ".*.c")
    rest = await client.subscribe(ctx.subject + ".>")
    for tail in ["b.c", "b.b.c", "c", "b.d"]:
        await client.publish(f"{ctx.subject}.{tail}", tail.encode())
    await client.publish(ctx.subject, b"neither")
    await client.flush(WAIT)
    assert await take(star, star.pending) == [b"b.c"]
    assert await take(rest, rest.pending) == [b"b.c", b"b.b.c", b"c", b"b.d"]


@check()
async def check_several_subscriptions_to_one_subject(ctx: Context) -> None:
    """Each subscription gets each message, even two of the same client."""
    client = await ctx.client()
    subs = [await client.subscribe(ctx.subject) for _ in range(3)]
    for payload in [b"1", b"2"]:
        await client.publish(ctx.subject, payload)
    for sub in subs:
        assert await take(sub, 2) == [b"1", b"2"]


@check()
async def check_many_subscriptions(ctx: Context) -> None:
    """Each message reaches the right one of hundreds of subscriptions."""
    client = await ctx.client()
    subs = [await client.subscribe(f"{ctx.subject}.{n}") for n in range(300)]
    for n in range(300):
        await client.publish(f"{ctx.subject}.{n}", b"%d" % n)
    for n, sub in enumerate(subs):
        assert await take(sub, 1) == [b"%d" % n]
        assert not sub.pending


@check()
async def check_queue_group_gets_each_once(ctx: Context) -> None:
    """Each message goes to one member of a queue group, and to subscribers without a queue."""
    alice, bob = await ctx.pair()
    group = [await client.subscribe(ctx.subject, queue="q") for client in (alice, bob, bob)]
    other = await alice.subscribe(ctx.subject, queue="other")
    plain = await bob.subscribe(ctx.subject)
    await arrived(alice, bob)
    sent = [b"%d" % n for n in range(300)]
    for payload in sent:
        await alice.publish(ctx.subject, payload)
    await arrived(alice, bob)
    got = [payload for sub in group for payload in await take(sub, sub.pending)]
    assert sorted(got) == sorted(sent)
    assert await take(other, 300) == sent
    assert await take(plain, 300) == sent


@check()
async def check_queue_group_spreads(ctx: Context) -> None:
    """All members of a queue group get a share."""
    alice, bob = await ctx.pair()
    group = [await bob.subscribe(ctx.subject, queue="q") for _ in range(3)]
    assert [sub.queue for sub in group] == ["q"] * 3
    await bob.flush(WAIT)
    for _ in range(300):
        await alice.publish(ctx.subject)
    await arrived(alice, bob)
    assert all(sub.pending > 30 for sub in group)


@check()
async def check_unsubscribe_stops(ctx: Context) -> None:
    """After unsubscribe no more messages arrive; received ones can be taken, then it ends."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, b"1")
    await client.flush(WAIT)
    await sub.unsubscribe()
    await client.publish(ctx.subject, b"2")
    await client.flush(WAIT)
    assert [msg.data async for msg in sub] == [b"1"]
    with raises(InvalidState):
        await sub.next(WAIT)
    await sub.unsubscribe()


@check()
async def check_unsubscribe_one_of_two(ctx: Context) -> None:
    """The other subscription to the subject continues."""
    client = await ctx.client()
    first = await client.subscribe(ctx.subject)
    second = await client.subscribe(ctx.subject)
    await first.unsubscribe()
    await client.publish(ctx.subject, b"1")
    assert await take(second, 1) == [b"1"]
    assert not first.pending


@check()
async def check_auto_unsubscribe(ctx: Context) -> None:
    """unsubscribe(after=n) ends the subscription with its n-th message."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await sub.unsubscribe(after=3)
    for n in range(5):
        await client.publish(ctx.subject, b"%d" % n)
    assert [msg.data async for msg in sub] == [b"0", b"1", b"2"]


@check()
async def check_auto_unsubscribe_counts_from_the_start(ctx: Context) -> None:
    """Messages that arrived before unsubscribe(after=n) count."""
    client = await ctx.client()
    reached = await client.subscribe(ctx.subject)
    not_yet = await client.subscribe(ctx.subject)
    for n in range(3):
        await client.publish(ctx.subject, b"%d" % n)
    await client.flush(WAIT)
    await reached.unsubscribe(after=2)
    await not_yet.unsubscribe(after=4)
    for n in range(3, 6):
        await client.publish(ctx.subject, b"%d" % n)
    await client.flush(WAIT)
    assert [msg.data async for msg in reached] == [b"0", b"1", b"2"]
    assert [msg.data async for msg in not_yet] == [b"0", b"1", b"2", b"3"]


@check()
async def check_subscription_as_context(ctx: Context) -> None:
    """A subscription that is entered is unsubscribed at the end of its block."""
    client = await ctx.client()
    async with await client.subscribe(ctx.subject) as sub:
        await client.publish(ctx.subject, b"1")
        assert await take(sub, 1) == [b"1"]
    with raises(InvalidState):
        await sub.next(WAIT)


@check()
async def check_next_times_out(ctx: Context) -> None:
    """next(timeout) raises TimeoutExpired, and the message after that is not lost."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    for timeout in (0, 0.05):
        with raises(TimeoutExpired, within=1.0):
            await sub.next(timeout)
    await client.publish(ctx.subject, b"1")
    assert await take(sub, 1) == [b"1"]


@check()
async def check_no_echo(ctx: Context) -> None:
    """With no_echo a client does not receive its own messages; others do."""
    silent = await ctx.client(no_echo=True)
    other = await ctx.client()
    own = await silent.subscribe(ctx.subject)
    others = await other.subscribe(ctx.subject)
    await arrived(silent, other)
    await silent.publish(ctx.subject, b"mine")
    await silent.flush(WAIT)
    await other.publish(ctx.subject, b"yours")
    assert await take(own, 1) == [b"yours"]
    assert await take(others, 2) == [b"mine", b"yours"]


@check()
async def check_order_of_ten_thousand(ctx: Context) -> None:
    """Ten thousand messages arrive once each and in order."""
    alice, bob = await ctx.pair()
    sub = await bob.subscribe(ctx.subject)
    await bob.flush(WAIT)
    for n in range(10_000):
        await alice.publish(ctx.subject, b"%d" % n)
    await alice.flush(WAIT)
    expected = 0
    async for msg in sub:
        assert msg.data == b"%d" % expected
        expected += 1
        if expected == 10_000:
            break
    assert not sub.dropped


@check()
async def check_more_than_sockets_hold(ctx: Context) -> None:
    """Publishing faster than the network accepts data waits, and loses nothing."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    payload = b"x" * 1024 * 1024
    for _ in range(32):
        await client.publish(ctx.subject, payload)
    await client.flush(WAIT)
    assert (sub.pending, sub.dropped, client.stats.connects) == (32, 0, 1)


@check()
async def check_stats(ctx: Context) -> None:
    """The client counts its messages, bytes and connections."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    for _ in range(3):
        await client.publish(ctx.subject, b"12345")
    await take(sub, 3)
    stats = client.stats
    assert (stats.out_msgs, stats.in_msgs, stats.connects, stats.reconnects) == (3, 3, 1, 0)
    assert stats.out_bytes > 15
    assert stats.in_bytes > 15
