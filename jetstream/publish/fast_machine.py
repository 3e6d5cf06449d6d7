"""FastBatchMachine: a fast batch (ADR-50), stored on arrival, acknowledged at intervals.

The reply subject of each message has the batch, the number of the message, and its operation. The
server responds to that subject, so every response names the message that it is about.

    state      input                              next state
    NEW        the first message is sent          STARTING; ENDING if it is the last one as well
    STARTING   an ack, which has the flow         OPEN
               a 503, and there is time left      STARTING: it is sent again
               an error, a 503, or no response    OVER: that error
    OPEN       the last message is sent           ENDING
               a gap, or a message is refused     FAILING; the batch continues if gaps are allowed
    ENDING     the final ack, for all messages    OVER: done
               a gap, or a message is refused     FAILING; the batch continues if gaps are allowed
    FAILING    the final ack, for some messages   OVER: these are stored, the others are not
    any        unknown batch, or no response      OVER: the rest is in doubt

Messages may be sent while OPEN, until `max_acks` acknowledgments are outstanding. Each of them says
how many messages the next one covers; lost messages are not acknowledged. While a caller waits for
a response, the machine sends a ping every second, to which the server repeats responses that may
have been lost. A ping also keeps an idle batch alive, and on a new connection it finds out whether
all messages have arrived. Responses sent to the previous connection may be lost: with gaps, losses
after `_sure` are in doubt.
"""

from __future__ import annotations

from jetstream.api.client import is_no_responders, read_error, read_number, read_object
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
from natsproto.connection.effects import Publish
from natsproto.connection.receiver import Receiver
from natsproto.wire import text as _text
from natsproto.wire.text import show

from .request import RETRIES, RETRY_WAIT, read_ack

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.pub_ack import PubAck
    from natsproto.errors import NatsError
    from natsproto.wire.frames import Msg

# The operation of a message: the last but one token of its reply subject.
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


