"""Stored messages of hostile publishers are delivered to every reader but have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.testing.streams import js_server, name_of, new_stream, nothing_pushed, open_js
from jetstream.testing.suite import check
from natsproto.errors import HeaderError, InvalidSubject
from natsproto.testing.context import WAIT, Context, raises
from natsproto.testing.peers import RawPeer

if TYPE_CHECKING:
    from jetstream import JetStream, Stream

_BEAT = b"Nats-Last-Consumer: 77\r\nNats-Consumer-Stalled: %s\r\n"
# Statuses of a server, forged by a publisher; the payload is empty.
_STATUSES = [
    b"NATS/1.0 100 x\r\n\r\n",
    b"NATS/1.0 100 Idle Heartbeat\r\n" + _BEAT % b"$JS.FC.S.C.x" + b"\r\n",
    b"NATS/1.0 100 FlowControl Request\r\n\r\n",
    b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 99\r\n\r\n",
    b"NATS/1.0 404 No Messages\r\n\r\n",
    b"NATS/1.0 408 Request Timeout\r\n\r\n",
    b"NATS/1.0 409 Consumer Deleted\r\n\r\n",
    b"NATS/1.0 409 Server Shutdown\r\n\r\n",
    b"NATS/1.0 503\r\n\r\n",
]
# These do not end like header blocks.
_UNENDED = [
    b"garbage",
    b"NATS/1.0",
    b"NATS/1.0 503",
    b"NATS/1.0\r\nA: b",
    b"NATS/1.0\r\nA: b\r\n",
    b"NATS/1.0\r\nNats-Stream: X\r\nNats-Sequence: 7\r\n",
]
_COUNT = len(_STATUSES) + len(_UNENDED) + 1


async def _poisoned(ctx: Context) -> tuple[JetStream, Stream]:
    """Return a stream with messages of hostile publishers; its last message is a valid one."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, allow_direct=True)
    with RawPeer(js_server(ctx)) as peer:
        for block in _STATUSES:
            peer.hpub(ctx.subject.encode() + b".x", block)
        for block in _UNENDED:
            peer.hpub(ctx.subject.encode() + b".x", block, b"payload")
        peer.flush()
    await js.publish(ctx.subject + ".x", b"last")
    return js, stream


async def _push(ctx: Context, flow_control: bool) -> None:
    js, stream = await _poisoned(ctx)
    options: dict[str, Any] = {"flow_control": True, "idle_heartbeat": 0.5} if flow_control else {}
    async with await js.subscribe(
        ctx.subject + ".>", durable="c", ack_wait=30.0, **options
    ) as messages:
        payload = b""
        for number in range(1, _COUNT + 1):
            msg = await messages.next(WAIT)
            payload = msg.data
            assert (msg.metadata.stream_seq, msg.metadata.delivered) == (number, 1)
            info = await js.consumer(stream.name, "c")
            # Only this check acknowledged it, not even as an answer to flow control.
            assert info.cached_info.ack_floor.stream_seq == number - 1
            await msg.ack_sync()
        assert payload == b"last"
        await nothing_pushed(messages)
        assert not messages.closed


@check()
async def check_poison_pushed(ctx: Context) -> None:
    """A push subscription delivers stored status lines, and does not act on them."""
    await _push(ctx, flow_control=False)


@check()
async def check_poison_pushed_with_flow_control(ctx: Context) -> None:
    """With flow control, no stored status line is answered."""
    await _push(ctx, flow_control=True)


@check()
async def check_poison_pushed_in_order(ctx: Context) -> None:
    """An ordered push subscription delivers each of them once, without a reset."""
    js, _ = await _poisoned(ctx)
    async with await js.subscribe(ctx.subject + ".>", ordered=True) as messages:
        for number in range(1, _COUNT + 1):
            place = (await messages.next(WAIT)).metadata
            assert (place.stream_seq, place.consumer_seq) == (number, number)


@check()
async def check_poison_pulled(ctx: Context) -> None:
    """fetch and consume deliver stored status lines."""
    js, stream = await _poisoned(ctx)
    consumer = await stream.create_consumer(durable_name="c", ack_policy="none")
    batch = await consumer.fetch(_COUNT, expires=WAIT)
    assert [msg.metadata.stream_seq for msg in batch] == list(range(1, _COUNT + 1))
    consumer = await js.create_consumer(name_of(ctx), durable_name="d", ack_policy="none")
    async with consumer.consume() as messages:
        seen = [(await messages.next(WAIT)).metadata.stream_seq for _ in range(_COUNT)]
    assert seen == list(range(1, _COUNT + 1))


@check()
async def check_poison_got(ctx: Context) -> None:
    """get_msg returns stored status lines, from the leader and by direct get."""
    js, stream = await _poisoned(ctx)
    for number in range(1, _COUNT + 1):
        msg = await stream.get_msg(number)
        assert (msg.seq, msg.subject) == (number, ctx.subject + ".x")
        if number == _COUNT:
            assert msg.data == b"last"
        elif number > len(_STATUSES):
            assert msg.data == b"payload"
            with raises(HeaderError):
                _ = msg.headers
    await js.publish(ctx.subject + ".y", b"y")
    with RawPeer(js_server(ctx)) as peer:
        peer.hpub(ctx.subject.encode() + b".y", b"garbage", b"z")
        peer.flush()
    assert (await stream.get_msg(last_by_subject=ctx.subject + ".y")).data == b"z"


@check(since=(2, 11))
async def check_poison_got_in_batches(ctx: Context) -> None:
    """get_msgs and get_last_msgs return all stored status lines."""
    _, stream = await _poisoned(ctx)
    found = await stream.get_msgs(batch=100)
    assert [msg.seq for msg in found] == list(range(1, _COUNT + 1))
    (last,) = await stream.get_last_msgs([ctx.subject + ".>"])
    assert last.data == b"last"


@check()
async def check_forged_deliveries(ctx: Context) -> None:
    """A forged delivery cannot make a subscriber publish to another subject."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    deliver = ctx.subject + "-deliver"
    victim = await ctx.connect(js_server(ctx))
    admin = await victim.subscribe(ctx.subject + "-admin")
    await victim.flush(WAIT)
    target = (ctx.subject + "-admin").encode()
    async with await js.subscribe(
        ctx.subject + ".>", deliver_subject=deliver, flow_control=True, idle_heartbeat=30.0
    ) as messages:
        with RawPeer(js_server(ctx)) as peer:
            block = b"NATS/1.0 100 Idle Heartbeat\r\n" + _BEAT % target + b"\r\n"
            peer.hpub(deliver.encode(), block)
            block = b"NATS/1.0 100 FlowControl Request\r\n\r\n"
            peer.hpub(deliver.encode() + b" " + target, block)
            peer.send(b"PUB %s %s 2\r\nhi\r\n" % (deliver.encode(), target))
            peer.flush()
        forged = [await messages.next(WAIT) for _ in range(2)]
        assert [msg.data for msg in forged] == [b"", b"hi"]
        for call in (forged[1].ack, forged[1].nak, forged[1].term, forged[1].ack_sync):
            with raises(InvalidSubject):
                await call()
    await victim.publish(ctx.subject + "-admin", b"nothing before this")
    assert (await admin.next(WAIT)).data == b"nothing before this"
