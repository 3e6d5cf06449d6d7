"""Fast batches: messages are stored in order, and a failure says how many are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    BatchRefused,
    FastBatchFailed,
    MessageTooLarge,
    NoStreamResponse,
    WrongLastSequence,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import (
    CANDIDATE_AFTER,
    ELECTION,
    LONGEST,
    answered,
    delete_at_end,
    leader_of,
    other_than,
    step_down,
)
from jetstream.testing.streams import js_server, name_of, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, InvalidSubject, NatsError
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import FastBatch, JetStream, Stream
    from natsproto.testing.cluster import Cluster
    from natsproto.testing.server import Server

SINCE = (2, 14)


async def _stream(ctx: Context, **config: Any) -> tuple[JetStream, Stream]:
    js = await open_js(ctx)
    return js, await _batched(ctx, js, **config)


async def _batched(ctx: Context, js: JetStream, **config: Any) -> Stream:
    return await new_stream(ctx, js, allow_batched=True, allow_direct=True, **config)


async def _payloads(stream: Stream) -> list[bytes]:
    count = (await stream.info()).state.messages
    found: list[bytes] = []
    for _ in range(100):
        found = [msg.data for msg in await stream.get_msgs(batch=count)]
        if len(found) == count:
            break  # otherwise a replica that lags behind answered
    return found


async def _add(ctx: Context, batch: FastBatch, payloads: list[bytes], ids: bool = False) -> None:
    for payload in payloads:
        options: Any = {"msg_id": payload.decode()} if ids else {}
        await batch.add(ctx.subject + ".x", payload, **options)


@check(since=SINCE)
async def check_fast_batch(ctx: Context) -> None:
    """Five thousand messages are stored in order, with few acks."""
    js, stream = await _stream(ctx)
    async with js.fast_batch() as batch:
        await _add(ctx, batch, numbers(5000))
        assert batch.size == 5000
        assert batch.size - batch.stored <= 1000
    assert (batch.stored, batch.lost) == (5000, 0)
    assert await _payloads(stream) == numbers(5000)


@check(since=SINCE)
async def check_fast_batch_commit(ctx: Context) -> None:
    """The last message can end a batch, even if it is the first; a batch can also be empty."""
    js, stream = await _stream(ctx)
    batch = js.fast_batch(flow=3, max_acks=1)
    assert await batch.add(ctx.subject + ".x", b"0", headers={"Key": "value"}) == 1
    assert await batch.add(ctx.subject + ".y", bytearray(b"1")) == 2
    ack = await batch.commit(ctx.subject + ".x", b"2")
    assert (ack.stream, ack.seq, ack.count, batch.stored) == (stream.name, 3, 3, 3)
    with raises(InvalidState):
        await batch.add(ctx.subject + ".x")
    ack = await js.fast_batch().commit(ctx.subject + ".x", b"3")
    assert (ack.seq, ack.count) == (4, 1)
    assert await js.fast_batch().close() is None
    assert await _payloads(stream) == numbers(4)
    headers = (await stream.get_msg(1)).headers
    assert headers is not None
    assert headers["Key"] == "value"
    assert (await stream.get_msg(2)).subject == ctx.subject + ".y"


@check(since=SINCE)
async def check_fast_batch_rejected(ctx: Context) -> None:
    """The first message is rejected: no stream, a stream without batches, an expectation."""
    js, stream = await _stream(ctx)
    with raises(NoStreamResponse):
        await js.fast_batch().add(ctx.subject, b"1")
    with raises(InvalidSubject):
        await js.fast_batch().add(ctx.subject + ".*", b"1")
    with raises(WrongLastSequence):
        await js.fast_batch().commit(ctx.subject + ".x", b"1", expect_last_seq=7)
    batch = js.fast_batch()
    with raises(FastBatchFailed) as caught:  # the server begins the batch, and then refuses
        while True:
            await batch.add(ctx.subject + ".x", b"1", expect_last_seq=7)
    assert (caught.error.stored, caught.error.in_doubt) == (0, False)
    assert isinstance(caught.error.cause, WrongLastSequence)
    await js.update_stream(stream.cached_info.config, allow_batched=False)
    with raises(BatchRefused) as refused:
        await js.fast_batch().add(ctx.subject + ".x", b"1")
    assert refused.error.err_code == 10205
    assert (await stream.info()).state.messages == 0


async def _fails(ctx: Context, js: JetStream, cause: type[NatsError], **last: Any) -> None:
    """Have the sixth message rejected while more are in transit after it."""
    batch = js.fast_batch()
    await _add(ctx, batch, numbers(5))
    await batch.add(ctx.subject + ".x", **last)
    with raises(FastBatchFailed) as caught:
        await _add(ctx, batch, numbers(5000))
    assert caught.error.stored == 5
    assert 6 <= caught.error.sent <= 1005
    assert not caught.error.in_doubt
    assert isinstance(caught.error.cause, cause)
    with raises(FastBatchFailed):
        await batch.close()


@check(since=SINCE)
async def check_fast_batch_fails(ctx: Context) -> None:
    """A batch ends at a rejected message: earlier messages are stored, later ones are not."""
    js, stream = await _stream(ctx, max_msg_size=100)
    await _fails(ctx, js, WrongLastSequence, expect_last_seq=99)
    assert await _payloads(stream) == numbers(5)
    await _fails(ctx, js, MessageTooLarge, data=bytes(200))
    assert await _payloads(stream) == 2 * numbers(5)


@check(since=SINCE)
async def check_fast_batch_whose_last_fails(ctx: Context) -> None:
    """If the last message is rejected, the server is asked for the state of the batch."""
    js, stream = await _stream(ctx, max_msg_size=100)
    for commit in (True, False):
        batch = js.fast_batch()
        await _add(ctx, batch, numbers(3))
        with raises(FastBatchFailed, within=SOON) as caught:
            if commit:
                await batch.commit(ctx.subject + ".x", bytes(200))
            else:
                await batch.add(ctx.subject + ".x", bytes(200))
                await batch.close()
        assert (caught.error.stored, caught.error.sent, caught.error.in_doubt) == (3, 4, False)
    assert await _payloads(stream) == 2 * numbers(3)


@check(since=SINCE)
async def check_fast_batch_with_gaps(ctx: Context) -> None:
    """If gaps are allowed, a rejected message is reported and all others are stored."""
    js, stream = await _stream(ctx, max_msg_size=100)
    async with js.fast_batch(allow_gaps=True) as batch:
        for number, payload in enumerate(numbers(1000)):
            expect = 9999 if number == 100 else None
            data = bytes(200) if number in (200, 201) else payload
            await batch.add(ctx.subject + ".x", data, expect_last_seq=expect)
    assert (batch.size, batch.lost) == (1000, 3)
    losses = [(each.first, each.last, each.error) for each in batch.take_losses()]
    assert [loss[:2] for loss in losses] == [(101, 101), (201, 201), (202, 202)]
    assert isinstance(losses[0][2], WrongLastSequence)
    assert isinstance(losses[1][2], MessageTooLarge)
    skipped = (b"100", b"200", b"201")
    assert await _payloads(stream) == [each for each in numbers(1000) if each not in skipped]


@check(since=SINCE)
async def check_fast_batch_ids(ctx: Context) -> None:
    """Messages whose ids the stream knows are stored once and count as stored."""
    js, stream = await _stream(ctx)
    for count in (700, 1500):
        async with js.fast_batch() as batch:
            await _add(ctx, batch, numbers(count), ids=True)
        assert batch.stored == count
    assert await _payloads(stream) == numbers(1500)


@check(since=SINCE)
async def check_fast_batches_at_once(ctx: Context) -> None:
    """Concurrent fast batches share the server: each is in order, and nothing is lost."""
    _, stream = await _stream(ctx)

    async def load(js: JetStream, name: str) -> None:
        async with js.fast_batch() as batch:
            for payload in numbers(600):
                await batch.add(f"{ctx.subject}.{name}", payload)

    names = ["a", "b", "c", "d"]
    clients = [await open_js(ctx) for _ in names]
    for task in [ctx.start(load, *each) for each in zip(clients, names, strict=True)]:
        await task.result()
    msgs = await stream.get_msgs(batch=2400)
    for name in names:
        assert [msg.data for msg in msgs if msg.subject.endswith(name)] == numbers(600)


async def _load(
    ctx: Context,
    js: JetStream,
    count: int,
    strike: Callable[[int], Awaitable[None]],
    ids: bool = False,
) -> list[FastBatchFailed]:
    """Publish batch after batch until all messages are stored; return the failures."""
    payloads = numbers(count)
    failures: list[FastBatchFailed] = []
    done = 0
    while done < count:
        batch = js.fast_batch(flow=50)
        try:
            for number in range(done, count):
                options: Any = {"msg_id": str(number)} if ids else {}
                await batch.add(ctx.subject + ".x", payloads[number], **options)
                await strike(number)
            await batch.close()
            done = count
        except FastBatchFailed as failure:
            failures.append(failure)
            done += failure.stored
        except NoStreamResponse:
            continue  # there is an election
    return failures


@check(since=SINCE)
async def check_fast_batch_over_reconnects(ctx: Context) -> None:
    """If connections are lost during a batch, each message is stored once and in order."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await _batched(ctx, js)
    struck: set[int] = set()

    async def strike(number: int) -> None:
        if number % 300 == 150 and number not in struck:
            struck.add(number)
            await client.force_reconnect()

    failures = await _load(ctx, js, 1500, strike)
    assert len(struck) == 5
    assert not any(failure.in_doubt for failure in failures)
    assert await _payloads(stream) == numbers(1500)


