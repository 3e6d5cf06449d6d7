"""subscribe(): finding a consumer, binding to it, creating it, and who deletes it in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream import ConsumerConfig
from jetstream.binding import bind
from jetstream.errors import (
    BindRefused,
    ConfigMismatch,
    ConsumerNotFound,
    DuplicateSubscription,
    FlowControlWithQueue,
    HeartbeatWithQueue,
    PullOfPushConsumer,
    PushOfPullConsumer,
    QueueMismatch,
    QueueNotServed,
    QueueRequired,
    SeveralStreams,
    StreamNotFound,
    SubjectMismatch,
    WorkQueueConflict,
)
from jetstream.push import PushWarning
from natsproto.errors import InvalidState, InvalidValue, LocalError, PermissionDenied
from natsproto.testing.context import WAIT, Context, raises
from natsproto.testing.streams import fill, js_server, name_of, new_stream, numbers, open_js, until
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from jetstream import JetStream
    from jetstream.pushing import PushMessages

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


async def _begin(ctx: Context, count: int = 0) -> tuple[JetStream, str]:
    """A stream with that many messages, and the subject of all of them."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(count))
    return js, f"{ctx.subject}.x"


async def _take(messages: PushMessages, count: int) -> list[bytes]:
    """The payloads of the next messages, acknowledged."""
    taken: list[bytes] = []
    for _ in range(count):
        msg = await messages.next(WAIT)
        await msg.ack_sync()
        taken.append(msg.data)
    return taken


async def _unbound(ctx: Context, js: JetStream, name: str) -> None:
    """Until the server knows that nobody listens any more."""

    async def look() -> bool:
        return not (await js.consumer(name_of(ctx), name)).cached_info.push_bound

    await until(await ctx.connect(js_server(ctx)), look)


@check()
async def check_bind_twice(ctx: Context) -> None:
    """A consumer without queue group has one subscriber at a time."""
    js, subject = await _begin(ctx, 4)
    one: dict[str, Any] = {"durable": "c", "max_ack_pending": 1, "ack_wait": 0.3}
    async with await js.subscribe(subject, **one) as messages:
        assert await _take(messages, 2) == numbers(2)
        for bound in (True, False):
            with raises(DuplicateSubscription) as caught:
                await js.subscribe(subject, durable="c", bind=bound)
        assert (caught.error.stream, caught.error.consumer) == (name_of(ctx), "c")
    await _unbound(ctx, js, "c")
    async with await js.subscribe(subject, **one) as messages:
        assert await _take(messages, 2) == numbers(4)[2:]


@check()
async def check_bind_without_the_queue(ctx: Context) -> None:
    """A consumer of a queue group wants its members to say so."""
    js, subject = await _begin(ctx)
    async with await js.subscribe(subject, durable="c", queue="q"):
        with raises(QueueRequired) as caught:
            await js.subscribe(subject, durable="c")
    assert caught.error.found == "q"
    with raises(QueueRequired):  # nor when nobody is there
        await js.subscribe(subject, durable="c")


@check()
async def check_bind_to_another_queue(ctx: Context) -> None:
    """Members of one queue group are not members of another."""
    js, subject = await _begin(ctx)
    async with await js.subscribe(subject, durable="c", queue="q"):
        with raises(QueueMismatch) as caught:
            await js.subscribe(subject, durable="c", queue="other")
    assert (caught.error.wanted, caught.error.found) == ("other", "q")


@check()
async def check_bind_a_queue_to_none(ctx: Context) -> None:
    """A consumer for one subscriber takes no queue group."""
    js, subject = await _begin(ctx)
    async with await js.subscribe(subject, durable="c"):
        with raises(QueueNotServed):
            await js.subscribe(subject, durable="c", queue="q")


@check()
async def check_bind_to_another_subject(ctx: Context) -> None:
    """The filter of the consumer is the subject that was asked for."""
    js, subject = await _begin(ctx)
    stream = name_of(ctx)
    async with await js.subscribe(subject, durable="c"):
        pass
    await _unbound(ctx, js, "c")
    with raises(SubjectMismatch) as caught:
        await js.subscribe(f"{ctx.subject}.*", durable="c")
    assert (caught.error.wanted, caught.error.found) == ([f"{ctx.subject}.*"], [subject])
    async with await js.subscribe(stream=stream, durable="c"):
        pass  # whoever names no subject takes what there is


