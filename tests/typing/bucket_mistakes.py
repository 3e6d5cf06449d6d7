"""Mistakes with buckets that a type checker has to find, by the name that mypy has for each."""

from __future__ import annotations

import jetstream
from jetstream import blocking as js_blocking
from jetstream import kv
from jetstream.blocking import kv as blocking_kv


async def asynchronous(js: jetstream.JetStream, bucket: kv.KeyValue) -> None:
    await js.create_key_value("b")  # type: ignore[arg-type]
    await js.create_key_value({"bucket": "b"})  # type: ignore[arg-type]
    await js.create_key_value(bucket="b", histroy=5)  # type: ignore[call-arg]
    await js.create_key_value(bucket="b", compression="s2")  # type: ignore[arg-type]
    await bucket.put("a", "text")  # type: ignore[arg-type]
    await bucket.put("a", b"", ttl=5)  # type: ignore[call-arg]
    await bucket.update("a", b"")  # type: ignore[call-arg]
    await bucket.delete("a", 5)  # type: ignore[call-arg]
    await bucket.delete("a", ttl=5)  # type: ignore[call-arg]
    await bucket.watch(5)  # type: ignore[arg-type]
    bucket.get("a")  # type: ignore[unused-coroutine]


def synchronous(js: js_blocking.JetStream, bucket: blocking_kv.KeyValue) -> None:
    js.create_key_value(bucket="b", histroy=5)  # type: ignore[call-arg]
    bucket.put("a", "text")  # type: ignore[arg-type]
    bucket.update("a", b"")  # type: ignore[call-arg]
    with bucket.watch("a", history=True):  # type: ignore[call-arg]
        pass
