"""Recreator: create one consumer after the other, so that no message is missed (ADR-17).

An ordered consumer lives in the memory of one server, and its messages are not acknowledged. If the
consumer or a message is lost, the next one is created: it starts after the last message that
arrived.

Cursor (cursor.py) holds what persists: the configuration, the name, the position in the stream.
Recreator creates the next consumer for a machine that is subscribed to `<inbox>.*`:

    READY     the consumer can be used
    CREATING  CONSUMER.CREATE was sent, with reply `<inbox>.c<serial>`; its response is due
    CHECKING  STREAM.INFO was sent, with reply `<inbox>.s<serial>`: is it the same stream as before?
    BACKOFF   the creation failed; the next attempt follows after a pause
    OFFLINE   there is no connection; the next one begins with an attempt
    ENDED     there will be no other consumer: closed, or `error` says why

              reset      response    an error, `due`     disconnected   connected
    READY     CREATING   -           -                   OFFLINE        -
    CREATING  -          READY (1)   BACKOFF, ENDED      OFFLINE        -
    CHECKING  -          READY (2)   BACKOFF (3)         OFFLINE        -
    BACKOFF   -          -           CREATING at `due`   OFFLINE        -
    OFFLINE   -          -           -                   -              CREATING
    ENDED     -          -           -                   -              -

    (1) for the first consumer; CHECKING for later ones
    (2) CREATING if the stream was deleted and created again: its sequences start again, too
    (3) ENDED if the stream is gone; READY if it fails for the second time in a row

The first attempt is immediate. Then the pauses double from 1 s to 10 s, until a consumer has proved
to work by a message or a heartbeat. An error that the next attempt would get again ends it. The
previous consumer is deleted, and so is one whose creation was not answered in time.
"""

from __future__ import annotations

from jetstream.api.client import encode_json, is_no_responders, read_reply
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
from jetstream.machine.cleanup import clean_up
from jetstream.pull.silence import LATE
from jetstream.schema.stream_info import StreamInfo
from natsproto.connection.effects import Publish
from natsproto.errors import NatsError, TimeoutExpired
from natsproto.wire import text as _text
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.api.client import ApiClient
    from jetstream.events import StreamRecreated
    from natsproto.connection.effects import MachineEffect
    from natsproto.wire.frames import Msg

    from .cursor import Cursor

SHORTEST_BACKOFF = 1.0
LONGEST_BACKOFF = 10.0
GRACE = 1.0
CHECK = 1.0  # how long the response to STREAM.INFO may take

READY = "ready"
CREATING = "creating"
CHECKING = "checking"
BACKOFF = "backoff"
OFFLINE = "offline"
ENDED = "ended"

# ORDERED-10: these are temporary, regardless of their code; so are all server errors (5xx).
_PASSING = (
    AssetOffline,
    ConsumerExists,
    ConsumerLimitReached,
    InsufficientResources,
    JetStreamNotEnabled,
    TemporarilyUnavailable,
    TooManyRequests,
)


