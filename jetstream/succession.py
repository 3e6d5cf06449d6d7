"""Succession: one consumer after the other, so that no message is missed (ADR-17).

An ordered consumer lives in the memory of one server, and its messages are not acknowledged. If it
is gone, or a message is, the next one is made: it starts behind the last message that came.

Lineage is what lasts: the configuration, the name (`<prefix>_<serial>`), the place in the stream.
Succession makes the next consumer for a machine that is subscribed to `<inbox>.*`:

    THERE     the consumer can be used
    ASKED     CONSUMER.CREATE was sent, with reply `<inbox>.c<serial>`; its answer is due
    RESTING   that failed; the next try comes after a pause
    OFFLINE   there is no connection; the next one begins with a try
    ENDED     there will be no other: closed, or `error` says why

              reset    answer   an error, `due`   disconnected   connected
    THERE     ASKED    -        -                 OFFLINE        -
    ASKED     -        THERE    RESTING, ENDED    OFFLINE        -
    RESTING   -        -        ASKED at `due`    OFFLINE        -
    OFFLINE   -        -        -                 -              ASKED
    ENDED     -        -        -                 -              -

The first try is at once. Then the pauses double from 1 s to 10 s, until a consumer has proved to be
of use: a message came, or a heartbeat. An error that the next try would meet again is the end. The
consumer before is deleted on the way, and so is one whose answer did not come in time.
"""

from __future__ import annotations

from natsproto import _text
from natsproto.errors import NatsError, TimeoutExpired
from natsproto.waitable import NO_RESPONDERS

from .api_errors import (
    ApiError,
    AssetOffline,
    ConsumerExists,
    ConsumerLimitReached,
    InsufficientResources,
    JetStreamNotEnabled,
    TemporarilyUnavailable,
    TooManyRequests,
)
from .call import encode_json, read_reply
from .errors import JetStreamNotAvailable, ResetFailed
from .fetch import LATE
from .info import ConsumerInfo
from .metadata import read_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from natsproto.frames import Msg

    Order: TypeAlias = "tuple[bytes, bytes, bytes]"

SHORTEST_REST = 1.0
LONGEST_REST = 10.0
GRACE = 1.0

THERE = "there"
ASKED = "asked"
RESTING = "resting"
OFFLINE = "offline"
ENDED = "ended"

# What a message is, by the reply subject that it came with.
NEXT = "next"
SEEN = "seen"  # of this consumer, and in order, but before the place where it was to start
STALE = "stale"  # not of this consumer
GAP = "gap"

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


class Lineage:
    """The consumers of one ordered consumer: what they share, and how far they have come.

    `config` is the server's JSON, without name and without what the place in the stream decides.
    `start` is the sequence that the next one starts at; 0: where the policy of `config` says.
    `ahead` is how many messages are still to come until the last of each subject is here; until
    then the next one begins with these anew, and what came is passed over. 0: it does not count.
    """

    __slots__ = (
        "_config",
        "_prefix",
        "ahead",
        "consumer_seq",
        "info",
        "name",
        "serial",
        "start",
        "stream",
        "there",
    )

    def __init__(self, stream: str, prefix: str, config: dict[str, Any]) -> None:
        self.stream = stream
        self._prefix = prefix
        self._config = config
        self.serial = 0
        self.name = ""
        self.start = 0
        self.ahead = 0
        self.consumer_seq = 0  # of the last message
        self.there = False
        self.info: ConsumerInfo | None = None

    def successor(self, deliver_subject: str = "") -> tuple[str, dict[str, Any]]:
        """The next consumer: endpoint and body of the call that creates it."""
        self.serial += 1
        self.name = "%s_%d" % (self._prefix, self.serial)  # ORDERED-2
        self.consumer_seq = 0
        self.there = False
        config = dict(self._config)
        config["name"] = self.name
        if deliver_subject:
            config["deliver_subject"] = deliver_subject
        if self.start and not self.ahead:
            # ORDERED-5: where the last one was, whatever the policy of the first.
            config.pop("opt_start_time", None)
            config["deliver_policy"] = "by_start_sequence"
            config["opt_start_seq"] = self.start
        endpoint = "CONSUMER.CREATE.%s.%s" % (self.stream, self.name)
        if config.get("filter_subject"):
            endpoint = "%s.%s" % (endpoint, config["filter_subject"])  # CALL-8
        return endpoint, {"stream_name": self.stream, "config": config, "action": "create"}

    def installed(self, reply: dict[str, Any]) -> None:
        """The answer to that call; ConsumerExists if it is about somebody else's consumer."""
        info = ConsumerInfo.from_json(reply)
        if info.delivered.consumer_seq:
            # ORDERED-3: servers take the same configuration for the same consumer.
            raise ConsumerExists(400, 10148, "consumer %r was in use already" % self.name)
        self.info = info
        self.there = True
        if self.ahead:
            self.ahead = info.num_pending
        if not self.start and self._config.get("deliver_policy") != "last_per_subject":
            self.start = info.delivered.stream_seq + 1  # ORDERED-6

    def judge(self, reply: bytes) -> str:
        """What the message with this reply subject is; what is NEXT is counted."""
        place = read_place(reply)
        if place is None or not self.there:
            return STALE
        name, stream_seq, consumer_seq = place
        if _text.decode(name) != self.name:
            return STALE  # ORDERED-4
        if consumer_seq != self.consumer_seq + 1:
            return GAP
        self.consumer_seq = consumer_seq
        if self.ahead:
            self.ahead -= 1
        if stream_seq < self.start:
            return SEEN  # ORDERED-7
        self.start = stream_seq + 1
        return NEXT


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
        "_excused",
        "_inbox",
        "_letter",
        "_most",
        "_orders",
        "_orphan",
        "_timeout",
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
        self._letter = b"d" if delivers else b"c"
        self._orders: list[Order] = []
        self._doomed = ""  # the consumer that is to be deleted
        self._orphan = ""  # the consumer that one deletion may not reach
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
        if self.state != ASKED or token != b"%s%d" % (self._letter, self.lineage.serial):
            return None  # late, or the answer to a deletion
        try:
            if msg.status == NO_RESPONDERS and not msg.data:
                raise JetStreamNotAvailable("nobody answers calls of the JetStream API")
            self.lineage.installed(read_reply(msg.data))
        except NatsError as error:
            self.state = RESTING  # there is nothing to delete
            self._failed(error, now)
            return error
        self.state = THERE
        self.due = None
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
        error = TimeoutExpired("no answer to the creation of consumer %r" % self.lineage.name)
        self._abandon()  # it may be there all the same
        self._failed(error, now)
        return error

    def close(self) -> None:
        """Create no more consumers, and delete the present one."""
        self._abandon()
        if self.state != THERE and self._doomed:
            # ORDERED-29: the server may process the deletion before the creation; and without a
            # connection the deletion is not sent.
            self._orphan = self._doomed
        self._delete()
        self.state = ENDED
        self.due = None

    def take_orphan(self) -> str:
        """Return, once after `close`, the consumer that one deletion may not reach; "" if none."""
        orphan = self._orphan
        self._orphan = ""
        return orphan

    # How it works

    def _abandon(self) -> None:
        if self.state in (THERE, ASKED):
            self._doomed = self.lineage.name
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
        reply = b"%s.%s%d" % (self._inbox, self._letter, self.lineage.serial)
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
