"""Publisher: a bounded window of publishes whose acknowledgements are still to come.

Each publish has a reply subject of its own under one wildcard subscription. What may happen to it:

    acknowledged           done, with its PubAck
    refused by the stream  failed, with the ApiError
    503, nobody there      sent again 250 ms later, up to `retries` times and in a cluster for 10 s,
                           then NoStreamResponse; PublishInDoubt if it was sent before a reconnect
    no answer in time      failed as PublishInDoubt: it may be stored or not
    connection lost        with a message id it is sent again on the next connection, because the
                           stream knows the id and stores it once; without, PublishInDoubt
    no connection          it waits for the next one; time-outs count from then on
    cannot be sent         failed, with the LocalError

The window is full at `max_pending`; then callers wait until half of it is free, so that they are
woken once for many acknowledgements.
"""

from __future__ import annotations

from natsproto import _text
from natsproto.effects import Publish
from natsproto.waitable import NO_RESPONDERS, Waitable

from .acks import AckReader
from .errors import JetStreamError, NoStreamResponse, PublishInDoubt
from .machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.frames import Msg
    from natsproto.port import Port

    from .acks import Ack
    from .info import PubAck

RETRY_WAIT = 0.25


class Publication(Waitable):
    """One publish on its way. `ack` is there when it is `done` and `error` is None.

    Its deadline is that of this try or of the pause before the next; it has none while it waits for
    a connection.
    """

    __slots__ = (
        "_port",
        "answer",
        "done",
        "error",
        "in_doubt",
        "number",
        "order",
        "refusals",
        "resting",
        "safe",
        "started",
        "told",
    )

    answer: Ack | None
    error: NatsError | None

    def __init__(
        self, port: Port, subject: bytes, data: bytes, block: bytes | None, safe: bool
    ) -> None:
        self.deadline = self.armed = self.error = self.answer = None
        self.waiters = []
        self._port = port
        self.order = Publish(subject, data, b"", block)
        self.safe = safe  # it has a message id: sending it twice stores it once
        self.number = 0
        self.refusals = 0  # 503s in a row
        self.started = 0.0  # when the first of these tries was made
        self.resting = False  # between a 503 and the next try
        self.in_doubt = False  # a try was not answered: it may be stored
        self.done = False
        self.told = False  # the error was raised to somebody who asked for the result

    @property
    def subject(self) -> str:
        return _text.decode(self.order.subject)

    @property
    def ack(self) -> PubAck | None:
        return None if self.answer is None else self.answer.get()

    async def result(self) -> PubAck:
        """Wait for the acknowledgement; raises what it failed of."""
        # Not as a request is waited for: whoever stops waiting does not give up the publish.
        while not self.done:
            await self._port.wait(self)
        if self.error is not None:
            self.told = True
            raise self.error
        assert self.answer is not None
        return self.answer.get()

    def __repr__(self) -> str:
        state = "failed" if self.error else "acknowledged" if self.done else "pending"
        return "<Publication to %r, %s>" % (self.subject, state)


