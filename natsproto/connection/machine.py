"""Connection: one client across reconnects, without I/O.

It is told what happens (inputs), asked what to do (outputs), and used by the API (commands, in
commands.py). The states and what is legal in each are in states.py. A life reads like this, the
first line of it in handshake.py, the second in link.py:

    connect -> Dial -> transport_opened -> INFO -> [StartTls -> tls_started] -> CONNECT PING -> PONG
    -> CONNECTED until the transport is lost -> the next server, at once or after a pause -> ...

What survives a lost transport: subscriptions (sent again first), publishes that the adapter had not
taken (sent once, after them), requests (their inbox is a subscription). What does not: a flush that
waits for its PONG, and bytes that the adapter had taken. Nothing is ever sent twice.
"""

from __future__ import annotations

from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    NatsError,
    ProtocolError,
    TimeoutExpired,
    TlsFailed,
)
from natsproto.wire.text import cut_middle

from . import states
from .drain import Drain
from .effects import Hangup
from .handshake import new_parser
from .link import Link
from .states import CLOSED, CONNECTED, DIALING, GREETING, NEW, OPENING, SECURING, WAITING
from .waitable import Mailbox, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .effects import Effect
    from .waitable import Waitable

_WAITING_FOR = {DIALING: "a connection", OPENING: "INFO", SECURING: "TLS", GREETING: "PONG"}


class Connection(Link):
    """One client. Inputs take the time; outputs are to be read after every input and command."""

    # Inputs

    def connect(self, now: float) -> None:
        """Begin. `opened` is settled when connected, or at once with retry_on_first_connect."""
        self._enter(states.CONNECT)
        if self.options.retry_on_first_connect:
            self.opened.finish()
            self._ready.append(self.opened)
        self._try_next(now)
        self._after(now)

    def transport_opened(self, now: float) -> None:
        if self._accepts(states.OPENED):
            url = self._dialled.url
            if url.wants_tls if url.is_websocket else self.options.tls_first:
                self._start_tls()  # CONN-14: before INFO
            else:
                self._open(now)
            self._after(now)

    def tls_started(self, now: float) -> None:
        if self._accepts(states.SECURED):
            self._secured = True
            self._parser = new_parser()  # CONN-13: whatever came in clear is not looked at
            if self._greeted is None:
                self._open(now)
            else:
                self._greet(self._greeted, now)
            self._after(now)

    def receive_data(self, data: bytes, now: float) -> None:
        """Never raises for what the server sent: hangs up and says why."""
        if not self._accepts(states.DATA):
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
        broken = broken or self._overdue()
        if broken is not None and self._parser is parser:
            self._break(broken, now)
        self._after(now)

    def transport_closed(self, now: float, error: BaseException | None = None) -> None:
        before = self.state
        if not self._accepts(states.LOST):
            return
        reason = "server closed the connection" if error is None else _describe(error)
        if before == CONNECTED:
            self._lose(ConnectionLost(reason), now, hangup=False)
        elif before == SECURING:
            self._fail(TlsFailed("TLS handshake failed: %s" % reason), now, hangup=False)
        else:
            self._fail(self._complaint or ConnectionLost(reason), now, hangup=False)
        self._after(now)

    def _accepts(self, report: str) -> bool:
        """Enter the state that an adapter's report leads to; False: it has no effect."""
        # CONN-25: a report that comes before the adapter has taken the Hangup is about the
        # transport that is being dropped.
        if self._effects and any(isinstance(effect, Hangup) for effect in self._effects):
            return False
        self._enter(report)
        return self.state != CLOSED

    def forked(self, now: float) -> None:
        """This process is a copy of the one that owns the transport: make one of our own.

        RECON-13: what was on its way out is the other process's to send. So are answers to the
        requests, and whatever machines have ordered; subscriptions are made here as well.
        """
        if self.state == CLOSED:
            return
        error = ConnectionLost("the process was forked")
        self._disclaim()
        if self._replies is not None:
            self._replies.fail(error)
            self._replies = None  # the next request makes another inbox
        for receiver in self._receivers():
            if not isinstance(receiver, Mailbox):
                self._end(receiver, error)
        if self.state not in (NEW, WAITING):
            self.transport_closed(now, error)

    def abandon(self, reason: str, *, copied: bool = False) -> None:
        """Close without touching the transport: whoever calls this does not own it (CONN-32).

        With `copied` this process is a copy, and the other one sends what was published.
        """
        if self.state != CLOSED:
            if copied:
                self._disclaim()
            self._shut(ConnectionClosed(reason))
            self._effects = []

    def _disclaim(self) -> None:
        """What was published is the other process's to send."""
        self._outbox.clear()
        self._set_held([])
        self._confirmed = self._accepted()

    def handle_timer(self, now: float) -> None:
        self._enter(states.TIMER)
        if self.state == CLOSED:
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
            self._drain = Drain(self, deadline, self.start_drain_of_all())
            self._timers.arm(self._drain)
            self._advance_drain(self._drain)
        return self._drain

    def start_close(self, deadline: float) -> Request:
        """Flush and close (CONN-27); settled when closed, with MessagesUnconfirmed (CONN-28).

        Without a connection it waits for one if anything waits to be sent, otherwise for nothing.
        After the end it reports a loss that nobody was told of, once.
        """
        if self.state == CLOSED:
            request = Request("close")
            request.finish(error=self._loss)
            self._loss = None
            return request
        if self._closing is None:
            self._closing = Drain(self, deadline, None)
        elif self._closing.deadline is not None and deadline < self._closing.deadline:
            self._closing.deadline = deadline  # a second caller who is in more of a hurry
        self._timers.arm(self._closing)
        self._advance_drain(self._closing)
        return self._closing

    def consumed(self, now: float) -> None:
        """The API took the last message of a subscription that has ended."""
        self._after(now)

    def cancel(self, request: Request) -> None:
        # DRAIN-8: it goes on with nobody waiting
        if request is not self._drain and request is not self._closing:
            super().cancel(request)

    def close(self, now: float) -> None:
        """Close at once and for good; `start_close` and `start_drain` are the graceful ways."""
        if self.state != CLOSED:
            self._shut(None)

    # When things go wrong

    def _alarm_rang(self, now: float) -> None:
        options = self.options
        if self.state == WAITING:
            self._dial(now)
        elif self.state != CONNECTED:
            text = "%s did not give %s within %g s"
            url = cut_middle(str(self._dialled.url))
            waited_for = _WAITING_FOR[self.state]
            self._fail(TimeoutExpired(text % (url, waited_for, options.connect_timeout)), now)
        elif len([each for each, _ in self._pings if each is None]) >= options.max_pings_out:
            self._lose(ConnectionLost("no answer to %d PINGs" % options.max_pings_out), now)
        else:
            self._send_ping(None)
            self._set_alarm(now + options.ping_interval)

    def _shut(self, reason: NatsError | None) -> None:
        super()._shut(reason)
        self._settle(self._drain)
        self._settle(self._closing)
        if self._drain is not None or self._closing is not None:
            self._loss = None  # those who wait for them are told

    def _settle(self, drain: Drain | None) -> None:
        if drain is not None and drain.settle(self._loss, self.closed):
            self._ready.append(drain)

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
        self._advance_drain(self._drain)
        self._advance_drain(self._closing)

    def _advance_drain(self, drain: Drain | None) -> None:
        if drain is not None and drain.advance():
            if self.state != CLOSED:
                self._shut(None)
            self._settle(drain)


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