@check(since=SINCE)
async def check_fast_batch_over_an_idle_reconnect(ctx: Context) -> None:
    """A batch continues after a reconnect if all its messages had arrived."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await _batched(ctx, js)
    async with js.fast_batch() as batch:
        await _add(ctx, batch, numbers(10))
        await client.flush(WAIT)
        await client.force_reconnect()
        await _add(ctx, batch, numbers(20)[10:])
    assert (batch.size, batch.stored) == (20, 20)
    assert await _payloads(stream) == numbers(20)


@check(since=SINCE)
async def check_fast_batch_over_a_crash(ctx: Context) -> None:
    """If the server is killed during a batch, messages with ids are stored once."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    stream = await _batched(ctx, js, storage="file")
    crashes: list[int] = []

    async def strike(number: int) -> None:
        if number == 700 and not crashes:
            crashes.append(number)
            server.kill()
            server.restart()

    failures = await _load(ctx, js, 1500, strike, ids=True)
    assert any(failure.in_doubt for failure in failures), failures
    assert sorted(map(int, await _payloads(stream))) == list(range(1500))


@check(since=SINCE)
async def check_fast_batch_times_out(ctx: Context) -> None:
    """Without an answer the stored count is in doubt, and the rest is not sent."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    await _batched(ctx, js)
    first, second = js.fast_batch(ack_timeout=0.3), js.fast_batch(ack_timeout=0.3)
    await _add(ctx, first, numbers(5))
    server.freeze()
    for call in (first.close, lambda: second.add(ctx.subject + ".x")):
        with raises(FastBatchFailed, within=SOON) as caught:
            await call()
        assert caught.error.in_doubt
    server.thaw()


@check(since=SINCE)
async def check_fast_batch_of_a_closed_client(ctx: Context) -> None:
    """Closing the client ends the batch."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await _batched(ctx, js)
    batch = js.fast_batch()
    await _add(ctx, batch, numbers(5))
    await client.close()
    with raises(FastBatchFailed, within=SOON):
        await batch.add(ctx.subject + ".x")
    with raises(NatsError, within=SOON):
        js.fast_batch()


