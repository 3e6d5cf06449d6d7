"""Streams: creation, updates, deletion, and configurations that are refused."""

from __future__ import annotations

from typing import Any

from jetstream import StreamConfig
from jetstream.errors import (
    InvalidConfig,
    JetStreamError,
    JetStreamNotAvailable,
    StreamNameInUse,
    StreamNotFound,
    SubjectOverlap,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import fill, js_server, name_of, new_stream, numbers, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue, LocalError, NotSupported
from natsproto.testing.context import SOON, Context, raises


@check(since=(2, 10))
async def check_account_info(ctx: Context) -> None:
    """The account info has usage, limits and the API level."""
    js = await open_js(ctx)
    before = await js.account_info()
    await new_stream(ctx, js)
    after = await js.account_info()
    assert after.streams == before.streams + 1
    assert after.api.total > before.api.total
    assert after.limits.max_streams == -1
    assert (after.api.level >= 1) is (js_server(ctx).version >= (2, 11))  # introduced in 2.11


@check()
async def check_nested_fields_are_never_ignored(ctx: Context) -> None:
    """Transforms of mirrors and sources are kept, or rejected if the server is too old."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    moved = {"src": ctx.subject + ".>", "dest": ctx.subject + "-moved.>"}
    origin: dict[str, Any] = {"name": name_of(ctx), "subject_transforms": [moved]}
    configs: list[dict[str, Any]] = [{"mirror": origin}, {"sources": [origin]}]
    for number, config in enumerate(configs):
        try:
            copy = await js.create_stream({"name": f"{name_of(ctx)}-{number}", **config})
        except NotSupported:
            continue
        made = copy.cached_info.config
        source = made.mirror or made.sources[0]
        assert [one.dest for one in source.subject_transforms] == [moved["dest"]]


@check()
async def check_jetstream_not_available(ctx: Context) -> None:
    """On a server without JetStream a call fails at once."""
    js = jetstream_of(await ctx.client())
    with raises(JetStreamNotAvailable, within=SOON):
        await js.account_info()


@check()
async def check_stream_create(ctx: Context) -> None:
    """A stream is created with its configuration, and found again."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, max_msgs=10, max_age=60.5, description="test")
    for info in (stream.cached_info, (await js.stream(stream.name)).cached_info):
        config = info.config
        assert (config.name, config.subjects) == (name_of(ctx), [ctx.subject + ".>"])
        assert (config.max_msgs, config.max_age, config.description) == (10, 60.5, "test")
        assert info.created is not None


@check(since=(2, 10))
async def check_stream_create_from_info(ctx: Context) -> None:
    """The configuration in an info can be used to create a stream."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, metadata={"team": "blue"})
    config = stream.cached_info.config
    await js.delete_stream(stream.name)
    again = await js.create_stream(config)
    assert again.cached_info.config.metadata["team"] == "blue"
    assert again.cached_info.config.subjects == config.subjects


@check()
async def check_stream_create_twice(ctx: Context) -> None:
    """Creating the same stream again succeeds and keeps its messages."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    await fill(ctx, js, numbers(2))
    again = await new_stream(ctx, js)
    assert again.cached_info.state.messages == 2


@check()
async def check_stream_name_in_use(ctx: Context) -> None:
    """A stream of this name with another configuration raises StreamNameInUse."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    with raises(StreamNameInUse) as caught:
        await new_stream(ctx, js, max_msgs=1)
    assert (caught.error.code, caught.error.err_code) == (400, 10058)
    assert "in use" in caught.error.description


@check()
async def check_stream_subject_overlap(ctx: Context) -> None:
    """Two streams cannot have the same subject."""
    js = await open_js(ctx)
    await new_stream(ctx, js)
    with raises(SubjectOverlap) as caught:
        await new_stream(ctx, js, name=name_of(ctx) + "-2", subjects=[ctx.subject + ".1"])
    assert caught.error.err_code == 10065


@check()
async def check_stream_update(ctx: Context) -> None:
    """An update changes the fields that may change and keeps the messages."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js)
    await fill(ctx, js, numbers(3))
    config = stream.cached_info.config
    config.max_msgs = 2
    config.description = "smaller"
    updated = await js.update_stream(config)
    assert updated.cached_info.config.description == "smaller"
    assert (await stream.info()).state.messages == 2
    with raises(JetStreamError):
        await js.update_stream(name=stream.name, subjects=config.subjects, storage="file")


@check()
async def check_stream_update_missing(ctx: Context) -> None:
    """Updating a missing stream fails."""
    js = await open_js(ctx)
    with raises(StreamNotFound) as caught:
        await js.update_stream(name=name_of(ctx), subjects=[ctx.subject])
    assert (caught.error.code, caught.error.err_code) == (404, 10059)


@check()
async def check_stream_create_or_update(ctx: Context) -> None:
    """create_or_update_stream works whether or not the stream exists."""
    js = await open_js(ctx)
    for limit in (5, 7):
        stream = await js.create_or_update_stream(
            name=name_of(ctx), subjects=[ctx.subject], storage="memory", max_msgs=limit
        )
        assert stream.cached_info.config.max_msgs == limit


@check()
async def check_stream_update_by_keywords(ctx: Context) -> None:
    """Keywords change the fields that they name, and no other; a configuration changes all."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, max_msgs=7, description="mine")
    subjects = [ctx.subject + ".>"]
    for change in (js.create_or_update_stream, js.update_stream):
        for seconds in (60.0, 3600.0):
            changed = (await change(name=stream.name, max_age=seconds)).cached_info.config
            assert (changed.max_age, changed.max_msgs) == (seconds, 7)
            assert (changed.subjects, changed.description) == (subjects, "mine")
    whole = StreamConfig(name=stream.name, subjects=subjects, storage="memory")
    for change in (js.create_or_update_stream, js.update_stream):
        changed = (await change(whole)).cached_info.config
        assert (changed.max_age, changed.max_msgs, changed.description) == (0, -1, "")


@check()
async def check_stream_exists_names_the_fields(ctx: Context) -> None:
    """The error about an existing stream names the fields that differ."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, max_msgs=7)
    with raises(StreamNameInUse) as caught:
        await new_stream(ctx, js, max_msgs=5, max_age=60.0)
    differences = ["max_msgs is 7, not 5", "max_age is 0.0, not 60.0"]
    assert list(caught.error.different) == differences
    assert "; ".join(differences) in str(caught.error)
    with raises(StreamNameInUse) as caught:
        await js.create_stream(name=stream.name, subjects=[ctx.subject + ".>"], storage="memory")
    assert list(caught.error.different) == ["max_msgs is 7, not 0"]


@check(since=(2, 11))
async def check_pedantic(ctx: Context) -> None:
    """With pedantic, the server rejects configurations that it would otherwise adjust."""
    js = await open_js(ctx)
    name = name_of(ctx)
    settings: dict[str, Any] = {"subjects": [ctx.subject], "storage": "memory", "max_age": 10.0}
    with raises(InvalidConfig) as caught:
        await js.create_stream(name=name, pedantic=True, **settings)
    assert caught.error.err_code == 10157
    stream = await js.create_stream(name=name, pedantic=True, duplicate_window=5.0, **settings)
    await js.update_stream(name=name, pedantic=True, description="fine")
    waits: dict[str, Any] = {"backoff": [1.0, 2.0], "max_deliver": 4}
    with raises(InvalidConfig):
        await stream.create_consumer(durable_name="c", pedantic=True, ack_wait=30.0, **waits)
    consumer = await stream.create_consumer(durable_name="c", ack_wait=30.0, **waits)
    assert consumer.cached_info.config.ack_wait == 1.0
    with raises(InvalidConfig):
        await stream.update_consumer(durable_name="c", pedantic=True, ack_wait=30.0)
    await stream.create_or_update_consumer(durable_name="c", pedantic=True, max_deliver=5)


@check()
async def check_stream_not_found(ctx: Context) -> None:
    """Every call raises StreamNotFound for a missing stream."""
    js = await open_js(ctx)
    for call in (js.stream, js.delete_stream, js.consumers):
        with raises(StreamNotFound) as caught:
            await call(name_of(ctx))
        assert (caught.error.code, caught.error.err_code) == (404, 10059)
    with raises(StreamNotFound):
        await js.create_consumer(name_of(ctx), durable_name="c")


@check()
async def check_stream_delete(ctx: Context) -> None:
    """A stream can be deleted by name or through its handle."""
    js = await open_js(ctx)
    for turn in (1, 2):
        stream = await new_stream(ctx, js)
        await (stream.delete() if turn == 1 else js.delete_stream(stream.name))
        with raises(StreamNotFound):
            await js.stream(stream.name)


@check()
async def check_stream_rejected_locally(ctx: Context) -> None:
    """Configurations that the server would reject are not sent."""
    client = await ctx.client()
    js = jetstream_of(client)
    name = name_of(ctx)
    wrong: list[tuple[type[LocalError], dict[str, Any]]] = [
        (InvalidName, {}),
        (InvalidName, {"name": "a.b"}),
        (InvalidName, {"name": "a b"}),
        (InvalidSubject, {"name": name, "subjects": ["a..b"]}),
        (InvalidValue, {"name": name, "max_age": 0.01}),
        (InvalidValue, {"name": name, "num_replicas": 6}),
        (InvalidValue, {"name": name, "wings": 2}),
        (InvalidValue, {"name": name, "max_msgs": "ten"}),
        (InvalidValue, {"name": name, "subjects": "text"}),
        (InvalidValue, {"name": name, "retention": "sometimes"}),
        (InvalidValue, {"name": name, "mirror": {"name": "m"}, "subjects": ["s"]}),
    ]
    sent = client.stats.out_msgs
    for kind, config in wrong:
        with raises(kind):
            await js.create_stream(**config)
    for call in (js.stream, js.delete_stream, js.consumer_names):
        with raises(InvalidName):
            await call("a.b")
    assert client.stats.out_msgs == sent


@check()
async def check_stream_rejected_by_the_server(ctx: Context) -> None:
    """Configurations that only the server can reject raise errors with its codes."""
    js = await open_js(ctx)
    with raises(JetStreamError) as caught:
        await new_stream(ctx, js, num_replicas=3)
    assert getattr(caught.error, "err_code", 0) == 10074
    with raises(InvalidConfig):
        await new_stream(ctx, js, republish={"src": ">", "dest": ctx.subject + ".x"})


@check(since=(2, 10))
async def check_stream_metadata(ctx: Context) -> None:
    """Metadata is returned unchanged, along with that of the server."""
    js = await open_js(ctx)
    stream = await new_stream(ctx, js, metadata={"owner": "ops", "ünïcode": "ja"})
    metadata = stream.cached_info.config.metadata
    assert {key: value for key, value in metadata.items() if not key.startswith("_nats")} == {
        "owner": "ops",
        "ünïcode": "ja",
    }
