"""AckWindow: a bounded window of publishes that wait for their acknowledgments.

Each publish has its own reply subject, under one wildcard subscription. Its possible outcomes:

    acknowledged           done, with its PubAck
    refused by the stream  failed, with the ApiError
    503, no responders     sent again 250 ms later, up to `retries` times and in a cluster for 10 s,
                           then NoStreamResponse; PublishInDoubt if it was sent before a reconnect
    no answer in time      failed with PublishTimeout, a PublishInDoubt: it may or may not be stored
    connection lost        with a message id it is sent again on the next connection, because the
                           stream stores each id once; without one, PublishInDoubt
    no connection          it waits for the next one; timeouts start then
    cannot be sent         failed, with the LocalError

The window is full at `max_pending`; then callers wait until a quarter of it is free. They wake up
once for many acknowledgments, and the server still has work while they publish.
"""

from __future__ import annotations

from jetstream.api.client import is_no_responders
from jetstream.errors import JetStreamError, NoStreamResponse, PublishInDoubt, PublishTimeout
from natsproto.connection.effects import Publish, Wake
from natsproto.connection.receiver import Receiver
from natsproto.connection.waitable import Waitable
from natsproto.wire import text as _text
from natsproto.wire.text import shorten

from .request import RETRY_WAIT, AckReader, make_ack

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream.schema.pub_ack import PubAck
    from natsproto.errors import NatsError
    from natsproto.port import Port
    from natsproto.wire.frames import Msg

    from .request import Ack

_HAS_ID = b"\r\nNats-Msg-Id: "


class Publication(Waitable):
    """A publish in progress. When it is `done`, it has an `ack` or an `error`.

    Its deadline is that of the current attempt, or of the pause before the next one; it has none
    while it waits for a connection.
    """

    __slots__ = (
        "_port",
        "answer",
        "block",
        "data",
        "error",
        "error_raised",
        "number",
        "raw_subject",
        "reply",
        "trouble",
    )

    def __init__(self, port: Port, subject: bytes, data: bytes, block: bytes | None) -> None:
        # Not through super(): with 1000 publications in flight every 0.1 us counts.
        self.deadline: float | None = None
        self.armed: float | None = None
        self.waiters: list[Callable[[], object]] = []
        self._port = port
        self.raw_subject: bytes = subject
        self.data: bytes = data
        self.block: bytes | None = block
        self.reply: bytes = b""  # that of the last attempt
        self.number: int = 0  # its position in the order of publishing
        self.answer: Ack | None = None
        self.error: NatsError | None = None
        self.trouble: Trouble | None = None
        self.error_raised: bool = False  # by `result`

    @property
    def subject(self) -> str:
        """The subject of the message."""
        return _text.decode(self.raw_subject)

    @property
    def done(self) -> bool:
        """Whether the publish is acknowledged or has failed."""
        return self.answer is not None or self.error is not None

    @property
    def ack(self) -> PubAck | None:
        """The acknowledgment; None while there is none."""
        return None if self.answer is None else make_ack(self.answer)

    async def result(self) -> PubAck:
        """Wait for the acknowledgment; raise the error that made the publish fail."""
        # Unlike a request, the publish continues if the caller stops waiting.
        while self.answer is None:  # D-PUB-18
            if self.error is not None:
                self.error_raised = True
                raise self.error
            await self._port.wait(self)
        return make_ack(self.answer)

    def __repr__(self) -> str:
        state = "failed" if self.error else "acknowledged" if self.answer else "pending"
        return "<Publication to %s, %s>" % (shorten(self.subject), state)


class Trouble:
    """The state of a publication after a failed attempt."""

    __slots__ = ("in_doubt", "refusals", "resting", "started")

    def __init__(self, started: float) -> None:
        self.started: float = started  # when it began, on this connection
        self.refusals: int = 0  # number of 503s since then
        self.resting: bool = False  # between a 503 and the next try
        self.in_doubt: bool = False  # an earlier attempt was not answered: it may be stored


