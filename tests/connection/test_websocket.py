from __future__ import annotations

import base64
import sys
from hashlib import sha1

import pytest

from natsproto import ProtocolError
from natsproto.errors import InvalidState, InvalidValue, MissingExtra
from natsproto.secret import Secret
from natsproto.websocket import WebSocket

INFO = b'INFO {"server_id":"N"} \r\n'
KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3


@pytest.mark.rule("D-WS-9")
def test_without_wsproto(monkeypatch):
    monkeypatch.setitem(sys.modules, "wsproto", None)
    with pytest.raises(MissingExtra, match=r"pip install 'natsproto\[ws\]'"):
        WebSocket("localhost", 80)


wsproto = pytest.importorskip("wsproto")
from wsproto import events, extensions  # noqa: E402  (after the test that needs none)


def accept(request: bytes) -> bytes:
    """Return the response that accepts this request, by hand."""
    key = header(request, b"sec-websocket-key")
    token = base64.b64encode(sha1(key + KEY).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %s\r\n\r\n" % token
    )


def header(request: bytes, name: bytes) -> bytes:
    for line in request.split(b"\r\n")[1:]:
        found, _, value = line.partition(b": ")
        if found.lower() == name:
            return value
    raise LookupError(name)


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    """Return a frame as servers send them: without a mask."""
    size = len(payload)
    if size < 126:
        length = bytes([size])
    elif size < 65536:
        length = b"\x7e" + size.to_bytes(2, "big")
    else:
        length = b"\x7f" + size.to_bytes(8, "big")
    return bytes([fin << 7 | opcode]) + length + payload


MORE, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def unmask(data: bytes) -> list[tuple[int, bytes]]:
    """Return opcode and payload of the frames that a client sent, each complete and masked."""
    frames = []
    while data:
        assert data[0] & 0xF0 == 0x80
        assert data[1] & 0x80
        size, start = data[1] & 0x7F, 2
        if size >= 126:
            start += 2 if size == 126 else 8
            size = int.from_bytes(data[2:start], "big")
        mask, payload = data[start : start + 4], data[start + 4 : start + 4 + size]
        frames.append((data[0] & 0x0F, bytes(b ^ mask[i % 4] for i, b in enumerate(payload))))
        data = data[start + 4 + size :]
    return frames


def opened() -> WebSocket:
    websocket = WebSocket("localhost", 80)
    assert websocket.receive(accept(websocket.handshake())) == b""
    assert websocket.opened
    return websocket


@pytest.mark.rule("WS-1")
@pytest.mark.parametrize(
    ("host", "port", "path", "line", "name"),
    [
        ("localhost", 80, "", b"GET / HTTP/1.1", b"localhost:80"),
        ("127.0.0.1", 8080, "/", b"GET / HTTP/1.1", b"127.0.0.1:8080"),
        ("::1", 443, "/nats", b"GET /nats HTTP/1.1", b"[::1]:443"),
        ("a.example", 9, "nats/ws?x=1", b"GET /nats/ws?x=1 HTTP/1.1", b"a.example:9"),
        ("bücher.example", 9, "", b"GET / HTTP/1.1", b"xn--bcher-kva.example:9"),
    ],
)
def test_handshake(host, port, path, line, name):
    request = WebSocket(host, port, path).handshake()
    assert request.split(b"\r\n")[0] == line
    assert request.endswith(b"\r\n\r\n")
    assert header(request, b"host") == name
    assert header(request, b"upgrade") == b"websocket"
    assert header(request, b"connection") == b"Upgrade"
    assert header(request, b"sec-websocket-version") == b"13"
    assert len(base64.b64decode(header(request, b"sec-websocket-key"))) == 16
    assert b"extensions" not in request.lower()


@pytest.mark.rule("WS-1")
@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("a\r\nX: y", ""),
        ("a" * 64, ""),
        ("localhost", "/a b"),
        ("localhost", "/\r\nX: y"),
        ("localhost", "/é"),
    ],
)
def test_values_that_http_cannot_represent_are_rejected(host, path):
    with pytest.raises(InvalidValue, match="cannot be sent in HTTP"):
        WebSocket(host, 80, path).handshake()


@pytest.mark.rule("WS-2", "WS-3")
def test_data_after_the_response_in_the_same_read():
    websocket = WebSocket("localhost", 80)
    response = accept(websocket.handshake())
    assert not websocket.opened
    assert websocket.receive(response + frame(BINARY, INFO)) == INFO
    assert websocket.opened
    assert not websocket.closed
    assert websocket.take_output() == b""


