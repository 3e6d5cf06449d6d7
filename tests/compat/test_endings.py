"""The ends of clients, subscriptions and services, if callbacks take long or fail."""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.testing import Server
from tests.compat.both import processed, run

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
ours: Any = importlib.import_module("natsproto.compat.nats")
importlib.import_module("natsproto.compat.nats.micro")
SOON = 5.0


async def overflow(nc: Any) -> None:
    """Have the client report that a subscription drops messages."""
    await nc.subscribe("slow", pending_msgs_limit=1)
    for _ in range(3):
        await nc.publish("slow")
    await processed(nc)


# The client


async def close_during_a_callback(nats: Any, url: str) -> list[str]:
    calls: list[str] = []
    called = asyncio.Event()

    async def on_error(error: Exception) -> None:
        calls.append("error")
        called.set()
        await asyncio.Event().wait()

    async def on_disconnected() -> None:
        calls.append("disconnected")

    async def on_closed() -> None:
        calls.append("closed")

    nc = await nats.connect(
        url, error_cb=on_error, disconnected_cb=on_disconnected, closed_cb=on_closed
    )
    overflowing = asyncio.create_task(overflow(nc))  # nats-py no longer reads after the error
    await called.wait()
    await asyncio.gather(nc.close(), nc.close())
    overflowing.cancel()
    await asyncio.wait([overflowing])
    return calls


def test_close_cancels_a_callback_that_does_not_return(nats, server):
    assert run(close_during_a_callback, nats, server.url) == ["error", "disconnected", "closed"]


async def slow_closed_cb(nats: Any, url: str) -> bool:
    done = False

    async def on_closed() -> None:
        nonlocal done
        await asyncio.sleep(1.5)  # longer than close waits for earlier callbacks
        done = True

    nc = await nats.connect(url, closed_cb=on_closed)
    await nc.close()
    return done


def test_close_waits_for_closed_cb(nats, server):
    assert run(slow_closed_cb, nats, server.url)


async def callback_that_awaits_something_canceled(nats: Any, url: str) -> list[str]:
    calls: list[str] = []

    async def on_error(error: Exception) -> None:
        calls.append("error")
        canceled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        canceled.cancel()
        await canceled

    async def on_closed() -> None:
        calls.append("closed")

    async def fail(msg: Any) -> None:
        calls.append(msg.data.decode())
        raise ValueError

    nc = await nats.connect(url, error_cb=on_error, closed_cb=on_closed)
    await overflow(nc)
    failing = await nc.subscribe("fail", cb=fail)
    for data in (b"1", b"2"):
        await nc.publish("fail", data)
    await failing.drain()
    await nc.close()
    return calls


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot tell who canceled")
def test_a_canceled_callback_does_not_end_the_others(server):
    calls = run(callback_that_awaits_something_canceled, ours, server.url)
    assert calls == ["error", "error", "1", "error", "2", "error", "closed"]


async def close_during_connect(url: str) -> tuple[str, bool]:
    nc, failed = ours.NATS(), asyncio.Event()

    async def on_error(error: Exception) -> None:
        failed.set()

    connecting = asyncio.create_task(
        nc.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.01, error_cb=on_error)
    )
    await failed.wait()
    await nc.close()
    try:
        await asyncio.wait_for(connecting, SOON)
    except ours.errors.Error as error:
        return type(error).__name__, nc.is_closed
    return "", nc.is_closed


def test_close_ends_connect():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"nats://127.0.0.1:{unused.getsockname()[1]}"
        assert run(close_during_connect, url) == ("ConnectionClosedError", True)


async def flush_without_answer(nats: Any, server: Server) -> str:
    nc = await nats.connect(server.url)
    server.freeze()
    try:
        await nc.flush(timeout=0.2)
    except nats.errors.TimeoutError as error:
        return type(error).__name__
    finally:
        server.thaw()
        await nc.close()
    return ""


def test_flush_has_a_timeout_of_its_own(nats):
    with Server() as server:
        assert run(flush_without_answer, nats, server) == "FlushTimeoutError"


# Subscriptions


