"""Connection: one client across reconnects, without I/O.

It is told what happens (inputs), asked what to do (outputs), and used by the API (commands, in
commands.py). The states and what is legal in each are in states.py. A life reads like this:

    connect -> Dial -> transport_opened -> INFO -> [StartTls -> tls_started] -> CONNECT PING -> PONG
    -> CONNECTED until the transport is lost -> the next server, at once or after a pause -> ...

What survives a lost transport: subscriptions (sent again first), publishes that the adapter had not
taken (sent once, after them), requests (their inbox is a subscription). What does not: a flush that
waits for its PONG, and bytes that the adapter had taken. Nothing is ever sent twice.
"""

from __future__ import annotations

from . import complaints, encode, states
from .drain import Drain
from .errors import (
    ConnectionClosed,
    ConnectionLost,
    NatsError,
    PermissionDenied,
    ProtocolError,
    TimeoutExpired,
    TlsFailed,
)
from .events import Connected, Disconnected, Discovered, LameDuck, ServerError
from .frames import Err, Info, Msg, Ping, Pong
from .handshake import Handshake, new_parser
from .outbox import HIGH_WATER
from .states import CLOSED, CONNECTED, DIALING, GREETING, OPENING, SECURING, WAITING
from .waitable import Fence, Request, Waitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .effects import Effect
    from .frames import Frame
    from .options import Options
    from .parser import Parser
    from .servers import Rng
    from .waitable import Receiver

# A connection that did not last that long is no reason to start counting attempts anew: a server
# that accepts us and throws us out at once would be dialled without any pause.
_STABLE = 1.0
# Clients of a lame duck leave within this time, each at a random moment of it.
_LAME_DUCK_SPREAD = 1.0
# Bytes of PONGs that may wait. More than that means: PINGs come, and nobody reads the answers.
_MAX_OWED = HIGH_WATER
_WAITING_FOR = {DIALING: "a connection", OPENING: "INFO", SECURING: "TLS", GREETING: "PONG"}


