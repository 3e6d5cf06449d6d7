"""KeyValueEntry: a current or former value of a key, read from a message of the stream."""

from __future__ import annotations

from jetstream.errors import InvalidResponse
from jetstream.schema.timestamp import LAST, Timestamp
from natsproto.errors import HeaderError
from natsproto.wire import text as _text
from natsproto.wire.record import Record
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, Protocol, TypeAlias

    from jetstream.api.stored import StoredMsg
    from jetstream.message import JsMsg
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import Headers

    Operation: TypeAlias = Literal["PUT", "DEL", "PURGE"]

    class WithHeaders(Protocol):
        """A message, stored or delivered."""

        @property
        def headers(self) -> Headers | None: ...


OPERATION = "KV-Operation"
REASON = "Nats-Marker-Reason"
PUT: Operation = "PUT"
DEL: Operation = "DEL"
PURGE: Operation = "PURGE"


class KeyValueEntry(Record):
    """A value of a key, or the marker that it was deleted.

    value       empty for a marker, and in a watch with meta_only
    revision    the sequence of this value in the bucket
    created     the time at which it was stored
    delta       the number of messages pending after it: 0 for the latest
    operation   "PUT"; or "DEL" or "PURGE" for a marker
    """

    __slots__ = ("bucket", "key", "value", "revision", "created", "delta", "operation")

    def __init__(
        self,
        bucket: str,
        key: str,
        value: bytes,
        revision: int,
        created: Timestamp,
        delta: int = 0,
        operation: Operation = PUT,
    ) -> None:
        self.bucket: str = bucket
        self.key: str = key
        self.value: bytes = value
        self.revision: int = revision
        self.created: Timestamp = created
        self.delta: int = delta
        self.operation: Operation = operation

    @property
    def deleted(self) -> bool:
        """Whether this is a marker: the key was deleted."""
        return self.operation != PUT


def read_operation(msg: WithHeaders, block: bytes | None) -> Operation:
    """Return the operation of a message on its key (KV-25); `block` is its header block."""
    # Most messages have no such header and are not parsed: 0.3 us instead of 3.
    if block is None or (b"KV-Operation" not in block and b"Nats-Marker-Reason" not in block):
        return PUT
    try:
        headers = msg.headers
    except HeaderError:
        return PUT  # D-KV-32
    assert headers is not None
    operation = headers.get(OPERATION)
    if operation:
        if operation == PUT:
            return PUT
        return PURGE if operation == PURGE else DEL
    reason = headers.get(REASON)
    if not reason:
        return PUT  # the names are part of another header
    return PURGE if reason in ("MaxAge", "Purge") else DEL


def stored_entry(msg: StoredMsg, bucket: str, key: str) -> KeyValueEntry:
    """Return the entry in a stored message."""
    operation = read_operation(msg, msg.raw_headers)
    return KeyValueEntry(bucket, key, msg.data, msg.seq, msg.time, 0, operation)


def delivered_entry(msg: Msg | JsMsg, bucket: str, prefix: str) -> KeyValueEntry:
    """Return the entry in a message of a consumer."""
    return delivered_entries([msg], bucket, prefix)[0]


def delivered_entries(msgs: Sequence[Msg | JsMsg], bucket: str, prefix: str) -> list[KeyValueEntry]:
    """Return the entries in messages of a consumer, up to the first one that is not valid.

    InvalidResponse: that is the first message.
    """
    # The machine has checked the shape of the replies. Parsing all metadata would cost 3 us more,
    # and calling the two classes 0.2 us.
    entries: list[KeyValueEntry] = []
    new = object.__new__
    size = len(prefix)
    for msg in msgs:
        tokens = msg.raw_reply.split(b".")
        first = 3 if len(tokens) == 9 else 5
        entry = new(KeyValueEntry)
        entry.bucket = bucket
        entry.key = _text.decode(msg.raw_subject)[size:]
        entry.value = msg.data
        entry.created = created = new(Timestamp)
        try:
            entry.revision = int(tokens[first + 2])
            created.ns = int(tokens[first + 4])
            entry.delta = int(tokens[first + 5])
            if not 0 <= created.ns <= LAST:
                raise ValueError("time")
        except ValueError:
            if entries:
                break
            raise InvalidResponse(
                "reply %s is not an acknowledgment subject" % shorten(msg.raw_reply)
            ) from None
        block = msg.raw_headers
        entry.operation = PUT if block is None else read_operation(msg, block)
        entries.append(entry)
    return entries