@pytest.mark.rule("WS-3")
def test_byte_by_byte():
    websocket = WebSocket("localhost", 80)
    stream = accept(websocket.handshake())
    stream += frame(BINARY, INFO) + frame(PING, b"x") + frame(BINARY, b"PING\r\n" * 100)
    got = b"".join([websocket.receive(stream[i : i + 1]) for i in range(len(stream))])
    assert got == INFO + b"PING\r\n" * 100
    assert unmask(websocket.take_output()) == [(PONG, b"x")]


STREAMS = [  # name, frames, NATS bytes
    ("nothing", b"", b""),
    ("binary", frame(BINARY, b"PING\r\n"), b"PING\r\n"),
    ("text", frame(TEXT, b"PING\r\n"), b"PING\r\n"),
    ("text that is not ASCII", frame(TEXT, "é\r\n".encode()), "é\r\n".encode()),
    ("empty", frame(BINARY) + frame(TEXT), b""),
    ("two", frame(BINARY, b"PI") + frame(BINARY, b"NG\r\n"), b"PING\r\n"),
    ("fragments", frame(BINARY, b"PI", fin=False) + frame(MORE, b"NG"), b"PING"),
    (
        "text cut inside a character",
        frame(TEXT, "é".encode()[:1], fin=False) + frame(MORE, "é".encode()[1:]),
        "é".encode(),
    ),
    (
        "control between fragments",
        frame(BINARY, b"PI", fin=False) + frame(PONG) + frame(MORE, b"NG"),
        b"PING",
    ),
    ("16 bits of size", frame(BINARY, b"x" * 60_000), b"x" * 60_000),
    ("64 bits of size", frame(BINARY, b"x" * 70_000), b"x" * 70_000),
]


@pytest.mark.rule("WS-3")
@pytest.mark.parametrize(("name", "data", "expected"), STREAMS)
def test_received(name, data, expected):
    websocket = opened()
    got = websocket.receive(data)
    assert got == expected
    assert type(got) is bytes
    assert websocket.take_output() == b""


@pytest.mark.rule("WS-3")
def test_a_huge_frame_is_passed_on_as_it_arrives():
    websocket = opened()
    assert websocket.receive(b"\x82\x7f" + (1 << 40).to_bytes(8, "big") + b"first") == b"first"
    assert websocket.receive(b"second") == b"second"


@pytest.mark.rule("WS-4")
@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 1_000_000])
def test_sent(size):
    data = bytes(range(256)) * (size // 256 + 1)
    frames = opened().send(data[:size])
    assert unmask(frames) == [(BINARY, data[:size])]


@pytest.mark.rule("WS-4")
def test_nothing_is_sent_before_the_server_accepts():
    websocket = WebSocket("localhost", 80)
    websocket.handshake()
    with pytest.raises(InvalidState, match="has not accepted the WebSocket yet"):
        websocket.send(b"PING\r\n")


@pytest.mark.rule("WS-5")
def test_ping():
    websocket = opened()
    assert websocket.receive(frame(PING, b"a") + frame(BINARY, b"+OK\r\n") + frame(PING)) == (
        b"+OK\r\n"
    )
    assert unmask(websocket.take_output()) == [(PONG, b"a"), (PONG, b"")]
    assert websocket.take_output() == b""


@pytest.mark.rule("WS-6")
@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        (b"", b""),
        (b"\x03\xe8", b"\x03\xe8"),
        (b"\x03\xf0Authorization Violation", b"\x03\xf0Authorization Violation"),
        (b"\x0f\xa0private", b"\x0f\xa0private"),
    ],
)
def test_close(payload, answer):
    websocket = opened()
    stream = frame(BINARY, b"-ERR 'x'\r\n") + frame(CLOSE, payload) + frame(BINARY, b"late")
    assert websocket.receive(stream) == b"-ERR 'x'\r\n"
    assert websocket.closed
    assert unmask(websocket.take_output()) == [(CLOSE, answer)]
    assert websocket.receive(frame(BINARY, b"later")) == b""
    assert websocket.send(b"PING\r\n") == b""
    assert websocket.take_output() == b""


