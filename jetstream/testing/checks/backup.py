"""Backups: snapshots of streams, and streams that are restored from them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from jetstream.errors import ApiError, SnapshotFailed, StreamNotFound
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.clusters import CANDIDATE_AFTER, LONGEST, answered, share_replicated
from jetstream.testing.streams import JETSTREAM, fill, new_stream, numbers, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue, LocalError
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream, Stream

_SNAPSHOT_FAILED = 10064
LARGE = [b"%d" % n * 20_000 for n in range(200)]  # 4 to 12 MB, in random order of digits


async def _payloads(stream: Stream) -> list[bytes]:
    state = (await stream.info()).state
    return [(await stream.get_msg(seq)).data for seq in range(state.first_seq, state.last_seq + 1)]


async def _saved(js: JetStream, stream: str) -> io.BytesIO:
    file = io.BytesIO()
    async with await js.snapshot_stream(stream) as snapshot:
        size = await snapshot.save(file)
        assert snapshot.complete
    assert size == len(file.getvalue())
    file.seek(0)
    return file


@check()
async def check_backup_and_restore(ctx: Context) -> None:
    """A stream is saved, deleted and restored, with messages, consumers and their states."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, storage="file", description="saved")
    await fill(ctx, js, numbers(50))
    consumer = await stream.create_consumer(durable_name="c")
    for msg in await consumer.fetch(10, expires=WAIT):
        await msg.ack_sync()
    file = await _saved(js, stream.name)
    await stream.delete()
    sizes: list[int] = []
    restored = await js.restore_stream(file, progress=sizes.append)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 0
    assert restored.cached_info.config.description == "saved"
    assert await _payloads(restored) == numbers(50)
    again = await js.consumer(stream.name, "c")
    assert again.cached_info.ack_floor.stream_seq == 10
    assert [msg.data for msg in await again.fetch(2, expires=WAIT)] == [b"10", b"11"]


@check(since=(2, 14))
async def check_backup_by_chunks(ctx: Context) -> None:
    """A large stream is saved in small chunks, without consumers, and restored from them."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, LARGE)
    await stream.create_consumer(durable_name="c")
    chunks: list[bytes] = []
    snapshot = await js.snapshot_stream(
        stream.name, consumers=False, check=True, chunk_size=16 * 1024, window=64 * 1024
    )
    assert (snapshot.state.messages, snapshot.config.name) == (200, stream.name)
    async with snapshot:
        async for chunk in snapshot:
            assert len(chunk) <= 16 * 1024
            chunks.append(chunk)
    assert snapshot.received == sum(map(len, chunks))
    await stream.delete()
    restored = await js.restore_stream(chunks, snapshot.config, chunk_size=4 * 1024)
    assert await _payloads(restored) == LARGE
    assert not await restored.consumer_names()


@check(since=(2, 15))
async def check_backup_of_a_stream_in_memory(ctx: Context) -> None:
    """A stream in memory is saved and restored."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(20))
    file = await _saved(js, stream.name)
    await stream.delete()
    assert await _payloads(await js.restore_stream(file)) == numbers(20)


@check()
async def check_backups_that_fail(ctx: Context) -> None:
    """Errors of the server, and wrong data, raise; nothing is created."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, storage="file")
    with raises(StreamNotFound):
        await js.snapshot_stream("nothing")
    with raises(LocalError):
        await js.snapshot_stream(stream.name, chunk_size=1)
    await fill(ctx, js, numbers(5))
    file = await _saved(js, stream.name)
    with raises(ApiError):  # it exists
        await js.restore_stream(file)
    await stream.delete()
    with raises(InvalidValue):
        await js.restore_stream(io.BytesIO(b"something else\n"))
    with raises(ApiError, within=2 * WAIT):
        await js.restore_stream([b"something else"], stream.cached_info.config)
    with raises(StreamNotFound):
        await js.stream(stream.name)


@check(since=(2, 14))
async def check_a_snapshot_that_is_stopped(ctx: Context) -> None:
    """A snapshot can be abandoned, and another one taken once the server notices (2.14: 5 s)."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, LARGE)
    async with await js.snapshot_stream(stream.name, chunk_size=1024, window=1024) as snapshot:
        async for _ in snapshot:
            break
        assert not snapshot.complete

    async def saved() -> bool:
        try:
            await _saved(js, stream.name)
        except ApiError as error:
            if error.err_code != _SNAPSHOT_FAILED:  # the first one is still in progress
                raise
            return False
        return True

    await until(await ctx.client(), saved)


@check(since=(2, 14))
async def check_a_snapshot_over_a_lost_connection(ctx: Context) -> None:
    """A snapshot ends with an error when the connection is lost."""
    server = ctx.own_server(**JETSTREAM)
    client = await ctx.connect(server)
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, LARGE)
    snapshot = await js.snapshot_stream(stream.name, chunk_size=1024, window=1024)
    async for _ in snapshot:
        break
    server.kill()
    with raises(SnapshotFailed):
        async for _ in snapshot:
            pass
    server.restart()


@check(since=(2, 15), longest=LONGEST)  # which has snapshots of streams in memory
async def check_backup_of_a_replicated_stream(ctx: Context) -> None:
    """A replicated stream is saved through one member and restored through another."""
    cluster, shared, _ = await share_replicated(ctx)
    clients = [await ctx.connect(member) for member in cluster.members[:2]]
    first, second = [jetstream_of(client, timeout=CANDIDATE_AFTER) for client in clients]
    file = await answered(clients[0], lambda: _saved(first, shared.name))
    await first.delete_stream(shared.name)
    restored = await second.restore_stream(file)
    assert restored.cached_info.config.num_replicas == 3
    found = await answered(clients[1], lambda: _payloads(restored))
    assert found == numbers(40)
