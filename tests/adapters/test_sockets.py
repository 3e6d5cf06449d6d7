"""SocketTransport of `blocking` and `threads`: the data that it takes, and its wake-ups."""

from __future__ import annotations

import select
import socket
import time
from contextlib import nullcontext

import pytest

from natsproto.adapters import _sockets, threads
from natsproto.adapters._sockets import READ, WRITE, SocketTransport, look_up
from natsproto.connection.effects import Dial


@pytest.fixture
def ends():
    """Yield an open transport, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        transport = SocketTransport(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        peer, _ = listener.accept()
        while not transport.connected():
            select.select([], [transport.fileno()], [], 5)
        with peer:
            peer.settimeout(5)
            yield transport, peer
        transport.close()


class Source:
    """The data of a connection: all of it is taken at once, as from `data_to_send`."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def take(self) -> list[bytes]:
        taken, self.pieces = self.pieces, []
        return taken


@pytest.mark.rule("D-CONN-26")
def test_data_is_left_untaken_only_while_the_transport_waits_to_write(ends):
    transport, peer = ends
    source = Source()
    total = 0
    while not transport.unsent:  # until the buffers of the system are full
        source.pieces.append(bytes(1 << 20))
        total += 1 << 20
        transport.send(source.take)
    assert transport.wants() == READ | WRITE
    source.pieces.append(b"more")  # while the system accepts nothing
    total += 4
    transport.send(source.take)
    assert (source.pieces, transport.wants()) == ([b"more"], READ | WRITE)
    received = 0
    while received < total:
        received += len(peer.recv(1 << 20))
        # This one call must be enough: the next one is made only when the transport is ready.
        transport.send(source.take)
        assert transport.unsent or not source.pieces
    assert (transport.unsent, transport.wants()) == ([], READ)


def test_a_broken_transport_accepts_no_data(ends):
    transport, _ = ends
    transport.broken = OSError("broken")
    source = Source()
    source.pieces.append(b"1")
    transport.send(source.take)
    assert (source.pieces, transport.unsent) == ([b"1"], [])


@pytest.mark.parametrize("wait", [_sockets.wait_for, _sockets._wait_on_windows])
def test_a_closed_transport_is_not_waited_for(ends, wait):
    """Another thread may close it when this one has released the lock, but does not wait yet."""
    transport, _ = ends
    transport.close()
    started = time.monotonic()
    assert wait(transport, None, 20.0) is False
    assert time.monotonic() - started < 10


@pytest.mark.rule("D-CONN-26")
@pytest.mark.parametrize("corked", [False, True])
def test_large_messages_do_not_stop_the_thread(server, corked):
    """The thread repeatedly sends more data than all buffers hold."""
    data = bytes(1 << 20)
    with threads.connect(server.url) as client, client.corked() if corked else nullcontext():
        for _ in range(300):
            client.publish("large", data)
        client.flush(20)


@pytest.mark.parametrize(
    ("name", "asked"), [("a.example", b"a.example"), ("ä.example", "ä.example")]
)
def test_only_an_international_name_is_looked_up_as_text(monkeypatch, name, asked):
    """For text, Python imports a codec, which takes longer than the rest of a lookup."""
    hosts = []

    def getaddrinfo(host, *args, **kwargs):
        hosts.append(host)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert look_up(Dial(name, 4222, False)) == []
    assert hosts == [asked]
