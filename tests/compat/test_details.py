"""Details of nats-py that programs depend on, asserted on nats-py and on the layer alike."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.compat.nats.aio.options import RawCredentials
from natsproto.testing import Server
from tests.compat.both import processed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from nats-py
SOON = 5.0
USERS = """
accounts: {
  A: { jetstream: enabled, users: [
    {user: all, password: p}
    {user: odd, password: "p%2F@ss"}
    {user: few, password: p, permissions: {
      publish: ["ok", "$JS.API.>", "$JS.ACK.>"], subscribe: ["_INBOX.>", "_MINE.>"]}}
  ]}
}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(jetstream=True, config=USERS) as server:
        yield server


def run(program: Any, nats: Any, server: Server) -> None:
    asyncio.run(asyncio.wait_for(program(nats, server.url, unique(nats, program)), 30))
    if nats.__name__ == "nats":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()  # nats-py does not close the transports of failed attempts


def unique(nats: Any, program: Any) -> str:
    """Return a name for what a test creates on the server that all of them share."""
    return f"{program.__name__}_{nats.__name__.replace('.', '_')}"


async def connect(nats: Any, url: str, **options: Any) -> Any:
    return await nats.connect(url, **{"user": "all", "password": "p", **options})


async def settle(nc: Any) -> None:
    """Return when what was published has arrived, and tasks that it wakes have run."""
    await processed(nc)
    await asyncio.sleep(0.05)


def test_addresses_are_completed_in_the_same_way():
    theirs, ours = (
        importlib.import_module(f"{name}.aio.client").Client()
        for name in ("nats", "natsproto.compat.nats")
    )
    users = ("", "@", ":@", "a@", "a:b@")
    hosts = ("h", "h:", "h:1", "[::1]", "[::1]:1")
    for start in ("", "nats://", "tls://", "ws://", "wss://"):
        for user in users:
            for address in (start + user + host for host in hosts):
                assert parse(ours, address) == parse(theirs, address), address


def parse(client: Any, address: str) -> Any:
    try:
        return client._parse_server_uri(address)
    except Exception as error:
        return type(error).__name__


# Subscriptions


async def arrivals_are_counted(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    sub = await nc.subscribe(name)
    for _ in range(3):
        await nc.publish(name, b"abc")
    await settle(nc)
    assert (sub.delivered, sub.pending_msgs, sub.pending_bytes) == (3, 3, 9)
    await sub.next_msg()
    assert (sub.delivered, sub.pending_msgs, sub.pending_bytes) == (3, 2, 6)
    await nc.close()


async def unsubscribe_discards_what_waits_for_the_callback(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    called, got = asyncio.Event(), []

    async def receive(msg: Any) -> None:
        got.append(msg.data)
        called.set()
        await asyncio.sleep(0.01)

    sub = await nc.subscribe(name, cb=receive)
    for number in range(5):
        await nc.publish(name, b"%d" % number)
    await nc.flush()
    await called.wait()
    await sub.unsubscribe()
    await asyncio.sleep(0.1)
    assert got == [b"0"]
    await nc.close()


async def next_msg_times_out_after_unsubscribe(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name])
    for sub in (await nc.subscribe("other"), await js.subscribe(name)):
        await sub.unsubscribe()
        with pytest.raises(nats.errors.TimeoutError):
            await sub.next_msg(timeout=0.05)
    await nc.close()


async def members_know_their_queue_group(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name])
    subs = [await js.subscribe(name, "group") for _ in range(2)]
    assert [sub.queue for sub in subs] == ["group", "group"]
    assert subs[0].subject == subs[1].subject
    await nc.close()


# Requests and payloads


async def a_request_may_wait_forever(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)

    async def answer(msg: Any) -> None:
        await msg.respond(b"yes")

    await nc.subscribe(name, cb=answer)
    assert (await nc.request(name, timeout=None)).data == b"yes"
    await nc.close()