@check(since=(2, 10))
async def check_bind_to_other_filters(ctx: Context) -> None:
    """The filters of the consumer are those that were asked for, in any order."""
    js, _ = await _begin(ctx)
    filters = [f"{ctx.subject}.{token}" for token in "abc"]
    asked: dict[str, Any] = {"stream": name_of(ctx), "durable": "c"}
    async with await js.subscribe(filter_subjects=filters, **asked):
        pass
    await _unbound(ctx, js, "c")
    async with await js.subscribe(filter_subjects=filters[::-1], **asked):
        pass
    await _unbound(ctx, js, "c")
    with raises(SubjectMismatch):
        await js.subscribe(filter_subjects=filters[:2], **asked)
    with raises(SubjectMismatch):
        await js.subscribe(filters[0], **asked)


@check()
async def check_bind_push_to_pull(ctx: Context) -> None:
    """A pull consumer pushes nothing."""
    js, subject = await _begin(ctx)
    await js.create_consumer(name_of(ctx), durable_name="c")
    with raises(PushOfPullConsumer):
        await js.subscribe(subject, durable="c")


@check()
async def check_bind_pull_to_push(ctx: Context) -> None:
    """A push consumer cannot be pulled from."""
    js, subject = await _begin(ctx)
    async with await js.subscribe(subject, durable="c"):
        info = (await js.consumer(name_of(ctx), "c")).cached_info
        with raises(PullOfPushConsumer):
            bind(info, subject=subject, pull=True)


@check()
async def check_bind_to_another_configuration(ctx: Context) -> None:
    """A field that was asked for and is another: the error names it, and nothing is changed."""
    js, subject = await _begin(ctx)
    async with await js.subscribe(subject, durable="c", max_deliver=5, description="d"):
        pass
    await _unbound(ctx, js, "c")
    before = (await js.consumer(name_of(ctx), "c")).cached_info.config
    others: list[tuple[str, Any, Any]] = [
        ("ack_wait", 7.0, 30.0),
        ("max_deliver", 4, 5),
        ("max_ack_pending", 10, 1000),
        ("ack_policy", "all", "explicit"),
        ("deliver_policy", "new", "all"),
        ("replay_policy", "original", "instant"),
        ("idle_heartbeat", 1.0, 0.0),
        ("headers_only", True, False),
        ("description", "e", "d"),
        ("sample_freq", "5", ""),
        ("rate_limit_bps", 1000, 0),
        ("backoff", [1.0], []),
        ("mem_storage", True, False),
        ("num_replicas", 3, 1),
        ("inactive_threshold", 60.0, 0.0),
        ("deliver_subject", "to.me", before.deliver_subject),
    ]
    for name, wanted, found in others:
        with raises(ConfigMismatch) as caught:
            await js.subscribe(subject, ConsumerConfig(**{name: wanted}), durable="c")
        assert (caught.error.field, caught.error.wanted) == (name, wanted)
        assert caught.error.found == found, name
    assert (await js.consumer(name_of(ctx), "c")).cached_info.config == before


@check()
async def check_bind_to_the_same_configuration(ctx: Context) -> None:
    """Whatever the server makes of a configuration, it fits the one that it was made from."""
    js, subject = await _begin(ctx)
    configs: list[dict[str, Any]] = [
        {},
        {"max_deliver": 0, "ack_wait": 0.0, "max_ack_pending": 0, "num_replicas": 0},
        {"max_deliver": -3, "max_ack_pending": -1},
        {"backoff": [0.5, 1.0], "ack_wait": 7.0, "max_deliver": 3},
        {"sample_freq": "30%", "description": "d", "headers_only": True},
        {"ack_policy": "none", "rate_limit_bps": 10**6, "replay_policy": "original"},
        {"deliver_policy": "by_start_sequence", "opt_start_seq": 7, "ack_policy": "all"},
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-02T03:04:05.6+02:00"},
        {"deliver_policy": "last_per_subject", "idle_heartbeat": 1 / 3, "flow_control": True},
        {"mem_storage": True, "num_replicas": 1, "inactive_threshold": 60.0},
        {"deliver_subject": f"{name_of(ctx)}.to.me"},
    ]
    for n, config in enumerate(configs):
        name = f"c{n}"
        async with await js.subscribe(subject, config=None, durable=name, **config):
            pass
        await _unbound(ctx, js, name)
        async with await js.subscribe(subject, durable=name, bind=True, **config):
            pass


