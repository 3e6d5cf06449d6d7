"""Buckets that other clients created, changed, filled or deleted."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from jetstream.errors import (
    BucketExists,
    BucketNotFound,
    ObjectAlreadyExists,
    ObjectNotFound,
    TtlDisabled,
)
from jetstream.testing.blocking_view import jetstream_of
from jetstream.testing.checks.kv import new_bucket
from jetstream.testing.checks.objects import new_store, sample
from jetstream.testing.streams import JETSTREAM, js_server, left_alone, name_of, open_js
from jetstream.testing.suite import check
from natsproto.errors import InvalidValue, TimeoutExpired
from natsproto.testing.context import SOON, WAIT, Context, raises

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetstream import JetStream
    from jetstream.objects import ObjectStore

# What nats.js and nats-py 2.16 set, besides name and subjects.
_NATS_JS: dict[str, Any] = {
    **{"max_msgs_per_subject": 1, "discard": "new", "storage": "memory"},
    **{"allow_direct": True, "allow_rollup_hdrs": True, "duplicate_window": 120.0},
}
_NATS_PY: dict[str, Any] = {**_NATS_JS, "deny_delete": True, "allow_msg_ttl": True}


async def _bucket_of(js: JetStream, bucket: str, config: dict[str, Any]) -> None:
    """Create a bucket as another client does; then open it, update it, and reject a mismatch."""
    await js.create_stream(name="KV_" + bucket, subjects=[f"$KV.{bucket}.>"], **config)
    await js.create_key_value(bucket=bucket)
    kv = await js.create_key_value(bucket=bucket, history=1, storage="memory", ttl=0)
    await kv.put("a", b"v")
    with raises(BucketExists) as caught:
        await js.create_key_value(bucket=bucket, history=2, storage="memory", ttl=60)
    assert caught.error.different == ("history", "ttl")
    await js.update_key_value(await kv.info())
    await js.update_key_value(await kv.info(), history=10)
    assert (await kv.status()).history == 10
    await js.create_or_update_key_value(bucket=bucket, storage="memory", history=3)
    assert (await kv.status()).history == 3
    assert (await kv.get("a")).value == b"v"
    await js.delete_key_value(bucket)


@check()
async def check_kv_bucket_of_nats_js(ctx: Context) -> None:
    """A bucket without deny_delete is accepted and can be updated."""
    await _bucket_of(await open_js(ctx), name_of(ctx), _NATS_JS)


@check(since=(2, 11))
async def check_kv_bucket_of_nats_py(ctx: Context) -> None:
    """A bucket with TTLs of messages, and without markers, can be updated: its TTLs stay."""
    js = await open_js(ctx)
    await _bucket_of(js, name_of(ctx), _NATS_PY)
    await js.create_stream(
        name="KV_" + name_of(ctx), subjects=[f"$KV.{name_of(ctx)}.>"], **_NATS_PY
    )
    kv = await js.create_or_update_key_value(bucket=name_of(ctx), storage="memory")
    assert await kv.create("a", b"v", ttl=60) == 1


async def _write_link(js: JetStream, store: ObjectStore, name: str, to: str) -> None:
    """Write a link like nats.js does: without nuid, size and chunks."""
    link = {"bucket": store.bucket, "name": to}
    info = {"name": name, "bucket": store.bucket, "options": {"link": link}}
    subject = f"$O.{store.bucket}.M." + base64.urlsafe_b64encode(name.encode()).decode()
    await js.publish(subject, json.dumps(info).encode(), headers={"Nats-Rollup": "sub"})


@check()
async def check_object_links_of_nats_js(ctx: Context) -> None:
    """Links without a nuid are read, listed, watched, renamed, replaced and deleted."""
    js, store = await new_store(ctx)
    info = await store.put("a", b"data")
    for name in ("ref", "other"):
        await _write_link(js, store, name, "a")
    assert await store.get_bytes("ref") == b"data"
    link = (await store.get_info("ref")).link
    assert link is not None
    assert (link.bucket, link.name) == (store.bucket, "a")
    assert [each.name for each in await store.list()] == ["a", "other", "ref"]
    async with await store.watch() as watcher:
        names = [each.name async for each in watcher.initial()]
        assert sorted(names) == ["a", "other", "ref"]
    assert await store.purge_orphans(0) == 0
    await _write_link(js, store, "elsewhere", "b")
    with raises(ObjectAlreadyExists):
        await store.update_meta("ref", new_name="elsewhere")
    await store.update_meta("ref", new_name="renamed")
    assert await store.get_bytes("renamed") == b"data"
    await store.add_link("other", info)
    await store.put("renamed", b"no link")
    assert await store.get_bytes("renamed") == b"no link"
    await store.delete("elsewhere")
    with raises(ObjectNotFound):
        await store.get("elsewhere")
    await store.delete("elsewhere")
    assert [each.name for each in await store.list()] == ["a", "other", "renamed"]
    assert await store.get_bytes("a") == b"data"


@check()
async def check_objects_where_messages_are_small(ctx: Context) -> None:
    """The default chunk size fits the server; a given size that is too large is rejected."""
    js = await open_js(ctx, ctx.shared_server(**JETSTREAM, max_payload=8192))
    store = await js.create_object_store(bucket=name_of(ctx), storage="memory")
    data = sample(100_000)
    info = await store.put("o", data)
    assert (info.size, info.chunks) == (100_000, -(-100_000 // (8192 - 128)))
    assert await store.get_bytes("o") == data
    with raises(InvalidValue):
        await store.put("o", data, chunk_size=8192)


@check(slow=True)
async def check_deleted_buckets(ctx: Context) -> None:
    """A write to a deleted bucket raises an error that names the bucket."""
    js, kv = await new_bucket(ctx)
    store = await js.create_object_store(bucket=kv.bucket, storage="memory")
    await js.delete_key_value(kv.bucket)
    await js.delete_object_store(kv.bucket)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: kv.put("a", b"v"),
        lambda: kv.create("a", b"v"),
        lambda: kv.update("a", b"v", 7),
        lambda: kv.delete("a"),
        lambda: store.put("a", b"v"),
    ]
    for call in calls:
        with raises(BucketNotFound) as caught:
            await call()
        assert caught.error.bucket == kv.bucket


@check(since=(2, 11))
async def check_kv_ttl_that_is_not_allowed(ctx: Context) -> None:
    """The error names the field of the bucket that allows TTLs."""
    _, kv = await new_bucket(ctx)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: kv.create("a", b"v", ttl=60),
        lambda: kv.purge("a", ttl=60),
    ]
    for call in calls:
        with raises(TtlDisabled, within=SOON) as caught:
            await call()
        assert "limit_marker_ttl" in str(caught.error)
        assert kv.bucket in str(caught.error)


async def _replace(store: ObjectStore, names: list[str], stop: list[bool]) -> None:
    while not stop:
        for name in names:
            await store.put(name, b"again")


@check()
async def check_object_lists_while_others_write(ctx: Context) -> None:
    """Objects that always exist are in every list, even while others replace them."""
    js, store = await new_store(ctx)
    names = ["o%d" % number for number in range(10)]
    for name in names:
        await store.put(name, b"first")
    other = jetstream_of(await ctx.connect(js_server(ctx)))
    stop: list[bool] = []
    replacing = ctx.start(_replace, await other.object_store(store.bucket), names[::2], stop)
    for _ in range(30):
        assert [info.name for info in await store.list()] == names
        assert await store.get_bytes("o1") == b"first"
    stop.append(True)
    await replacing.result()
    await left_alone(ctx, js, "OBJ_" + store.bucket)


@check(slow=True)
async def check_object_of_a_frozen_server(ctx: Context) -> None:
    """If the server freezes during a read, an error is raised, and reading can continue later."""
    server = ctx.own_server(**JETSTREAM)
    js = await open_js(ctx, server)
    data = sample(12_000_000)
    await (await js.create_object_store(bucket=name_of(ctx))).put("o", data)
    impatient = await open_js(ctx, server, timeout=0.5)
    store = await impatient.object_store(name_of(ctx))
    async with await store.get("o") as reader:
        first = await reader.read(1000)
        server.freeze()
        try:
            parts: list[bytes] = []
            with raises(TimeoutExpired, within=2 * WAIT):
                while True:
                    parts.append(await reader.read(1000))
        finally:
            server.thaw()
        assert first + b"".join(parts) + await reader.read() == data
