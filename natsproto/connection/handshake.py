"""Handshake: from the choice of a server to the PONG that ends the greeting; and giving up.

    _try_next -> [WAITING] -> _dial -> DIALING -> _open -> OPENING -> _first_info
        -> [_start_tls -> SECURING] -> _greet -> GREETING -> PONG

Every step may end in `_fail`, which goes on with the next server, or in `_shut`, for good.

TLS intent is sticky. If the options or the URL of a server want TLS, nothing that INFO says makes
us do without: until the TLS handshake is done not a byte of NATS goes out, and of what came in
nothing but INFO is looked at. The same holds for servers that the cluster tells of, which are
dialled with TLS as soon as the options or any server of the user's want it. INFO can only ask for
more TLS than the user did, never for less, and the name that certificates are checked against is
always the user's (CONN-10 to CONN-15).
"""

from __future__ import annotations

from natsproto.errors import (
    AuthorizationFailed,
    ConnectFailed,
    ConnectionClosed,
    LocalError,
    NatsError,
    ProtocolError,
    ServerFailed,
    TlsFailed,
)
from natsproto.events import AttemptFailed, Closed
from natsproto.version import VERSION
from natsproto.websocket import WebSocket, check_library
from natsproto.wire import encode
from natsproto.wire.frames import Err, Info
from natsproto.wire.parser import Parser
from natsproto.wire.text import cut_middle

from .commands import Commands
from .effects import Dial, Hangup, StartTls
from .server_errors import short
from .servers import Pool
from .states import (
    CLOSE,
    DIAL,
    DIALING,
    GREET,
    GREETING,
    HANG_UP,
    NEW,
    OPENING,
    SECURING,
    START_TLS,
    WAITING,
    next_state,
)
from .waitable import Request, Waitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.options import Options
    from natsproto.wire.frames import Frame

    from .effects import Effect
    from .servers import Rng, Server


