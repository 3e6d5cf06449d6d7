from __future__ import annotations

import pytest

from natsproto.connection.effects import Dial, Hangup
from natsproto.connection.outbound import HIGH_WATER
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Waitable
from natsproto.errors import (
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    InvalidState,
    ProtocolError,
    TimeoutExpired,
)
from natsproto.events import AttemptFailed, Connected, SlowConsumer
from tests.connection.support import PING, PONG, Script, Wire, err, info, msg, names, texts

URL = "nats://a:4222"
ABC = ["nats://a", "nats://b", "nats://c"]


def dialled(wire):
    return [effect.host for effect in wire.effects() if isinstance(effect, Dial)]


# Reconnecting


@pytest.mark.rule("RECON-1", "EVENT-1", "EVENT-2")
def test_the_first_attempt_is_immediate_and_later_pauses_grow():
    rng = Script(0.0, 0.5, 1.0, 0.2, 0.0)
    wire = Wire(rng, servers=ABC, max_reconnects=-1, reconnect_wait=1.0, reconnect_wait_max=4.0)
    wire.up().lost(OSError("reset"), at=100.0)
    assert (wire.state, dialled(wire)) == ("DIALING", ["b"])
    waits = []
    for _ in range(5):
        wire.lost()
        waits.append(wire.alarm - wire.now)
        wire.ring()
    assert waits == pytest.approx([1.0, 2.5, 6.0, 4.4, 4.0])
    assert dialled(wire) == ["c", "a", "b", "c", "a"]
    events = wire.events()
    assert names(events) == ["Disconnected"] + ["AttemptFailed"] * 5
    assert str(events[0].error) == "reset"
    wire.greet().data(PONG)
    assert wire.events() == [Connected(URL, True)]
    wire.lost(at=wire.now + 10.0)
    assert wire.state == "DIALING"  # a success resets the count
    assert wire.connection.stats.connects == 2


@pytest.mark.rule("RECON-3", "D-EVENT-6")
@pytest.mark.parametrize(("limit", "attempts"), [(0, 0), (1, 2), (2, 4)])
def test_no_server_is_left_to_try(limit, attempts):
    wire = Wire(servers=ABC[:2], max_reconnects=limit).up().lost(OSError("first"), at=9.0)
    for i in range(attempts):
        if wire.state == "WAITING":
            wire.ring()
        wire.lost(OSError(f"attempt {i}"))
    assert wire.state == "CLOSED"
    error = wire.events()[-1].error
    assert isinstance(error, ConnectFailed)
    assert str(error).count("nats://") == max(1, min(attempts, 2))
    assert ("first" if attempts == 0 else f"attempt {attempts - 1}") in str(error)


@pytest.mark.rule("RECON-4", "RECON-7")
def test_frames_on_a_new_connection_and_their_order():
    wire = Wire().up()
    wire.subscribe("a")
    wire.subscribe("b", "q")
    wire.connection.publish("taken")
    wire.forget()
    wire.writable = False
    wire.connection.publish("not.taken")
    wire.data(PING)
    wire.connection.unsubscribe(2)
    wire.lost(at=9.0)
    wire.connection.publish("later")
    wire.writable = True
    assert wire.greet().sent().count(b"\r\n") == 2
    assert wire.data(PONG).sent() == b"SUB a 1\r\nPUB not.taken 0\r\n\r\nPUB later 0\r\n\r\n"


@pytest.mark.rule("RECON-5", "EVENT-1")
def test_force_reconnect():
    wire = Wire(servers=ABC, max_reconnects=-1).up()
    for host in ("b", "c", "a", "b"):  # any number of times, however short the connections were
        wire.tell("force_reconnect")
        assert wire.effects() == [Hangup(), Dial(host, 4222, False)]
        assert wire.events()[0].error is None
        wire.up()
    wire.lost(at=99.0).lost()
    assert wire.state == "WAITING"
    wire.forget().tell("force_reconnect")
    assert (wire.state, names(wire.effects())) == ("DIALING", ["Dial"])
    wire.tell("force_reconnect")
    assert (wire.state, wire.effects()) == ("DIALING", [])


