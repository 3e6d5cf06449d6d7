"""The lifecycle: reports about an earlier transport, and everything that a transition leaves."""

from __future__ import annotations

import pytest

from natsproto import websocket
from natsproto.connection.effects import Dial, Hangup
from natsproto.connection.receiver import Receiver
from natsproto.errors import MissingExtra, ProtocolError
from natsproto.events import AttemptFailed
from natsproto.wire.frames import Info, Msg
from tests.connection.rigs import Rig
from tests.connection.support import PING, PONG, Script, Wire, err, info, msg, names

SERVERS = ["nats://a", "nats://b"]
KEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def overdue(**options):
    """Return a rig whose attempt was given up just now: its Hangup and Dial are not taken."""
    rig = Rig(*SERVERS, **options).opening()
    rig.lifecycle.hang_up(ProtocolError("x", 0, b""), 1.0)
    assert rig.bus.effects == [Hangup(), Dial("b", 4222, False)]
    assert isinstance(rig.bus.events.pop(), AttemptFailed)
    return rig


# D-CONN-25: a report before the Hangup is taken is about the transport that is being dropped. It
# must leave the next one as it is, which would otherwise skip a step of its handshake.


@pytest.mark.rule("D-CONN-25", "CONN-14")
def test_a_late_transport_opened_does_not_begin_the_next_handshake():
    rig = Rig(*SERVERS, tls=True, tls_first=True)
    rig.lifecycle.connect(0.0)
    rig.effects()
    rig.lifecycle.hang_up(ProtocolError("x", 0, b""), 1.0)
    rig.lifecycle.transport_opened(1.0)
    assert (rig.lifecycle.state, names(rig.effects())) == ("DIALING", ["Hangup", "Dial"])


@pytest.mark.rule("D-CONN-25", "CONN-11", "CONN-13")
def test_a_late_tls_started_does_not_secure_the_next_transport():
    rig = overdue(tls=True)
    rig.lifecycle.tls_started(1.0)
    rig.effects()
    rig.lifecycle.transport_opened(1.0)
    rig.lifecycle.handle(Info({"tls_required": True}), 1.0)
    assert (names(rig.effects()), rig.lifecycle.state) == (["StartTls"], "SECURING")
    assert rig.traffic.outbound.take() == []  # no CONNECT in plaintext


@pytest.mark.rule("D-CONN-25", "D-AUTH-14")
def test_a_late_signature_is_not_used():
    rig = overdue(nkey=KEY, sign=lambda nonce: bytes(64), host_signing=True)
    rig.lifecycle.nonce_signed(1.0, bytes(64), b"", None)
    assert (rig.lifecycle.state, rig.traffic.outbound.take()) == ("DIALING", [])


@pytest.mark.rule("D-CONN-25", "EVENT-2")
def test_a_late_loss_is_not_that_of_the_next_transport():
    rig = overdue()
    transport = rig.lifecycle.transport
    rig.lifecycle.transport_closed(1.0, None)
    assert rig.lifecycle.transport is transport
    assert (rig.lifecycle.state, rig.bus.events.pop()) == ("DIALING", None)


def test_other_effects_that_were_not_taken_do_not_delay_a_report():
    rig = Rig(*SERVERS)
    rig.lifecycle.connect(0.0)
    assert names(rig.bus.effects) == ["Dial"]
    rig.lifecycle.transport_opened(0.0)
    assert rig.lifecycle.state == "OPENING"


# Attempts


@pytest.mark.rule("D-WS-9", "D-CONN-18")
def test_a_websocket_without_its_library_is_not_dialed():
    def fail():
        raise MissingExtra("ws needs wsproto", "D-WS-9")

    before, websocket.check_library = websocket.check_library, fail
    try:
        wire = Wire(servers=["ws://a", "ws://b"], max_reconnects=-1).connect()
    finally:
        websocket.check_library = before
    assert (wire.state, wire.effects()) == ("CLOSED", [])
    assert isinstance(wire.connection.opened.error, MissingExtra)
    first, *_ = wire.events()
    assert (type(first), type(first.error)) == (AttemptFailed, MissingExtra)


@pytest.mark.rule("EVENT-7")
def test_each_connection_is_counted_once():
    wire = Wire(max_reconnects=-1)
    for count in (1, 2, 3):
        wire.up()
        assert (wire.connection.stats.connects, wire.connection.stats.reconnects) == (
            count,
            count - 1,
        )
        wire.lost()


