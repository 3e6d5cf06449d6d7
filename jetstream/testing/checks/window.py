"""Publishing without waiting for each ack, and batches that are stored atomically."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    BatchRefused,
    NoStreamResponse,
    PublishesFailed,
    PublishInDoubt,
    WrongLastSequence,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import name_of, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.errors import (
    InvalidState,
    InvalidSubject,
    InvalidValue,
    NatsError,
    PayloadTooLarge,
    TimeoutExpired,
)
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream, Publication, PublishWindow, Stream


async def _stream(ctx: Context, **config: Any) -> tuple[JetStream, Stream]:
    js = await open_js(ctx)
    return js, await new_stream(ctx, js, allow_direct=True, **config)


async def _payloads(stream: Stream) -> list[bytes]:
    count = (await stream.info()).state.messages
    return [msg.data for msg in await stream.get_msgs(batch=count)]


async def _publish(
    ctx: Context, window: PublishWindow, payloads: list[bytes], ids: bool = False
) -> list[Publication]:
    publications: list[Publication] = []
    for payload in payloads:
        options: Any = {"msg_id": payload.decode()} if ids else {}
        publications.append(await window.publish(ctx.subject + ".x", payload, **options))
    return publications


@check(since=(2, 11))
async def check_window_of_five_thousand(ctx: Context) -> None:
    """Five thousand publishes are all stored, once and in order, each with its own sequence."""
    js, stream = await _stream(ctx)
    async with js.publisher(max_pending=256) as window:
        publications = await _publish(ctx, window, numbers(5000))
        assert window.pending <= 256
    assert all(each.done and each.error is None for each in publications)
    seqs = [each.ack.seq for each in publications if each.ack]
    assert seqs == list(range(1, 5001))
    assert await _payloads(stream) == numbers(5000)


@check()
async def check_window_result(ctx: Context) -> None:
    """A caller can wait for the result of each publish."""
    js, stream = await _stream(ctx)
    async with js.publisher() as window:
        publications = await _publish(ctx, window, numbers(3))
        for seq, each in enumerate(publications, 1):
            ack = await each.result()
            assert (ack.stream, ack.seq) == (stream.name, seq)
            assert each.done
            assert each.subject == ctx.subject + ".x"
        assert window.pending == 0


@check()
async def check_window_options(ctx: Context) -> None:
    """A window takes the options of publish, and reports duplicates."""
    js, stream = await _stream(ctx)
    async with js.publisher() as window:
        first = await window.publish(ctx.subject + ".x", b"1", msg_id="a", headers={"Key": "v"})
        again = await window.publish(ctx.subject + ".x", b"1", msg_id="a")
        assert not (await first.result()).duplicate
        assert (await again.result()).duplicate
    assert (await stream.info()).state.messages == 1


@check()
async def check_window_failures(ctx: Context) -> None:
    """A rejected message fails alone; flush reports it once."""
    js, stream = await _stream(ctx)
    async with js.publisher() as window:
        await _publish(ctx, window, numbers(3))
        bad = await window.publish(ctx.subject + ".x", b"bad", expect_last_seq=99)
        await _publish(ctx, window, numbers(2))
        with raises(PublishesFailed) as caught:
            await window.flush()
        [failed] = caught.error.publications
        assert isinstance(failed.error, WrongLastSequence)
        assert isinstance(bad.error, WrongLastSequence)
        await window.flush()
        with raises(WrongLastSequence):
            await bad.result()
    assert (await stream.info()).state.messages == 5


@check()
async def check_window_failure_on_leaving(ctx: Context) -> None:
    """Failures that were not retrieved are raised when the block is left."""
    js, _ = await _stream(ctx)
    with raises(PublishesFailed):
        async with js.publisher() as window:
            await window.publish(ctx.subject + ".x", b"bad", expect_last_seq=99)


@check()
async def check_window_failure_that_result_has_raised(ctx: Context) -> None:
    """A failure that result() has raised is not reported again."""
    js, _ = await _stream(ctx)
    async with js.publisher() as window:
        bad = await window.publish(ctx.subject + ".x", b"bad", expect_last_seq=99)
        with raises(WrongLastSequence):
            await bad.result()


@check()
async def check_window_without_a_stream(ctx: Context) -> None:
    """A publish without a stream fails after two retries and does not delay the others."""
    js, stream = await _stream(ctx)
    begin = time.monotonic()
    async with js.publisher() as window:
        lost = await window.publish(ctx.subject, b"lost")
        await (await window.publish(ctx.subject + ".x", b"1")).result()
        assert not lost.done
        with raises(NoStreamResponse, within=SOON):
            await lost.result()
    assert time.monotonic() - begin > 0.49
    assert (await stream.info()).state.messages == 1


@check(since=(2, 11))
async def check_window_rejected_locally(ctx: Context) -> None:
    """Invalid messages are rejected at once and take no room."""
    js, stream = await _stream(ctx)
    with raises(InvalidValue):
        js.publisher(max_pending=0)
    async with js.publisher(max_pending=2) as window:
        for _ in range(3):
            with raises(InvalidSubject):
                await window.publish("a b")
            with raises(PayloadTooLarge):
                await window.publish(ctx.subject + ".x", b"x" * (1024 * 1024 + 1))
            with raises(InvalidValue):
                await window.publish(ctx.subject + ".x", ttl=0)
        assert window.pending == 0
        await window.publish(ctx.subject + ".x", b"1")
    with raises(InvalidState):
        await window.publish(ctx.subject + ".x", b"2")
    assert await _payloads(stream) == [b"1"]


@check()
async def check_window_is_full(ctx: Context) -> None:
    """A full window blocks the publisher until acks arrive."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    stream = await new_stream(ctx, js)
    other = await ctx.connect(server)
    thawed: list[bool] = []

    async def thaw_later() -> None:
        with raises(TimeoutExpired):
            await other.flush(timeout=0.2)
        thawed.append(True)
        server.thaw()

    async with js.publisher(max_pending=10) as window:
        server.freeze()
        await _publish(ctx, window, numbers(10))
        assert window.pending == 10
        task = ctx.start(thaw_later)
        await window.publish(ctx.subject + ".x", b"10")
        assert thawed
        await task.result()
    assert (await stream.info()).state.messages == 11


