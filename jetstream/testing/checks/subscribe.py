"""subscribe(): how it finds, creates and deletes a consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import ConsumerConfig
from jetstream.errors import (
    AmbiguousStream,
    StreamNotFound,
    WorkQueueConflict,
)
from jetstream.events import PushWarning
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    fill,
    filled_stream,
    give_back,
    js_server,
    name_of,
    new_stream,
    numbers,
    open_js,
    take_pushed,
    unbound,
    until,
)
from jetstream.testing.suite import check
from natsproto.errors import (
    InvalidState,
    InvalidValue,
    LocalError,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream
    from jetstream.push.api import PushMessages
    from natsproto.subscription import Subscription

_DENIED = {
    "jetstream": "enabled",
    "authorization": {
        "users": [
            {"user": "all", "password": "p"},
            {
                "user": "some",
                "password": "p",
                "permissions": {"publish": {"deny": ["$JS.API.CONSUMER.DELETE.>"]}},
            },
        ]
    },
}


@check()
async def check_subscribe_without_a_stream(ctx: Context) -> None:
    """A subject of no stream, or of several, raises an error that names it."""
    js = await open_js(ctx)
    with raises(StreamNotFound):
        await js.subscribe(f"{ctx.subject}.x")
    for token in "ab":
        name = f"{name_of(ctx)}-{token}"
        await new_stream(ctx, js, name=name, subjects=[f"{ctx.subject}.{token}"])
    with raises(AmbiguousStream) as caught:
        await js.subscribe(f"{ctx.subject}.*")
    assert sorted(caught.error.streams) == [f"{name_of(ctx)}-a", f"{name_of(ctx)}-b"]
    async with await js.subscribe(f"{ctx.subject}.*", stream=f"{name_of(ctx)}-b") as messages:
        await js.publish(f"{ctx.subject}.b", b"x")
        assert await take_pushed(messages, 1) == [b"x"]


@check()
async def check_subscribe_rejected_locally(ctx: Context) -> None:
    """Invalid input is rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    subject = f"{ctx.subject}.x"
    wrong: list[dict[str, Any]] = [
        {"subject": ""},
        {"subject": "a b"},
        {"durable": "a.b"},
        {"queue": "a.b"},
        {"bind": True},
        {"durable": "c", "name": "d"},
        {"flow_control": True},
        {"idle_heartbeat": 0.01},
        {"max_waiting": 5},
        {"max_batch": 5},
        {"alarm_after": 0.5, "idle_heartbeat": 1.0},
        {"filter_subject": "other"},
        {"deliver_policy": "by_start_time"},
        {"max_pending_messages": -1},
    ]
    sent = client.stats.out_msgs
    for asked in wrong:
        asked.setdefault("subject", subject)
        with raises(LocalError):
            await js.subscribe(**asked)
    assert client.stats.out_msgs == sent


async def _member(js: JetStream, subject: str, queue: str) -> PushMessages:
    return await js.subscribe(subject, queue=queue)


@check(since=(2, 10))
async def check_subscribe_race(ctx: Context) -> None:
    """If many subscribe at once, one creates the consumer, and the others find it."""
    js, subject = await filled_stream(ctx)
    clients = [await ctx.connect(js_server(ctx)) for _ in range(6)]
    tasks = [ctx.start(_member, jetstream_of(each), subject, "q") for each in clients]
    members = [await task.result() for task in tasks]
    for client in clients:
        await client.flush(WAIT)  # otherwise the server may not know of the last one yet
    assert await js.consumer_names(name_of(ctx)) == ["q"]
    await fill(ctx, js, numbers(300))
    for member in members:
        msg = await member.next(WAIT)  # each of them got some of the messages
        await msg.ack()
    for member in members:
        await member.unsubscribe()
    assert await js.consumer_names(name_of(ctx)) == ["q"]


@check()
async def check_subscribe_resumes(ctx: Context) -> None:
    """A durable consumer keeps its position: the next subscription continues there."""
    js, subject = await filled_stream(ctx, 10)
    for n in range(5):
        # A message sent before the server knows of the end is lost, hence the wait.
        asked: dict[str, Any] = {"durable": "c", "max_ack_pending": 1, "ack_wait": 1.0}
        async with await js.subscribe(subject, **asked) as messages:
            assert await take_pushed(messages, 2) == numbers(10)[2 * n : 2 * n + 2]
            await give_back(messages)
        await unbound(ctx, js, "c")


@check()
async def check_subscribe_deletes_ephemeral_consumers(ctx: Context) -> None:
    """An ephemeral consumer is deleted by unsubscribe and at the end of the block."""
    js, subject = await filled_stream(ctx, 3)
    stream = name_of(ctx)
    ways: list[dict[str, Any]] = [{}, {"name": "n"}]
    for asked in ways:
        async with await js.subscribe(subject, **asked) as messages:
            assert await take_pushed(messages, 1) == [b"0"]
            assert len(await js.consumer_names(stream)) == 1
        assert await js.consumer_names(stream) == []
        messages = await js.subscribe(subject, **asked)
        await messages.unsubscribe()
        assert await js.consumer_names(stream) == []
        with raises(InvalidState):
            await messages.next(WAIT)