class Connection(Handshake):
    """One client. Inputs take the time; outputs are to be read after every input and command."""

    def __init__(self, options: Options, *, rng: Rng) -> None:
        super().__init__(options, rng=rng)
        self._connected_at = 0.0
        self._short_lives = 0  # connections in a row that did not last
        self._owed = 0  # bytes of PONGs that the adapter has not taken
        self._lame = False  # this server has said so
        self._mover = Waitable()  # when to leave a lame duck
        self._leaving: Request | None = None  # the fence before leaving it
        self._drain: Drain | None = None

    # Inputs

    def connect(self, now: float) -> None:
        """Begin. `opened` is settled when connected, or at once with retry_on_first_connect."""
        states.check(self.state, states.CONNECT)
        if self.options.retry_on_first_connect:
            self.opened.finish()
            self._ready.append(self.opened)
        self._try_next(now)
        self._after(now)

    def transport_opened(self, now: float) -> None:
        if states.check(self.state, states.OPENED):
            url = self._dialled.url
            if url.wants_tls if url.is_websocket else self.options.tls_first:
                self._start_tls()  # CONN-14: before INFO
            else:
                self._open(now)
            self._after(now)

    def tls_started(self, now: float) -> None:
        if states.check(self.state, states.SECURED):
            self._secured = True
            self._parser = new_parser()  # CONN-13: whatever came in clear is not looked at
            if self._greeted is None:
                self._open(now)
            else:
                self._greet(self._greeted, now)
            self._after(now)

    def receive_data(self, data: bytes, now: float) -> None:
        """Never raises for what the server sent: hangs up and says why."""
        if not states.check(self.state, states.DATA):
            return
        self.stats.in_bytes += len(data)
        parser = self._parser
        broken: NatsError | None = None
        try:
            frames = parser.feed(data if self._websocket is None else self._unwrap(data))
        except ProtocolError as error:
            frames = error.frames
            broken = error
        self._route(frames, parser, now)
        if self._websocket is not None and self._websocket.closed:
            broken = broken or ConnectionLost("server closed the WebSocket")
        if self._owed > _MAX_OWED:
            broken = broken or ConnectionLost("server sends PINGs and reads no PONG")
        if broken is not None and self._parser is parser:
            self._break(broken, now)
        self._after(now)

    def transport_closed(self, now: float, error: BaseException | None = None) -> None:
        if not states.check(self.state, states.LOST):
            return
        reason = "server closed the connection" if error is None else _describe(error)
        if self.state == CONNECTED:
            self._lose(ConnectionLost(reason), now, hangup=False)
        elif self.state == SECURING:
            self._fail(TlsFailed("TLS handshake failed: %s" % reason), now, hangup=False)
        else:
            self._fail(self._complaint or ConnectionLost(reason), now, hangup=False)
        self._after(now)

    def handle_timer(self, now: float) -> None:
        if not states.check(self.state, states.TIMER):
            return
        for waitable in self._timers.pop_due(now):
            if waitable is self._alarm:
                self._alarm_rang(now)
            elif waitable is self._mover:
                self._leave(now)
            elif waitable.handle_timer(now):
                self._ready.append(waitable)
                if isinstance(waitable, Request):
                    self._forget(waitable)
            self._timers.arm(waitable)
        self._after(now)

    # Outputs: all four after every input and command, in this order

    def take_effects(self) -> list[Effect]:
        effects = self._effects
        self._effects = []
        return effects

    def data_to_send(self) -> list[bytes]:
        """What to write to the transport, to be taken when that has room."""
        if self.congested:
            self._ready.append(self.writable)
        self._owed = 0
        pieces = self._outbox.take()
        if self._websocket is not None:
            pieces = self._websocket_bytes + [self._websocket.send(piece) for piece in pieces]
            self._websocket_bytes = []
        for piece in pieces:
            self.stats.out_bytes += len(piece)
        return pieces

    def take_ready(self) -> list[Waitable]:
        """Wake whoever waits for these."""
        ready = list(self._ready)
        self._ready.clear()
        return ready

    def next_deadline(self) -> float | None:
        """When to call handle_timer, at the latest; None: only after the next input."""
        return None if self.state == CLOSED else self._timers.next_deadline()

    # Commands that concern the transport; the others are in commands.py

    def force_reconnect(self, now: float) -> None:
        """Drop the transport, or the pause between two attempts, and dial the next server now."""
        self._check_open()
        if self.state == CONNECTED:
            self._short_lives = 0
            self._lose(None, now)
        elif self.state == WAITING:
            self._dial(now)

    def start_drain(self, deadline: float) -> Request:
        """Unsubscribe everything, let the user take what arrived, flush, close (see drain.py)."""
        if self._drain is None:
            self._drain = Drain(self, deadline)
            self._timers.arm(self._drain)
            self._advance_drain()
        return self._drain

    def consumed(self, now: float) -> None:
        """The API took the last message of a subscription that has ended."""
        self._after(now)

    def cancel(self, request: Request) -> None:
        if request is not self._drain:  # DRAIN-8: it goes on with nobody waiting
            super().cancel(request)

    def close(self, now: float) -> None:
        """At once and for good; `start_flush` or `start_drain` before it is the graceful way."""
        if self.state != CLOSED:
            self._shut(None)

    # Frames

    def _route(self, frames: list[Frame], parser: Parser, now: float) -> None:
        subs = self._subs
        connected = self.state == CONNECTED
        # What follows a message for the same subscription is delivered together: 0.25 us each with
        # the queue's part, not 0.55.
        run: list[Msg] = []
        sid = -1
        count = 0
        for frame in frames:
            if isinstance(frame, Msg) and connected:
                count += 1
                if frame.sid == sid:
                    run.append(frame)
                    continue
                if run:
                    self._deliver_run(run, now)
                    run = []
                sid = frame.sid
                receiver = subs.get(sid)
                if receiver is not None:  # None: it was on its way when we unsubscribed
                    receiver.received += 1
                    self._delivered(receiver, receiver.receive(frame, now))
            else:
                if run:
                    self._deliver_run(run, now)
                    run = []
                self._handle(frame, now)
                if self._parser is not parser:
                    break  # hung up
        if run:
            self._deliver_run(run, now)
        self.stats.in_msgs += count

    def _deliver_run(self, msgs: list[Msg], now: float) -> None:
        receiver = self._subs.get(msgs[0].sid)
        if receiver is not None:
            if receiver.after:
                msgs = msgs[: receiver.after - receiver.received]
            receiver.received += len(msgs)
            self._delivered(receiver, receiver.receive_all(msgs, now))

    def _delivered(self, receiver: Receiver, new: bool) -> None:
        if new:
            self._ready.append(receiver)
        if receiver.deadline is not None:
            self._timers.arm(receiver)
        if receiver.received == receiver.after:
            self._end(receiver)

    def _unwrap(self, data: bytes) -> bytes:
        """The NATS bytes in what came over a WebSocket."""
        assert self._websocket is not None
        data = self._websocket.receive(data)
        answer = self._websocket.take_output()
        if answer:
            self._websocket_bytes.append(answer)
            self._owed += len(answer)
        return data

    def _handle(self, frame: Frame, now: float) -> None:
        if self.state in (OPENING, SECURING):
            self._early(frame, now)
        elif isinstance(frame, Ping):
            self._outbox.add(encode.pong())
            self._owed += len(encode.pong())
        elif isinstance(frame, Pong):
            self._pong()
        elif isinstance(frame, Err):
            self._complained(frame.text, now)
        elif isinstance(frame, Info):
            self._learn(frame)
            if self.state == CONNECTED:
                self._discover(now)
        elif isinstance(frame, Msg):
            # CONN-3: on this transport nothing is subscribed yet.
            self._fail(ProtocolError("a message before PONG", 0, frame.raw_subject[:64]), now)

    def _pong(self) -> None:
        if self.state == GREETING:
            self._welcomed = True
        elif self._pings:
            request = self._pings.pop(0)
            if isinstance(request, Fence):
                self._end_all(request.receivers)
            if request is self._leaving and any(isinstance(each, Fence) for each in self._pings):
                self._send_ping(request)  # LDM-5: behind the drains that began meanwhile
            elif request is not None and request.finish():
                self._ready.append(request)

    def _discover(self, now: float) -> None:
        assert self.info is not None
        websocket = self._dialled.url.is_websocket
        urls = self.info.ws_connect_urls if websocket else self.info.connect_urls
        new = self.pool.discover(urls, self._dialled)
        if new:
            self._tell(Discovered([str(url) for url in new]))
        if not self.info.ldm:
            return
        if not self._lame:
            self._lame = True
            self._tell(LameDuck(str(self._dialled.url)))
        if self._mover.deadline is None and self._leaving is None and self._may_leave():
            # LDM-2: not all clients at the same moment.
            self._mover.deadline = now + self._rng.random() * _LAME_DUCK_SPREAD
            self._timers.arm(self._mover)

    def _may_leave(self) -> bool:
        return self.pool.others() and self.options.max_reconnects != 0 and self._drain is None

    def _leave(self, now: float) -> None:
        """Leave a lame duck: hold publishes back, hang up when it has seen the rest."""
        self._mover.deadline = None
        if self.state == CONNECTED and self._may_leave():
            self._leaving = Request("move", now + self.options.connect_timeout)
            self._timers.arm(self._leaving)
            self._send_ping(self._leaving)
            self._holding = True

    def _complained(self, text: str, now: float) -> None:
        error = complaints.as_error(text)
        kind = complaints.meaning(text)
        if kind == complaints.REFUSED:
            self._refusal = text
        if kind in (complaints.ENDS, complaints.REFUSED):
            self._break(error, now)
            return
        self._tell(ServerError(error))
        if self.state == GREETING:
            self._complaint = error  # ERR-4: should the transport be closed now, this is why
        if isinstance(error, PermissionDenied):
            if complaints.denies_publish(text):
                self._deny_request(error)
            else:
                self._deny(error, complaints.denied_sid(text))

    # When things go wrong

    def _alarm_rang(self, now: float) -> None:
        options = self.options
        if self.state == WAITING:
            self._dial(now)
        elif self.state != CONNECTED:
            text = "%s did not give %s within %g s"
            url = self._dialled.url
            waited_for = _WAITING_FOR[self.state]
            self._fail(TimeoutExpired(text % (url, waited_for, options.connect_timeout)), now)
        elif self._pings.count(None) >= options.max_pings_out:
            self._lose(ConnectionLost("no answer to %d PINGs" % options.max_pings_out), now)
        else:
            self._send_ping(None)
            self._enter(CONNECTED, now + options.ping_interval)

    def _break(self, error: NatsError, now: float) -> None:
        if self.state == CONNECTED:
            self._lose(error, now)
        else:
            self._fail(error, now)

    def _lose(self, error: NatsError | None, now: float, *, hangup: bool = True) -> None:
        """The connection is gone; None: on purpose."""
        server = self._dialled
        self._drop_transport(hangup)
        self._enter(WAITING, None)
        self._mover.deadline = None
        self._leaving = None
        self._go_offline(now)
        self._tell(Disconnected(str(server.url), error))
        if now - self._connected_at >= _STABLE:
            self._short_lives = 0
            server.auth_error = ""
        self._attempts = self._short_lives
        self._short_lives += 1
        if error is not None:
            self._errors = [(str(server.url), error)]
        self._go_on(error, now)

    def _shut(self, reason: NatsError | None) -> None:
        super()._shut(reason)
        if self._drain is not None and self._drain.finish(error=ConnectionClosed(self.closed)):
            self._ready.append(self._drain)

    # The end of every input

    def _after(self, now: float) -> None:
        if self._welcomed and self.state == GREETING:
            self._begin(now)
        while self._busy:
            self.perform(self._busy.pop())
        if self._dropping:
            self._report_drops()
        if self._leaving is not None and self._leaving.done:
            self._lose(None, now)
        if self._drain is not None:
            self._advance_drain()

    def _begin(self, now: float) -> None:
        """Connected. Not before the whole read is looked at: a refusal may come right behind PONG.

        That is CONN-8: to a JWT that has expired the server says PONG, INFO and -ERR in one breath.
        """
        self._enter(CONNECTED, now + self.options.ping_interval)
        self._connected_at = now
        self._lame = False
        self._errors = []
        self.pool.connected(self._dialled)
        self._tell(Connected(str(self._dialled.url), self.stats.connects > 0))
        self.stats.connects += 1
        if self.opened.finish():
            self._ready.append(self.opened)
        self._discover(now)
        self._go_online(now)

    def _advance_drain(self) -> None:
        drain = self._drain
        assert drain is not None
        if drain.advance():
            if drain.finish():
                self._ready.append(drain)
            if self.state != CLOSED:
                self._shut(None)


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