async def a_payload_must_be_bytes(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    for payload in (None, "text"):
        with pytest.raises(TypeError):
            await nc.publish(name, payload)
    for payload in (bytearray(b"x"), memoryview(b"x")):
        await nc.publish(name, payload)
    await nc.close()


async def a_denied_request_is_a_timeout(nats: Any, url: str, name: str) -> None:
    reported: list[Exception] = []

    async def on_error(error: Exception) -> None:
        reported.append(error)

    nc = await connect(nats, url, user="few", error_cb=on_error)
    with pytest.raises(nats.errors.TimeoutError):
        await nc.request("forbidden", timeout=0.5)
    assert type(reported[0]) is nats.errors.Error
    assert str(reported[0]) == 'nats: permissions violation for publish to "forbidden"'
    assert nc.is_connected
    await nc.close()


async def addresses_may_have_parts_without_a_meaning(nats: Any, url: str, name: str) -> None:
    place = url.rpartition("/")[2]
    for address in (f"nats://:@{place}", f"nats://@{place}/", f"nats://{place}/path?a=b"):
        nc = await connect(nats, address)
        assert nc.is_connected
        await nc.close()


async def credentials_in_addresses_are_sent_as_they_are(nats: Any, url: str, name: str) -> None:
    place = url.rpartition("/")[2]
    nc = await nats.connect(f"nats://odd:p%2F@ss@{place}")
    assert [(each.username, each.password, each.port) for each in nc.servers] == [
        ("odd", "p%2F@ss", int(place.rpartition(":")[2]))
    ]
    await nc.close()


async def the_pool_takes_the_same_addresses_as_connect(nats: Any, url: str, name: str) -> None:
    again = asyncio.Event()

    async def on_reconnected() -> None:
        again.set()

    nc = await connect(nats, url, reconnect_time_wait=0.01, reconnected_cb=on_reconnected)
    if nats.__name__ != "nats":
        nc.require_tls_of_urls = False
    place = url.rpartition("/")[2]
    nc.set_server_pool([f"tls://{place}/path"])
    await nc.force_reconnect()
    await again.wait()
    await nc.close()


async def rejected_credentials_are_tried_again(nats: Any, url: str, name: str) -> None:
    reported: list[Exception] = []

    async def on_error(error: Exception) -> None:
        reported.append(error)

    options = {"error_cb": on_error, "reconnect_time_wait": 0.01, "password": "wrong"}
    with pytest.raises(nats.errors.NoServersError):
        await connect(nats, url, max_reconnect_attempts=3, **options)
    with pytest.raises((nats.errors.Error, OSError)) as caught:
        await connect(nats, url, allow_reconnect=False, **options)
    reported.append(caught.value)  # four attempts, then one that was reported as well
    # nats-py sends PING after CONNECT. The server may have closed the connection by then, so there
    # are also errors of the socket, which may come instead of the server's answer.
    answers = [str(error) for error in reported if not isinstance(error, OSError)]
    complete = nats.__name__ != "nats" or len(answers) == len(reported)
    assert answers == ["nats: 'Authorization Violation'"] * (6 if complete else len(answers))
    assert len(answers) > 1


# JetStream


async def acknowledgments_have_the_value_of_a_counter(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name], allow_msg_counter=True, allow_direct=True)
    incr = nats.js.api.Header.INCR
    assert (await js.publish(name, headers={incr: "5"})).val == "5"
    ack = await (await js.publish_async(name, headers={incr: "-2"}))
    assert ack.as_dict() == {"stream": name, "seq": 2, "val": "3"}
    await nc.close()


def test_acknowledgments_of_a_batch_have_other_names(nats):
    sent = {"stream": "S", "seq": 3, "batch": "b", "count": 2}
    ack = nats.js.api.PubAck.from_response(dict(sent))
    assert (ack.batch_id, ack.batch_size, ack.as_dict()) == ("b", 2, sent)


async def pulled_messages_arrive_below_the_inbox_prefix(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    await nc.jetstream().add_stream(name=name, subjects=[name])
    await nc.jetstream().publish(name, b"1")
    few = await connect(nats, url, user="few", inbox_prefix="_MINE")
    few_js = few.jetstream()
    sub = await few_js.pull_subscribe(name, "worker", stream=name, inbox_prefix=b"_INBOX.")
    [msg] = await sub.fetch(1, timeout=SOON)
    await msg.ack()
    assert msg.data == b"1"
    denied = await few_js.pull_subscribe_bind("worker", name, inbox_prefix=b"_THEIRS.")
    with pytest.raises(nats.errors.Error):
        await denied.fetch(1, timeout=0.3)
    await few.close()
    await nc.close()


async def a_fetch_from_a_deleted_consumer_fails(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name])
    sub = await js.pull_subscribe(name, "worker")
    await js.delete_consumer(name, "worker")
    with pytest.raises(nats.js.errors.ServiceUnavailableError):
        await sub.fetch(1, timeout=1)
    await nc.close()


