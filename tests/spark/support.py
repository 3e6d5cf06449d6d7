"""Helpers for tests of the source: readers without Spark, and streams to read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from jetstream.spark.options import BATCH, STREAM, read_options
from jetstream.spark.source import BatchReader
from jetstream.spark.stream import stream_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jetstream.blocking import JetStream
    from natsproto.testing import Server

TYPES = {
    "subject": StringType(),
    "data": BinaryType(),
    "headers": MapType(StringType(), ArrayType(StringType())),
    "stream": StringType(),
    "sequence": LongType(),
    "timestamp": TimestampType(),
    "timestamp_ns": LongType(),
    "consumer": StringType(),
    "num_delivered": LongType(),
    "num_pending": LongType(),
}
ROWS = ("subject", "data", "headers", "stream", "sequence", "timestamp")


def schema(*names: str) -> StructType:
    made = StructType()
    for name in names:
        made = made.add(name, TYPES[name])
    return made


def batch_reader(server: Server, columns: Iterable[str] = ("sequence",), **options: Any) -> Any:
    texts = {"servers": server.url, **{name: str(value) for name, value in options.items()}}
    return BatchReader(read_options(texts, BATCH), schema(*columns))


def query_reader(server: Server, columns: Iterable[str] = ("sequence",), **options: Any) -> Any:
    texts = {"servers": server.url, **{name: str(value) for name, value in options.items()}}
    return stream_reader(read_options(texts, STREAM), schema(*columns))


def rows_of(reader: Any, partitions: Any = None) -> list[dict[str, Any]]:
    """Return the rows that tasks would read, one task after the other."""
    parts = reader.partitions() if partitions is None else partitions
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def sequences(reader: Any, partitions: Any = None) -> list[int]:
    return [row["sequence"] for row in rows_of(reader, partitions)]


def check_soon(look: Callable[[], Any], expected: Any) -> None:
    """Wait until the server has processed acknowledgments, which it does not confirm."""
    deadline = time.monotonic() + 10
    while look() != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert look() == expected


def check_left(js: JetStream, stream: str, count: int) -> None:
    """Check how many messages a stream has once the acknowledged ones are removed."""
    check_soon(lambda: js.stream(stream).cached_info.state.messages, count)


def fill(js: JetStream, name: str, count: int, *, subjects: int = 1, size: int = 8) -> None:
    """Publish messages; message i has the subject <name>.<i % subjects> and i as its data."""
    with js.publisher(max_pending=1000) as publisher:
        for i in range(count):
            publisher.publish(f"{name}.{i % subjects}", b"%0*d" % (size, i))


def make(js: JetStream, name: str, count: int = 0, *, subjects: int = 1, **config: Any) -> Any:
    stream = js.create_stream(name=name, subjects=[f"{name}.>"], **config)
    fill(js, name, count, subjects=subjects)
    return stream