@check()
async def check_subscribe_without_deletion(ctx: Context) -> None:
    """With delete_on_end=False even an ephemeral consumer is kept."""
    js, subject = await filled_stream(ctx)
    asked: dict[str, Any] = {"name": "n", "delete_on_end": False, "inactive_threshold": 60.0}
    async with await js.subscribe(subject, **asked):
        pass
    assert await js.consumer_names(name_of(ctx)) == ["n"]


@check()
async def check_subscribe_keeps_durable_consumers(ctx: Context) -> None:
    """A consumer with a durable name or a queue group is kept, unless delete_on_end is set."""
    js, subject = await filled_stream(ctx)
    stream = name_of(ctx)
    shared: list[dict[str, Any]] = [{"durable": "c"}, {"queue": "c"}, {"queue": "q", "name": "c"}]
    for asked in shared:
        async with await js.subscribe(subject, **asked):
            pass
        assert await js.consumer_names(stream) == ["c"]
        await js.delete_consumer(stream, "c")
        async with await js.subscribe(subject, delete_on_end=True, **asked):
            assert await js.consumer_names(stream) == ["c"]
        assert await js.consumer_names(stream) == []


@check()
async def check_subscribe_keeps_existing_consumers(ctx: Context) -> None:
    """A consumer that existed before the call is not deleted."""
    js, subject = await filled_stream(ctx)
    stream = name_of(ctx)
    config: dict[str, Any] = {"deliver_subject": f"{stream}.to", "inactive_threshold": 60.0}
    await js.create_consumer(stream, name="n", **config)
    for bound in (True, False):
        messages = await js.subscribe(subject, name="n", delete_on_end=True, bind=bound)
        await messages.unsubscribe()
        assert await js.consumer_names(stream) == ["n"]
        await unbound(ctx, js, "n")


@check()
async def check_subscribe_drain(ctx: Context) -> None:
    """After drain received messages can be taken, then the consumer is deleted."""
    js, subject = await filled_stream(ctx, 20)
    stream = name_of(ctx)
    messages = await js.subscribe(subject)
    assert await take_pushed(messages, 5) == numbers(5)
    client = await ctx.connect(js_server(ctx))

    async def all_here() -> bool:
        return (await js.consumers(stream))[0].num_pending == 0

    await until(client, all_here)
    await messages.drain()
    await fill(ctx, js, [b"late"])
    assert len(await js.consumer_names(stream)) == 1
    rest = [msg.data async for msg in messages]
    assert rest == numbers(20)[5:]
    assert messages.closed
    assert await js.consumer_names(stream) == []


@check()
async def check_subscribe_drain_of_nothing(ctx: Context) -> None:
    """If there are no messages to take, drain deletes the consumer."""
    js, subject = await filled_stream(ctx)
    messages = await js.subscribe(subject)
    await messages.drain()
    assert await js.consumer_names(name_of(ctx)) == []
    assert messages.closed


@check()
async def check_subscribe_deletion_that_fails(ctx: Context) -> None:
    """An event reports a consumer that cannot be deleted; the subscription has ended."""
    server = ctx.shared_server(**_DENIED)
    js = jetstream_of(await ctx.connect(server, user="all", password="p"))
    stream = await new_stream(ctx, js)
    denied = jetstream_of(await ctx.connect(server, user="some", password="p"))
    messages = await denied.subscribe(f"{ctx.subject}.x")
    await messages.unsubscribe()
    event = await messages.events.next(WAIT)
    assert isinstance(event, PushWarning)
    assert isinstance(event.error, PermissionDenied)
    assert messages.closed
    await stream.delete()


@check()
async def check_subscribe_of_a_consumer_deleted_before(ctx: Context) -> None:
    """If consumer or stream is already gone, its deletion is not a failure."""
    js, subject = await filled_stream(ctx)
    stream = name_of(ctx)
    messages = await js.subscribe(subject, name="n")
    await js.delete_consumer(stream, "n")
    await messages.unsubscribe()
    gone = await js.subscribe(subject, name="n")
    await js.delete_stream(stream)
    await gone.unsubscribe()
    for each in (messages, gone):
        assert [event async for event in each.events] == []


@check()
async def check_subscribe_failure_leaves_nothing(ctx: Context) -> None:
    """A rejected creation leaves no subscription and no consumer."""
    server = js_server(ctx)
    client = await ctx.connect(server, name=ctx.subject)
    js = jetstream_of(client)
    await new_stream(ctx, js, retention="workqueue")
    subject = f"{ctx.subject}.x"
    async with await js.subscribe(subject, durable="first"):
        with raises(WorkQueueConflict):
            await js.subscribe(subject)  # a workqueue has one consumer for each subject
        with raises(WorkQueueConflict):
            await js.subscribe(subject, durable="second")
        await client.flush(WAIT)
        connections = server.monitor("/connz?limit=10000")["connections"]
        [ours] = [each for each in connections if each.get("name") == ctx.subject]
        assert ours["subscriptions"] <= 3  # answers, and what the first one has
    assert await js.consumer_names(name_of(ctx)) == ["first"]


