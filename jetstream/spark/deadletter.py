"""deadLetterSubject: rows that cannot be written are published there, and the write continues.

    a row is invalid              its subject, a header, a ttl; its data is null
    the server rejects that row   it is too large, its expectation does not hold, or no stream has
                                  its subject

Failures that concern all rows, such as a full stream or missing permissions, still fail the task.
The message has the row's payload, unless that is too large, and these headers:

    Spark-Error     what was wrong
    Spark-Subject   the subject of the row, if it has one

With delivery=dedup its id is "dead." and the id of the row.
"""

from __future__ import annotations

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

# Errors that concern one row.
_OF_ONE_ROW = (MessageTooLarge, NoStreamResponse, PayloadTooLarge, WrongLastSequence)
_MOST = 512 * 1024  # bytes of a payload; some headers are added


class DeadLetters:
    """Makes the messages for rows that cannot be written; `ids` is the prefix of the rows' ids."""

    def __init__(self, subject: str, ids: str) -> None:
        self._subject = subject.encode()
        self._ids = ids
        #: The number of rows so far.
        self.count: int = 0

    def encode(self, encoder: Encoder, batch: Any) -> list[Piece]:
        """Encode a batch; rows that are invalid become dead letters."""
        try:
            return encoder.encode(batch)
        except InvalidValue as error:
            if batch.num_rows > 1:
                half = batch.num_rows // 2
                parts = (batch.slice(0, half), batch.slice(half))
                return [piece for part in parts for piece in self.encode(encoder, part)]
            columns = dict(zip(batch.schema.names, batch.columns))
            values = [columns[name][0].as_py() for name in ("subject", "data") if name in columns]
            subject, data = values if "subject" in columns else ("", *values)
            if isinstance(data, str):
                data = data.encode()
            made = self._make(subject or "", data or b"", encoder.rows, error)
            encoder.rows += 1
            return [made]

    def replace(self, row: int, piece: Piece, error: NatsError) -> Piece | None:
        """Return the dead letter of a row that was rejected; None if the write has to fail."""
        subject, data, _ = piece
        if subject == self._subject or not isinstance(error, _OF_ONE_ROW):
            return None
        return self._make(decode(subject), data, row, error)

    def _make(self, subject: str, data: bytes, row: int, error: NatsError) -> Piece:
        self.count += 1
        headers = Headers()
        if self._ids:
            headers.set(MSG_ID, "dead.%s.%d" % (self._ids, row))
        headers.set("Spark-Error", _line("%s: %s" % (type(error).__name__, error)))
        if subject:
            headers.set("Spark-Subject", _line(subject))
        return self._subject, data if len(data) <= _MOST else b"", headers.encode()


def _line(text: str) -> str:
    """Return a text that can be the value of a header."""
    shown = "".join([char if char.isprintable() else "?" for char in text])
    return cut_middle(shown).strip()