async def a_direct_get_has_the_headers_of_the_server(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    js = nc.jetstream()
    await js.add_stream(name=name, subjects=[name], allow_direct=True)
    await js.publish(name, b"1", headers={"K": "v"})
    msg = await js.get_msg(name, 1, direct=True)
    headers = {key: msg.headers[key] for key in ("K", "Nats-Subject", "Nats-Sequence")}
    assert headers == {"K": "v", "Nats-Subject": name, "Nats-Sequence": "1"}
    assert (msg.subject, msg.seq, msg.data) == (name, 1, b"1")
    await nc.close()


async def a_stopped_watch_ends_its_iteration(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    kv = await nc.jetstream().create_key_value(bucket=name)
    await kv.put("a", b"1")
    watcher = await kv.watchall()
    seen, got = asyncio.Event(), []

    async def read() -> None:
        async for entry in watcher:
            got.append(entry and entry.key)
            if entry is None:
                seen.set()

    task = asyncio.create_task(read())
    await seen.wait()
    await watcher.stop()
    await asyncio.wait_for(task, SOON)
    assert got == ["a", None]
    await nc.close()


async def objects_have_what_their_owner_set_last(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)
    store = await nc.jetstream().create_object_store(name)
    meta = nats.js.api.ObjectMeta
    await store.put("a", b"xyz", meta=meta(description="first", headers={"k": "v"}))
    await store.update_meta("a", meta(name="a", description="second"))
    info = await store.get_info("a")
    assert (info.description, info.headers, info.size) == ("second", None, 3)
    with pytest.raises(TypeError):
        await store.put("b", None)
    await nc.close()


# Services


async def a_service_in_a_block_answers_once(nats: Any, url: str, name: str) -> None:
    nc = await connect(nats, url)

    async def fail(request: Any) -> None:
        raise ValueError("bad")

    service = nats.micro.service
    async with await nats.micro.add_service(nc, name=name, version="1.0.0") as found:
        await found.add_endpoint(name="fail", subject=name, handler=fail)
        inbox = nc.new_inbox()
        pings = await nc.subscribe(inbox)
        await nc.publish(f"$SRV.PING.{name}", b"", reply=inbox)
        answer = await nc.request(name, timeout=SOON)
        assert answer.headers["Nats-Service-Error"] == "ValueError('bad')"
        await settle(nc)
        assert pings.pending_msgs == 1
        sent = json.loads((await nc.request(f"$SRV.STATS.{name}", timeout=SOON)).data)
        assert sent["endpoints"][0]["data"] is None
        stats = service.ServiceStats.from_dict(sent)
        assert stats.started.tzinfo is found.stats().started.tzinfo is None
        assert (stats.endpoints[0].num_requests, stats.endpoints[0].num_errors) == (1, 1)
    await found.stop()
    await nc.close()


def test_services_are_checked(nats):
    service = nats.micro.service
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (service.ServiceConfig, {"name": "a b", "version": "1.0.0"}),
        (service.ServiceConfig, {"name": "a", "version": ""}),
        (service.ServiceConfig, {"name": "a", "version": "1.0.0", "queue_group": "a b"}),
        (service.EndpointConfig, {"name": "a", "handler": None, "queue_group": "a b"}),
        (service.EndpointConfig, {"name": "a", "handler": None, "subject": "a b"}),
    ]
    for kind, fields in wrong:
        with pytest.raises(ValueError, match=r"Invalid|cannot be empty"):
            kind(**fields)


PROGRAMS = [
    arrivals_are_counted,
    unsubscribe_discards_what_waits_for_the_callback,
    next_msg_times_out_after_unsubscribe,
    members_know_their_queue_group,
    a_request_may_wait_forever,
    a_payload_must_be_bytes,
    a_denied_request_is_a_timeout,
    addresses_may_have_parts_without_a_meaning,
    credentials_in_addresses_are_sent_as_they_are,
    the_pool_takes_the_same_addresses_as_connect,
    rejected_credentials_are_tried_again,
    acknowledgments_have_the_value_of_a_counter,
    pulled_messages_arrive_below_the_inbox_prefix,
    a_fetch_from_a_deleted_consumer_fails,
    a_direct_get_has_the_headers_of_the_server,
    a_stopped_watch_ends_its_iteration,
    objects_have_what_their_owner_set_last,
    a_service_in_a_block_answers_once,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_detail_is_the_same(nats, server, program):
    run(program, nats, server)


# Only on the layer: nats-py needs the package nkeys for this


@pytest.mark.parametrize("has_nkeys", [False, True])
def test_an_invalid_seed_is_an_error_of_nkeys_as_well(has_nkeys, monkeypatch):
    from natsproto.compat import nats

    expected: type[Exception] = nats.errors.InvalidUserCredentialsError
    monkeypatch.delitem(sys.modules, "nkeys", raising=False)
    if has_nkeys:
        module: Any = types.ModuleType("nkeys")
        module.ErrInvalidSeed = type("ErrInvalidSeed", (Exception,), {})
        monkeypatch.setitem(sys.modules, "nkeys", module)
        expected = module.ErrInvalidSeed
    creds = "-----BEGIN NATS USER JWT-----\njwt\n------END NATS USER JWT------\n"
    for options in (
        {"user_credentials": RawCredentials(creds)},
        {"nkeys_seed_str": "SUAnot-a-seed"},
    ):
        with pytest.raises(expected) as caught:
            asyncio.run(nats.connect("nats://127.0.0.1:1", **options))
        assert isinstance(caught.value, nats.errors.InvalidUserCredentialsError)
