"""Publisher: a bounded window of publishes whose acknowledgements are still to come.

Each publish has a reply subject of its own under one wildcard subscription. What may happen to it:

    acknowledged           done, with its PubAck
    refused by the stream  failed, with the ApiError
    503, nobody there      sent again 250 ms later, up to `retries` times, then NoStreamResponse
    no answer in time      failed as PublishInDoubt: it may be stored or not
    connection lost        with a message id it is sent again on the next connection, because the
                           stream knows the id and stores it once; without, PublishInDoubt

The window is full at `max_pending`; then callers wait until half of it is free, so that they are
woken once for many acknowledgements.
"""

from __future__ import annotations

from natsproto.waitable import NO_RESPONDERS, Request

from .call import read_reply
from .errors import JetStreamError, NoStreamResponse, PublishInDoubt
from .info import PubAck
from .machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError
    from natsproto.frames import Msg
    from natsproto.session import Session

RETRY_WAIT = 0.25


class Publication(Request):
    """One publish on its way. `ack` is there when it is `done` and `error` is None."""

    __slots__ = ("_session", "ack", "block", "data", "resting", "safe", "to", "tries")

    def __init__(
        self, session: Session, to: bytes, data: bytes, block: bytes | None, safe: bool
    ) -> None:
        super().__init__("publish", subject=to.decode())
        self._session = session
        self.to = to
        self.data = data
        self.block = block
        self.safe = safe  # it has a message id: sending it twice stores it once
        self.tries = 0
        self.resting = False  # between a 503 and the next try
        self.ack: PubAck | None = None

    async def result(self) -> PubAck:
        """Wait for the acknowledgement; raises what it failed of."""
        await self._session.settle(self)
        assert self.ack is not None
        return self.ack


class Publisher(Machine):
    """The window. `failed` lists publications that failed since it was read last."""

    __slots__ = ("_ack_timeout", "_count", "_max_pending", "_prefix", "_retries", "failed", "open")

    def __init__(self, inbox: bytes, max_pending: int, ack_timeout: float, retries: int) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self._max_pending = max_pending
        self._ack_timeout = ack_timeout
        self._retries = retries
        self._count = 0
        self.open: dict[bytes, Publication] = {}
        self.failed: list[Publication] = []

    @property
    def full(self) -> bool:
        return len(self.open) >= self._max_pending

    def submit(self, publication: Publication, now: float) -> None:
        """Send it; to be called while the window is not full."""
        self._count += 1
        publication.token = b"%d" % self._count
        self.open[publication.token] = publication
        self._send(publication, now)

    def _send(self, publication: Publication, now: float) -> None:
        publication.tries += 1
        publication.deadline = now + self._ack_timeout
        self.wake_by(publication.deadline)
        reply = self._prefix + publication.token
        self.order(publication.to, publication.data, reply, publication.block)

    def receive(self, msg: Msg, now: float) -> bool:
        publication = self.open.get(msg.raw_subject[len(self._prefix) :])
        if publication is None:
            return False  # late, after it was given up
        if msg.status == NO_RESPONDERS and not msg.data:
            return self._unanswered(publication, now)
        try:
            publication.ack = PubAck.from_json(read_reply(msg.data))
        except JetStreamError as error:
            return self._finish(publication, error)
        return self._finish(publication, None)

    def _unanswered(self, publication: Publication, now: float) -> bool:
        if publication.tries > self._retries:
            return self._finish(publication, NoStreamResponse(publication.subject))
        publication.resting = True
        publication.deadline = now + RETRY_WAIT
        self.wake_by(publication.deadline)
        return False

    def _finish(self, publication: Publication, error: NatsError | None) -> bool:
        """Settle it; True: those who wait for room, or for the end, should look."""
        del self.open[publication.token]
        if publication.finish(error=error):
            if error is not None:
                self.failed.append(publication)
            if publication.waiters:
                self.ready.append(publication)
        return len(self.open) in (0, self._max_pending // 2)

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        news = False
        for publication in list(self.open.values()):
            assert publication.deadline is not None
            if publication.deadline > now:
                self.wake_by(publication.deadline)
            elif publication.resting:
                publication.resting = False
                self._send(publication, now)
            else:
                error = PublishInDoubt("no acknowledgement in time: it may be stored or not")
                news = self._finish(publication, error) or news
        return news

    def disconnected(self, now: float) -> None:
        self.deadline = None
        for publication in list(self.open.values()):
            if not publication.safe and not publication.resting:
                error = PublishInDoubt("the connection was lost: it may be stored or not")
                if self._finish(publication, error):
                    self.ready.append(self)

    def connected(self, now: float) -> None:
        # Those with a message id were kept: the stream will tell whether it has them already.
        for publication in self.open.values():
            publication.resting = False
            self._send(publication, now)

    def end(self, error: NatsError | None = None) -> bool:
        for publication in list(self.open.values()):
            reason = PublishInDoubt("the client was closed: it may be stored or not")
            self._finish(publication, reason)
        return super().end(error)

    def pending(self) -> int:
        return len(self.open)
