"""Programs for nats-py, run unchanged on nats-py and on natsproto.compat.nats.

Each program gets the module `nats` and asserts the same on both: these are differential tests of
the layer. The programs use only the documented API of nats-py.
"""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.testing import Server
from tests.compat.both import run

if TYPE_CHECKING:
    from collections.abc import Iterator

SOON = 5.0


async def until(condition: Any) -> None:
    """Wait until the condition holds, which a test does at most for SOON."""
    end = asyncio.get_running_loop().time() + SOON
    while not condition():
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.01)


@pytest.fixture
def js_server(server: Server) -> Iterator[Server]:
    """Return the server without streams of another test."""
    yield server
    asyncio.run(_delete_streams(server))


async def _delete_streams(server: Server) -> None:
    from jetstream import JetStream
    from natsproto.adapters.asyncio import connect

    async with connect(server.url) as client:
        js = JetStream(client)
        for name in await js.stream_names():
            await js.delete_stream(name)


async def callbacks(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    got: list[Any] = []

    async def collect(msg: Any) -> None:
        got.append((msg.subject, msg.data, msg.headers, msg.reply))

    sub = await nc.subscribe("a.*", cb=collect)
    for number in range(3):
        await nc.publish(f"a.{number}", b"%d" % number, headers={"N": str(number)})
    await nc.publish("b", b"nothing")
    await nc.flush()
    await until(lambda: len(got) == 3)
    assert got[1] == ("a.1", b"1", {"N": "1"}, "")
    assert (sub.subject, sub.queue, sub.pending_msgs, sub.delivered) == ("a.*", "", 0, 3)
    assert nc.stats["out_msgs"] == 4
    await sub.unsubscribe()
    with pytest.raises(nats.errors.BadSubscriptionError):
        await sub.unsubscribe()
    await nc.drain()
    assert nc.is_closed
    with pytest.raises(nats.errors.ConnectionClosedError):
        await nc.publish("a.1")


async def requests(nats: Any, url: str) -> None:
    async with await nats.connect(url) as nc:

        async def upper(msg: Any) -> None:
            await msg.respond(msg.data.upper())

        async def silent(msg: Any) -> None:
            pass

        await nc.subscribe("upper", "workers", cb=upper)
        await nc.subscribe("silent", cb=silent)
        reply = await nc.request("upper", b"hello", timeout=SOON, headers={"K": "v"})
        assert (reply.data, reply.headers) == (b"HELLO", {"K": "v"})
        with pytest.raises(nats.errors.NoRespondersError):
            await nc.request("nobody", timeout=SOON)
        with pytest.raises(asyncio.TimeoutError) as caught:
            await nc.request("silent", timeout=0.05)
        assert type(caught.value) is nats.errors.TimeoutError
        assert str(caught.value) == "nats: timeout"
        with pytest.raises(nats.errors.MaxPayloadError):
            await nc.publish("upper", bytes(nc.max_payload + 1))
        with pytest.raises(nats.errors.BadSubjectError):
            await nc.publish("with space")
    assert nc.is_closed


async def iterators(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    sub = await nc.subscribe("it.>")
    await sub.unsubscribe(limit=3)
    for number in range(5):
        await nc.publish(f"it.{number}")
    assert [msg.subject async for msg in sub.messages] == ["it.0", "it.1", "it.2"]
    other = await nc.subscribe("next")
    with pytest.raises(nats.errors.TimeoutError):
        await other.next_msg(timeout=0.05)
    await nc.publish("next", b"1")
    assert (await other.next_msg(timeout=SOON)).data == b"1"
    waiting = asyncio.create_task(other.next_msg(timeout=SOON))
    await asyncio.sleep(0)
    await nc.close()
    with pytest.raises(nats.errors.ConnectionClosedError):
        await waiting


async def errors_of_callbacks(nats: Any, url: str) -> None:
    reported: list[Exception] = []
    states: list[str] = []

    async def on_error(error: Exception) -> None:
        reported.append(error)

    async def on_closed() -> None:
        states.append("closed")

    async def on_disconnected() -> None:
        states.append("disconnected")

    nc = await nats.connect(
        url, error_cb=on_error, closed_cb=on_closed, disconnected_cb=on_disconnected
    )

    async def fail(msg: Any) -> None:
        raise ValueError(msg.data.decode())

    await nc.subscribe("fail", cb=fail)
    await nc.publish("fail", b"1")
    await nc.publish("fail", b"2")
    await until(lambda: len(reported) == 2)
    assert [str(error) for error in reported] == ["1", "2"]
    with pytest.raises(nats.errors.Error):
        await nc.subscribe("x", cb=lambda msg: None)
    await nc.close()
    assert states == ["disconnected", "closed"]
    with pytest.raises(nats.errors.InvalidCallbackTypeError):
        await nats.connect(url, error_cb=print)


async def streams_and_publishing(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    js = nc.jetstream()
    api = nats.js.api
    info = await js.add_stream(
        name="ORDERS",
        subjects=["orders.>"],
        storage=api.StorageType.MEMORY,
        max_age=3600.0,
        duplicate_window=60,
    )
    assert (info.config.name, info.config.max_age, info.config.storage) == (
        "ORDERS",
        3600.0,
        "memory",
    )
    ack = await js.publish("orders.new", b"1", headers={"Nats-Msg-Id": "a"})
    again = await js.publish("orders.new", b"1", headers={"Nats-Msg-Id": "a"})
    assert (ack.stream, ack.seq, ack.duplicate) == ("ORDERS", 1, None)
    assert (again.seq, again.duplicate) == (1, True)
    futures = [await js.publish_async("orders.more", b"%d" % number) for number in range(20)]
    await js.publish_async_completed()
    assert [(await future).seq for future in futures] == list(range(2, 22))
    stored = await js.get_msg("ORDERS", 1)
    assert (stored.subject, stored.data, stored.headers) == (
        "orders.new",
        b"1",
        {"Nats-Msg-Id": "a"},
    )
    assert (await js.get_last_msg("ORDERS", "orders.more")).seq == 21
    assert await js.find_stream_name_by_subject("orders.new") == "ORDERS"
    assert await js.delete_msg("ORDERS", 21)
    with pytest.raises(nats.js.errors.NotFoundError) as caught:
        await js.get_msg("ORDERS", 21)
    assert (caught.value.code, caught.value.err_code) == (404, 10037)
    with pytest.raises(nats.js.errors.BadRequestError):
        await js.publish("orders.new", stream="OTHER")
    with pytest.raises(nats.js.errors.NoStreamResponseError):
        await js.publish("nothing.here")
    assert [each.config.name for each in await js.streams_info()] == ["ORDERS"]
    assert await js.purge_stream("ORDERS")
    assert await js.delete_stream("ORDERS")
    with pytest.raises(ValueError, match="nats: invalid stream name"):
        await js.stream_info("a.b")
    await nc.close()


async def pull_worker(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    js = nc.jetstream()
    await js.add_stream(name="JOBS", subjects=["jobs"])
    for number in range(10):
        await js.publish("jobs", b"%d" % number)
    sub = await js.pull_subscribe("jobs", "worker")
    done: list[bytes] = []
    while len(done) < 10:
        for msg in await sub.fetch(4, timeout=SOON):
            done.append(msg.data)
            await msg.ack()
    assert done == [b"%d" % number for number in range(10)]
    with pytest.raises(nats.errors.TimeoutError):
        await sub.fetch(1, timeout=0.2)
    await js.publish("jobs", b"again")
    [msg] = await sub.fetch()
    assert (msg.metadata.sequence.stream, msg.metadata.num_delivered) == (11, 1)
    await msg.nak()
    with pytest.raises(nats.errors.MsgAlreadyAckdError):
        await msg.ack()
    [msg] = await sub.fetch(timeout=SOON)
    assert msg.metadata.num_delivered == 2
    await msg.ack_sync(timeout=SOON)
    await js.publish("jobs", b"fewer than asked for")
    [msg] = await asyncio.wait_for(sub.fetch(5, timeout=20, heartbeat=1), SOON)
    await msg.ack_sync(timeout=SOON)
    info = await sub.consumer_info()
    assert (info.name, info.num_ack_pending, info.num_pending) == ("worker", 0, 0)
    await nc.close()


async def push_subscribers(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    js = nc.jetstream()
    await js.add_stream(name="PUSH", subjects=["push.*"])
    got: list[bytes] = []

    async def collect(msg: Any) -> None:
        got.append(msg.data)

    sub = await js.subscribe("push.*", durable="collector", cb=collect)
    for number in range(5):
        await js.publish("push.a", b"%d" % number)
    await until(lambda: len(got) == 5)
    for _ in range(100):
        info = await sub.consumer_info()
        if info.num_ack_pending == 0:  # they are acknowledged after the callback
            break
        await asyncio.sleep(0.02)
    assert info.num_ack_pending == 0
    ordered = await js.subscribe("push.*", ordered_consumer=True)
    assert [(await ordered.next_msg(timeout=SOON)).data for _ in range(5)] == got
    manual = await js.subscribe("push.*", manual_ack=True)
    assert (await manual.next_msg(timeout=SOON)).metadata.sequence.consumer == 1
    with pytest.raises(nats.js.errors.Error):
        await js.subscribe("push.*", durable="collector")
    await sub.unsubscribe()
    await nc.close()


async def key_values(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    js = nc.jetstream()
    kv = await js.create_key_value(bucket="CFG", history=3)
    watcher = await kv.watchall()
    assert await watcher.updates(timeout=SOON) is None
    assert await kv.put("a", b"1") == 1
    assert await kv.update("a", b"2", last=1) == 2
    with pytest.raises(nats.js.errors.KeyWrongLastSequenceError):
        await kv.update("a", b"3", last=1)
    with pytest.raises(nats.js.errors.KeyWrongLastSequenceError):
        await kv.create("a", b"3")
    entry = await kv.get("a")
    assert (entry.key, entry.value, entry.revision) == ("a", b"2", 2)
    assert [each.value for each in await kv.history("a")] == [b"1", b"2"]
    assert await kv.delete("a")
    with pytest.raises(nats.js.errors.KeyNotFoundError):
        await kv.get("a")
    assert await kv.create("a", b"new") == 4
    assert sorted(await kv.keys()) == ["a"]
    seen = [await watcher.updates(timeout=SOON) for _ in range(4)]
    assert [(each.value, each.operation) for each in seen] == [
        (b"1", None),
        (b"2", None),
        (b"", "DEL"),
        (b"new", None),
    ]
    await watcher.stop()
    status = await kv.status()
    assert (status.bucket, status.history) == ("CFG", 3)
    with pytest.raises(nats.js.errors.InvalidKeyError):
        await kv.put("a b", b"")
    with pytest.raises(nats.js.errors.BucketNotFoundError):
        await js.key_value("NONE")
    await nc.close()


async def objects(nats: Any, url: str) -> None:
    nc = await nats.connect(url)
    js = nc.jetstream()
    store = await js.create_object_store("FILES")
    data = bytes(range(256)) * 1024
    meta = nats.js.api.ObjectMeta(description="a file")
    info = await store.put("one", io.BytesIO(data), meta)
    assert (info.name, info.size, info.chunks, info.description) == (
        "one",
        len(data),
        2,
        "a file",
    )
    found = await store.get("one")
    assert found.data == data
    assert found.info.digest == info.digest
    await store.put("two", b"text")
    assert [each.name for each in await store.list()] == ["one", "two"]
    await store.delete("one")
    with pytest.raises(nats.js.errors.ObjectNotFoundError):
        await store.get("one")
    await nc.close()


async def services(nats: Any, url: str) -> None:
    nc = await nats.connect(url)

    async def double(request: Any) -> None:
        if not request.data:
            await request.respond_error("400", "nothing to double")
        await request.respond(request.data * 2)

    async with await nats.micro.add_service(nc, name="math", version="1.0.0") as service:
        group = service.add_group(name="v1")
        await group.add_endpoint(name="double", handler=double)
        assert (await nc.request("v1.double", b"ab", timeout=SOON)).data == b"abab"
        failed = await nc.request("v1.double", timeout=SOON)
        assert failed.headers["Nats-Service-Error-Code"] == "400"
        assert service.info().endpoints[0].subject == "v1.double"
        assert service.stats().endpoints[0].num_requests == 2
    await nc.close()


PLAIN = [callbacks, requests, iterators, errors_of_callbacks, services]
STORED = [streams_and_publishing, pull_worker, push_subscribers, key_values, objects]


@pytest.mark.parametrize("program", PLAIN, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
def test_a_program_behaves_the_same(nats, server, program):
    run(program, nats, server.url)


@pytest.mark.parametrize("program", STORED, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
def test_a_program_with_jetstream_behaves_the_same(nats, js_server, program):
    run(program, nats, js_server.url)
