"""Consumers: their life and their configuration."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jetstream import Timestamp
from jetstream.errors import (
    ApiError,
    ConsumerDoesNotExist,
    ConsumerExists,
    ConsumerLimitReached,
    ConsumerNotFound,
    WorkQueueConflict,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import (
    counted,
    fill,
    name_of,
    new_consumer,
    new_stream,
    numbers,
    open_js,
)
from jetstream.testing.suite import check
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue, LocalError
from natsproto.testing.context import WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream import JetStream, Stream


async def _stream(ctx: Context) -> tuple[JetStream, Stream]:
    js = await open_js(ctx)
    return js, await new_stream(ctx, js)


@check(since=(2, 10))
async def check_consumer_create(ctx: Context) -> None:
    """A consumer is created with its configuration, and found again."""
    js, stream = await _stream(ctx)
    await fill(ctx, js, numbers(3))
    consumer = await stream.create_consumer(
        durable_name="c", ack_wait=12.5, max_deliver=3, metadata={"team": "blue"}
    )
    found = await js.consumer(stream.name, "c")
    for info in (consumer.cached_info, found.cached_info, await consumer.info()):
        assert (info.name, info.stream_name, info.num_pending) == ("c", stream.name, 3)
        config = info.config
        assert (config.durable_name, config.ack_wait, config.max_deliver) == ("c", 12.5, 3)
        assert config.ack_policy == "explicit"
        assert config.metadata["team"] == "blue"
    assert (consumer.name, consumer.stream) == ("c", stream.name)


@check(since=(2, 10))
async def check_consumer_create_twice(ctx: Context) -> None:
    """Creating the same durable again succeeds; another configuration is rejected."""
    _, stream = await _stream(ctx)
    await stream.create_consumer(durable_name="c")
    await stream.create_consumer(durable_name="c")
    with raises(ConsumerExists) as caught:
        await stream.create_consumer(durable_name="c", max_deliver=5)
    assert (caught.error.code, caught.error.err_code) == (400, 10148)
    assert "max_deliver is " in str(caught.error)
    assert await stream.consumer_names() == ["c"]


@check()
async def check_consumer_update(ctx: Context) -> None:
    """An update changes the fields that may change; the server rejects others."""
    js, stream = await _stream(ctx)
    await stream.create_consumer(durable_name="c", max_deliver=5)
    updated = await stream.update_consumer(durable_name="c", max_deliver=7)
    assert updated.cached_info.config.max_deliver == 7
    assert (await js.consumer(stream.name, "c")).cached_info.config.max_deliver == 7
    with raises(ApiError):
        await stream.update_consumer(durable_name="c", deliver_policy="new")


@check()
async def check_consumer_update_by_keywords(ctx: Context) -> None:
    """Keywords change the fields that they name, and no other."""
    _, stream = await _stream(ctx)
    await stream.create_consumer(durable_name="c", max_deliver=5, description="mine", ack_wait=7.0)
    for change in (stream.update_consumer, stream.create_or_update_consumer):
        for limit in (50, 60):
            changed = (await change(durable_name="c", max_ack_pending=limit)).cached_info.config
            assert (changed.max_ack_pending, changed.max_deliver) == (limit, 5)
            assert (changed.description, changed.ack_wait) == ("mine", 7.0)


@check(since=(2, 10))
async def check_consumer_update_missing(ctx: Context) -> None:
    """Updating a missing consumer fails and does not create it."""
    _, stream = await _stream(ctx)
    with raises(ConsumerDoesNotExist) as caught:
        await stream.update_consumer(durable_name="c")
    assert caught.error.err_code == 10149
    with raises(InvalidValue):
        await stream.update_consumer(max_deliver=5)
    assert await stream.consumer_names() == []


@check()
async def check_consumer_create_or_update(ctx: Context) -> None:
    """create_or_update_consumer works whether or not the consumer exists."""
    _, stream = await _stream(ctx)
    for limit in (5, 7):
        consumer = await stream.create_or_update_consumer(durable_name="c", max_deliver=limit)
        assert consumer.cached_info.config.max_deliver == limit


@check()
async def check_create_after_update(ctx: Context) -> None:
    """What an update made is the same as what a create with these fields makes."""
    js, stream = await _stream(ctx)
    fields: dict[str, Any] = {"durable_name": "c", "filter_subject": ctx.subject}
    for _ in range(2):
        await stream.create_or_update_consumer(**fields)
    await stream.create_consumer(**fields)
    settings: dict[str, Any] = {"name": stream.name, "subjects": [ctx.subject]}
    settings["storage"] = "memory"
    await js.update_stream(**settings, sources=[])
    await js.create_stream(**settings)


@check(since=(2, 10))
async def check_consumer_ephemeral(ctx: Context) -> None:
    """A consumer without a name gets one, and is removed when it is unused."""
    js, stream = await _stream(ctx)
    one, two = await stream.create_consumer(), await stream.create_consumer()
    assert one.name != two.name
    assert sorted(await stream.consumer_names()) == sorted([one.name, two.name])
    assert one.cached_info.config.durable_name == ""
    assert one.cached_info.config.inactive_threshold > 0
    named = await js.create_consumer(stream.name, name="mine", inactive_threshold=60.0)
    assert named.name == "mine"
    with raises(ConsumerExists):
        await js.create_consumer(stream.name, name="mine", inactive_threshold=30.0)


@check()
async def check_consumer_filter(ctx: Context) -> None:
    """A consumer with a filter gets only the messages of that subject."""
    js, stream = await _stream(ctx)
    for token in "abab":
        await fill(ctx, js, [token.encode()], token)
    consumer = await stream.create_consumer(filter_subject=ctx.subject + ".a")
    assert consumer.cached_info.config.filter_subject == ctx.subject + ".a"
    assert consumer.cached_info.num_pending == 2
    assert [msg.data for msg in await consumer.fetch(5, no_wait=True)] == [b"a", b"a"]
    wild = await stream.create_consumer(filter_subject=ctx.subject + ".*")
    assert wild.cached_info.num_pending == 4


@check(since=(2, 10))
async def check_consumer_filters(ctx: Context) -> None:
    """A consumer can have several filters."""
    js, stream = await _stream(ctx)
    for token in "abc":
        await fill(ctx, js, [token.encode()], token)
    filters = [ctx.subject + ".a", ctx.subject + ".c"]
    consumer = await stream.create_consumer(filter_subjects=filters)
    assert consumer.cached_info.config.filter_subjects == filters
    assert [msg.data for msg in await consumer.fetch(5, no_wait=True)] == [b"a", b"c"]
    with raises(ApiError) as caught:
        await stream.create_consumer(filter_subjects=[ctx.subject + ".a", ctx.subject + ".>"])
    assert caught.error.err_code == 10138


@check()
async def check_consumer_deliver_policies(ctx: Context) -> None:
    """A consumer starts where its deliver policy says."""
    js, stream = await _stream(ctx)
    for token in "abab":
        await fill(ctx, js, [token.encode()], token)
    third = (await stream.get_msg(3)).time
    policies: list[tuple[dict[str, Any], list[int]]] = [
        ({"deliver_policy": "all"}, [1, 2, 3, 4]),
        ({"deliver_policy": "last"}, [4]),
        ({"deliver_policy": "new"}, []),
        ({"deliver_policy": "last_per_subject", "filter_subject": ctx.subject + ".>"}, [3, 4]),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 2}, [2, 3, 4]),
        ({"deliver_policy": "by_start_time", "opt_start_time": third}, [3, 4]),
    ]
    for config, expected in policies:
        consumer = await stream.create_consumer(**config)
        batch = await consumer.fetch(9, no_wait=True)
        assert [msg.metadata.stream_seq for msg in batch] == expected, config


@check()
async def check_consumers_are_listed(ctx: Context) -> None:
    """All consumers of a stream are listed, even if one response cannot hold them."""
    js, stream = await _stream(ctx)
    names = [f"c{n:03}" for n in range(260)]
    for name in names:
        await stream.create_consumer(durable_name=name)
    assert sorted(await stream.consumer_names()) == names
    infos = await js.consumers(stream.name)
    assert sorted(info.name for info in infos) == names
    assert {info.stream_name for info in infos} == {stream.name}


@check()
async def check_consumer_info(ctx: Context) -> None:
    """info() asks the server; cached_info is the result of the last call."""
    js, consumer = await new_consumer(ctx)
    await fill(ctx, js, numbers(2))
    assert consumer.cached_info.num_pending == 0
    await counted(ctx, consumer, 2)
    assert consumer.cached_info.num_pending == 2


@check()
async def check_consumer_delete(ctx: Context) -> None:
    """A consumer can be deleted by name or through its handle."""
    js, consumer = await new_consumer(ctx)
    await consumer.delete()
    for call in (consumer.info, consumer.delete):
        with raises(ConsumerNotFound) as caught:
            await call()
        assert (caught.error.code, caught.error.err_code) == (404, 10014)
    with raises(ConsumerNotFound):
        await js.consumer(name_of(ctx), "c")
    with raises(ConsumerNotFound):
        await js.delete_consumer(name_of(ctx), "c")


@check(since=(2, 11))
async def check_consumer_pause(ctx: Context) -> None:
    """A paused consumer delivers no message until it is resumed."""
    js, consumer = await new_consumer(ctx, 3)
    until = Timestamp(time.time_ns() + 60 * 10**9)
    paused = await js.pause_consumer(name_of(ctx), "c", until)
    assert paused.paused
    assert paused.pause_until == until
    assert 50 < paused.pause_remaining <= 60
    info = await consumer.info()
    assert info.paused
    assert info.config.pause_until == until
    assert list(await consumer.fetch(3, expires=0.1)) == []
    assert list(await consumer.fetch(3, no_wait=True)) == []
    assert not (await js.resume_consumer(name_of(ctx), "c")).paused
    assert len(await consumer.fetch(3, expires=WAIT)) == 3


@check(since=(2, 14))
async def check_consumer_reset(ctx: Context) -> None:
    """A reset restarts delivery after the ack floor or at a sequence."""
    js, consumer = await new_consumer(ctx, 5)
    batch = await consumer.fetch(4, no_wait=True)
    await batch[0].ack_sync()
    info = await js.reset_consumer(name_of(ctx), "c")
    assert info.num_ack_pending == 0
    again = await consumer.fetch(9, no_wait=True)
    assert [msg.data for msg in again] == [b"1", b"2", b"3", b"4"]
    info = await js.reset_consumer(name_of(ctx), "c", 4)
    assert info.reset_seq == 4
    assert [msg.data for msg in await consumer.fetch(9, no_wait=True)] == [b"3", b"4"]


@check(since=(2, 11))
async def check_consumer_unpin(ctx: Context) -> None:
    """The pin of a priority group is taken from the client that holds it."""
    js, consumer = await new_consumer(
        ctx, 3, priority_policy="pinned_client", priority_groups=["jobs"], priority_timeout=60.0
    )
    assert len(await consumer.fetch(1, expires=WAIT, group="jobs")) == 1
    [group] = (await consumer.info()).priority_groups
    assert group.group == "jobs"
    assert group.pinned_client_id
    await js.unpin_consumer(name_of(ctx), "c", "jobs")
    [group] = (await consumer.info()).priority_groups
    assert group.pinned_client_id == ""
    with raises(ApiError):
        await js.unpin_consumer(name_of(ctx), "c", "others")


@check()
async def check_consumer_rejected_locally(ctx: Context) -> None:
    """Configurations that the server would reject are not sent."""
    client = await ctx.client()
    js = jetstream_of(client)
    wrong: list[tuple[type[LocalError], dict[str, Any]]] = [
        (InvalidName, {"durable_name": "a.b"}),
        (InvalidValue, {"durable_name": "a", "name": "b"}),
        (InvalidValue, {"filter_subject": "a", "filter_subjects": ["b"]}),
        (InvalidSubject, {"filter_subject": "a..b"}),
        (InvalidValue, {"deliver_policy": "by_start_sequence"}),
        (InvalidValue, {"deliver_policy": "last_per_subject"}),
        (InvalidValue, {"idle_heartbeat": 1.0}),
        (InvalidValue, {"priority_policy": "overflow"}),
        (InvalidValue, {"deliver_subject": "d", "max_waiting": 1}),
        (InvalidValue, {"ack_polcy": "none"}),
    ]
    sent = client.stats.out_msgs
    for kind, config in wrong:
        with raises(kind):
            await js.create_consumer("S", **config)
    with raises(InvalidName):
        await js.create_consumer("a b", durable_name="c")
    for call in (js.consumer, js.delete_consumer, js.resume_consumer):
        with raises(InvalidName):
            await call("S", "a.b")
    assert client.stats.out_msgs == sent


@check()
async def check_consumer_rejected_by_the_server(ctx: Context) -> None:
    """Configurations that only the server can reject raise errors with its codes."""
    js = await open_js(ctx)
    one = [ctx.subject + ".1"]
    work = await new_stream(ctx, js, subjects=one, retention="workqueue", max_consumers=1)
    await work.create_consumer(durable_name="c")
    with raises(ConsumerLimitReached):
        await work.create_consumer(durable_name="d")
    other = name_of(ctx) + "-2"
    two = [ctx.subject + ".2"]
    work = await new_stream(ctx, js, name=other, subjects=two, retention="workqueue")
    await work.create_consumer(durable_name="c")
    with raises(WorkQueueConflict) as caught:
        await work.create_consumer(durable_name="d")
    assert (caught.error.code, caught.error.err_code) == (400, 10099)
