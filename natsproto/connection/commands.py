"""Commands: the half of a Connection that the API calls. Buffered, never blocking.

While there is no connection, publishes are held back in a bounded buffer, subscriptions are only
noted, and flushes wait: `_go_online` sends all of it in that order, `_go_offline` takes back what
the adapter had not taken yet.
"""

from __future__ import annotations

from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    MessagesUnconfirmed,
    NatsError,
    PayloadTooLarge,
    PermissionDenied,
)
from natsproto.events import EventQueue, PublishDropped, SlowConsumer
from natsproto.wire import encode, subjects
from natsproto.wire import text as _text

from .publishing import Publishing, reply_of, size_of, subject_of
from .replies import Replies
from .timers import Timers
from .tokens import Tokens
from .waitable import Fence, Gather, Mailbox, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.events import Event
    from natsproto.options import Options
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.headers import HeadersLike

    from .servers import Rng
    from .waitable import Receiver, Waitable


class Commands(Publishing):
    """Subscriptions, requests and flushes; `Connection` adds the transport's life."""

    def __init__(self, options: Options, *, rng: Rng) -> None:
        super().__init__(options)
        self.events = EventQueue()
        self._rng = rng
        self.tokens = Tokens(rng.randrange)
        self._online = False  # SUB, UNSUB and PING can be sent
        self._timers = Timers()
        self._ready: list[Waitable] = []
        self._subs: dict[int, Receiver] = {}
        self._last_sid = 0
        self._replies: Replies | None = None
        # Who waits for a PONG, oldest first; None: nobody. And how many messages it confirms.
        self._pings: list[tuple[Request | None, int]] = []
        self._confirmed = 0  # messages that the server has seen, or that were lost before now
        self._in_doubt = 0  # messages that were lost with their transport while we were closing
        self._loss: MessagesUnconfirmed | None = None  # at the end, until somebody is told
        self._flushes: list[Request] = []  # flushes that wait for a connection
        self._dropping: list[Receiver] = []  # those that dropped a message since the last look

    # Subscriptions

    def mailbox(self, max_msgs: int, max_bytes: int) -> Mailbox:
        """A queue to subscribe with; 0 stands for the default of the options."""
        return Mailbox(max_msgs or self.options.max_msgs, max_bytes or self.options.max_bytes)

    def subscribe(self, subject: str, receiver: Receiver, *, queue: str = "") -> int:
        """Have messages of the subject delivered to the receiver; returns the subscription's id."""
        receiver.subject = subjects.check_subscribe(subject)
        receiver.queue = subjects.check_queue(queue) if queue else b""
        self._check_open()
        return self._subscribe(receiver)

    @property
    def online(self) -> bool:
        """Whether orders are sent now. If not, machines will be told when they can be."""
        return not self._holding

    def perform(self, receiver: Receiver) -> None:
        if receiver.moving:
            receiver.moving = False
            if self._online and receiver.sid in self._subs:
                self._outbox.add(encode.unsub(receiver.sid))
                self._send_sub(receiver)
        super().perform(receiver)
        if receiver.leaving:
            self.unsubscribe(receiver.sid)
        self._timers.arm(receiver)

    def _subscribe(self, receiver: Receiver) -> int:
        self._last_sid += 1
        receiver.sid = self._last_sid
        receiver.busy = self._busy
        receiver.ready = self._ready
        receiver.dropping = self._dropping
        receiver.tokens = self.tokens
        self._subs[receiver.sid] = receiver
        if self._online:
            self._send_sub(receiver)
        return receiver.sid

    def _receivers(self) -> list[Receiver]:
        """In the order of their ids, which dicts do not keep on MicroPython."""
        return [self._subs[sid] for sid in sorted(self._subs)]

    def _send_sub(self, receiver: Receiver) -> None:
        # The server counts from this SUB on; so does the maximum of UNSUB.
        receiver.received_before = receiver.received
        group = b" " + receiver.queue if receiver.queue else b""
        self._outbox.add(b"SUB %s%s %d\r\n" % (receiver.subject, group, receiver.sid))

    def unsubscribe(self, sid: int, *, after: int = 0) -> None:
        """End it now, or once it has had `after` messages in all; an ended one is left alone."""
        encode.unsub(sid, after=after)  # refuses what could not be sent, now or after a reconnect
        receiver = self._subs.get(sid)
        if receiver is None:
            return
        if after > receiver.received:
            receiver.after = after
            if self._online:
                self._outbox.add(encode.unsub(sid, after=after - receiver.received_before))
            return
        if self._online:
            self._outbox.add(encode.unsub(sid))
        self._end(receiver)

    def _end(self, receiver: Receiver, error: NatsError | None = None) -> None:
        self._subs.pop(receiver.sid, None)
        if receiver.end(error):
            self._ready.append(receiver)

    def start_drain_of(self, receivers: list[Receiver], deadline: float | None) -> Fence:
        """UNSUB these behind a fence; when it is settled, all that was on its way has arrived."""
        fence = Fence("drain", deadline, receivers)
        if not self._online:
            self._end_all(receivers)
            fence.finish()
            return fence
        for receiver in receivers:
            if receiver.sid in self._subs:
                receiver.draining = True
                self._outbox.add(encode.unsub(receiver.sid))
        self._send_ping(fence)
        self._timers.arm(fence)
        return fence

    def start_drain_of_all(self) -> list[Receiver]:
        """The same for every subscription but the inbox of requests; returns them."""
        receivers = [each for each in self._receivers() if each is not self._replies]
        self.start_drain_of(receivers, None)
        return receivers

    def _end_all(self, receivers: list[Receiver]) -> None:
        for receiver in receivers:
            self._end(receiver)

    # Requests

    def start_request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        deadline: float,
        headers: HeadersLike | None = None,
        wildcards: bool = False,
    ) -> Request:
        """Publish with a reply subject of its own; the answer, or its lack, settles the request.

        `wildcards`: they may stand in the subject, where they mean themselves (JetStream's API).
        """
        request = Request("", deadline, subject)
        check = subjects.check_subscribe if wildcards else subjects.check_publish
        self._start(request, check(subject), data, headers)
        return request

    def start_gather(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        deadline: float,
        headers: HeadersLike | None = None,
        most: int = 0,
        stall: float = 0.0,
        max_bytes: int = 0,
    ) -> Gather:
        """A request with many answers; `most` and `stall` as in Gather, 0: no such limit."""
        limits = (self.options.max_msgs, max_bytes or self.options.max_bytes)
        gather = Gather("", deadline, subject, most, stall, limits)
        self._start(gather, subjects.check_publish(subject), data, headers)
        return gather

    def _start(
        self, request: Request, subject: bytes, data: BytesLike, headers: HeadersLike | None
    ) -> None:
        payload = encode.check_data(data)
        block = None if headers is None else self._header_block(headers)
        self._check_open()
        if self._replies is None:
            self._replies = Replies(_text.encode(self.new_inbox()), self._timers, self.tokens)
            self._subscribe(self._replies)
        reply = self._replies.register(request)
        try:
            self._publish(subject, payload, reply, block)
        except NatsError:
            self._replies.forget(request)
            raise
        self._answerable += 1
        self._timers.arm(request)

    def start_flush(self, deadline: float | None) -> Request:
        """PING; settled by the PONG, when the server has seen all that was sent before."""
        request = Request("flush", deadline)
        if self.closed:
            request.finish(error=ConnectionClosed(self.closed))
        elif self._holding:
            self._flushes.append(request)
        else:
            self._send_ping(request)
        self._timers.arm(request)
        return request

    @property
    def idle(self) -> bool:
        """Not connected, and nothing waits to be sent."""
        return not self._online and not self._count(self._held)

    def _send_ping(self, request: Request | None) -> None:
        mark = self._accepted() - self._count(self._held)
        self._outbox.add(encode.ping())
        self._pings.append((request, mark))

    # What the server has confirmed. Requests and what machines order do not count: whoever waits
    # for their answers learns of their loss.

    def _accepted(self) -> int:
        return self.stats.out_msgs - self._answerable

    def _count(self, frames: list[bytes]) -> int:
        """Count the publishes in these frames that are not requests."""
        if self._replies is None:
            return len(frames)
        inbox = self._replies.subject[:-1]
        return len([frame for frame in frames if not reply_of(frame).startswith(inbox)])

    def _lose_sent(self, closing: bool) -> None:
        """The transport is lost: nothing confirms any more what was sent on it."""
        reached = self._accepted() - self._count(self._held)
        if closing:
            self._in_doubt += reached - self._confirmed
        self._confirmed = reached

    def _count_loss(self) -> MessagesUnconfirmed | None:
        """Count at the end what the server may not have received (CONN-28)."""
        unsent = self._count(self._outbox.only_publishes() + self._held)
        in_doubt = self._accepted() - self._confirmed - unsent + self._in_doubt
        return MessagesUnconfirmed(unsent, in_doubt) if unsent or in_doubt else None

    def cancel(self, request: Request) -> None:
        """Nobody waits for it any more; whatever still comes for it is dropped."""
        request.finish()
        self._forget(request)

    def _forget(self, request: Request) -> None:
        """It is settled: nothing leads to it any more but a PING that has to have its PONG."""
        if self._replies is not None:
            self._replies.forget(request)
        if request in self._flushes:
            self._flushes.remove(request)

    def new_token(self) -> str:
        """A random name that nobody else has."""
        return subjects.token(self._rng.randrange)

    def new_inbox(self) -> str:
        """A subject that nobody else listens to."""
        return subjects.inbox(self._rng.randrange, self.options.inbox_prefix)

    def wake_at(self, waitable: Waitable, deadline: float) -> None:
        """Make it ready at that time, so that a caller with a time-out looks again."""
        if waitable.deadline is None or waitable.deadline > deadline:
            waitable.deadline = deadline
            self._timers.arm(waitable)

    # What the transport's life does to all this

    def _go_online(self, now: float) -> None:
        self._online = True
        for receiver in self._receivers():
            self._send_sub(receiver)
            if receiver.after:
                left = receiver.after - receiver.received
                self._outbox.add(encode.unsub(receiver.sid, after=left))
            receiver.connected(now)
        for frame in self._release():
            self._refuse(frame)
        for request in self._flushes:
            self._send_ping(request)
        self._flushes = []

    def _refuse(self, frame: bytes) -> None:
        """Drop a held publish that this server does not take, and report it (RECON-14)."""
        size = size_of(frame)
        if self._replies is None or self._count([frame]):
            self._tell(PublishDropped(_text.decode(subject_of(frame)), size))
            return
        self._answerable -= 1
        request = self._replies.open.get(reply_of(frame).rpartition(b".")[2])
        if request is not None:
            self._forget(request)
            request.finish(error=PayloadTooLarge(self._too_large(size)))
            self._ready.append(request)

    def _go_offline(self, now: float) -> None:
        self._online = False
        self._take_back()
        self._ready.append(self.writable)  # there is room again, in another place
        for request, _ in self._pings:
            if request is not None and request.finish(
                error=ConnectionLost(
                    "the connection was lost before the %s was done" % request.what
                )
            ):
                self._ready.append(request)
        self._pings = []
        self._end_all([each for each in self._receivers() if each.draining])
        for receiver in self._receivers():
            receiver.disconnected(now)

    def _go_away(self, reason: str, error: NatsError | None) -> None:
        """For good: everybody who waits is told why; subscriptions end with the error, if any."""
        self.closed = reason
        self._loss = self._count_loss()
        self._online = False
        self._holding = True
        for receiver in self._receivers():
            self._end(receiver, None if error is None else ConnectionClosed(reason))
        if self._replies is not None:
            self._replies.fail(ConnectionClosed(reason))
        for request in [request for request, _ in self._pings] + self._flushes:
            if request is not None and request.finish(error=ConnectionClosed(reason)):
                self._ready.append(request)
        self._pings = []
        self._flushes = []
        self._outbox.clear()
        self._set_held([])
        self._ready.append(self.writable)
        self._ready += self._timers.clear()  # nobody waits for a time that will not come

    def _deny(self, error: PermissionDenied, sid: int) -> None:
        """A subscription that the server cancelled, by its id or by subject and queue (ERR-5)."""
        name = (_text.encode(error.subject), _text.encode(error.queue))
        for receiver in self._receivers():
            if receiver.sid == sid or (not sid and (receiver.subject, receiver.queue) == name):
                self._end(receiver, error)
                break
        if self._replies is not None and self._replies.ended:
            # ERR-7: no answer can come; the next request tries with another inbox.
            self._replies.fail(error)
            self._replies = None

    def _deny_request(self, error: PermissionDenied) -> None:
        """Requests that were never delivered because we may not publish there (ERR-6)."""
        if self._replies is not None and error.subject:
            self._replies.fail(error, error.subject)

    def _report_drops(self) -> None:
        drops: dict[int, int] = {}
        for receiver in self._dropping:
            drops[receiver.sid] = drops.get(receiver.sid, 0) + 1
        for receiver in self._dropping:
            dropped = drops.pop(receiver.sid, 0)
            if dropped:
                subject = _text.decode(receiver.subject)
                self._tell(SlowConsumer(subject, receiver.sid, dropped))
        self._dropping.clear()

    def _tell(self, event: Event) -> None:
        self.events.add(event)
        self._ready.append(self.events)