class Publisher(Machine):
    """The window. `open` has the publications on their way by the last token of their replies."""

    __slots__ = (
        "_ack_timeout",
        "_acks",
        "_count",
        "_failed",
        "_patience",
        "_prefix",
        "_retries",
        "max_pending",
        "open",
    )

    def __init__(
        self,
        inbox: bytes,
        max_pending: int,
        ack_timeout: float,
        retries: int,
        patience: float = 0.0,
    ) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self.max_pending = max_pending
        self._ack_timeout = ack_timeout
        self._retries = retries
        self._patience = patience  # PUB-4: for so long 503s are not counted
        self._acks = AckReader()
        self._count = 0
        self._failed: list[Publication] = []
        self.open: dict[bytes, Publication] = {}

    def submit(self, publication: Publication, now: float, online: bool = True) -> None:
        """Order it; to be called while the window is not full, and to be performed at once.

        Not `online`: the order will not be sent, but made anew on the next connection.
        """
        self._count = number = self._count + 1
        publication.number = number
        token = b"%d" % number
        publication.order.reply = self._prefix + token
        self.open[token] = publication
        publication.started = now
        if online:
            publication.deadline = deadline = now + self._ack_timeout
            if self.deadline is None or deadline < self.deadline:
                self.deadline = deadline
            self._orders.append(publication.order)

    def _send(self, publication: Publication, now: float) -> None:
        publication.resting = False
        publication.deadline = now + self._ack_timeout
        self.wake_by(publication.deadline)
        order = publication.order
        self.order(order.subject, order.data, order.reply, order.block)

    def receive(self, msg: Msg, now: float) -> bool:
        token = msg.raw_subject[len(self._prefix) :]
        publication = self.open.get(token)
        if publication is None:
            return False  # PUB-10: late, after it was given up, or a second one
        data = msg.data
        if not data and msg.status == NO_RESPONDERS:
            return self._refused(publication, now)
        try:
            publication.answer = self._acks.read(data)
        except JetStreamError as error:
            return self._fail(publication, error)
        # The same as _finish, in one call less.
        del self.open[token]
        publication.done = True
        if publication.waiters:
            self.ready.append(publication)
        return len(self.open) == self.max_pending // 2

    def _refused(self, publication: Publication, now: float) -> bool:
        publication.refusals += 1
        electing = self._retries and now - publication.started < self._patience
        if publication.refusals > self._retries and not electing:
            if publication.in_doubt:
                # PUB-14: nobody was there for this try. That says nothing about the one before.
                return self._fail(publication, _in_doubt("no stream answers any more"))
            return self._fail(publication, NoStreamResponse(publication.subject))
        publication.resting = True
        publication.deadline = now + RETRY_WAIT
        self.wake_by(publication.deadline)
        return False

    def _fail(self, publication: Publication, error: NatsError) -> bool:
        """Settle it; True: half of the window is free, and those who wait for room should look."""
        del self.open[publication.order.reply[len(self._prefix) :]]
        publication.done = True
        publication.error = error
        self._failed.append(publication)
        if publication.waiters:
            self.ready.append(publication)
        return len(self.open) == self.max_pending // 2

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        news = False
        for publication in self._in_order():
            if publication.deadline is None:
                continue  # it waits for a connection
            if publication.deadline > now:
                self.wake_by(publication.deadline)
            elif publication.resting:
                self._send(publication, now)
            else:
                news = self._fail(publication, _in_doubt("no acknowledgement in time")) or news
        return news

    def disconnected(self, now: float) -> None:
        self.deadline = None
        for publication in self._in_order():
            if publication.deadline is None or publication.resting:
                publication.deadline = None  # it is not on its way
            elif publication.safe:
                publication.deadline = None
                publication.in_doubt = True
            elif self._fail(publication, _in_doubt("the connection was lost")):
                self.ready.append(self)

    def connected(self, now: float) -> None:
        for publication in self._in_order():
            publication.refusals = 0
            publication.started = now
            self._send(publication, now)

    def unsent(self, order: Publish, error: NatsError) -> None:
        publication = self.open.get(order.reply[len(self._prefix) :])
        if publication is not None and self._fail(publication, error):
            self.ready.append(self)

    def end(self, error: NatsError | None = None) -> bool:
        for publication in self._in_order():
            self._fail(publication, _in_doubt(str(error or "the publisher was closed")))
        return super().end(error)

    def _in_order(self) -> list[Publication]:
        return sorted(self.open.values(), key=_number)  # dicts have no order on MicroPython

    @property
    def full(self) -> bool:
        return len(self.open) >= self.max_pending

    @property
    def crowded(self) -> bool:
        """As many failures are kept as the window is large: no more publishes before a look."""
        return len(self._failed) >= self.max_pending

    def take_failed(self) -> list[Publication]:
        """Those that failed since the last call, but for those whose error was raised already."""
        failed = self._failed
        self._failed = []
        return [publication for publication in failed if not publication.told]

    def pending(self) -> int:
        return len(self.open)


def _number(publication: Publication) -> int:
    return publication.number


def _in_doubt(what: str) -> PublishInDoubt:
    return PublishInDoubt("%s: it may be stored or not" % what)