@check()
async def check_window_times_out(ctx: Context) -> None:
    """Publishes that are not acknowledged in time are in doubt."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    await new_stream(ctx, js)
    async with js.publisher(ack_timeout=0.2) as window:
        server.freeze()
        publications = await _publish(ctx, window, numbers(3))
        with raises(PublishesFailed, within=SOON) as caught:
            await window.flush()
        assert len(caught.error.publications) == 3
        assert all(isinstance(each.error, PublishInDoubt) for each in publications)
        server.thaw()


async def _crash(ctx: Context, ids: bool) -> tuple[Stream, list[Publication], bool]:
    """Publish, kill and restart the server, and publish more; return the stream and the results."""
    server = ctx.own_server(jetstream="enabled")
    js = await open_js(ctx, server)
    stream = await new_stream(ctx, js, storage="file", allow_direct=True)
    failed = False
    async with js.publisher(max_pending=2000) as window:
        publications = await _publish(ctx, window, numbers(800), ids)
        await publications[0].result()  # so that it is busy with the rest
        server.freeze()
        publications += await _publish(ctx, window, numbers(1200)[800:], ids)
        server.kill()
        server.restart()
        publications += await _publish(ctx, window, numbers(1300)[1200:], ids)
        try:
            await window.flush()
        except PublishesFailed:
            failed = True
    return stream, publications, failed


@check(since=(2, 11))
async def check_window_across_a_crash_with_ids(ctx: Context) -> None:
    """With message ids a crash of the server loses nothing and stores nothing twice."""
    stream, publications, failed = await _crash(ctx, ids=True)
    assert not failed
    assert all(each.done and each.error is None for each in publications)
    assert sorted(map(int, await _payloads(stream))) == list(range(1300))


@check(since=(2, 11))
async def check_window_across_a_crash_without_ids(ctx: Context) -> None:
    """Without ids, messages in transit are in doubt; acknowledged ones are stored."""
    stream, publications, failed = await _crash(ctx, ids=False)
    assert failed
    assert all(each.done for each in publications)
    doubtful = [each for each in publications if each.error is not None]
    assert all(isinstance(each.error, PublishInDoubt) for each in doubtful)
    assert 400 <= len(doubtful) < len(publications)
    stored = await _payloads(stream)
    acked = {n for n, each in enumerate(publications) if each.error is None}
    assert acked <= set(map(int, stored))
    assert len(set(stored)) == len(stored)


@check()
async def check_window_of_a_closed_client(ctx: Context) -> None:
    """When the client is closed, messages in transit fail and no more are taken."""
    server = ctx.own_server(jetstream="enabled")
    client = await ctx.connect(server)
    js = jetstream_of(client)
    await new_stream(ctx, js)
    window = js.publisher()
    server.freeze()
    [publication] = await _publish(ctx, window, numbers(1))
    server.kill()
    await client.close()
    with raises(PublishInDoubt, within=SOON):
        await publication.result()
    with raises(NatsError, within=SOON):
        await window.publish(ctx.subject + ".x")


@check(since=(2, 12))
async def check_atomic_batch(ctx: Context) -> None:
    """A batch is stored as a whole: nothing before the commit, and everything after it."""
    js, stream = await _stream(ctx, allow_atomic=True)
    batch = js.atomic_batch()
    for payload in numbers(20)[:-1]:
        await batch.add(ctx.subject + ".x", payload)
    assert (await stream.info()).state.messages == 0
    ack = await batch.commit(ctx.subject + ".y", b"19", headers={"Key": "value"})
    assert (ack.stream, ack.seq, ack.count) == (stream.name, 20, 20)
    assert await _payloads(stream) == numbers(20)
    with raises(InvalidState):
        await batch.add(ctx.subject + ".x")


@check(since=(2, 14))
async def check_atomic_batch_committed_without_a_message(ctx: Context) -> None:
    """A commit without a message stores the messages that were added."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_atomic=True)
    batch = js.atomic_batch()
    for payload in (b"1", b"2"):
        await batch.add(ctx.subject + ".x", payload)
    assert (await stream.info()).state.messages == 0
    ack = await batch.commit()
    assert (ack.count, ack.seq) == (2, 2)
    assert (await stream.info()).state.messages == 2
    assert (await stream.get_msg(2)).data == b"2"
    with raises(InvalidState):
        await js.atomic_batch().commit()