REFUSALS = [  # response, reason
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "rejected with HTTP status 404"),
    (b"HTTP/1.1 401 Unauthorized\r\n\r\nbody", "rejected with HTTP status 401"),
    (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "rejected with HTTP status 302"),
    (b"HTTP/1.1 200 OK\r\n\r\n", "rejected with HTTP status 200"),
    (b"HTTP/1.1 100 Continue\r\n\r\n", "rejected with HTTP status 100"),
    (b'INFO {"server_id":"N"} \r\n', "not HTTP"),
    (b"\x15\x03\x01\x00\x02\x02\x0a", "not HTTP"),
    (b"HTTQ", "not HTTP"),
    (b"HTTP/1.1 abc\r\n\r\n", "Bad HTTP message"),
    (b"HTTP/1.1 101 x\r\n" + b"a: b\r\n" * 20_000, "Bad HTTP message"),
    (
        b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        "Bad accept token",
    ),
    (
        b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "Bad accept token",
    ),
    (b"HTTP/1.1 101 x\r\nConnection: Upgrade\r\n\r\n", "Missing header"),
    (b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n", "Missing header"),
    (b"HTTP/1.1 101 x\r\nConnection: \xff\r\n\r\n", "not ASCII"),
]


@pytest.mark.rule("WS-2", "D-WS-8")
@pytest.mark.parametrize(("response", "reason"), REFUSALS)
def test_refused(response, reason):
    websocket = WebSocket("localhost", 80)
    websocket.handshake()
    with pytest.raises(ProtocolError) as caught:
        websocket.receive(response)
    assert reason in caught.value.reason
    assert caught.value.reason.startswith("WebSocket upgrade")
    assert (caught.value.offset, caught.value.excerpt) == (0, response[:64])
    assert websocket.closed
    assert not websocket.opened
    assert websocket.receive(response) == b""
    assert websocket.send(b"PING\r\n") == b""
    assert websocket.take_output() == b""


@pytest.mark.rule("WS-2")
def test_input_that_is_not_http_fails_at_its_first_byte():
    websocket = WebSocket("localhost", 80)
    websocket.handshake()
    assert websocket.receive(b"") == websocket.receive(b"HT") == websocket.receive(b"T") == b""
    with pytest.raises(ProtocolError, match="not HTTP at byte 3: b'X'"):
        websocket.receive(b"X")


@pytest.mark.rule("WS-2")
def test_an_extension_that_was_not_offered_is_refused():
    websocket = WebSocket("localhost", 80)
    response = accept(websocket.handshake())
    response = response[:-2] + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
    with pytest.raises(ProtocolError, match="permessage-deflate"):
        websocket.receive(response)


BROKEN = [  # name, data, reason, close code
    ("masked", b"\x82\x81mask\0", "masked frame", 1002),
    ("opcode", frame(3), "Invalid opcode 0x3", 1002),
    ("reserved bit", b"\xc2\0", "Reserved bit", 1002),
    ("fragmented control", frame(PING, fin=False), "fragment control frame", 1002),
    ("long control", frame(PING, b"x" * 126), "payload len > 125", 1002),
    ("lone continuation", frame(MORE, b"x"), "unexpected CONTINUATION", 1002),
    ("mixed", frame(TEXT, b"x", fin=False) + frame(BINARY, b"x"), "expected CONTINUATION", 1002),
    ("not UTF-8", frame(TEXT, b"\xff"), "decode byte 0xff", 1007),
    ("size not minimal", b"\x82\x7e\0\1x", "1 would have sufficed", 1002),
    ("size with sign", b"\x82\x7f" + b"\xff" * 8, "non-zero MSB", 1002),
    ("close of one byte", frame(CLOSE, b"\3"), "1 byte payload", 1002),
    ("close code", frame(CLOSE, b"\0\1"), "invalid code", 1002),
    ("close reason", frame(CLOSE, b"\x03\xe8\xff"), "decoding CLOSE reason", 1007),
]


@pytest.mark.rule("WS-7", "D-WS-8")
@pytest.mark.parametrize(("name", "data", "reason", "code"), BROKEN)
def test_broken_frames(name, data, reason, code):
    websocket = opened()
    before = websocket.receive(frame(BINARY, b"PING\r\n"))
    assert before == b"PING\r\n"
    with pytest.raises(ProtocolError) as caught:
        websocket.receive(data)
    assert reason in caught.value.reason
    assert caught.value.reason.startswith("WebSocket frame is broken: ")
    assert caught.value.excerpt == data[:64]
    assert websocket.closed
    [(opcode, payload)] = unmask(websocket.take_output())
    assert (opcode, int.from_bytes(payload[:2], "big")) == (CLOSE, code)
    assert websocket.receive(frame(BINARY, b"later")) == b""