@pytest.mark.rule("D-CONN-25")
@pytest.mark.parametrize(
    ("happened", "told"),
    [("receive_data", [b"PING\r\n"]), ("transport_closed", []), ("tls_started", [])],
)
def test_inputs_before_the_hangup_is_taken(happened, told):
    connection = Wire().up().connection
    connection.force_reconnect(2.0)
    getattr(connection, happened)(*told, 2.0)
    assert connection.state == "DIALING"
    assert names(connection.take_effects()) == ["Hangup", "Dial"]
    connection.transport_opened(2.0)
    assert connection.state == "OPENING"


@pytest.mark.rule("RECON-12")
def test_callers_that_wait_for_room_are_woken():
    wire = Wire().up()
    writable = wire.connection.writable
    wire.writable = False
    wire.connection.publish("a", b"x" * HIGH_WATER)
    assert (wire.connection.congested, wire.ready()) == (True, [])
    wire.lost(at=9.0)
    assert (wire.connection.congested, writable in wire.ready()) == (False, True)
    wire.greet()
    wire.writable = True
    wire.look().data(PONG)
    assert wire.ready().count(writable) == 1
    wire.connection.close(9.0)
    assert writable in wire.ready()


# PING


@pytest.mark.rule("PING-2", "PING-3")
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_unanswered_pings(limit):
    wire = Wire(ping_interval=10.0, max_pings_out=limit).up().timer(at=5.0)
    for i in range(1, limit + 1):
        assert wire.timer(at=10.0 * i - 0.1).sent() == b""
        assert wire.timer(at=10.0 * i).sent() == PING
    wire.timer(at=10.0 * (limit + 1))
    [event] = wire.events()
    assert str(event.error) == f"no answer to {limit} PINGs"
    assert wire.effects() == [Hangup(), Dial("a", 4222, False)]


# Each input and each output


@pytest.mark.rule("CONN-1", "CONN-10", "CONN-14")
@pytest.mark.parametrize("tls_first", [False, True])
def test_a_lifecycle_with_tls(tls_first):
    wire = Wire(servers="tls://a", tls_first=tls_first).connect().opened()
    if not tls_first:
        wire.data(info(tls_required=True))
    assert (wire.state, wire.sent()) == ("SECURING", b"")
    wire.secured()
    if tls_first:
        wire.data(info())
    assert wire.data(PONG).state == "CONNECTED"
    wire.lost(at=9.0).opened()
    if not tls_first:
        wire.data(info(tls_required=True))
    assert wire.state == "SECURING"
    wire.lost(OSError("no common cipher"))
    assert str(wire.events()[-1].error) == "TLS handshake failed: no common cipher"
    wire.ring().opened()
    if not tls_first:
        wire.data(info(tls_required=True))
    assert wire.secured().state == ("OPENING" if tls_first else "GREETING")


@pytest.mark.rule("CONN-21", "EVENT-7")
def test_a_lifecycle_over_a_websocket():
    pytest.importorskip("wsproto")
    from tests.connection import test_websocket as ws

    wire = Wire(servers="ws://a").connect().opened()
    wire.data(ws.accept(wire.sent()) + ws.frame(ws.BINARY, info()))
    assert ws.unmask(wire.sent())[0][1].startswith(b"CONNECT {")
    before = wire.connection.stats.out_bytes
    wire.data(ws.frame(ws.BINARY, PONG) + ws.frame(ws.PING))
    wire.connection.publish("a")
    sent = wire.sent()
    assert ws.unmask(sent) == [(ws.PONG, b""), (ws.BINARY, b"PUB a 0\r\n\r\n")]
    assert wire.connection.stats.out_bytes == before + len(sent)


@pytest.mark.rule("CONN-6")
@pytest.mark.parametrize(
    ("steps", "missing"),
    [([], "a connection"), (["opened"], "INFO"), (["greet"], "PONG")],
)
def test_an_attempt_that_takes_too_long(steps, missing):
    wire = Wire(servers=ABC[:2], connect_timeout=2.5).connect()
    for step in steps:
        getattr(wire, step)(at=1.0)
    wire.forget().timer(at=2.4)
    assert (wire.effects(), wire.deadline) == ([], 2.5)
    wire.timer(at=2.5)
    assert wire.effects() == [Hangup(), Dial("b", 4222, False)]
    [event] = wire.events()
    assert str(event.error) == f"{URL} did not provide {missing} within 2.5 s"
    assert wire.deadline == 5.0


