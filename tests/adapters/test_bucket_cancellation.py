"""Reads of buckets, canceled sooner or later after their start, leave no consumer on the server."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from natsproto.testing import Server
from tests.adapters.runtimes import RUNTIMES, Runtime

ROUNDS = 24
STEP = 0.0002
PATIENCE = 10.0


@pytest.fixture(scope="module")
def js_server():
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture(params=RUNTIMES)
def runtime(request) -> Runtime:
    return Runtime(request.param)


async def watch(bucket):
    async with await bucket.watch() as watcher:
        async for _ in watcher:
            pass


CALLS = [
    ("KV", lambda kv: kv.keys()),
    ("KV", lambda kv: kv.history("a")),
    ("KV", watch),
    ("OBJ", lambda store: store.list()),
    ("OBJ", lambda store: store.get_bytes("a")),
    ("OBJ", watch),
]


@pytest.mark.rule("KV-44", "OBJ-41")
@pytest.mark.parametrize(("kind", "call"), CALLS)
def test_nothing_is_left(runtime, js_server, kind, call):
    async def main():
        async with runtime.connect(js_server.url) as client:
            js = JetStream(client)
            if kind == "KV":
                bucket = await js.create_key_value(bucket="b", storage="memory")
                await bucket.put("a", b"v")
            else:
                bucket = await js.create_object_store(bucket="b", storage="memory")
                await bucket.put("a", b"v")
            for number in range(ROUNDS):
                task = runtime.start(lambda: call(bucket))
                await runtime.sleep(number * STEP)
                await task.stop()
            waited = 0.0
            while await js.consumer_names(kind + "_b"):
                await runtime.sleep(0.1)
                waited += 0.1
                assert waited < PATIENCE
            await js.delete_stream(kind + "_b")

    runtime.run(main)
