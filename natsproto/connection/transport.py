"""Transport: everything that belongs to one dial, from Dial to the loss. Dropped, never reset.

    Dial -> [TLS first] -> [WebSocket upgrade] -> INFO -> [TLS] -> [signature] -> CONNECT PING
    -> PONG -> frames

Each step of the handshake returns its outcome, which the lifecycle acts on, and a frame to send:
START_TLS, SIGN, GREET with CONNECT, or "" if INFO has to come first. An error ends the attempt.

TLS intent is sticky. If the options or the URL of a server require TLS, nothing in INFO can
override
that: until the TLS handshake is complete, no NATS byte is sent, and nothing except INFO is read.
The same holds for servers that the cluster announces, which are dialed with TLS
as soon as the options or any server of the user require it. INFO can only ask for more TLS than the
user did, never for less, and the name that certificates are checked against is always the user's
(CONN-10 to CONN-15).

With host_websocket, the host of the adapter opens WebSockets: it does the upgrade, the framing and
the TLS of wss. For this module, such a transport carries plain NATS, and that of a wss URL is
secured when it opens.
"""

from __future__ import annotations

from natsproto.errors import ConnectionLost, ProtocolError, ServerFailed, TlsFailed
from natsproto.version import VERSION
from natsproto.wire import encode
from natsproto.wire.frames import Err, Info
from natsproto.wire.parser import Parser
from natsproto.wire.text import cut_middle

from .states import GREET, SIGN, START_TLS

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.auth.challenge import Challenge
    from natsproto.errors import NatsError
    from natsproto.options import Options
    from natsproto.websocket import WebSocket
    from natsproto.wire.frames import Frame

    from .servers import Server

# Bytes of PONGs that may wait. More than that means that PINGs arrive but nothing reads the
# responses.
_MAX_OWED = 1024 * 1024
# Servers omit these from INFO when they no longer hold: empty lists, and flags that are false.
_MOMENTARY = ("connect_urls", "ldm", "nonce", "ws_connect_urls")


class Transport:
    """One transport, or one attempt to open one."""

    __slots__ = (
        "_options",
        "_output",
        "_secured",
        "auth_error",
        "challenge",
        "got_pong",
        "info",
        "is_websocket",
        "owed",
        "parser",
        "server",
        "server_error",
        "websocket",
    )

    def __init__(self, server: Server, options: Options) -> None:
        self._options = options
        self.server: Server = server
        self.is_websocket: bool = server.url.is_websocket
        # A server's own responses may be above the max_payload of INFO (WIRE-13).
        self.parser: Parser = Parser(follow_info=False)
        self._secured = False
        self._output: list[bytes] = []  # to send unchanged, without a WebSocket frame
        self.websocket: WebSocket | None = None
        #: What this server said about itself so far.
        self.info: Info | None = None
        #: What the adapter signs.
        self.challenge: Challenge | None = None
        #: The PONG that completes the handshake is here.
        self.got_pong: bool = False
        #: How the server refused the credentials; "" if it did not.
        self.auth_error: str = ""
        #: Another -ERR during the handshake.
        self.server_error: NatsError | None = None
        #: Bytes of responses to PINGs that the adapter has not taken.
        self.owed: int = 0

    # The handshake

    def opened(self) -> tuple[str, bytes]:
        """Begin, with TLS if the adapter starts it before INFO (CONN-14)."""
        if self._options.host_websocket:
            self._secured = self.server.url.wants_tls  # D-WS-12: the host checks certificates
            return "", b""
        if self.server.url.wants_tls if self.is_websocket else self._options.tls_first:
            return START_TLS, b""
        return self._upgrade()

    def secured(self) -> tuple[str, bytes]:
        """Continue over TLS."""
        self._secured = True
        self.parser = Parser(follow_info=False)  # CONN-13: bytes that came in clear are discarded
        return self._upgrade() if self.info is None else self._greet(self.info)

    def _upgrade(self) -> tuple[str, bytes]:
        """Begin the WebSocket upgrade, if this is one; raise LocalError if that is impossible."""
        if self.is_websocket:
            from natsproto.websocket import WebSocket

            url, options = self.server.url, self._options
            self.websocket = WebSocket(
                url.host, url.port, url.path, options.ws_headers, options.ws_compression
            )
            self._output = [self.websocket.handshake()]
        return "", b""

    def greet(self, frame: Frame) -> tuple[str, bytes]:
        """Read the first frame; raise the error that ends the attempt if it is not INFO."""
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
        required = self.server.url.wants_tls or self._options.secure  # CONN-12
        if self._secured or not (required or frame.tls_required):
            return self._greet(frame)
        if self.is_websocket or not (frame.tls_required or frame.tls_available):
            # CONN-11: no connection is better than credentials in plaintext.
            raise TlsFailed(
                "TLS is required, but %s does not offer it" % cut_middle(self.server.name)
            )
        return START_TLS, b""

    def _greet(self, info: Info) -> tuple[str, bytes]:
        """Answer INFO with CONNECT, or let the adapter sign; raise NatsError if that fails."""
        options, url = self._options, self.server.url
        credentials: dict[str, str] = {}
        has_any = options.has_auth or url.user or url.token
        if has_any and options.host_signing:
            credentials, self.challenge = options.auth.challenge(info.nonce, url)  # D-AUTH-14
            if self.challenge is not None:
                return SIGN, b""
        elif has_any:
            credentials = options.auth.connect_fields(info.nonce, url)  # CONN-16
        return GREET, self._connect_frame(info, credentials)

    def signed(
        self, signature: bytes, key: bytes, error: BaseException | None
    ) -> tuple[str, bytes]:
        """Answer INFO with this signature; raise NatsError if signing has failed."""
        assert self.challenge is not None
        assert self.info is not None
        credentials = self.challenge.fields(signature, key, error)
        return GREET, self._connect_frame(self.info, credentials)

    def _connect_frame(self, info: Info, credentials: dict[str, str]) -> bytes:
        options = self._options
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
        fields.update(credentials)
        return encode.connect(fields)

    def learn(self, later: Info) -> Info:
        """Merge a later INFO; return the result.

        D-CONN-36: fields that it omits, as a proxy's INFO may, keep their values.
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
        """Return the frames in WebSocket bytes; raise ProtocolError, which contains earlier frames.

        Without a WebSocket, pass the bytes to `parser.feed` instead.
        """
        assert self.websocket is not None
        data = self.websocket.receive(data)  # CONN-21
        answer = self.websocket.take_output()
        if answer:
            self._output.append(answer)
            self.owed += len(answer)
        return self.parser.feed(data)

    def wrap(self, pieces: list[bytes]) -> list[bytes]:
        """Return the WebSocket frame for these bytes, which the adapter takes now."""
        assert self.websocket is not None
        output, self._output = self._output, []
        return output + [self.websocket.send(piece) for piece in pieces]

    def overdue(self) -> NatsError | None:
        """Return the reason to hang up even though all input was valid, or None."""
        if self.websocket is not None and self.websocket.closed:
            return ConnectionLost("server closed the WebSocket")
        if self.owed > _MAX_OWED:  # D-PING-5
            return ConnectionLost("server sends PINGs but does not read PONGs")
        return None