@pytest.mark.rule("D-CONN-20", "EVENT-1")
def test_garbage_on_a_connection():
    wire = Wire().up().data(b"garbage\r\n", at=9.0)
    assert wire.effects() == [Hangup(), Dial("a", 4222, False)]
    assert isinstance(wire.events()[0].error, ProtocolError)
    assert wire.opened().data(b"garbage\r\n").state == "WAITING"


@pytest.mark.rule("D-ERR-4")
def test_the_reason_for_closing_during_the_greeting():
    wire = Wire(servers=ABC).connect().greet().lost().greet().data(err("why not")).lost()
    assert [str(event.error) for event in wire.events() if isinstance(event, AttemptFailed)] == [
        "server closed the connection",
        "server error: why not",
    ]


@pytest.mark.rule("D-CONN-23", "D-CONN-24", "D-CLOCK-1")
def test_late_inputs_after_the_end_are_ignored():
    wire = Wire().up()
    wire.connection.close(1.0)
    wire.forget()
    wire.opened().secured().data(msg("a", 1) + PING).lost().timer(at=999.0)
    wire.tell("forked").tell("close")
    assert (wire.effects(), wire.sent(), wire.ready(), wire.events()) == ([], b"", [], [])
    assert (wire.state, wire.deadline) == ("CLOSED", None)
    with pytest.raises(InvalidState):
        wire.connect()


@pytest.mark.rule("D-CLOCK-1", "REQ-4")
def test_deadlines_that_pass_together():
    wire = Wire(Script(0.5), servers=ABC[:2], ping_interval=10.0).up().timer(at=6.0)
    wire.data(info(ldm=True), at=9.5)  # to be left at 10.0
    requests = [wire.connection.start_request("a", deadline=10.0) for _ in range(2)]
    flush = wire.connection.start_flush(10.0)
    bell = Waitable()
    wire.connection.wake_at(bell, 10.0)
    wire.forget().timer(at=10.0)
    assert all(isinstance(each.error, TimeoutExpired) for each in [*requests, flush])
    assert {id(each) for each in wire.ready()} == {id(each) for each in [*requests, flush, bell]}
    assert wire.sent() == PING * 2  # to keep alive, and before leaving
    wire.data(PONG * 3)
    assert wire.effects() == [Hangup(), Dial("b", 4222, False)]


@pytest.mark.rule("CONN-22")
def test_the_connect_is_settled_at_once_if_it_may_be_retried():
    wire = Wire(retry_on_first_connect=True).connect()
    assert wire.ready() == [wire.connection.opened]
    wire.greet().data(PONG)
    assert wire.connection.opened not in wire.ready()
    assert wire.events() == [Connected(URL, False)]


@pytest.mark.rule("DRAIN-3", "DRAIN-7", "D-DRAIN-8")
def test_drains():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    drain = wire.connection.start_drain(9.0)
    wire.connection.cancel(drain)
    wire.connection.cancel(wire.connection.start_flush(9.0))
    wire.data(msg("a", 1) + PONG * 2)
    assert not drain.done
    texts(mailbox)
    wire.tell("consumed").data(PONG)
    assert (drain.done, drain.error, wire.state) == (True, None, "CLOSED")
    wire = Wire().up()
    wire.subscribe("a")
    drain = wire.connection.start_drain(2.0)
    assert wire.connection.start_drain(3.0) is drain
    wire.timer(at=2.0)
    assert (type(drain.error), wire.state) == (TimeoutExpired, "CLOSED")
    wire = Wire().up()
    drain = wire.connection.start_drain(2.0)
    wire.connection.close(1.0)
    assert isinstance(drain.error, ConnectionClosed)
    wire = Wire()
    wire.connection.close(1.0)
    assert wire.connection.start_drain(2.0).done


class Machine(Receiver):
    """Emits a publish at its deadline, without waking its waiters."""

    def handle_timer(self, now):
        self.deadline = now + 1.0
        self.emit(b"pull", b"", b"")
        return False

    def pending(self):
        return 0


@pytest.mark.rule("D-CLOCK-1", "D-RECON-9")
def test_a_machine_gets_its_timer_and_its_effects_are_applied():
    wire = Wire().up().timer(at=6.0)
    machine = Machine()
    wire.connection.subscribe("m", machine)
    wire.connection.wake_at(machine, 7.0)
    wire.sent()
    for now in (7.0, 8.0, 9.0):
        assert wire.deadline == now
        assert wire.timer(at=now).sent() == b"PUB pull 0\r\n\r\n"
    assert wire.ready() == []


