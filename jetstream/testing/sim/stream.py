"""Stream: messages in order, and the rules by which a publish is stored or refused.

Modeled: subjects, sequences, message ids, the expectations of a publish, limits by count and age
and for each subject, discard, rollup, purges and deletes. Not modeled: replicas, mirrors, sources,
TTLs of single messages, counters, schedules, transforms, and atomic batches.
"""

from __future__ import annotations

from natsproto.testing.sim.port import EPOCH, NANO
from natsproto.wire.subjects import matches

from .releases import NEWEST

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .releases import Release

WRONG_SEQUENCE = (400, 10071, "wrong last sequence: %d")
WRONG_ID = (400, 10070, "wrong last msg ID: %s")
WRONG_STREAM = (400, 10060, "expected stream does not match")
TOO_MANY = (503, 10077, "maximum messages exceeded")
TOO_MANY_PER_SUBJECT = (503, 10077, "maximum messages per subject exceeded")
TOO_LARGE = (400, 10054, "message size exceeds maximum allowed")
NOT_MODELED = (501, 10999, "%s is not part of the simulation")


# Headers of publishes that mean something to a real server.
_NOT_MODELED = ("Nats-Batch-Id", "Nats-TTL", "Nats-Incr", "Nats-Schedule")


def not_modeled(what: str) -> tuple[int, int, str]:
    """Return the error for a feature that the simulation does not have."""
    return NOT_MODELED[0], NOT_MODELED[1], NOT_MODELED[2] % what


class Refused(Exception):
    """The stream does not store a message; `error` is that of the API."""

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(description)
        self.error: dict[str, Any] = {
            "code": code,
            "err_code": err_code,
            "description": description,
        }


def header(block: bytes | None, name: str) -> str:
    """Return the value of a header, "" if it is not there."""
    found = (block or b"").partition(b"\r\n" + name.encode() + b":")[2].partition(b"\r\n")[0]
    return found.strip().decode()


class StoredMessage:
    """A message of the stream."""

    __slots__ = ("block", "data", "seq", "subject", "time")

    def __init__(
        self, seq: int, subject: str, block: bytes | None, data: bytes, time: float
    ) -> None:
        self.seq: int = seq
        self.subject: str = subject
        self.block: bytes | None = block
        self.data: bytes = data
        self.time: float = time

    @property
    def size(self) -> int:
        """The bytes that count for limits."""
        return len(self.subject) + len(self.block or b"") + len(self.data)

    @property
    def time_ns(self) -> int:
        """The time at which the message was stored, in nanoseconds since 1970."""
        return EPOCH + int(self.time * NANO)


