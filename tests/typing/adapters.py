"""The types of `connect` and of clients, on every adapter.

This file is checked, but never run: a wrong `assert_type` is an error, and so is a mistake that is
not found.
"""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager

from typing_extensions import assert_type

from natsproto import Msg, Stats, blocking, client, events, subscription
from natsproto.adapters import anyio as on_anyio
from natsproto.adapters import asyncio as on_asyncio
from natsproto.adapters import blocking as without_a_loop
from natsproto.adapters import poll
from natsproto.adapters import pyodide as on_pyodide
from natsproto.adapters import threads as with_threads
from natsproto.adapters import trio as on_trio
from natsproto.errors import ConnectFailed, ConnectionLost, InvalidValue, TimeoutExpired


def built_in(
    late: TimeoutExpired, lost: ConnectionLost, failed: ConnectFailed, wrong: InvalidValue
) -> list[Exception]:
    timeout: TimeoutError = late
    connections: list[ConnectionError] = [lost, failed]
    value: ValueError = wrong
    return [timeout, *connections, value]


async def asynchronous() -> None:
    assert_type(await on_asyncio.connect(), client.Client)
    assert_type(on_trio.connect(), AbstractAsyncContextManager[client.Client])
    assert_type(await on_pyodide.connect("wss://a", creds="text"), client.Client)
    async with on_trio.connect(["nats://a", "nats://b"], name="n", max_reconnects=-1) as nc:
        assert_type(nc, client.Client)
    async with on_asyncio.connect("tls://a", tls=ssl.create_default_context()) as nc:
        assert_type(nc, client.Client)
        assert_type(await nc.publish("a", b"", reply="b", headers={"K": "v"}), None)
        assert_type(await nc.request("a", bytearray(), timeout=1), Msg)
        assert_type(await nc.request_many("a", max_msgs=3, sentinel=is_last), list[Msg])
        sub = await nc.subscribe("a", queue="q", max_msgs=1, max_bytes=1)
        assert_type(sub, subscription.Subscription)
        assert_type(await sub.next(timeout=None), Msg)
        async for msg in sub:
            assert_type(msg, Msg)
        async for event in nc.events:
            assert_type(event, events.Event)


async def on_other_loops() -> None:
    async with on_anyio.connect("nats://a", name="n") as nc:
        assert_type(nc, client.Client)
    async with poll.connect("nats://a", loop=poll.Loop(), name="n") as polled:
        assert_type(polled, poll.PollClient)
        assert_type(await polled.start(polled.request("a")), Msg)
    assert_type(await poll.connect(), poll.PollClient)


def without_await(polled: poll.PollClient) -> None:
    assert_type(polled.poll(), bool)
    assert_type(polled.start(polled.request("a")).result(), Msg)
    assert_type(polled.run(polled.flush()), None)
    assert_type(polled.next_deadline(), float | None)
    assert_type(polled.opening.result(), client.Client)


def is_last(msg: Msg) -> bool:
    return not msg.data


def synchronous() -> None:
    assert_type(without_a_loop.connect(), blocking.Client)
    assert_type(with_threads.connect(("nats://a",), connect_timeout=1), blocking.Client)
    with without_a_loop.connect(user="u", password="p") as nc, nc.corked():
        assert_type(nc.publish("a", b"", reply="b", headers={"K": "v"}), None)
        assert_type(nc.request("a", bytearray(), timeout=1), Msg)
        assert_type(nc.request_many("a", max_msgs=3, sentinel=is_last), list[Msg])
        assert_type(nc.flush(1.0), None)
        assert_type(nc.drain(timeout=1), None)
        assert_type(nc.close(), None)
        assert_type(nc.force_reconnect(), None)
        assert_type(nc.state, str)
        assert_type(nc.stats, Stats)
        assert_type(nc.connected_url, str)
        assert_type(nc.servers, list[str])
        assert_type(nc.set_servers("nats://a"), None)
        with nc.subscribe("a", queue="q", max_msgs=1, max_bytes=1) as sub:
            assert_type(sub, blocking.Subscription)
            assert_type(sub.next(timeout=None), Msg)
            assert_type(sub.unsubscribe(after=3), None)
            assert_type(sub.drain(), None)
            assert_type(list(sub), list[Msg])
            assert_type((sub.subject, sub.queue, sub.sid), tuple[str, str, int])
            assert_type((sub.pending, sub.dropped), tuple[int, int])
        assert_type(nc.events.next(timeout=1), events.Event)
        for event in nc.events:
            assert_type(event, events.Event)