class Recreator:
    """Creates the next consumer. A policy passes inputs to it, and a machine publishes its effects.

    `due` is when to call handle_timer; `error` is why there will be no other consumer.
    With `delivers`, they are push consumers, each with its own subject, `<inbox>.d<serial>`. The
    responses go there as well, because the machine is subscribed only to that subject.
    """

    __slots__ = (
        "_api",
        "_delivers",
        "_doomed",
        "_events",
        "_grace_used",
        "_inbox",
        "_most",
        "_effects",
        "_orphan",
        "_timeout",
        "_used",
        "due",
        "error",
        "failures",
        "cursor",
        "state",
    )

    def __init__(
        self,
        cursor: Cursor,
        api: str,
        inbox: bytes,
        *,
        timeout: float = 5.0,
        max_attempts: int = 0,
        delivers: bool = False,
    ) -> None:
        self.cursor: Cursor = cursor
        self._api = api  # the prefix of the API
        self._inbox = inbox
        self._timeout = timeout
        self._most = max_attempts  # 0: any number
        self._delivers = delivers
        self._effects: list[MachineEffect] = []
        self._events: list[StreamRecreated] = []
        self._doomed = ""  # the consumer to delete
        self._orphan = ""  # the consumer that one deletion may not reach
        self._used = False
        self._grace_used = False
        self.state = READY if cursor.ready else OFFLINE
        self.due: float | None = None
        self.failures: int = 0  # in a row, resets included
        self.error: NatsError | None = None

    def take_effects(self) -> list[MachineEffect]:
        """Remove and return the messages to publish."""
        effects = self._effects
        self._effects = []
        return effects

    def take_events(self) -> list[StreamRecreated]:
        """Remove and return the events for the user."""
        events = self._events
        self._events = []
        return events

    @property
    def deliver_subject(self) -> bytes:
        """The subject that the current consumer delivers to, if it is a push consumer."""
        return b"%s.d%d" % (self._inbox, self.cursor.serial)

    # Inputs

    def connected(self, now: float) -> None:
        """Create a consumer at once, if there is none."""
        if self.state == OFFLINE:
            self.failures = 1  # if this attempt fails, the next one is not immediate
            self._create(now)

    def disconnected(self) -> None:
        """Abandon the consumer, because messages in flight are lost (ORDERED-8)."""
        if self.state != ENDED:
            self._abandon()
            self.state = OFFLINE
            self.due = None

    def proved(self) -> None:
        """Record that the consumer works: a message or a heartbeat arrived."""
        self.failures = 0

    def reset(self, why: NatsError, now: float) -> None:
        """Replace the consumer, which is lost."""
        if self.state == READY:
            self._abandon()
            self._back_off(why, now)

    def receive(self, msg: Msg, now: float) -> NatsError | None:
        """Take a response; return the error if the consumer could not be created.

        After success `cursor.ready` is true.
        """
        token = msg.raw_subject[len(self._inbox) + 1 :]
        if self.state == CHECKING and token == self._reply_token(b"s"):
            return self._checked(msg, now)
        if self.state != CREATING or token != self._reply_token(b"c"):
            return None  # a late response, or the response to a deletion
        try:
            self.cursor.installed(_read_answer(msg, "CONSUMER.CREATE"))
        except NatsError as error:
            self.state = BACKOFF  # nothing to delete
            self._failed(error, now)
            return error
        if self.cursor.ready:
            self._use()
        else:
            self._check(now)
        return None

    def handle_timer(self, now: float) -> NatsError | None:
        """Do the work that is due; return the error if a response is overdue."""
        if self.due is None or now < self.due:
            return None
        if self.state == BACKOFF:
            self._create(now)
            return None
        if now - self.due > LATE and not self._grace_used:
            # D-ORDERED-25: the timer fired late; the response may still be unread.
            self._grace_used = True
            self.due = now + GRACE
            return None
        if self.state == CHECKING:
            text = "no answer to STREAM.INFO of %s" % shorten(self.cursor.stream)
            return self._unchecked(TimeoutExpired(text), now)
        text = "no answer to the creation of consumer %s" % shorten(self.cursor.name)
        error = TimeoutExpired(text)
        self._abandon()  # it may have been created anyway
        self._failed(error, now)
        return error

    def close(self) -> None:
        """Create no more consumers, and delete the current one."""
        self._abandon()
        if self.state not in (READY, CHECKING) and self._doomed:
            # D-ORDERED-29: the server may process the deletion before the creation; and without a
            # connection the deletion is not sent.
            self._orphan = self._doomed
        self._delete()
        self.state = ENDED
        self.due = None

    def take_orphan(self) -> tuple[str, bool]:
        """Return, once after `close`, a consumer that the deletion may have missed; "" if none.

        Also return whether the consumer may have delivered messages.
        """
        orphan = self._orphan
        self._orphan = ""
        return orphan, self._used

    # How it works

    def _publish(self, subject: str, data: bytes, reply: bytes) -> None:
        self._effects.append(Publish(_text.encode(subject), data, reply, None))

    def _reply_token(self, letter: bytes) -> bytes:
        """Return the last part of the subject of a response; push consumers deliver there, too."""
        return b"%s%d" % (b"d" if self._delivers else letter, self.cursor.serial)

    def _use(self) -> None:
        self.state = READY
        self.due = None

    def _check(self, now: float) -> None:
        """Request STREAM.INFO; the response describes this consumer's stream or a later one."""
        subject = "%s.STREAM.INFO.%s" % (self._api, self.cursor.stream)
        reply = b"%s.%s" % (self._inbox, self._reply_token(b"s"))
        self._publish(subject, b"", reply)
        self.state = CHECKING
        self.due = now + min(self._timeout, CHECK)
        self._grace_used = False

    def _checked(self, msg: Msg, now: float) -> NatsError | None:
        try:
            created = StreamInfo.from_json(_read_answer(msg, "STREAM.INFO")).created
        except StreamNotFound as error:
            self._failed(error, now)
            return error
        except NatsError as error:
            return self._unchecked(error, now)
        event = self.cursor.confirm(created)
        if event is None:
            self._use()
        else:
            self._events.append(event)
            self._abandon()
            self._create(now)
        return None

    def _unchecked(self, error: NatsError, now: float) -> NatsError | None:
        """Try again with another consumer, or use this one without the check."""
        if self.cursor.trust():
            self._use()
            return None
        self._abandon()
        self._back_off(error, now)
        return error

    def _abandon(self) -> None:
        if self.state in (READY, CREATING, CHECKING):
            self._doomed = self.cursor.name
            # A push consumer delivers as soon as it is created.
            self._used = self.state != CREATING or self._delivers
        self.cursor.ready = False

    def _delete(self) -> None:
        if self._doomed:
            subject = "%s.CONSUMER.DELETE.%s.%s" % (self._api, self.cursor.stream, self._doomed)
            self._publish(subject, b"", self._inbox + b".x")
            self._doomed = ""

    def _create(self, now: float) -> None:
        self._delete()
        deliver = "%s.d%d" % (_text.decode(self._inbox), self.cursor.serial + 1)
        endpoint, body = self.cursor.next_consumer(deliver if self._delivers else "")
        reply = b"%s.%s" % (self._inbox, self._reply_token(b"c"))
        subject = "%s.%s" % (self._api, endpoint)
        self._publish(subject, encode_json(body), reply)
        self.state = CREATING
        self.due = now + self._timeout
        self._grace_used = False

    def _failed(self, error: NatsError, now: float) -> None:
        if isinstance(error, ApiError) and error.code < 500 and not isinstance(error, _PASSING):
            self._end(error)
        else:
            self._back_off(error, now)

    def _back_off(self, error: NatsError, now: float) -> None:
        failures = self.failures
        self.failures += 1
        if self._most and failures >= self._most:
            self._end(ResetFailed(failures, error))  # ORDERED-11
        elif failures:
            # ORDERED-9: a consumer that is lost before it delivered anything counts as a failure.
            pause = SHORTEST_BACKOFF * 2 ** min(failures - 1, 10)
            self.state = BACKOFF
            self.due = now + min(pause, LONGEST_BACKOFF)
        else:
            self._create(now)

    def _end(self, error: NatsError) -> None:
        self.close()
        self.error = error


def clean_up_after(api: ApiClient, recreator: Recreator) -> None:
    """Look up a consumer that an ordered one may have left on the server (D-ORDERED-29)."""
    orphan, used = recreator.take_orphan()
    if orphan:
        clean_up(api, recreator.cursor.stream, orphan, used=used)


def _read_answer(msg: Msg, call: str) -> dict[str, Any]:
    """Return the JSON object of a response; raise its error, or the one for no responders."""
    if is_no_responders(msg):
        raise JetStreamNotAvailable("no responders to %s" % call)
    return read_reply(msg.data)
