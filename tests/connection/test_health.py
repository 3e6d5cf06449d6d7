from __future__ import annotations

import pytest

from natsproto.health import Health
from tests.connection.support import PING, PONG, Wire, msg


def health(wire, rtt=None):
    made = Health(wire.connection, rtt, wire.now)
    return made.state, made.server, made.connected, made.pong_age, made.reason


@pytest.mark.rule("D-HEALTH-1")
def test_the_life_of_a_client():
    wire = Wire(servers="nats://u:secret@a:4222")
    assert health(wire) == ("NEW", "", False, None, "")
    wire.connect()
    assert health(wire) == ("DIALING", "", False, None, "")
    wire.greet(at=1.0).data(PONG, at=2.0)
    wire.now = 5.0
    assert health(wire) == ("CONNECTED", "nats://a:4222", True, 3.0, "")
    wire.connection.start_flush(None)
    assert PING in wire.sent()
    wire.data(PONG, at=6.0)
    assert health(wire)[3] == 0.0
    wire.lost(at=7.0).up(at=8.0)
    made = Health(wire.connection, 0.25, wire.now)
    assert (made.rtt, made.reconnects) == (0.25, 1)
    wire.connection.close(9.0)
    assert health(wire)[4] == "the connection is closed"


@pytest.mark.rule("D-HEALTH-1")
def test_pending_bytes_and_slow_consumers():
    wire = Wire().up()
    wire.subscribe("a", max_msgs=1)
    wire.data(msg("a", 1) * 3)
    made = Health(wire.connection, None, 0.0)
    assert (made.slow_consumers, made.dropped, made.pending_bytes) == (1, 2, 0)
    wire.writable = False
    wire.connection.publish("a", b"12345")
    assert Health(wire.connection, None, 0.0).pending_bytes > 5
    wire.lost()
    wire.connection.publish("a", b"12345")
    assert Health(wire.connection, None, 0.0).pending_bytes == 2 * len(b"PUB a 5\r\n12345\r\n")
