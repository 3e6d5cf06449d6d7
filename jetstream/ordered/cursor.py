"""Cursor: the state shared by the consumers of one ordered consumer, and their position (ADR-17).

Each of them has the same configuration and the next name (`<prefix>_<serial>`), and starts after
the last message that arrived from the previous one. Recreator (recreate.py) and OrderedConsumer
create them.

A stream that was deleted and created again has other messages under the same sequences, so a start
by sequence would skip them. STREAM.INFO reports when the stream was created. The first consumer was
created after its stream, so a stream that is younger than that consumer is a different one.
"""

from __future__ import annotations

from jetstream.api.metadata import ACK_PREFIX, MOST_DIGITS, read_place
from jetstream.errors.api import ConsumerExists
from jetstream.events import StreamRecreated
from jetstream.machine.policy import GAP, KEEP, SKIP, STALE
from jetstream.schema.consumer_info import ConsumerInfo
from natsproto.wire import text as _text
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.schema.timestamp import Timestamp

# The numbers at the end of a reply subject, and the dots before them: without and with a domain.
_NUMBERS = 5
_DOTS = (4, 6)


class Cursor:
    """The consumers of one ordered consumer: their shared configuration and position.

    `config` is the server's JSON, without the name and the fields that set the start.
    `start` is the sequence that the next consumer starts at; 0: as the policy of `config` says.
    `ahead` is the number of messages that are missing until the last message of each subject has
    arrived (`expect_latest`). Until then, the next consumer starts with these messages again, and
    those that arrived before are skipped. If it is 0, `start` is used.
    """

    __slots__ = (
        "_config",
        "_eldest",
        "_exact",
        "_fence",
        "_oldest",
        "_prefix",
        "_subjects",
        "_unknown",
        "ahead",
        "consumer_seq",
        "info",
        "name",
        "recreated",
        "serial",
        "start",
        "stream",
        "ready",
    )

    def __init__(self, stream: str, prefix: str, config: dict[str, Any]) -> None:
        self.stream: str = stream
        self._prefix = prefix
        self._config = config
        self.serial: int = 0
        self.name: str = ""
        self.start: int = 0
        self.ahead: int = 0
        # How many subjects there were, and the last sequence: 0 if a different stream is read.
        self._subjects = 0
        self._fence = 0
        self.consumer_seq: int = 0  # of the last message
        self.ready: bool = False
        self.info: ConsumerInfo | None = None
        #: The latest discovery that the stream was deleted and created again; None: it never was.
        self.recreated: StreamRecreated | None = None
        # When the stream was created: exact if STREAM.INFO reported it, otherwise the latest time.
        self._oldest: Timestamp | None = None
        self._exact = False
        self._eldest = 0  # the serial of the first consumer of the present stream
        self._unknown = 0  # consecutive failures of STREAM.INFO

    def next_consumer(self, deliver_subject: str = "") -> tuple[str, dict[str, Any]]:
        """Advance to the next consumer; return endpoint and body of the call that creates it."""
        self.serial += 1
        self.name = "%s_%d" % (self._prefix, self.serial)  # ORDERED-2
        self.consumer_seq = 0
        self.ready = False
        config = dict(self._config)
        config["name"] = self.name
        if deliver_subject:
            config["deliver_subject"] = deliver_subject
        if self.start and not self.ahead:
            # ORDERED-5: the policy of the first consumer does not apply to later ones.
            config.pop("opt_start_time", None)
            config["deliver_policy"] = "by_start_sequence"
            config["opt_start_seq"] = self.start
        endpoint = "CONSUMER.CREATE.%s.%s" % (self.stream, self.name)
        if config.get("filter_subject"):
            endpoint = "%s.%s" % (endpoint, config["filter_subject"])  # CALL-8
        return endpoint, {"stream_name": self.stream, "config": config, "action": "create"}

    def installed(self, reply: dict[str, Any]) -> None:
        """Take the response to that call; raise ConsumerExists if another client created it.

        The first consumer is `there` now, and a later one after `confirm`.
        """
        info = ConsumerInfo.from_json(reply)
        if info.delivered.consumer_seq:
            # ORDERED-3: servers treat an equal configuration as the same consumer.
            text = "consumer %s is already in use" % shorten(self.name)
            raise ConsumerExists(400, 10148, text)
        # Without a time to compare with there is nothing to confirm.
        self.ready = self._oldest is None
        if self._oldest is None:
            self._oldest = info.created
        self.info = info
        if self.ahead:
            # Every consumer begins with one message of each subject.
            self.ahead = self._subjects if self._fence else info.num_pending
        if not self.start and self._config.get("deliver_policy") != "last_per_subject":
            self.start = info.delivered.stream_seq + 1  # D-ORDERED-6

    def expect_latest(self, subjects: int, fence: int) -> None:
        """Begin with the last message of each subject (D-ORDERED-26).

        Before the consumer was created, the stream had this many subjects and this last sequence.
        The number of pending messages that the server reports is not used: it may be too low.
        """
        self._subjects = subjects
        self._fence = fence
        self.ahead = max(0, subjects - self.consumer_seq) if self.start <= fence else 0

    def confirm(self, created: Timestamp | None) -> StreamRecreated | None:
        """Use the consumer if its stream is that of the earlier consumers.

        `created` is when the stream was created; None if the server does not report it. If the
        stream is a different one, return the event, and start the next consumer with the first
        message.
        """
        before = self._oldest
        self._unknown = 0
        if created is not None:
            # D-ORDERED-30: no consumer is older than its stream.
            assert before is not None
            same = created == before if self._exact else created <= before
            self._oldest = created
            self._exact = True
            if not same:
                self._restart()
                self.recreated = StreamRecreated(self.stream, before, created)
                return self.recreated
        self.ready = True
        return None

    def rewind(self, reply: bytes) -> bool:
        """Start with this message; return False if its stream is gone and cannot redeliver it."""
        place = read_place(reply)
        assert place is not None
        if int(place[0].rpartition(b"_")[2]) < self._eldest:
            return False
        self.start = place[1]
        return True

    def trust(self) -> bool:
        """Record that STREAM.INFO failed; return whether to use the consumer anyway.

        D-ORDERED-30: if it fails twice in a row, this user may lack the permission.
        """
        self._unknown += 1
        self.ready = self._unknown > 1
        return self.ready

    def _restart(self) -> None:
        """Start over with a different stream, whose messages were not seen yet (D-ORDERED-31)."""
        config = self._config
        latest = config.get("deliver_policy") == "last_per_subject"
        if not latest or (self.start and not self.ahead):
            config = dict(config)
            config.pop("opt_start_time", None)
            config.pop("opt_start_seq", None)
            config["deliver_policy"] = "all"
            self._config = config
        self.start = 0
        self._fence = 0
        self._eldest = self.serial + 1

    def admit(self, reply: bytes) -> str:
        """Return the verdict on the message with this reply subject, and count it if it is next.

        SKIP: it is in order, but before the position where the consumer should start.
        """
        place = read_place(reply)
        if place is None or not self.ready:
            return STALE
        name, stream_seq, consumer_seq = place
        if _text.decode(name) != self.name:
            return STALE  # ORDERED-4
        if consumer_seq != self.consumer_seq + 1:
            return GAP
        self.consumer_seq = consumer_seq
        if self.ahead:
            self._arrived(1, stream_seq)
        if stream_seq < self.start:
            return SKIP  # ORDERED-7
        self.start = stream_seq + 1
        return KEEP

    def admit_all(self, replies: list[bytes]) -> bool:
        """Count messages that follow one another; False, and count none, unless all are next."""
        # All begin like the first one: 0.5 us a message, not 1.3 with a verdict on each.
        head = replies[0].rsplit(b".", _NUMBERS)[0] + b"."
        name = b".%s." % _text.encode(self.name)
        known = head.startswith(ACK_PREFIX) and head.endswith(name)
        if not known or head.count(b".") not in _DOTS or not self.ready:
            return False
        start = self.start
        number = self.consumer_seq
        size = len(head)
        for reply in replies:
            numbers = reply[size:].split(b".")
            if len(numbers) != _NUMBERS or not reply.startswith(head):
                return False
            _, first, second, _, _ = numbers
            # Like `is_number`, but inlined.
            if not first.isdigit() or not second.isdigit():
                return False
            if len(first) > MOST_DIGITS or len(second) > MOST_DIGITS:
                return False
            number += 1
            stream_seq = int(first)
            if int(second) != number or stream_seq < start:
                return False
            start = stream_seq + 1
        self.start = start
        self.consumer_seq = number
        if self.ahead:
            self._arrived(len(replies), start - 1)
        return True

    def _arrived(self, count: int, last: int) -> None:
        """Count messages of different subjects; none of those that are later than the fence."""
        past = self._fence and last >= self._fence
        self.ahead = 0 if past else max(0, self.ahead - count)
