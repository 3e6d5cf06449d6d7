"""A reader that is canceled at the moment a message arrives: nats-py drops it, the layer does not.

`asyncio.wait_for(sub.next_msg(), 1)` cancels its reader that way if the message comes just in
time, and so does a program that is stopped. nats-py takes messages from its queue in a task of
their own, and collects those of a fetch in a local list: canceling the reader drops either.

Nothing here depends on time: a reader is canceled at its first suspension, then another one at its
second and so on, each time when what it waited for has happened. The messages of a consumer are
not delivered again within the test, because `ack_wait` is ten minutes.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.testing import Server
from tests.compat.both import processed, run
from tests.sweep.canceling import cancel_at

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
theirs: Any = pytest.importorskip("nats")
ours: Any = importlib.import_module("natsproto.compat.nats")
SOON = 10.0
MOST = 30  # more suspensions than a reader has
SENT = [b"first", b"second"]
LAST = b"last"


# How to subscribe


async def core(nats: Any, nc: Any, name: str) -> Any:
    sub = await nc.subscribe(name)
    await processed(nc)
    return sub


async def _stream(nats: Any, nc: Any, name: str) -> tuple[Any, Any]:
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name])
    api = importlib.import_module(nats.__name__ + ".js.api")
    return js, api.ConsumerConfig(ack_wait=600)


async def push(nats: Any, nc: Any, name: str) -> Any:
    js, config = await _stream(nats, nc, name)
    return await js.subscribe(name, config=config)


async def pull(nats: Any, nc: Any, name: str) -> Any:
    js, config = await _stream(nats, nc, name)
    return await js.pull_subscribe(name, "worker", config=config)


# How to read: each appends what it returns to the program


async def next_msg(sub: Any, got: list[bytes]) -> None:
    got.append((await sub.next_msg(timeout=SOON)).data)


async def iterate(sub: Any, got: list[bytes]) -> None:
    async for msg in sub.messages:
        got.append(msg.data)
        break


async def fetch_one(sub: Any, got: list[bytes]) -> None:
    got.extend(msg.data for msg in await sub.fetch(1, timeout=SOON))


async def fetch_two(sub: Any, got: list[bytes]) -> None:
    got.extend(msg.data for msg in await sub.fetch(2, timeout=SOON))


async def fetch_one_with_heartbeat(sub: Any, got: list[bytes]) -> None:
    got.extend(msg.data for msg in await sub.fetch(1, timeout=SOON, heartbeat=1))


async def fetch_two_with_heartbeat(sub: Any, got: list[bytes]) -> None:
    got.extend(msg.data for msg in await sub.fetch(2, timeout=SOON, heartbeat=1))


WAYS = [
    (core, next_msg),
    (core, iterate),
    (push, next_msg),
    (push, iterate),
    (pull, fetch_one),
    (pull, fetch_two),
    (pull, fetch_one_with_heartbeat),
]


async def lost(nats: Any, url: str, subscribe: Any, read: Any) -> list[bytes]:
    """Return the messages that no reader got, over all suspensions of the canceled one."""
    nc = await nats.connect(url)
    label = "_".join([nats.__name__.replace(".", "_"), subscribe.__name__, read.__name__])
    missing: list[bytes] = []
    try:
        for nth in range(1, MOST):
            name = f"{label}_{nth}"
            sub = await subscribe(nats, nc, name)
            got: list[bytes] = []
            reading = asyncio.ensure_future(cancel_at(False, read(sub, got), nth, before=False))
            for data in SENT:
                await nc.publish(name, data)  # on their way to a reader that waits
            outcome = await reading
            await nc.publish(name, LAST)
            while LAST not in got:
                await read(sub, got)
            missing += [data for data in SENT if data not in got]
            if not outcome.canceled:
                return missing  # it has fewer suspensions: each had its turn
    finally:
        await nc.close()
    raise AssertionError(f"more than {MOST} suspensions")


@pytest.mark.parametrize(("subscribe", "read"), WAYS)
def test_canceling_a_reader_loses_no_message(subscribe: Any, read: Any, server: Server):
    assert run(lost, theirs, server.url, subscribe, read, limit=60)
    assert run(lost, ours, server.url, subscribe, read, limit=60) == []


def test_canceling_a_fetch_of_several_with_heartbeats_loses_no_message(server: Server):
    # Not run on nats-py: with messages in its queue it sends a pull with a heartbeat and without an
    # expiry, which the server refuses.
    assert run(lost, ours, server.url, pull, fetch_two_with_heartbeat, limit=60) == []
