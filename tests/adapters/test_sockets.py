"""Wire, the socket of `blocking` and `threads`: what it takes, and when it asks to be woken."""

from __future__ import annotations

import select
import socket
from contextlib import nullcontext

import pytest

from natsproto.adapters import threads
from natsproto.adapters._sockets import READ, WRITE, Wire


@pytest.fixture
def ends():
    """An open Wire, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        wire = Wire(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        peer, _ = listener.accept()
        while not wire.connected():
            select.select([], [wire.fileno()], [], 5)
        with peer:
            peer.settimeout(5)
            yield wire, peer
        wire.close()


class Source:
    """The data of a connection: all of it is taken at once, as from `data_to_send`."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def take(self) -> list[bytes]:
        taken, self.pieces = self.pieces, []
        return taken


@pytest.mark.rule("CONN-26")
def test_nothing_is_left_untaken_unless_the_wire_waits_to_write(ends):
    wire, peer = ends
    source = Source()
    total = 0
    while not wire.unsent:  # until the buffers of the system are full
        source.pieces.append(bytes(1 << 20))
        total += 1 << 20
        wire.send(source.take)
    assert wire.wants() == READ | WRITE
    source.pieces.append(b"more")  # while the system accepts nothing
    total += 4
    wire.send(source.take)
    assert (source.pieces, wire.wants()) == ([b"more"], READ | WRITE)
    received = 0
    while received < total:
        received += len(peer.recv(1 << 20))
        # This one call has to do: the next one comes when the wire is ready for what it wants.
        wire.send(source.take)
        assert wire.unsent or not source.pieces
    assert (wire.unsent, wire.wants()) == ([], READ)


def test_a_broken_wire_takes_nothing(ends):
    wire, _ = ends
    wire.broken = OSError("broken")
    source = Source()
    source.pieces.append(b"1")
    wire.send(source.take)
    assert (source.pieces, wire.unsent) == ([b"1"], [])


@pytest.mark.rule("CONN-26")
@pytest.mark.parametrize("corked", [False, True])
def test_large_messages_do_not_stop_the_thread(server, corked):
    """More than all buffers hold, again and again."""
    data = bytes(1 << 20)
    with threads.connect(server.url) as client, client.corked() if corked else nullcontext():
        for _ in range(300):
            client.publish("large", data)
        client.flush(20)
