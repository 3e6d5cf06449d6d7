"""TLS for adapters: the context to use, and a filter for transports without TLS of their own.

Only this module of the adapters imports `ssl` at its top: adapters that load it on demand start
faster, and `natsproto.adapters.driver` stays importable where there is no ssl.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from natsproto.errors import InvalidState

from .driver import READ_SIZE

if TYPE_CHECKING:
    from natsproto.options import Options

__all__ = ["TlsFilter", "tls_context"]


def tls_context(options: Options) -> ssl.SSLContext:
    """Return the user's context, or one with the system's defaults."""
    if options.tls is None or options.tls is True:
        return ssl.create_default_context()
    assert isinstance(options.tls, ssl.SSLContext)
    return options.tls


class TlsFilter:
    """The client's side of TLS without I/O, between a transport and a connection.

        tls = TlsFilter(tls_context(connection.options), effect.hostname)
        write(tls.data_to_send())               # the first message of the handshake

        data = tls.receive_data(read())         # for every piece that the transport receives
        write(tls.data_to_send())               # more of the handshake, or other TLS messages
        if tls.handshake_done: ...              # the certificate is valid: report `on_tls`, once

        tls.send(data)                          # for every piece of the connection
        write(tls.data_to_send())

    After every call `data_to_send` returns what the transport has to write, in this order and
    exactly once. The constructor raises ValueError for a host name that no certificate can have;
    `receive_data` and `send` raise an OSError if TLS has failed. An alert for the peer may be left
    in `data_to_send` even then.
    """

    def __init__(self, context: ssl.SSLContext, hostname: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)
        self._error: ssl.SSLError | None = None  # to be raised by the next `receive_data`
        #: Whether application data can be sent: the certificate of the peer was checked.
        self.handshake_done: bool = False
        #: Whether the peer has ended TLS: nothing more will be received.
        self.closed: bool = False
        self._shake_hands()

    def receive_data(self, data: bytes) -> bytes:
        """Take bytes from the transport; return the application data that they complete."""
        if self._error is not None:
            raise self._error
        self._incoming.write(data)
        if not self.handshake_done and not self._shake_hands():
            return b""
        pieces: list[bytes] = []
        try:
            while not self.closed:
                piece = self._tls.read(READ_SIZE)
                pieces.append(piece)
                self.closed = not piece
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            if not pieces:
                raise
            # The data before it is genuine, and may say why the server hangs up.
            self._error = error
        return b"".join(pieces)

    def send(self, data: bytes) -> None:
        """Encrypt application data; InvalidState before the handshake is done."""
        if not self.handshake_done:
            raise InvalidState("TLS handshake is not done: nothing can be sent")
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]

    def data_to_send(self) -> bytes:
        """Take the bytes that the transport has to write; b"" if there are none."""
        return self._outgoing.read()

    def close(self) -> None:
        """Send close_notify, if the handshake is done: nothing more will be sent.

        There is no need to wait for the peer's own close_notify.
        """
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # the peer has not answered yet, or there was no handshake

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.handshake_done = True
        return True
