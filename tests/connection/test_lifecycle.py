from __future__ import annotations

import pytest

from natsproto.connection import transport
from natsproto.connection.effects import Dial, Hangup
from natsproto.connection.receiver import Receiver
from natsproto.errors import (
    AuthorizationFailed,
    ConnectionLost,
    ProtocolError,
    ServerFailed,
    TlsFailed,
)
from natsproto.events import (
    AttemptFailed,
    Connected,
    Disconnected,
    Discovered,
    LameDuck,
    ServerError,
)
from tests.connection.support import PING, PONG, Script, Wire, err, info, msg, names, texts

URL = "nats://a:4222"
ABC = ["nats://a", "nats://b", "nats://c"]


def dialled(wire):
    return [effect.host for effect in wire.effects() if isinstance(effect, Dial)]


# The end of the handshake


@pytest.mark.rule("CONN-5", "CONN-8")
@pytest.mark.parametrize(
    "reads",
    [
        [PONG + info(client_id=7, connect_info=True)],
        [PONG, info(client_id=7, connect_info=True)],
        [info(client_id=7), PONG],
        [b"+OK\r\n" + PING, PONG + info(client_id=7)],
    ],
)
def test_a_second_info_around_pong(reads):
    wire = Wire().connect().greet(client_id=1).data(*reads)
    assert (wire.state, wire.connection.info.client_id) == ("CONNECTED", 7)
    assert names(wire.events()) == ["Connected"]


LATER = [  # INFO after the first, what is known then
    (b"{}", {"headers": True, "max_payload": 1048576, "jetstream": True, "version": "2.15.1"}),
    (b'{"headers":null,"max_payload":null}', {"headers": True, "max_payload": 1048576}),
    (b'{"headers":false,"max_payload":512}', {"headers": False, "max_payload": 512}),
    (b'{"jetstream":false}', {"jetstream": False, "headers": True}),
    (b"{}", {"connect_urls": [], "ldm": False, "nonce": ""}),
]


@pytest.mark.rule("D-CONN-36")
@pytest.mark.parametrize(("later", "known"), LATER)
def test_a_later_info_does_not_unset_omitted_fields(later, known):
    first = {"jetstream": True, "nonce": "abc", "connect_urls": ["b:1"], "ldm": True}
    wire = Wire(max_reconnects=0).connect().greet(**first).data(PONG)
    wire.data(b"INFO " + later + b"\r\n")
    assert {name: getattr(wire.connection.info, name) for name in known} == known
    assert wire.connection.outbound.max_payload == wire.connection.info.max_payload


@pytest.mark.rule("D-CONN-36")
def test_the_info_of_another_connection_starts_from_nothing():
    wire = Wire().connect().greet(jetstream=True).data(PONG).lost(at=9.0)
    wire.greet(headers=False).data(PONG)
    assert (wire.state, wire.connection.info.jetstream) == ("CONNECTED", False)
    assert wire.connection.info.headers is False


EXPIRED = b"+OK\r\n" + PONG + info(connect_info=True) + err("User Authentication Expired")


@pytest.mark.rule("CONN-8", "CONN-9")
def test_a_rejection_right_after_pong_on_the_first_connect():
    wire = Wire(servers=ABC[:2])
    wire.subscribe("a")
    wire.connect().greet().forget().data(EXPIRED)
    assert wire.effects() == [Hangup(), Dial("b", 4222, False)]
    assert wire.sent() == b""  # neither a SUB nor anything else
    wire.greet().data(EXPIRED)
    assert isinstance(wire.connection.opened.error, AuthorizationFailed)
    assert names(wire.events()) == ["AttemptFailed", "AttemptFailed", "Closed"]


@pytest.mark.rule("CONN-8", "CONN-17")
@pytest.mark.parametrize("split", [False, True])
def test_a_rejection_right_after_pong_on_a_reconnect_ends_it_the_second_time(split):
    wire = Wire(max_reconnects=-1).up().lost(at=99.0).forget()
    cut = len(EXPIRED) - 40
    reads = [EXPIRED[:cut], EXPIRED[cut:]] if split else [EXPIRED]
    wire.greet().data(*reads)
    assert wire.state != "CLOSED"
    if wire.state == "WAITING":
        wire.ring()
    wire.greet().data(*reads)
    assert wire.state == "CLOSED"
    assert isinstance(wire.events()[-1].error, AuthorizationFailed)