@check(since=(2, 10))
async def check_bind_with_metadata(ctx: Context) -> None:
    """What the server adds to the metadata does not count."""
    js, subject = await _begin(ctx)
    for _ in range(2):
        async with await js.subscribe(subject, durable="c", metadata={"a": "b"}):
            pass
        await _unbound(ctx, js, "c")
    with raises(ConfigMismatch):
        await js.subscribe(subject, durable="c", metadata={"a": "c"})


@check()
async def check_bind_flow_control_with_queue(ctx: Context) -> None:
    """Flow control and queue groups exclude each other: asked for, and found."""
    client = await ctx.connect(js_server(ctx))
    js = ctx.jetstream(client)
    await new_stream(ctx, js)
    sent = client.stats.out_msgs
    with raises(FlowControlWithQueue):
        await js.subscribe(f"{ctx.subject}.x", queue="q", flow_control=True, idle_heartbeat=1.0)
    assert client.stats.out_msgs == sent
    config: dict[str, Any] = {"deliver_subject": f"{name_of(ctx)}.to", "deliver_group": "q"}
    await js.create_consumer(
        name_of(ctx), durable_name="q", flow_control=True, idle_heartbeat=1.0, **config
    )
    with raises(FlowControlWithQueue):
        await js.subscribe(f"{ctx.subject}.x", queue="q")


@check()
async def check_bind_heartbeat_with_queue(ctx: Context) -> None:
    """Heartbeats and queue groups exclude each other: asked for, and found."""
    js, subject = await _begin(ctx)
    with raises(HeartbeatWithQueue):
        await js.subscribe(subject, queue="q", idle_heartbeat=1.0)
    config: dict[str, Any] = {"deliver_subject": f"{name_of(ctx)}.to", "deliver_group": "q"}
    await js.create_consumer(name_of(ctx), durable_name="q", idle_heartbeat=1.0, **config)
    with raises(HeartbeatWithQueue) as caught:
        await js.subscribe(subject, queue="q")
    assert isinstance(caught.error, BindRefused)


@check()
async def check_bind_to_nothing(ctx: Context) -> None:
    """With bind nothing is created."""
    js, subject = await _begin(ctx)
    with raises(ConsumerNotFound):
        await js.subscribe(subject, durable="c", bind=True)
    with raises(ConsumerNotFound):
        await js.subscribe(subject, queue="q", bind=True)
    with raises(StreamNotFound):
        await js.subscribe(subject, stream="nowhere", durable="c", bind=True)
    assert await js.consumer_names(name_of(ctx)) == []


@check()
async def check_subscribe_without_a_stream(ctx: Context) -> None:
    """A subject that no stream takes, or several: said so, by name."""
    js = await open_js(ctx)
    with raises(StreamNotFound):
        await js.subscribe(f"{ctx.subject}.x")
    for token in "ab":
        name = f"{name_of(ctx)}-{token}"
        await new_stream(ctx, js, name=name, subjects=[f"{ctx.subject}.{token}"])
    with raises(SeveralStreams) as caught:
        await js.subscribe(f"{ctx.subject}.*")
    assert sorted(caught.error.streams) == [f"{name_of(ctx)}-a", f"{name_of(ctx)}-b"]
    async with await js.subscribe(f"{ctx.subject}.*", stream=f"{name_of(ctx)}-b") as messages:
        await js.publish(f"{ctx.subject}.b", b"x")
        assert await _take(messages, 1) == [b"x"]


