"""Reads of buckets are canceled at each of their suspensions: no consumer is left on the server."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from tests.adapters.canceling import Canceler, until_empty


async def watch(bucket):
    async with await bucket.watch() as watcher:
        async for _ in watcher:
            return


CALLS = [  # the bucket, the call, and at how many points it suspends
    ("KV", lambda kv: kv.keys(), 3),
    ("KV", lambda kv: kv.history("a"), 3),
    ("KV", watch, 3),
    ("OBJ", lambda store: store.list(), 3),
    ("OBJ", lambda store: store.get_bytes("a"), 3),
    ("OBJ", watch, 3),
]


@pytest.mark.rule("D-KV-44", "D-OBJ-41")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("kind", "call", "points"), CALLS)
def test_nothing_is_left(runtime, js_server, kind, call, points, before):
    async def main():
        async with (
            runtime.connect(js_server.url) as client,
            runtime.connect(js_server.url) as another,
        ):
            js, other = JetStream(client), JetStream(another)
            create = js.create_key_value if kind == "KV" else js.create_object_store
            bucket = await create(bucket="b", storage="memory")
            await bucket.put("a", b"v")
            for nth in range(1, points + 1):
                canceler = Canceler(runtime, client, nth, before)
                assert await canceler.run(call(bucket))
                assert canceler.suspensions == nth
                await until_empty(runtime, lambda: other.consumer_names(kind + "_b"))
            canceler = Canceler(runtime, client, points + 1, before)
            assert not await canceler.run(call(bucket))
            assert canceler.suspensions == points
            await js.delete_stream(kind + "_b")

    runtime.run(main)