class AckWindow(Receiver):
    """The state of a window. `open` has the publications in flight, by their last reply token.

    `failed` has those that failed, until `take_failed`.
    """

    __slots__ = (
        "_ack_timeout",
        "_acks",
        "_count",
        "_patience",
        "_prefix",
        "_reopen",
        "_retries",
        "failed",
        "max_pending",
        "open",
    )

    def __init__(
        self,
        inbox: bytes,
        max_pending: int,
        ack_timeout: float,
        retries: int,
        patience: float,
    ) -> None:
        super().__init__()
        self._prefix = inbox + b"."
        self.max_pending: int = max_pending
        # With half of it free, the server runs out of work: that takes a fifth longer.
        self._reopen = max_pending - max(1, max_pending // 4)
        self._ack_timeout = ack_timeout
        self._retries = retries
        self._patience = patience  # PUB-4: until then, 503s are not counted
        self._acks = AckReader()
        self._count = 0
        self.failed: list[Publication] = []
        self.open: dict[bytes, Publication] = {}

    def submit(self, publication: Publication, now: float, sent: bool = True) -> bool:
        """Add a publication while the window is not full; True: arm the machine's deadline.

        The caller sends it at once. If it is not `sent`, the next connection sends it.
        """
        self._count = publication.number = self._count + 1
        tokens = self.tokens
        token = tokens.pool.pop() if tokens.pool else tokens.next()  # D-REQ-9
        publication.reply = self._prefix + token
        self.open[token] = publication
        if not sent:
            return False
        publication.deadline = deadline = now + self._ack_timeout
        if self.deadline is not None and self.deadline <= deadline:
            return False
        self.deadline = deadline
        return True

    def adopt(self, publication: Publication, reply: bytes, deadline: float) -> None:
        """Add a publication that another window has sent, and that has had no acknowledgment.

        Its reply subject is under the same inbox, and its answers are passed to this window.
        """
        self._count = publication.number = self._count + 1
        publication.reply = reply
        publication.deadline = deadline
        self.open[self._token(reply)] = publication

    def _send(self, publication: Publication, now: float) -> None:
        if publication.trouble is not None:
            publication.trouble.resting = False
        publication.deadline = now + self._ack_timeout
        self.wake_by(publication.deadline)
        self.emit(publication.raw_subject, publication.data, publication.reply, publication.block)

    def receive(self, msg: Msg, now: float) -> bool:
        return self.receive_all([msg], now)

    def receive_all(self, msgs: list[Msg], now: float) -> bool:
        open = self.open
        skip = len(self._prefix)
        read = self._acks.read
        crowded = len(open) > self._reopen
        settled: list[Waitable] = []
        for msg in msgs:
            publication = open.pop(msg.raw_subject[skip:], None)
            if publication is None:
                continue  # D-PUB-10: too late, after the publish has failed, or a second answer
            try:
                publication.answer = read(msg.data)
            except JetStreamError as error:
                if is_no_responders(msg):
                    self._refused(publication, now)
                else:
                    self._fail(publication, error)
            if publication.waiters:
                settled.append(publication)
        if settled:
            self.effects.append(Wake(settled))
        # Callers that wait for room wake up when a quarter of the window has become free.
        return crowded and len(open) <= self._reopen  # D-PUB-11

    def _refused(self, publication: Publication, now: float) -> None:
        trouble = publication.trouble
        if trouble is None:
            trouble = publication.trouble = Trouble(now)
        trouble.refusals += 1
        electing = self._retries and now - trouble.started < self._patience
        if trouble.refusals <= self._retries or electing:
            trouble.resting = True
            publication.deadline = now + RETRY_WAIT
            self.wake_by(publication.deadline)
            self.open[self._token(publication.reply)] = publication
        elif trouble.in_doubt:
            # D-PUB-14: a 503 for this attempt says nothing about the previous one.
            self._fail(publication, _in_doubt("no stream responds anymore"))
        else:
            self._fail(publication, NoStreamResponse(publication.subject))

    def _fail(self, publication: Publication, error: NatsError) -> None:
        publication.error = error
        self.failed.append(publication)

    def _give_up(
        self,
        publications: list[Publication],
        why: str,
        kind: type[PublishInDoubt] = PublishInDoubt,
    ) -> None:
        for publication in publications:
            del self.open[self._token(publication.reply)]
            self._fail(publication, _in_doubt(why, kind))
        if publications:
            self.effects.append(Wake(list(publications)))

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        late: list[Publication] = []
        for publication in self._in_order():
            if publication.deadline is None:
                continue  # it waits for a connection
            if publication.deadline > now:
                self.wake_by(publication.deadline)
            elif publication.trouble is not None and publication.trouble.resting:
                self._send(publication, now)
            else:
                late.append(publication)  # D-PUB-12
        self._give_up(late, "no acknowledgment in time", PublishTimeout)  # D-PUB-21
        return bool(late)

    def disconnected(self, now: float) -> None:
        self.deadline = None
        lost: list[Publication] = []
        for publication in self._in_order():
            trouble = publication.trouble
            on_its_way = publication.deadline is not None and not (trouble and trouble.resting)
            publication.deadline = None
            if on_its_way and _HAS_ID in (publication.block or b""):  # D-PUB-13
                if trouble is None:
                    trouble = publication.trouble = Trouble(now)
                trouble.in_doubt = True
            elif on_its_way:
                lost.append(publication)
        if lost:
            self._give_up(lost, "the connection was lost")
            self.wake()

    def connected(self, now: float) -> None:
        for publication in self._in_order():
            if publication.trouble is not None:
                publication.trouble.started = now
                publication.trouble.refusals = 0
            self._send(publication, now)

    def unsent(self, effect: Publish, error: NatsError) -> None:
        self.reject(self.open[self._token(effect.reply)], error)

    def reject(self, publication: Publication, error: NatsError) -> None:  # D-PUB-15
        """Fail a publication that cannot be sent."""
        del self.open[self._token(publication.reply)]
        self._fail(publication, error)
        self.effects.append(Wake([publication, self]))

    def end(self, error: NatsError | None = None) -> bool:
        self._give_up(self._in_order(), str(error or "the publisher was closed"))  # D-PUB-17
        self.deadline = None  # otherwise it would be kept until then
        return super().end(error)

    def _token(self, reply: bytes) -> bytes:
        return reply[len(self._prefix) :]

    def _in_order(self) -> list[Publication]:
        # Sorted, because dicts have no order on MicroPython.
        return sorted(self.open.values(), key=_number)

    @property
    def full(self) -> bool:
        return len(self.open) >= self.max_pending

    def take_failed(self) -> list[Publication]:
        """Return publications that failed since the last call and whose error was not raised."""
        failed = self.failed
        self.failed = []
        return [publication for publication in failed if not publication.error_raised]  # D-PUB-16

    def pending(self) -> int:
        return len(self.open)


def _number(publication: Publication) -> int:
    return publication.number


def _in_doubt(what: str, kind: type[PublishInDoubt] = PublishInDoubt) -> PublishInDoubt:
    return kind("%s: it may or may not be stored" % what)
