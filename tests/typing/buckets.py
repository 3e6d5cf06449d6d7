"""The types of the key-value store, with and without await.

This file is checked, but never run: a wrong `assert_type` is an error, and so is a mistake that is
not found.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import assert_type

import jetstream
from jetstream import blocking as js_blocking
from jetstream import kv
from jetstream.blocking import kv as blocking_kv


async def asynchronous(js: jetstream.JetStream) -> None:
    config = kv.KeyValueConfig(bucket="b", ttl=60, sources=[{"name": "a"}])
    bucket = await js.create_key_value(config, history=5, storage="memory", compression=True)
    assert_type(bucket, kv.KeyValue)
    assert_type(await js.update_key_value(bucket="b"), kv.KeyValue)
    assert_type(await js.create_or_update_key_value(config), kv.KeyValue)
    assert_type(await js.key_value("b"), kv.KeyValue)
    assert_type(await js.delete_key_value("b"), None)
    assert_type(await js.key_value_names(), list[str])
    assert_type(await js.key_values(), jetstream.Listing[kv.KeyValueStatus])
    entry = await bucket.get("a", revision=5)
    assert_type(entry, kv.KeyValueEntry)
    assert_type((entry.bucket, entry.key, entry.value), tuple[str, str, bytes])
    assert_type((entry.revision, entry.delta, entry.deleted), tuple[int, int, bool])
    assert_type(entry.created, jetstream.Timestamp)
    assert_type(entry.operation, Literal["PUT", "DEL", "PURGE"])
    assert_type(await bucket.put("a", bytearray()), int)
    assert_type(await bucket.create("a", b"", ttl=60), int)
    assert_type(await bucket.update("a", b"", last=5), int)
    assert_type(await bucket.delete("a", last=None), int)
    assert_type(await bucket.purge("a", ttl="never"), int)
    assert_type(await bucket.purge_deletes(60), int)
    assert_type(await bucket.history("a"), list[kv.KeyValueEntry])
    assert_type(await bucket.keys(["a.*", "b"]), list[str])
    assert_type(await bucket.info(), kv.KeyValueConfig)
    coded = bucket.with_codecs(keys=[kv.PathCodec(), kv.Base64Codec()], values=kv.Base64Codec())
    assert_type(coded, kv.KeyValue)
    assert_type(
        bucket.with_codecs(values=[kv.AesGcmCodec(b"", b""), kv.Base64Codec()]), kv.KeyValue
    )
    status = await bucket.status()
    assert_type((status.values, status.bytes, status.ttl), tuple[int, int, float])
    assert_type(status.config, kv.KeyValueConfig)
    async with await bucket.list_keys("a.>") as lister:
        async for key in lister:
            assert_type(key, str)
    async with await bucket.watch("a", include_history=True) as watcher:
        assert_type(watcher, kv.KeyWatcher)
        assert_type((watcher.initialized, watcher.closed), tuple[bool, bool])
        async for each in watcher.initial():
            assert_type(each, kv.KeyValueEntry)
        async for each in watcher:
            assert_type(each, kv.KeyValueEntry)
        assert_type(await watcher.next(timeout=1), kv.KeyValueEntry)
        assert_type(await watcher.stop(), None)


def synchronous(js: js_blocking.JetStream) -> None:
    bucket = js.create_key_value(bucket="b", replicas=3, limit_marker_ttl=60)
    assert_type(bucket, blocking_kv.KeyValue)
    assert_type(js.key_value("b"), blocking_kv.KeyValue)
    assert_type(js.key_values(), jetstream.Listing[kv.KeyValueStatus])
    assert_type(bucket.bucket, str)
    assert_type(bucket.get("a"), kv.KeyValueEntry)
    assert_type(bucket.put("a", b""), int)
    assert_type(bucket.create("a", b"", ttl=60), int)
    assert_type(bucket.keys(), list[str])
    assert_type(bucket.with_codecs(keys=kv.PathCodec(), values=None), blocking_kv.KeyValue)
    assert_type(bucket.status(), kv.KeyValueStatus)
    with bucket.list_keys() as lister:
        for key in lister:
            assert_type(key, str)
    with bucket.watch_all(updates_only=True) as watcher:
        assert_type(watcher, blocking_kv.KeyWatcher)
        for entry in watcher.initial():
            assert_type(entry, kv.KeyValueEntry)
        for entry in watcher:
            assert_type(entry, kv.KeyValueEntry)
        assert_type(watcher.next(timeout=1), kv.KeyValueEntry)
        assert_type(watcher.began, jetstream.Timestamp | None)