@pytest.mark.rule("CONN-17", "D-RECON-2")
def test_credentials_that_expire_after_a_long_connection_are_tried_again():
    wire = Wire(max_reconnects=-1)
    for hour in range(1, 4):
        wire.up().data(err("User Authentication Expired"), at=hour * 3600.0)
        assert (wire.state, dialled(wire)) == ("DIALING", ["a"])


@pytest.mark.rule("D-CONN-3", "D-CONN-20")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (msg("a", 1, b"x"), ProtocolError),
        (PONG + msg("a", 1, b"x"), ProtocolError),
        (PONG + b"garbage\r\n", ProtocolError),
        (err("Authentication Timeout"), ServerFailed),
        (PONG + err("Stale Connection"), ServerFailed),
    ],
)
def test_frames_that_fail_a_handshake(data, kind):
    wire = Wire(max_reconnects=-1)
    mailbox = wire.subscribe("a")
    wire.up().lost(at=99.0).greet().forget().data(data)
    assert (wire.state, wire.effects(), mailbox.pending()) == ("WAITING", [Hangup()], 0)
    [event] = wire.events()
    assert isinstance(event, AttemptFailed)
    assert type(event.error) is kind


@pytest.mark.rule("ERR-3", "D-ERR-4", "EVENT-4")
def test_an_unknown_error_during_the_greeting():
    wire = Wire(max_reconnects=-1, retry_on_first_connect=True).connect().greet()
    wire.data(err("no such luck"))
    assert (wire.state, names(wire.events())) == ("GREETING", ["ServerError"])
    wire.lost()
    assert str(wire.events()[0].error) == "server error: no such luck"
    wire.ring().greet().data(err("no such luck") + PONG)
    assert wire.state == "CONNECTED"
    wire.lost(at=99.0)
    assert isinstance(wire.events()[-1].error, ConnectionLost)


@pytest.mark.rule("ERR-2", "ERR-3", "EVENT-4")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Invalid Subject", None),
        ("maximum subscriptions exceeded", None),
        ("no such luck", None),
        ("", None),
        ("STALE connection", ServerFailed),
        ("Maximum Payload Violation", ServerFailed),
        ("authorization VIOLATION", AuthorizationFailed),
    ],
)
def test_server_errors_on_a_connection(text, kind):
    wire = Wire().up().data(err(text), at=99.0)
    if kind is None:
        assert wire.state == "CONNECTED"
        [event] = wire.events()
        assert isinstance(event, ServerError)
        assert str(event.error) == f"server error: {text}"
    else:
        assert wire.effects() == [Hangup(), Dial("a", 4222, False)]
        [event] = wire.events()
        assert isinstance(event, Disconnected)
        assert type(event.error) is kind


@pytest.mark.rule("D-RECON-2")
def test_a_server_that_accepts_clients_and_disconnects_them():
    wire = Wire(max_reconnects=-1, reconnect_wait=1.0, reconnect_jitter=0.0)
    pauses = []
    for _ in range(5):
        start = wire.now
        wire.up()
        pauses.append(wire.now - start)
        wire.lost(at=wire.now + 0.5)
    assert pauses == [0.0, 0.0, 1.0, 2.0, 4.0]
    wire.up().lost(at=wire.now + 1.0)
    assert wire.state == "DIALING"


@pytest.mark.rule("PING-1")
def test_ping_is_answered():
    assert Wire().up().data(PING + PING + b"ping\r\n").sent() == PONG * 3


@pytest.mark.rule("PING-2", "PING-4")
def test_answered_pings_continue_forever_with_or_without_flushes():
    wire = Wire(ping_interval=10.0).up()
    for i in range(1, 50):
        flush = wire.connection.start_flush(1e9)
        wire.timer(at=10.0 * i).data(PONG)
        assert flush.done
        wire.data(PONG + PONG)  # one more than there were PINGs
    assert (wire.state, wire.sent()) == ("CONNECTED", (PING + PING) * 49)