class FastBatchMachine(Receiver):
    """The state of a batch: `sent` messages were sent, and the first `stored` are acknowledged.

    While `sent` is below `limit` another message may be sent; call `note_sent` at once. When the
    batch is OVER, either `ack` is the final acknowledgment, or `failure` is the error.
    """

    __slots__ = (
        "_again",
        "_ask_at",
        "_base",
        "_checking",
        "_election",
        "_first",
        "_flow",
        "_gaps",
        "_id",
        "_keep_at",
        "_kept",
        "_last",
        "_max_acks",
        "_misses",
        "_progress_at",
        "_online",
        "_patience",
        "_subject",
        "_sure",
        "_reported",
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
        self,
        inbox: bytes,
        flow: int,
        max_acks: int,
        allow_gaps: bool,
        patience: float,
        election: float,
    ) -> None:
        super().__init__()
        self._base = b"%s.%d.%s." % (inbox, flow, b"ok" if allow_gaps else b"fail")
        self._id = _text.decode(inbox[inbox.rfind(b".") + 1 :])
        self._flow = flow
        self._max_acks = max_acks
        self._gaps = allow_gaps
        self._patience = patience
        self._election = election  # for how long 503s are tolerated
        self._subject = b""  # of the first message: pings go to the same stream
        self._first: Publish | None = None  # the first message, until it is answered
        self._misses = 0  # how often there were no responders for it
        self._again = False  # it will be sent again: no server has received it
        self._last = APPEND  # or the operation that ends the batch: COMMIT, END
        self._online = False
        self._checking = False  # new connection: it is not known whether all messages arrived
        self._sure = 0  # until then, all losses up to this number are known
        self._reported: set[int] = set()  # the losses after that
        self._trouble: NatsError | None = None  # the first error
        self._progress_at = 0.0  # time of the last progress
        self._ask_at = 0.0  # time of the next ping, while a caller waits
        self._keep_at = 0.0  # time of the next check whether the batch is idle (FAST-9)
        self._kept = 0  # `sent` at the last check
        self.state: int = NEW
        self.limit: int = 0
        self.sent: int = 0
        self.stored: int = 0
        self.ack: PubAck | None = None
        self.failure: NatsError | None = None
        self.lost: int = 0
        self.losses: list[Loss] = []

    # For senders

    def reply(self, operation: int) -> bytes:
        """Return the reply subject of the next message."""
        return b"%s%d.%d.$FI" % (self._base, self.sent + 1, operation)  # FAST-1

    def note_sent(
        self,
        operation: int,
        subject: bytes,
        now: float,
        data: bytes = b"",
        block: bytes | None = None,
    ) -> None:
        """Record that a message was sent: the first (START), the last (COMMIT), another (APPEND).

        END ends the batch without a message. For APPEND it is enough to count `sent` while it is
        below `limit`.
        """
        if self.state == NEW:
            self._subject = subject
            self._first = Publish(subject, data, self.reply(operation), block)
            self.state = STARTING
        if operation == END:
            self._emit_end()
        else:
            self.sent += 1
        if operation in (COMMIT, END):
            self._last = operation
            self.state = ENDING
        self._await_answer(now)

    def _await_answer(self, now: float) -> None:
        self._keep_at = now + KEEP_ALIVE
        self._progress_at = now
        self._ask_at = now + PING_WAIT
        self._settle(now)

    # Inputs

    def receive(self, msg: Msg, now: float) -> bool:
        if self.state == OVER:
            return False
        number, operation = self._place(msg)
        if is_no_responders(msg):
            self._refused(number, operation, NoStreamResponse(_text.decode(self._subject)), now)
        else:
            try:
                self._read(msg, number, operation, now)
            except JetStreamError as error:  # an invalid response
                self._give_up(error, in_doubt=True)
        self._settle(now)
        return self.state == OVER or self.sent < self.limit

    def _place(self, msg: Msg) -> tuple[int, int]:
        """Return the number and the operation of the message that this responds to."""
        tokens = msg.raw_subject[len(self._base) :].split(b".")
        if len(tokens) == 3 and is_number(tokens[0]) and is_number(tokens[1]):  # D-FAST-16
            return int(tokens[0]), int(tokens[1])
        return 0, APPEND

    def _read(self, msg: Msg, number: int, operation: int, now: float) -> None:
        answer = read_object(msg.data)
        kind = answer.get("type")
        if kind == "ack":
            self._acknowledged(read_number(answer, "seq"), read_number(answer, "msgs"), now)
            if operation == PING and number == self.sent:
                self._all_arrived(now)
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
        if number > self.stored:  # FAST-4: it covers all earlier ones
            self.stored = number
            self._progress_at = now
        self._flow = max(1, flow)
        if self.state == STARTING:
            self._first = None
            self.state = OPEN
            self._progress_at = now
            self._ask_at = now + PING_WAIT

    def _all_arrived(self, now: float) -> None:
        if self._checking:
            self._doubt(self.sent)
            self._checking = False
            self._progress_at = now
        if self.state == ENDING and (self._gaps or self._last == END):
            self._emit_end()  # FAST-11: only the end itself is missing

    def _lose(self, loss: Loss, now: float) -> None:
        if self._gaps:
            self._report_loss(loss)
        else:
            self._fail(loss.error, now)

    def _report_loss(self, loss: Loss) -> None:
        """Record lost messages, except those that were reported before (FAST-6)."""
        # Responses arrive in order: losses up to the last acknowledgment were reported.
        sure = self._sure if self._checking else self.stored
        for number in range(max(loss.first, sure + 1), min(loss.last, self.sent) + 1):
            if number in self._reported:
                continue
            self._reported.add(number)
            self.lost += 1
            last = self.losses[-1] if self.losses else None
            if last is not None and last.last == number - 1 and last.error is loss.error:
                last.last = number
            else:
                self.losses.append(Loss(number, number, loss.error))
        self.losses = self.losses[-MOST_LOSSES:]

    def _doubt(self, last: int) -> None:
        """Record messages as in doubt whose responses the connection may have lost (D-FAST-10)."""
        if self._gaps and self._sure < last:
            error = PublishInDoubt("the connection was lost: it may or may not be stored")
            self._report_loss(Loss(self._sure + 1, last, error))

    def _refused(self, number: int, operation: int, error: NatsError, now: float) -> None:  # FAST-7
        """Handle an error without a type, or a 503 (no responders)."""
        if operation == PING:
            if isinstance(error, (NoStreamResponse, TooManyRequests)):
                self._ask_at = now + RETRY_WAIT  # the server may be ready later
            else:
                self._give_up(self._trouble or error, in_doubt=True)
        elif number == 1:
            if self._first is None or not isinstance(error, NoStreamResponse):
                self._give_up(error)
            else:
                self._missed(error, now)
        elif operation == END:
            self._trouble = error  # a ping will show that it did not arrive
        elif self._gaps:
            self._trouble = error
            self._report_loss(Loss(number, number, error))
            if operation == COMMIT:
                self._emit_end()
        elif self.state != FAILING:
            self._fail(error, now)
            self._ping(now)  # otherwise the server notices the gap only at the next message

    def _missed(self, error: NoStreamResponse, now: float) -> None:  # D-FAST-17
        """Send the first message again later, unless that was tried for long enough."""
        self._misses += 1
        waited = now - self._progress_at
        spent = self._misses > RETRIES and waited >= self._election
        if spent or waited + RETRY_WAIT >= self._patience:
            self._give_up(error)
        else:
            self._trouble = error
            self._ask_at = now + RETRY_WAIT
            self._again = True

    def _repeat(self, now: float) -> None:
        """Send the first message again."""
        assert self._first is not None
        self._trouble = None
        self._ask_at = now + PING_WAIT
        self._again = False
        self.effects.append(self._first)

    def unsent(self, effect: Publish, error: NatsError) -> None:
        if effect is self._first:  # the server of the new connection has other limits
            self._give_up(error)
            self.wake()

    def _fail(self, error: NatsError | None, now: float) -> None:
        """Stop sending, and wait for the final acknowledgment to know what is stored (FAST-5)."""
        if self._trouble is None:
            self._trouble = error
        if self.state != FAILING:
            self.state = FAILING
            self._progress_at = now
            self._ask_at = now + PING_WAIT

    def _finished(self, ack: PubAck, operation: int) -> None:
        if ack.batch != self._id or ack.count > self.sent:
            raise InvalidResponse(
                "batch %s of %d messages is acknowledged as %s" % (self._id, self.sent, show(ack))
            )
        self.ack = ack
        self.stored = max(self.stored, ack.count)  # FAST-14: the count may be lower
        rest = range(self.stored + 1, self.sent + 1)
        if self._last != APPEND and all(number in self._reported for number in rest):
            self._end()
        else:
            # An empty batch may be one that the ping began at a server that had forgotten ours.
            self._give_up(self._trouble, in_doubt=operation == PING and ack.count == 0)

    def _give_up(self, error: NatsError | None, in_doubt: bool = False) -> None:
        alone = self.state == STARTING or (self.state == ENDING and self.sent == 1)
        if alone and error is not None and not in_doubt:
            self.failure = error  # FAST-2: the error of a single publish
        else:
            self.failure = FastBatchFailed(self.stored, self.sent, in_doubt, error)
        self._end()

    def _end(self) -> None:
        if self._checking:
            self._doubt(self.stored)
        self.state = OVER
        self._first = None
        self._again = False
        self.leave()

    # Time and connections

    def handle_timer(self, now: float) -> bool:
        self.deadline = None
        if self.sent >= self.limit:
            if now >= self._progress_at + self._patience:
                self._give_up(self._trouble, in_doubt=not self._again)
            elif self._again:
                self._repeat(now)
            else:
                self._ping(now)
        elif self.sent == self._kept or now > self._keep_at + PING_WAIT:  # idle, or checked late
            self._ping(now)  # FAST-9
        self._keep_at = now + KEEP_ALIVE
        self._kept = self.sent
        self._settle(now)
        return self.state == OVER

    def _ping(self, now: float) -> None:
        self._ask_at = now + PING_WAIT
        self.emit(self._subject, b"", b"%s%d.%d.$FI" % (self._base, self.sent, PING))

    def _emit_end(self) -> None:
        self.emit(self._subject, b"", self.reply(END))

    def _settle(self, now: float) -> None:
        """Update the limit and the deadline after any change."""
        ready = self._online and not self._checking
        had_room = self.sent < self.limit
        if self.state == NEW:
            self.limit = 1 if ready else 0
            return
        open = self.state == OPEN and ready
        self.limit = self.stored + self._flow * self._max_acks if open else 0
        if open and self._reported:  # FAST-3: these are not acknowledged
            self._reported = {number for number in self._reported if number > self.stored}
            self.limit += len(self._reported)
        if self.state == OVER or not self._online:
            self.deadline = None
        elif self.sent < self.limit:
            self.deadline = max(now, self._keep_at)  # acknowledgments do not postpone it
        else:
            if had_room:  # the flow is less than before
                self._progress_at = now
                self._ask_at = now + PING_WAIT
            self.deadline = self._progress_at + self._patience
            # FAST-8: a ping before the start might begin another batch.
            if self.state != STARTING or self._again:
                self.deadline = min(self._ask_at, self.deadline)

    def disconnected(self, now: float) -> None:
        self._online = False
        if self.state == STARTING and not self._again:
            self._give_up(None, in_doubt=True)
            self.wake()
        if not self._checking:
            self._sure = self.stored
        self._checking = self.sent > 0 and not self._again
        self._settle(now)

    def connected(self, now: float) -> None:
        self._online = True
        if self._again:
            self._repeat(now)
            self._await_answer(now)
        elif self._checking and self.state != OVER:
            self._ping(now)
            self._await_answer(now)
        else:
            self._settle(now)
            self.wake()

    def end(self, error: NatsError | None = None) -> bool:
        if self.state not in (NEW, OVER):
            self._give_up(error, in_doubt=not self._again)
        self.limit = 0
        self.deadline = None
        return super().end(error)

    def pending(self) -> int:
        return self.sent - self.stored
