"""Requests: publishes that wait for a response.

All requests of a connection share one wildcard subscription, `<inbox>.*`. The last token of a
reply subject names its request, so a late or second response matches none and is dropped. A request
survives the transport, because its inbox is a subscription (D-RECON-11).

    a request is settled by      with
    its response                 the message
    status 503                   NoResponders
    its deadline                 TimeoutExpired
    a refusal of its subject     PermissionDenied (ERR-6)
    a refusal of the inbox       PermissionDenied; the next request tries another inbox (ERR-7)
    the end of the connection    ConnectionClosed
    `cancel` of its caller       nothing: its response is dropped
"""

from __future__ import annotations

from natsproto.errors import ConnectionClosed, NatsError, PermissionDenied
from natsproto.wire import encode, subjects
from natsproto.wire import text as _text

from .encoded import reply_of, size_of
from .receiver import Receiver
from .waitable import MultiRequest, Request

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.options import Options
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import HeadersLike

    from .bus import Bus
    from .outbound import Outbound
    from .servers import Rng
    from .subscriptions import Subscriptions


class Inbox(Receiver):
    """The receiver of `<inbox>.*`: hands each message to the request that its token names."""

    __slots__ = ("_bus", "open", "prefix")

    def __init__(self, inbox: bytes, bus: Bus) -> None:
        super().__init__()
        self.subject: bytes = inbox + b".*"  # REQ-1
        self.prefix: bytes = inbox + b"."
        self._bus = bus
        #: The requests that wait, by token.
        self.open: dict[bytes, Request] = {}

    def receive(self, msg: Msg, now: float) -> bool:
        """Settle the request that the message responds to, if it still waits (REQ-2)."""
        token = msg.raw_subject[len(self.prefix) :]
        request = self.open.get(token)
        if request is not None:
            request.receive(msg, now)
            self._bus.ready.append(request)
            if request.done:
                del self.open[token]
            else:
                self._bus.timers.arm(request)  # REQ-8: the stall may end before the deadline
        return False

    def fail(self, error: NatsError, subject: str = "") -> None:
        """Settle the open requests to this subject, or all of them, with the error."""
        for request in list(self.open.values()):
            if subject in ("", request.subject):
                del self.open[request.token]
                request.finish(error=error)
                self._bus.ready.append(request)

    def pending(self) -> int:
        """Return 0: the user takes no messages from the inbox."""
        return 0


class Requests:
    """The requests of one connection."""

    __slots__ = ("_bus", "_options", "_outbound", "_rng", "_subscriptions", "inbox")

    def __init__(
        self,
        bus: Bus,
        outbound: Outbound,
        subscriptions: Subscriptions,
        options: Options,
        rng: Rng,
    ) -> None:
        self._bus = bus
        self._outbound = outbound
        self._subscriptions = subscriptions
        self._options = options
        self._rng = rng
        self.inbox: Inbox | None = None

    def new_token(self) -> str:
        """Return a random name that is not in use."""
        return subjects.token(self._rng.randrange)

    def new_inbox(self) -> str:
        """Return a subject that no other client subscribes to."""
        return subjects.inbox(self._rng.randrange, self._options.inbox_prefix)

    def start_request(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        deadline: float,
        headers: HeadersLike | None = None,
        wildcards: bool = False,
    ) -> Request:
        """Publish with a unique reply subject; the response, or its absence, settles the request.

        With `wildcards`, the subject may contain them as ordinary characters (JetStream's API).
        """
        request = Request("", deadline, subject)
        if wildcards:
            head = b"PUB %s " % subjects.check_subscribe(subject)
        else:
            head = self._outbound.checked.get(subject) or self._outbound.check_subject(subject)
        self._start(request, head, data, headers)
        return request

    def start_gather(
        self,
        subject: str,
        data: BytesLike = b"",
        *,
        deadline: float | None,
        headers: HeadersLike | None = None,
        max_msgs: int = 0,
        stall: float = 0.0,
        max_bytes: int = 0,
    ) -> MultiRequest:
        """Start a request with many responses; limits as in MultiRequest, 0 for none."""
        limits = (self._options.max_msgs, max_bytes or self._options.max_bytes)
        request = MultiRequest("", deadline, subject, max_msgs, stall, limits)
        self._start(request, self._outbound.check_subject(subject), data, headers)
        return request

    def _start(
        self, request: Request, head: bytes, data: BytesLike, headers: HeadersLike | None
    ) -> None:
        payload = data if isinstance(data, bytes) else encode.check_data(data)
        block = None if headers is None else self._outbound.header_block(headers)
        if self._bus.closed:
            raise ConnectionClosed(self._bus.closed)
        inbox = self.inbox or self._open_inbox()
        tokens = inbox.tokens
        token = tokens.pool.pop() if tokens.pool else tokens.next()  # D-REQ-9
        self._outbound.request(head, payload, inbox.prefix + token, block)  # D-REQ-5
        request.token = token
        inbox.open[token] = request
        self._bus.timers.arm(request)

    def _open_inbox(self) -> Inbox:
        inbox = self.inbox = Inbox(_text.encode(self.new_inbox()), self._bus)
        self._subscriptions.add(inbox)
        self._outbound.expect_replies(inbox.prefix)
        return inbox

    def forget(self, request: Request) -> None:
        """Drop later responses to a request, if it is one of these."""
        if self.inbox is not None:
            self.inbox.open.pop(request.token, None)

    def refuse(self, frame: bytes) -> None:
        """Fail a held request that this server does not accept (D-RECON-14)."""
        self._outbound.answerable -= 1
        token = reply_of(frame).rpartition(b".")[2]
        assert self.inbox is not None  # the reply subject is what makes the frame a request
        request = self.inbox.open.get(token)
        if request is not None:
            self.forget(request)
            request.finish(error=self._outbound.too_large(size_of(frame)))
            self._bus.ready.append(request)

    def deny_inbox(self, error: PermissionDenied) -> None:
        """Fail all requests if the server denied the inbox: no response can arrive (ERR-7)."""
        if self.inbox is not None and self.inbox.ended:
            self.fail(error)

    def deny_subject(self, error: PermissionDenied) -> None:
        """Fail the requests to a subject that this client may not publish to (ERR-6)."""
        if self.inbox is not None and error.subject:
            self.inbox.fail(error, error.subject)

    def fail(self, error: NatsError) -> None:
        """Fail all requests; the next one makes another inbox."""
        if self.inbox is not None:
            self.inbox.fail(error)
            self.inbox = None
