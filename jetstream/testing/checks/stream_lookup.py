"""Looking up streams: lists, streams by subject, and the info of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import JetStreamError, StreamNotFound
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import fill, name_of, new_stream, numbers, open_js, until
from jetstream.testing.suite import check
from natsproto.testing.context import WAIT, Context, raises
from natsproto.testing.peers import RawPeer

if TYPE_CHECKING:
    from jetstream import JetStream

# The server lists 256 streams and 100,000 subjects in one answer.
_MANY_STREAMS = 300
_MANY_SUBJECTS = 100_100


@check()
async def check_streams_are_listed_page_by_page(ctx: Context) -> None:
    """All streams are listed, even if one answer cannot hold them."""
    js = await _many_streams(ctx)
    expected = [f"many-{n:03}" for n in range(_MANY_STREAMS)]
    assert sorted(await js.stream_names()) == expected
    assert sorted(info.config.name for info in await js.streams()) == expected


async def _many_streams(ctx: Context) -> JetStream:
    # Checks with the same configuration share a server, including the streams of earlier ones.
    server = ctx.shared_server(jetstream={"max_mem": 2**28, "max_file": 2**28})
    js = await open_js(ctx, server)
    for n in range((await js.account_info()).streams, _MANY_STREAMS):
        await js.create_stream(name=f"many-{n:03}", subjects=[f"many.{n}"], storage="memory")
    return js


@check()
async def check_streams_by_subject(ctx: Context) -> None:
    """Streams are found by a subject that they take: one, none, several."""
    js = await open_js(ctx)
    names = [f"{name_of(ctx)}-{token}" for token in "ab"]
    for name, token in zip(names, "ab", strict=True):
        await new_stream(ctx, js, name=name, subjects=[f"{ctx.subject}.{token}.*"])
    assert await js.stream_name_by_subject(f"{ctx.subject}.a.1") == names[0]
    assert await js.stream_names(f"{ctx.subject}.b.>") == names[1:]
    assert [info.config.name for info in await js.streams(f"{ctx.subject}.a.1")] == names[:1]
    assert sorted(await js.stream_names(f"{ctx.subject}.>")) == names
    with raises(StreamNotFound):
        await js.stream_name_by_subject(f"{ctx.subject}.c.1")
    with raises(JetStreamError) as caught:
        await js.stream_name_by_subject(f"{ctx.subject}.>")
    assert names[0] in str(caught.error)
    assert names[1] in str(caught.error)


@check()
async def check_stream_info(ctx: Context) -> None:
    """info() asks the server; cached_info is the result of the last call."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(4))
    assert stream.cached_info.state.messages == 0
    info = await stream.info()
    assert (info.state.messages, info.state.first_seq, info.state.last_seq) == (4, 1, 4)
    assert info.state.last_ts is not None
    assert stream.cached_info.state.messages == 4
    await js.delete_stream(stream.name)
    with raises(StreamNotFound):
        await stream.info()


@check()
async def check_stream_info_by_subject(ctx: Context) -> None:
    """The info counts the messages of each subject of a filter."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    for token, count in (("a.1", 3), ("a.2", 1), ("b", 2)):
        await fill(ctx, js, numbers(count), token)
    info = await stream.info(subjects_filter=f"{ctx.subject}.a.*")
    assert info.state.subjects == {f"{ctx.subject}.a.1": 3, f"{ctx.subject}.a.2": 1}
    assert (await stream.info()).state.subjects == {}
    assert (await stream.info()).state.num_subjects == 3


@check()
async def check_stream_info_of_many_subjects(ctx: Context) -> None:
    """All subjects are counted, even if one answer cannot hold them."""
    server = ctx.shared_server(jetstream={"max_mem": 2**29})
    client = await ctx.connect(server)
    stream = await jetstream_of(client, timeout=15.0).create_stream(
        name="WIDE", subjects=["wide.*"], storage="memory"
    )
    if not stream.cached_info.state.num_subjects:
        with RawPeer(server) as peer:
            peer.send(b"".join([b"PUB wide.%d 0\r\n\r\n" % n for n in range(_MANY_SUBJECTS)]))
            peer.flush(3 * WAIT)

    async def filled() -> bool:
        return (await stream.info()).state.num_subjects == _MANY_SUBJECTS

    await until(client, filled, 3 * WAIT)
    info = await stream.info(subjects_filter="wide.*")
    assert len(info.state.subjects) == _MANY_SUBJECTS
    assert set(info.state.subjects.values()) == {1}


@check()
async def check_stream_info_of_deleted(ctx: Context) -> None:
    """On request the info lists the sequences of deleted messages."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(6))
    for seq in (2, 4, 5):
        await stream.delete_msg(seq)
    assert (await stream.info(deleted_details=True)).state.deleted == [2, 4, 5]
    info = await stream.info()
    assert (info.state.deleted, info.state.num_deleted) == ([], 3)
