"""The facades, on a port that does no I/O and follows a script."""

from __future__ import annotations

import inspect

import pytest

from natsproto import blocking, client, subscription
from natsproto.blocking import Client, EventReader, Subscription
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidValue,
    MessagesUnconfirmed,
    TimeoutExpired,
)
from natsproto.events import Closed, Disconnected
from tests.connection.support import PONG, Wire, msg
from tests.jetstream.support import Stage

INBOX = "_INBOX." + "0" * 22  # the tokens of the scripted randomness


class ScriptedPort:
    """A port whose `wait` runs the next step of the script."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.script: list[tuple[str, bytes | float]] = []
        self.lock = self
        self.alone = False
        self.held = 0
        self.corks: set[object] = set()
        self.closed = False
        self.dead = False

    def __enter__(self) -> None:
        if self.dead:
            raise ConnectionClosed("of another process")
        self.held += 1

    def __exit__(self, *exc: object) -> None:
        self.held -= 1

    def now(self) -> float:
        return self.wire.now

    async def wait(self, waitable: object) -> None:
        assert self.held == 1
        name, value = self.script.pop(0)
        getattr(self.wire, name)(value)

    async def checkpoint(self) -> None:
        assert self.held == 1

    def flush_soon(self) -> None:
        assert self.held == 1
        self.wire.look()

    def cork(self, token: object) -> None:
        assert self.held == 1
        self.corks.add(token)

    def uncork(self, token: object) -> None:
        assert self.held == 1
        self.corks.remove(token)

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def port() -> ScriptedPort:
    return ScriptedPort(Wire().up().forget())


@pytest.fixture
def nc(port: ScriptedPort) -> Client:
    return Client(client.Client(port.wire.connection, port), port)


def test_publish(nc, port):
    nc.publish("a", b"1", reply="b")
    assert port.wire.sent() == b"PUB a b 1\r\n1\r\n"


@pytest.mark.rule("D-CLOCK-4")
def test_a_publish_that_a_signal_handler_interrupts_is_left_to_the_port(nc, port):
    def interrupted():
        raise KeyboardInterrupt

    port.flush_soon, flush_soon = interrupted, port.flush_soon
    port.pump_soon = flush_soon
    with pytest.raises(KeyboardInterrupt):
        nc.publish("a", b"1")
    assert port.wire.sent() == b"PUB a 1\r\n1\r\n"


def test_request(nc, port):
    port.script = [("data", msg(INBOX + ".1", 1, b"answer"))]
    assert nc.request("a", timeout=1).data == b"answer"


def test_request_many(nc, port):
    port.script = [("data", msg(INBOX + ".1", 1, b"1") + msg(INBOX + ".1", 1, b"2"))]
    assert [each.data for each in nc.request_many("a", max_msgs=2)] == [b"1", b"2"]


def test_flush_and_reconnect(nc, port):
    port.script = [("data", PONG)]
    nc.flush()
    nc.force_reconnect()
    assert nc.state == "DIALING"
    assert nc.connected_url == ""


def test_known_attributes(nc):
    assert nc.info is not None
    assert nc.info.version == "2.15.1"
    assert (nc.state, nc.connected_url, nc.servers) == (
        "CONNECTED",
        "nats://a:4222",
        ["nats://a:4222"],
    )
    assert nc.stats.connects == 1
    nc.set_servers(["nats://b:4222"])
    assert nc.servers == ["nats://b:4222"]
    assert repr(nc) == "<Client CONNECTED nats://a:4222>"


def test_subscription(nc, port):
    with nc.subscribe("a.*", queue="q") as sub:
        assert isinstance(sub, Subscription)
        assert (sub.subject, sub.queue, sub.sid) == ("a.*", "q", 1)
        port.script = [("data", msg("a.1", 1, b"1") + msg("a.2", 1, b"2")), ("timer", 5.0)]
        assert sub.next().data == b"1"
        assert (sub.pending, sub.dropped) == (1, 0)
        assert next(sub).data == b"2"
        with pytest.raises(TimeoutExpired):
            sub.next(timeout=5.0)
        assert repr(sub) == "<Subscription 1 to 'a.*', 0 pending>"
    assert b"UNSUB 1\r\n" in port.wire.sent()
    assert list(sub) == []
    with pytest.raises(InvalidState):
        sub.next()


@pytest.mark.parametrize("alone", [False, True])
def test_available_messages_need_no_coroutine_and_on_one_thread_no_lock(nc, port, alone):
    port.alone = alone
    sub = nc.subscribe("a")
    port.script = [("data", b"".join(msg("a", 1, b"%d" % i) for i in range(200)))]
    assert next(sub).data == b"0"
    sub._anext = None  # which would be the coroutine
    port.dead = alone
    assert [next(sub).data for _ in range(199)] == [b"%d" % i for i in range(1, 200)]
    assert sub.pending == 0


def test_publish_waits_while_too_much_is_in_flight(nc, port):
    port.wire.writable = False
    port.script = [("room", b"")]
    port.wire.room = lambda _: (setattr(port.wire, "writable", True), port.wire.look())
    for _ in range(HIGH_WATER // 65_000 + 2):
        nc.publish("a", bytes(65_000))
    assert port.script == []


def test_drain_of_a_subscription(nc, port):
    sub = nc.subscribe("a")
    port.script = [("data", msg("a", 1, b"1") + PONG)]
    sub.drain()
    assert [each.data for each in sub] == [b"1"]


def test_events(nc, port):
    port.script = [("timer", 9.0)]
    with pytest.raises(TimeoutExpired):
        nc.events.next(timeout=5.0)
    nc.force_reconnect()
    assert nc.events.next() == Disconnected("nats://a:4222", None)
    nc.close()
    assert list(nc.events) == [Closed(None)]
    assert nc.events.next() == Closed(None)  # a position of its own
    with pytest.raises(ConnectionClosed):
        nc.events.next()
    with pytest.raises(StopIteration):
        next(nc.events)


@pytest.mark.rule("D-EVENT-8")
def test_loops_over_events_have_their_own_positions(nc, port):
    one, other = iter(nc.events), iter(nc.events)
    assert isinstance(one, EventReader)
    assert iter(one) is one
    nc.force_reconnect()
    assert next(one) == next(other) == Disconnected("nats://a:4222", None)
    nc.close()
    assert list(one) == [other.next()] == [Closed(None)]
    assert list(other) == list(nc.events) == []


def test_drain(nc, port):
    nc.subscribe("a")
    port.script = [("data", PONG), ("data", PONG)]
    nc.drain()
    assert nc.state == "CLOSED"
    assert port.closed


def test_the_end_of_a_block_closes(nc, port):
    port.script = [("data", PONG)]
    with nc as same:
        assert same is nc
    assert nc.state == "CLOSED"
    assert port.closed


@pytest.mark.rule("D-CONN-29")
@pytest.mark.parametrize("error", [None, ValueError("mine")])
def test_the_end_of_a_block_replaces_no_exception(nc, port, error):
    port.script = [("timer", 2.0)]

    def use():
        with nc:
            nc.publish("a")
            if error is not None:
                raise error

    with pytest.raises(ValueError if error else MessagesUnconfirmed):
        use()
    assert nc.state == "CLOSED"


def test_in_a_forked_child_there_is_nothing_to_close(nc, port):
    with nc:
        port.dead = True
    with pytest.raises(ConnectionClosed, match="of another process"):
        nc.close()


def test_corked(nc, port):
    with nc.corked(), nc.corked():
        assert len(port.corks) == 2
    assert port.corks == set()


@pytest.mark.parametrize(
    ("facade", "inner"),
    [
        (blocking.Client, client.Client),
        (blocking.Subscription, subscription.Subscription),
        (blocking.Events, client.Events),
        (blocking.EventReader, client.EventReader),
    ],
)
def test_facades_have_the_same_names(facade, inner):
    """Docstrings are the same, too; only methods that await or iterate have other names."""

    def public(cls):
        return {name: value for name, value in vars(cls).items() if not name.startswith("_")}

    own = {"corked"}
    assert set(public(facade)) - own == set(public(inner))
    for name, value in public(inner).items():
        assert inspect.getdoc(getattr(facade, name)) == inspect.getdoc(value), name
    assert inspect.getdoc(facade).split(".")[0] == inspect.getdoc(inner).split(".")[0]


@pytest.mark.rule("D-RECON-16")
def test_a_publish_that_joins_others_needs_no_lock_for_some_milliseconds(nc, port):
    port.alone = True
    port.wire.writable = False
    nc.publish("a", b"1")
    port.dead = True  # it cannot be entered
    nc.publish("a", b"2")
    port.wire.now += 0.0051
    with pytest.raises(ConnectionClosed):
        nc.publish("a", b"3")
    port.dead = False
    nc.publish("a", b"3")
    port.script = [("room", b"")]
    port.wire.room = lambda _: (setattr(port.wire, "writable", True), port.wire.look())
    for _ in range(HIGH_WATER // 65_000 + 2):
        nc.publish("a", bytes(65_000))
    assert port.script == []
    assert port.wire.sent().startswith(b"PUB a 1\r\n1\r\nPUB a 1\r\n2\r\nPUB a 1\r\n3\r\n")


def numbers(*which: int) -> bytes:
    return b"".join([msg("a", 1, b"%d" % number) for number in which])


@pytest.mark.rule("D-SUB-10")
@pytest.mark.parametrize("alone", [False, True])
def test_run_calls_a_plain_function_without_the_lock(nc, port, alone):
    port.alone = alone
    sub = nc.subscribe("a")
    port.script = [("data", numbers(1, 2, 3))]
    seen = []

    def callback(message):
        assert port.held == 0
        seen.append(message.data)
        if len(seen) == 3:
            sub.unsubscribe()

    sub.run(callback)
    assert seen == [b"1", b"2", b"3"]


@pytest.mark.rule("D-SUB-11")
def test_run_ends_with_the_error_of_a_callback(nc, port):
    sub = nc.subscribe("a")
    port.script = [("data", numbers(1, 2, 3))]
    seen = []

    def callback(message):
        seen.append(message.data)
        if message.data != b"3":
            raise ZeroDivisionError(message.data)

    def on_error(message, error):
        if message.data == b"2":
            raise KeyError("mine") from error

    with pytest.raises(KeyError, match="mine"):
        sub.run(callback, on_error=on_error)
    assert seen == [b"1", b"2"]
    assert b"UNSUB 1\r\n" in port.wire.sent()
    assert [each.data for each in sub] == [b"3"]


@pytest.mark.rule("D-SUB-12")
def test_run_with_an_async_callback(nc, port):
    sub = nc.subscribe("a")
    port.script = [("data", numbers(1, 2))]

    async def callback(message):
        raise AssertionError("it is not awaited")

    made = []

    def wrapper(message):
        made.append(callback(message))
        return made[0]

    with pytest.raises(InvalidValue, match="is async: this client is not"):
        sub.run(wrapper, on_error=lambda message, error: None)
    made[0].close()


def test_names_of_other_clients(nc):
    with pytest.raises(AttributeError, match="no attribute 'jetstream'; "):
        nc.jetstream  # noqa: B018 - the attribute is what raises
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        nc.subscribe("a").nothing  # noqa: B018


@pytest.mark.rule("D-REQ-13")
def test_responses_one_by_one():
    stage = Stage([b"1", b"2"], [b"3"])
    replies = stage.blocking.iter_request_many("svc", timeout=1.0)
    assert [reply.data for reply in replies] == [b"1", b"2"]
    replies = stage.blocking.iter_request_many("svc")
    assert next(replies).data == b"3"
    replies.close()
    assert list(replies) == []


@pytest.mark.rule("D-HEALTH-1")
def test_health(nc, port):
    assert nc.health().connected
    assert port.held == 0
