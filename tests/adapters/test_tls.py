"""TlsFilter: TLS without I/O, against the server's side of Python's own TLS."""

from __future__ import annotations

import socket
import ssl

import pytest

from natsproto.adapters.driver import Driver, make_connection
from natsproto.adapters.tls import TlsFilter, tls_context
from natsproto.connection.states import CONNECTED
from natsproto.errors import InvalidState
from natsproto.options import Options
from natsproto.testing import Server
from natsproto.testing.certificates import Certificates

NAME = "server.example"
MIB = 1 << 20


class Peer:
    """The server's side: an ssl.SSLObject over two memory buffers."""

    def __init__(self, files: dict[str, object], version: ssl.TLSVersion) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["cert_file"], files["key_file"])
        context.minimum_version = context.maximum_version = version
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.done = False
        self.received = b""

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the client; return the answer."""
        self._incoming.write(data)
        try:
            if not self.done:
                self.tls.do_handshake()
                self.done = True
            while True:
                piece = self.tls.read(MIB)
                if not piece:
                    break
                self.received += piece
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()

    def send(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self._outgoing.read()

    def close(self) -> bytes:
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda each: each.name)
def peer(request, certificates):
    return Peer(certificates.server(NAME), request.param)


@pytest.fixture
def tls(certificates):
    return TlsFilter(certificates.client(), NAME)


def shake_hands(tls: TlsFilter, peer: Peer, size: int = 0) -> None:
    """Exchange bytes until neither side has any; in pieces of this size, 0: whole."""
    to_peer = tls.data_to_send()
    while to_peer:
        to_client = peer.feed(to_peer)
        step = size or len(to_client) or 1
        for start in range(0, len(to_client), step):
            assert tls.receive_data(to_client[start : start + step]) == b""
        to_peer = tls.data_to_send()


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_the_handshake_in_pieces_of_any_size(tls, peer, size):
    assert not tls.handshake_done
    shake_hands(tls, peer, size)
    assert tls.handshake_done
    assert peer.done
    assert not tls.closed
    assert tls.data_to_send() == b""


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 3 * MIB])
def test_data_in_both_directions(tls, peer, size):
    shake_hands(tls, peer)
    data = bytes(range(256)) * (size // 256) or b"x" * size
    tls.send(data)
    assert peer.feed(tls.data_to_send()) == b""
    assert peer.received == data
    assert (tls.receive_data(peer.send(data)) if data else b"") == data
    assert tls.data_to_send() == b""


def test_records_that_arrive_byte_by_byte(tls, peer):
    shake_hands(tls, peer)
    record = peer.send(b"hello")
    pieces = [tls.receive_data(record[i : i + 1]) for i in range(len(record))]
    assert pieces == [b""] * (len(record) - 1) + [b"hello"]


def test_nothing_is_sent_before_the_handshake_is_done(tls):
    hello = tls.data_to_send()
    with pytest.raises(InvalidState, match="TLS handshake is not done"):
        tls.send(b"CONNECT {}\r\n")
    assert hello.startswith(b"\x16\x03")
    assert tls.data_to_send() == b""


def test_data_that_follows_the_handshake_in_the_same_read(tls, certificates):
    peer = Peer(certificates.server(NAME), ssl.TLSVersion.TLSv1_2)
    answer = peer.feed(tls.data_to_send())
    tls.receive_data(answer)
    finished = peer.feed(tls.data_to_send())
    assert peer.done
    assert not tls.handshake_done
    assert tls.receive_data(finished + peer.send(b"INFO {}\r\n")) == b"INFO {}\r\n"
    assert tls.handshake_done


CONTEXTS = [  # the client's context, the name that it expects
    ("client", "other.example"),
    ("stranger", NAME),
]


@pytest.mark.parametrize(("context", "name"), CONTEXTS)
def test_a_certificate_that_is_not_accepted(peer, certificates, context, name):
    tls = TlsFilter(getattr(certificates, context)(), name)
    answer = peer.feed(tls.data_to_send())
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        tls.receive_data(answer)
    assert not tls.handshake_done
    with pytest.raises(ssl.SSLError, match="ALERT"):  # the peer learns the reason
        peer.feed(tls.data_to_send())


@pytest.mark.parametrize("name", ["", ".example"])
def test_a_name_that_no_certificate_can_have(certificates, name):
    with pytest.raises(ValueError, match=r"server_hostname|idna"):
        TlsFilter(certificates.client(), name)


def test_bytes_that_are_not_tls(tls):
    with pytest.raises(OSError, match="WRONG_VERSION_NUMBER"):
        tls.receive_data(b"-ERR 'not TLS'\r\n")


def test_data_before_a_broken_record_is_returned_first(tls, peer):
    shake_hands(tls, peer)
    last_words = peer.send(b"-ERR 'Stale Connection'\r\n")
    forged = bytearray(peer.send(b"PING\r\n"))
    forged[-1] ^= 1
    assert tls.receive_data(last_words + forged) == b"-ERR 'Stale Connection'\r\n"
    for _ in range(2):
        with pytest.raises(OSError, match="BAD_RECORD_MAC"):
            tls.receive_data(b"")


def test_the_peer_ends_tls(tls, peer):
    shake_hands(tls, peer)
    assert tls.receive_data(peer.send(b"last") + peer.close()) == b"last"
    assert tls.closed
    assert tls.receive_data(b"") == b""


def test_close_sends_close_notify_once(tls, peer):
    shake_hands(tls, peer)
    tls.send(b"last")
    tls.close()
    peer.feed(tls.data_to_send())
    assert peer.received == b"last"
    assert peer.tls.read(10) == b""  # the end, not an error
    tls.close()
    assert tls.data_to_send() == b""


def test_close_before_the_handshake_is_done(tls):
    tls.data_to_send()
    tls.close()
    assert tls.data_to_send() == b""


def test_the_context_of_the_options(certificates):
    context = certificates.client()
    assert tls_context(Options(tls=context)) is context
    for tls in (None, True):
        default = tls_context(Options(tls=tls))
        assert (default.verify_mode, default.check_hostname) == (ssl.CERT_REQUIRED, True)


class FilteredDriver(Driver):
    """The smallest driver with TLS: a blocking socket, and a clock that does not move."""

    sock: socket.socket
    tls: TlsFilter | None = None

    def now(self):
        return 0.0

    def dial(self, effect):
        self.sock = socket.create_connection((effect.host, effect.port), timeout=5)

    def start_tls(self, effect):
        self.tls = TlsFilter(tls_context(self.connection.options), effect.hostname)
        self.sock.sendall(self.tls.data_to_send())

    def hang_up(self):
        if self.tls is not None:
            self.tls.close()
            self.sock.sendall(self.tls.data_to_send())
        self.sock.close()

    def send(self):
        for piece in self.connection.data_to_send():
            if self.tls is not None:
                self.tls.send(piece)
                piece = self.tls.data_to_send()
            self.sock.sendall(piece)

    def set_timer(self, deadline):
        pass

    def read(self):
        data = self.sock.recv(65536)
        if self.tls is None:
            self.on_data(data)
            return
        was_done = self.tls.handshake_done
        data = self.tls.receive_data(data)
        self.sock.sendall(self.tls.data_to_send())
        if self.tls.handshake_done and not was_done:
            self.on_tls()
        if data:
            self.on_data(data)


@pytest.mark.parametrize("tls_first", [False, True])
def test_a_real_server(certificates, tls_first):
    config = {"tls": certificates.server("127.0.0.1", handshake_first=tls_first)}
    with Server(config=config) as server:
        options = {"tls": certificates.client(), "tls_first": tls_first}
        connection = make_connection(server.url, options)
        inbox = connection.mailbox(max_msgs=10, max_bytes=2 * MIB)
        connection.subscribe("large", inbox)
        connection.publish("large", bytes(MIB))
        driver = FilteredDriver(connection)
        connection.connect(0.0)
        driver.pump()
        driver.on_opened()
        while not inbox.pending():
            driver.read()
        assert connection.state == CONNECTED
        assert inbox.pop().data == bytes(MIB)
        [seen] = server.monitor("/connz")["connections"]
        assert seen["tls_version"]
        connection.close(0.0)
        driver.pump()
