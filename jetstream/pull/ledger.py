"""Pulls: requests to a consumer, and the ledger of what they may still deliver.

Every pull has a reply subject of its own, `<inbox>.<token>` under one wildcard subscription, so
each status names its pull. Messages do not: they arrive under the subject of the stream, and with
two pulls open the server serves both in turn. So messages are booked on the oldest open pull, and a
status that reports what its pull will not deliver corrects the others: the sum is always right.
Only a change of leader does not report it; it ends all pulls.

A pull is closed once: when its messages or bytes have arrived, which the client counts because the
server sends no status then; by its status; or when that is overdue. A second status, or one for a
pull that was abandoned, changes nothing.
"""

from __future__ import annotations

from jetstream.api.client import encode_json
from natsproto.wire import text as _text
from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.machine.status import Status
    from natsproto.wire.frames import Msg

# PULL-14: how much later than at the server a pull ends at the client.
MARGIN = 1.0
# With max_bytes, the number of messages must not be the limit (ADR-37).
MANY = 1_000_000  # PULL-13
_REMEMBERED = 16
# False in builds for devices, where memory is worth more than time (embedded/strip.py).
HAS_MEMORY: bool = True
_PIN_ID = b"Nats-Pin-Id: "
# The last header line of each message to a pinned client: that name and 22 characters.
_PIN_LINE = 37
# The whole block, where there are no other headers.
_PIN_BLOCK = 49


class Pull(Record):
    """A pull, and what it may still deliver. `bytes` stays 0 if it is not limited by bytes."""

    __slots__ = ("by_bytes", "bytes", "ends_at", "messages", "pin", "requested", "token")

    def __init__(
        self, token: bytes, messages: int, max_bytes: int, ends_at: float, pin: str = ""
    ) -> None:
        self.token: bytes = token  # PULL-2
        self.requested: tuple[int, int] = messages, max_bytes
        self.messages: int = messages
        self.by_bytes: bool = max_bytes > 0
        self.bytes: int = max_bytes
        self.ends_at: float = ends_at  # when the server must have ended it
        self.pin: str = pin

    def book(self, messages: int, size: int) -> tuple[int, int]:
        """Add to what it may deliver, down to 0 at least; return the part that was below 0."""
        left = min(0, self.messages + messages)
        self.messages += messages - left
        if not self.by_bytes:
            return left, 0
        left_bytes = min(0, self.bytes + size)
        self.bytes += size - left_bytes
        return left, left_bytes

    @property
    def empty(self) -> bool:
        return self.messages <= 0 or (self.by_bytes and self.bytes <= 0)


