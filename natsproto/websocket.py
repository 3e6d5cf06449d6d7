"""WebSocket under NATS: the same bytes, in frames.

    handshake() -> HTTP request     receive(HTTP response) -> b"" and `opened`
    send(NATS bytes) -> a frame     receive(frames) -> NATS bytes
                                    take_output() -> answers to the peer's pings and close

How NATS bytes are cut into frames means nothing: a frame may carry half a message or ten. So
nothing is collected, and a frame of any size is passed on in the pieces that it came in.

This module needs wsproto (the extra `ws`), imported on use. wsproto takes the handshake's key and
the masks of frames from the system's randomness, as RFC 6455 wants it (5.3): here alone, the same
inputs do not give the same bytes.
"""

from __future__ import annotations

from .errors import InvalidState, InvalidValue, MissingExtra, ProtocolError
from .wire.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wsproto.events import CloseConnection, Event

_HTTP = b"HTTP/"
_EXCERPT = 64  # bytes that an error shows


def check_library() -> None:
    """Raise MissingExtra unless wsproto is installed."""
    try:
        import wsproto as wsproto
    except ImportError:
        raise MissingExtra("ws and wss need wsproto: pip install natsproto[ws]", "WS-9") from None


class WebSocket:
    """The client's end of one WebSocket connection: bytes in, bytes out."""

    __slots__ = ("_host", "_output", "_received", "_target", "_ws", "closed", "opened")

    def __init__(self, host: str, port: int, path: str = "") -> None:
        check_library()
        from wsproto import ConnectionType, WSConnection

        self._ws = WSConnection(ConnectionType.CLIENT)
        self._host = ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)
        self._target = path if path[:1] == "/" else "/" + path
        self._received = 0
        self._output: list[bytes] = []
        #: The server has accepted: there may be NATS bytes, and send() may be called.
        self.opened = False
        #: The server has closed or broke the protocol: nothing more comes or goes.
        self.closed = False

    def handshake(self) -> bytes:
        """The request to begin with; InvalidValue if host or path do not fit into one."""
        from h11 import LocalProtocolError
        from wsproto.events import Request

        try:
            return self._ws.send(Request(host=self._host, target=self._target))
        except (UnicodeError, LocalProtocolError):
            text = "host %s or path %s cannot be sent in HTTP" % (
                shorten(self._host),
                shorten(self._target),
            )
            raise InvalidValue(text, "WS-1") from None

    def receive(self, data: bytes) -> bytes:
        """The NATS bytes in it; ProtocolError if the server refuses or breaks the protocol.

        After that, as after the server's close, what comes is ignored.
        """
        from wsproto.utilities import RemoteProtocolError

        pieces: list[bytes] = []
        if data and not self.closed:
            # A plain NATS or TLS port: wsproto would wait for an empty line that never comes.
            start = _HTTP[self._received : self._received + len(data)]
            if data[: len(start)] != start:
                raise self._broken("WebSocket upgrade is wrong: not HTTP", data)
            try:
                self._ws.receive_data(data)
                for event in self._ws.events():
                    self._handle(event, data, pieces)
                    if self.closed:
                        break
            except RemoteProtocolError as error:
                raise self._broken("WebSocket upgrade is wrong: %s" % error, data) from None
            except UnicodeError:  # wsproto takes headers for ASCII
                raise self._broken("WebSocket upgrade is wrong: not ASCII", data) from None
            self._received += len(data)
        return b"".join(pieces)

    def send(self, data: bytes) -> bytes:
        """A frame with these NATS bytes; nothing if the server has closed."""
        from wsproto.events import BytesMessage

        if self.closed:
            return b""
        if not self.opened:
            raise InvalidState("the server has not accepted the WebSocket yet", "WS-4")
        return self._ws.send(BytesMessage(data))

    def take_output(self) -> bytes:
        """What to send because of what was received, after a ProtocolError too."""
        output = b"".join(self._output)
        self._output = []
        return output

    def _handle(self, event: Event, data: bytes, pieces: list[bytes]) -> None:
        from wsproto import events

        if isinstance(event, events.BytesMessage):
            pieces.append(bytes(event.data))
        elif isinstance(event, events.TextMessage):
            pieces.append(event.data.encode())
        elif isinstance(event, events.Ping):
            self._output.append(self._ws.send(event.response()))
        elif isinstance(event, events.CloseConnection):
            self._handle_close(event, data)
        elif isinstance(event, events.AcceptConnection):
            self.opened = True
        elif isinstance(event, events.RejectConnection):
            text = "WebSocket upgrade was refused with HTTP status %d" % event.status_code
            raise self._broken(text, data)

    def _handle_close(self, event: CloseConnection, data: bytes) -> None:
        from wsproto.connection import ConnectionState

        # wsproto reports a broken frame as a close as well: one that the server has not sent.
        broken = self._ws.state is ConnectionState.OPEN
        self._output.append(self._ws.send(event.response()))
        self.closed = True
        if broken:
            raise self._broken("WebSocket frame is broken: %s" % event.reason, data)

    def _broken(self, reason: str, data: bytes) -> ProtocolError:
        self.closed = True
        return ProtocolError(reason, self._received, bytes(data[:_EXCERPT]))
