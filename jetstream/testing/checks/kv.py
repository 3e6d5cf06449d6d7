"""The key-value store: values, revisions, deletions, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    KeyDeleted,
    KeyExists,
    KeyNotFound,
    TtlDisabled,
    WrongLastRevision,
    WrongLastSequence,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.streams import js_server, left_alone, name_of, open_js, until
from jetstream.testing.suite import check
from natsproto.errors import LocalError, NotSupported
from natsproto.testing.context import SOON, WAIT, Context, raises
from natsproto.testing.peers import RawPeer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import JetStream
    from jetstream.kv import KeyValue, KeyValueEntry


async def new_bucket(ctx: Context, **config: Any) -> tuple[JetStream, KeyValue]:
    """Create a bucket in memory that no other check uses."""
    js = await open_js(ctx)
    settings: dict[str, Any] = {"bucket": name_of(ctx), "storage": "memory", **config}
    return js, await js.create_key_value(**settings)


def fields_of(entry: KeyValueEntry) -> tuple[str, bytes, int, str]:
    """Return the contents of an entry."""
    return entry.key, entry.value, entry.revision, entry.operation


@check()
async def check_kv_put_and_get(ctx: Context) -> None:
    """A value is found with its revision, and an older one by its own revision."""
    _, kv = await new_bucket(ctx, history=2)
    assert await kv.put("a.b", b"1") == 1
    assert await kv.put("x/y=z-_.Q", b"") == 2
    assert await kv.put("a.b", b"2") == 3
    entry = await kv.get("a.b")
    assert fields_of(entry) == ("a.b", b"2", 3, "PUT")
    assert (entry.bucket, entry.delta, entry.deleted) == (name_of(ctx), 0, False)
    first = await kv.get("a.b", 1)
    assert fields_of(first) == ("a.b", b"1", 1, "PUT")
    assert first.created < entry.created
    assert (await kv.get("x/y=z-_.Q")).value == b""


@check()
async def check_kv_not_found(ctx: Context) -> None:
    """A missing key, a removed revision and one of another key raise KeyNotFound."""
    _, kv = await new_bucket(ctx)
    for _ in range(2):
        await kv.put("a", b"v")
    await kv.put("b", b"v")
    with raises(KeyNotFound, within=SOON):
        await kv.get("never")
    for revision in (1, 3, 99):
        with raises(KeyNotFound, within=SOON) as caught:
            await kv.get("a", revision)
        assert caught.error.revision == revision
    with raises(KeyNotFound, within=SOON):
        await kv.history("never")


@check()
async def check_kv_create(ctx: Context) -> None:
    """A key is created if it is missing, deleted or purged; otherwise KeyExists is raised."""
    _, kv = await new_bucket(ctx, history=5)
    assert await kv.create("a", b"1") == 1
    with raises(KeyExists) as caught:
        await kv.create("a", b"2")
    assert (caught.error.last_seq, caught.error.key) == (1, "a")
    await kv.delete("a")
    assert await kv.create("a", b"2") == 3
    await kv.purge("a")
    assert await kv.create("a", b"3") == 5
    assert (await kv.get("a")).value == b"3"


@check()
async def check_kv_update(ctx: Context) -> None:
    """An update succeeds only if the key has not changed since the given revision."""
    _, kv = await new_bucket(ctx)
    revision = await kv.update("a", b"1", 0)
    revision = await kv.update("a", b"2", last=revision)
    for wrong in (0, 1, 99):
        with raises(WrongLastRevision) as caught:
            await kv.update("a", b"3", wrong)
        assert (caught.error.last, caught.error.last_seq) == (wrong, revision)
    assert (await kv.get("a")).value == b"2"


@check()
async def check_kv_delete(ctx: Context) -> None:
    """A deletion adds a marker to the history; with `last`, only if the key has not changed."""
    _, kv = await new_bucket(ctx, history=5)
    await kv.put("a", b"1")
    await kv.put("a", b"2")
    with raises(WrongLastRevision):
        await kv.delete("a", last=1)
    assert await kv.delete("a", last=2) == 3
    with raises(KeyDeleted, within=SOON) as caught:
        await kv.get("a")
    assert (caught.error.revision, caught.error.operation) == (3, "DEL")
    assert (await kv.get("a", 2)).value == b"2"
    assert [fields_of(entry) for entry in await kv.history("a")] == [
        ("a", b"1", 1, "PUT"),
        ("a", b"2", 2, "PUT"),
        ("a", b"", 3, "DEL"),
    ]


@check()
async def check_kv_purge(ctx: Context) -> None:
    """A purge leaves only its marker; other keys keep their history."""
    _, kv = await new_bucket(ctx, history=5)
    for key in "aabb":
        await kv.put(key, b"v")
    with raises(WrongLastRevision):
        await kv.purge("a", last=1)
    assert await kv.purge("a", last=2) == 5
    assert [fields_of(entry) for entry in await kv.history("a")] == [("a", b"", 5, "PURGE")]
    with raises(KeyDeleted, within=SOON) as caught:
        await kv.get("a")
    assert caught.error.operation == "PURGE"
    assert len(await kv.history("b")) == 2


@check()
async def check_kv_history(ctx: Context) -> None:
    """The history of a key has as many values as the bucket keeps, oldest first."""
    _, kv = await new_bucket(ctx, history=3)
    for number in range(5):
        await kv.put("a", b"%d" % number)
        await kv.put("b", b"x")
    entries = await kv.history("a")
    assert [(entry.value, entry.delta) for entry in entries] == [(b"2", 2), (b"3", 1), (b"4", 0)]


@check()
async def check_kv_keys(ctx: Context) -> None:
    """All keys that exist, or those that match, are returned in a list or one by one."""
    js, kv = await new_bucket(ctx, history=2)
    assert await kv.keys() == []
    for key in ("b", "a.x", "a.y.z", "gone", "b", "purged"):
        await kv.put(key, b"v")
    await kv.delete("gone")
    await kv.purge("purged")
    assert await kv.keys() == ["a.x", "a.y.z", "b"]
    assert await kv.keys("a.>") == ["a.x", "a.y.z"]
    assert await kv.keys("a.*") == ["a.x"]
    assert await kv.keys("gone") == []
    async with await kv.list_keys() as lister:
        assert [key async for key in lister] == ["a.x", "a.y.z", "b"]
    await left_alone(ctx, js, "KV_" + kv.bucket)


@check(since=(2, 10))
async def check_kv_keys_by_several_filters(ctx: Context) -> None:
    """Keys can be listed by several filters at once."""
    _, kv = await new_bucket(ctx)
    for key in ("a.x", "b.x", "c.x"):
        await kv.put(key, b"v")
    assert await kv.keys(["a.*", "c.>"]) == ["a.x", "c.x"]


@check()
async def check_kv_many_keys(ctx: Context) -> None:
    """Two thousand keys are listed, more than one request covers."""
    js, kv = await new_bucket(ctx)
    async with js.publisher() as window:
        for number in range(2000):
            await window.publish(f"$KV.{kv.bucket}.k.{number:04}", b"v")
    assert await kv.keys() == [f"k.{number:04}" for number in range(2000)]


@check()
async def check_kv_purge_deletes(ctx: Context) -> None:
    """Old markers and their history are removed; young markers and values stay."""
    _, kv = await new_bucket(ctx, history=5)
    for key in "abab":
        await kv.put(key, b"v")
    await kv.put("c", b"v")
    await kv.delete("a")
    await kv.delete("b")
    assert await kv.purge_deletes() == 4
    assert [fields_of(entry) for entry in await kv.history("a")] == [("a", b"", 6, "DEL")]
    await kv.create("b", b"again")
    assert await kv.purge_deletes(older_than=0) == 1
    with raises(KeyNotFound):
        await kv.history("a")
    assert await kv.keys() == ["b", "c"]
    assert (await kv.status()).values == 3
    assert await kv.create("a", b"anew") == 9


@check()
async def check_kv_without_direct_get(ctx: Context) -> None:
    """A bucket that does not allow direct get, or no longer does, is read through the API."""
    js, kv = await new_bucket(ctx, history=2)
    await kv.put("a", b"1")
    stream = await js.stream("KV_" + kv.bucket)
    await js.update_stream(stream.cached_info.config, allow_direct=False)
    handles = [await js.key_value(kv.bucket)]
    if js_server(ctx).version >= (2, 11):
        handles.append(kv)  # older servers do not answer, so it would wait for its timeout
    for each in handles:
        assert (await each.get("a")).value == b"1"
        assert (await each.get("a", 1)).value == b"1"
        with raises(KeyNotFound):
            await each.get("never")
        with raises(KeyExists):
            await each.create("a", b"2")


@check()
async def check_kv_of_others(ctx: Context) -> None:
    """Entries of other clients: unknown operations are deletions, odd headers do no harm."""
    js, kv = await new_bucket(ctx)
    subject = f"$KV.{kv.bucket}."
    await js.publish(subject + "odd", b"", headers={"KV-Operation": "EXPIRED"})
    with raises(KeyDeleted) as caught:
        await kv.get("odd")
    assert caught.error.operation == "DEL"
    with RawPeer(js_server(ctx)) as peer:
        peer.hpub(subject.encode() + b"garbage", b"NATS/1.0\r\nKV-Operation\r\n\r\n", b"v")
        peer.flush()
    await kv.put("after", b"v")
    assert (await kv.get("garbage")).value == b"v"
    assert await kv.keys() == ["after", "garbage"]


@check()
async def check_kv_rejected_locally(ctx: Context) -> None:
    """Invalid keys and revisions are rejected before anything is sent."""
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    kv = await js.create_key_value(bucket=name_of(ctx), storage="memory")
    sent = client.stats.out_msgs
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: kv.put("a b", b""),
        lambda: kv.put("a..b", b""),
        lambda: kv.put("_kv.a", b""),
        lambda: kv.get("*"),
        lambda: kv.get("a", 0),
        lambda: kv.update("a", b"", -1),
        lambda: kv.delete(">"),
        lambda: kv.watch("a.>.b"),
        lambda: kv.watch(include_history=True, updates_only=True),
        lambda: kv.purge_deletes(-1),
        lambda: js.create_key_value(bucket="a.b"),
        lambda: js.create_key_value(bucket="a", history=65),
        lambda: js.key_value(""),
    ]
    for call in calls:
        with raises(LocalError):
            await call()
    assert client.stats.out_msgs == sent


# TTLs


@check(since=(2, 11))
async def check_kv_ttl(ctx: Context) -> None:
    """A key with a TTL expires and a watch reports it; so does the marker of a purge."""
    _, kv = await new_bucket(ctx, limit_marker_ttl=60.0)
    assert (await kv.status()).limit_marker_ttl == 60.0
    await kv.create("lease", b"me", ttl=1)
    await kv.put("stays", b"v")
    await kv.purge("purged", ttl=1)
    async with await kv.watch("lease") as watcher:
        assert [fields_of(entry) async for entry in watcher.initial()] == [
            ("lease", b"me", 1, "PUT")
        ]
        assert fields_of(await watcher.next(WAIT)) == ("lease", b"", 4, "PURGE")
    with raises(KeyDeleted) as caught:
        await kv.get("lease")
    assert caught.error.operation == "PURGE"
    assert await kv.keys() == ["stays"]
    assert await kv.create("lease", b"you") == 5

    async def look() -> bool:
        return (await kv.status()).values == 2

    await until(await ctx.connect(js_server(ctx)), look)
    assert await kv.update("purged", b"v", 0) == 6


@check(since=(2, 11))
async def check_kv_ttl_and_history(ctx: Context) -> None:
    """In a bucket with history, the server raises a TTL to that of markers."""
    js, kv = await new_bucket(ctx, limit_marker_ttl=60.0, history=2)
    await kv.create("lease", b"me", ttl=1)
    msg = await (await js.stream("KV_" + kv.bucket)).get_msg(1)
    assert msg.headers is not None
    assert msg.headers["Nats-TTL"] == "60"


@check()
async def check_kv_ttl_rejected(ctx: Context) -> None:
    """TTLs are rejected by a bucket without limit markers and by servers before 2.11."""
    _, kv = await new_bucket(ctx)
    new = js_server(ctx).version >= (2, 11)
    with raises(TtlDisabled if new else NotSupported):
        await kv.create("a", b"v", ttl=1)
    with raises(TtlDisabled if new else NotSupported):
        await kv.purge("a", ttl=1)
    assert await kv.keys() == []


# Races


async def _count(kv: KeyValue, times: int) -> int:
    """Increment a counter by compare-and-set; return the number of conflicts."""
    beaten = 0
    for _ in range(times):
        while True:
            entry = await kv.get("counter")
            try:
                await kv.update("counter", b"%d" % (int(entry.value) + 1), entry.revision)
            except WrongLastRevision:
                beaten += 1
            else:
                break
    return beaten


@check()
async def check_kv_race_of_updates(ctx: Context) -> None:
    """Four clients increment a counter together, and no increment is lost."""
    _, kv = await new_bucket(ctx)
    await kv.create("counter", b"0")
    handles = [await (await open_js(ctx)).key_value(kv.bucket) for _ in range(4)]
    for task in [ctx.start(_count, handle, 10) for handle in handles]:
        await task.result()
    entry = await kv.get("counter")
    assert (entry.value, entry.revision) == (b"40", 41)


async def _seize(kv: KeyValue, name: bytes) -> bool:
    try:
        await kv.create("lock", name)
    except WrongLastSequence:
        return False
    return True


@check()
async def check_kv_race_of_creates(ctx: Context) -> None:
    """Of four clients that create a key, one succeeds, and the same holds after a deletion."""
    _, kv = await new_bucket(ctx)
    handles = [await (await open_js(ctx)).key_value(kv.bucket) for _ in range(4)]
    for _ in range(5):
        tasks = [ctx.start(_seize, handle, b"%d" % number) for number, handle in enumerate(handles)]
        seized = [await task.result() for task in tasks]
        assert seized.count(True) == 1
        assert (await kv.get("lock")).value == b"%d" % seized.index(True)
        await kv.delete("lock")