@pytest.mark.rule("PING-4", "DRAIN-1")
def test_a_keepalive_pong_does_not_end_a_later_drain():
    wire = Wire(ping_interval=10.0).up().timer(at=10.0)
    mailbox = wire.subscribe("a")
    fence = wire.connection.start_drain_of([mailbox], 99.0)
    wire.forget().data(PONG)
    assert (wire.sent(), fence.done) == (b"", False)
    assert wire.data(PONG).ready() == [mailbox, fence]
    wire.connection.cancel(wire.connection.start_flush(99.0))
    assert wire.data(PONG).ready() == []  # its caller no longer waits


@pytest.mark.rule("D-PING-5", "D-CONN-20")
def test_pings_whose_answers_the_server_does_not_read(monkeypatch):
    assert transport._MAX_OWED == 1024 * 1024
    monkeypatch.setattr(transport, "_MAX_OWED", len(PONG) * 1000)
    wire = Wire().up()
    wire.writable = False
    for _ in range(10):
        assert wire.data(PING * 100, at=99.0).state == "CONNECTED"
    wire.data(PING)
    assert str(wire.events()[0].error) == "server sends PINGs but does not read PONGs"
    wire.greet()
    assert wire.state == "GREETING"  # the next attempt gets no immediate dial
    wire.writable = True
    wire.data(PONG)
    for _ in range(50):  # if they are read, any number of them is allowed
        wire.data(PING * 100)
    assert wire.state == "CONNECTED"


# Messages


@pytest.mark.rule("SUB-4", "SUB-7")
def test_messages_go_to_their_subscriptions_in_order():
    wire = Wire().up()
    boxes = [wire.subscribe("a"), wire.subscribe("b")]
    order = [1, 1, 1, 2, 1, 2, 2, 3, 3, 1, 1]
    data = b"".join(msg("x", sid, b"%d" % i) for i, sid in enumerate(order))
    wire.data(data + PING + msg("x", 1, b"end") + msg("x", 1, b"of it"))
    assert texts(boxes[0]) == [b"0", b"1", b"2", b"4", b"9", b"10", b"end", b"of it"]
    assert texts(boxes[1]) == [b"3", b"5", b"6"]
    assert wire.connection.stats.in_msgs == 13
    assert wire.ready() == boxes  # once each: they were empty only once


@pytest.mark.rule("SUB-3")
@pytest.mark.parametrize("cuts", [[5], [1, 4], [2, 3], [3, 2], [4, 1], [1] * 5])
def test_a_maximum_within_a_row_of_messages(cuts):
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    wire.connection.unsubscribe(1, after=3)
    for count in cuts:
        wire.data(msg("a", 1) * count)
    assert (mailbox.ended, mailbox.pending(), mailbox.received) == (True, 3, 3)


class Impatient(Receiver):
    """A machine with a deadline a second after each message."""

    def receive(self, msg, now):
        self.deadline = now + 1.0
        return False

    def pending(self):
        return 0


@pytest.mark.rule("D-CLOCK-1")
@pytest.mark.parametrize("count", [1, 3])
def test_a_deadline_that_a_message_sets_is_armed(count):
    wire = Wire().up().timer(at=6.0)
    receiver = Impatient()
    wire.connection.subscribe("a", receiver)
    wire.data(msg("a", 1) * count, at=10.0)
    assert wire.deadline == 11.0
    assert wire.timer(at=11.0).ready() == [receiver]


@pytest.mark.rule("D-CONN-20")
def test_messages_before_invalid_input_are_delivered_and_none_after_it():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    wire.data(msg("a", 1, b"1") * 2 + b"garbage\r\n" + msg("a", 1, b"2"), at=99.0)
    assert (texts(mailbox), wire.state) == ([b"1", b"1"], "DIALING")
    assert isinstance(wire.events()[0].error, ProtocolError)


@pytest.mark.rule("D-CONN-20", "EVENT-1")
def test_a_server_that_keeps_sending_after_a_fatal_error_is_dropped_once():
    wire = Wire().up().data(err("Stale Connection") + b"garbage\r\n", at=99.0)
    assert wire.effects() == [Hangup(), Dial("a", 4222, False)]
    assert (wire.state, names(wire.events())) == ("DIALING", ["Disconnected"])


