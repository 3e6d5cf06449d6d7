"""Calls of the JetStream context and of streams that manage and read, and those that publish."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from .coroutines import call, plain

if TYPE_CHECKING:
    from .stage import Stage

T: Any = {"name": "T", "subjects": ["t"], "storage": "memory"}
TOMORROW = "2100-01-01T00:00:00Z"

plain(
    {
        "JetStream.account_info": lambda on: on.js.account_info(),
        "JetStream.stream": lambda on: on.js.stream("S"),
        "JetStream.streams": lambda on: on.js.streams(),
        "JetStream.stream_names": lambda on: on.js.stream_names(),
        "JetStream.stream_name_by_subject": lambda on: on.js.stream_name_by_subject("s.a"),
        "JetStream.consumer": lambda on: on.js.consumer("S", "c"),
        "JetStream.consumers": lambda on: on.js.consumers("S"),
        "JetStream.consumer_names": lambda on: on.js.consumer_names("S"),
        "JetStream.resume_consumer": lambda on: on.js.resume_consumer("S", "c"),
        "JetStream.reset_consumer": lambda on: on.js.reset_consumer("S", "pinned"),
        "JetStream.unpin_consumer": lambda on: on.js.unpin_consumer("S", "pinned", "g"),
        "JetStream.update_consumer": lambda on: on.js.update_consumer(
            "S", durable_name="c", description="d"
        ),
        "JetStream.update_stream": lambda on: on.js.update_stream(name="S", description="d"),
        "JetStream.publish": lambda on: on.js.publish("s.b", b"2"),
        "JetStream.add_to_counter": lambda on: on.js.add_to_counter("count.b", 1),
        "JetStream.schedule": lambda on: on.js.schedule(
            "later.a", b"1", when=f"@at {TOMORROW}", target="now.a"
        ),
        "JetStream.cancel_schedule": lambda on: on.js.cancel_schedule("later.a", target="now.a"),
        "Stream.info": lambda on: on.stream.info(subjects_filter=">"),
        "Stream.get_msg": lambda on: on.stream.get_msg(1),
        "Stream.get_msgs": lambda on: on.stream.get_msgs(batch=3, seq=1),
        "Stream.get_last_msgs": lambda on: on.stream.get_last_msgs(["s.a", "s.b"]),
        "Stream.consumer": lambda on: on.stream.consumer("c"),
        "Stream.consumers": lambda on: on.stream.consumers(),
        "Stream.consumer_names": lambda on: on.stream.consumer_names(),
        "Stream.resume_consumer": lambda on: on.stream.resume_consumer("c"),
        "Stream.reset_consumer": lambda on: on.stream.reset_consumer("pinned"),
        "Stream.unpin_consumer": lambda on: on.stream.unpin_consumer("pinned", "g"),
        "Stream.update_consumer": lambda on: on.stream.update_consumer(
            durable_name="c", description="d"
        ),
        "Stream.purge": lambda on: on.stream.purge(subject="s.nothing"),
    }
)
# A single server answers these with an error.
plain(
    {
        "Stream.step_down": lambda on: on.stream.step_down(),
        "Stream.remove_peer": lambda on: on.stream.remove_peer("nobody"),
        "Stream.evacuate_peer": lambda on: on.stream.evacuate_peer("nobody"),
        "Stream.cancel_move": lambda on: on.stream.cancel_move(),
    },
    fails=True,
)


@call("JetStream.create_stream", "JetStream.delete_stream")
async def create_stream(on: Stage) -> None:
    async def use() -> None:
        await on.js.create_stream(T)
        await on.js.delete_stream("T")

    on.clean(lambda: on.other.delete_stream("T"))
    await on(use())


@call("JetStream.create_or_update_stream", "Stream.delete")
async def create_or_update_stream(on: Stage) -> None:
    async def use() -> None:
        stream = await on.js.create_or_update_stream(T)
        await stream.delete()

    on.clean(lambda: on.other.delete_stream("T"))
    await on(use())


@call("JetStream.create_consumer", "JetStream.delete_consumer")
async def create_consumer(on: Stage) -> None:
    async def use() -> None:
        await on.js.create_consumer("S", durable_name="d")
        await on.js.delete_consumer("S", "d")

    on.clean(lambda: on.other.delete_consumer("S", "d"))
    await on(use())


@call(
    "JetStream.create_or_update_consumer",
    "JetStream.pause_consumer",
    "Consumer.delete",
    "BoundConsumer.delete",
)
async def create_or_update_consumer(on: Stage) -> None:
    async def use() -> None:
        consumer = await on.js.create_or_update_consumer("S", durable_name="d")
        await on.js.pause_consumer("S", "d", TOMORROW)
        await consumer.delete()

    on.clean(lambda: on.other.delete_consumer("S", "d"))
    await on(use())


@call("Stream.create_consumer", "Stream.pause_consumer", "Stream.delete_consumer")
async def create_consumer_of_stream(on: Stage) -> None:
    async def use() -> None:
        await on.stream.create_consumer(durable_name="d")
        await on.stream.pause_consumer("d", TOMORROW)
        await on.stream.delete_consumer("d")

    on.clean(lambda: on.other.delete_consumer("S", "d"))
    await on(use())


@call("Stream.create_or_update_consumer")
async def create_or_update_consumer_of_stream(on: Stage) -> None:
    on.clean(lambda: on.other.delete_consumer("S", "d"))
    await on(on.stream.create_or_update_consumer(durable_name="d"))


@call("Stream.delete_msg")
async def delete_msg(on: Stage) -> None:
    ack = await on.other.publish("s.d", b"3")
    await on(on.stream.delete_msg(ack.seq))


@call("Stream.get_counter", "Stream.get_counters")
async def counters(on: Stage) -> None:
    stream = await on.js.stream("COUNTERS")

    async def use() -> None:
        assert (await stream.get_counter("count.a")).value == 1
        await stream.get_counters(["count.a"])

    await on(use())


@call("StoredMsgs.__anext__", "StoredMsgs.aclose")
async def iter_get_msgs(on: Stage) -> None:
    async def use() -> None:
        msgs = on.stream.iter_get_msgs(batch=3, seq=1)
        async for _ in msgs:
            pass
        if hasattr(msgs, "aclose"):  # not without an event loop
            await msgs.aclose()

    await on(use())


@call(
    "PublishWindow.__aenter__",
    "PublishWindow.__aexit__",
    "PublishWindow.publish",
    "PublishWindow.flush",
    "PublishWindow.close",
    "Publication.result",
)
async def window(on: Stage) -> None:
    async def use() -> None:
        async with on.js.publisher(max_pending=4, ack_timeout=on.timeout) as publisher:
            for number in range(10):
                publication = await publisher.publish("s.w", b"%d" % number)
            await publication.result()
            await publisher.flush()
        await publisher.close()

    await on(use())


@call("AtomicBatch.add", "AtomicBatch.commit")
async def atomic_batch(on: Stage) -> None:
    before = (await on.other.stream("S")).cached_info.state.messages

    async def use() -> None:
        batch = on.js.atomic_batch(timeout=on.timeout)
        await batch.add("s.atomic", b"1")
        await batch.add("s.atomic", b"2")
        await batch.commit("s.atomic", b"3")

    await on(use())
    stored = (await on.other.stream("S")).cached_info.state.messages - before
    assert stored in (0, 3), f"{stored} of 3 messages of an atomic batch are stored"


@call(
    "FastBatch.__aenter__",
    "FastBatch.__aexit__",
    "FastBatch.add",
    "FastBatch.add_encoded",
    "FastBatch.close",
)
async def fast_batch(on: Stage) -> None:
    async def use() -> None:
        async with on.js.fast_batch(flow=2, max_acks=1, ack_timeout=on.timeout) as batch:
            for number in range(6):
                await batch.add("s.fast", b"%d" % number)
            await batch.add_encoded([(b"s.fast", b"6", None)])
            await batch.close()

    await on(use())


@call("FastBatch.commit")
async def commit_fast_batch(on: Stage) -> None:
    async def use() -> None:
        async with on.js.fast_batch(ack_timeout=on.timeout) as batch:
            await batch.add("s.fast", b"1")
            await batch.commit("s.fast", b"2")

    await on(use())


@call(
    "JetStream.snapshot_stream",
    "StreamSnapshot.__aenter__",
    "StreamSnapshot.__aexit__",
    "StreamSnapshot.__anext__",
    "StreamSnapshot.stop",
)
async def snapshot(on: Stage) -> None:
    async def use() -> None:
        async with await on.js.snapshot_stream("FILED") as stream_snapshot:
            async for _ in stream_snapshot:
                pass
        await stream_snapshot.stop()

    await on(use())


@call("StreamSnapshot.save")
async def save_snapshot(on: Stage) -> None:
    async def use() -> None:
        async with await on.js.snapshot_stream("FILED") as stream_snapshot:
            await stream_snapshot.save(BytesIO())

    await on(use())


@call("JetStream.restore_stream")
async def restore_stream(on: Stage) -> None:
    await on.other.create_stream(T, storage="file")
    async with await on.other.snapshot_stream("T") as stream_snapshot:
        file = BytesIO()
        await stream_snapshot.save(file)
    await on.other.delete_stream("T")
    on.clean(lambda: on.other.delete_stream("T"))
    await on(on.js.restore_stream(BytesIO(file.getvalue()), timeout=on.timeout))


@call(
    "Advisories.__aenter__",
    "Advisories.__aexit__",
    "Advisories.__anext__",
    "Advisories.next",
    "Advisories.stop",
)
async def advisories(on: Stage) -> None:
    on.clean(lambda: on.other.delete_consumer("S", "d"))

    async def use() -> None:
        async with on.js.advisories("consumer_action", stream="S") as events:
            await on.js.create_consumer("S", durable_name="d")
            await events.next(on.timeout)
            await on.js.delete_consumer("S", "d")
            await events.__anext__()
        await events.stop()

    await on(use())
