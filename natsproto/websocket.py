"""WebSocket under NATS: the same bytes, in frames.

    handshake() -> HTTP request     receive(HTTP response) -> b"" and `opened`
    send(NATS bytes) -> a frame     receive(frames) -> NATS bytes
                                    take_output() -> answers to the peer's pings and close

Frame boundaries carry no meaning: a frame may hold half a message or ten. So nothing is collected,
and a frame of any size is passed on in the pieces in which it arrives.

This module needs wsproto (the extra `ws`), imported on use. wsproto takes the key of the handshake
and the masks of frames from the system's randomness, as RFC 6455 requires (5.3). This is the only
place where the same inputs do not produce the same bytes.
"""

from __future__ import annotations

from .errors import InvalidState, InvalidValue, MissingExtra, ProtocolError
from .wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from wsproto.events import CloseConnection, Event
    from wsproto.extensions import Extension

    from .secret import Secret

_HTTP = b"HTTP/"
_EXCERPT = 64  # bytes that an error shows


def check_library() -> None:
    """Raise MissingExtra unless wsproto is installed."""
    try:
        import wsproto as wsproto
    except ImportError:
        raise MissingExtra(
            "ws and wss need wsproto: pip install 'natsproto[ws]'", "D-WS-9"
        ) from None


class WebSocket:
    """The client's end of one WebSocket connection: bytes in, bytes out."""

    __slots__ = (
        "_compression",
        "_headers",
        "_host",
        "_output",
        "_received",
        "_target",
        "_ws",
        "closed",
        "opened",
    )

    def __init__(
        self,
        host: str,
        port: int,
        path: str = "",
        headers: list[tuple[str, Secret]] | None = None,
        compression: bool = False,
    ) -> None:
        check_library()
        from wsproto import ConnectionType, WSConnection

        self._ws = WSConnection(ConnectionType.CLIENT)
        self._host = ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)
        self._target = path if path[:1] == "/" else "/" + path
        self._headers = headers or []
        self._compression = compression
        self._received = 0
        self._output: list[bytes] = []
        #: True once the server has accepted the upgrade: send() is allowed.
        self.opened: bool = False
        #: True once the server has closed or violated the protocol: nothing is sent or received.
        self.closed: bool = False

    def handshake(self) -> bytes:
        """Return the HTTP request; raise InvalidValue if host or path cannot be part of one."""
        from h11 import LocalProtocolError
        from wsproto.events import Request

        try:
            return self._ws.send(
                Request(
                    host=self._host,
                    target=self._target,
                    extensions=self._extensions(),
                    extra_headers=[  # WS-10
                        (name.encode(), value.reveal().encode()) for name, value in self._headers
                    ],
                )
            )
        except (UnicodeError, LocalProtocolError):
            text = "host %s or path %s cannot be sent in HTTP" % (
                shorten(self._host),
                shorten(self._target),
            )
            raise InvalidValue(text, "WS-1") from None

    def _extensions(self) -> list[Extension]:
        if not self._compression:
            return []
        from wsproto.extensions import PerMessageDeflate

        # WS-11: the server compresses only if neither side keeps state between messages.
        deflate = PerMessageDeflate(
            client_no_context_takeover=True, server_no_context_takeover=True
        )
        return [deflate]

    def receive(self, data: bytes) -> bytes:
        """Return the NATS bytes in `data`.

        Raises ProtocolError if the server rejects the upgrade or violates the protocol. After that,
        as after the server's close, input is ignored.
        """
        from wsproto.utilities import RemoteProtocolError

        pieces: list[bytes] = []
        if data and not self.closed:
            # On a plain NATS or TLS port, wsproto would wait for an empty line that never arrives.
            start = _HTTP[self._received : self._received + len(data)]
            if data[: len(start)] != start:
                raise self._broken("WebSocket upgrade is invalid: not HTTP", data)
            try:
                self._ws.receive_data(data)
                for event in self._ws.events():
                    self._handle(event, data, pieces)
                    if self.closed:
                        break
            except RemoteProtocolError as error:
                raise self._broken("WebSocket upgrade is invalid: %s" % error, data) from None
            except UnicodeError:  # wsproto expects ASCII headers
                raise self._broken("WebSocket upgrade is invalid: not ASCII", data) from None
            self._received += len(data)
        return b"".join(pieces)

    def send(self, data: bytes) -> bytes:
        """Return a frame with these NATS bytes; b"" if the server has closed."""
        from wsproto.events import BytesMessage

        if self.closed:
            return b""
        if not self.opened:
            raise InvalidState("the server has not accepted the WebSocket yet", "WS-4")
        return self._ws.send(BytesMessage(data))

    def take_output(self) -> bytes:
        """Return the bytes that answer the received input, even after a ProtocolError."""
        output = b"".join(self._output)
        self._output = []
        return output

    def _handle(self, event: Event, data: bytes, pieces: list[bytes]) -> None:
        from wsproto import events

        if isinstance(event, events.BytesMessage):
            pieces.append(bytes(event.data))
        elif isinstance(event, events.TextMessage):
            pieces.append(event.data.encode())  # WS-3
        elif isinstance(event, events.Ping):  # WS-5
            self._output.append(self._ws.send(event.response()))
        elif isinstance(event, events.CloseConnection):
            self._handle_close(event, data)
        elif isinstance(event, events.AcceptConnection):
            self.opened = True  # WS-2
        elif isinstance(event, events.RejectConnection):
            text = "WebSocket upgrade was rejected with HTTP status %d" % event.status_code
            raise self._broken(text, data)

    def _handle_close(self, event: CloseConnection, data: bytes) -> None:
        from wsproto.connection import ConnectionState

        # wsproto also reports a broken frame as a close, which the server has not sent.
        broken = self._ws.state is ConnectionState.OPEN
        self._output.append(self._ws.send(event.response()))  # WS-6
        self.closed = True
        if broken:
            raise self._broken("WebSocket frame is broken: %s" % event.reason, data)  # WS-7

    def _broken(self, reason: str, data: bytes) -> ProtocolError:  # D-WS-8
        self.closed = True
        return ProtocolError(reason, self._received, bytes(data[:_EXCERPT]))