@pytest.mark.rule("ERR-5", "ERR-6")
def test_permission_errors_go_where_they_belong():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    request = wire.connection.start_request("b", deadline=9.0)
    wire.data(err('Permissions Violation for Subscription to "a"'))
    assert (mailbox.ended, request.done) == (True, False)
    wire.data(err('Permissions Violation for Publish to "b"'))
    assert request.done


# Discovery and lame ducks


@pytest.mark.rule("POOL-16", "POOL-17")
def test_the_program_chooses_by_the_last_info_and_its_mistakes_are_events():
    seen = []

    def choose(known, info):
        seen.append(info.server_name)
        return known[2] if len(seen) == 1 else "nats://nowhere"

    wire = Wire(servers=ABC, choose_server=choose).up(server_name="first")
    wire.effects()
    assert wire.lost(at=9.0).effects() == [Dial("a", 4222, False)]
    assert (seen, names(wire.events())) == (["first"], ["Disconnected"])
    wire.lost(at=10.0)
    [failed, mistake] = wire.events()
    assert (mistake.error.rule, wire.state) == ("POOL-17", "WAITING")
    assert "not in the pool: 'nats://nowhere'" in str(mistake.error)
    assert isinstance(failed, AttemptFailed)
    assert wire.ring().effects() == [Dial("b", 4222, False)]


@pytest.mark.rule("EVENT-3", "CONN-5")
def test_new_members_are_reported_once():
    wire = Wire().up(connect_urls=["x:1"])
    assert wire.data(info(connect_urls=["x:1"])).events() == []
    assert wire.data(info(connect_urls=["x:1", "y:2"])).events() == [Discovered(["nats://y:2"])]
    assert wire.lost(at=9.0).effects() == [Dial("x", 1, False)]


@pytest.mark.rule("LDM-1", "LDM-2", "D-LDM-3", "EVENT-1")
def test_a_lame_duck_is_left_without_losing_anything():
    wire = Wire(Script(0.5), servers=ABC[:2]).up()
    mailbox = wire.subscribe("a")
    wire.connection.publish("before")
    wire.forget().data(info(ldm=True) + info(ldm=True), at=10.0)
    assert wire.events() == [LameDuck(URL)]
    wire.connection.publish("still")
    assert wire.timer(at=10.49).sent() == b"PUB still 0\r\n\r\n"
    assert wire.timer(at=10.5).sent() == PING
    wire.data(info(ldm=True))
    wire.connection.publish("held")
    flush = wire.connection.start_flush(99.0)
    assert (wire.state, wire.sent(), wire.effects()) == ("CONNECTED", b"", [])
    wire.data(msg("a", 1, b"1") + PONG + msg("a", 1, b"2"))
    assert wire.effects() == [Hangup(), Dial("b", 4222, False)]
    assert wire.events() == [Disconnected(URL, None)]
    assert (texts(mailbox), flush.done) == ([b"1", b"2"], False)
    wire.greet().sent()
    assert wire.data(PONG).sent() == b"SUB a 1\r\nPUB held 0\r\n\r\n" + PING
    wire.data(PONG)
    assert (flush.done, flush.error) == (True, None)


@pytest.mark.rule("LDM-1", "LDM-2")
@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, {}),
        ({}, {"connect_urls": ["a:4222"]}),
        ({"ignore_discovered": True}, {"connect_urls": ["x:1"]}),
        ({"servers": ABC, "max_reconnects": 0}, {}),
    ],
)
def test_a_lame_duck_is_not_left_if_no_other_server_is_known(options, fields):
    wire = Wire(**options).up(ldm=True, **fields)
    wire.data(info(ldm=True, **fields)).timer(at=2.0)
    assert (wire.state, wire.sent(), wire.effects(), wire.events()) == ("CONNECTED", b"", [], [])
    wire.lost(at=10.0)


@pytest.mark.rule("LDM-2")
def test_another_server_is_discovered_or_removed_later():
    wire = Wire().up(ldm=True)
    wire.data(info(ldm=True, connect_urls=["x:1"])).ring()
    assert wire.sent() == PING
    wire = Wire(Script(0.5)).up(ldm=True, connect_urls=["x:1"])
    wire.connection.pool.set_servers("a")
    assert wire.timer(at=2.0).sent() == b""


