"""trace in front of a WebSocket: frames unwrapped, and clients on real servers."""

from __future__ import annotations

import json
import zlib

import pytest
import wsproto
from wsproto.events import AcceptConnection, BytesMessage, Ping, Request

from jetstream.blocking import JetStream
from jetstream.tools.cli.trace.websocket import Unwrapper, unmasked
from natsproto.adapters.blocking import connect
from natsproto.cli import exits
from natsproto.testing import Server
from natsproto.testing.certificates import Certificates
from tests.cli.programs import Program
from tests.cli.relays import relay
from tests.cli.test_trace import tracing

REQUEST = b"GET / HTTP/1.1\r\nAuthorization: secret\r\n\r\n"
RESPONSE = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"


def frame(payload: bytes, head: int = 0x82) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes([head, size]) + payload
    if size < 65536:
        return bytes([head, 126]) + size.to_bytes(2, "big") + payload
    return bytes([head, 127]) + size.to_bytes(8, "big") + payload


def compressed(payload: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return (deflate.compress(payload) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]


SMALL, LARGE = compressed(b"PING\r\n"), compressed(b"x" * 100)
WIRE = [  # what happens, the bytes after HTTP, the NATS bytes
    ("frames", frame(b"PING\r\n") + frame(b"+OK\r\n"), b"PING\r\n+OK\r\n"),
    ("fragments", frame(b"PI", 0x02) + frame(b"NG\r\n", 0x80), b"PING\r\n"),
    ("a ping within", frame(b"PI", 0x02) + frame(b"?", 0x89) + frame(b"NG", 0x80), b"PING"),
    ("a close", frame(b"\x03\xe8", 0x88), b""),
    ("16 bits", frame(b"x" * 126), b"x" * 126),
    ("64 bits", frame(b"x" * 65536), b"x" * 65536),
    ("compressed", frame(SMALL, 0xC2) + frame(b"plain"), b"PING\r\nplain"),
    ("in parts", frame(LARGE[:3], 0x42) + frame(LARGE[3:], 0x80), b"x" * 100),
    ("not complete", frame(b"PING\r\n")[:-1], b""),
    ("not deflate", frame(b"\xff\xff", 0xC2), frame(b"\xff\xff", 0xC2)),
]


@pytest.mark.rule("D-PROXY-5")
@pytest.mark.parametrize("step", [1, 7, 10**9])
@pytest.mark.parametrize(("wire", "nats"), [pytest.param(*row[1:], id=row[0]) for row in WIRE])
def test_frames_are_unwrapped(wire, nats, step):
    whole = RESPONSE + wire
    unwrapper = Unwrapper()
    pieces = [whole[at : at + step] for at in range(0, len(whole), step)]
    assert b"".join(unwrapper.feed(each) for each in pieces) == nats


@pytest.mark.rule("D-PROXY-5")
def test_masks_are_removed_as_wsproto_sets_them():
    client = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
    server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    sent = client.send(Request(host="h", target="/"))
    server.receive_data(sent)
    list(server.events())
    client.receive_data(server.send(AcceptConnection()))
    list(client.events())
    unwrapper = Unwrapper()
    assert unwrapper.feed(sent) == b""
    for size in (0, 1, 5, 126, 70_000):
        data = bytes(each % 251 for each in range(size))
        assert unwrapper.feed(client.send(BytesMessage(data)) + client.send(Ping())) == data
    assert unmasked(b"", b"abcd") == b""


@pytest.mark.rule("D-PROXY-2")
def test_headers_of_a_request_are_not_shown():
    unwrapper = Unwrapper()
    assert unwrapper.feed(REQUEST[:20]) + unwrapper.feed(REQUEST[20:]) == b""


def test_a_response_that_refuses_is_shown():
    unwrapper = Unwrapper()
    refusal = b"HTTP/1.1 400 Bad Request\r\nX: y\r\n\r\nno"
    assert unwrapper.feed(refusal[:9]) == b""
    assert unwrapper.feed(refusal[9:]) + unwrapper.feed(b"!") == refusal + b"!"


@pytest.fixture
def command(tmp_path):
    return Program(tmp_path, "-m", "jetstream.tools.cli")


@pytest.mark.rule("D-PROXY-1", "D-PROXY-5")
@pytest.mark.parametrize("compression", [False, True])
def test_a_websocket_passes_unchanged_and_is_explained(command, compression):
    listener = {"listen": "127.0.0.1:-1", "no_tls": True, "compression": compression}
    with Server(jetstream=True, config={"websocket": listener}) as server:
        port = int(server.urls["websocket"].rpartition(":")[2])
        with (
            relay(port) as inner,
            tracing(command, f"ws://127.0.0.1:{inner.port}", "--once", "--json") as (trace, own),
            relay(own) as outer,
        ):
            url = f"ws://127.0.0.1:{outer.port}"
            options = {"ws_compression": compression, "ignore_discovered": True}
            with connect(url, user="u", password="s3cret", **options) as client:
                js = JetStream(client)
                js.create_stream(name="WS", subjects=["ws"])
                js.publish("ws", b"hello" * 1000)
                [msg] = js.create_consumer("WS", name="c").fetch(1)
                msg.ack_sync()
            assert trace.wait() == exits.OK
            steps = [json.loads(line) for line in trace.rest()]
        assert bytes(outer.sent) == bytes(inner.sent)
        assert bytes(outer.received) == bytes(inner.received)
    kinds = [step["kind"] for step in steps]
    assert kinds[:4] == ["info", "connect", "ping", "pong"]
    assert {"pull request", "delivery", "ack"} <= set(kinds)
    assert "garbage" not in kinds
    assert "s3cret" not in json.dumps(steps)


def test_tls_on_both_sides_of_a_websocket(command, tmp_path):
    certificates = Certificates(tmp_path)
    files = certificates.server("localhost")
    listener = {"listen": "127.0.0.1:-1", "tls": files}
    options = ["--tlsca", files["ca_file"]]
    options += ["--listen-cert", files["cert_file"], "--listen-key", files["key_file"]]
    with Server(config={"websocket": listener}) as server:
        to = "wss://localhost:" + server.urls["websocket"].rpartition(":")[2]
        with tracing(command, to, "--once", "--json", *options) as (trace, port):
            tls = certificates.client()
            with connect(f"wss://localhost:{port}", tls=tls, ignore_discovered=True) as client:
                client.flush()
            assert trace.wait() == exits.OK
            steps = [json.loads(line) for line in trace.rest()]
    assert [step["kind"] for step in steps[:4]] == ["info", "connect", "ping", "pong"]
