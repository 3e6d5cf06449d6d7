"""Lifecycle: from one transport to the next, until the connection is closed for good.

    connect -> Dial -> transport_opened -> INFO -> [StartTls -> tls_started]
    -> [Sign -> nonce_signed] -> CONNECT PING -> PONG -> CONNECTED until the transport is lost
    -> the next server, at once or after a pause -> ...

states.py has the states and the table that every change of state follows. Of the parts, `Transport`
knows the handshake, `Attempts` which server to dial and when, and `Traffic` what survives a lost
transport. This one brings them together: it alone changes the state, and it alone decides to hang
up, to dial and to close.
"""

from __future__ import annotations

from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    LocalError,
    NatsError,
    PermissionDenied,
    ProtocolError,
    TimeoutExpired,
    TlsFailed,
)
from natsproto.events import AttemptFailed, Connected, Disconnected, Discovered, ServerError
from natsproto.wire.frames import Err, Info, Msg, Ping, Pong
from natsproto.wire.text import cut_middle

from . import states
from .effects import Dial, Hangup, Sign, StartTls
from .pings import PING, PONG
from .servers import Attempts, Pool
from .states import (
    CLOSED,
    CONNECTED,
    DIALING,
    GREETING,
    NEW,
    OPENING,
    SECURING,
    SIGNING,
    TRANSITIONS,
    WAITING,
)
from .transport import Transport
from .waitable import Request, Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from natsproto.options import Options
    from natsproto.wire.frames import Frame

    from .bus import Bus
    from .lame_duck import LameDuck
    from .servers import Rng
    from .traffic import Traffic

_OVERDUE = {
    DIALING: "%s did not provide a connection within %g s",
    OPENING: "%s did not provide INFO within %g s",
    SECURING: "%s did not provide TLS within %g s",
    SIGNING: "nonce of %s was not signed within %g s",
    GREETING: "%s did not provide PONG within %g s",
}


