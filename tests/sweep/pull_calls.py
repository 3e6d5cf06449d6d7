"""Calls that deliver messages of a stream: pulled, pushed and in order; and acknowledgments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .coroutines import call, plain
from .stage import FOR_GOOD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import Consumer, JsMsg

    from .stage import Stage

# A single server answers with an error.
plain(
    {
        "Consumer.step_down": lambda on: on.js.bind_consumer("S", "c").step_down(),
        "BoundConsumer.step_down": lambda on: on.js.bind_consumer("S", "pinned").step_down(),
    },
    fails=True,
)
plain(
    {
        "BoundConsumer.info": lambda on: on.js.bind_consumer("S", "c").info(),
        "Consumer.info": lambda on: on.js.bind_consumer("S", "pinned").info(),
    }
)

COUNT = 5
SOON = 1.0


async def _consumer(on: Stage, ack_wait: float = FOR_GOOD) -> Consumer:
    """Create a consumer of COUNT messages, by default not redelivered, with the swept client."""
    name = "p" + on.tag
    subject = "s.pull" + on.tag
    await on.other.create_or_update_consumer(
        "S", durable_name=name, ack_wait=ack_wait, filter_subject=subject, deliver_policy="new"
    )
    on.clean(lambda: on.other.delete_consumer("S", name))
    for number in range(COUNT):
        await on.other.publish(subject, b"%d" % number)
    return await on.js.consumer("S", name)


async def _all_there(consumer: Consumer, got: list[JsMsg]) -> None:
    """Fetch the rest with the same handle: no message is lost."""
    while len(got) < COUNT:
        rest = await consumer.fetch(COUNT, expires=2.0)
        assert len(rest), f"only {sorted(int(msg.data) for msg in got)} of {COUNT} came"
        got += rest
    assert sorted(int(msg.data) for msg in got) == list(range(COUNT))


async def _at_least_once(consumer: Consumer, got: list[JsMsg]) -> None:
    """Fetch the rest: nothing is lost, and only what was not acknowledged comes again."""
    taken = {msg.data for msg in got}
    assert len(taken) == len(got), "a message was delivered twice at once"
    while len(taken) < COUNT:
        rest = await consumer.fetch(COUNT, expires=5 * SOON)
        assert len(rest), f"only {sorted(map(int, taken))} of {COUNT} came"
        for msg in rest:
            await msg.ack()
            taken.add(msg.data)
    assert sorted(map(int, taken)) == list(range(COUNT))


async def _read_all(on: Stage, read: Callable[[Consumer, list[JsMsg]], Awaitable[None]]) -> None:
    """Sweep `read`, which appends what it takes; the rest is there for the next reader."""
    consumer = await _consumer(on)
    got: list[JsMsg] = []
    await on(read(consumer, got))
    await _all_there(consumer, got)


@call("Fetch.__await__")
async def fetch(on: Stage) -> None:
    async def read(consumer: Consumer, got: list[JsMsg]) -> None:
        got.extend(await consumer.fetch(COUNT, expires=on.timeout))

    await _read_all(on, read)


@call("Fetch.__anext__", "Fetch.aclose")
async def iter_fetch(on: Stage) -> None:
    async def read(consumer: Consumer, got: list[JsMsg]) -> None:
        messages = consumer.fetch(COUNT, expires=on.timeout)
        async for msg in messages:
            got.append(msg)  # noqa: PERF401 - those that came before it was canceled count
        if hasattr(messages, "aclose"):  # not without an event loop
            await messages.aclose()

    await _read_all(on, read)


@call("Consumer.next", "BoundConsumer.next")
async def next_pulled(on: Stage) -> None:
    async def read(consumer: Consumer, got: list[JsMsg]) -> None:
        for _ in range(COUNT):
            msg = await consumer.next(expires=on.timeout)
            if msg is not None:
                got.append(msg)

    await _read_all(on, read)


@call(
    "Messages.__aenter__",
    "Messages.__aexit__",
    "Messages.__anext__",
    "Messages.next",
    "Messages.stop",
)
async def consume(on: Stage) -> None:
    """The end of the block returns what has arrived; what was in flight is redelivered."""
    consumer = await _consumer(on, ack_wait=SOON)
    messages = consumer.consume(expires=10.0, nak_on_exit=True)
    got: list[JsMsg] = []

    async def use() -> None:
        async with messages:
            got.append(await messages.next(on.timeout))
            async for msg in messages:
                got.append(msg)
                if len(got) == COUNT:
                    break

    await on(use())
    for msg in got:
        await msg.ack()
    assert await messages.stop() == []  # it can be called again
    await _at_least_once(consumer, got)


@call("Messages.__anext__", "Messages.next")
async def consume_on(on: Stage) -> None:
    """What a canceled reader has not taken is there for the next one: nothing is redelivered."""
    consumer = await _consumer(on)
    messages = consumer.consume(expires=10.0)
    got: list[JsMsg] = []

    async def use() -> None:
        got.append(await messages.next(on.timeout))
        async for msg in messages:
            got.append(msg)
            if len(got) == COUNT:
                break

    await on(use())
    await messages.drain()  # so that nothing is in flight
    async for msg in messages:
        got.append(msg)  # noqa: PERF401 - there is no asynchronous extend
    await _all_there(consumer, got)


@call("Messages.run", "Messages.drain")
async def run_consume(on: Stage) -> None:
    consumer = await _consumer(on, ack_wait=SOON)
    messages = consumer.consume(expires=10.0)
    got: list[JsMsg] = []

    async def take(msg: JsMsg) -> None:
        got.append(msg)
        await msg.ack()
        if len(got) == COUNT:
            await messages.drain(on.timeout)

    await on(messages.run(take, nak=True))
    rest = await messages.stop()
    assert rest == []
    await _at_least_once(consumer, got)


@call("PullEvents.next", "PullEvents.__anext__")
async def pull_events(on: Stage) -> None:
    """A pull that the server refuses is an event. The events end with the messages."""
    await on.other.create_consumer(
        "S", durable_name="q", max_batch=1, ack_wait=FOR_GOOD, filter_subject="s.none"
    )
    on.clean(lambda: on.other.delete_consumer("S", "q"))
    consumer = await on.js.consumer("S", "q")

    async def use() -> None:
        async with consumer.consume(max_messages=5, expires=10.0) as messages:
            await messages.events.next(on.timeout)
            await messages.stop()
            async for _ in messages.events:
                pass

    await on(use())


async def _delivered(on: Stage) -> JsMsg:
    consumer = await _consumer(on)
    return (await consumer.fetch(1, expires=10.0))[0]


@call(
    "JsMsg.ack",
    "JsMsg.nak",
    "JsMsg.term",
    "JsMsg.in_progress",
    "GroupMsg.ack",
    "GroupMsg.nak",
    "GroupMsg.term",
    "GroupMsg.in_progress",
    local=True,
)
async def acknowledge(on: Stage) -> None:
    consumer = await _consumer(on)
    first, second, third, *_ = await consumer.fetch(COUNT, expires=10.0)

    async def use() -> None:
        await first.in_progress()
        await first.ack()
        await second.term()
        await third.nak(FOR_GOOD)

    await on(use())


@call("JsMsg.ack_sync", "GroupMsg.ack_sync")
async def ack_sync(on: Stage) -> None:
    msg = await _delivered(on)
    await on(msg.ack_sync(on.timeout))


@call(
    "JetStream.pull_subscribe",
    "PullSubscription.__aenter__",
    "PullSubscription.__aexit__",
    "PullSubscription.fetch",
    "PullSubscription.info",
    "PullSubscription.unsubscribe",
)
async def pull_subscribe(on: Stage) -> None:
    async def use() -> None:
        options: Any = {"inactive_threshold": FOR_GOOD}
        async with await on.js.pull_subscribe("s.>", stream="S", **options) as sub:
            await sub.fetch(2, timeout=on.timeout)
            await sub.info()
        await sub.unsubscribe()

    await on(use())


@call(
    "JetStream.subscribe",
    "PushMessages.__aenter__",
    "PushMessages.__aexit__",
    "PushMessages.__anext__",
    "PushMessages.next",
    "PushMessages.stop",
    "PushMessages.unsubscribe",
)
async def push(on: Stage) -> None:
    async def use() -> None:
        options: Any = {"inactive_threshold": FOR_GOOD}
        async with await on.js.subscribe("s.a", stream="S", **options) as messages:
            msg = await messages.next(on.timeout)
            await msg.ack()
            await on.js.publish("s.a", b"again")
            async for msg in messages:
                await msg.ack()
                break
        await messages.stop()
        await messages.unsubscribe()

    await on(use())


@call("PushMessages.run", "PushMessages.drain")
async def run_push(on: Stage) -> None:
    async def use() -> None:
        messages = await on.js.subscribe("s.b", stream="S", inactive_threshold=FOR_GOOD)

        async def take(msg: JsMsg) -> None:
            await messages.drain(on.timeout)

        try:
            await messages.run(take)
        finally:
            await messages.stop()

    await on(use())


@call("PushEvents.next", "PushEvents.__anext__")
async def push_events(on: Stage) -> None:
    """A consumer that delivers nothing for a while is idle: there is no event."""

    async def use() -> None:
        async with await on.js.subscribe("s.none", stream="S", idle_heartbeat=5.0) as messages:
            try:
                await messages.events.next(min(on.timeout, 0.05))
            except TimeoutError:
                pass
            await messages.stop()
            async for _ in messages.events:
                pass

    await on(use())


@call(
    "Stream.ordered_consumer",
    "OrderedConsumer.info",
    "OrderedConsumer.delete",
    "OrderedConsumer.fetch",
    "OrderedConsumer.next",
)
async def ordered(on: Stage) -> None:
    async def use() -> None:
        consumer = await on.stream.ordered_consumer(filter_subjects="s.a")
        try:
            await consumer.info()
            batch = await consumer.fetch(1, expires=on.timeout)
            assert batch[0].metadata.consumer_seq == 1
            await consumer.next(expires=min(on.timeout, 0.2))
        finally:
            await consumer.delete()

    await on(use())


@call(
    "OrderedMessages.__aenter__",
    "OrderedMessages.__aexit__",
    "OrderedMessages.__anext__",
    "OrderedMessages.next",
    "OrderedMessages.stop",
)
async def consume_in_order(on: Stage) -> None:
    async def use() -> None:
        consumer = await on.stream.ordered_consumer(filter_subjects="s.a")
        async with consumer.consume(max_messages=5) as messages:
            await messages.next(on.timeout)
            await on.js.publish("s.a", b"again")
            async for _ in messages:
                break
        await messages.stop()

    await on(use())


@call("OrderedMessages.run", "OrderedMessages.drain")
async def run_in_order(on: Stage) -> None:
    async def use() -> None:
        consumer = await on.stream.ordered_consumer(filter_subjects="s.b")
        messages = consumer.consume(max_messages=5)

        async def take(msg: JsMsg) -> None:
            await messages.drain(on.timeout)

        try:
            await messages.run(take)
        finally:
            await messages.stop()

    await on(use())


@call("JetStream.subscribe")
async def push_in_order(on: Stage) -> None:
    async def use() -> None:
        async with await on.js.subscribe("s.a", stream="S", ordered=True) as messages:
            await messages.next(on.timeout)

    await on(use())


@call(
    "Consumer.dead_letters",
    "BoundConsumer.dead_letters",
    "DeadLetters.__aenter__",
    "DeadLetters.__aexit__",
    "DeadLetters.__anext__",
    "DeadLetters.next",
    "DeadLetters.stop",
    "DeadLetter.retry",
    "DeadLetter.discard",
    "DeadLetter.in_progress",
)
async def dead_letters(on: Stage) -> None:
    consumer = await _consumer(on)
    first, second, *_ = await consumer.fetch(COUNT, expires=10.0)

    async def use() -> None:
        async with await consumer.dead_letters() as letters:
            await first.term("bad")
            letter = await letters.next(on.timeout)
            await letter.in_progress()
            await letter.retry()
            await second.term("bad")
            letter = await letters.__anext__()
            await letter.discard()
        await letters.stop()

    await on(use())