class Handshake(Commands):
    """What leads to a connection; `Connection` adds what comes afterwards."""

    def __init__(self, options: Options, *, rng: Rng) -> None:
        super().__init__(options, rng=rng)
        self.state = NEW
        self.pool = Pool(options, rng)
        self.opened = Request("connect")  # settled by the first connection, or when there is none
        self._effects: list[Effect] = []
        self._alarm = Waitable()  # the deadline of the state
        self._server: Server | None = None
        self._attempts = 1  # of reconnecting; the first connect was the immediate one
        self._errors: list[tuple[str, NatsError]] = []  # the last of each server since a success
        self._secured = False
        self._greeted: Info | None = None  # INFO of this transport
        self._welcomed = False  # its PONG has come
        self._refusal = ""  # the credentials were refused on this transport, in these words
        self._complaint: NatsError | None = None  # what else was said during the handshake
        self._parser = new_parser()
        self._websocket: WebSocket | None = None
        self._websocket_bytes: list[bytes] = []  # to send as they are, without a frame around them
        self._owed: int = 0  # bytes of PONGs that the adapter has not taken

    @property
    def _dialled(self) -> Server:
        assert self._server is not None
        return self._server

    @property
    def connecting(self) -> bool:
        """Whether an attempt to connect is under way, which has a deadline of its own."""
        return self.state in (DIALING, OPENING, SECURING, GREETING)

    def _try_next(self, now: float) -> None:
        server = self.pool.next_untried()
        delay = 0.0
        if server is None and self.opened.done:
            server = self.pool.next()
            delay = self.pool.delay(self._attempts)
            self._attempts += 1
        if server is None:
            self._shut(self._why_failed())
            return
        self._server = server
        if delay:
            self._set_alarm(now + delay)
        else:
            self._dial(now)

    def _enter(self, what: str) -> None:
        """Change the state as the table says: the one place that does."""
        self.state = next_state(self.state, what)

    def _set_alarm(self, deadline: float | None) -> None:
        """Set the deadline of the state."""
        self._alarm.deadline = deadline
        self._timers.arm(self._alarm)

    def _dial(self, now: float) -> None:
        if self._dialled not in self.pool.servers:
            # RECON-6: the user has replaced the servers while we waited.
            self._server = self.pool.next() or self._server
        url = self._dialled.url
        self._secured = False
        self._greeted = None
        self._welcomed = False
        self._refusal = ""
        self._complaint = None
        if url.is_websocket:
            try:
                check_library()  # WS-9: before dialing, and before TLS could fail for wss
            except LocalError as error:
                self._fail(error, now, hangup=False)
                return
        self._effects.append(Dial(url.host, url.port, self.options.shuffle))
        self._enter(DIAL)
        self._set_alarm(now + self.options.connect_timeout)

    def _start_tls(self) -> None:
        self._enter(START_TLS)
        self._effects.append(StartTls(self._dialled.tls_name))

    def _open(self, now: float) -> None:
        """The transport can carry data: wait for INFO."""
        url = self._dialled.url
        if url.is_websocket:
            try:
                self._websocket = WebSocket(url.host, url.port, url.path)
                self._websocket_bytes = [self._websocket.handshake()]
            except LocalError as error:
                self._fail(error, now)

    def _early(self, frame: Frame, now: float) -> None:
        """A frame before CONNECT was sent: INFO, and nothing behind it until TLS is done."""
        if self.state == SECURING:
            url = cut_middle(str(self._dialled.url))
            self._fail(TlsFailed("%s sent data before TLS" % url), now)  # CONN-13
        elif isinstance(frame, Info):
            self._first_info(frame, now)
        elif isinstance(frame, Err):
            # ERR-8: whatever the text, credentials that were not sent were not refused.
            self._fail(ServerFailed(short(frame.text)), now)
        else:
            name = type(frame).__name__.upper()
            self._fail(ProtocolError("%s instead of INFO" % name, 0, b""), now)  # CONN-2

    def _first_info(self, info: Info, now: float) -> None:
        self._greeted = info
        url = self._dialled.url
        wanted = url.wants_tls or self.options.secure
        if self._secured or not (wanted or info.tls_required):
            self._greet(info, now)
        elif url.is_websocket or not (info.tls_required or info.tls_available):
            # CONN-11: rather no connection than credentials in clear.
            text = "TLS is wanted, but %s does not offer it" % cut_middle(str(url))
            self._fail(TlsFailed(text), now)
        else:
            self._start_tls()

    def _greet(self, info: Info, now: float) -> None:
        self._learn(info, first=True)
        self._enter(GREET)
        options = self.options
        fields: dict[str, object] = {
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
        try:
            fields.update(options.auth.connect_fields(info.nonce, self._dialled.url))
        except NatsError as error:
            self._fail(error, now)
            return
        self._outbox.add(encode.connect(fields))
        self._outbox.add(encode.ping())

    # Giving up

    def _drop_transport(self, hangup: bool) -> None:
        """Drop everything that belongs to it; with `hangup`, the transport itself as well."""
        if hangup:
            self._effects.append(Hangup())
        self._set_alarm(None)
        self._parser = new_parser()
        self._websocket = None
        self._websocket_bytes = []
        self._owed = 0

    def _fail(self, error: NatsError, now: float, *, hangup: bool = True) -> None:
        """This attempt came to nothing."""
        server = self._dialled
        url = str(server.url)
        self._drop_transport(hangup)
        if hangup:
            self._enter(HANG_UP)
        self._outbox.clear()
        self.pool.failed(server, error)
        self._errors = [each for each in self._errors if each[0] != url]
        self._errors.append((url, error))
        self._tell(AttemptFailed(url, error))
        self._go_on(error, now)

    def _go_on(self, error: NatsError | None, now: float) -> None:
        """To the next server; or nowhere, if trying again would not help."""
        server = self._dialled
        refused_again = self._refusal != "" and self._refusal == server.auth_error
        server.auth_error = self._refusal
        # CONN-17: the same refusal twice in a row; CONN-18: our own mistake.
        if isinstance(error, LocalError) or refused_again:
            self._shut(error)
        else:
            self._try_next(now)

    def _why_failed(self) -> NatsError:
        """One error for all attempts: that of refused credentials, if there is any."""
        for _, error in self._errors:
            if isinstance(error, AuthorizationFailed):
                return error
        return ConnectFailed(list(self._errors))

    def _shut(self, reason: NatsError | None) -> None:
        """Closed for good; None: by the user."""
        self._drop_transport(self.state not in (NEW, WAITING))
        self._enter(CLOSE)
        text = "the connection is closed"
        if reason is not None:
            text = "%s: %s" % (text, reason)
        self._go_away(text, reason)
        if self.opened.finish(error=reason or ConnectionClosed(text)):
            self._ready.append(self.opened)
        self._report_drops()  # EVENT-6: nothing is told after Closed
        loss = self._loss
        self._tell(Closed(reason, 0 if loss is None else loss.unsent + loss.in_doubt))


def new_parser() -> Parser:
    """For what a server sends: its own answers may be above the max_payload of INFO (WIRE-13)."""
    return Parser(follow_info=False)
