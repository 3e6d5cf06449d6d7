"""FastBatchMachine: a fast batch (ADR-50), stored as it arrives, acknowledged now and then.

The reply subject of each message tells the batch, the message's number, and what it is for. What
comes back has that subject, so every answer names the message that it is about.

    state      what happens                       then
    NEW        the first message is sent          STARTING; ENDING if it is the last one as well
    STARTING   an ack, which tells the flow       OPEN
               an error, nobody, or no answer     OVER: that error
    OPEN       the last message is sent           ENDING
               a gap, or a message is refused     FAILING; if gaps are allowed it goes on
    ENDING     the final ack, for all of them     OVER: done
               a gap, or a message is refused     FAILING; if gaps are allowed it goes on
    FAILING    the final ack, for some of them    OVER: so many are stored, the others are not
    any        the batch is unknown, no answer    OVER: it is in doubt what is stored

Messages may be sent while OPEN, until `max_acks` acknowledgements are due; each one tells for how
many messages the next will be, and for what is lost none is due. Who waits for an answer has a
ping sent every second: it makes the server tell again what may have been lost. A ping also keeps an
idle batch alive, and asks on a new connection whether all that was sent before has come. What the
server told on the last one may not have come: with gaps, losses behind `_sure` are in doubt.
"""

from __future__ import annotations

from jetstream.api.client import read_error, read_number, read_object
from jetstream.api.metadata import is_number
from jetstream.errors import (
    FastBatchFailed,
    InvalidResponse,
    JetStreamError,
    NoStreamResponse,
    PublishInDoubt,
)
from jetstream.errors.api import TooManyRequests
from jetstream.events import Loss
from jetstream.machine.base import Machine
from natsproto.connection.waitable import NO_RESPONDERS
from natsproto.wire import text as _text
from natsproto.wire.text import show

from .request import RETRY_WAIT, read_ack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetstream.schema.info import PubAck
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

# What a message is for: the last but one token of its reply subject.
START = 0
APPEND = 1
COMMIT = 2
END = 3
PING = 4

NEW = 0
STARTING = 1
OPEN = 2
ENDING = 3
FAILING = 4
OVER = 5

PING_WAIT = 1.0
KEEP_ALIVE = 4.0  # FAST-9: twice that is less than the 10 s after which the server forgets a batch
MOST_LOSSES = 1000


