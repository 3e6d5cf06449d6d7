"""Repeated writes: whether the rows of an attempt are those that an earlier attempt stored.

Spark promises that a task or a micro-batch that is repeated has the same rows, but not that they
are in the same partitions or in the same order: a source may be cut in another way, and a shuffle
delivers rows as they arrive. A row without an id of its own is known by its partition and its
position there. So if a position was used before, the row that is stored is compared with this one:

    dedup     the ack of a duplicate names the message that has the id; it is read and compared
    atomic    the marker has a digest of all rows up to it; the rows that are skipped must have it

If they differ, the write fails with ReplayMismatch: no row is silently dropped. covered.py finds
rows that are stored at positions which this attempt does not have.
"""

from __future__ import annotations

import binascii
import hashlib
import logging
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from jetstream.api.client import encode_json, read_reply
from jetstream.errors import InvalidResponse, JetStreamError, MessageNotFound
from jetstream.publish.atomic import BATCH_ID
from jetstream.publish.headers import MSG_ID
from natsproto.errors import InvalidState, NoResponders
from natsproto.wire.text import cut_middle, shorten

from .connect import denied_publishes
from .deadletter import DEAD, ERROR
from .retry import RETRYABLE_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jetstream.api.client import ApiClient
    from jetstream.context import JetStream

    from .columns import Piece

logger: logging.Logger = logging.getLogger("jetstream.spark")
_CHUNK = 256  # reads in flight at a time
_TRIES = 8
_REST = 0.1  # seconds before the second try; doubles
_LONGEST = 2.0
_SIZES = struct.Struct("<QQQ")
_BATCH = ("\r\n%s: " % BATCH_ID).encode()
_ERROR = ("%s: " % ERROR).encode()

_WHAT_TO_DO = (
    " Rows without a msg_id are identified by partition and position, and this repeated write has"
    " other rows, another order or other partitions than the earlier attempt. Give the rows a"
    " msg_id; see 'What is exact, and why' in docs/spark.md"
)


class ReplayMismatch(JetStreamError):
    """The rows of a repeated write differ from those that an earlier attempt has stored.

    The rows that differ are not stored, but the write fails, so they are not lost either.
    """


def mismatch(what: str, write_id: str = "") -> ReplayMismatch:
    """Return the error; if option writeId is set, it names that as a possible cause."""
    cause = " Was option writeId %s used for another write?" % shorten(write_id) if write_id else ""
    return ReplayMismatch("%s.%s%s" % (what, cause, _WHAT_TO_DO))


