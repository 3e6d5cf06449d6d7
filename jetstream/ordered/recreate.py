"""Succession: one consumer after the other, so that no message is missed (ADR-17).

An ordered consumer lives in the memory of one server, and its messages are not acknowledged. If it
is gone, or a message is, the next one is created: it starts after the last message that arrived.

Lineage (lineage.py) is what lasts: the configuration, the name, the place in the stream. Succession
creates the next consumer for a machine that is subscribed to `<inbox>.*`:

    THERE     the consumer can be used
    ASKED     CONSUMER.CREATE was sent, with reply `<inbox>.c<serial>`; its response is due
    CHECKING  STREAM.INFO was sent, with reply `<inbox>.s<serial>`: is it the same stream as before?
    RESTING   the creation failed; the next try comes after a pause
    OFFLINE   there is no connection; the next one begins with a try
    ENDED     there will be no other: closed, or `error` says why

              reset    response    an error, `due`   disconnected   connected
    THERE     ASKED    -           -                 OFFLINE        -
    ASKED     -        THERE (1)   RESTING, ENDED    OFFLINE        -
    CHECKING  -        THERE (2)   RESTING (3)       OFFLINE        -
    RESTING   -        -           ASKED at `due`    OFFLINE        -
    OFFLINE   -        -           -                 -              ASKED
    ENDED     -        -           -                 -              -

    (1) the first consumer; the next ones CHECKING
    (2) ASKED if the stream was deleted and created again: its sequences start again, too
    (3) ENDED if the stream is gone; THERE if it fails for the second time in a row

The first try is at once. Then the pauses double from 1 s to 10 s, until a consumer has proved to be
of use: a message came, or a heartbeat. An error that the next try would meet again is the end. The
consumer before is deleted on the way, and so is one whose answer did not come in time.
"""

from __future__ import annotations

from jetstream.api.client import encode_json, read_reply
from jetstream.errors import JetStreamNotAvailable, ResetFailed
from jetstream.errors.api import (
    ApiError,
    AssetOffline,
    ConsumerExists,
    ConsumerLimitReached,
    InsufficientResources,
    JetStreamNotEnabled,
    StreamNotFound,
    TemporarilyUnavailable,
    TooManyRequests,
)
from jetstream.pull.fetch import LATE
from jetstream.schema.info import StreamInfo
from natsproto.connection.waitable import NO_RESPONDERS
from natsproto.errors import NatsError, TimeoutExpired
from natsproto.wire import text as _text
from natsproto.wire.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from jetstream.events import StreamRecreated
    from natsproto.wire.frames import Msg

    from .lineage import Lineage

    Order: TypeAlias = "tuple[bytes, bytes, bytes]"

SHORTEST_REST = 1.0
LONGEST_REST = 10.0
GRACE = 1.0
CHECK = 1.0  # how long the response to STREAM.INFO may take

THERE = "there"
ASKED = "asked"
CHECKING = "checking"
RESTING = "resting"
OFFLINE = "offline"
ENDED = "ended"

# ORDERED-10: these pass, whatever their code; so does all that is the server's own fault (5xx).
_PASSING = (
    AssetOffline,
    ConsumerExists,
    ConsumerLimitReached,
    InsufficientResources,
    JetStreamNotEnabled,
    TemporarilyUnavailable,
    TooManyRequests,
)


