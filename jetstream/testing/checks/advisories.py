"""Advisories: each kind of event, provoked on a server, and the filters."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from jetstream.advisories import (
    Advisory,
    ApiAuditAdvisory,
    ConsumerAckMetric,
    ConsumerActionAdvisory,
    ConsumerGroupPinnedAdvisory,
    ConsumerGroupUnpinnedAdvisory,
    ConsumerPauseAdvisory,
    MaxDeliverAdvisory,
    NakAdvisory,
    RestoreCompleteAdvisory,
    RestoreCreateAdvisory,
    SnapshotCompleteAdvisory,
    SnapshotCreateAdvisory,
    StreamActionAdvisory,
    StreamBatchAbandonedAdvisory,
    TerminatedAdvisory,
)
from jetstream.errors import ApiError
from jetstream.testing.blocking_view import jetstream_of
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
from natsproto.errors import InvalidState, LocalError, PermissionDenied, TimeoutExpired
from natsproto.events import Connected
from natsproto.testing.context import SOON, WAIT, Context, next_event, raises

if TYPE_CHECKING:
    from jetstream import Advisories, Stream
    from natsproto.client import Client

Event = TypeVar("Event", bound=Advisory)


async def expect(events: Advisories, cls: type[Event], timeout: float = WAIT) -> Event:
    """Return the next event, which must be of this class and have no unknown fields."""
    event = await events.next(timeout)
    assert type(event) is cls, event
    assert event.extra == {}, f"{event!r} has new fields"
    assert event.timestamp is not None
    assert event.id
    return event


async def wait_for(events: Advisories, cls: type[Event], timeout: float = WAIT) -> Event:
    """Return the next event of this class, and discard those before it."""
    while True:
        event = await events.next(timeout)
        if isinstance(event, cls):
            assert event.extra == {}, f"{event!r} has new fields"
            return event


async def _nothing(events: Advisories) -> None:
    with raises(TimeoutExpired):
        await events.next(0.05)


async def _deleted(stream: Stream, events: Advisories) -> bool:
    """Delete the stream; return whether the event arrives, which a server may lose."""
    await stream.delete()
    with suppress(TimeoutExpired):
        while (await wait_for(events, StreamActionAdvisory, SOON)).action != "delete":
            pass
        return True
    return False


@check()
async def check_advisories_of_streams_and_consumers(ctx: Context) -> None:
    """Creating, updating and deleting streams and consumers is reported."""
    js = await open_js(ctx)
    name = name_of(ctx)
    async with js.advisories(stream=name) as events:
        stream = await new_stream(ctx, js)
        created = await expect(events, StreamActionAdvisory)
        assert (created.stream, created.action, created.kind) == (name, "create", "stream_action")
        assert created.type == "io.nats.jetstream.advisory.v1.stream_action"
        await js.update_stream(name=name, max_msgs=5)
        assert (await expect(events, StreamActionAdvisory)).action == "modify"
        await stream.create_consumer(durable_name="c")
        consumer = await expect(events, ConsumerActionAdvisory)
        assert (consumer.stream, consumer.consumer, consumer.action) == (name, "c", "create")
        await stream.delete_consumer("c")
        assert (await expect(events, ConsumerActionAdvisory)).action == "delete"
        while not await _deleted(stream, events):
            stream = await new_stream(ctx, js)


@check(since=(2, 11))
async def check_advisories_of_pauses(ctx: Context) -> None:
    """Pausing and resuming a consumer is reported."""
    js, consumer = await new_consumer(ctx)
    until = 4_102_444_800 * 10**9
    async with js.advisories("consumer_pause", stream=consumer.stream, consumer="c") as events:
        await js.pause_consumer(consumer.stream, "c", until)
        paused = await expect(events, ConsumerPauseAdvisory)
        assert paused.paused
        assert paused.pause_until is not None
        assert paused.pause_until.ns == until
        await js.resume_consumer(consumer.stream, "c")
        resumed = await expect(events, ConsumerPauseAdvisory)
        assert (resumed.paused, resumed.pause_until) == (False, None)


@check()
async def check_advisories_of_messages(ctx: Context) -> None:
    """Rejected, terminated and acknowledged messages are reported, and max_deliver."""
    js, consumer = await new_consumer(ctx, 3, max_deliver=2, sample_freq="100", ack_wait=30.0)
    async with js.advisories(stream=consumer.stream, consumer="c") as events:
        first, second, third = await consumer.fetch(3, expires=WAIT)
        await first.term("cannot be parsed")
        terminated = await expect(events, TerminatedAdvisory)
        assert (terminated.stream_seq, terminated.consumer_seq, terminated.deliveries) == (1, 1, 1)
        known = js_server(ctx).version >= (2, 10, 4)
        assert terminated.reason == ("cannot be parsed" if known else "")
        await second.ack()
        acknowledged = await expect(events, ConsumerAckMetric)
        assert (acknowledged.stream_seq, acknowledged.deliveries) == (2, 1)
        assert 0 < acknowledged.ack_time < WAIT
        await third.nak()
        rejected = await expect(events, NakAdvisory)
        assert (rejected.stream_seq, rejected.consumer_seq, rejected.deliveries) == (3, 3, 1)
        (again,) = await consumer.fetch(1, expires=WAIT)
        await again.nak()
        assert (await expect(events, NakAdvisory)).deliveries == 2
        assert not await consumer.fetch(1, expires=0.1)
        exceeded = await expect(events, MaxDeliverAdvisory)
        assert (exceeded.stream, exceeded.consumer) == (consumer.stream, "c")
        assert (exceeded.stream_seq, exceeded.deliveries) == (3, 2)


@check(since=(2, 11))
async def check_advisories_of_pins(ctx: Context) -> None:
    """Pinning a client to a priority group, and unpinning it, is reported."""
    js, consumer = await new_consumer(
        ctx, 1, priority_groups=["g"], priority_policy="pinned_client"
    )
    async with js.advisories(
        "consumer_group_pinned", "consumer_group_unpinned", stream=consumer.stream
    ) as events:
        await consumer.fetch(1, group="g", expires=WAIT)
        pinned = await expect(events, ConsumerGroupPinnedAdvisory)
        assert (pinned.group, pinned.account) == ("g", "$G")
        assert pinned.pinned_id
        await js.unpin_consumer(consumer.stream, "c", "g")
        unpinned = await expect(events, ConsumerGroupUnpinnedAdvisory)
        assert (unpinned.group, unpinned.reason) == ("g", "admin")


@check()
async def check_advisories_of_api_calls(ctx: Context) -> None:
    """An API call is reported with its request, its response and the client."""
    client = await ctx.connect(js_server(ctx), name="auditor")
    js = jetstream_of(client)
    async with js.advisories("api_audit") as events:
        with raises(ApiError):
            await js.stream(name_of(ctx))
        audit = await wait_for(events, ApiAuditAdvisory)
    assert audit.subject == f"$JS.API.STREAM.INFO.{name_of(ctx)}"
    assert json.loads(audit.response)["error"]["code"] == 404
    assert audit.client is not None
    assert audit.client.name in ("auditor", "")  # servers before 2.10 do not know it
    assert (audit.client.acc, audit.client.extra) == ("$G", {})
    assert audit.msg is not None
    assert audit.msg.subject == "$JS.EVENT.ADVISORY.API"


@check(since=(2, 12))
async def check_advisories_of_abandoned_batches(ctx: Context) -> None:
    """An atomic batch that is abandoned because of a gap is reported."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, allow_atomic=True)
    async with js.advisories("stream_batch_abandoned", stream=stream.name) as events:
        for number in ("1", "3"):
            headers = {"Nats-Batch-Id": "b1", "Nats-Batch-Sequence": number}
            await client.publish(ctx.subject + ".x", headers=headers)
        abandoned = await expect(events, StreamBatchAbandonedAdvisory)
        assert (abandoned.batch, abandoned.reason) == ("b1", "incomplete")


