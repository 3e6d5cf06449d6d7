"""Connection: one client across reconnects, without I/O.

The adapter reports what happens (inputs) and reads what to do (outputs); the API gives commands.
states.py has the states and the table that every change of state follows. A life reads like this:

    connect -> Dial -> transport_opened -> INFO -> [StartTls -> tls_started] -> CONNECT PING -> PONG
    -> CONNECTED until the transport is lost -> the next server, at once or after a pause -> ...

Subscriptions survive a lost transport (they are sent again first), and so do publishes that the
adapter had not taken (sent once, after them), and requests (their inbox is a subscription). A flush
that waits for its PONG is lost, and so are bytes that the adapter had taken. Nothing is ever sent
twice.

A Connection is made of parts, each with a state of its own. A part never sees the connection: it
returns what the connection has to do, or reports to the bus.

    outbound       publishes and other frames on their way out
    subscriptions  the receivers of messages
    requests       publishes that wait for a response
    pings          PONGs that are due, flushes, what the server has confirmed
    lame_duck      leaving a server that is about to stop; None while it has not said so
    transport      everything that belongs to one dial; None while there is none
    ending         the drain and the graceful close of the client
    attempts       which server to dial, and when
    bus            ready waitables, events and deadlines of all of them
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
from natsproto.events import (
    AttemptFailed,
    Closed,
    Connected,
    Disconnected,
    Discovered,
    PublishDropped,
    ServerChoiceFailed,
    ServerError,
)
from natsproto.wire import text as _text
from natsproto.wire.frames import Err, Info, Msg, Ping, Pong

from . import states
from .bus import Bus
from .drain import Ending
from .effects import Dial, Hangup, StartTls
from .encoded import size_of, subject_of
from .outbound import Outbound
from .pings import PING, PONG, Fence, Pings
from .receiver import Mailbox, Receiver
from .requests import Requests
from .servers import Attempts, Pool
from .states import (
    CLOSED,
    CONNECTED,
    DIALING,
    GREETING,
    NEW,
    OPENING,
    SECURING,
    TRANSITIONS,
    WAITING,
)
from .subscriptions import Subscriptions
from .tokens import Tokens
from .transport import Transport
from .waitable import Alarm, Request, Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.events import EventQueue
    from natsproto.options import Options
    from natsproto.wire.frames import Frame

    from .calls import GatherCall, PublishCall, RequestCall, SubscribeCall, UnsubscribeCall
    from .effects import Effect
    from .lame_duck import LameDuck
    from .outbound import Stats
    from .servers import Rng


_AWAITED = {DIALING: "a connection", OPENING: "INFO", SECURING: "TLS", GREETING: "PONG"}


class Connection:
    """One client. Inputs take the time; read all outputs after every input and command."""

    # Slots, because CPython finds few attributes faster than many: 0.05 us a publish.
    __slots__ = (
        "_alarm",
        "_effects",
        "_rng",
        "attempts",
        "bus",
        "ending",
        "info",
        "lame_duck",
        "new_inbox",
        "new_token",
        "opened",
        "options",
        "outbound",
        "apply",
        "pings",
        "pool",
        "publish",
        "requests",
        "respond",
        "send",
        "start_flush",
        "start_gather",
        "start_request",
        "state",
        "stats",
        "subscribe",
        "subscriptions",
        "tokens",
        "transport",
        "unsubscribe",
        "wake_at",
        "withdraw",
    )

    def __init__(self, options: Options, *, rng: Rng, tokens: Tokens | None = None) -> None:
        self.options: Options = options
        self._rng = rng
        self.tokens: Tokens = tokens or Tokens(rng.randrange)
        self.state: str = NEW
        self._alarm = Waitable()  # the deadline of the state
        self._effects: list[Effect] = []
        #: Settled by the first connection, or when there is none.
        self.opened: Request = Request("connect")
        #: What the server said about itself last.
        self.info: Info | None = None
        # The parts
        bus = Bus()
        self.bus: Bus = bus
        self.pool: Pool = Pool(options, rng)
        self.attempts: Attempts = Attempts(self.pool)
        self.transport: Transport | None = None
        outbound = Outbound(bus, options.max_pending_out)
        self.outbound: Outbound = outbound
        self.stats: Stats = outbound.stats
        self.subscriptions: Subscriptions = Subscriptions(bus, outbound, self.tokens)
        self.requests: Requests = Requests(bus, outbound, self.subscriptions, options, rng)
        self.pings: Pings = Pings(bus, outbound)
        self.lame_duck: LameDuck | None = None
        self.ending: Ending = Ending(bus, self.pings)
        # Commands that are those of a part, bound once: no call is added on the hot path.
        self.publish: PublishCall = outbound.publish
        self.respond: Callable[[bytes, bytes], bool] = outbound.respond
        self.send: Callable[[bytes, bytes, bytes, bytes | None], bool] = outbound.send
        self.withdraw: Callable[[], None] = outbound.withdraw
        self.subscribe: SubscribeCall = self.subscriptions.subscribe
        self.unsubscribe: UnsubscribeCall = self.subscriptions.unsubscribe
        self.apply: Callable[[Receiver], None] = self.subscriptions.apply
        self.start_request: RequestCall = self.requests.start_request
        self.start_gather: GatherCall = self.requests.start_gather
        self.new_inbox: Callable[[], str] = self.requests.new_inbox
        self.new_token: Callable[[], str] = self.requests.new_token
        self.start_flush: Callable[[float | None], Request] = self.pings.start_flush
        self.wake_at: Callable[[Waitable, float], None] = bus.wake_at

    @property
    def closed(self) -> str:
        """Why the connection is closed for good; "" while it is open."""
        return self.bus.closed

    @property
    def events(self) -> EventQueue:
        """The events of the connection."""
        return self.bus.events

    @property
    def online(self) -> bool:
        """Whether effects of machines are applied now. If not, machines are notified later."""
        return not self.outbound.holding

    @property
    def connecting(self) -> bool:
        """Whether an attempt to connect is in progress, which has a deadline of its own."""
        return self.transport is not None and self.state != CONNECTED

    @property
    def congested(self) -> bool:
        """Whether callers should wait for `writable` before they publish more."""
        return self.outbound.size > self.outbound.high_water

    @property
    def writable(self) -> Waitable:
        """Ready when the adapter has taken the frames of a congested connection."""
        return self.outbound.writable

    @property
    def held(self) -> int:
        """The number of messages that wait for a connection."""
        return self.outbound.held

    # Inputs

    def connect(self, now: float) -> None:
        """Begin. `opened` is settled when connected, or at once with retry_on_first_connect."""
        self._enter(states.CONNECT)
        if self.options.retry_on_first_connect:  # CONN-22
            self.opened.finish()
            self.bus.ready.append(self.opened)
        self._try_next(now)
        self._after(now)

    def transport_opened(self, now: float) -> None:
        """Report that the transport of the last Dial is open."""
        transport = self.transport
        if self._accepts(states.OPENED) and transport is not None:
            if transport.needs_tls_first(self.options):
                self._start_tls(transport)
            else:
                self._open(transport, now)
            self._after(now)

    def tls_started(self, now: float) -> None:
        """Report that the TLS handshake of the last StartTls is complete."""
        transport = self.transport
        if self._accepts(states.SECURED) and transport is not None:
            transport.secure()
            if transport.info is None:
                self._open(transport, now)
            else:
                self._greet(transport, now)
            self._after(now)

    def receive_data(self, data: bytes, now: float) -> None:  # D-CONN-20
        """Report bytes. This never raises for what the server sent: it hangs up and says why."""
        transport = self.transport
        if not self._accepts(states.DATA) or transport is None:
            return
        self.stats.in_bytes += len(data)
        broken: NatsError | None = None
        try:
            plain = transport.websocket is None
            frames = transport.parser.feed(data) if plain else transport.receive(data)
        except ProtocolError as error:
            frames = error.frames
            broken = error
        if self.state == CONNECTED:
            remaining = iter(frames)
            deliver = self.subscriptions.deliver
            frame = deliver(remaining, now)
            while frame is not None:
                self._handle(frame, transport, now)
                # After a hangup, the rest is not looked at.
                frame = deliver(remaining, now) if self.transport is transport else None
        else:
            for frame in frames:
                self._handle(frame, transport, now)
                if self.transport is not transport:
                    break
        if self.transport is transport:
            if broken is None and (transport.owed or transport.websocket is not None):
                broken = transport.overdue()
            if broken is not None:
                self._break(broken, now)
        self._after(now)

    def transport_closed(self, now: float, error: BaseException | None = None) -> None:
        """Report that the transport was lost, or could not be opened or secured."""
        before, transport = self.state, self.transport
        if not self._accepts(states.LOST) or transport is None:
            return
        self._drop_transport()
        reason = "server closed the connection" if error is None else _describe(error)
        if before == CONNECTED:
            self._lost(transport, ConnectionLost(reason), now)
        elif before == SECURING:
            self._failed(transport, TlsFailed("TLS handshake failed: %s" % reason), now)
        else:
            self._failed(transport, transport.server_error or ConnectionLost(reason), now)
        self._after(now)

    def handle_timer(self, now: float) -> None:
        """Report the time; to be called at `next_deadline`, and harmless at any other time."""
        self._enter(states.TIMER)
        if self.state == CLOSED:
            return
        timers = self.bus.timers
        for waitable in timers.pop_due(now):
            if waitable is self._alarm:
                self._on_alarm(now)
            elif self.lame_duck is not None and waitable is self.lame_duck.timer:
                self._leave(self.lame_duck, now)
            elif waitable.handle_timer(now):
                ready = waitable.target if isinstance(waitable, Alarm) else waitable
                self.bus.ready.append(ready)
                if isinstance(waitable, Request):
                    self._forget(waitable)  # REQ-4
            timers.arm(waitable)
            if isinstance(waitable, Receiver):
                self.subscriptions.collect(waitable)
        self._after(now)

    def forked(self, now: float) -> None:
        """Make a transport of our own: this process is a copy of the one that owns the present one.

        D-RECON-13: publishes that were queued are for the other process to send. So are responses
        to requests, and the effects of machines. Subscriptions are made here as well.
        """
        if self.state == CLOSED:
            return
        error = ConnectionLost("the process was forked")
        self._disclaim()
        self.requests.fail(error)
        for receiver in self.subscriptions.receivers():
            if not isinstance(receiver, Mailbox):
                self.subscriptions.end(receiver, error)
        if self.transport is not None:
            self.transport_closed(now, error)

    def abandon(self, reason: str, *, copied: bool = False) -> None:
        """Close without touching the transport, which the caller does not own (D-CONN-32).

        With `copied`, this process is a copy, and the other one sends what was published.
        """
        if self.state != CLOSED:
            if copied:
                self._disclaim()
            self._shut(ConnectionClosed(reason))
            self._effects = []

    def _disclaim(self) -> None:
        self.outbound.disclaim()
        self.pings.disclaim()

    # Outputs: all four after every input and command, in this order

    def take_effects(self) -> list[Effect]:
        """Take what the adapter has to do, in this order."""
        effects = self._effects
        self._effects = []
        return effects

    def data_to_send(self) -> list[bytes]:
        """Take what to write to the transport; to be called when it has room."""
        pieces = self.outbound.take()
        transport = self.transport
        if transport is not None:
            transport.owed = 0
            if transport.websocket is not None:
                pieces = transport.wrap(pieces)
        for piece in pieces:
            self.stats.out_bytes += len(piece)
        return pieces

    def take_ready(self) -> list[Waitable]:
        """Take the waitables whose callers have to be woken."""
        ready = list(self.bus.ready)
        self.bus.ready.clear()
        return ready

    def next_deadline(self) -> float | None:
        """Return when to call handle_timer, at the latest; None: only after the next input."""
        heap = self.bus.timers.heap
        return None if self.state == CLOSED or not heap else heap[0][0]

    # Commands; those of a single part are bound in __init__

    def mailbox(self, max_msgs: int, max_bytes: int) -> Mailbox:
        """Return a queue to subscribe with; 0 stands for the default of the options."""
        return Mailbox(max_msgs or self.options.max_msgs, max_bytes or self.options.max_bytes)

    def cancel(self, request: Request) -> None:
        """Stop waiting for a request; later responses to it are dropped."""
        if not self.ending.owns(request):  # D-DRAIN-8
            request.finish()
            self._forget(request)

    def _forget(self, request: Request) -> None:
        self.requests.forget(request)
        self.pings.forget(request)

    def start_drain_of(self, receivers: list[Receiver], deadline: float | None) -> Fence:
        """Unsubscribe these, and send a fence: when it is settled, every message has arrived."""
        fence = Fence("drain", deadline, receivers)
        if self.bus.online:
            self.subscriptions.drain(receivers)
            self.pings.ping(fence)  # DRAIN-1
            self.bus.timers.arm(fence)
        else:
            self.subscriptions.end_all(receivers)  # D-DRAIN-9
            fence.finish()
        return fence

    def start_drain(self, deadline: float) -> Request:
        """Unsubscribe everything, let the user take what arrived, flush, close (see drain.py)."""
        drain = self.ending.drain
        if drain is None:
            inbox = self.requests.inbox
            # DRAIN-3
            receivers = [each for each in self.subscriptions.receivers() if each is not inbox]
            self.start_drain_of(receivers, None)
            drain = self.ending.start_drain(deadline, receivers)
            self._advance_ending()
        return drain

    def start_close(self, deadline: float) -> Request:
        """Flush and close (CONN-27); settled when closed, with MessagesUnconfirmed (D-CONN-28).

        Without a connection it waits for one only if a message waits to be sent. After the end it
        reports a loss that was not reported before, once.
        """
        if self.state == CLOSED:
            return self.ending.report_loss()
        close = self.ending.start_close(deadline)
        self._advance_ending()
        return close

    def consumed(self, now: float) -> None:
        """Report that the API took the last message of a subscription that has ended."""
        self._after(now)

    def close(self, now: float) -> None:
        """Close at once and for good; `start_close` and `start_drain` are the graceful ways."""
        if self.state != CLOSED:
            self._shut(None)

    def force_reconnect(self, now: float) -> None:  # RECON-5
        """Drop the transport, or the pause between two attempts, and dial the next server now."""
        self.bus.check_open()
        if self.state == CONNECTED:
            self.attempts.forgive()
            self._break(None, now)
        elif self.state == WAITING:
            self._dial(now)

    # The state

    def _enter(self, what: str) -> None:
        """Change the state as the table says: the one place that does."""
        try:
            self.state = TRANSITIONS[(self.state, what)]
        except KeyError:
            raise states.illegal(self.state, what) from None

    def _accepts(self, report: str) -> bool:
        """Enter the state that an adapter's report leads to; False: it has no effect."""
        # D-CONN-25: a report that comes before the adapter has taken the Hangup is about the
        # transport that is being dropped.
        if self._effects and any(isinstance(effect, Hangup) for effect in self._effects):
            return False
        self._enter(report)
        return self.state != CLOSED

    def _set_alarm(self, deadline: float) -> None:
        """Set the deadline of the state."""
        self._alarm.deadline = deadline
        self.bus.timers.arm(self._alarm)

    def _on_alarm(self, now: float) -> None:  # CONN-7
        options = self.options
        if self.state == WAITING:
            self._dial(now)
        elif self.state != CONNECTED:
            text = "%s did not provide %s within %g s"
            url = _text.cut_middle(self.attempts.server.name)
            awaited = _AWAITED[self.state]
            self._break(TimeoutExpired(text % (url, awaited, options.connect_timeout)), now)
        elif self.pings.unanswered >= options.max_pings_out:  # PING-3
            self._break(ConnectionLost("no answer to %d PINGs" % options.max_pings_out), now)
        else:
            self.pings.ping()
            self._set_alarm(now + options.ping_interval)  # PING-2

    # The handshake

    def _try_next(self, now: float) -> None:
        delay = self.attempts.choose(self.opened.done, self.info)
        self._report_choice()
        if delay is None:
            self._shut(self.attempts.why_failed())  # RECON-3
        elif delay:
            self._set_alarm(now + delay)
        else:
            self._dial(now)

    def _report_choice(self) -> None:
        if self.attempts.mistake is not None:
            self.bus.emit(ServerChoiceFailed(self.attempts.mistake))  # POOL-17

    def _dial(self, now: float) -> None:
        server = self.attempts.confirm(self.info)
        self._report_choice()
        transport = Transport(server)
        if transport.is_websocket:
            from natsproto.websocket import check_library

            try:
                check_library()  # D-WS-9: before dialing, and before TLS could fail for wss
            except LocalError as error:
                self._failed(None, error, now)
                return
        self.transport = transport
        self._effects.append(Dial(server.url.host, server.url.port, self.options.shuffle))
        self._enter(states.DIAL)
        self._set_alarm(now + self.options.connect_timeout)  # CONN-6

    def _start_tls(self, transport: Transport) -> None:
        self._enter(states.START_TLS)
        self._effects.append(StartTls(transport.server.tls_name))

    def _open(self, transport: Transport, now: float) -> None:
        try:
            transport.open(self.options)
        except LocalError as error:
            self._break(error, now)

    def _greet(self, transport: Transport, now: float) -> None:
        assert transport.info is not None
        self._learn(transport.info)
        self._enter(states.GREET)
        try:
            frame = transport.connect_frame(self.options)
        except NatsError as error:
            self._break(error, now)
            return
        self.outbound.add(frame)
        self.outbound.add(PING)  # CONN-1

    def _learn(self, info: Info) -> None:
        self.info = info
        self.outbound.learn(info)

    def _begin(self, transport: Transport, now: float) -> None:
        """Enter CONNECTED, after the whole read was looked at: a refusal may follow PONG.

        CONN-8: to a JWT that has expired the server sends PONG, INFO and -ERR in one go.
        """
        self._enter(states.ACCEPTED)
        self._set_alarm(now + self.options.ping_interval)
        self.attempts.connected(now)
        self.bus.emit(Connected(transport.server.name, self.stats.connects > 0))  # EVENT-1
        self.stats.connects += 1
        if self.opened.finish():
            self.bus.ready.append(self.opened)
        self._discover(transport, now)
        self.bus.online = True
        self.subscriptions.connected(now)
        for frame in self.outbound.release():
            self._refuse(frame)
        self.pings.connected()

    def _refuse(self, frame: bytes) -> None:
        """Drop a held publish that this server does not accept, and report it (D-RECON-14)."""
        if self.outbound.is_request(frame):
            self.requests.refuse(frame)
        else:
            self.bus.emit(PublishDropped(_text.decode(subject_of(frame)), size_of(frame)))

    # Frames other than messages

    def _handle(self, frame: Frame, transport: Transport, now: float) -> None:
        if self.state in (OPENING, SECURING):
            self._handle_first(frame, transport, now)
        elif isinstance(frame, Ping):
            self.outbound.add(PONG)  # PING-1
            transport.owed += len(PONG)
        elif isinstance(frame, Pong):
            self.pings.last_pong = now
            self._handle_pong(transport)
        elif isinstance(frame, Err):
            self._handle_error(frame.text, transport, now)
        elif isinstance(frame, Info):
            self._learn(transport.learn(frame))  # CONN-5
            if self.state == CONNECTED:
                self._discover(transport, now)
        elif isinstance(frame, Msg):
            # D-CONN-3: on this transport nothing is subscribed yet.
            self._break(ProtocolError("a message before PONG", 0, frame.raw_subject[:64]), now)

    def _handle_first(self, frame: Frame, transport: Transport, now: float) -> None:
        try:
            outcome = transport.greet(frame, self.options)
        except NatsError as error:
            self._break(error, now)
            return
        if outcome == states.START_TLS:
            self._start_tls(transport)
        else:
            self._greet(transport, now)

    def _handle_pong(self, transport: Transport) -> None:
        if self.state == GREETING:
            transport.got_pong = True
            return
        request = self.pings.pong()
        if isinstance(request, Fence):
            self.subscriptions.end_all(request.receivers)  # DRAIN-2
        if request is not None:
            lame_duck = self.lame_duck
            if lame_duck is not None and request is lame_duck.fence and self.pings.fenced:
                self.pings.ping(request)  # D-LDM-5: after the drains that began meanwhile
            elif request.finish():
                self.bus.ready.append(request)

    def _handle_error(self, text: str, transport: Transport, now: float) -> None:
        from . import server_errors

        text = server_errors.short(text)
        error = server_errors.as_error(text)
        kind = server_errors.classify(text)
        if kind == server_errors.REFUSED:
            transport.auth_error = text
        if kind in (server_errors.FATAL, server_errors.REFUSED):
            self._break(error, now)
            return
        self.bus.emit(ServerError(error))  # EVENT-4
        if self.state == GREETING:
            transport.server_error = error  # D-ERR-4: the reason if the transport is closed now
        if isinstance(error, PermissionDenied):
            if server_errors.denies_publish(text):
                self.requests.deny_subject(error)
            else:
                self.subscriptions.deny(error, server_errors.denied_sid(text))
                self.requests.deny_inbox(error)

    # Lame ducks, and other members of the cluster

    def _discover(self, transport: Transport, now: float) -> None:
        info = self.info
        assert info is not None
        # To a WebSocket, some servers announce the addresses of WebSockets as connect_urls.
        urls = (transport.is_websocket and info.ws_connect_urls) or info.connect_urls
        new = self.pool.discover(urls, transport.server)
        if new:
            self.bus.emit(Discovered([str(url) for url in new]))  # EVENT-3
        if info.ldm:
            if self.lame_duck is None:
                from .lame_duck import LameDuck

                self.lame_duck = LameDuck(self.bus, self._rng)
            self.lame_duck.notice(transport.server.name, now, self._can_leave())

    def _can_leave(self) -> bool:
        return self.pool.others() and self.options.max_reconnects != 0 and not self.ending.has_begun

    def _leave(self, lame_duck: LameDuck, now: float) -> None:
        """Leave a lame duck: hold publishes back, and hang up when it has seen the rest."""
        lame_duck.stop()
        if self._can_leave():
            self.pings.ping(lame_duck.leave(now + self.options.connect_timeout))
            self.outbound.hold()  # D-LDM-3

    # The end of a transport

    def _break(self, error: NatsError | None, now: float) -> None:
        """Hang up; None: on purpose."""
        transport = self.transport
        assert transport is not None
        connected = self.state == CONNECTED
        self._effects.append(Hangup())
        self._enter(states.HANG_UP)
        self._drop_transport()
        if connected:
            self._lost(transport, error, now)
        else:
            assert error is not None
            self._failed(transport, error, now)

    def _drop_transport(self) -> None:
        self.transport = None
        self._alarm.deadline = None

    def _failed(self, transport: Transport | None, error: NatsError, now: float) -> None:
        """Continue after an attempt without a connection."""
        self.outbound.clear()
        self.attempts.failed(error)
        self.bus.emit(AttemptFailed(self.attempts.server.name, error))  # EVENT-2
        self._go_on(transport, error, now)

    def _lost(self, transport: Transport, error: NatsError | None, now: float) -> None:
        """Continue after the loss of a connection."""
        if self.lame_duck is not None:
            self.lame_duck.stop()
            self.lame_duck = None
        self.bus.online = False
        self.outbound.take_back()
        self.pings.disconnected(closing=self.ending.has_begun)
        self.subscriptions.disconnected(now)
        self.bus.emit(Disconnected(transport.server.name, error))
        self.attempts.lost(error, now)
        self._go_on(transport, error, now)

    def _go_on(self, transport: Transport | None, error: NatsError | None, now: float) -> None:
        """Try the next server, or close if trying again would not help."""
        refused = self.attempts.refused_again("" if transport is None else transport.auth_error)
        # CONN-17: the same refusal twice in a row; D-CONN-18: a mistake of our own.
        if isinstance(error, LocalError) or refused:
            self._shut(error)
        else:
            self._try_next(now)

    def _shut(self, reason: NatsError | None) -> None:  # D-CONN-24
        """Close for good; None: by the user."""
        if self.transport is not None:
            self._effects.append(Hangup())
        self._drop_transport()
        self._enter(states.CLOSE)
        self.bus.online = False
        self.bus.closed = text = "the connection is closed" + (
            "" if reason is None else ": %s" % reason
        )
        error = ConnectionClosed(text)
        # Subscriptions of a client that was closed on purpose just end.
        self.subscriptions.end_all(self.subscriptions.receivers(), reason and error)
        self.requests.fail(error)
        loss = self.pings.close(text)
        self.outbound.close()
        self.bus.ready += self.bus.timers.clear()  # no caller waits for a time that never comes
        if self.opened.finish(error=reason or error):
            self.bus.ready.append(self.opened)
        self.subscriptions.apply_all()
        self.subscriptions.report_drops()  # D-EVENT-6: before Closed, which is the last event
        self.bus.emit(Closed(reason, 0 if loss is None else loss.unsent + loss.in_doubt))
        self.ending.closed(loss, text)

    # The end of every input

    def _after(self, now: float) -> None:
        transport = self.transport
        if transport is not None and transport.got_pong and self.state == GREETING:
            self._begin(transport, now)
        subscriptions = self.subscriptions
        if subscriptions.busy:
            subscriptions.apply_all()
        if subscriptions.dropping:
            subscriptions.report_drops()
        if self.lame_duck is not None and self.lame_duck.is_over:
            self._break(None, now)
        if self.ending.has_begun:
            self._advance_ending()

    def _advance_ending(self) -> None:
        if self.ending.is_due():
            if self.state == CLOSED:
                self.ending.settle(self.closed)
            else:
                self._shut(None)


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