class Succession:
    """Makes the next consumer. A machine passes on what it is told, and publishes the orders.

    `due` is when to call handle_timer; `error` is why there will be no consumer any more.
    With `delivers` they are push consumers, each to a subject of its own: `<inbox>.d<serial>`. It
    gets the answer as well: the machine is subscribed to that alone, before the orders go out.
    """

    __slots__ = (
        "_api",
        "_delivers",
        "_doomed",
        "_events",
        "_excused",
        "_inbox",
        "_most",
        "_orders",
        "_orphan",
        "_timeout",
        "_used",
        "due",
        "error",
        "failures",
        "lineage",
        "state",
    )

    def __init__(
        self,
        lineage: Lineage,
        api: str,
        inbox: bytes,
        *,
        timeout: float = 5.0,
        max_attempts: int = 0,
        delivers: bool = False,
    ) -> None:
        self.lineage = lineage
        self._api = api  # the prefix of the API
        self._inbox = inbox
        self._timeout = timeout
        self._most = max_attempts  # 0: any number
        self._delivers = delivers
        self._orders: list[Order] = []
        self._events: list[StreamRecreated] = []
        self._doomed = ""  # the consumer that is to be deleted
        self._orphan = ""  # the consumer that one deletion may not reach
        self._used = False
        self._excused = False
        self.state = THERE if lineage.there else OFFLINE
        self.due: float | None = None
        self.failures = 0  # in a row, resets included
        self.error: NatsError | None = None

    def take_orders(self) -> list[Order]:
        """What is to be published: subject, payload and reply."""
        orders = self._orders
        self._orders = []
        return orders

    def take_events(self) -> list[StreamRecreated]:
        """Return what the user is to be notified of."""
        events = self._events
        self._events = []
        return events

    @property
    def deliver_subject(self) -> bytes:
        """Where the present consumer delivers to, if it is a push consumer."""
        return b"%s.d%d" % (self._inbox, self.lineage.serial)

    # Inputs

    def connected(self, now: float) -> None:
        """There is a connection. Without a consumer, one is asked for at once."""
        if self.state == OFFLINE:
            self.failures = 1  # should this try fail, the next one is not at once
            self._ask(now)

    def disconnected(self) -> None:
        """What was on its way is lost, so the consumer is of no use any more (ORDERED-8)."""
        if self.state != ENDED:
            self._abandon()
            self.state = OFFLINE
            self.due = None

    def proved(self) -> None:
        """The consumer is of use: a message came, or a heartbeat."""
        self.failures = 0

    def reset(self, why: NatsError, now: float) -> None:
        """The consumer is of no use any more: another one."""
        if self.state == THERE:
            self._abandon()
            self._rest(why, now)

    def receive(self, msg: Msg, now: float) -> NatsError | None:
        """Something on a reply subject of ours; why the consumer could not be made, if it was that.

        After a good answer `lineage.there` is true.
        """
        token = msg.raw_subject[len(self._inbox) + 1 :]
        if self.state == CHECKING and token == self._reply_token(b"s"):
            return self._checked(msg, now)
        if self.state != ASKED or token != self._reply_token(b"c"):
            return None  # late, or the response to a deletion
        try:
            if msg.status == NO_RESPONDERS and not msg.data:
                raise JetStreamNotAvailable("nobody answers calls of the JetStream API")
            self.lineage.installed(read_reply(msg.data))
        except NatsError as error:
            self.state = RESTING  # there is nothing to delete
            self._failed(error, now)
            return error
        if self.lineage.there:
            self._there()
        else:
            self._check(now)
        return None

    def handle_timer(self, now: float) -> NatsError | None:
        """`due` may have come; why the consumer could not be made, if its answer is overdue."""
        if self.due is None or now < self.due:
            return None
        if self.state == RESTING:
            self._ask(now)
            return None
        if now - self.due > LATE and not self._excused:
            # ORDERED-25: the timer rings late; the answer may still wait to be read.
            self._excused = True
            self.due = now + GRACE
            return None
        if self.state == CHECKING:
            text = "no answer to STREAM.INFO of %s" % shorten(self.lineage.stream)
            return self._unchecked(TimeoutExpired(text), now)
        text = "no answer to the creation of consumer %s" % shorten(self.lineage.name)
        error = TimeoutExpired(text)
        self._abandon()  # it may be there all the same
        self._failed(error, now)
        return error

    def close(self) -> None:
        """Create no more consumers, and delete the present one."""
        self._abandon()
        if self.state not in (THERE, CHECKING) and self._doomed:
            # ORDERED-29: the server may process the deletion before the creation; and without a
            # connection the deletion is not sent.
            self._orphan = self._doomed
        self._delete()
        self.state = ENDED
        self.due = None

    def take_orphan(self) -> tuple[str, bool]:
        """Return, once after `close`, the consumer that one deletion may not reach; "" if none.

        With it goes whether the consumer may have delivered messages.
        """
        orphan = self._orphan
        self._orphan = ""
        return orphan, self._used

    # How it works

    def _reply_token(self, letter: bytes) -> bytes:
        """The last part of the subject of a response; push consumers deliver there, too."""
        return b"%s%d" % (b"d" if self._delivers else letter, self.lineage.serial)

    def _there(self) -> None:
        self.state = THERE
        self.due = None

    def _check(self, now: float) -> None:
        """Ask for the stream: the answer is about the stream of this consumer, or a later one."""
        subject = "%s.STREAM.INFO.%s" % (self._api, self.lineage.stream)
        reply = b"%s.%s" % (self._inbox, self._reply_token(b"s"))
        self._orders.append((subject.encode(), b"", reply))
        self.state = CHECKING
        self.due = now + min(self._timeout, CHECK)
        self._excused = False

    def _checked(self, msg: Msg, now: float) -> NatsError | None:
        try:
            if msg.status == NO_RESPONDERS and not msg.data:
                raise JetStreamNotAvailable("no responders to STREAM.INFO")
            created = StreamInfo.from_json(read_reply(msg.data)).created
        except StreamNotFound as error:
            self._failed(error, now)
            return error
        except NatsError as error:
            return self._unchecked(error, now)
        event = self.lineage.confirm(created)
        if event is None:
            self._there()
        else:
            self._events.append(event)
            self._abandon()
            self._ask(now)
        return None

    def _unchecked(self, error: NatsError, now: float) -> NatsError | None:
        """Try again with another consumer, or use this one without the check."""
        if self.lineage.trust():
            self._there()
            return None
        self._abandon()
        self._rest(error, now)
        return error

    def _abandon(self) -> None:
        if self.state in (THERE, ASKED, CHECKING):
            self._doomed = self.lineage.name
            # A push consumer delivers from its creation on.
            self._used = self.state != ASKED or self._delivers
        self.lineage.there = False

    def _delete(self) -> None:
        if self._doomed:
            subject = "%s.CONSUMER.DELETE.%s.%s" % (self._api, self.lineage.stream, self._doomed)
            self._orders.append((subject.encode(), b"", self._inbox + b".x"))
            self._doomed = ""

    def _ask(self, now: float) -> None:
        self._delete()
        deliver = "%s.d%d" % (_text.decode(self._inbox), self.lineage.serial + 1)
        endpoint, body = self.lineage.successor(deliver if self._delivers else "")
        reply = b"%s.%s" % (self._inbox, self._reply_token(b"c"))
        subject = "%s.%s" % (self._api, endpoint)
        self._orders.append((_text.encode(subject), encode_json(body), reply))
        self.state = ASKED
        self.due = now + self._timeout
        self._excused = False

    def _failed(self, error: NatsError, now: float) -> None:
        if isinstance(error, ApiError) and error.code < 500 and not isinstance(error, _PASSING):
            self._end(error)
        else:
            self._rest(error, now)

    def _rest(self, error: NatsError, now: float) -> None:
        failures = self.failures
        self.failures += 1
        if self._most and failures >= self._most:
            self._end(ResetFailed(failures, error))
        elif failures:
            # ORDERED-9: a consumer that is lost without having been of any use counts, too.
            pause = SHORTEST_REST * 2 ** min(failures - 1, 10)
            self.state = RESTING
            self.due = now + min(pause, LONGEST_REST)
        else:
            self._ask(now)

    def _end(self, error: NatsError) -> None:
        self.close()
        self.error = error