@pytest.mark.rule("D-AUTH-14")
def test_a_frame_before_connect_is_the_first_byte_of_the_error():
    rig = Rig(*SERVERS, nkey=KEY, sign=lambda nonce: bytes(64), host_signing=True).opening()
    rig.lifecycle.handle(Info({"nonce": "n"}), 0.0)
    assert rig.lifecycle.state == "SIGNING"
    rig.lifecycle.handle(Info({}), 0.0)
    error = rig.bus.events.pop().error
    assert (str(error), error.offset) == ("INFO before CONNECT at byte 0: b''", 0)


@pytest.mark.rule("D-CONN-3")
@pytest.mark.parametrize(("length", "shown"), [(64, 64), (65, 64)])
def test_a_message_before_pong(length, shown):
    rig = Rig(*SERVERS).opening()
    rig.lifecycle.handle(Info({}), 0.0)
    assert rig.lifecycle.handle(Msg(b"s" * length, 1), 0.0) is False
    error = rig.bus.events.pop().error
    assert (error.offset, error.excerpt) == (0, b"s" * shown)


# Lame ducks


def leaving(**options):
    """Return a connection to a, a lame duck; b is in the pool, and the move is at 0.5."""
    wire = Wire(Script(0.5), servers=["nats://a", "nats://b"], max_reconnects=-1, **options).up()
    wire.data(info(ldm=True), at=0.0).forget()
    return wire


@pytest.mark.rule("LDM-2")
def test_a_move_that_became_impossible_is_scheduled_again():
    """At 0.5 there is no other server to go to. The next INFO has one: so the move is at 3.5."""
    wire = Wire(Script(0.5, 0.5), max_reconnects=-1).up()
    wire.data(info(ldm=True, connect_urls=["a:4222", "b:4222"]), at=0.0)
    wire.data(info(ldm=True, connect_urls=["a:4222"]), at=0.1).forget()
    wire.timer(at=0.5)
    assert (wire.sent(), wire.connection.online) == (b"", True)
    wire.data(info(ldm=True, connect_urls=["a:4222", "c:4222"]), at=3.0)
    wire.forget().timer(at=3.5)
    assert (wire.sent(), wire.connection.online) == (PING, False)


@pytest.mark.rule("LDM-2")
def test_the_moment_of_a_move_passes_unnoticed_if_the_connection_was_lost_before():
    wire = leaving()
    wire.lost(at=0.2)
    wire.forget().timer(at=0.5)
    assert (wire.ready(), wire.sent()) == ([], b"")


# The end


@pytest.mark.rule("D-CONN-24")
def test_nothing_is_left_of_a_closed_connection():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    wire.forget()
    wire.connection.close(1.0)
    assert wire.effects() == [Hangup()]
    assert (wire.connection.transport, wire.alarm, wire.deadline) == (None, None, None)
    fence = wire.connection.start_drain_of([mailbox], 9.0)
    assert (fence.done, wire.sent(), wire.connection.bus.online) == (True, b"", False)


@pytest.mark.rule("RECON-4", "D-RECON-9")
def test_the_loss_of_a_transport_is_complete_within_the_input():
    """Subscriptions are notified, and what they want is done, before the adapter looks again."""
    wire = Wire(max_reconnects=-1).up()
    mailbox = wire.subscribe("a")
    wire.connection.start_drain_of([mailbox], 9.0)
    wire.forget().lost(at=1.0)
    assert (mailbox.ended, wire.effects()) == (True, [Dial("a", 4222, False)])


@pytest.mark.rule("D-RECON-9")
def test_what_a_machine_wants_after_a_loss_is_done_within_the_input():
    class Machine(Receiver):
        def disconnected(self, now):
            self.leave()

    wire = Wire(max_reconnects=-1).up()
    machine = Machine()
    wire.connection.subscribe("a", machine)
    wire.lost(at=1.0)
    assert machine.ended


@pytest.mark.rule("CONN-22")
def test_a_first_connect_that_may_be_retried_is_over_at_once():
    wire = Wire(retry_on_first_connect=True).connect()
    assert (wire.connection.opened.done, wire.connection.opened.error) == (True, None)
    assert wire.connection.opened in wire.ready()


@pytest.mark.rule("D-ERR-4")
def test_an_error_during_the_handshake_is_the_reason_of_the_loss_that_follows():
    wire = Wire(max_reconnects=-1).connect().greet().forget()
    wire.data(err("Something New")).lost()
    failed = [event for event in wire.events() if isinstance(event, AttemptFailed)]
    assert [str(event.error) for event in failed] == ["server error: Something New"]


@pytest.mark.rule("PING-1")
def test_a_ping_is_answered_between_messages():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    wire.forget()
    wire.writable = False
    wire.data(msg("a", 1, b"1") + PING + msg("a", 1, b"2"))
    assert wire.connection.transport.owed == len(PONG)
    wire.writable = True
    assert (wire.sent(), mailbox.pending()) == (PONG, 2)
