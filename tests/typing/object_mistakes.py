"""Mistakes with objects that a type checker has to find, by the name that mypy has for each."""

from __future__ import annotations

import jetstream
from jetstream import blocking as js_blocking
from jetstream.blocking import objects as blocking_objects
from jetstream.objects import ObjectMeta, ObjectStore


async def asynchronous(js: jetstream.JetStream, store: ObjectStore) -> None:
    await js.create_object_store("b")  # type: ignore[arg-type]
    await js.create_object_store(bucket="b", histroy=5)  # type: ignore[call-arg]
    await js.create_object_store(bucket="b", compression="s2")  # type: ignore[arg-type]
    await store.put("o", "text")  # type: ignore[arg-type]
    await store.put("o", 5)  # type: ignore[arg-type]
    await store.put("o", b"", metadata={"a": 5})  # type: ignore[dict-item]
    await store.update_meta("o", description=5)  # type: ignore[arg-type]
    await store.add_link("l", ObjectMeta(name="o"))  # type: ignore[arg-type]
    await store.add_bucket_link("l", "b")  # type: ignore[arg-type]
    ObjectMeta(nam="o")  # type: ignore[call-arg]
    store.get("o")  # type: ignore[unused-coroutine]


def synchronous(js: js_blocking.JetStream, store: blocking_objects.ObjectStore) -> None:
    js.create_object_store(bucket="b", histroy=5)  # type: ignore[call-arg]
    store.put("o", "text")  # type: ignore[arg-type]
    with store.watch(history=True):  # type: ignore[call-arg]
        pass
