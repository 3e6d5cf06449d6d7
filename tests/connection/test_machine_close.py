"""The graceful close, and the messages that it counts as unconfirmed."""

from __future__ import annotations

import pytest

from natsproto.connection.effects import Dial, Hangup
from natsproto.errors import ConnectFailed, ConnectionClosed
from natsproto.events import Closed
from tests.connection.support import PING, PONG, Wire


def loss(request):
    """Return (unsent, in doubt) as reported by the request; None if nothing was lost."""
    error = request.error
    return None if error is None else (error.unsent, error.in_doubt)


def publish(wire, count):
    for _ in range(count):
        wire.connection.publish("a", b"x")
    return wire


UP = ("data", PONG)
# Inputs after `start_close(3.0)` at 1.0, by the state before it and the number of publishes.
ENDS = [
    # case, state, publishes, inputs, closed at, loss
    ("confirmed", "connected", 2, [("data", PONG, 1.5)], 1.5, None),
    ("nothing published", "connected", 0, [("data", PONG, 1.5)], 1.5, None),
    ("the server is silent", "connected", 2, [("timer", 3.0)], 3.0, (0, 2)),
    ("silent, nothing published", "connected", 0, [("timer", 3.0)], 3.0, None),
    ("lost while it waits", "connected", 2, [("lost", None, 2.0)], 2.0, (0, 2)),
    ("not taken by the adapter", "stuck", 2, [("timer", 3.0)], 3.0, (2, 0)),
    ("offline, nothing to send", "offline", 0, [], 1.0, None),
    (
        "offline, connects",
        "offline",
        2,
        [("greet", 2.0), ("data", PONG), ("data", PONG)],
        2.0,
        None,
    ),
    (
        "offline, connects and hangs",
        "offline",
        2,
        [("greet", 2.0), UP, ("timer", 3.0)],
        3.0,
        (0, 2),
    ),
    ("offline, lost again", "offline", 2, [("greet", 2.0), UP, ("lost",)], 2.0, (0, 2)),
    ("offline for good", "offline", 2, [("timer", 3.0)], 3.0, (2, 0)),
    ("offline, handshake hangs", "offline", 2, [("greet", 2.0), ("timer", 3.0)], 3.0, (2, 0)),
]


def wire_in(state):
    wire = Wire(max_reconnects=-1).up()
    if state == "offline":
        wire.lost(at=1.0)
    wire.writable = state != "stuck"
    return wire


@pytest.mark.rule("CONN-27", "D-CONN-28")
@pytest.mark.parametrize(
    ("state", "publishes", "inputs", "closed_at", "expected"),
    [row[1:] for row in ENDS],
    ids=[row[0] for row in ENDS],
)
def test_how_a_close_ends(state, publishes, inputs, closed_at, expected):
    wire = publish(wire_in(state), publishes).look()
    wire.now = 1.0
    closing = wire.connection.start_close(3.0)
    wire.look()
    for name, *args in inputs:
        assert wire.state != "CLOSED"
        if name == "data":
            wire.data(args[0], at=args[1] if len(args) > 1 else None)
        else:
            getattr(wire, name)(*args)
    assert (wire.state, wire.now, closing.done, loss(closing)) == (
        "CLOSED",
        closed_at,
        True,
        expected,
    )
    assert closing in wire.ready() or not inputs
    assert wire.events()[-1] == Closed(None, sum(expected or ()))
    assert wire.deadline is None
    again = wire.connection.start_close(9.0)
    assert (again.done, again.error) == (True, None)  # it was reported once


@pytest.mark.rule("CONN-27")
def test_the_frames_that_a_close_sends():
    wire = publish(Wire().up(), 1)
    wire.connection.start_close(3.0)
    assert wire.sent() == b"PUB a 1\r\nx\r\n" + PING
    wire.data(PONG)
    assert wire.effects() == [Hangup()]


