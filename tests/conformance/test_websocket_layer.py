"""The WebSocket layer against a real nats-server."""

from __future__ import annotations

import socket

import pytest

from natsproto import Err, Info, Msg, Parser, Ping, Pong, ProtocolError
from natsproto.testing import Server
from natsproto.websocket import WebSocket

pytest.importorskip("wsproto")


class Peer:
    """A WebSocket over a plain socket."""

    def __init__(self, port: int, path: str = "") -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.websocket = WebSocket("127.0.0.1", port, path)
        self.parser = Parser()
        self.sock.sendall(self.websocket.handshake())

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.sock.close()

    def read(self) -> list[object]:
        """Return the frames of one read, [] at the end of the connection."""
        frames: list[object] = []
        while not frames and not self.websocket.closed and (data := self.sock.recv(65536)):
            frames += self.parser.feed(self.websocket.receive(data))
            self.sock.sendall(self.websocket.take_output())
        return frames

    def read_until(self, kind: type) -> list[object]:
        frames: list[object] = []
        while not any(isinstance(frame, kind) for frame in frames):
            more = self.read()
            assert more, "the connection ended"
            frames += more
        return frames

    def send(self, data: bytes) -> None:
        self.sock.sendall(self.websocket.send(data))


@pytest.fixture(scope="module")
def server():
    config = {
        "websocket": {"listen": "127.0.0.1:-1", "no_tls": True},
        "ping_interval": "100ms",
    }
    with Server(config=config) as server:
        yield server


@pytest.fixture
def port(server):
    return websocket_port(server)


def websocket_port(server: Server) -> int:
    return int(server.urls["websocket"].rpartition(":")[2])


@pytest.mark.rule("WS-1", "WS-2", "WS-3", "WS-4")
@pytest.mark.parametrize("path", ["", "/", "/any/path"])
def test_connect(port, path):
    with Peer(port, path) as peer:
        [info] = peer.read()
        assert isinstance(info, Info)
        assert peer.websocket.opened
        peer.send(b'CONNECT {"verbose":false}\r\nPING\r\n')
        peer.read_until(Pong)


@pytest.mark.rule("WS-3", "WS-4")
@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 1_000_000])
def test_messages_of_all_sizes_round_trip(port, size):
    payload = bytes(range(256)) * (size // 256 + 1)
    payload = payload[:size]
    with Peer(port) as peer:
        peer.read_until(Info)
        peer.send(b"CONNECT {}\r\nSUB a 1\r\n")
        operation = b"PUB a %d\r\n%s\r\n" % (size, payload)
        peer.send(operation[: len(operation) // 2])  # NATS bytes may be cut anywhere
        peer.send(operation[len(operation) // 2 :])
        frames = peer.read_until(Msg)
        assert [frame.data for frame in frames if isinstance(frame, Msg)] == [payload]


@pytest.mark.rule("WS-6")
@pytest.mark.parametrize("token", ["right", "wrong"])
def test_the_server_reports_the_reason_and_closes(token):
    config = {
        "websocket": {"listen": "127.0.0.1:-1", "no_tls": True},
        "authorization": {"token": "right"},
    }
    with Server(config=config) as server, Peer(websocket_port(server)) as peer:
        peer.read_until(Info)
        peer.send(b'CONNECT {"auth_token":"%s","verbose":false}\r\nPING\r\n' % token.encode())
        if token == "right":
            peer.read_until(Pong)
            server.terminate()
        else:
            frames = peer.read_until(Err)
            assert frames[-1] == Err("Authorization Violation")
        assert peer.read() == []
        assert peer.websocket.closed


@pytest.mark.rule("WS-3")
def test_pings_of_the_server_are_nats_pings(port):
    with Peer(port) as peer:
        peer.read_until(Info)
        peer.send(b"CONNECT {}\r\nPING\r\n")
        peer.read_until(Ping)


@pytest.mark.rule("WS-2")
def test_a_port_that_speaks_plain_nats(server):
    with Peer(server.port) as peer, pytest.raises(ProtocolError, match="not HTTP"):
        peer.read()