@check(since=(2, 12))
async def check_atomic_batch_of_one(ctx: Context) -> None:
    """A batch can consist of the commit alone; without a commit nothing is stored."""
    js, stream = await _stream(ctx, allow_atomic=True)
    await js.atomic_batch().add(ctx.subject + ".x", b"abandoned")
    ack = await js.atomic_batch().commit(ctx.subject + ".x", b"alone")
    assert (ack.seq, ack.count) == (1, 1)
    assert await _payloads(stream) == [b"alone"]


@check(since=(2, 12))
async def check_atomic_batch_rejected(ctx: Context) -> None:
    """A batch is rejected as a whole: wrong expectation, no batches allowed, no stream."""
    js, stream = await _stream(ctx, allow_atomic=True)
    batch = js.atomic_batch()
    await batch.add(ctx.subject + ".x", b"1", expect_last_seq=7)
    await batch.add(ctx.subject + ".x", b"2")
    with raises(WrongLastSequence, within=WAIT):
        await batch.commit(ctx.subject + ".x", b"3")
    assert (await stream.info()).state.messages == 0
    with raises(NoStreamResponse):
        await js.atomic_batch().add(ctx.subject, b"1")
    two = ctx.subject.replace("check", "checks")
    plain = await new_stream(ctx, js, name=name_of(ctx) + "-2", subjects=[two])
    with raises(BatchRefused):
        await js.atomic_batch().add(two, b"1")
    assert (await plain.info()).state.messages == 0
