"""Connection: one client across reconnects, without I/O.

The adapter reports what happens (inputs) and reads what to do (outputs); the API gives commands. A
Connection is made of parts, each with a state of its own. A part never sees the connection: it
returns what its owner has to do, or reports to the bus.

    lifecycle          the state, and the way from one transport to the next
        attempts       which server to dial, and when
        transport      everything that belongs to one dial
        lame_duck      leaving a server that is about to stop
    traffic            everything that survives a transport
        outbound       publishes and other frames on their way out
        subscriptions  the receivers of messages
        requests       publishes that wait for a response
        pings          PONGs that are due, flushes, what the server has confirmed
        ending         the drain and the graceful close of the client
    bus                effects, ready waitables, events and deadlines of all of them
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, ConnectionLost, NatsError, ProtocolError

from . import states
from .bus import Bus
from .lifecycle import Lifecycle
from .states import CLOSED, CONNECTED, WAITING
from .tokens import Tokens
from .traffic import Traffic

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.events import EventQueue
    from natsproto.options import Options
    from natsproto.wire.frames import Info

    from .calls import GatherCall, PublishCall, RequestCall, SubscribeCall, UnsubscribeCall
    from .effects import Effect
    from .outbound import Outbound, Stats
    from .pings import Fence, Pings
    from .receiver import Mailbox, Receiver
    from .requests import Requests
    from .servers import Pool, Rng
    from .subscriptions import Subscriptions
    from .transport import Transport
    from .waitable import Request, Waitable


class Connection:
    """One client. Inputs take the time; read all outputs after every input and command."""

    # Slots, because CPython finds few attributes faster than many: 0.05 us a publish.
    __slots__ = (
        "apply",
        "bus",
        "cancel",
        "lifecycle",
        "mailbox",
        "new_inbox",
        "new_token",
        "opened",
        "options",
        "outbound",
        "pings",
        "pool",
        "publish",
        "requests",
        "respond",
        "send",
        "start_drain_of",
        "start_flush",
        "start_gather",
        "start_request",
        "stats",
        "subscribe",
        "subscriptions",
        "tokens",
        "traffic",
        "unsubscribe",
        "wake_at",
        "withdraw",
    )

    def __init__(self, options: Options, *, rng: Rng, tokens: Tokens | None = None) -> None:
        self.options: Options = options
        self.tokens: Tokens = tokens or Tokens(rng.randrange)
        # The parts
        bus = Bus()
        traffic = Traffic(bus, options, self.tokens, rng)
        self.bus: Bus = bus
        self.traffic: Traffic = traffic
        self.lifecycle: Lifecycle = self._make_lifecycle(rng)
        #: Settled by the first connection, or when there is none.
        self.opened: Request = self.lifecycle.opened
        self.pool: Pool = self.lifecycle.pool
        self.outbound: Outbound = traffic.outbound
        self.stats: Stats = traffic.outbound.stats
        self.subscriptions: Subscriptions = traffic.subscriptions
        self.requests: Requests = traffic.requests
        self.pings: Pings = traffic.pings
        # Commands that are those of a part, bound once: no call is added on the hot path.
        self.publish: PublishCall = self.outbound.publish
        self.respond: Callable[[bytes, bytes], bool] = self.outbound.respond
        self.send: Callable[[bytes, bytes, bytes, bytes | None], bool] = self.outbound.send
        self.withdraw: Callable[[], None] = self.outbound.withdraw
        self.subscribe: SubscribeCall = self.subscriptions.subscribe
        self.unsubscribe: UnsubscribeCall = self.subscriptions.unsubscribe
        self.apply: Callable[[Receiver], None] = self.subscriptions.apply
        self.start_request: RequestCall = self.requests.start_request
        self.start_gather: GatherCall = self.requests.start_gather
        self.new_inbox: Callable[[], str] = self.requests.new_inbox
        self.new_token: Callable[[], str] = self.requests.new_token
        self.start_flush: Callable[[float | None], Request] = self.pings.start_flush
        self.mailbox: Callable[[int, int], Mailbox] = traffic.mailbox
        self.cancel: Callable[[Request], None] = traffic.cancel
        self.start_drain_of: Callable[[list[Receiver], float | None], Fence] = (
            traffic.start_drain_of
        )
        self.wake_at: Callable[[Waitable, float], None] = bus.wake_at

    def _make_lifecycle(self, rng: Rng) -> Lifecycle:
        return Lifecycle(self.bus, self.options, rng, self.traffic)

    @property
    def state(self) -> str:
        """The state of the connection, one of those in states.py."""
        return self.lifecycle.state

    @property
    def info(self) -> Info | None:
        """What the server said about itself last; None: there was no connection so far."""
        return self.lifecycle.info

    @property
    def transport(self) -> Transport | None:
        """The transport, or the attempt at one; None while there is none."""
        return self.lifecycle.transport

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
        self.lifecycle.connect(now)

    def transport_opened(self, now: float) -> None:
        """Report that the transport of the last Dial is open."""
        self.lifecycle.transport_opened(now)

    def tls_started(self, now: float) -> None:
        """Report that the TLS handshake of the last StartTls is complete."""
        self.lifecycle.tls_started(now)

    def nonce_signed(
        self,
        now: float,
        signature: bytes = b"",
        key: bytes = b"",
        error: BaseException | None = None,
    ) -> None:
        """Report the signature of the last Sign, or why there is none.

        If the seed has signed, `key` is its public key, as 32 bytes.
        """
        self.lifecycle.nonce_signed(now, signature, key, error)

    def receive_data(self, data: bytes, now: float) -> None:  # D-CONN-20
        """Report bytes. This never raises for what the server sent: it hangs up and says why."""
        lifecycle = self.lifecycle
        transport = lifecycle.transport
        if not lifecycle.accepts(states.DATA) or transport is None:
            return
        self.stats.in_bytes += len(data)
        broken: NatsError | None = None
        try:
            plain = transport.websocket is None
            frames = transport.parser.feed(data) if plain else transport.receive(data)
        except ProtocolError as error:
            frames = error.frames
            broken = error
        # After a hangup, the rest is not looked at.
        if lifecycle.state == CONNECTED:
            remaining = iter(frames)
            deliver = self.subscriptions.deliver
            frame = deliver(remaining, now)
            while frame is not None and lifecycle.handle(frame, now):
                frame = deliver(remaining, now)
        else:
            for frame in frames:
                if not lifecycle.handle(frame, now):
                    break
        if lifecycle.transport is transport:
            if broken is None and (transport.owed or transport.websocket is not None):
                broken = transport.overdue()
            if broken is not None:
                lifecycle.hang_up(broken, now)
        lifecycle.after(now)

    def transport_closed(self, now: float, error: BaseException | None = None) -> None:
        """Report that the transport was lost, or could not be opened or secured."""
        self.lifecycle.transport_closed(now, error)

    def handle_timer(self, now: float) -> None:
        """Report the time; to be called at `next_deadline`, and harmless at any other time."""
        lifecycle = self.lifecycle
        lifecycle.enter(states.TIMER)
        if lifecycle.state == CLOSED:
            return
        for waitable in self.bus.timers.pop_due(now):
            if not lifecycle.handle_timer(waitable, now):
                self.traffic.handle_timer(waitable, now)
        lifecycle.after(now)

    def forked(self, now: float) -> None:
        """Make a transport of our own: this process is a copy of the one that owns the present one.

        D-RECON-13: publishes that were queued are for the other process to send. So are responses
        to requests, and the effects of machines. Subscriptions are made here as well.
        """
        if self.state == CLOSED:
            return
        error = ConnectionLost("the process was forked")
        self.traffic.forked(error)
        if self.transport is not None:
            self.transport_closed(now, error)

    def abandon(self, reason: str, *, copied: bool = False) -> None:
        """Close without touching the transport, which the caller does not own (D-CONN-32).

        With `copied`, this process is a copy, and the other one sends what was published.
        """
        if self.state != CLOSED:
            if copied:
                self.traffic.disclaim()
            self.lifecycle.shut(ConnectionClosed(reason))
            self.bus.effects = []

    # Outputs: all four after every input and command, in this order

    def take_effects(self) -> list[Effect]:
        """Take what the adapter has to do, in this order."""
        effects = self.bus.effects
        self.bus.effects = []
        return effects

    def data_to_send(self) -> list[bytes]:
        """Take what to write to the transport; to be called when it has room."""
        pieces = self.outbound.take()
        transport = self.lifecycle.transport
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
        return None if self.bus.closed or not heap else heap[0][0]

    # Commands; those of a single part are bound in __init__

    def start_drain(self, deadline: float) -> Request:
        """Unsubscribe everything, let the user take what arrived, flush, close (see drain.py)."""
        drain = self.traffic.start_drain(deadline)
        self.lifecycle.advance_ending()
        return drain

    def start_close(self, deadline: float) -> Request:
        """Flush and close (CONN-27); settled when closed, with MessagesUnconfirmed (D-CONN-28).

        Without a connection it waits for one only if a message waits to be sent. After the end it
        reports a loss that was not reported before, once.
        """
        ending = self.traffic.ending
        if self.state == CLOSED:
            return ending.report_loss()
        close = ending.start_close(deadline)
        self.lifecycle.advance_ending()
        return close

    def consumed(self, now: float) -> None:
        """Report that the API took the last message of a subscription that has ended."""
        self.lifecycle.after(now)

    def close(self, now: float) -> None:
        """Close at once and for good; `start_close` and `start_drain` are the graceful ways."""
        if self.state != CLOSED:
            self.lifecycle.shut(None)

    def force_reconnect(self, now: float) -> None:  # RECON-5
        """Drop the transport, or the pause between two attempts, and dial the next server now."""
        self.bus.check_open()
        lifecycle = self.lifecycle
        if lifecycle.state == CONNECTED:
            lifecycle.attempts.forgive()
            lifecycle.hang_up(None, now)
        elif lifecycle.state == WAITING:
            lifecycle.dial_chosen(now)
