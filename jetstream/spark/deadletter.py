"""deadLetterSubject: rows that cannot be written are published there, and the write continues.

    a row is invalid              its subject, a header, a ttl; its data is null
    the server rejects that row   it is too large, its expectation does not hold, or no stream has
                                  its subject

Failures that concern all rows, such as a full stream or missing permissions, still fail the task.
The message has the row's payload, unless that is too large, and these headers:

    Spark-Error     what was wrong
    Spark-Subject   the subject of the row, if it has one

Its id is "dead." and the id of the row, so it is stored once like a row. If that id is a position,
a repeated write must have the same dead letters at the same positions (replay.py, covered.py).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from jetstream.errors import MessageTooLarge, NoStreamResponse, WrongLastSequence
from jetstream.publish.headers import MSG_ID
from natsproto.errors import InvalidValue, PayloadTooLarge
from natsproto.wire.headers import Headers
from natsproto.wire.text import cut_middle, decode

if TYPE_CHECKING:
    from natsproto.errors import NatsError

    from .columns import Piece
    from .encoder import Encoder

DEAD = "dead."  # before the ids
ERROR = "Spark-Error"
# Errors that concern one row.
_OF_ONE_ROW = (MessageTooLarge, NoStreamResponse, PayloadTooLarge, WrongLastSequence)
_MOST = 512 * 1024  # bytes of a payload; some headers are added


class DeadLetters:
    """Makes the messages for rows that cannot be written.

    ids         the prefix of the rows' ids; "" if they get none
    by_content  what follows the prefix is a digest of the row, not its number
    """

    def __init__(self, subject: str, ids: str, by_content: bool = False) -> None:
        self._subject = subject.encode()
        self._ids = ids
        self._by_content = by_content
        #: The numbers of the rows so far.
        self.rows: set[int] = set()
        #: Those whose expectation did not hold, perhaps because they are stored.
        self.unexpected: set[int] = set()

    def encode(self, encoder: Encoder, batch: Any) -> list[Piece]:
        """Encode a batch; rows that are invalid become dead letters."""
        try:
            return encoder.encode(batch)
        except InvalidValue as error:
            if batch.num_rows > 1:
                half = batch.num_rows // 2
                parts = (batch.slice(0, half), batch.slice(half))
                return [piece for part in parts for piece in self.encode(encoder, part)]
            [values] = batch.to_pylist()
            subject, data = values.get("subject") or "", values["data"] or b""
            if isinstance(data, str):
                data = data.encode()
            own_id = values.get("msg_id") or ""
            if not own_id.isprintable() or own_id != own_id.strip():
                own_id = ""  # perhaps the reason
            made = self._make(subject, data, encoder.rows, error, own_id)
            encoder.rows += 1
            encoder.all_named = encoder.all_named and bool(own_id)
            return [made]

    def replace(self, row: int, piece: Piece, error: NatsError) -> Piece | None:
        """Return the dead letter of a row that was rejected; None if the write has to fail."""
        subject, data, block = piece
        if subject == self._subject or not isinstance(error, _OF_ONE_ROW):
            return None
        if isinstance(error, WrongLastSequence):
            self.unexpected.add(row)
        own_id = Headers.decode(block).get(MSG_ID) if block else None
        return self._make(decode(subject), data, row, error, own_id or "")

    def _make(self, subject: str, data: bytes, row: int, error: NatsError, own_id: str) -> Piece:
        self.rows.add(row)
        headers = Headers()
        if not own_id and self._ids:
            name = _digest(subject, data) if self._by_content else str(row)
            own_id = "%s.%s" % (self._ids, name)
        if own_id:
            headers.set(MSG_ID, DEAD + own_id)
        headers.set(ERROR, _line("%s: %s" % (type(error).__name__, error)))
        if subject:
            headers.set("Spark-Subject", _line(subject))
        return self._subject, data if len(data) <= _MOST else b"", headers.encode()


def _digest(subject: str, data: bytes) -> str:
    return hashlib.blake2b(b"%s\0%s" % (subject.encode(), data), digest_size=16).hexdigest()


def _line(text: str) -> str:
    """Return a text that can be the value of a header."""
    shown = "".join([char if char.isprintable() else "?" for char in text])
    return cut_middle(shown).strip()