@pytest.mark.rule("CONN-27")
def test_a_close_waits_for_a_connection_like_any_other_reconnect():
    wire = publish(Wire(max_reconnects=-1).up().lost(at=1.0), 1)
    closing = wire.connection.start_close(99.0)
    for _ in range(3):
        assert any(isinstance(effect, Dial) for effect in wire.effects())
        wire.lost().ring()
    wire.greet().data(PONG, PONG)
    assert (closing.done, closing.error, wire.state) == (True, None, "CLOSED")


@pytest.mark.rule("D-CONN-28")
def test_only_publishes_since_the_last_pong_are_in_doubt():
    wire = publish(Wire().up(), 3)
    wire.connection.start_flush(9.0)
    publish(wire, 2)
    wire.data(PONG)
    closing = wire.connection.start_close(9.0)
    wire.timer(at=9.0)
    assert loss(closing) == (0, 2)


@pytest.mark.rule("D-CONN-28")
def test_losses_before_the_close_do_not_count():
    wire = publish(Wire(max_reconnects=-1).up(), 3).look()
    publish(wire.lost(at=5.0), 1)
    closing = wire.connection.start_close(9.0)
    wire.timer(at=9.0)
    assert loss(closing) == (1, 0)


@pytest.mark.rule("D-CONN-28")
def test_publishes_after_the_flush_get_another_one():
    wire = publish(Wire().up(), 1)
    closing = wire.connection.start_close(9.0)
    publish(wire, 1)
    wire.data(PONG)
    assert not closing.done
    publish(wire, 1)  # a publisher that never stops
    wire.look()
    publish(wire, 1)
    wire.data(PONG)
    assert (wire.state, loss(closing)) == ("CLOSED", (1, 1))


@pytest.mark.rule("D-CONN-28")
@pytest.mark.parametrize("online", [False, True])
def test_requests_do_not_count(online):
    wire = Wire(max_reconnects=-1).up()
    if not online:
        wire.lost(at=1.0)
    requests = [
        wire.connection.start_request("svc", b"x", deadline=50.0),
        wire.connection.start_request("svc", b"x", deadline=50.0, headers={"K": "v"}),
    ]
    wire.connection.publish("a", reply="elsewhere")
    wire.connection.publish("a", headers={"K": "v"})
    closing = wire.connection.start_close(9.0)
    wire.look().timer(at=9.0)
    assert loss(closing) == ((0, 2) if online else (2, 0))
    assert [type(request.error) for request in requests] == [ConnectionClosed] * 2


@pytest.mark.rule("CONN-27")
def test_a_close_does_not_wait_for_requests():
    wire = Wire(max_reconnects=-1).up().lost(at=1.0)
    wire.connection.start_request("svc", deadline=50.0)
    closing = wire.connection.start_close(9.0)
    assert (closing.done, closing.error, wire.state) == (True, None, "CLOSED")


@pytest.mark.rule("D-CONN-28")
def test_a_failure_for_good_is_reported_by_the_first_close():
    wire = Wire(max_reconnects=1).up().lost(at=5.0)
    publish(wire, 2).lost()
    closed = wire.events()[-1]
    assert isinstance(closed, Closed)
    assert (type(closed.error), closed.unconfirmed) == (ConnectFailed, 2)
    assert loss(wire.connection.start_close(9.0)) == (2, 0)
    assert loss(wire.connection.start_close(9.0)) is None


@pytest.mark.rule("D-CONN-28")
def test_a_failure_for_good_while_it_closes():
    wire = publish(Wire(max_reconnects=1).up().lost(at=5.0), 2)
    closing = wire.connection.start_close(99.0)
    wire.lost()
    assert (wire.state, loss(closing)) == ("CLOSED", (2, 0))


@pytest.mark.rule("D-CONN-28")
def test_an_immediate_close_reports_unconfirmed_messages():
    wire = publish(Wire().up(), 2).look()
    publish(wire, 1)
    wire.connection.close(1.0)
    assert wire.events() == [Closed(None, 3)]
    assert loss(wire.connection.start_close(9.0)) == (1, 2)


