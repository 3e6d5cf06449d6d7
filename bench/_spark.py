"""The code that Spark's workers import and run for spark.py, and the code it is compared with."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEMA = "subject STRING, data BINARY, sequence BIGINT, timestamp TIMESTAMP"
FETCH = 10_000
SIZE = 128
_WAIT = 1.0  # seconds, as long as the source waits for a message


def plain_read(url: str, stream: str, count: int) -> int:
    """Read through the public API without Arrow, and access every message as for a row."""
    from datetime import datetime, timezone

    seen = 0
    with connect(url) as client:
        consumer = JetStream(client).create_consumer(stream, ack_policy="none", mem_storage=True)
        while seen < count:
            for msg in consumer.fetch(min(FETCH, count - seen), expires=5.0):
                metadata = msg.metadata
                stamp = datetime.fromtimestamp(metadata.timestamp_ns / 1e9, timezone.utc)
                row = (msg.subject, msg.data, metadata.stream_seq, stamp)
                seen += len(row) // 4
        consumer.delete()
    return seen


class Tuples(DataSource):
    """The same stream through the same client, as a source that yields tuples."""

    @classmethod
    def name(cls) -> str:
        return "jetstream_tuples"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return TuplesReader(self.options["servers"], int(self.options["count"]))


class TuplesReader(DataSourceReader):
    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._count = count

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        from datetime import datetime, timezone

        left = self._count
        with connect(self._url) as client:
            consumer = JetStream(client).create_consumer("IN", ack_policy="none", mem_storage=True)
            while left:
                batch = consumer.fetch(min(FETCH, left), expires=5.0)
                left -= len(batch)
                for msg in batch:
                    metadata = msg.metadata
                    stamp = datetime.fromtimestamp(metadata.timestamp_ns / 1e9, timezone.utc)
                    yield msg.subject, msg.data, metadata.stream_seq, stamp
            consumer.delete()


def nats_py(url: str, count: int) -> Any:
    """Read with nats-py in mapInArrow, as programs without a connector do."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield asyncio.run(fetch())

    async def fetch() -> pa.RecordBatch:
        import nats
        from nats.js.api import AckPolicy, ConsumerConfig

        client = await nats.connect(url)
        config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
        pull = await client.jetstream().pull_subscribe("in", stream="IN", config=config)
        columns: list[list[Any]] = [[], [], [], []]
        while len(columns[0]) < count:
            for msg in await pull.fetch(min(1000, count - len(columns[0])), timeout=5):
                row = (msg.subject, msg.data, msg.metadata.sequence.stream, msg.metadata.timestamp)
                for column, value in zip(columns, row):
                    column.append(value)
        await client.close()
        kinds = [pa.string(), pa.binary(), pa.int64(), pa.timestamp("us", "UTC")]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds)]
        return pa.RecordBatch.from_arrays(arrays, ["subject", "data", "sequence", "timestamp"])

    return read


class Nothing(DataSource):
    """Spark alone: a source with the same rows from memory, and a sink that drops them.

    As a stream, it has a row for each byte of a file, which a program extends to wake it.
    """

    @classmethod
    def name(cls) -> str:
        return "nothing"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return MemoryReader(int(self.options["count"]))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        return DroppingWriter()

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return FileReader(self.options["file"])


def rows(count: int) -> pa.RecordBatch:
    arrays = [
        pa.array(["in"] * count, pa.string()),
        pa.array([bytes(SIZE)] * count, pa.binary()),
        pa.array(range(count), pa.int64()),
        pa.array([0] * count, pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(arrays, ["subject", "data", "sequence", "timestamp"])


class MemoryReader(DataSourceReader):
    def __init__(self, count: int) -> None:
        self._count = count

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        batch = rows(FETCH)
        for start in range(0, self._count, FETCH):
            yield batch.slice(0, min(FETCH, self._count - start))


class DroppingWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for batch in iterator:
            assert batch.num_rows
        return WriterCommitMessage()


class FileReader(DataSourceStreamReader):
    """Waits for a row without a trigger interval, like the source with which it is compared."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def initialOffset(self) -> dict[str, int]:
        return {"size": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        deadline = time.monotonic() + _WAIT
        while time.monotonic() < deadline:
            size = self._path.stat().st_size
            if start is None or size > start["size"]:
                break
            time.sleep(0.002)
        return {"size": self._path.stat().st_size}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        return ReadAllAvailable()

    def reportLatestOffset(self) -> None:
        return None

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(end["size"] - start["size"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield rows(partition.value)