@pytest.mark.rule("WS-7")
def test_the_offset_counts_from_the_first_byte():
    websocket = WebSocket("localhost", 80)
    response = accept(websocket.handshake())
    websocket.receive(response[:10])
    websocket.receive(response[10:] + frame(BINARY, b"x"))
    with pytest.raises(ProtocolError) as caught:
        websocket.receive(frame(3))
    assert caught.value.offset == len(response) + 3


@pytest.mark.rule("D-WS-8")
def test_mutated_streams_raise_nothing_else():
    import random

    rng = random.Random(6455)
    outcomes = set()
    for _ in range(3000):
        websocket = WebSocket("localhost", 80)
        stream = bytearray(accept(websocket.handshake()))
        start = rng.choice([0, len(stream)])
        for _ in range(4):
            payload = rng.randbytes(rng.choice([0, 1, 5, 125, 126, 300]))
            stream += frame(rng.choice([0, 1, 2, 2, 8, 9, 10, 15]), payload, fin=rng.random() < 0.8)
        for _ in range(rng.randrange(4)):
            stream[rng.randrange(start, len(stream))] = rng.randrange(256)
        cut = rng.randrange(len(stream))
        try:
            websocket.receive(bytes(stream[:cut]))
            websocket.receive(bytes(stream[cut:]))
            outcomes.add("closed" if websocket.closed else "open")
        except ProtocolError as error:
            outcomes.add(error.reason.partition(":")[0].rstrip("0123456789"))
        websocket.take_output()
    assert len(outcomes) >= 4


@pytest.mark.rule("WS-2", "WS-3", "WS-4", "WS-5", "WS-6")
def test_a_dialogue_with_the_server_side_of_wsproto():
    server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    client = WebSocket("localhost", 4222, "/nats")

    def at_server(data: bytes) -> list[events.Event]:
        server.receive_data(data)
        return list(server.events())

    [request] = at_server(client.handshake())
    assert (request.host, request.target) == ("localhost:4222", "/nats")
    reply = server.send(events.AcceptConnection()) + server.send(events.BytesMessage(INFO))
    assert client.receive(reply) == INFO
    [message] = at_server(client.send(b"CONNECT {}\r\nPING\r\n"))
    assert (type(message), message.data) == (events.BytesMessage, b"CONNECT {}\r\nPING\r\n")
    assert client.receive(server.send(events.Ping(b"still there?"))) == b""
    assert at_server(client.take_output()) == [events.Pong(b"still there?")]
    assert client.receive(server.send(events.CloseConnection(1001, "bye"))) == b""
    assert at_server(client.take_output()) == [events.CloseConnection(1001, "bye")]
    assert client.closed


@pytest.mark.rule("WS-10")
def test_headers_of_the_user_are_part_of_the_request():
    request = WebSocket(
        "a", 80, "", [("Cookie", Secret("a=b")), ("X-Trace", Secret("7"))]
    ).handshake()
    assert (header(request, b"cookie"), header(request, b"x-trace")) == (b"a=b", b"7")


@pytest.mark.rule("WS-11")
def test_compression_is_offered_and_used_if_the_server_accepts_it():
    websocket = WebSocket("a", 80, compression=True)
    server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    server.receive_data(websocket.handshake())
    [request] = server.events()
    [offer] = request.extensions
    assert "client_no_context_takeover" in offer
    assert "server_no_context_takeover" in offer
    deflate = extensions.PerMessageDeflate(
        client_no_context_takeover=True, server_no_context_takeover=True
    )
    accepted = server.send(events.AcceptConnection(extensions=[deflate]))
    assert websocket.receive(accepted) == b""
    sent = websocket.send(b"PUB a 1000\r\n" + b"x" * 1000)
    assert len(sent) < 100
    server.receive_data(sent)
    assert b"".join(event.data for event in server.events())[-1000:] == b"x" * 1000
    answer = server.send(events.BytesMessage(b"y" * 1000))
    assert len(answer) < 100
    assert websocket.receive(answer) == b"y" * 1000


@pytest.mark.rule("WS-11")
def test_nothing_is_compressed_without_the_consent_of_the_server():
    websocket = WebSocket("a", 80, compression=True)
    websocket.receive(accept(websocket.handshake()))
    assert len(websocket.send(b"x" * 1000)) > 1000
