"""Traffic: everything that a client sends and receives, over any number of transports.

Subscriptions survive a lost transport (they are sent again first), and so do publishes that the
adapter had not taken (sent once, after them), and requests (their inbox is a subscription). A flush
that waits for its PONG is lost, and so are bytes that the adapter had taken. Nothing is ever sent
twice.

    input          outbound            pings                subscriptions     requests
    connected      then sends the      finally send the     are sent again    -
                   held publishes      flushes that waited  first
    disconnected   holds publishes     all fail             are notified      stay
    pong           -                   the oldest settled   end, at a fence   -
    deny           -                   -                    one ends          some fail
    forked         drops everything    forget everything    machines end      all fail
    close          drops everything    all fail             all end           all fail
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, PermissionDenied
from natsproto.events import Closed, PublishDropped
from natsproto.wire import text as _text

from .drain import Ending
from .encoded import size_of, subject_of
from .outbound import Outbound
from .pings import Fence, Pings
from .receiver import Mailbox, Receiver
from .requests import Requests
from .subscriptions import Subscriptions
from .waitable import Alarm, Request, Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.options import Options

    from .bus import Bus
    from .servers import Rng
    from .tokens import Tokens


class Traffic:
    """The parts of a connection that do not belong to a transport, and what they do together."""

    __slots__ = ("_bus", "_options", "ending", "outbound", "pings", "requests", "subscriptions")

    def __init__(self, bus: Bus, options: Options, tokens: Tokens, rng: Rng) -> None:
        self._bus = bus
        self._options = options
        self.outbound: Outbound = Outbound(bus, options.max_pending_out)
        self.subscriptions: Subscriptions = Subscriptions(bus, self.outbound, tokens)
        self.requests: Requests = Requests(bus, self.outbound, self.subscriptions, options, rng)
        self.pings: Pings = Pings(bus, self.outbound)
        self.ending: Ending = Ending(bus, self.pings)

    # What happens to the connection

    def connected(self, now: float) -> None:
        """Send what waited for a connection."""
        self.subscriptions.connected(now)
        for frame in self.outbound.release():
            self._refuse(frame)
        self.pings.connected()

    def _refuse(self, frame: bytes) -> None:
        """Drop a held publish that this server does not accept, and report it (D-RECON-14)."""
        if self.outbound.is_request(frame):
            self.requests.refuse(frame)
        else:
            self._bus.emit(PublishDropped(_text.decode(subject_of(frame)), size_of(frame)))

    def disconnected(self, now: float) -> None:
        """Keep what can be sent later, and fail what waits for this server."""
        self.outbound.take_back()
        self.pings.disconnected(closing=self.ending.has_begun)
        self.subscriptions.disconnected(now)

    def pong(self, leaving: Request | None) -> None:
        """Settle the oldest PING; `leaving` is the one after which a lame duck is left."""
        request = self.pings.pong()
        if isinstance(request, Fence):
            self.subscriptions.end_all(request.receivers)  # DRAIN-2
        if request is not None:
            if request is leaving and self.pings.fenced:
                self.pings.ping(request)  # D-LDM-5: after the drains that began meanwhile
            elif request.finish():
                self._bus.ready.append(request)

    def deny(self, error: PermissionDenied, text: str) -> None:
        """End what a permission error of the server is about."""
        from . import server_errors

        if server_errors.denies_publish(text):
            self.requests.deny_subject(error)
        else:
            self.subscriptions.deny(error, server_errors.denied_sid(text))
            self.requests.deny_inbox(error)

    def handle_timer(self, waitable: Waitable, now: float) -> None:
        """Handle a deadline that has come, of a request or a receiver."""
        if waitable.handle_timer(now):
            self._bus.ready.append(waitable.target if isinstance(waitable, Alarm) else waitable)
            if isinstance(waitable, Request):
                self._forget(waitable)  # REQ-4
        self._bus.timers.arm(waitable)
        if isinstance(waitable, Receiver):
            self.subscriptions.collect(waitable)

    def settle(self) -> None:
        """Carry out the effects of machines, and report dropped messages: an input is over."""
        subscriptions = self.subscriptions
        if subscriptions.busy:
            subscriptions.apply_all()
        if subscriptions.dropping:
            subscriptions.report_drops()

    def disclaim(self) -> None:
        """Leave what was published to another process, which this one is a copy of."""
        self.outbound.disclaim()
        self.pings.disclaim()

    def forked(self, error: NatsError) -> None:
        """Leave publishes, requests and machines to another process; keep mailboxes."""
        self.disclaim()
        self.requests.fail(error)
        for receiver in self.subscriptions.receivers():
            if not isinstance(receiver, Mailbox):
                self.subscriptions.end(receiver, error)

    def close(self, reason: NatsError | None) -> None:
        """End everything; the reason is None if the user closed the client."""
        bus = self._bus
        error = ConnectionClosed(bus.closed)
        # Subscriptions of a client that was closed on purpose just end.
        self.subscriptions.end_all(self.subscriptions.receivers(), reason and error)
        self.requests.fail(error)
        loss = self.pings.close(bus.closed)
        self.outbound.close()
        bus.ready += bus.timers.clear()  # no caller waits for a time that never comes
        self.settle()  # D-EVENT-6: before Closed, which is the last event
        bus.emit(Closed(reason, 0 if loss is None else loss.unsent + loss.in_doubt))
        self.ending.closed(loss, bus.closed)

    # Commands

    def mailbox(self, max_msgs: int, max_bytes: int) -> Mailbox:
        """Return a queue to subscribe with; 0 stands for the default of the options."""
        return Mailbox(max_msgs or self._options.max_msgs, max_bytes or self._options.max_bytes)

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
        if self._bus.online:
            self.subscriptions.drain(receivers)
            self.pings.ping(fence)  # DRAIN-1
            self._bus.timers.arm(fence)
        else:
            self.subscriptions.end_all(receivers)  # D-DRAIN-9
            fence.finish()
        return fence

    def start_drain(self, deadline: float) -> Request:
        """Unsubscribe everything; return the drain of the client (see drain.py)."""
        drain = self.ending.drain
        if drain is None:
            inbox = self.requests.inbox
            # DRAIN-3
            receivers = [each for each in self.subscriptions.receivers() if each is not inbox]
            self.start_drain_of(receivers, None)
            drain = self.ending.start_drain(deadline, receivers)
        return drain