async def _request(client: Client, endpoint: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = await client.request(f"$JS.API.{endpoint}", json.dumps(body).encode(), timeout=WAIT)
    answer: dict[str, Any] = json.loads(reply.data)
    assert "error" not in answer, answer
    return answer


async def _snapshot(client: Client, stream: str) -> tuple[dict[str, Any], list[bytes]]:
    inbox = f"snapshot.{stream}"
    sub = await client.subscribe(inbox)
    answer = await _request(client, f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox})
    chunks: list[bytes] = []
    while True:
        msg = await sub.next(WAIT)
        if msg.status or not msg.data:
            return answer, chunks
        chunks.append(msg.data)
        if msg.reply:
            await client.publish(msg.reply)


@check()
async def check_advisories_of_snapshots(ctx: Context) -> None:
    """Saving and restoring a stream is reported."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    stream = await new_stream(ctx, js, storage="file")
    await fill(ctx, js, numbers(3))
    kinds: Any = ("snapshot_create", "snapshot_complete", "restore_create", "restore_complete")
    async with js.advisories(*kinds, stream=stream.name) as events:
        answer, chunks = await _snapshot(client, stream.name)
        begun = await expect(events, SnapshotCreateAdvisory)
        assert (begun.state.messages, begun.state.last_seq) == (3, 3)
        assert begun.client is not None
        saved = await expect(events, SnapshotCompleteAdvisory)
        assert saved.start is not None
        assert saved.end is not None
        assert saved.start <= saved.end
        await stream.delete()
        body = {"config": answer["config"], "state": answer["state"]}
        target = await _request(client, f"STREAM.RESTORE.{stream.name}", body)
        assert (await expect(events, RestoreCreateAdvisory)).client is not None
        for chunk in chunks:
            await client.request(target["deliver_subject"], chunk, timeout=WAIT)
        await client.request(target["deliver_subject"], b"", timeout=WAIT)
        restored = await expect(events, RestoreCompleteAdvisory)
        assert restored.bytes == sum(map(len, chunks))
    assert (await js.stream(stream.name)).cached_info.state.messages == 3


@check()
async def check_advisories_by_consumer_and_kind(ctx: Context) -> None:
    """Each filter returns its events and no others; several iterations are independent."""
    js, consumer = await new_consumer(ctx, 2)
    other = await (await js.stream(consumer.stream)).create_consumer(durable_name="d")
    name = consumer.stream
    async with (
        js.advisories("nak", "terminated", stream=name, consumer="d") as mine,
        js.advisories("nak", consumer="c") as naks,
        js.advisories("terminated", stream=name) as terms,
    ):
        assert mine.subjects == [
            f"$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.{name}.d",
            f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{name}.d",
        ]
        for each in (consumer, other):
            first, second = await each.fetch(2, expires=WAIT)
            await first.nak()
            await second.term()
        assert (await expect(mine, NakAdvisory)).consumer == "d"
        assert (await expect(mine, TerminatedAdvisory)).consumer == "d"
        assert (await expect(naks, NakAdvisory)).consumer == "c"
        found = {(await expect(terms, TerminatedAdvisory)).consumer for _ in range(2)}
        assert found == {"c", "d"}
        for events in (mine, naks, terms):
            await _nothing(events)


@check()
async def check_advisories_refuse_wrong_filters(ctx: Context) -> None:
    """Unknown kinds, invalid names, and names that a kind does not have are rejected."""
    js = await open_js(ctx)
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("max_delivery",), {}),
        ((1,), {}),
        (("api_audit",), {"stream": "S"}),
        (("stream_action",), {"consumer": "c"}),
        ((), {"stream": "a.b"}),
        ((), {"consumer": ""}),
    ]
    for kinds, names in wrong:
        with raises(LocalError):
            js.advisories(*kinds, **names)


@check()
async def check_advisories_of_unknown_kinds(ctx: Context) -> None:
    """Unknown kinds and fields are kept, and invalid events do not end the iteration."""
    js = await open_js(ctx)
    client = await ctx.connect(js_server(ctx))
    name = name_of(ctx)
    async with js.advisories(stream=name) as events:
        await js.account_info()  # so that the subscription is active
        subject = f"$JS.EVENT.ADVISORY.STREAM.FUTURE.{name}"
        kind = "io.nats.jetstream.advisory.v9.stream_future"
        for payload in (
            json.dumps({"type": kind, "id": "1", "stream": name, "more": [1]}).encode(),
            b"no JSON",
            json.dumps({"type": kind.replace("v9.stream_future", "v1.nak"), "stream": 1}).encode(),
        ):
            await client.publish(subject, payload)
        future = await events.next(WAIT)
        assert type(future) is Advisory
        assert (future.type, future.kind, future.id) == (kind, "stream_future", "1")
        assert future.extra == {"stream": name, "more": [1]}
        broken = await events.next(WAIT)
        assert (type(broken), broken.kind, broken.extra) == (Advisory, "", {})
        assert broken.msg is not None
        assert (broken.msg.subject, broken.msg.data) == (subject, b"no JSON")
        wrong = await events.next(WAIT)
        assert (type(wrong), wrong.extra["stream"]) == (Advisory, 1)


@check()
async def check_advisories_end(ctx: Context) -> None:
    """The iteration ends with `stop`, and then `next` raises."""
    js = await open_js(ctx)
    events = js.advisories()
    assert not events.closed
    await events.stop()
    await events.stop()
    assert events.closed
    assert [event async for event in events] == []
    with raises(InvalidState):
        await events.next(0)


@check()
async def check_advisories_denied(ctx: Context) -> None:
    """Without permission for one of the subjects the iteration raises PermissionDenied."""
    denied = "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.>"
    server = ctx.own_server(
        **JETSTREAM,
        authorization={
            "users": [
                {"user": "u", "password": "p", "permissions": {"subscribe": {"deny": denied}}}
            ]
        },
    )
    js = jetstream_of(await ctx.connect(server, user="u", password="p"))
    events = js.advisories("terminated", "nak")
    with raises(PermissionDenied):
        await events.next(WAIT)
    with raises(PermissionDenied):
        async for _ in events:
            pass
    assert events.closed


@check()
async def check_advisories_over_a_reconnect(ctx: Context) -> None:
    """After a reconnect the events continue."""
    server = ctx.own_server(**JETSTREAM)
    client = await ctx.connect(server)
    js = jetstream_of(client)
    async with js.advisories("stream_action") as events:
        await next_event(client, Connected)
        await js.create_stream(name="one", subjects=["one"])
        assert (await expect(events, StreamActionAdvisory)).stream == "one"
        server.kill()
        server.restart()
        await next_event(client, Connected)
        await js.create_stream(name="two", subjects=["two"])
        assert (await expect(events, StreamActionAdvisory)).stream == "two"
