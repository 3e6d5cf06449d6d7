"""Dead letters: messages that a consumer has failed to process, live and captured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import MessageNotFound, StreamNotFound
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import (
    ELECTION,
    LONGEST,
    LOST_PULL,
    answered,
    leader_of,
    other_than,
    replicated,
)
from jetstream.testing.streams import (
    JETSTREAM,
    fill,
    js_server,
    name_of,
    new_consumer,
    new_stream,
    numbers,
    open_js,
)
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, InvalidValue, TimeoutExpired
from natsproto.events import Connected
from natsproto.testing.context import WAIT, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import Consumer, DeadLetters, JetStream


async def _exceed(consumer: Consumer, count: int = 1, pending: int = 0) -> None:
    """Reject the last delivery of the last messages, so that they are dead letters."""
    for msg in await consumer.fetch(count, expires=WAIT):
        await msg.nak()
    await _noticed(consumer, pending)


async def _noticed(consumer: Consumer, pending: int = 0) -> None:
    """Pull until the server has noticed the last failure, which it does before a redelivery.

    Then only `pending` messages, delivered earlier, still wait for their acknowledgments.
    """
    deadline = time.monotonic() + WAIT
    while True:
        assert not await consumer.fetch(1, expires=0.1)
        if (await consumer.info()).num_ack_pending <= pending:
            return
        assert time.monotonic() < deadline


async def _nothing(letters: DeadLetters) -> None:
    with raises(TimeoutExpired):
        await letters.next(0.1)


async def _queue(ctx: Context, **config: Any) -> tuple[JetStream, Consumer]:
    """Create a work queue with a consumer that tries each message once."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, retention="workqueue", **config)
    return js, await stream.create_consumer(durable_name="c", max_deliver=1)


@check()
async def check_dead_letters(ctx: Context) -> None:
    """A message that reached max_deliver, and a terminated one, are reported with all details."""
    js, consumer = await new_consumer(ctx, 3, max_deliver=2)
    async with await consumer.dead_letters() as letters:
        assert (letters.stream, letters.consumer) == (consumer.stream, "c")
        first, second, third = await consumer.fetch(3, expires=WAIT)
        await first.term("cannot be parsed")
        await second.ack()
        await third.nak()
        await _exceed(consumer)
        one = await letters.next(WAIT)
        assert (one.kind, one.seq, one.deliveries, one.gone) == ("terminated", 1, 1, False)
        assert one.reason in ("cannot be parsed", "")  # servers before 2.10.4 have no reasons
        assert (one.stream, one.consumer, one.retries) == (consumer.stream, "c", 0)
        assert one.time is not None
        assert one.message is not None
        assert (one.message.data, one.message.subject) == (b"0", ctx.subject + ".x")
        two = await letters.next(WAIT)
        assert (two.kind, two.seq, two.deliveries, two.reason) == ("max_deliver", 3, 2, "")
        assert two.message is not None
        assert two.message.data == b"2"
        await _nothing(letters)
        await one.discard()
        await two.discard()
        assert one.settled
        with raises(InvalidState):
            await one.discard()
        with raises(InvalidState):
            await one.retry()
    assert letters.closed
    # Other consumers may need the messages.
    assert (await (await js.stream(consumer.stream)).info()).state.messages == 3


