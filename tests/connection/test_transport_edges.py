"""One dial: limits and initial values."""

from __future__ import annotations

import json

import pytest

from natsproto.connection.servers import Server
from natsproto.connection.transport import Transport
from natsproto.errors import ProtocolError
from natsproto.options import Options
from natsproto.urls import ServerUrl
from natsproto.wire.frames import Info, Ok


def make(url="nats://a"):
    parsed = ServerUrl.parse(url)
    return Transport(Server(parsed, False, parsed.host), Options(servers=url))


@pytest.mark.rule("WIRE-13")
@pytest.mark.parametrize("tls", [False, True])
def test_messages_may_exceed_the_max_payload_of_info(tls):
    """It limits what clients publish; the server's own responses may be larger."""
    transport = make()
    if tls:
        transport.secured()
    frames = transport.parser.feed(b'INFO {"max_payload":5}\r\nMSG a 1 10\r\n0123456789\r\n')
    assert [type(frame).__name__ for frame in frames] == ["Info", "Msg"]


@pytest.mark.rule("CONN-1")
def test_the_pong_of_the_handshake_is_not_there_from_the_start():
    transport = make()
    transport.opened()
    transport.greet(Info({}))
    assert transport.got_pong is False


@pytest.mark.rule("CONN-4")
def test_connect_field_by_field():
    _, frame = make().greet(Info({"headers": True}))
    fields = json.loads(frame.partition(b" ")[2])
    assert fields.pop("version")
    assert fields == {
        "verbose": False,
        "pedantic": False,
        "tls_required": False,
        "name": "",
        "lang": "python",
        "protocol": 1,
        "echo": True,
        "headers": True,
        "no_responders": True,
    }


@pytest.mark.rule("CONN-2")
def test_where_the_first_frame_that_is_not_info_begins():
    with pytest.raises(ProtocolError) as caught:
        make().greet(Ok())
    assert (caught.value.offset, caught.value.excerpt) == (0, b"")


@pytest.mark.rule("D-PING-5")
@pytest.mark.parametrize(("owed", "overdue"), [(0, False), (1_048_576, False), (1_048_577, True)])
def test_a_mebibyte_of_pongs_may_wait(owed, overdue):
    transport = make()
    transport.owed = owed
    assert (transport.overdue() is not None) is overdue