@pytest.mark.rule("CONN-27")
@pytest.mark.parametrize(("second", "ends"), [(2.0, 2.0), (8.0, 4.0)])
def test_of_two_closes_the_earlier_deadline_counts(second, ends):
    wire = publish(Wire().up(), 1)
    closing = wire.connection.start_close(4.0)
    assert wire.connection.start_close(second) is closing
    wire.timer(at=ends - 0.1)
    assert not closing.done
    wire.timer(at=ends)
    assert loss(closing) == (0, 1)


@pytest.mark.rule("CONN-27", "DRAIN-7")
def test_a_close_in_the_middle_of_a_drain():
    wire = Wire().up()
    mailbox = wire.subscribe("a")
    drain = wire.connection.start_drain(30.0)
    closing = wire.connection.start_close(9.0)
    wire.data(PONG, PONG)
    assert (closing.done, closing.error, wire.state) == (True, None, "CLOSED")
    assert mailbox.ended
    assert drain.done
    assert wire.connection.start_close(9.0).error is None


@pytest.mark.rule("CONN-27", "D-DRAIN-8")
def test_a_close_continues_without_a_waiting_caller():
    wire = publish(Wire().up(), 1)
    closing = wire.connection.start_close(9.0)
    wire.connection.cancel(closing)
    assert not closing.done
    wire.data(PONG)
    assert (closing.done, wire.state) == (True, "CLOSED")


@pytest.mark.rule("CONN-27", "LDM-2")
def test_a_lame_duck_is_not_left_while_it_closes():
    wire = publish(Wire(servers=["nats://a:4222", "nats://b:4222"]).up(), 1)
    wire.connection.start_close(9.0)
    wire.data(b'INFO {"ldm":true,"max_payload":1048576}\r\n')
    assert wire.connection.lifecycle.lame_duck.timer.deadline is None
    wire.data(PONG)
    assert wire.state == "CLOSED"


@pytest.mark.rule("D-CONN-28")
def test_held_while_leaving_a_lame_duck_is_not_confirmed_by_its_pong():
    wire = Wire(servers=["nats://a:4222", "nats://b:4222"], max_reconnects=-1).up()
    publish(wire, 1)
    wire.data(b'INFO {"ldm":true,"max_payload":1048576}\r\n').timer(at=0.5)
    publish(wire, 2)  # held
    wire.data(PONG)  # and it leaves
    assert wire.state == "DIALING"
    closing = wire.connection.start_close(5.0)
    wire.timer(at=5.0)
    assert loss(closing) == (2, 0)


@pytest.mark.rule("D-CONN-28", "D-RECON-13")
@pytest.mark.parametrize("online", [False, True])
def test_after_a_fork_nothing_of_the_other_process_counts(online):
    wire = publish(Wire(max_reconnects=-1).up(), 1)
    if not online:
        publish(wire.lost(at=1.0).lost(), 1)
    wire.connection.forked(2.0)
    wire.connection.close(2.0)
    assert wire.events()[-1] == Closed(None, 0)


ABANDONED = [  # state,  copied, messages that count as lost
    ("connected", True, 0),
    ("offline", True, 0),
    ("connected", False, 2),
    ("offline", False, 2),
]


@pytest.mark.rule("D-CONN-32")
@pytest.mark.parametrize(("state", "copied", "unconfirmed"), ABANDONED)
def test_an_abandoned_connection_is_closed_without_touching_the_transport(
    state, copied, unconfirmed
):
    wire = publish(wire_in(state), 2).forget()
    mailbox = wire.subscribe("a")
    request = wire.connection.start_request("svc", deadline=9.0)
    wire.forget()
    wire.connection.abandon("not ours", copied=copied)
    assert (wire.state, wire.effects(), wire.sent(), wire.deadline) == ("CLOSED", [], b"", None)
    assert {id(mailbox), id(request)} <= {id(each) for each in wire.ready()}
    assert str(request.error) == "the connection is closed: not ours"
    with pytest.raises(ConnectionClosed, match="not ours"):
        wire.connection.publish("a")
    (closed,) = wire.events()
    assert (str(closed.error), closed.unconfirmed) == ("not ours", unconfirmed)
    wire.connection.abandon("again")
    assert wire.events() == []
