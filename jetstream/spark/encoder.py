"""Encode batches of rows as messages.

Spark passes Arrow batches. Arrow also assembles the header blocks, one column at a time: the only
work in Python per row is to take its three pieces.
"""

from __future__ import annotations

import hashlib
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jetstream.publish.atomic import BATCH_COMMIT, BATCH_ID, BATCH_SEQUENCE
from jetstream.publish.headers import (
    EXPECTED_LAST_SUBJECT_SEQ,
    EXPECTED_STREAM,
    MSG_ID,
    TTL,
    time_to_live,
)
from natsproto.errors import InvalidValue, LocalError
from natsproto.wire.headers import check_header
from natsproto.wire.subjects import check_publish
from natsproto.wire.text import shorten

from .columns import STRINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .columns import Piece
    from .options import Settings

# The content of rows: subjects, payloads, and the header lines in an array, or None.
_Content = tuple[list[bytes], list[bytes], Any]

_ARROW = {
    "BINARY": pa.binary(),
    "STRING": pa.string(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    STRINGS: pa.map_(pa.string(), pa.string()),
    "MAP<STRING,ARRAY<STRING>>": pa.map_(pa.string(), pa.list_(pa.string())),
}
_HEADERS = [("ttl", TTL), ("expected_last_subject_sequence", EXPECTED_LAST_SUBJECT_SEQ)]
_HEAD = "NATS/1.0\r\n"
_EMPTY = b"NATS/1.0\r\n\r\n"
# HDR-10, for a whole column: line ends, NUL, or whitespace around the value.
_UNFIT = "[\\r\\n\\x00]|^[ \\t]|[ \\t]$"
# Removes headers that describe how the rows of a stream were published, not their content.
_LEFT_OUT = "map_filter(headers, (k, v) -> k NOT RLIKE '^Nats-(Batch|Expected)-')"
_MAX_SUBJECTS = 65_536
# The most rows of a batch that is made of rows, and about the most bytes of their payloads: rows
# may be large, and Spark's own limit of a batch does not apply to them.
_ROWS = 10_000
_SIZE = 64 * 1024
_SIZES = struct.Struct("<QQ")


def to_batches(rows: Iterable[Any], types: dict[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield rows as Arrow batches, for versions of Spark that write streams by rows."""
    columns: list[list[Any]] = [[] for _ in types]
    place = list(types).index("data")
    size = 0
    for row in rows:
        for values, value in zip(columns, row):
            values.append(value)
        size += len(row[place] or b"")
        if len(columns[0]) == _ROWS or size >= _SIZE:
            yield _batch(columns, types)
            columns = [[] for _ in types]
            size = 0
    if columns[0]:
        yield _batch(columns, types)


def _batch(columns: list[list[Any]], types: dict[str, str]) -> pa.RecordBatch:
    arrays = [pa.array(values, _ARROW[type_]) for values, type_ in zip(columns, types.values())]
    return pa.RecordBatch.from_arrays(arrays, list(types))


class Encoder:
    """Encodes batches of rows, in order.

    `ids` is the prefix of the ids of rows, before the number or the digest of the row; "" if rows
    get no ids.
    """

    def __init__(self, settings: Settings, ids: str) -> None:
        self._subject = settings.text("subject")
        self._stream = "".join(settings.list("stream"))  # at most one
        self._ids = ids
        self._by_content = settings.text("rowIds") == "content"
        self._checked: dict[str | None, bytes] = {}
        #: The number of rows so far.
        self.rows: int = 0
        #: Whether all of them have ids of their own.
        self.all_named: bool = True

    def encode(self, batch: pa.RecordBatch, atomic: str = "") -> list[Piece]:
        """Return the pieces of each row. `atomic` is the id of the atomic batch that they start."""
        count = batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns))
        data = self._data(columns.pop("data"))
        columns = {name: _texts(column) for name, column in columns.items()}
        subjects = self._subjects(columns.get("subject"), count)
        blocks = self._blocks(columns, subjects, data, atomic)
        self.rows += count
        return list(zip(subjects, data, blocks))

    def _data(self, column: pa.Array) -> list[bytes]:
        if column.null_count:
            raise self._wrong("data", pc.is_null(column), "is null")
        type_ = pa.large_binary() if _is_large(column) else pa.binary()
        values: list[bytes] = column.cast(type_).to_pylist()
        return values

    def _subjects(self, column: pa.Array | None, count: int) -> list[bytes]:
        if column is None:
            return [self._checked.get(None) or self._check(None, 0)] * count
        names: list[str | None] = column.to_pylist()
        try:
            return [self._checked[name] for name in names]
        except KeyError:
            checked = self._checked
            if len(checked) > _MAX_SUBJECTS:
                checked.clear()
            # One by one, because an error names the row.
            return [checked.get(name) or self._check(name, row) for row, name in enumerate(names)]

    def _check(self, name: str | None, row: int) -> bytes:
        subject = name or self._subject
        if not subject:
            text = "row %d: subject is %r, and option subject is not set"
            raise InvalidValue(text % (self.rows + row, name))
        try:
            raw = self._checked[name] = check_publish(subject)
        except LocalError as error:
            raise InvalidValue("row %d: %s" % (self.rows + row, error)) from None
        return raw

    def _blocks(
        self, columns: dict[str, Any], subjects: list[bytes], data: list[bytes], atomic: str
    ) -> list[bytes | None]:
        count = len(data)
        parts: list[Any] = [_HEAD]
        if self._stream and not atomic:
            parts.append("%s: %s\r\n" % (EXPECTED_STREAM, self._stream))
        lines, ids = self._headers(columns)
        ids = self._msg_ids(columns.get("msg_id"), ids, (subjects, data, lines))
        if ids is not None:
            parts.append(_line(MSG_ID, ids))
        if "ttl" in columns:
            parts.append(_line(TTL, self._ttls(columns["ttl"])))
        if "expected_last_subject_sequence" in columns:
            parts.append(_line(EXPECTED_LAST_SUBJECT_SEQ, self._sequences(columns)))
        if lines is not None:
            parts.append(lines)
        if atomic:  # last, so that everything before it does not depend on the batch (replay.py)
            parts.append("%s: %s\r\n" % (BATCH_ID, atomic))
            parts.append(_line(BATCH_SEQUENCE, pa.array(range(1, count + 1)).cast(pa.string())))
        if len(parts) == 1:
            return [None] * count
        if all(isinstance(part, str) for part in parts):
            return ["".join([*parts, "\r\n"]).encode()] * count
        joined = _join(*parts, "\r\n")
        blocks: list[bytes] = joined.cast(pa.binary()).to_pylist()
        return [None if block == _EMPTY else block for block in blocks]

    def _msg_ids(self, column: pa.Array | None, ids: pa.Array | None, rows: _Content) -> Any:
        """Return the ids: from the column, or the header, or the number or digest of the row."""
        known = [each for each in (column, ids) if each is not None]
        for each in known:
            self._check_values("msg_id", each)
        known = [pc.if_else(pc.equal(each, ""), None, each) for each in known]
        if self._ids and not (known and known[0].null_count == 0):
            self.all_named = False
            if self._by_content:
                names = pa.array(_digests(*rows), pa.string())
            else:
                numbers = range(self.rows, self.rows + len(rows[1]))
                names = pa.array(numbers).cast(pa.string())
            known.append(_join("%s." % self._ids, names))
        if not known:
            return None
        return known[0] if len(known) == 1 else pc.coalesce(*known)

    def _ttls(self, column: pa.Array) -> pa.Array:
        encoded = column.dictionary_encode()
        texts: list[str] = []
        for index, ttl in enumerate(encoded.dictionary.to_pylist()):
            value = ttl
            if isinstance(ttl, str) and ttl.isascii() and ttl.isdigit() and len(ttl) < 18:
                value = int(ttl)
            try:
                texts.append(time_to_live(value))
            except LocalError as error:
                mask = pc.equal(encoded.indices, index)  # NaN is not equal to anything
                raise self._wrong("ttl", mask, "is invalid: %s" % error) from None
        return pa.array(texts, pa.string()).take(encoded.indices)

    def _sequences(self, columns: dict[str, Any]) -> pa.Array:
        name = "expected_last_subject_sequence"
        column = columns[name]
        negative = pc.less(column, 0)
        if pc.any(negative).as_py():
            raise self._wrong(name, negative, "is negative")
        return column.cast(pa.string())

    def _headers(self, columns: dict[str, Any]) -> tuple[Any, Any]:
        """Return the header lines of each row and the ids among them; None if there are none."""
        column = columns.get("headers")
        if column is None:
            return None, None
        rows, names, values = _entries(column)
        if _is_list(values):
            self._check_values("headers", values, rows)
            rows, names, values = _flat(rows, names, values)
        names, values = _texts(names), _texts(values)
        if len(names) == 0:
            return None, None
        for name in pc.unique(names).to_pylist():
            self._check_name(name, columns)
        self._check_values("headers", values, rows)
        ids = None
        is_id = pc.equal(names, MSG_ID)
        if pc.any(is_id).as_py():
            marks: list[bool] = is_id.to_pylist()
            found = {
                row: value for row, value, mark in zip(rows, values.to_pylist(), marks) if mark
            }
            ids = pa.array([found.get(row) for row in range(len(column))], pa.string())
            rows = [row for row, mark in zip(rows, marks) if not mark]
            names, values = [each.filter(pc.invert(is_id)) for each in (names, values)]
        lines = _join(names, ": ", values, "\r\n")
        return pc.binary_join(pa.ListArray.from_arrays(_offsets(rows, len(column)), lines), ""), ids

    def _check_name(self, name: str | None, columns: dict[str, Any]) -> None:
        ours = [BATCH_ID, BATCH_SEQUENCE, BATCH_COMMIT, *[EXPECTED_STREAM] * bool(self._stream)]
        ours += [header for column, header in _HEADERS if column in columns]
        if name in ours:
            text = "headers: %s is reserved for the sink; remove it, for example by %s"
            raise InvalidValue(text % (name, _LEFT_OUT))
        try:
            check_header(name or "", "")
        except LocalError as error:
            raise InvalidValue("headers: %s" % error) from None

    def _check_values(self, what: str, values: pa.Array, rows: list[int] | None = None) -> None:
        """Check texts, or lists of them, which must not be null."""
        lists = _is_list(values)
        unfit = values.is_null() if lists else pc.match_substring_regex(values, _UNFIT)
        if what == "headers":
            unfit = pc.fill_null(unfit, True)
        if pc.any(unfit).as_py():
            why = "cannot be sent: null, CR, LF or NUL in it, or whitespace around it"
            place: int = pc.index(unfit, True).as_py()
            row = place if rows is None else rows[place]
            text = "row %d: %s: value %s %s"
            raise InvalidValue(text % (self.rows + row, what, shorten(values[place].as_py()), why))

    def _wrong(self, name: str, mask: pa.Array, what: str) -> InvalidValue:
        row = self.rows + pc.index(mask, True).as_py()
        return InvalidValue("row %d: %s %s" % (row, name, what))


def _digests(subjects: list[bytes], data: list[bytes], lines: Any) -> list[str]:
    """Return a digest of subject, payload and headers of each row."""
    blocks: list[bytes] = (
        [b""] * len(data) if lines is None else lines.cast(pa.binary()).to_pylist()
    )
    return [
        hashlib.blake2b(
            b"".join((_SIZES.pack(len(subject), len(payload)), subject, payload, block or b"")),
            digest_size=16,
        ).hexdigest()
        for subject, payload, block in zip(subjects, data, blocks)
    ]


def _is_large(column: Any) -> bool:
    return bool(pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type))


def _texts(column: Any) -> Any:
    """Convert large texts, of spark.sql.execution.arrow.useLargeVarTypes, to ordinary ones."""
    return column.cast(pa.string()) if _is_large(column) else column


def _line(name: str, values: Any) -> Any:
    """Return the header line of each row; null where the value is null."""
    return pc.binary_join_element_wise("%s: " % name, values, "\r\n", "")


def _join(*parts: Any) -> Any:
    """Concatenate the texts of each row; a null is an empty text."""
    return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")


def _entries(column: Any) -> tuple[list[int], Any, Any]:
    """Return the row, the name, and the value or values of each entry of the maps."""
    # The offsets of a slice are those of the whole, and so are keys and items.
    offsets: list[int] = column.offsets.to_pylist()
    size = offsets[-1] - offsets[0]
    names, values = [each.slice(offsets[0], size) for each in (column.keys, column.items)]
    rows = [row for row, (start, end) in enumerate(pairwise(offsets)) for _ in range(end - start)]
    return rows, names, values


def _is_list(values: Any) -> bool:
    return bool(pa.types.is_list(values.type) or pa.types.is_large_list(values.type))


def _flat(rows: list[int], names: Any, values: Any) -> tuple[list[int], Any, Any]:
    """Return the row, the name and the value of each value in the lists."""
    owners = pc.list_parent_indices(values)
    parents: list[int] = owners.to_pylist()
    return [rows[parent] for parent in parents], names.take(owners), pc.list_flatten(values)


def _offsets(rows: list[int], count: int) -> pa.Array:
    """Return the offsets of the entries of each row, and the end of the last."""
    ends = [0] * (count + 1)
    for place, row in enumerate(rows, 1):
        ends[row + 1] = place
    for row in range(count):
        ends[row + 1] = max(ends[row], ends[row + 1])
    return pa.array(ends, pa.int32())