@check()
async def check_dead_letters_are_retried(ctx: Context) -> None:
    """A retried message is delivered again, marked, without instructions for the server."""
    js, consumer = await _queue(ctx)
    async with await consumer.dead_letters() as letters:
        subject = ctx.subject + ".x"
        headers = {"Color": "red", "Nats-Expected-Last-Sequence": "0"}
        await js.publish(subject, b"work", headers=headers, msg_id="id-1")
        await _exceed(consumer)
        letter = await letters.next(WAIT)
        ack = await letter.retry(headers={"By": "operator"})
        assert (ack.seq, ack.duplicate) == (2, False)
        again = await consumer.next(expires=WAIT)
        assert again is not None
        assert (again.data, again.subject, again.metadata.delivered) == (b"work", subject, 1)
        assert again.headers is not None
        assert dict(again.headers.items()) == {
            "Color": "red",
            "By": "operator",
            "Dead-Letter-Stream": consumer.stream,
            "Dead-Letter-Consumer": "c",
            "Dead-Letter-Sequence": "1",
            "Dead-Letter-Retries": "1",
            "Dead-Letter-Msg-Id": "id-1",
            "Nats-Msg-Id": f"dead-letter.{consumer.stream}.c.1",
        }
        # It fails again, and the old message is gone from the queue.
        await again.nak()
        await _noticed(consumer)
        second = await letters.next(WAIT)
        assert (second.seq, second.retries) == (2, 1)
        stream = await js.stream(consumer.stream)
        assert (await stream.info()).state.messages == 1
        await second.discard()
        assert (await stream.info()).state.messages == 0


@check()
async def check_dead_letters_keep_messages_of_others(ctx: Context) -> None:
    """Outside of work queues a message is deleted only on request."""
    js, consumer = await new_consumer(ctx, 3, max_deliver=1)
    stream = await js.stream(consumer.stream)
    async with await consumer.dead_letters() as letters:
        await _exceed(consumer, 3)
        await (await letters.next(WAIT)).retry()
        assert (await stream.info()).state.messages == 4
        await (await letters.next(WAIT)).retry(delete=True, subject=ctx.subject + ".parked")
        with raises(MessageNotFound):
            await stream.get_msg(2)
        parked = await stream.get_msg(last_by_subject=ctx.subject + ".parked")
        assert parked.data == b"1"
        await (await letters.next(WAIT)).discard(delete=True)
        with raises(MessageNotFound):
            await stream.get_msg(3)


@check(since=(2, 10))
async def check_dead_letters_that_are_gone(ctx: Context) -> None:
    """A message that was deleted in the meantime is reported, but cannot be retried."""
    js, consumer = await _queue(ctx)
    stream = await js.stream(consumer.stream)
    async with await consumer.dead_letters(durable=name_of(ctx) + "-dead") as letters:
        await fill(ctx, js, numbers(2))
        first, second = await consumer.fetch(2, expires=WAIT)
        await first.term("no use")  # this removes it from a work queue
        await second.nak()
        await _noticed(consumer)
        await stream.purge()
        for seq, kind in ((1, "terminated"), (2, "max_deliver")):
            letter = await letters.next(WAIT)
            assert (letter.seq, letter.kind, letter.gone, letter.message) == (seq, kind, True, None)
            with raises(MessageNotFound):
                await letter.retry()
            assert not letter.settled
            await letter.discard()
        await _nothing(letters)


@check(since=(2, 10))
async def check_dead_letters_are_captured(ctx: Context) -> None:
    """Letters are captured while no program listens, and stay until they are settled."""
    js, consumer = await _queue(ctx)
    capture = name_of(ctx) + "-dead"
    async with await consumer.dead_letters(durable=capture):
        pass
    await fill(ctx, js, numbers(3))
    await _exceed(consumer, 3)
    stored = await js.stream(capture)
    assert stored.cached_info.config.retention == "workqueue"
    async with await consumer.dead_letters(durable=capture) as letters:
        found = [await letters.next(WAIT) for _ in range(3)]
        assert [letter.seq for letter in found] == [1, 2, 3]
        await found[0].retry()
        await found[1].in_progress()
        await found[1].discard()
        assert (await stored.info()).state.messages == 1
        # The third is not settled: it is not returned again before its ack wait is over.
        await _nothing(letters)
    assert (await stored.info()).state.messages == 1
    assert [msg.data for msg in await consumer.fetch(1, expires=WAIT)] == [b"0"]


