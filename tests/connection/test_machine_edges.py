"""The connection at its limits, and reports that arrive together with a hangup."""

from __future__ import annotations

import pytest

from natsproto.connection.effects import Dial, Hangup
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import ConnectionClosed, ConnectionLost, ProtocolError
from natsproto.events import Closed
from tests.connection.support import PING, PONG, Wire, info, names

OWED = 1024 * 1024


@pytest.mark.rule("RECON-12")
@pytest.mark.parametrize(("size", "congested"), [(HIGH_WATER, False), (HIGH_WATER + 1, True)])
def test_callers_wait_above_high_water(size, congested):
    wire = Wire().up()
    wire.connection.outbound.add(b"x" * size)
    assert wire.connection.congested is congested


@pytest.mark.rule("D-CONN-25")
def test_bytes_that_arrive_before_the_hangup_is_taken_are_not_read():
    """The next transport has another parser, which must not see bytes of this one."""
    wire = Wire(max_reconnects=-1).up()
    before = wire.connection.stats.in_bytes
    wire.connection.force_reconnect(2.0)
    wire.connection.receive_data(b"INF", 2.0)
    assert wire.connection.stats.in_bytes == before
    assert wire.effects() == [Hangup(), Dial("a", 4222, False)]
    wire.opened().data(info())
    assert wire.state == "GREETING"


@pytest.mark.rule("D-PING-5")
@pytest.mark.parametrize(("pings", "lost"), [(OWED // 6, False), (OWED // 6 + 1, True)])
def test_pongs_that_the_adapter_cannot_send(pings, lost):
    """Each PONG has 6 bytes."""
    wire = Wire(max_reconnects=-1).up()
    wire.writable = False
    wire.data(PING * (pings - 1), PING)
    assert (wire.effects() != []) is lost
    if lost:
        [event] = wire.events()
        assert str(event.error) == "server sends PINGs but does not read PONGs"


@pytest.mark.rule("D-PING-5")
def test_pongs_that_were_taken_do_not_count():
    wire = Wire().up()
    wire.data(PING)
    assert (wire.sent(), wire.connection.transport.owed) == (PONG, 0)


@pytest.mark.rule("D-CONN-20")
def test_invalid_bytes_after_a_ping():
    """The PONG that waits is no reason to overlook them."""
    wire = Wire(max_reconnects=-1).up()
    wire.writable = False
    wire.data(PING + b"nonsense\r\n")
    assert names(wire.effects()) == ["Hangup", "Dial"]
    [event] = wire.events()
    assert isinstance(event.error, ProtocolError)


@pytest.mark.rule("WS-6")
def test_a_websocket_that_the_server_closes():
    """Nothing waits to be sent, and the bytes are valid; yet it is the end."""
    pytest.importorskip("wsproto")
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, BytesMessage, CloseConnection

    wire = Wire(servers="ws://a", max_reconnects=-1).connect().opened()
    server = WSConnection(ConnectionType.SERVER)
    server.receive_data(wire.sent())
    assert names(list(server.events())) == ["Request"]
    wire.data(server.send(AcceptConnection()), server.send(BytesMessage(info())))
    wire.data(server.send(BytesMessage(PONG))).forget()
    assert wire.state == "CONNECTED"
    wire.data(server.send(CloseConnection(code=1000)))
    assert names(wire.effects()) == ["Hangup", "Dial"]
    [event] = wire.events()
    assert isinstance(event.error, ConnectionLost)


@pytest.mark.rule("D-CONN-32", "D-CONN-28")
def test_by_default_an_abandoned_connection_counts_its_publishes():
    wire = Wire().up()
    wire.connection.publish("a")
    wire.forget()
    wire.connection.abandon("not ours")
    [closed] = wire.events()
    assert (type(closed), closed.unconfirmed) == (Closed, 1)


@pytest.mark.rule("RECON-5", "D-CONN-24")
def test_a_closed_connection_cannot_be_forced_to_reconnect():
    wire = Wire().up()
    wire.connection.close(1.0)
    wire.forget()
    with pytest.raises(ConnectionClosed):
        wire.connection.force_reconnect(2.0)
    assert (wire.state, wire.effects()) == ("CLOSED", [])


@pytest.mark.rule("D-CLOCK-1")
def test_the_timer_of_a_request_and_of_the_state_at_the_same_time():
    """Both are handled, and the effects of the input are finished afterwards."""
    wire = Wire(ping_interval=5.0).up()
    request = wire.connection.start_request("a", deadline=5.0)
    wire.forget().timer(at=5.0)
    assert (request.done, wire.sent()) == (True, PING)
    assert request in wire.ready()