@check()
async def check_subscribe_refused_locally(ctx: Context) -> None:
    """What cannot be is refused before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    js = ctx.jetstream(client)
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
    """Many begin at the same moment: one creates the consumer, the others find it."""
    js, subject = await _begin(ctx)
    tasks = [ctx.start(_member, await open_js(ctx), subject, "q") for _ in range(6)]
    members = [await task.result() for task in tasks]
    assert await js.consumer_names(name_of(ctx)) == ["q"]
    await fill(ctx, js, numbers(300))
    for member in members:
        msg = await member.next(WAIT)  # each of them has its part
        await msg.ack()
    for member in members:
        await member.unsubscribe()
    assert await js.consumer_names(name_of(ctx)) == ["q"]


@check()
async def check_subscribe_goes_on(ctx: Context) -> None:
    """A durable consumer remembers where it was: the next subscription goes on there."""
    js, subject = await _begin(ctx, 10)
    for n in range(5):
        asked: dict[str, Any] = {"durable": "c", "ack_wait": 0.3, "max_ack_pending": 1}
        async with await js.subscribe(subject, **asked) as messages:
            assert await _take(messages, 2) == numbers(10)[2 * n : 2 * n + 2]
            await messages.stop(nak=True)
        await _unbound(ctx, js, "c")


@check()
async def check_subscribe_deletes_its_own(ctx: Context) -> None:
    """An ephemeral consumer goes with its subscription: by unsubscribe, and at a block's end."""
    js, subject = await _begin(ctx, 3)
    stream = name_of(ctx)
    ways: list[dict[str, Any]] = [{}, {"name": "n"}]
    for asked in ways:
        async with await js.subscribe(subject, **asked) as messages:
            assert await _take(messages, 1) == [b"0"]
            assert len(await js.consumer_names(stream)) == 1
        assert await js.consumer_names(stream) == []
        messages = await js.subscribe(subject, **asked)
        await messages.unsubscribe()
        assert await js.consumer_names(stream) == []
        with raises(InvalidState):
            await messages.next(WAIT)


@check()
async def check_subscribe_keeps_it_on_demand(ctx: Context) -> None:
    """delete_on_end=False leaves even an ephemeral one to its inactive_threshold."""
    js, subject = await _begin(ctx)
    asked: dict[str, Any] = {"name": "n", "delete_on_end": False, "inactive_threshold": 60.0}
    async with await js.subscribe(subject, **asked):
        pass
    assert await js.consumer_names(name_of(ctx)) == ["n"]


@check()
async def check_subscribe_keeps_durables(ctx: Context) -> None:
    """One with a durable name or a queue group stays, unless it is to be deleted."""
    js, subject = await _begin(ctx)
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
async def check_subscribe_keeps_what_it_found(ctx: Context) -> None:
    """What was there before the call is not the call's to delete."""
    js, subject = await _begin(ctx)
    stream = name_of(ctx)
    config: dict[str, Any] = {"deliver_subject": f"{stream}.to", "inactive_threshold": 60.0}
    await js.create_consumer(stream, name="n", **config)
    for bound in (True, False):
        messages = await js.subscribe(subject, name="n", delete_on_end=True, bind=bound)
        await messages.unsubscribe()
        assert await js.consumer_names(stream) == ["n"]
        await _unbound(ctx, js, "n")


@check()
async def check_subscribe_drain(ctx: Context) -> None:
    """After drain nothing new comes, what came can be taken, and then the consumer is deleted."""
    js, subject = await _begin(ctx, 20)
    stream = name_of(ctx)
    messages = await js.subscribe(subject)
    assert await _take(messages, 5) == numbers(5)
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
    """If nothing waits to be taken, the consumer is deleted by drain itself."""
    js, subject = await _begin(ctx)
    messages = await js.subscribe(subject)
    await messages.drain()
    assert await js.consumer_names(name_of(ctx)) == []
    assert messages.closed


@check()
async def check_subscribe_deletion_that_fails(ctx: Context) -> None:
    """A consumer that cannot be deleted is told as an event; the subscription has ended."""
    server = ctx.shared_server(**_DENIED)
    js = ctx.jetstream(await ctx.connect(server, user="all", password="p"))
    stream = await new_stream(ctx, js)
    denied = ctx.jetstream(await ctx.connect(server, user="some", password="p"))
    messages = await denied.subscribe(f"{ctx.subject}.x")
    await messages.unsubscribe()
    event = await messages.events.next(WAIT)
    assert isinstance(event, PushWarning)
    assert isinstance(event.error, PermissionDenied)
    assert messages.closed
    await stream.delete()


@check()
async def check_subscribe_deleted_meanwhile(ctx: Context) -> None:
    """If the consumer, or its stream, went before, its deletion is no failure."""
    js, subject = await _begin(ctx)
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
    """A creation that the server refuses leaves no subscription and no consumer."""
    server = js_server(ctx)
    client = await ctx.connect(server, name=ctx.subject)
    js = ctx.jetstream(client)
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
async def check_subscribe_by_dict_and_object(ctx: Context) -> None:
    """The configuration is given as keywords, as a ConsumerConfig, or as the server's dict."""
    js, subject = await _begin(ctx)
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
