"""Watches of a bucket: initial values, updates, and faults that they survive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jetstream.errors import BucketNotFound
from jetstream.events import ConsumerReset
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.kv import fields_of, new_bucket
from jetstream.testing.streams import JETSTREAM, js_server, left_alone, name_of, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidState, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from jetstream.kv import KeyValue, KeyWatcher


async def _initial(watcher: KeyWatcher) -> list[tuple[str, bytes, int, str]]:
    return [fields_of(entry) async for entry in watcher.initial()]


async def _nothing(watcher: KeyWatcher) -> None:
    with raises(TimeoutExpired, within=SOON):
        await watcher.next(0.05)


@check()
async def check_kv_watch(ctx: Context) -> None:
    """A watch starts with the latest value of each key, then reports each change."""
    js, kv = await new_bucket(ctx, history=5)
    for key in ("a", "b", "a"):
        await kv.put(key, b"v")
    await kv.delete("b")
    async with await kv.watch() as watcher:
        assert not watcher.initialized
        assert await _initial(watcher) == [("a", b"v", 3, "PUT"), ("b", b"", 4, "DEL")]
        assert watcher.initialized
        await _nothing(watcher)
        await kv.put("c", b"new")
        await kv.purge("a")
        seen: list[tuple[str, bytes, int, str]] = []
        async for entry in watcher:
            seen.append(fields_of(entry))
            if len(seen) == 2:
                break
        assert seen == [("c", b"new", 5, "PUT"), ("a", b"", 6, "PURGE")]
    assert watcher.closed
    with raises(InvalidState):
        await watcher.next(WAIT)
    await left_alone(ctx, js, "KV_" + kv.bucket)


@check()
async def check_kv_watch_an_empty_bucket(ctx: Context) -> None:
    """The initial values end at once if there are none, even if other keys exist."""
    _, kv = await new_bucket(ctx)
    async with await kv.watch_all() as watcher:
        assert await _initial(watcher) == []
        await kv.put("a", b"v")
        assert (await watcher.next(WAIT)).key == "a"
    async with await kv.watch("other.>") as watcher:
        assert await _initial(watcher) == []


@check()
async def check_kv_watch_options(ctx: Context) -> None:
    """Options select the initial values and omit deletions or values."""
    _, kv = await new_bucket(ctx, history=5)
    for value in (b"1", b"2"):
        await kv.put("a", value)
    await kv.delete("a")
    await kv.put("b.c", b"3")
    table: list[tuple[dict[str, Any], list[int], bytes]] = [
        # options, revisions at the beginning, the value that follows
        ({}, [3, 4], b"new"),
        ({"keys": "b.*"}, [4], b"new"),
        ({"include_history": True}, [1, 2, 3, 4], b"new"),
        ({"include_history": True, "ignore_deletes": True}, [1, 2, 4], b"new"),
        ({"ignore_deletes": True}, [4], b"new"),
        ({"meta_only": True}, [3, 4], b""),
        ({"updates_only": True}, [], b"new"),
        ({"resume_from_revision": 2}, [2, 3, 4], b"new"),
        ({"resume_from_revision": 5}, [], b"new"),
    ]
    watchers = [await kv.watch(**options) for options, _, _ in table]
    for watcher, (options, revisions, _) in zip(watchers, table):
        found = [revision for _, _, revision, _ in await _initial(watcher)]
        assert found == revisions, options
    await kv.put("b.c", b"new")
    for watcher, (options, _, value) in zip(watchers, table):
        assert fields_of(await watcher.next(WAIT)) == ("b.c", value, 5, "PUT"), options
        await watcher.stop()


@check(since=(2, 10))
async def check_kv_watch_several_filters(ctx: Context) -> None:
    """A watch can have several keys and filters."""
    _, kv = await new_bucket(ctx)
    for key in ("a", "b.x", "c"):
        await kv.put(key, b"v")
    async with await kv.watch(["a", "b.>"]) as watcher:
        assert [key for key, _, _, _ in await _initial(watcher)] == ["a", "b.x"]
        await kv.put("c", b"v")
        await kv.put("b.y", b"v")
        assert (await watcher.next(WAIT)).key == "b.y"


@check(slow=True)
async def check_kv_watch_values_that_go(ctx: Context) -> None:
    """Initial values that are removed before they are sent do not keep a watch waiting."""
    js, kv = await new_bucket(ctx)
    async with js.publisher() as window:
        for number in range(1400):
            await window.publish(f"$KV.{kv.bucket}.{number}", b"v")
    async with await kv.watch(meta_only=True) as watcher:
        first = await watcher.next(WAIT)
        await (await js.stream("KV_" + kv.bucket)).purge()
        keys = [first.key, *[key for key, _, _, _ in await _initial(watcher)]]
        assert keys == [str(number) for number in range(len(keys))]
        assert len(keys) < 1400
        await kv.put("later", b"v")
        assert (await watcher.next(WAIT)).key == "later"


@check()
async def check_kv_watch_bucket_deleted(ctx: Context) -> None:
    """A watch raises an error when the bucket is deleted."""
    js, kv = await new_bucket(ctx)
    await kv.put("a", b"v")
    async with await kv.watch() as watcher:
        assert len(await _initial(watcher)) == 1
        await js.delete_key_value(kv.bucket)
        with raises(BucketNotFound, within=SOON):
            await watcher.next(WAIT)
        with raises(BucketNotFound):
            _ = [entry async for entry in watcher]


async def _change(kv: KeyValue, keys: list[str], stop: list[bool]) -> None:
    while not stop:
        for key in keys:
            await kv.put(key, b"changed")


@check()
async def check_kv_watch_complete_while_others_write(ctx: Context) -> None:
    """Keys that exist all the time are in every list, even while others change them."""
    js, kv = await new_bucket(ctx, history=3)
    keys = ["k%d" % number for number in range(10)]
    for key in keys:
        for _ in range(3):
            await kv.put(key, b"first")
    other = jetstream_of(await ctx.connect(js_server(ctx)))
    stop: list[bool] = []
    changing = ctx.start(_change, await other.key_value(kv.bucket), keys[::2], stop)
    for _ in range(40):
        assert await kv.keys() == keys
        async with await kv.watch("*", include_history=True) as watcher:
            found = [key for key, _, _, _ in await _initial(watcher)]
        assert not [key for key in keys if found.count(key) < 3], found
        assert len(await kv.history("k0")) == 3
        assert await kv.keys("k1") == ["k1"]
    stop.append(True)
    await changing.result()
    await left_alone(ctx, js, "KV_" + kv.bucket)


@check(slow=True)
async def check_kv_watch_of_a_frozen_server(ctx: Context) -> None:
    """If the server freezes during the initial values, an error is raised after a while."""
    server = ctx.own_server(**JETSTREAM)
    js = await open_js(ctx, server)
    await js.create_key_value(bucket=name_of(ctx))
    async with js.publisher() as window:
        for number in range(2000):
            await window.publish(f"$KV.{name_of(ctx)}.{number}", b"v" * 1000)
    impatient = await open_js(ctx, server, timeout=0.5)
    kv = await impatient.key_value(name_of(ctx))
    async with await kv.watch() as watcher:
        first = await watcher.next(WAIT)
        server.freeze()
        try:
            with raises(TimeoutExpired, within=2 * WAIT):
                _ = await _initial(watcher)
        finally:
            server.thaw()
        found = {first.key, *[key for key, _, _, _ in await _initial(watcher)]}
        assert len(found) > 1
        assert watcher.initialized


# Losses: each revision arrives once, in order


async def _write(kv: KeyValue, first: int, count: int) -> None:
    """Write revisions, starting with `first`, to three keys in turn."""
    for revision in range(first, first + count):
        assert await kv.put("k%d" % (revision % 3), b"%d" % revision) == revision


async def _follow(watcher: KeyWatcher, first: int, last: int, timeout: float = WAIT) -> None:
    """Assert that exactly these revisions arrive, in order."""
    for revision in range(first, last + 1):
        entry = await watcher.next(timeout)
        assert fields_of(entry) == ("k%d" % (revision % 3), b"%d" % revision, revision, "PUT")


@check()
async def check_kv_watch_over_lost_connections(ctx: Context) -> None:
    """A watch delivers each revision once across lost connections, while others write."""
    _, kv = await new_bucket(ctx, history=64)
    client = await ctx.connect(js_server(ctx))
    mine = await jetstream_of(client).key_value(kv.bucket)
    await _write(kv, 1, 3)
    async with await mine.watch() as watcher:
        assert [revision for _, _, revision, _ in await _initial(watcher)] == [1, 2, 3]
        writing = ctx.start(_write, kv, 4, 150)
        for turn in range(3):
            await _follow(watcher, 4 + 30 * turn, 33 + 30 * turn)
            await client.force_reconnect()
        await _follow(watcher, 94, 153)
        await writing.result()
        await _nothing(watcher)
        assert isinstance(await watcher.events.next(WAIT), ConsumerReset)


@check()
async def check_kv_watch_lost_during_the_initial_values(ctx: Context) -> None:
    """If the connection is lost during the initial values, each key is delivered once."""
    _, kv = await new_bucket(ctx, history=3)
    client = await ctx.connect(js_server(ctx))
    js = jetstream_of(client)
    async with js.publisher() as window:
        for value in (b"old", b"new"):
            for number in range(700):
                await window.publish(f"$KV.{kv.bucket}.{number}", value)
    await kv.delete("650")
    known: dict[str, bytes] = {}
    async with await (await js.key_value(kv.bucket)).watch() as watcher:
        async for entry in watcher.initial():
            assert entry.key not in known
            known[entry.key] = entry.operation.encode() if entry.deleted else entry.value
            if len(known) == 10:
                await client.force_reconnect()
        await _nothing(watcher)
    expected = {str(number): b"new" for number in range(700)}
    expected["650"] = b"DEL"
    assert known == expected


@check()
async def check_kv_watch_over_a_restart(ctx: Context) -> None:
    """A watch survives a restart of the server, which loses the consumer but not the bucket."""
    server = ctx.own_server(**JETSTREAM)
    js = await open_js(ctx, server)
    kv = await js.create_key_value(bucket=name_of(ctx), history=64)
    await _write(kv, 1, 10)
    async with await kv.watch(include_history=True) as watcher:
        await _follow(watcher, 1, 4)
        server.terminate()
        server.restart()
        other = await (await open_js(ctx, server)).key_value(kv.bucket)
        await _write(other, 11, 5)
        await _follow(watcher, 5, 15, 2 * WAIT)
        await _nothing(watcher)


@check(since=(2, 10))
async def check_kv_watch_consumer_deleted(ctx: Context) -> None:
    """A watch survives the deletion of its consumer, twice."""
    js, kv = await new_bucket(ctx, history=64)
    async with await kv.watch(updates_only=True) as watcher:
        for turn in range(2):
            [name] = await js.consumer_names("KV_" + kv.bucket)
            await js.delete_consumer("KV_" + kv.bucket, name)
            await _write(kv, 1 + 5 * turn, 5)
            await _follow(watcher, 1 + 5 * turn, 5 + 5 * turn)
        await _nothing(watcher)
