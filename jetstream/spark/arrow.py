"""Convert messages to Arrow record batches, column by column; only the requested columns.

Columns cost less than rows: 0.1 us instead of 2 us per message. The position of a message in its
stream is in its reply subject. All replies of one consumer start with the same tokens, and pyarrow
parses the others as CSV: 0.3 us per message, instead of 0.7 us for splitting each.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from jetstream.api.metadata import read_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

    from natsproto.wire.frames import Msg

_MICROSECOND = 1000  # nanoseconds
_SPACE = " \t"


class Rows:
    """The messages of a future record batch.

    `sequences` and `times` (nanoseconds) are int64 arrays; `subjects` and `headers` are raw bytes.
    """

    def __init__(
        self,
        stream: str,
        sequences: Any,
        times: Any,
        subjects: Sequence[bytes],
        data: Sequence[bytes] | None,
        headers: Sequence[bytes | None],
    ) -> None:
        self.stream = stream
        self.sequences = sequences
        self.times = times
        self.subjects = subjects
        self.data = data  # None: the payloads were not requested
        self.headers = headers
        #: More columns, by name.
        self.more: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.subjects)

    def take(self, rows: list[int]) -> Rows:
        """Return the rows at these positions."""
        data = self.data
        return Rows(
            self.stream,
            self.sequences.take(rows),
            self.times.take(rows),
            [self.subjects[i] for i in rows],
            None if data is None else [data[i] for i in rows],
            [self.headers[i] for i in rows],
        )


def arrow_schema(schema: StructType) -> Any:
    """Return the exact Arrow schema that Spark 4.2 and later require of the first batch."""
    from pyspark.sql.pandas.types import to_arrow_schema

    names = inspect.signature(to_arrow_schema).parameters
    if "timezone" in names:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # before 4.2 it is always UTC


def record_batch(rows: Rows, schema: Any) -> Any:
    """Return a record batch with the columns of this Arrow schema."""
    columns = [_column(rows, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(rows: Rows, field: Any) -> Any:
    name = field.name
    if name == "subject":
        return _strings(rows.subjects, field.type)
    if name == "data":
        return (
            pa.nulls(len(rows), field.type)
            if rows.data is None
            else pa.array(rows.data, field.type)
        )
    if name == "headers":
        return header_maps(rows.headers, field.type)
    if name == "stream":
        return pa.repeat(pa.scalar(rows.stream, field.type), len(rows))
    if name == "sequence":
        return rows.sequences
    if name == "timestamp_ns":
        return rows.times
    if name == "timestamp":
        return pc.divide(rows.times, _MICROSECOND).cast(field.type)
    return pa.array(rows.more[name], field.type)


def _strings(values: Sequence[bytes], type_: Any) -> Any:
    try:
        return pa.array(values, type_)
    except pa.ArrowInvalid:
        # A subject is not UTF-8, which a column of text cannot represent.
        return pa.array([value.decode(errors="replace") for value in values], type_)


def header_maps(blocks: Sequence[bytes | None], type_: Any) -> Any:
    """Return maps from names to lists of values; null where a message has no headers."""
    if not any(blocks):
        return pa.nulls(len(blocks), type_)
    starts: list[int | None] = []
    names: list[str] = []
    sizes = [0]
    values: list[str] = []
    for block in blocks:
        if block is None:
            starts.append(None)
            continue
        begin = len(names)
        starts.append(begin)
        for line in block.decode(errors="replace").split("\r\n")[1:-2]:
            name, colon, value = line.partition(":")
            if not colon or not name:
                continue
            if name in names[begin:]:  # rare: once more, by name
                _regroup(block, begin, names, sizes, values)
                break
            names.append(name)
            values.append(value.strip(_SPACE))
            sizes.append(len(values))
    starts.append(len(names))
    lists = pa.ListArray.from_arrays(
        pa.array(sizes, pa.int32()), pa.array(values, type_.item_type.value_type)
    ).cast(type_.item_type)
    offsets = pa.array(starts, pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(names, type_.key_type), lists).cast(type_)


def _regroup(
    block: bytes, begin: int, names: list[str], sizes: list[int], values: list[str]
) -> None:
    """Replace the headers of a block that repeats a name by their grouped form."""
    names[begin:] = []
    values[sizes[begin] :] = []
    sizes[begin + 1 :] = []
    for name, group in read_headers(block).items():
        names.append(name)
        values += group
        sizes.append(len(values))


def read_headers(block: bytes) -> dict[str, list[str]]:
    """Return the headers in a block, as far as they can be parsed.

    The server does not validate them, and one invalid message must not stop a job. So lines without
    a name are skipped, and bytes that are not UTF-8 are replaced.
    """
    headers: dict[str, list[str]] = {}
    for line in block.decode(errors="replace").split("\r\n")[1:-2]:
        name, colon, value = line.partition(":")
        if colon and name:
            headers.setdefault(name, []).append(value.strip(_SPACE))
    return headers


def pulled_rows(stream: str, messages: list[Msg], bare: bool = False) -> Rows:
    """Return delivered messages as rows; `bare` if the consumer omits payloads."""
    sequences, times = read_replies([msg.raw_reply for msg in messages])
    return Rows(
        stream,
        sequences,
        times,
        [msg.raw_subject for msg in messages],
        None if bare else [msg.data for msg in messages],
        [msg.raw_headers for msg in messages],
    )


def read_replies(replies: list[bytes]) -> tuple[Any, Any]:
    """Return sequences and times as int64 arrays; raise NotJetStreamMessage if a reply has none."""
    first = replies[0].split(b".")
    # The tokens up to the number of deliveries; for the others, see jetstream.api.metadata.
    fixed = 5 if len(first) == 9 else 7
    names = [str(i) for i in range(len(first) - fixed)]
    if len(names) >= 4:
        same = b".".join(first[:fixed]) + b"."
        # A reply that starts differently, such as that of a redelivery, stays whole: not a row.
        rest = b"\n".join([reply.removeprefix(same) for reply in replies])
        with contextlib.suppress(pa.ArrowInvalid):
            return _read_csv(rest, names)
    places = [read_metadata(reply) for reply in replies]
    return (
        pa.array([place.stream_seq for place in places], pa.int64()),
        pa.array([place.timestamp_ns for place in places], pa.int64()),
    )


def _read_csv(text: bytes, names: list[str]) -> tuple[Any, Any]:
    table = csv.read_csv(
        pa.py_buffer(text),
        read_options=csv.ReadOptions(
            use_threads=False, column_names=names, block_size=len(text) + 1
        ),
        parse_options=csv.ParseOptions(delimiter=".", quote_char=False),
        convert_options=csv.ConvertOptions(
            column_types={"0": pa.int64(), "2": pa.int64()}, include_columns=["0", "2"]
        ),
    )
    if table.num_rows != text.count(b"\n") + 1:
        raise pa.ArrowInvalid("an empty line")  # which is skipped otherwise
    return table.column(0).combine_chunks(), table.column(1).combine_chunks()