async def two_drains(nats: Any, url: str) -> list[Any]:
    nc = await nats.connect(url, drain_timeout=SOON)
    sub = await nc.subscribe("a")
    await nc.publish("a")
    await processed(nc)
    drains = [asyncio.create_task(sub.drain()) for _ in range(2)]
    for _ in range(3):
        await processed(nc)  # until both of them wait for the message to be taken
    await sub.next_msg()
    results = await asyncio.gather(*drains, return_exceptions=True)
    await nc.close()
    return results


def test_a_subscription_may_be_drained_by_two_tasks(nats, server):
    assert run(two_drains, nats, server.url) == [None, None]


async def drain_of_a_slow_callback(nats: Any, url: str) -> bool:
    nc = await nats.connect(url, drain_timeout=0.1)
    done = False

    async def work(msg: Any) -> None:
        nonlocal done
        await asyncio.sleep(0.3)
        done = True

    sub = await nc.subscribe("a", cb=work)
    await nc.publish("a")
    await processed(nc)
    await sub.drain()
    await nc.close()
    return done


def test_a_subscription_is_drained_until_its_callback_returns(nats, server):
    assert run(drain_of_a_slow_callback, nats, server.url)


async def drain_with_messages_that_wait(nats: Any, url: str) -> list[bytes]:
    """Return the messages of a push subscription that its reader gets while the client drains."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    name = "W" + nats.__name__.replace(".", "_")
    await js.add_stream(name=name, subjects=[name])
    for number in range(3):
        await js.publish(name, b"%d" % number)
    sub = await js.subscribe(name)
    got = [(await sub.next_msg(timeout=SOON)).data]
    draining = asyncio.create_task(nc.drain())
    await asyncio.sleep(0.2)  # a reader that is slower than the server
    got += [(await sub.next_msg(timeout=SOON)).data for _ in range(2)]
    await draining
    return got


def test_a_drain_waits_for_the_reader_of_a_push_subscription(nats, server):
    assert run(drain_with_messages_that_wait, nats, server.url) == [b"0", b"1", b"2"]


async def callback_after_a_drain_that_timed_out(nats: Any, url: str) -> tuple[list[str], bool]:
    """Return the errors of the drain, and whether a callback that hangs was canceled."""
    reported: list[str] = []
    started, canceled = asyncio.Event(), asyncio.Event()

    async def on_error(error: Exception) -> None:
        reported.append(type(error).__name__)

    async def hang(msg: Any) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            canceled.set()

    nc = await nats.connect(url, drain_timeout=0.1, error_cb=on_error)
    await nc.subscribe("a", cb=hang)
    await nc.publish("a")
    await started.wait()
    await nc.drain()
    await asyncio.sleep(0)
    return reported, canceled.is_set()


def test_a_callback_that_outlasts_the_drain_is_canceled(nats, server):
    found = run(callback_after_a_drain_that_timed_out, nats, server.url)
    assert found == (["DrainTimeoutError"], True)


# Services


async def stop_with_a_handler_that_hangs(nats: Any, url: str) -> bool:
    nc = await nats.connect(url, drain_timeout=0.1)
    started = asyncio.Event()

    async def hang(request: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    service = await nats.micro.add_service(nc, name="s", version="1.0.0")
    await service.add_endpoint(name="hang", handler=hang)
    await nc.publish("hang")
    await started.wait()
    await service.stop()
    await nc.close()
    return bool(service.stopped.is_set())


def test_a_service_stops_although_a_handler_hangs(nats, server):
    assert run(stop_with_a_handler_that_hangs, nats, server.url)


async def stop_in_a_handler(url: str) -> None:
    nc = await ours.connect(url)
    service = await ours.micro.add_service(nc, name="s", version="1.0.0")

    async def stop(request: Any) -> None:
        await service.stop()
        await request.respond(b"stopped")

    await service.add_endpoint(name="stop", handler=stop)
    answer = await nc.request("stop", timeout=SOON)
    assert (answer.data, service.stopped.is_set()) == (b"stopped", True)
    await nc.close()


def test_a_handler_may_stop_its_service(server):
    run(stop_in_a_handler, server.url)  # on nats-py its task cancels itself
