"""Messages in a stream: getting them without a consumer, and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import Timestamp
from jetstream.errors import ApiError, JetStreamError, MessageNotFound
from jetstream.testing.streams import fill, js_server, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue, LocalError, NotSupported
from natsproto.testing.context import Context, raises
from natsproto.testing.peers import RawPeer

if TYPE_CHECKING:
    from jetstream import JetStream, Stream


async def _stored(ctx: Context, direct: bool) -> tuple[JetStream, Stream]:
    """Create a stream with three messages of .a and two of .b in turn: a0 b0 a1 b1 a2."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=direct)
    for n, token in enumerate("ababa"):
        await fill(ctx, js, [b"%s%d" % (token.encode(), n // 2)], token)
    return js, stream


async def _get(ctx: Context, direct: bool) -> None:
    _, stream = await _stored(ctx, direct)
    msg = await stream.get_msg(2)
    assert (msg.stream, msg.subject, msg.seq) == (stream.name, ctx.subject + ".b", 2)
    assert (msg.data, msg.headers) == (b"b0", None)
    assert msg.time > (await stream.get_msg(1)).time
    last = await stream.get_msg(last_by_subject=ctx.subject + ".a")
    assert (last.seq, last.data) == (5, b"a2")
    assert (await stream.get_msg(last_by_subject=ctx.subject + ".*")).seq == 5
    assert (await stream.get_msg(2, next_by_subject=ctx.subject + ".a")).seq == 3
    assert (await stream.get_msg(next_by_subject=ctx.subject + ".b")).seq == 2


@check()
async def check_get_msg(ctx: Context) -> None:
    """The leader returns a message by sequence, the last of a subject, or the next of one."""
    await _get(ctx, direct=False)


@check()
async def check_get_msg_direct(ctx: Context) -> None:
    """Direct get returns the same."""
    await _get(ctx, direct=True)


@check()
async def check_get_msg_not_found(ctx: Context) -> None:
    """A missing message raises the same error by each way of access."""
    js, stream = await _stored(ctx, direct=False)
    direct = await js.create_or_update_stream(
        name=stream.name, subjects=[ctx.subject + ".>"], storage="memory", allow_direct=True
    )
    for each in (stream, direct):
        ways: list[dict[str, Any]] = [
            {"seq": 6},
            {"last_by_subject": ctx.subject + ".c"},
            {"seq": 5, "next_by_subject": ctx.subject + ".b"},
        ]
        for way in ways:
            with raises(MessageNotFound) as caught:
                await each.get_msg(**way)
            assert (caught.error.code, caught.error.err_code) == (404, 10037)


@check()
async def check_get_msg_rejected_locally(ctx: Context) -> None:
    """A sequence is at least 1, and the ways to name a message exclude each other."""
    _, stream = await _stored(ctx, direct=False)
    ways: list[dict[str, Any]] = [
        {},
        {"seq": 0},
        {"seq": -1},
        {"seq": 1, "last_by_subject": "s"},
        {"last_by_subject": "a..b"},
        {"next_by_subject": "s", "last_by_subject": "s"},
    ]
    for way in ways:
        with raises(LocalError):
            await stream.get_msg(**way)


async def _headers(ctx: Context, direct: bool) -> None:
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=direct)
    headers = [("Key", "one"), ("key", "two"), ("Key", "three"), ("Empty", "")]
    await js.publish(ctx.subject + ".x", b"", headers=headers)
    msg = await stream.get_msg(1)
    assert msg.data == b""
    assert msg.headers is not None
    assert list(msg.headers.items()) == headers


@check()
async def check_get_msg_with_headers(ctx: Context) -> None:
    """The leader returns headers unchanged, without those of the response."""
    await _headers(ctx, direct=False)


@check()
async def check_get_msg_with_headers_direct(ctx: Context) -> None:
    """Direct get returns the same."""
    await _headers(ctx, direct=True)


@check()
async def check_get_msg_with_headers_like_those_of_the_answer(ctx: Context) -> None:
    """Headers of a message that look like those of direct get are the message's own."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=True)
    spoof = [("Nats-Stream", "OTHER"), ("Nats-Sequence", "99"), ("Nats-Subject", "other")]
    await js.publish(ctx.subject + ".x", b"1", headers=spoof)
    msg = await stream.get_msg(1)
    assert (msg.stream, msg.seq, msg.subject) == (stream.name, 1, ctx.subject + ".x")
    assert msg.headers is not None
    assert list(msg.headers.items()) == spoof


@check()
async def check_get_msg_of_one_megabyte(ctx: Context) -> None:
    """A message of max_payload is returned, although the response is larger."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    payload = bytes(range(256)) * 4096
    await js.publish(ctx.subject + ".x", payload)
    assert (await stream.get_msg(1)).data == payload
    config = stream.cached_info.config
    config.allow_direct = True
    assert (await (await js.update_stream(config)).get_msg(1)).data == payload


@check()
async def check_get_msg_that_is_odd(ctx: Context) -> None:
    """Odd messages of other publishers are returned byte for byte."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=True)
    block = b"NATS/1.0\r\nKey\xff: \xfe\r\n\r\n"
    with RawPeer(js_server(ctx)) as peer:
        peer.hpub(ctx.subject.encode() + b".x", block, b"\xff\x00")
        peer.flush()
    await js.publish(ctx.subject + ".x", b"after")
    msg = await stream.get_msg(1)
    assert msg.data == b"\xff\x00"
    assert msg.raw_headers == block
    assert (await stream.get_msg(2)).data == b"after"


@check()
async def check_direct_get_not_allowed(ctx: Context) -> None:
    """Batched gets without allow_direct raise an error that says so."""
    _, stream = await _stored(ctx, direct=False)
    with raises(NotSupported):
        await stream.get_msgs(batch=2)
    with raises(NotSupported):
        await stream.get_last_msgs([ctx.subject + ".>"])
    with raises(NotSupported):
        async for _ in stream.iter_get_msgs(batch=2):
            pass


@check(since=(2, 11))
async def check_get_msgs(ctx: Context) -> None:
    """get_msgs returns messages of a subject that start at a sequence or time, up to a size."""
    _, stream = await _stored(ctx, direct=True)
    assert [msg.data for msg in await stream.get_msgs(batch=3)] == [b"a0", b"b0", b"a1"]
    assert [msg.seq for msg in await stream.get_msgs(batch=9, seq=4)] == [4, 5]
    assert [msg.seq for msg in await stream.get_msgs(batch=9, subject=ctx.subject + ".b")] == [2, 4]
    third = await stream.get_msg(3)
    assert [msg.seq for msg in await stream.get_msgs(batch=2, start_time=third.time)] == [3, 4]
    assert await stream.get_msgs(batch=2, seq=6) == []
    assert await stream.get_msgs(batch=2, start_time=Timestamp(4 * 10**18)) == []
    assert 1 <= len(await stream.get_msgs(batch=5, max_bytes=30)) < 5


@check(since=(2, 11))
async def check_get_msgs_of_many(ctx: Context) -> None:
    """A batch that the server splits into several answers is complete and in order."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=True)
    await fill(ctx, js, [b"%06d" % n + b"x" * 994 for n in range(1500)])
    msgs = await stream.get_msgs(batch=1500)
    assert [int(msg.data[:6]) for msg in msgs] == list(range(1500))


@check(since=(2, 11))
async def check_iter_get_msgs(ctx: Context) -> None:
    """iter_get_msgs returns all messages of several pages, or as many as the loop wants."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=True)
    await fill(ctx, js, [b"%d" % n for n in range(2100)])
    found = [msg.seq async for msg in stream.iter_get_msgs()]
    assert found == list(range(1, 2101))
    found = [msg.seq async for msg in stream.iter_get_msgs(batch=1500, seq=3)]
    assert found == list(range(3, 1503))
    async for msg in stream.iter_get_msgs(seq=5):
        assert msg.seq == 5
        break
    assert [msg.seq async for msg in stream.iter_get_msgs(seq=2101)] == []
    assert (await stream.get_msg(7)).data == b"6"


@check(since=(2, 11))
async def check_iter_get_last_msgs(ctx: Context) -> None:
    """iter_get_last_msgs returns the last message of each subject, one by one."""
    _, stream = await _stored(ctx, direct=True)
    found = [msg.data async for msg in stream.iter_get_last_msgs([ctx.subject + ".>"])]
    assert found == [b"b1", b"a2"]
    none = [msg async for msg in stream.iter_get_last_msgs([ctx.subject + ".c"])]
    assert none == []


@check(since=(2, 11))
async def check_get_last_msgs(ctx: Context) -> None:
    """get_last_msgs returns the last message of each subject, now or at an earlier time."""
    _, stream = await _stored(ctx, direct=True)
    both = [ctx.subject + ".a", ctx.subject + ".b"]
    assert [msg.data for msg in await stream.get_last_msgs(both)] == [b"b1", b"a2"]
    assert [msg.seq for msg in await stream.get_last_msgs([ctx.subject + ".>"])] == [4, 5]
    assert [msg.seq for msg in await stream.get_last_msgs(both, up_to_seq=3)] == [2, 3]
    third = await stream.get_msg(3)
    assert [msg.seq for msg in await stream.get_last_msgs(both, up_to_time=third.time)] == [1, 2]
    assert len(await stream.get_last_msgs(both, batch=1)) == 1
    assert await stream.get_last_msgs([ctx.subject + ".c"]) == []


@check(since=(2, 11))
async def check_get_last_msgs_of_many(ctx: Context) -> None:
    """The server answers for up to 1024 subjects; more are an error, not a partial result."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=True)
    async with js.publisher() as window:
        for n in range(1025):
            await window.publish(f"{ctx.subject}.{n}", b"%d" % n)
    with raises(JetStreamError) as caught:
        await stream.get_last_msgs([ctx.subject + ".>"])
    assert "413" in str(caught.error)
    await stream.delete_msg(1025)
    msgs = await stream.get_last_msgs([ctx.subject + ".>"])
    assert [msg.data for msg in msgs] == numbers(1024)


@check()
async def check_get_msgs_rejected_locally(ctx: Context) -> None:
    """Invalid numbers and combinations are rejected before anything is sent."""
    _, stream = await _stored(ctx, direct=True)
    wrong: list[dict[str, Any]] = [
        {"batch": 0},
        {"batch": 1, "seq": 1, "start_time": Timestamp(1)},
        {"batch": 1, "subject": "a..b"},
    ]
    for arguments in wrong:
        with raises(LocalError):
            await stream.get_msgs(**arguments)
    with raises(InvalidValue):
        await stream.get_last_msgs([])
    with raises(InvalidValue):
        await stream.get_last_msgs(ctx.subject)  # not a list of them
    with raises(InvalidValue):
        await stream.get_last_msgs(["s"], up_to_seq=1, up_to_time=Timestamp(1))


@check()
async def check_delete_msg(ctx: Context) -> None:
    """A message is deleted by its sequence, with or without its bytes on disk."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, [b"secret-%d" % n for n in range(1, 5)])
    await stream.delete_msg(2)
    await stream.delete_msg(3, secure=True)
    assert (await stream.info(deleted_details=True)).state.deleted == [2, 3]
    for seq in (2, 3):
        with raises(MessageNotFound):
            await stream.get_msg(seq)
    with raises(MessageNotFound) as caught:
        await stream.delete_msg(2)
    assert caught.error.err_code == 10043
    assert (await stream.get_msg(4)).data == b"secret-4"


@check()
async def check_delete_msg_rejected(ctx: Context) -> None:
    """A stream can deny deletion; the client rejects an invalid sequence."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, deny_delete=True)
    await fill(ctx, js, numbers(1))
    with raises(ApiError) as caught:
        await stream.delete_msg(1)
    assert caught.error.err_code == 10057
    with raises(InvalidValue):
        await stream.delete_msg(0)
    assert (await stream.info()).state.messages == 1