@pytest.mark.rule("LDM-1")
def test_the_next_server_may_be_lame_as_well():
    wire = Wire(servers=ABC[:2]).up(ldm=True).lost(at=9.0)
    wire.greet(ldm=True).forget().data(PONG)
    assert wire.events() == [Connected("nats://b:4222", True), LameDuck("nats://b:4222")]


@pytest.mark.rule("D-LDM-4")
def test_a_lame_duck_that_does_not_answer():
    wire = Wire(servers=ABC[:2], connect_timeout=3.0).up(ldm=True).timer(at=0.0)
    assert wire.sent() == PING
    wire.timer(at=2.9)
    assert wire.state == "CONNECTED"
    assert wire.timer(at=3.0).effects() == [Hangup(), Dial("b", 4222, False)]


@pytest.mark.rule("D-LDM-5", "DRAIN-2")
def test_drains_that_begin_while_a_lame_duck_is_left():
    wire = Wire(servers=ABC[:2]).up()
    mailbox = wire.subscribe("a")
    wire.data(info(ldm=True)).timer()
    fence = wire.connection.start_drain_of([mailbox], 9.0)
    wire.forget().data(msg("a", 1, b"1") + PONG)
    assert (wire.effects(), wire.sent()) == ([], PING)
    wire.data(msg("a", 1, b"2") + PONG)
    assert (fence.done, fence.error, texts(mailbox)) == (True, None, [b"1", b"2"])
    assert wire.data(PONG).effects() == [Hangup(), Dial("b", 4222, False)]


@pytest.mark.rule("LDM-2")
def test_a_client_that_drains_stays():
    wire = Wire(Script(0.5), servers=ABC[:2]).up(ldm=True)
    wire.connection.start_drain(9.0)
    wire.sent()
    assert wire.timer(at=2.0).sent() == b""
    wire.data(PONG).data(PONG)
    assert wire.state == "CLOSED"


@pytest.mark.rule("LDM-2")
def test_a_lost_connection_before_the_time_to_leave():
    wire = Wire(Script(0.5), servers=ABC[:2]).up(ldm=True).lost(at=0.2)
    wire.greet().data(PONG).forget().timer(at=9.0)
    assert (wire.sent(), wire.effects()) == (b"", [])


@pytest.mark.rule("CONN-21", "EVENT-7", "D-PING-5")
def test_a_lifecycle_over_a_websocket():
    pytest.importorskip("wsproto")
    from tests.connection import test_websocket as ws

    wire = Wire(servers="ws://a/nats", max_reconnects=-1).connect().opened()
    request = wire.sent()
    assert request.startswith(b"GET /nats ")
    wire.data(ws.accept(request) + ws.frame(ws.BINARY, info() + b"+O"))
    [(_, connect)] = ws.unmask(wire.sent())
    assert connect.startswith(b"CONNECT {")
    wire.data(ws.frame(ws.BINARY, b"K\r\n" + PONG) + ws.frame(ws.PING, b"?"))
    wire.connection.publish("a")
    assert ws.unmask(wire.sent()) == [(ws.PONG, b"?"), (ws.BINARY, b"PUB a 0\r\n\r\n")]
    assert wire.connection.stats.out_bytes > len(request)
    wire.data(ws.frame(ws.CLOSE, b"\x03\xe8"), at=99.0)
    assert [str(event.error) for event in wire.events()[1:]] == ["server closed the WebSocket"]
    assert wire.effects()[1:] == [Hangup(), Dial("a", 80, False)]
    wire.opened().data(b"HTTP/1.1 403 Forbidden\r\n\r\n")
    assert "403" in str(wire.events()[0].error)


@pytest.mark.rule("CONN-11", "CONN-21")
def test_a_plain_websocket_that_wants_tls():
    pytest.importorskip("wsproto")
    from tests.connection import test_websocket as ws

    wire = Wire(servers="ws://a").connect().opened()
    wire.data(ws.accept(wire.sent()) + ws.frame(ws.BINARY, info(tls_required=True)))
    assert (wire.sent(), type(wire.events()[0].error)) == (b"", TlsFailed)
