"""Pulls: what is asked of a consumer, and the ledger of what it still owes.

Every pull has a reply subject of its own, `<inbox>.<n>` under one wildcard subscription, so every
status names its pull. Messages do not: they arrive under the subject of the stream, and with two
pulls open the server serves both in turn. So messages are booked on the oldest open pull, and a
status that tells what its pull will not bring corrects the others: the sum is always right.

A pull is closed once. It closes when its messages or bytes have come, by our own counting, for the
server says nothing then; or by its status. A second status, or one for a pull that was given up,
changes nothing.
"""

from __future__ import annotations

from natsproto._record import Record

from .call import encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.frames import Msg

    from .status import Status

PIN_ID = b"Nats-Pin-Id: "
# The header block that the server adds for a pinned client after it has counted the bytes: all of
# it if there are no other headers, else the one line.
_PIN_BLOCK = 49
_PIN_LINE = 37
_REMEMBERED = 16


class Pull(Record):
    """A pull: what it may still bring. `bytes` stays 0 if it is not limited by bytes."""

    __slots__ = ("by_bytes", "bytes", "messages", "token")

    def __init__(self, token: bytes, messages: int, max_bytes: int) -> None:
        self.token = token
        self.messages = messages
        self.by_bytes = max_bytes > 0
        self.bytes = max_bytes

    def book(self, messages: int, size: int) -> tuple[int, int]:
        """Add to what it may bring, not below nothing; returns what was too much to take off."""
        left = min(0, self.messages + messages)
        left_bytes = min(0, self.bytes + size) if self.by_bytes else 0
        self.messages += messages - left
        if self.by_bytes:
            self.bytes += size - left_bytes
        return left, left_bytes

    @property
    def empty(self) -> bool:
        return self.messages <= 0 or (self.by_bytes and self.bytes <= 0)


class Ledger:
    """The pulls of one subscription, oldest first; `open` are those that may still bring something.

    `_counted` are the last of those that were closed by our own counting.
    """

    __slots__ = ("_counted", "open")

    def __init__(self) -> None:
        self.open: list[Pull] = []
        self._counted: list[Pull] = []

    @property
    def messages(self) -> int:
        return sum([pull.messages for pull in self.open])

    @property
    def size(self) -> int:
        """In bytes, of the pulls that are limited by bytes."""
        return sum([pull.bytes for pull in self.open])

    def add(self, pull: Pull) -> None:
        self.open.append(pull)

    def delivered(self, size: int) -> None:
        """A message came. One that no pull asked for, because it was given up, changes nothing."""
        if self.open:
            pull = self.open[0]
            pull.book(-1, -size)
            if pull.empty:
                self._count_out(pull)

    def ended(self, token: bytes, status: Status) -> bool:
        """Close the pull of this status; False if it is none of ours, or was closed before."""
        for pull in self.open:
            if pull.token == token:
                self.open.remove(pull)
                if status.messages is not None:
                    spare = pull.bytes - (status.bytes or 0) if pull.by_bytes else 0
                    self._correct(pull.messages - status.messages, spare)
                return True
        for pull in self._counted:
            if pull.token == token:
                self._counted.remove(pull)
                self._correct(-(status.messages or 0), -(status.bytes or 0))
                return True
        return False

    def clear(self) -> None:
        """Give all of them up: after a reconnect or a missed heartbeat none will answer."""
        self.open = []
        self._counted = []

    def _count_out(self, pull: Pull) -> None:
        self.open.remove(pull)
        self._counted.append(pull)
        self._counted = self._counted[-_REMEMBERED:]

    def _correct(self, messages: int, size: int) -> None:
        """Messages were booked on the wrong pull: book them where they belong."""
        if not self.open and self._counted and messages > 0:
            self.open.append(self._counted.pop())
        for pull in list(self.open):
            messages, size = pull.book(messages, size)
            if pull.empty:
                self._count_out(pull)
            if messages >= 0 and size >= 0:
                return


class PullTemplate:
    """Everything of a pull request that does not change from one to the next."""

    __slots__ = ("_fields", "heartbeat", "subject")

    def __init__(self, subject: bytes, fields: dict[str, Any], heartbeat: float) -> None:
        self.subject = subject
        self._fields = fields
        self.heartbeat = heartbeat

    def body(self, batch: int, max_bytes: int, pin: str) -> bytes:
        fields = dict(self._fields)
        fields["batch"] = batch
        if max_bytes:
            fields["max_bytes"] = max_bytes
        if pin:
            fields["id"] = pin
        return encode_json(fields)


def read_pin(msg: Msg) -> str:
    """The pin id in a message's headers, "" if there is none; bad headers have none."""
    block = msg.raw_headers
    if block is None or PIN_ID not in block:
        return ""
    return block.partition(PIN_ID)[2].partition(b"\r\n")[0].strip().decode()


def counted_size(msg: Msg) -> int:
    """The size of a message as the server counts it against max_bytes."""
    block = msg.raw_headers or b""
    size = len(msg.raw_subject) + len(msg.raw_reply) + len(block) + len(msg.data)
    if PIN_ID in block:
        # Measured: the header of the pin is added after the bytes were counted.
        return size - (_PIN_BLOCK if len(block) == _PIN_BLOCK else _PIN_LINE)
    return size


def is_status(msg: Msg, prefix: bytes) -> bool:
    """Whether it is the server's word on a pull, and not a message, however it is dressed up."""
    return (
        msg.raw_headers is not None
        and not msg.data
        and msg.raw_subject.startswith(prefix)
        and msg.status != 0
    )
