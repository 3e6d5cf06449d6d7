"""Failures of nats-py that its users report: each happens on nats-py, and not on the layer.

The first assertion of each test is about nats-py. If a release of it fixes the defect, that one
fails, and the row belongs into the table of programs that behave the same.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import Any

import pytest

from natsproto.testing import Server
from tests.compat.both import connect_raw, processed, run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
theirs: Any = pytest.importorskip("nats")
ours: Any = importlib.import_module("natsproto.compat.nats")
SOON = 5.0


async def after_a_strange_message(nats: Any, server: Server) -> bool:
    """Return whether a subscriber still receives after a message whose reply is not UTF-8."""
    nc = await nats.connect(server.url)
    sub = await nc.subscribe("a")
    await processed(nc)
    with connect_raw(server.port) as raw:
        raw.sendall(b"PUB a \xff 1\r\nx\r\nPUB a 2\r\nok\r\nPING\r\n")
        raw.recv(4096)
    try:
        while (await sub.next_msg(timeout=1.0)).data != b"ok":
            pass
    except asyncio.TimeoutError:
        return False
    finally:
        await close(nc)
    return True


async def close(nc: Any) -> None:
    try:
        await asyncio.wait_for(nc.close(), 2)
    except asyncio.TimeoutError:
        pass


def test_one_strange_message_does_not_make_the_client_deaf():
    with Server() as server:
        assert not run(after_a_strange_message, theirs, server)
        assert run(after_a_strange_message, ours, server)


async def with_a_header_called_status(nats: Any, url: str) -> bool:
    """Return whether a stored message with a header `Status: 404` is delivered."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    name = nats.__name__.replace(".", "_")
    await js.add_stream(name=name, subjects=[name])
    await js.publish(name, b"shipped", headers={"Status": "404"})
    sub = await js.pull_subscribe(name, "worker")
    try:
        found = await sub.fetch(1, timeout=1)
    except asyncio.TimeoutError:
        found = []
    await nc.close()
    return [msg.data for msg in found] == [b"shipped"]


def test_a_stored_message_is_not_taken_for_a_status():
    with Server(jetstream=True) as server:
        assert not run(with_a_header_called_status, theirs, server.url)
        assert run(with_a_header_called_status, ours, server.url)


async def while_a_callback_waits(nats: Any, server: Server) -> bool:
    """Return whether a subscriber receives while `error_cb` waits."""
    release = asyncio.Event()
    called = asyncio.Event()

    async def on_error(error: Exception) -> None:
        called.set()
        await release.wait()  # for example a slow request to an alerting service

    nc = await nats.connect(server.url, error_cb=on_error)
    slow = await nc.subscribe("slow", pending_msgs_limit=1)
    fast = await nc.subscribe("fast")
    for _ in range(3):
        await nc.publish("slow")  # the second one is dropped, which is reported
    await nc.publish("fast")
    await asyncio.wait_for(called.wait(), SOON)
    try:
        await fast.next_msg(timeout=1.0)
        received = True
    except asyncio.TimeoutError:
        received = False
    release.set()
    await slow.next_msg(timeout=SOON)
    await close(nc)
    return received


def test_an_error_callback_that_waits_does_not_stop_the_reader():
    with Server() as server:
        assert not run(while_a_callback_waits, theirs, server)
        assert run(while_a_callback_waits, ours, server)


async def drained_by_a_callback(nats: Any, url: str) -> bool:
    """Return whether `closed_cb` is called if a callback drains the client."""
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    nc = await nats.connect(url, closed_cb=on_closed, drain_timeout=0.5)

    async def drain(msg: Any) -> None:  # for example at a message that ends the program
        await nc.drain()

    await nc.subscribe("end", cb=drain)
    await nc.publish("end")
    try:
        await asyncio.wait_for(closed.wait(), 2.0)
    except asyncio.TimeoutError:
        return False
    return True


def test_a_callback_can_drain_the_client():
    with Server() as server:
        assert not run(drained_by_a_callback, theirs, server.url)
        assert run(drained_by_a_callback, ours, server.url)