class Stream:
    """The messages and the configuration of a stream."""

    def __init__(self, config: dict[str, Any], now: float, release: Release = NEWEST) -> None:
        self.name: str = config["name"]
        self.release: Release = release
        self.config: dict[str, Any] = config
        self.created: float = now
        self.messages: list[StoredMessage] = []
        self.last_seq: int = 0
        self._ids: dict[str, int] = {}
        #: Called for each message that is removed.
        self.on_removed: Callable[[StoredMessage], None] = lambda message: None

    @property
    def subjects(self) -> list[str]:
        """The subjects that the stream stores."""
        found: list[str] = self.config.get("subjects") or [self.name]
        return found

    def takes(self, subject: str) -> bool:
        """Return whether a message with this subject is for the stream."""
        return any(matches(pattern, subject) for pattern in self.subjects)

    # Reading

    def at(self, seq: int) -> StoredMessage | None:
        """Return the message with this sequence; None if there is none."""
        index = self._index(seq)
        if index < len(self.messages) and self.messages[index].seq == seq:
            return self.messages[index]
        return None

    def _index(self, seq: int) -> int:
        """Return where the first message at or after this sequence is."""
        low, high = 0, len(self.messages)
        while low < high:
            middle = (low + high) // 2
            if self.messages[middle].seq < seq:
                low = middle + 1
            else:
                high = middle
        return low

    def select(self, filters: list[str], first: int = 0) -> list[StoredMessage]:
        """Return the messages at or after a sequence whose subject is one of these."""
        rest = self.messages[self._index(first) :]
        return [each for each in rest if wanted(filters, each.subject)]

    def following(self, filters: list[str], first: int) -> StoredMessage | None:
        """Return the first message at or after a sequence whose subject is one of these."""
        for index in range(self._index(first), len(self.messages)):
            if wanted(filters, self.messages[index].subject):
                return self.messages[index]
        return None

    def last(self, filters: list[str], up_to: int = 0) -> list[StoredMessage]:
        """Return the last message of each subject, by sequence."""
        found: dict[str, StoredMessage] = {}
        for each in self.messages:
            if wanted(filters, each.subject) and not (up_to and each.seq > up_to):
                found[each.subject] = each
        return sorted(found.values(), key=lambda each: each.seq)

    @property
    def first_seq(self) -> int:
        """The sequence of the first message, or that of the next one."""
        return self.messages[0].seq if self.messages else self.last_seq + 1

    # Writing

    def publish(
        self, subject: str, block: bytes | None, data: bytes, now: float
    ) -> tuple[int, bool]:
        """Store a message; return its sequence, and whether it was there before by its id.

        Raises Refused.
        """
        block = self.release.stored_block(block)
        key = header(block, "Nats-Msg-Id")
        if key and key in self._ids:
            return self._ids[key], True
        self._check(subject, block, data)
        rollup = header(block, "Nats-Rollup")
        if rollup:
            self.purge([subject] if rollup == "sub" else [], 0, 0)
        self._make_room(subject)
        self.last_seq += 1
        self.messages.append(StoredMessage(self.last_seq, subject, block, data, now))
        if key:
            self._ids[key] = self.last_seq
        return self.last_seq, False

    def _check(self, subject: str, block: bytes | None, data: bytes) -> None:
        for name in _NOT_MODELED:
            if block is not None and header(block, name):
                raise Refused(*not_modeled("the header " + name))
        stream = header(block, "Nats-Expected-Stream")
        if stream and stream != self.name:
            raise Refused(*WRONG_STREAM)
        self._expect(header(block, "Nats-Expected-Last-Sequence"), self.last_seq)
        expected = header(block, "Nats-Expected-Last-Subject-Sequence")
        if expected:
            other = header(block, "Nats-Expected-Last-Subject-Sequence-Subject")
            last = self.last([other if other and self.release.looks_at_subject else subject])
            self._expect(expected, last[-1].seq if last else 0)
        last_id = header(block, "Nats-Expected-Last-Msg-Id")
        if last_id and self._ids.get(last_id) != self.last_seq:
            own = [key for key in self._ids if self._ids[key] == self.last_seq]
            raise Refused(WRONG_ID[0], WRONG_ID[1], WRONG_ID[2] % (own or [""])[0])
        most = self.config.get("max_msg_size", -1)
        if most >= 0 and len(block or b"") + len(data) > most:
            raise Refused(*TOO_LARGE)

    def _expect(self, given: str, last: int) -> None:
        if given and int(given) != last:
            raise Refused(WRONG_SEQUENCE[0], WRONG_SEQUENCE[1], WRONG_SEQUENCE[2] % last)

    def _make_room(self, subject: str) -> None:
        new = self.config.get("discard") == "new"
        most = self.config.get("max_msgs_per_subject", -1)
        same = self.select([subject]) if most > 0 else []
        if most > 0 and len(same) >= most:
            if new and self.config.get("discard_new_per_subject"):
                raise Refused(*TOO_MANY_PER_SUBJECT)
            self.remove(same[0].seq)
        most = self.config.get("max_msgs", -1)
        if most > 0 and len(self.messages) >= most:
            if new:
                raise Refused(*TOO_MANY)
            self.remove(self.first_seq)

    def remove(self, seq: int) -> bool:
        """Remove a message; return whether it was there."""
        message = self.at(seq)
        if message is None:
            return False
        self.messages.remove(message)
        self.on_removed(message)
        return True

    def purge(self, filters: list[str], below: int, keep: int) -> int:
        """Remove messages, below a sequence or all but the last ones; return how many."""
        found = [each for each in self.select(filters) if not below or each.seq < below]
        if keep:
            found = found[:-keep]
        for each in found:
            self.remove(each.seq)
        return len(found)

    def expire(self, now: float) -> None:
        """Remove the messages that are older than max_age."""
        age = self.config.get("max_age", 0) / NANO
        while age and self.messages and self.messages[0].time + age <= now:
            self.remove(self.first_seq)

    # What the API says about it

    def state(self, consumers: int, filters: str = "") -> dict[str, Any]:
        """Return the state, with the subjects that match if a filter is given."""
        subjects: dict[str, int] = {}
        for each in self.messages:
            subjects[each.subject] = subjects.get(each.subject, 0) + 1
        state: dict[str, Any] = {
            "messages": len(self.messages),
            "bytes": sum([each.size for each in self.messages]),
            "first_seq": self.first_seq if self.last_seq else 0,
            "last_seq": self.last_seq,
            "num_subjects": len(subjects),
            "num_deleted": self.last_seq - self.first_seq + 1 - len(self.messages),
            "consumer_count": consumers,
        }
        if filters:
            found = [each for each in subjects if matches(filters, each)]
            state["subjects"] = {each: subjects[each] for each in found}
        return state


def wanted(filters: list[str], subject: str) -> bool:
    """Return whether a subject is one of these; no filters: all are."""
    if not filters:
        return True
    return any(pattern == subject or matches(pattern, subject) for pattern in filters)
