"""Failures of nats-py's buckets and services: each happens on nats-py, and not on the layer."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest

from natsproto.testing import Server

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
theirs: Any = pytest.importorskip("nats")
ours: Any = importlib.import_module("natsproto.compat.nats")


def run(program: Any, nats: Any) -> Any:
    for name in ("js.api", "js.errors", "micro.service"):
        importlib.import_module(f"{nats.__name__}.{name}")
    with Server(jetstream=True) as server:
        return asyncio.run(asyncio.wait_for(program(nats, server.url), 30))


async def rename(nats: Any, url: str) -> list[str]:
    """Return the objects of a bucket after one of them was renamed."""
    nc = await nats.connect(url)
    store = await nc.jetstream().create_object_store("FILES")
    await store.put("old", b"data")
    try:
        await store.update_meta("old", nats.js.api.ObjectMeta(name="new"))
    except nats.js.errors.ObjectAlreadyExists:
        pass
    names = [info.name for info in await store.list()]
    await nc.close()
    return names


def test_an_object_can_be_renamed():
    assert run(rename, theirs) == ["old"]
    assert run(rename, ours) == ["new"]


async def empty_bucket(nats: Any, url: str) -> list[Any] | None:
    """Return the objects of an empty bucket, None if that raises."""
    nc = await nats.connect(url)
    store = await nc.jetstream().create_object_store("FILES")
    try:
        return [*await store.list()]
    except nats.js.errors.NotFoundError:
        return None
    finally:
        await nc.close()


def test_an_empty_bucket_can_be_listed():
    assert run(empty_bucket, theirs) is None
    assert run(empty_bucket, ours) == []


async def several_keys(nats: Any, url: str) -> list[str]:
    """Return the keys that a watch of two of them reports."""
    nc = await nats.connect(url)
    kv = await nc.jetstream().create_key_value(bucket="CFG")
    for key in "abc":
        await kv.put(key, b"1")
    try:
        watcher = await kv.watch(["a", "c"])
    except nats.js.errors.ServerError:
        return []
    finally:
        if nats is theirs:
            await nc.close()
    found = [(await watcher.updates()).key for _ in range(2)]
    await nc.close()
    return found


def test_several_keys_can_be_watched():
    assert run(several_keys, theirs) == []
    assert run(several_keys, ours) == ["a", "c"]


async def counters_after_a_reset(nats: Any, url: str) -> int:
    """Return the number of requests in the statistics of a service that was reset."""
    nc = await nats.connect(url)

    async def answer(request: Any) -> None:
        await request.respond(b"")

    async with await nats.micro.add_service(nc, name="s", version="1.0.0") as service:
        await service.add_endpoint(name="answer", handler=answer)
        await nc.request("answer", timeout=5)
        await service.reset()
        count: int = service.stats().endpoints[0].num_requests
    await nc.close()
    return count


def test_a_service_can_be_reset():
    assert run(counters_after_a_reset, theirs) == 1
    assert run(counters_after_a_reset, ours) == 0


# What the service library of nats.go sends.
STATISTICS = {
    "type": "io.nats.micro.v1.stats_response",
    "name": "s",
    "id": "VMKS6MHK71LC5G1UHZ25MR",
    "version": "1.0.0",
    "metadata": {},
    "started": "2026-11-18T07:00:00.123456789Z",
    "endpoints": [
        {
            "name": "answer",
            "subject": "answer",
            "queue_group": "q",
            "num_requests": 3,
            "num_errors": 0,
            "last_error": "",
            "processing_time": 1000,
            "average_processing_time": 333,
        }
    ],
}


def test_the_statistics_of_other_clients_can_be_read():
    theirs_service, ours_service = (
        importlib.import_module(each.__name__ + ".micro.service") for each in (theirs, ours)
    )
    with pytest.raises((KeyError, ValueError)):
        theirs_service.ServiceStats.from_dict(STATISTICS)
    stats = ours_service.ServiceStats.from_dict(STATISTICS)
    assert (stats.started.microsecond, stats.endpoints[0].num_requests) == (123456, 3)