async def requests_in_flight(nats: Any, url: str) -> int:
    """Return how many of 3 requests are answered if the service is stopped meanwhile."""
    nc, client = await nats.connect(url), await nats.connect(url)
    started = asyncio.Event()

    async def work(request: Any) -> None:
        started.set()
        await asyncio.sleep(0.1)
        await request.respond(b"done")

    micro = importlib.import_module(nats.__name__ + ".micro")
    service = await micro.add_service(nc, name="worker", version="1.0.0")
    await service.add_endpoint(name="work", handler=work)
    await processed(nc)
    waiting = [asyncio.create_task(client.request("work", timeout=2)) for _ in range(3)]
    await started.wait()
    await processed(client)
    await service.stop()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    await nc.close()
    await client.close()
    return len([each for each in answers if not isinstance(each, Exception)])


def test_a_service_that_stops_answers_what_has_arrived():
    with Server() as server:
        assert run(requests_in_flight, theirs, server.url) < 3
        assert run(requests_in_flight, ours, server.url) == 3


async def without_tls(nats: Any, server: Server) -> bool:
    """Return whether `tls://` connects to a server without TLS, sending the password."""
    url = f"tls://user:secret@127.0.0.1:{server.port}"
    try:
        nc = await nats.connect(url, allow_reconnect=False, connect_timeout=2)
    except Exception:
        return False
    await nc.close()
    return True


def test_a_tls_url_is_not_used_without_tls():
    with Server() as server:
        assert run(without_tls, theirs, server)
        assert not run(without_tls, ours, server)