class Chain:
    """A digest of all rows of a task so far: subjects, payloads and headers, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def copy(self) -> Chain:
        """Return a chain that can be extended independently."""
        chain = Chain()
        chain._hash = self._hash.copy()
        return chain

    def add(self, pieces: Iterable[Piece]) -> None:
        """Add rows that were encoded for an atomic batch; the batch makes no difference."""
        parts: list[bytes] = []
        for subject, data, block in pieces:
            own = b"" if block is None else block[: block.index(_BATCH)]
            parts += (_SIZES.pack(len(subject), len(data), len(own)), subject, data, own)
        self._hash.update(b"".join(parts))

    def digest(self) -> str:
        """Return the digest of the rows so far, in hexadecimal."""
        return self._hash.hexdigest()


class _Duplicate(NamedTuple):
    row: int
    piece: Piece
    stream: str
    seq: int


class _Stored(NamedTuple):
    subject: bytes
    data: bytes
    block: bytes


class Verifier:
    """Compares rows that the stream acknowledged as duplicates with the messages it has stored.

    `ids` is the prefix of this task's row ids. Rows that have a msg_id of their own are not
    compared: there the user says which rows are the same. Dead letters are compared like rows,
    except for the error: the server may word it differently.
    """

    def __init__(self, js: JetStream, api: ApiClient, ids: str, write_id: str = "") -> None:
        self._js = js
        self._api = api
        self._marks = [("\r\n%s: %s%s." % (MSG_ID, kind, ids)).encode() for kind in ("", DEAD)]
        self._ids = ids
        self._write_id = write_id
        self._pending: list[_Duplicate] = []
        #: Rows that could not be compared, because the stream has removed their messages.
        self.gone: int = 0

    def add(self, row: int, piece: Piece, stream: str, seq: int) -> None:
        """Compare a row with the message that the ack names, unless it has an id of its own."""
        if any(mark in (piece[2] or b"") for mark in self._marks):
            self._pending.append(_Duplicate(row, piece, stream, seq))

    async def verify(self) -> None:
        """Compare the duplicates that were added; raise ReplayMismatch if one differs."""
        while self._pending:
            chunk = self._pending[:_CHUNK]
            for duplicate, stored in zip(chunk, await self._read(chunk)):
                if stored is None:
                    self.gone += 1
                elif not await self._is_same(duplicate, stored):
                    text = "row %d differs from message %d of stream %s, which has its id %s.%d"
                    where = (duplicate.row, duplicate.seq, duplicate.stream)
                    raise mismatch(text % (*where, self._ids, duplicate.row), self._write_id)
            del self._pending[:_CHUNK]

    async def _read(self, chunk: list[_Duplicate]) -> list[_Stored | None]:
        session = self._api.session
        for turn in range(_TRIES):
            try:
                return await self._read_once(chunk)
            except RETRYABLE_CALLS:
                self._check_allowed()
            await session.sleep(min(_REST * 2**turn, _LONGEST))
        return await self._read_once(chunk)

    async def _read_once(self, chunk: list[_Duplicate]) -> list[_Stored | None]:
        session = self._api.session
        requests = [
            session.connection.start_request(
                "%s.STREAM.MSG.GET.%s" % (self._api.prefix, each.stream),
                encode_json({"seq": each.seq}),
                deadline=session.deadline(self._api.timeout),
            )
            for each in chunk
        ]
        found: list[_Stored | None] = []
        try:
            for request in requests:
                reply = await session.settle(request)
                assert reply is not None
                found.append(_stored(reply.data))
        except NoResponders as error:
            text = "no response to %s.STREAM.MSG.GET, which is needed to compare rows with those"
            text += " that were stored before: is the stream in another domain or account?"
            raise InvalidState(text % self._api.prefix) from error
        finally:
            for request in requests:
                if not request.done:
                    session.connection.cancel(request)
        return found

    def _check_allowed(self) -> None:
        """Raise if reading is not permitted: the server reports that, but does not reply."""
        for error in denied_publishes(self._api.session.connection):
            if ".STREAM.MSG.GET." in error.subject:
                raise error

    async def _is_same(self, duplicate: _Duplicate, stored: _Stored) -> bool:
        sent_subject, sent_data, sent_block = duplicate.piece
        subject = sent_subject == stored.subject
        data = sent_data == stored.data
        dead = self._marks[1] in (sent_block or b"")
        if _own(sent_block or b"", dead) != _own(stored.block, dead):
            return False
        if subject and data:
            return True
        # A stream may change subject or payload when it stores a message.
        config = (await self._js.stream(duplicate.stream)).cached_info.config
        return bool(
            (subject or config.subject_transform is not None) and (data or config.allow_msg_counter)
        )


def _stored(answer: bytes) -> _Stored | None:
    try:
        message: Any = read_reply(answer)["message"]
        return _Stored(
            message["subject"].encode(),
            binascii.a2b_base64(message.get("data") or ""),
            binascii.a2b_base64(message.get("hdrs") or ""),
        )
    except MessageNotFound:
        return None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        text = "response to STREAM.MSG.GET is not valid: %s" % cut_middle(repr(error))
        raise InvalidResponse(text) from error


def _own(block: bytes, dead: bool) -> list[bytes]:
    """Return the user's headers; servers may change those whose names begin with Nats-."""
    skipped = (b"Nats-", _ERROR) if dead else b"Nats-"
    return [line for line in block.split(b"\r\n")[1:] if line and not line.startswith(skipped)]