@check()
async def check_subscribe_in_doubt(ctx: Context) -> None:
    """Without an answer to the creation, TimeoutExpired is raised and the consumer deleted."""
    server = ctx.own_server(jetstream="enabled")
    other = await ctx.connect(server)
    await new_stream(ctx, jetstream_of(other))
    events: list[Subscription] = []
    for kind in ("CREATED", "DELETED"):
        subject = f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.{name_of(ctx)}.*"
        events.append(await other.subscribe(subject))
    await other.flush(WAIT)
    client = await ctx.connect(server)
    js = jetstream_of(client, timeout=0.2)
    server.freeze()
    with raises(TimeoutExpired):
        await js.subscribe(f"{ctx.subject}.x", stream=name_of(ctx))
    server.thaw()

    async def created_and_deleted() -> bool:
        await other.flush(WAIT)
        return all(sub.pending for sub in events)

    await until(client, created_and_deleted)  # a blocking client works when it is called


@check()
async def check_subscribe_by_dict_and_object(ctx: Context) -> None:
    """The configuration is given as keywords, as a ConsumerConfig, or as the server's dict."""
    js, subject = await filled_stream(ctx)
    stream = name_of(ctx)
    ways: list[tuple[Any, dict[str, Any]]] = [
        (None, {"ack_wait": 2.5, "durable_name": "c"}),
        (ConsumerConfig(ack_wait=2.5), {"durable": "c"}),
        ({"ack_wait": 2_500_000_000, "durable_name": "c"}, {}),
    ]
    for config, fields in ways:
        async with await js.subscribe(subject, config, delete_on_end=True, **fields):
            assert (await js.consumer(stream, "c")).cached_info.config.ack_wait == 2.5
    with raises(InvalidValue):
        await js.subscribe(subject, {"ack_wait": "soon"})


@check()
async def check_subscribe_ordered(ctx: Context) -> None:
    """With ordered=True each message is delivered once and in order, and nothing is left."""
    js, subject = await filled_stream(ctx, 500)
    async with await js.subscribe(subject, ordered=True) as messages:
        for payload in numbers(500):
            msg = await messages.next(WAIT)
            assert (msg.data, msg.settled) == (payload, True)
        [info] = await js.consumers(name_of(ctx))
        config = info.config
        assert (config.ack_policy, config.max_deliver, config.mem_storage) == ("none", 1, True)
        assert (config.flow_control, config.idle_heartbeat) == (True, 5.0)
        await fill(ctx, js, [b"later"])
        assert (await messages.next(WAIT)).data == b"later"

    async def gone() -> bool:
        return await js.consumer_names(name_of(ctx)) == []

    await until(await ctx.connect(js_server(ctx)), gone)


@check()
async def check_subscribe_ordered_resumes(ctx: Context) -> None:
    """A deleted consumer or lost connection neither loses nor duplicates a message."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    await new_stream(ctx, js)
    other = await open_js(ctx)
    await fill(ctx, other, numbers(20))
    asked: dict[str, Any] = {"idle_heartbeat": 0.2, "ordered": True}
    async with await js.subscribe(f"{ctx.subject}.x", **asked) as messages:
        assert [(await messages.next(WAIT)).data for _ in range(20)] == numbers(20)
        [name] = await other.consumer_names(name_of(ctx))
        await other.delete_consumer(name_of(ctx), name)
        await fill(ctx, other, [b"a", b"b"])
        assert [(await messages.next(WAIT)).data for _ in range(2)] == [b"a", b"b"]
        await client.force_reconnect()
        await fill(ctx, other, [b"c", b"d"])
        assert [(await messages.next(WAIT)).data for _ in range(2)] == [b"c", b"d"]


@check()
async def check_subscribe_ordered_rejected_locally(ctx: Context) -> None:
    """Settings that contradict an ordered consumer are rejected with the reason."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    wrong: list[dict[str, Any]] = [
        {"durable": "d"},
        {"name": "n"},
        {"queue": "q"},
        {"bind": True},
        {"deliver_subject": "to.me"},
        {"ack_policy": "explicit"},
        {"max_deliver": 2},
        {"flow_control": False},
    ]
    sent = client.stats.out_msgs
    for asked in wrong:
        with raises(InvalidValue) as caught:
            await js.subscribe(f"{ctx.subject}.x", ordered=True, **asked)
        [(name, value)] = asked.items()
        assert f"ordered with {name}={value!r}: " in str(caught.error)
    assert client.stats.out_msgs == sent