async def deleted_consumer(nats: Any, url: str) -> float:
    """Return how long it takes to notice that the push consumer was deleted; 3 if it is not."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    name = "D" + nats.__name__.replace(".", "_")
    await js.add_stream(name=name, subjects=[name])
    sub = await js.subscribe(name, durable="d", idle_heartbeat=0.2)
    await js.delete_consumer(name, "d")
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        await sub.next_msg(timeout=3)
    except asyncio.TimeoutError:
        return 3.0
    except Exception:
        return loop.time() - started
    finally:
        await nc.close()
    return 0.0


def test_a_deleted_push_consumer_is_noticed():
    with Server(jetstream=True) as server:
        assert run(deleted_consumer, theirs, server.url) == 3.0
        assert 0.0 < run(deleted_consumer, ours, server.url) < 3.0


async def consumer_lost_by_a_restart(nats: Any, server: Server) -> str:
    """Return what a subscriber learns if its consumer does not survive a restart."""
    nc = await nats.connect(server.url, reconnect_time_wait=0.1)
    js = nc.jetstream()
    name = "R" + nats.__name__.replace(".", "_")
    await js.add_stream(name=name, subjects=[name])
    api = importlib.import_module(nats.__name__ + ".js.api")
    config = api.ConsumerConfig(mem_storage=True, inactive_threshold=1.0)
    sub = await js.subscribe(name, config=config)
    server.kill()
    await asyncio.sleep(1.5)  # longer than the consumer may be without a subscriber
    server.restart()
    await nc.flush()
    try:
        await sub.next_msg(timeout=3)
    except asyncio.TimeoutError:
        return "nothing"
    except nats.errors.Error as error:
        return str(error)
    finally:
        await nc.close()
    return "a message"


def test_a_subscriber_notices_that_a_restart_has_deleted_its_consumer():
    with Server(jetstream=True) as server:
        assert run(consumer_lost_by_a_restart, theirs, server) == "nothing"
        assert "consumer not found" in run(consumer_lost_by_a_restart, ours, server)


MEMBERS = 4


class Barrier:
    """Hold everyone who waits until a number of them do; whoever comes later passes."""

    def __init__(self, members: int) -> None:
        self._missing = members
        self._complete = asyncio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._complete.set()
        await self._complete.wait()


async def members_that_start_at_once(nats: Any, url: str) -> int:
    """Return to how many subjects the members of a queue group listen; a consumer uses one.

    The members go in step, through a proxy that answers their lookups when the last one has asked,
    and their requests to create a consumer when the server has processed all of them. So each finds
    no consumer, and each creates it before any of them listens. The server gets one request at a
    time: of several, it may answer one with the configuration of another.
    """
    proxy, *clients = [await nats.connect(url) for _ in range(1 + MEMBERS)]
    name = "Q" + nats.__name__.replace(".", "_")
    await proxy.jetstream().add_stream(name=name, subjects=[name])
    looked_up, created = Barrier(MEMBERS), Barrier(MEMBERS)
    one_request = asyncio.Lock()

    async def forward(msg: Any) -> None:
        subject = msg.subject.replace(f"{name}_API.", "$JS.API.", 1)
        async with one_request:
            answer = await proxy.request(subject, msg.data, timeout=SOON)
        if ".CONSUMER.INFO." in subject:
            await looked_up.wait()
        elif ".CREATE." in subject:
            await created.wait()
        await msg.respond(answer.data)

    tasks: list[asyncio.Task[None]] = []

    async def start(msg: Any) -> None:
        tasks.append(asyncio.create_task(forward(msg)))

    await proxy.subscribe(f"{name}_API.>", cb=start)
    await processed(proxy)
    contexts = [nc.jetstream(prefix=f"{name}_API") for nc in clients]
    calls = [js.subscribe(name, queue="workers", stream=name) for js in contexts]
    subs = await asyncio.gather(*calls)
    await asyncio.gather(*tasks)
    for nc in (proxy, *clients):
        await nc.close()
    return len({sub.subject for sub in subs})


def test_members_of_a_queue_group_that_start_at_once_share_a_consumer():
    with Server(jetstream=True) as server:
        assert run(members_that_start_at_once, theirs, server.url) == MEMBERS
        assert run(members_that_start_at_once, ours, server.url) == 1


async def more_subscriptions_than_allowed(nats: Any, server: Server) -> tuple[bool, list[str]]:
    """Return whether the client is still connected after that, and which errors it reported."""
    reported: list[str] = []

    async def on_error(error: Exception) -> None:
        reported.append(str(error))

    nc = await nats.connect(server.url, error_cb=on_error)
    for name in "abc":
        await nc.subscribe(name)
    try:
        await nc.flush(timeout=2)
    except (nats.errors.Error, asyncio.TimeoutError):
        pass
    await asyncio.sleep(0.1)  # nats-py closes in a task
    found = nc.is_connected, reported
    await close(nc)
    return found


def test_a_subscription_that_is_refused_does_not_close_the_client():
    with Server(config="max_subscriptions: 2") as server:
        assert run(more_subscriptions_than_allowed, theirs, server) == (False, [])
        connected, reported = run(more_subscriptions_than_allowed, ours, server)
    assert (connected, reported) == (True, ["nats: maximum subscriptions exceeded"])


async def fetch_of_more_than_the_consumer_allows(nats: Any, url: str) -> str:
    """Return the result of a fetch that the consumer refuses, although it has messages."""
    nc = await nats.connect(url)
    js = nc.jetstream()
    name = "B" + nats.__name__.replace(".", "_")
    await js.add_stream(name=name, subjects=[name])
    await js.publish(name, b"1")
    body = {"stream_name": name, "config": {"durable_name": "d", "max_batch": 2}}
    body["config"]["ack_policy"] = "explicit"
    await nc.request(f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.d", json.dumps(body).encode())
    sub = await js.pull_subscribe_bind("d", name)
    try:
        return str(await sub.fetch(5, timeout=1))
    except nats.errors.Error as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await nc.close()


def test_a_fetch_that_is_refused_raises():
    with Server(jetstream=True) as server:
        assert run(fetch_of_more_than_the_consumer_allows, theirs, server.url) == "[]"
        found = run(fetch_of_more_than_the_consumer_allows, ours, server.url)
    assert "Exceeded MaxRequestBatch of 2" in found