class FastBatchMachine(Machine):
    """The batch. `sent` messages have left, the first `stored` of them are acknowledged.

    While `sent` is below `limit` another one may be sent; `note_sent` is to be told at once. When
    it is OVER, `ack` has the final acknowledgement, or `failure` says why it is not what it should
    be.
    """

    __slots__ = (
        "_ask_at",
        "_base",
        "_checking",
        "_flow",
        "_gaps",
        "_id",
        "_kept",
        "_last",
        "_max_acks",
        "_news",
        "_online",
        "_patience",
        "_subject",
        "_sure",
        "_told",
        "_trouble",
        "ack",
        "failure",
        "limit",
        "losses",
        "lost",
        "sent",
        "state",
        "stored",
    )

    def __init__(
        self, inbox: bytes, flow: int, max_acks: int, allow_gaps: bool, patience: float
    ) -> None:
        super().__init__()
        self._base = b"%s.%d.%s." % (inbox, flow, b"ok" if allow_gaps else b"fail")
        self._id = _text.decode(inbox[inbox.rfind(b".") + 1 :])
        self._flow = flow
        self._max_acks = max_acks
        self._gaps = allow_gaps
        self._patience = patience
        self._subject = b""  # of the first message: it leads to the stream
        self._last = APPEND  # or how the batch is ended: COMMIT, END
        self._online = False
        self._checking = False  # a new connection: whether all has come is not known
        self._sure = 0  # while that is so: up to this number losses are known
        self._told: set[int] = set()  # what is lost behind that
        self._trouble: NatsError | None = None  # what was wrong first
        self._news = 0.0  # when the batch last came on
        self._ask_at = 0.0  # the next ping, while somebody waits
        self._kept = 0  # `sent` when the batch was last kept alive
        self.state = NEW
        self.limit = 0
        self.sent = 0
        self.stored = 0
        self.ack: PubAck | None = None
        self.failure: NatsError | None = None
        self.lost = 0
        self.losses: list[Loss] = []

    # For those who send

    def reply(self, operation: int) -> bytes:
        """The reply subject of the next message."""
        return b"%s%d.%d.$FI" % (self._base, self.sent + 1, operation)  # FAST-1

    def note_sent(self, operation: int, subject: bytes, now: float) -> None:
        """The next message has left: the first (START), the last (COMMIT), one between (APPEND).

        END: there is no other. Between, it is enough to count `sent` while it is below `limit`.
        """
        if operation == END:
            self._order_end()
        else:
            self.sent += 1
        if self.state == NEW:
            self._subject = subject
            self.state = STARTING
        if operation in (COMMIT, END):
            self._last = operation
            self.state = ENDING
        self._await_answer(now)

    def _await_answer(self, now: float) -> None:
        self._news = now
        self._ask_at = now + PING_WAIT
        self._settle(now)

    # What happens

    def receive(self, msg: Msg, now: float) -> bool:
        if self.state == OVER:
            return False
        number, operation = self._place(msg)
        if msg.status == NO_RESPONDERS and not msg.data:
            self._refused(number, operation, NoStreamResponse(_text.decode(self._subject)), now)
        else:
            try:
                self._read(msg, number, operation, now)
            except JetStreamError as error:  # an answer that makes no sense
                self._give_up(error, in_doubt=True)
        self._settle(now)
        return self.state == OVER or self.sent < self.limit

    def _place(self, msg: Msg) -> tuple[int, int]:
        """The number of the message that this is an answer to, and what that message was for."""
        tokens = msg.raw_subject[len(self._base) :].split(b".")
        if len(tokens) == 3 and is_number(tokens[0]) and is_number(tokens[1]):  # FAST-16
            return int(tokens[0]), int(tokens[1])
        return 0, APPEND

    def _read(self, msg: Msg, number: int, operation: int, now: float) -> None:
        answer = read_object(msg.data)
        kind = answer.get("type")
        if kind == "ack":
            self._acknowledged(read_number(answer, "seq"), read_number(answer, "msgs"), now)
            if operation == PING and number == self.sent:
                self._all_came(now)
        elif kind == "gap":
            self._lose(Loss(read_number(answer, "last_seq"), read_number(answer, "seq") - 1), now)
        elif kind == "err":
            number = read_number(answer, "seq")
            self._lose(Loss(number, number, read_error(answer)), now)
        else:
            error = read_error(answer)
            if error is not None:
                self._refused(number, operation, error, now)
            else:
                self._finished(read_ack(msg.data), operation)

    def _acknowledged(self, number: int, flow: int, now: float) -> None:
        if number > self.sent:
            raise InvalidResponse("message %d of %d is acknowledged" % (number, self.sent))
        if number > self.stored:  # FAST-4: and all before it
            self.stored = number
            self._news = now
        self._flow = max(1, flow)
        if self.state == STARTING:
            self.state = OPEN
            self._news = now
            self._ask_at = now + PING_WAIT

    def _all_came(self, now: float) -> None:
        if self._checking:
            self._doubt(self.sent)
            self._checking = False
            self._news = now
        if self.state == ENDING and (self._gaps or self._last == END):
            self._order_end()  # FAST-11: all but this

    def _lose(self, loss: Loss, now: float) -> None:
        if self._gaps:
            self._tell(loss)
        else:
            self._fail(loss.error, now)

    def _tell(self, loss: Loss) -> None:
        """FAST-6: but for what was told before, maybe by another leader."""
        # Answers keep their order: losses up to the last acknowledgement have been told.
        sure = self._sure if self._checking else self.stored
        for number in range(max(loss.first, sure + 1), min(loss.last, self.sent) + 1):
            if number in self._told:
                continue
            self._told.add(number)
            self.lost += 1
            last = self.losses[-1] if self.losses else None
            if last is not None and last.last == number - 1 and last.error is loss.error:
                last.last = number
            else:
                self.losses.append(Loss(number, number, loss.error))
        self.losses = self.losses[-MOST_LOSSES:]

    def _doubt(self, last: int) -> None:
        """FAST-10: what was said of these may have been lost with the connection."""
        if self._gaps and self._sure < last:
            error = PublishInDoubt("the connection was lost: it may be stored or not")
            self._tell(Loss(self._sure + 1, last, error))

    def _refused(self, number: int, operation: int, error: NatsError, now: float) -> None:  # FAST-7
        """An error instead of an answer, or nobody was there."""
        if operation == PING:
            if isinstance(error, (NoStreamResponse, TooManyRequests)):
                self._ask_at = now + RETRY_WAIT  # there may be somebody later who has time
            else:
                self._give_up(self._trouble or error, in_doubt=True)
        elif number == 1:
            self._give_up(error)
        elif operation == END:
            self._trouble = error  # a ping will show that it did not come
        elif self._gaps:
            self._trouble = error
            self._tell(Loss(number, number, error))
            if operation == COMMIT:
                self._order_end()
        elif self.state != FAILING:
            self._fail(error, now)
            self._ping(now)  # else the server would wait for another message to see the gap

    def _fail(self, error: NatsError | None, now: float) -> None:
        """FAST-5: no more is sent; the final acknowledgement will tell what is stored."""
        if self._trouble is None:
            self._trouble = error
        if self.state != FAILING:
            self.state = FAILING
            self._news = now
            self._ask_at = now + PING_WAIT

    def _finished(self, ack: PubAck, operation: int) -> None:
        if ack.batch != self._id or ack.count > self.sent:
            raise InvalidResponse(
                "batch %s of %d messages is acknowledged as %s" % (self._id, self.sent, show(ack))
            )
        self.ack = ack
        self.stored = max(self.stored, ack.count)  # FAST-14: the count may be less
        rest = range(self.stored + 1, self.sent + 1)
        if self._last != APPEND and all(number in self._told for number in rest):
            self._end()
        else:
            # A batch of none may be one that the ping began, with a server that had forgotten ours.
            self._give_up(self._trouble, in_doubt=operation == PING and ack.count == 0)

    def _give_up(self, error: NatsError | None, in_doubt: bool = False) -> None:
        alone = self.state == STARTING or (self.state == ENDING and self.sent == 1)
        if alone and error is not None and not in_doubt:
            self.failure = error  # FAST-2: as of a publish
        else:
            self.failure = FastBatchFailed(self.stored, self.sent, in_doubt, error)
        self._end()

    def _end(self) -> None:
        if self._checking:
            self._doubt(self.stored)
        self.state = OVER
        self.leave()

    # Time and connections

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self.sent >= self.limit:
            if now >= self._news + self._patience:
                self._give_up(self._trouble, in_doubt=True)
            else:
                self._ping(now)
        elif self.sent == self._kept:
            self._ping(now)  # FAST-9
        self._kept = self.sent
        self._settle(now)
        return self.state == OVER

    def _ping(self, now: float) -> None:
        self._ask_at = now + PING_WAIT
        self.emit(self._subject, b"", b"%s%d.%d.$FI" % (self._base, self.sent, PING))

    def _order_end(self) -> None:
        self.emit(self._subject, b"", self.reply(END))

    def _settle(self, now: float) -> None:
        """What may be sent, and what the time is for, after anything has changed."""
        ready = self._online and not self._checking
        had_room = self.sent < self.limit
        if self.state == NEW:
            self.limit = 1 if ready else 0
            return
        open = self.state == OPEN and ready
        self.limit = self.stored + self._flow * self._max_acks if open else 0
        if open and self._told:  # FAST-3: for these no acknowledgement is due
            self._told = {number for number in self._told if number > self.stored}
            self.limit += len(self._told)
        if self.state == OVER or not self._online:
            self.deadline = None
        elif self.sent < self.limit:
            if not had_room or self.deadline is None:  # FAST-9: an answer keeps nothing alive
                self.deadline = now + KEEP_ALIVE
        else:
            if had_room:  # the flow is less than before
                self._news = now
                self._ask_at = now + PING_WAIT
            self.deadline = self._news + self._patience
            if self.state != STARTING:  # FAST-8: a ping as the first might begin another batch
                self.deadline = min(self._ask_at, self.deadline)

    def disconnected(self, now: float) -> None:
        self._online = False
        if self.state == STARTING:
            self._give_up(None, in_doubt=True)
            self.ready.append(self)
        if not self._checking:
            self._sure = self.stored
        self._checking = self.sent > 0
        self._settle(now)

    def connected(self, now: float) -> None:
        self._online = True
        if self._checking and self.state != OVER:
            self._ping(now)
            self._await_answer(now)
        else:
            self._settle(now)
            self.ready.append(self)

    def end(self, error: NatsError | None = None) -> bool:
        if self.state not in (NEW, OVER):
            self._give_up(error, in_doubt=True)
        self.limit = 0
        self.deadline = None
        return super().end(error)

    def pending(self) -> int:
        return self.sent - self.stored