class Lifecycle:
    """The transports of one connection, one after the other."""

    __slots__ = (
        "_bus",
        "_options",
        "_rng",
        "_traffic",
        "alarm",
        "attempts",
        "info",
        "lame_duck",
        "opened",
        "pool",
        "state",
        "transport",
    )

    def __init__(self, bus: Bus, options: Options, rng: Rng, traffic: Traffic) -> None:
        self._bus = bus
        self._options = options
        self._rng = rng
        self._traffic = traffic
        self.state: str = NEW
        #: The deadline of the state.
        self.alarm: Waitable = Waitable()
        #: Settled by the first connection, or when there is none.
        self.opened: Request = Request("connect")
        #: What the server said about itself last.
        self.info: Info | None = None
        self.pool: Pool = Pool(options, rng)
        self.attempts: Attempts = Attempts(self.pool, bus, options.retry_on_first_connect)
        #: Everything that belongs to one dial; None while there is none.
        self.transport: Transport | None = None
        #: Leaving a server that is about to stop; None while it has not said so.
        self.lame_duck: LameDuck | None = None

    # Inputs

    def connect(self, now: float) -> None:
        """Dial the first server."""
        self.enter(states.CONNECT)
        if self._options.retry_on_first_connect:  # CONN-22
            self._settle_opened()
        self._dial_next(self.attempts.choose(self.info), now)
        self.after(now)

    def transport_opened(self, now: float) -> None:
        """Begin the handshake."""
        transport = self.transport
        if self.accepts(states.OPENED) and transport is not None:
            self._advance(transport, now, transport.opened)
            self.after(now)

    def tls_started(self, now: float) -> None:
        """Continue the handshake."""
        transport = self.transport
        if self.accepts(states.SECURED) and transport is not None:
            self._advance(transport, now, transport.secured)
            self.after(now)

    def nonce_signed(
        self, now: float, signature: bytes, key: bytes, error: BaseException | None
    ) -> None:  # D-AUTH-14
        """Continue the handshake."""
        transport = self.transport
        if self.accepts(states.SIGNED) and transport is not None:
            self._advance(transport, now, transport.signed, signature, key, error)
            self.after(now)

    def transport_closed(self, now: float, error: BaseException | None) -> None:
        """Go on to the next server."""
        before, transport = self.state, self.transport
        if not self.accepts(states.LOST) or transport is None:
            return
        self._drop_transport()
        reason = "server closed the connection" if error is None else _describe(error)
        if before == CONNECTED:
            self._lost(transport, ConnectionLost(reason), now)
        elif before == SECURING:
            self._failed(transport, TlsFailed("TLS handshake failed: %s" % reason), now)
        else:
            self._failed(transport, transport.server_error or ConnectionLost(reason), now)
        self.after(now)

    def handle_timer(self, waitable: Waitable, now: float) -> bool:
        """Handle a deadline that has come; return False if it is not one of these."""
        if waitable is self.alarm:
            self._on_alarm(now)
        elif self.lame_duck is not None and waitable is self.lame_duck.timer:
            self._leave(self.lame_duck, now)
        else:
            return False
        return True

    def after(self, now: float) -> None:
        """Finish an input."""
        transport = self.transport
        if transport is not None and transport.got_pong and self.state == GREETING:
            self._begin(transport, now)
        traffic = self._traffic
        subscriptions = traffic.subscriptions
        if subscriptions.busy or subscriptions.dropping:
            traffic.settle()
        if self.lame_duck is not None and self.lame_duck.is_over:
            self.hang_up(None, now)
        if traffic.ending.has_begun:
            self.advance_ending()

    def advance_ending(self) -> None:
        """Close if a drain or a graceful close is complete, or if its time is up."""
        ending = self._traffic.ending
        if ending.is_due():
            if self.state == CLOSED:
                ending.settle(self._bus.closed)
            else:
                self.shut(None)

    # The state

    def enter(self, what: str) -> None:
        """Change the state as the table says: the one place that does."""
        try:
            self.state = TRANSITIONS[(self.state, what)]
        except KeyError:
            raise states.illegal(self.state, what) from None

    def accepts(self, report: str) -> bool:
        """Enter the state that an adapter's report leads to; False: it has no effect."""
        # D-CONN-25: a report that comes before the adapter has taken the Hangup is about the
        # transport that is being dropped.
        effects = self._bus.effects
        if effects and any(isinstance(effect, Hangup) for effect in effects):
            return False
        self.enter(report)
        return self.state != CLOSED

    def _set_alarm(self, deadline: float) -> None:
        """Set the deadline of the state."""
        self.alarm.deadline = deadline
        self._bus.timers.arm(self.alarm)

    def _on_alarm(self, now: float) -> None:  # CONN-7
        options, pings = self._options, self._traffic.pings
        if self.state == WAITING:
            self.dial_chosen(now)
        elif self.state != CONNECTED:
            url = cut_middle(self.attempts.server.name)
            text = _OVERDUE[self.state] % (url, options.connect_timeout)
            self.hang_up(TimeoutExpired(text), now)
        elif pings.unanswered >= options.max_pings_out:  # PING-3
            self.hang_up(ConnectionLost("no answer to %d PINGs" % options.max_pings_out), now)
        else:
            pings.ping()
            self._set_alarm(now + options.ping_interval)  # PING-2

    # The handshake

    def _dial_next(self, delay: float | None, now: float) -> None:
        """Dial the chosen server after the delay; None: there is none, and this is the end."""
        if delay is None:
            self.shut(self.attempts.why_failed())  # RECON-3
        elif delay:
            self._set_alarm(now + delay)
        else:
            self._dial(now)

    def dial_chosen(self, now: float) -> None:
        """Dial now instead of later; the chosen server may have left the pool meanwhile."""
        self.attempts.confirm(self.info)
        self._dial(now)

    def _dial(self, now: float) -> None:
        server = self.attempts.server
        url = ""
        if self._options.host_websocket:
            url = str(server.url)  # D-WS-12
        elif server.url.is_websocket:
            from natsproto.websocket import check_library

            try:
                check_library()  # D-WS-9: before dialing, and before TLS could fail for wss
            except LocalError as error:
                self._failed(None, error, now)
                return
        self._set_alarm(now + self._options.connect_timeout)  # CONN-6
        self.transport = Transport(server, self._options)
        dial = Dial(server.url.host, server.url.port, self._options.shuffle, url)
        self._bus.effects.append(dial)
        self.enter(states.DIAL)

    def _advance(
        self, transport: Transport, now: float, step: Callable[..., tuple[str, bytes]], *args: Any
    ) -> None:
        """Take a step of the handshake; its outcome leads on, and an error ends the attempt."""
        try:
            outcome, frame = step(*args)
        except NatsError as error:
            self.hang_up(error, now)
            return
        if outcome:  # otherwise INFO comes next
            self.enter(outcome)
        if outcome == states.START_TLS:
            self._bus.effects.append(StartTls(transport.server.tls_name))
        elif outcome == states.SIGN:
            assert transport.challenge is not None
            self._bus.effects.append(Sign(transport.challenge))
        elif outcome == states.GREET:
            assert transport.info is not None
            self._learn(transport.info)
            self._traffic.outbound.add(frame)
            self._traffic.outbound.add(PING)  # CONN-1

    def _learn(self, info: Info) -> None:
        self.info = info
        self._traffic.outbound.learn(info)

    def _begin(self, transport: Transport, now: float) -> None:
        """Enter CONNECTED, after the whole read was looked at: a refusal may follow PONG.

        CONN-8: to a JWT that has expired the server sends PONG, INFO and -ERR in one go.
        """
        self.enter(states.ACCEPTED)
        self._set_alarm(now + self._options.ping_interval)
        self.attempts.connected(now)
        stats = self._traffic.outbound.stats
        self._bus.emit(Connected(transport.server.name, stats.connects > 0))  # EVENT-1
        stats.connects += 1
        if not self.opened.done:
            self._settle_opened()
        self._discover(transport, now)
        self._bus.online = True
        self._traffic.connected(now)

    def _settle_opened(self, error: NatsError | None = None) -> None:
        if self.opened.finish(error=error):
            self._bus.ready.append(self.opened)

    # Frames other than messages

    def handle(self, frame: Frame, now: float) -> bool:
        """Handle a frame; return False if the transport is gone, and the next ones with it."""
        transport = self.transport
        assert transport is not None
        if self.state in (OPENING, SECURING):
            self._advance(transport, now, transport.greet, frame)
        elif self.state == SIGNING and not isinstance(frame, Err):
            name = type(frame).__name__.upper()  # D-AUTH-14
            self.hang_up(ProtocolError("%s before CONNECT" % name, 0, b""), now)
        elif isinstance(frame, Ping):
            self._traffic.outbound.add(PONG)  # PING-1
            transport.owed += len(PONG)
        elif isinstance(frame, Pong):
            self._traffic.pings.last_pong = now
            if self.state == GREETING:
                transport.got_pong = True
            else:
                self._traffic.pong(None if self.lame_duck is None else self.lame_duck.fence)
        elif isinstance(frame, Err):
            self._handle_error(frame.text, transport, now)
        elif isinstance(frame, Info):
            self._learn(transport.learn(frame))  # CONN-5
            if self.state == CONNECTED:
                self._discover(transport, now)
        elif isinstance(frame, Msg):
            # D-CONN-3: on this transport nothing is subscribed yet.
            self.hang_up(ProtocolError("a message before PONG", 0, frame.raw_subject[:64]), now)
        return self.transport is transport

    def _handle_error(self, text: str, transport: Transport, now: float) -> None:
        from . import server_errors

        text = server_errors.short(text)
        error = server_errors.as_error(text)
        kind = server_errors.classify(text)
        if kind == server_errors.REFUSED:
            transport.auth_error = text
        if kind in (server_errors.FATAL, server_errors.REFUSED):
            self.hang_up(error, now)
            return
        self._bus.emit(ServerError(error))  # EVENT-4
        if self.state != CONNECTED:
            transport.server_error = error  # D-ERR-4: the reason if the transport is closed now
        if isinstance(error, PermissionDenied):
            self._traffic.deny(error, text)

    # Lame ducks, and other members of the cluster

    def _discover(self, transport: Transport, now: float) -> None:
        info = self.info
        assert info is not None
        # To a WebSocket, some servers announce the addresses of WebSockets as connect_urls.
        urls = (transport.is_websocket and info.ws_connect_urls) or info.connect_urls
        new = self.pool.discover(urls, transport.server)
        if new:
            self._bus.emit(Discovered([str(url) for url in new]))  # EVENT-3
        if info.ldm:
            if self.lame_duck is None:
                from .lame_duck import LameDuck

                self.lame_duck = LameDuck(self._bus, self._rng)
            self.lame_duck.notice(transport.server.name, now, self._can_leave())

    def _can_leave(self) -> bool:
        ending = self._traffic.ending
        return self.pool.others() and self._options.max_reconnects != 0 and not ending.has_begun

    def _leave(self, lame_duck: LameDuck, now: float) -> None:
        """Leave a lame duck: hold publishes back, and hang up when it has seen the rest."""
        lame_duck.stop()
        if self._can_leave():
            self._traffic.pings.ping(lame_duck.leave(now + self._options.connect_timeout))
            self._traffic.outbound.hold()  # D-LDM-3

    # The end of a transport

    def hang_up(self, error: NatsError | None, now: float) -> None:
        """Drop the transport, and go on to the next server; None: on purpose."""
        transport = self.transport
        assert transport is not None
        connected = self.state == CONNECTED
        self._bus.effects.append(Hangup())
        self.enter(states.HANG_UP)
        self._drop_transport()
        if connected:
            self._lost(transport, error, now)
        else:
            assert error is not None
            self._failed(transport, error, now)

    def _drop_transport(self) -> None:
        self.transport = None
        self.alarm.deadline = None

    def _failed(self, transport: Transport | None, error: NatsError, now: float) -> None:
        """Continue after an attempt without a connection."""
        self._traffic.outbound.clear()
        self._bus.emit(AttemptFailed(self.attempts.server.name, error))  # EVENT-2
        self.attempts.failed(error, "" if transport is None else transport.auth_error)
        self._dial_next(self.attempts.choose(self.info), now)

    def _lost(self, transport: Transport, error: NatsError | None, now: float) -> None:
        """Continue after the loss of a connection."""
        if self.lame_duck is not None:
            self.lame_duck.stop()
            self.lame_duck = None
        self._bus.online = False
        self._traffic.disconnected(now)
        self._bus.emit(Disconnected(transport.server.name, error))
        self.attempts.lost(error, transport.auth_error, now)
        self._dial_next(self.attempts.choose(self.info), now)

    def shut(self, reason: NatsError | None) -> None:  # D-CONN-24
        """Close for good; None: by the user."""
        if self.transport is not None:
            self._bus.effects.append(Hangup())
        self._drop_transport()
        self.enter(states.CLOSE)
        bus = self._bus
        bus.online = False
        bus.closed = "the connection is closed" + ("" if reason is None else ": %s" % reason)
        self._settle_opened(reason or ConnectionClosed(bus.closed))
        self._traffic.close(reason)


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