class Ledger:
    """The pulls of one subscription, oldest first; `open` are those that may still deliver.

    `_counted` are the last ones that the client closed by counting. `late` and `late_bytes` are
    what abandoned pulls requested, and may have delivered since, until they are forgotten.
    """

    __slots__ = ("_abandoned", "_counted", "late", "late_bytes", "open")

    def __init__(self) -> None:
        self.open: list[Pull] = []
        self._counted: list[Pull] = []
        self._abandoned: list[Pull] = []
        self.late: int = 0
        self.late_bytes: int = 0

    @property
    def messages(self) -> int:
        return sum([pull.messages for pull in self.open])

    @property
    def size(self) -> int:
        """In bytes, of the pulls that are limited by bytes."""
        return sum([pull.bytes for pull in self.open])

    @property
    def ends_at(self) -> float:
        """When the first open pull must have ended; there must be one."""
        return min([pull.ends_at for pull in self.open])

    def add(self, pull: Pull) -> None:
        self.open.append(pull)

    def knows(self, token: bytes) -> bool:
        """Return whether a status of this pull would change anything."""
        return any(pull.token == token for pull in self.open + self._counted)

    def delivered(self, size: int) -> None:
        """Book a message. One that belongs to an abandoned pull changes nothing."""
        if self.open:
            pull = self.open[0]  # PULL-7
            if HAS_MEMORY and pull.messages > 1 and not pull.by_bytes:
                pull.messages -= 1  # like `book`, which this nearly always is
                return
            _, rest = pull.book(-1, -size)
            if pull.empty:
                self._count_out(pull)
            if rest:
                self._correct(0, rest)  # it was not for this pull: that has not enough bytes left

    def delivered_all(self, count: int) -> None:
        """Book several messages, where bytes do not count."""
        while count and self.open:
            pull = self.open[0]
            left, _ = pull.book(-count, 0)
            count = -left
            if pull.empty:
                self._count_out(pull)

    def ended(self, token: bytes, status: Status) -> Pull | None:
        """Close and return the pull of this status; None if it is unknown or already closed."""
        for pulls in (self.open, self._counted):
            for pull in pulls:
                if pull.token == token:
                    pulls.remove(pull)
                    self._settle(pull, status)
                    return pull
        return None

    def _settle(self, pull: Pull, status: Status) -> None:
        if status.messages is not None:
            messages, size = status.messages, status.bytes or 0
        elif status.refused:
            messages, size = pull.requested
        else:
            # The leader is gone, and all pulls with it. What this one had left is not known, so
            # neither is what of the others was booked on it.
            self.clear()
            return
        self._correct(pull.messages - messages, pull.bytes - size if pull.by_bytes else 0)

    def give_up(self, now: float) -> bool:
        """Abandon the pulls whose status is overdue; return True if there were any."""
        left = [pull for pull in self.open if pull.ends_at > now]
        overdue = [pull for pull in self.open if pull.ends_at <= now]
        self._expect_late(overdue)
        self.open = left
        return bool(overdue)

    def clear(self) -> None:
        """Abandon all pulls: after a reconnect or a missed heartbeat none is answered."""
        self._expect_late(self.open)
        self.open = []
        self._counted = []

    def forget_abandoned(self, time: float) -> None:
        """Forget the abandoned pulls that the server must have ended by that time."""
        kept = [pull for pull in self._abandoned if pull.ends_at > time]
        self._abandoned = []
        self.late = self.late_bytes = 0
        self._expect_late(kept)

    def _expect_late(self, pulls: list[Pull]) -> None:
        for pull in pulls:
            self._abandoned.append(pull)
            self.late += pull.messages
            self.late_bytes += pull.bytes

    def _count_out(self, pull: Pull) -> None:
        self.open.remove(pull)
        self._counted.append(pull)
        self._counted = self._counted[-_REMEMBERED:]

    def _correct(self, messages: int, size: int) -> None:
        """Move messages that were booked on the wrong pull to the other ones."""
        if not self.open and self._counted and (messages > 0 or size > 0):
            self.open.append(self._counted.pop())
        for pull in list(self.open):
            messages, size = pull.book(messages, size)
            if pull.empty:
                self._count_out(pull)
            if not messages and not size:
                return


class PullTemplate:
    """Everything of a pull request that does not change from one to the next.

    `expires` is 0 where the server does not wait, `heartbeat` 0 where there are none. `pinned`: the
    consumer pins clients, so ids of pins mean something.
    """

    __slots__ = ("_body", "_body_of", "_fields", "expires", "heartbeat", "pinned", "subject")

    def __init__(
        self,
        subject: bytes,
        fields: dict[str, Any],
        expires: float,
        heartbeat: float,
        pinned: bool = False,
    ) -> None:
        self.subject: bytes = subject
        self._fields = fields
        self._body_of = (0, 0, "")  # what the last body requested
        self._body = b""
        self.expires: float = expires
        self.heartbeat: float = heartbeat
        self.pinned: bool = pinned

    def body(self, batch: int, max_bytes: int, pin: str) -> bytes:
        """Return the payload of a pull: always JSON (PULL-1).

        An empty payload would get past the checks of priority groups.
        """
        if (batch, max_bytes, pin) == self._body_of:
            return self._body  # most fetches are like the last one, and JSON takes 4 us
        fields = dict(self._fields)
        fields["batch"] = batch
        if max_bytes:
            fields["max_bytes"] = max_bytes
        if pin:
            fields["id"] = pin
        self._body_of = (batch, max_bytes, pin)
        self._body = encode_json(fields)
        return self._body

    def expired(self) -> bytes:
        """Return the payload of a pull that expires at once, so that the server answers at once."""
        fields = dict(self._fields)
        for name in ("no_wait", "idle_heartbeat"):
            fields.pop(name, None)
        fields["batch"] = 1
        fields["expires"] = 1
        return encode_json(fields)


def read_pin(msg: Msg) -> str:
    """Return the pin id in the last line of the headers, where the server puts it (PULL-12).

    "" if there is none; elsewhere, or of another length, it is the publisher's own header.
    """
    block = msg.raw_headers
    if block is None or block[-_PIN_LINE - 2 : -26] != _PIN_ID:
        return ""
    return _text.decode(block[-26:-4])


def counted_size(msg: Msg, pinned: bool) -> int:
    """Return the size of a message as the server counts it against max_bytes (PULL-11)."""
    block = msg.raw_headers
    size = len(msg.raw_subject) + len(msg.raw_reply) + len(msg.data)
    if block is None:
        return size
    if pinned and read_pin(msg):
        # Measured: the id is added after the bytes were counted.
        size -= _PIN_BLOCK if len(block) == _PIN_BLOCK else _PIN_LINE
    return size + len(block)
