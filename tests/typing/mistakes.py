"""Mistakes that a type checker has to find, each with the name that mypy has for it.

pyright finds them too: tests/typing/test_typing.py counts.
"""

from __future__ import annotations

from natsproto import blocking, client
from natsproto.adapters import asyncio as on_asyncio
from natsproto.adapters import blocking as without_a_loop
from natsproto.adapters import threads as with_threads
from natsproto.adapters import trio as on_trio


async def asynchronous(nc: client.Client) -> None:
    await nc.publish()  # type: ignore[call-arg]
    await nc.publish("a", "text")  # type: ignore[arg-type]
    await nc.publish("a", b"", "reply")  # type: ignore[call-arg]
    await nc.publish("a", header={})  # type: ignore[call-arg]
    await nc.request("a", timeout="1")  # type: ignore[arg-type]
    await nc.subscribe("a", cb=print)  # type: ignore[arg-type]
    nc.publish("a")  # type: ignore[unused-coroutine]
    on_asyncio.connect(max_reconnect=3)  # type: ignore[call-arg]
    on_trio.connect(name=3)  # type: ignore[arg-type]
    on_trio.connect(4222)  # type: ignore[arg-type]
    await on_trio.connect()  # type: ignore[misc]
    with on_asyncio.connect():  # type: ignore[attr-defined]
        pass


def synchronous(nc: blocking.Client) -> None:
    nc.publish()  # type: ignore[call-arg]
    nc.publish("a", "text")  # type: ignore[arg-type]
    nc.publish("a", b"", "reply")  # type: ignore[call-arg]
    nc.publish("a", header={})  # type: ignore[call-arg]
    nc.request("a", timeout="1")  # type: ignore[arg-type]
    nc.request_many("a", sentinel=len)  # type: ignore[arg-type]
    nc.subscribe("a", "q")  # type: ignore[call-arg]
    nc.subscribe("a", cb=print)  # type: ignore[arg-type]
    nc.subscribe("a").next("1")  # type: ignore[arg-type]
    nc.subscribe("a").unsubscribe(1, 2)  # type: ignore[call-arg]
    nc.state = "CLOSED"  # type: ignore[misc]
    nc.events.next(wait=1)  # type: ignore[call-arg]
    without_a_loop.connect(max_reconnect=3)  # type: ignore[call-arg]
    with_threads.connect(tls_first="yes")  # type: ignore[arg-type]
    for _ in nc.subscribe("a").next():  # type: ignore[attr-defined]
        pass