@check(since=(2, 10))
async def check_dead_letters_over_a_restart(ctx: Context) -> None:
    """Captured letters survive a crash of the server, and so does the iteration."""
    server = ctx.own_server(**JETSTREAM)
    client = await ctx.connect(server)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    consumer = await stream.create_consumer(durable_name="c", max_deliver=1)
    letters = await consumer.dead_letters(durable="dead")
    await fill(ctx, js, [b"0"])
    await _exceed(consumer, 1)
    assert (await letters.next(WAIT)).seq == 1
    await next_event(client, Connected)
    server.kill()
    server.restart()
    await next_event(client, Connected)
    # The server writes the state of a consumer every 100 ms. If it was killed before it had written
    # that the first message has failed, that message waits for its ack wait again.
    pending = (await consumer.info()).num_ack_pending
    assert pending <= 1
    await fill(ctx, js, [b"1"])
    await _exceed(consumer, 1, pending)
    second = await letters.next(4 * WAIT)
    assert second.seq == 2
    await second.retry()
    assert (await stream.info()).state.messages == 3
    await letters.stop()
    left = [entry.subject async for entry in (await _entries(js)).fetch(9, no_wait=True)]
    assert len(left) <= 1  # the first one, unless its ack wait has not expired yet


async def _entries(js: JetStream) -> Consumer:
    (name,) = await js.consumer_names("dead")
    return await js.consumer("dead", name)


@check(since=(2, 10))
async def check_dead_letters_in_an_existing_capture(ctx: Context) -> None:
    """A stream with the subjects of the advisories is used; one without them is rejected."""
    js, consumer = await new_consumer(ctx, 1, max_deliver=1)
    name = name_of(ctx) + "-dead"
    subjects = [
        f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.{consumer.stream}.*"
        for kind in ("MAX_DELIVERIES", "MSG_TERMINATED")
    ]
    await js.create_stream(name=name, subjects=subjects[:1], storage="memory")
    with raises(InvalidValue):
        await consumer.dead_letters(durable=name)
    await js.update_stream(name=name, subjects=subjects)
    async with await consumer.dead_letters(durable=name) as letters:
        await _exceed(consumer)
        assert (await letters.next(WAIT)).seq == 1


@check()
async def check_dead_letters_of_unknown_streams(ctx: Context) -> None:
    """An unknown stream raises an error."""
    js = await open_js(ctx)
    with raises(StreamNotFound):
        await js.bind_consumer(name_of(ctx), "c").dead_letters()


@check()
async def check_dead_letters_ignore_forged_events(ctx: Context) -> None:
    """Events that are not about a message of the consumer are skipped."""
    js, consumer = await new_consumer(ctx, 1, max_deliver=1)
    async with await consumer.dead_letters() as letters:
        await js.account_info()
        client = await ctx.connect(js_server(ctx))
        subject = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{consumer.stream}.c"
        kind = b'{"type":"io.nats.jetstream.advisory.v1.max_deliver","stream":"other"}'
        for payload in (b"no JSON", kind):
            await client.publish(subject, payload)
        await client.flush()
        await _exceed(consumer)
        assert (await letters.next(WAIT)).seq == 1


@check(since=(2, 10), slow=True, longest=LONGEST)
async def check_dead_letters_over_a_crash_of_the_leader(ctx: Context) -> None:
    """While the stream has no leader, a letter waits for its message."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, _ = await replicated(ctx, cluster)
    leader = leader_of(cluster, await stream.info())
    home = other_than(cluster, leader)
    client = await ctx.connect(home)
    js = jetstream_of(client, timeout=ELECTION)
    consumer = await answered(
        client, lambda: js.create_consumer(stream.name, durable_name="d", max_deliver=1)
    )
    capture = await consumer.dead_letters(durable="dead")
    first, second = await answered(client, lambda: consumer.fetch(2, expires=WAIT))
    await first.term()
    letter = await capture.next(LOST_PULL + WAIT)
    assert letter.seq == 1
    await letter.discard()  # otherwise it might be delivered again
    leader.kill()
    # The acknowledgment may be lost while the consumer has no leader.
    await second.term()
    await answered(client, lambda: consumer.fetch(1, expires=WAIT))
    letter = await capture.next(2 * ELECTION)
    # The one that was fetched now has used up its only delivery as well.
    assert letter.seq in (2, 3)
    assert letter.message is not None
    await answered(client, letter.retry)
    await capture.stop()