@pytest.mark.rule("D-SUB-6")
def test_drops_are_reported_after_each_read():
    wire = Wire().up()
    wire.subscribe("a", max_msgs=1)
    wire.data(msg("a", 1) * 3)
    assert wire.events() == [SlowConsumer("a", 1, 2)]


@pytest.mark.rule("D-RECON-13")
def test_a_fork():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    machine = Machine()
    wire.connection.subscribe("m", machine)
    request = wire.connection.start_request("b", deadline=99.0)
    flush = wire.connection.start_flush(99.0)
    wire.forget()
    wire.writable = False
    wire.connection.publish("c")
    wire.tell("forked", at=9.0)
    assert wire.effects() == [Dial("a", 4222, False)]  # no Hangup: it is the parent's
    for each in (request, flush, machine):
        assert isinstance(each.error, ConnectionLost)
    wire.writable = True
    wire.greet().sent()
    assert wire.data(PONG).sent() == b"SUB a 1\r\n"
    assert not mailbox.ended
    wire.connection.start_request("b", deadline=99.0)
    assert wire.sent().startswith(b"SUB _INBOX.")


@pytest.mark.rule("D-RECON-13")
def test_a_fork_without_a_transport():
    for wire in (Wire(), Wire(max_reconnects=-1).up().lost(at=9.0).lost()):
        state = wire.state
        wire.forget().connection.publish("a")
        wire.tell("forked")
        assert (wire.state, wire.effects(), wire.connection.outbound._held) == (state, [], [])


# Miscellaneous


@pytest.mark.rule("EVENT-7")
def test_statistics_continue_across_reconnects():
    wire = Wire(servers=ABC[:2]).connect().greet().data(PONG)
    wire.subscribe("a")
    wire.data(msg("a", 1, b"x") + msg("b", 9, b"y"))
    wire.connection.publish("p")
    wire.look().lost(at=9.0).greet().data(PONG)
    stats = wire.connection.stats
    assert (stats.in_msgs, stats.out_msgs, stats.connects, stats.reconnects) == (2, 1, 2, 1)
    assert stats.in_bytes == 2 * len(info() + PONG) + 2 * len(msg("a", 1, b"x"))
    assert stats.out_bytes == len(wire.sent())


def test_an_error_without_text_is_reported_by_its_name():
    wire = Wire().up().lost(TimeoutError(), at=9.0)
    assert str(wire.events()[0].error) == "TimeoutError"


def test_info_of_the_first_server_is_known_before_the_last_is_lost():
    wire = Wire().up(max_payload=7)
    assert wire.connection.info.max_payload == 7
    wire.data(info(max_payload=8))
    assert wire.connection.info.max_payload == 8


def test_the_state_of_a_connection():
    wire = Wire(verbose=True)
    wire.connection.publish("a")
    assert (wire.connection.connecting, wire.connection.held) == (False, 1)
    wire.connect()
    assert (wire.connection.connecting, wire.connection.held) == (True, 1)
    wire.greet().data(PONG)
    assert (wire.connection.connecting, wire.connection.held) == (False, 0)
    assert wire.connection.online
    assert wire.forget().data(b"+OK\r\n").state == "CONNECTED"  # which means nothing to us
    wire.tell("close")
    assert not wire.connection.connecting


@pytest.mark.rule("D-CONN-20")
@pytest.mark.parametrize("up", [True, False])
def test_nothing_is_read_after_a_hangup(up):
    wire = Wire(max_reconnects=-1, servers=ABC)
    wire = wire.up() if up else wire.connect().opened().forget()
    wire.data((err("Stale Connection") if up else b"+OK\r\n") + PING + b"garbage\r\n")
    assert names(wire.effects()) == ["Hangup", "Dial"]
    assert (wire.sent(), wire.connection.closed) == (b"", "")
    wire.tell("close")
    assert wire.connection.closed == "the connection is closed"


@pytest.mark.rule("D-AUTH-14")
def test_a_signature_of_the_adapter_leads_on_to_connect():
    key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    wire = Wire(host_signing=True, nkey=key, sign=print).connect().greet(nonce="n")
    assert wire.state == "SIGNING"
    wire.connection.nonce_signed(wire.now, bytes(64))
    assert (wire.state, wire.sent()[:8]) == ("GREETING", b"CONNECT ")
