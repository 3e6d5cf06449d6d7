"""Transport: everything that belongs to one dial, from Dial to the loss. Dropped, never reset.

    Dial -> [TLS first] -> [WebSocket upgrade] -> INFO -> [TLS] -> CONNECT PING -> PONG -> frames

TLS intent is sticky. If the options or the URL of a server require TLS, nothing in INFO can make us
do without: until the TLS handshake is complete, not a byte of NATS goes out, and of what arrived
only INFO is read. The same holds for servers that the cluster announces, which are dialed with TLS
as soon as the options or any server of the user require it. INFO can only ask for more TLS than the
user did, never for less, and the name that certificates are checked against is always the user's
(CONN-10 to CONN-15).
"""

from __future__ import annotations

from natsproto.errors import ConnectionLost, ProtocolError, ServerFailed, TlsFailed
from natsproto.version import VERSION
from natsproto.wire import encode
from natsproto.wire.frames import Err, Info
from natsproto.wire.parser import Parser
from natsproto.wire.text import cut_middle

from .states import GREET, START_TLS

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.options import Options
    from natsproto.websocket import WebSocket
    from natsproto.wire.frames import Frame

    from .servers import Server

# Bytes of PONGs that may wait. More than that means: PINGs arrive, and nothing reads the responses.
_MAX_OWED = 1024 * 1024
# Servers omit these from INFO when they no longer hold: empty lists, and flags that are false.
_MOMENTARY = ("connect_urls", "ldm", "nonce", "ws_connect_urls")


class Transport:
    """One transport, or one attempt at it."""

    __slots__ = (
        "_output",
        "_secured",
        "auth_error",
        "got_pong",
        "info",
        "is_websocket",
        "owed",
        "parser",
        "server",
        "server_error",
        "websocket",
    )

    def __init__(self, server: Server) -> None:
        self.server: Server = server
        self.is_websocket: bool = server.url.is_websocket
        # A server's own responses may be above the max_payload of INFO (WIRE-13).
        self.parser: Parser = Parser(follow_info=False)
        self._secured = False
        self._output: list[bytes] = []  # to send as they are, without a WebSocket frame
        self.websocket: WebSocket | None = None
        #: What this server said about itself so far.
        self.info: Info | None = None
        #: The PONG that completes the handshake is here.
        self.got_pong: bool = False
        #: How the server refused the credentials; "" if it did not.
        self.auth_error: str = ""
        #: Another -ERR during the handshake.
        self.server_error: NatsError | None = None
        #: Bytes of responses to PINGs that the adapter has not taken.
        self.owed: int = 0

    # The handshake

    def needs_tls_first(self, options: Options) -> bool:
        """Return whether TLS comes before INFO (CONN-14)."""
        return self.server.url.wants_tls if self.is_websocket else options.tls_first

    def open(self, options: Options) -> None:
        """Begin the WebSocket upgrade, if this is one; raise LocalError if that is impossible."""
        if self.is_websocket:
            from natsproto.websocket import WebSocket

            url = self.server.url
            self.websocket = WebSocket(
                url.host, url.port, url.path, options.ws_headers, options.ws_compression
            )
            self._output = [self.websocket.handshake()]

    def secure(self) -> None:
        """Note that TLS is established."""
        self._secured = True
        self.parser = Parser(follow_info=False)  # CONN-13: bytes that came in clear are discarded

    def greet(self, frame: Frame, options: Options) -> str:
        """Read the first frame; return START_TLS or GREET, or raise the error that ends it."""
        if self.info is not None:
            raise TlsFailed("%s sent data before TLS" % cut_middle(self.server.name))  # CONN-13
        if isinstance(frame, Err):
            from .server_errors import short

            # D-ERR-8: whatever the text, credentials that were not sent were not refused.
            raise ServerFailed(short(frame.text))
        if not isinstance(frame, Info):
            raise ProtocolError(
                "%s instead of INFO" % type(frame).__name__.upper(), 0, b""
            )  # CONN-2
        self.info = frame
        required = self.server.url.wants_tls or options.secure  # CONN-12
        if self._secured or not (required or frame.tls_required):
            return GREET
        if self.is_websocket or not (frame.tls_required or frame.tls_available):
            # CONN-11: no connection is better than credentials in clear.
            raise TlsFailed(
                "TLS is required, but %s does not offer it" % cut_middle(self.server.name)
            )
        return START_TLS

    def connect_frame(self, options: Options) -> bytes:
        """Return the CONNECT that answers INFO; raise NatsError if credentials cannot be read."""
        info = self.info
        assert info is not None
        fields: dict[str, object] = {  # CONN-4
            "verbose": options.verbose,
            "pedantic": options.pedantic,
            "tls_required": self._secured,
            "name": options.name,
            "lang": "python",
            "version": VERSION,
            "protocol": 1,
            "echo": not options.no_echo,
            "headers": info.headers,
            "no_responders": info.headers,
        }
        url = self.server.url
        if options.has_auth or url.user or url.token:
            fields.update(options.auth.connect_fields(info.nonce, url))  # CONN-16
        return encode.connect(fields)

    def learn(self, later: Info) -> Info:
        """Merge a later INFO; return the result.

        D-CONN-36: what it does not mention, as that of a proxy, is still as it was.
        """
        assert self.info is not None
        known = self.info.fields
        fields = {name: known[name] for name in known if name not in _MOMENTARY}
        for name in later.fields:
            if later.fields[name] is not None:
                fields[name] = later.fields[name]
        self.info = Info(fields)
        return self.info

    # Bytes

    def receive(self, data: bytes) -> list[Frame]:
        """Return the frames in the bytes of a WebSocket; raise ProtocolError, which has frames.

        Without one, the bytes are for `parser.feed`.
        """
        assert self.websocket is not None
        data = self.websocket.receive(data)  # CONN-21
        answer = self.websocket.take_output()
        if answer:
            self._output.append(answer)
            self.owed += len(answer)
        return self.parser.feed(data)

    def wrap(self, pieces: list[bytes]) -> list[bytes]:
        """Return what to write to a WebSocket for these bytes, which the adapter takes now."""
        assert self.websocket is not None
        output, self._output = self._output, []
        return output + [self.websocket.send(piece) for piece in pieces]

    def overdue(self) -> NatsError | None:
        """Return the reason to hang up even though all input was valid, or None."""
        if self.websocket is not None and self.websocket.closed:
            return ConnectionLost("server closed the WebSocket")
        if self.owed > _MAX_OWED:  # D-PING-5
            return ConnectionLost("server sends PINGs and reads no PONG")
        return None
