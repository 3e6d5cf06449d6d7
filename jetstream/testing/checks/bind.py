"""subscribe(): finding a consumer, binding to it, creating it and deleting it."""

from __future__ import annotations

from typing import Any

from jetstream import ConsumerConfig
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
    StreamNotFound,
    SubjectMismatch,
)
from jetstream.subscribe.binding import bind
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    filled_stream,
    give_back,
    js_server,
    name_of,
    new_stream,
    numbers,
    take_pushed,
    unbound,
)
from jetstream.testing.suite import check
from natsproto.testing.context import Context, raises


@check()
async def check_bind_twice(ctx: Context) -> None:
    """A consumer without queue group has one subscriber at a time."""
    js, subject = await filled_stream(ctx, 4)
    one: dict[str, Any] = {"durable": "c", "max_ack_pending": 1}
    async with await js.subscribe(subject, **one) as messages:
        assert await take_pushed(messages, 2) == numbers(2)
        for bound in (True, False):
            with raises(DuplicateSubscription) as caught:
                await js.subscribe(subject, durable="c", bind=bound)
        assert (caught.error.stream, caught.error.consumer) == (name_of(ctx), "c")
        await give_back(messages)
    await unbound(ctx, js, "c")
    async with await js.subscribe(subject, **one) as messages:
        assert await take_pushed(messages, 2) == numbers(4)[2:]


@check()
async def check_bind_without_the_queue(ctx: Context) -> None:
    """A consumer with a queue group requires subscribers to name it."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, durable="c", queue="q"):
        with raises(QueueRequired) as caught:
            await js.subscribe(subject, durable="c")
    assert caught.error.found == "q"
    with raises(QueueRequired):  # not even without a subscriber
        await js.subscribe(subject, durable="c")


@check()
async def check_bind_to_another_queue(ctx: Context) -> None:
    """A subscriber must name the queue group of the consumer."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, durable="c", queue="q"):
        with raises(QueueMismatch) as caught:
            await js.subscribe(subject, durable="c", queue="other")
    assert (caught.error.wanted, caught.error.found) == ("other", "q")


@check()
async def check_bind_a_queue_to_a_consumer_without_one(ctx: Context) -> None:
    """A consumer without a queue group rejects one."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, durable="c"):
        with raises(QueueNotServed):
            await js.subscribe(subject, durable="c", queue="q")


@check()
async def check_bind_to_another_subject(ctx: Context) -> None:
    """The filter of the consumer must be the requested subject."""
    js, subject = await filled_stream(ctx)
    stream = name_of(ctx)
    async with await js.subscribe(subject, durable="c"):
        pass
    await unbound(ctx, js, "c")
    with raises(SubjectMismatch) as caught:
        await js.subscribe(f"{ctx.subject}.*", durable="c")
    assert (caught.error.wanted, caught.error.found) == ([f"{ctx.subject}.*"], [subject])
    async with await js.subscribe(stream=stream, durable="c"):
        pass  # without a subject, the consumer's filter is accepted


@check(since=(2, 10))
async def check_bind_to_other_filters(ctx: Context) -> None:
    """The filters of the consumer must be the requested ones, in any order."""
    js, _ = await filled_stream(ctx)
    filters = [f"{ctx.subject}.{token}" for token in "abc"]
    asked: dict[str, Any] = {"stream": name_of(ctx), "durable": "c"}
    async with await js.subscribe(filter_subjects=filters, **asked):
        pass
    await unbound(ctx, js, "c")
    async with await js.subscribe(filter_subjects=filters[::-1], **asked):
        pass
    await unbound(ctx, js, "c")
    with raises(SubjectMismatch):
        await js.subscribe(filter_subjects=filters[:2], **asked)
    with raises(SubjectMismatch):
        await js.subscribe(filters[0], **asked)


@check()
async def check_bind_push_to_pull(ctx: Context) -> None:
    """A pull consumer cannot be used for a push subscription."""
    js, subject = await filled_stream(ctx)
    await js.create_consumer(name_of(ctx), durable_name="c")
    with raises(PushOfPullConsumer):
        await js.subscribe(subject, durable="c")


@check()
async def check_bind_pull_to_push(ctx: Context) -> None:
    """A push consumer cannot be pulled from."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, durable="c"):
        info = (await js.consumer(name_of(ctx), "c")).cached_info
        with raises(PullOfPushConsumer):
            bind(info, subject=subject, pull=True)


@check()
async def check_bind_to_another_configuration(ctx: Context) -> None:
    """If a requested field differs, the error names it, and nothing is changed."""
    js, subject = await filled_stream(ctx)
    async with await js.subscribe(subject, durable="c", max_deliver=5, description="d"):
        pass
    await unbound(ctx, js, "c")
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
    """However the server adjusts a configuration, it matches the original one."""
    js, subject = await filled_stream(ctx)
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
        await unbound(ctx, js, name)
        async with await js.subscribe(subject, durable=name, bind=True, **config):
            pass


@check(since=(2, 10))
async def check_bind_with_metadata(ctx: Context) -> None:
    """A difference in metadata is a mismatch, except for the fields that the server adds."""
    js, subject = await filled_stream(ctx)
    for _ in range(2):
        async with await js.subscribe(subject, durable="c", metadata={"a": "b"}):
            pass
        await unbound(ctx, js, "c")
    with raises(ConfigMismatch):
        await js.subscribe(subject, durable="c", metadata={"a": "c"})


@check()
async def check_bind_flow_control_with_queue(ctx: Context) -> None:
    """Flow control excludes queue groups, whether it is requested or found."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
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
    """Heartbeats exclude queue groups, whether they are requested or found."""
    js, subject = await filled_stream(ctx)
    with raises(HeartbeatWithQueue):
        await js.subscribe(subject, queue="q", idle_heartbeat=1.0)
    config: dict[str, Any] = {"deliver_subject": f"{name_of(ctx)}.to", "deliver_group": "q"}
    await js.create_consumer(name_of(ctx), durable_name="q", idle_heartbeat=1.0, **config)
    with raises(HeartbeatWithQueue) as caught:
        await js.subscribe(subject, queue="q")
    assert isinstance(caught.error, BindRefused)


@check()
async def check_bind_to_nothing(ctx: Context) -> None:
    """With bind no consumer is created."""
    js, subject = await filled_stream(ctx)
    with raises(ConsumerNotFound):
        await js.subscribe(subject, durable="c", bind=True)
    with raises(ConsumerNotFound):
        await js.subscribe(subject, queue="q", bind=True)
    with raises(StreamNotFound):
        await js.subscribe(subject, stream="nowhere", durable="c", bind=True)
    assert await js.consumer_names(name_of(ctx)) == []
