"""The log: events of consumers that the client writes to the logger `natsproto`."""

from __future__ import annotations

from jetstream.events import ConsumerReset, PullWarning
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import js_server, name_of, new_stream
from jetstream.testing.suite import check
from natsproto.testing.checks.logs import collected
from natsproto.testing.context import WAIT, Context


@check(since=(2, 9, 0))
async def check_log_of_a_refused_pull(ctx: Context) -> None:
    """A refused pull is a warning that names the consumer, whether or not events are read."""
    with collected(ctx.subject) as log:
        js = jetstream_of(await ctx.connect(js_server(ctx), name=ctx.subject))
        stream = await new_stream(ctx, js)
        consumer = await stream.create_consumer(durable_name="w", max_batch=1)
        async with consumer.consume(max_messages=10) as messages:
            assert isinstance(await messages.events.next(WAIT), PullWarning)
    record = log.of("PullWarning")
    assert record.levelname == "WARNING"
    source = f"consumer 'w' of stream {name_of(ctx)!r}"
    assert vars(record)["nats_source"] == source, vars(record)
    assert record.getMessage().count(source) == 1, record.getMessage()


@check()
async def check_log_of_a_lost_ordered_consumer(ctx: Context) -> None:
    """The replacement of an ordered consumer is a warning that names the stream."""
    with collected(ctx.subject) as log:
        js = jetstream_of(await ctx.connect(js_server(ctx), name=ctx.subject))
        stream = await new_stream(ctx, js)
        await js.publish(ctx.subject + ".x", b"1")
        ordered = await stream.ordered_consumer()
        async with ordered.consume() as messages:
            await messages.next(WAIT)
            (name,) = await stream.consumer_names()
            await stream.delete_consumer(name)
            assert isinstance(await messages.events.next(WAIT), ConsumerReset)
    record = log.of("ConsumerReset")
    assert record.levelname == "WARNING"
    assert repr(name_of(ctx)) in vars(record)["nats_source"], vars(record)