async def _replicated(ctx: Context, cluster: Cluster) -> tuple[Stream, Server]:
    """Create a stream on three servers; return the leader, too."""
    client = await ctx.connect(cluster.members[0])
    js = jetstream_of(client, timeout=CANDIDATE_AFTER)
    stream = await answered(client, lambda: _batched(ctx, js, num_replicas=3, storage="file"))
    return stream, leader_of(cluster, stream.cached_info)


@check(since=SINCE, longest=LONGEST)
async def check_fast_batch_over_step_downs(ctx: Context) -> None:
    """If leaders step down, each message is stored once and in order, even without ids."""
    cluster = ctx.shared_cluster()
    await delete_at_end(ctx, cluster, name_of(ctx))
    stream, leader = await _replicated(ctx, cluster)
    client = await ctx.connect(other_than(cluster, leader))
    js = jetstream_of(client, timeout=WAIT)
    struck: set[int] = set()

    async def strike(number: int) -> None:
        if number % 400 == 200 and number not in struck:
            struck.add(number)
            await step_down(client, f"STREAM.{stream.name}")

    failures = await _load(ctx, js, 1200, strike)
    assert len(struck) == 3
    assert not any(failure.in_doubt for failure in failures), failures
    assert await _payloads(await js.stream(stream.name)) == numbers(1200)


@check(since=SINCE, slow=True, longest=LONGEST)
async def check_fast_batch_over_a_crash_of_the_leader(ctx: Context) -> None:
    """If the leader of the stream is killed, each message is stored once."""
    cluster = ctx.own_cluster(jetstream=True)
    stream, leader = await _replicated(ctx, cluster)
    js = await open_js(ctx, other_than(cluster, leader), timeout=ELECTION)
    killed: list[int] = []

    async def strike(number: int) -> None:
        if number == 500 and not killed:
            killed.append(number)
            leader.kill()

    await _load(ctx, js, 1200, strike, ids=True)
    stored = await _payloads(await js.stream(stream.name))
    assert sorted(map(int, stored)) == list(range(1200))
