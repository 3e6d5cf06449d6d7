"""FilesReader: an object store as a table of binary files, with the columns of Spark's binaryFile.

The objects are listed when Spark plans the read, and divided among tasks by size. A task that finds
an object replaced or deleted since then fails, or with failOnDataLoss=false omits it: the bytes
that were listed no longer exist. Without the column `content` nothing but the list is read.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from jetstream.errors import LinkUnreadable, ObjectNotFound
from natsproto.wire.text import shorten

from .arrow import arrow_schema
from .connect import jetstream
from .offsets import report_data_loss
from .plan import default_parallelism
from .retry import RETRYABLE_READS, Backoff, retry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from jetstream.blocking import ObjectStore
    from jetstream.objects.info import ObjectInfo

    from .options import Settings

_MICROSECOND = 1000  # nanoseconds
# A record batch ends when it has this many bytes: objects may be large.
_BATCH_BYTES = 16 << 20
_BATCH_ROWS = 1000
# An object costs a task about as much as this many bytes.
_OBJECT_COST = 64 << 10


class Files(InputPartition):
    """The objects that a task reads."""

    def __init__(self, infos: list[ObjectInfo]) -> None:
        super().__init__(None)
        self.infos = infos


class FilesReader(DataSourceReader):
    """Created on the driver, and pickled to the workers."""

    def __init__(self, settings: Settings, schema: StructType, columns: list[str]) -> None:
        self.settings = settings
        self.schema = schema
        self.columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        infos = [
            info
            for info in retry(lambda: list(self._store().list()))
            if fnmatch.fnmatchcase(info.name, self.settings.text("pathGlobFilter") or "*")
        ]
        count = self.settings.number("minPartitions") or default_parallelism()
        return [Files(part) for part in divide(infos, count)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Files):
            return  # Spark has made it up, because there are none
        wanted = arrow_schema(self.schema)
        rows: list[tuple[ObjectInfo, bytes | None]] = []
        size = 0
        for info in partition.infos:
            if "content" not in self.columns:
                rows.append((info, None))
            else:
                try:
                    content = self._content(info)
                except ObjectNotFound:
                    text = "object %s of %s was replaced or deleted after it was listed"
                    report_data_loss(
                        text % (shorten(info.name), info.bucket),
                        self.settings.flag("failOnDataLoss"),
                    )
                    continue
                rows.append((info, content))
                size += len(content or b"")
            if size >= _BATCH_BYTES or len(rows) >= _BATCH_ROWS:
                yield files_batch(rows, wanted)
                rows, size = [], 0
        if rows:
            yield files_batch(rows, wanted)

    def _store(self) -> ObjectStore:
        return jetstream(self.settings).object_store(self.settings.text("objectStore"))

    def _content(self, listed: ObjectInfo) -> bytes | None:
        """Return the bytes of the object that was listed; None for a link to a whole bucket."""
        backoff = Backoff()
        while True:
            try:
                return self._get(listed)
            except RETRYABLE_READS as caught:
                error = caught
            backoff.failed(error)

    def _get(self, listed: ObjectInfo) -> bytes | None:
        try:
            reader = self._store().get(listed.name)
        except LinkUnreadable:
            return None
        with reader:
            if listed.link is None and reader.info.nuid != listed.nuid:
                raise ObjectNotFound(listed.bucket, listed.name)
            return reader.read()


def divide(infos: list[ObjectInfo], count: int) -> list[list[ObjectInfo]]:
    """Return at most `count` parts of about the same size, in the order of the list."""
    costs = [info.size + _OBJECT_COST for info in infos]
    share = max(1, -(-sum(costs) // count))
    parts: list[list[ObjectInfo]] = []
    filled = share
    for info, cost in zip(infos, costs):
        if filled >= share and len(parts) < count:
            parts.append([])
            filled = 0
        parts[-1].append(info)
        filled += cost
    return parts


def files_batch(rows: list[tuple[ObjectInfo, bytes | None]], schema: Any) -> Any:
    """Return a record batch with the columns of this Arrow schema."""
    infos = [info for info, _ in rows]
    columns: list[Any] = []
    for field in schema:
        if field.name == "content":
            columns.append(pa.array([content for _, content in rows], field.type))
        elif field.name == "modificationTime":
            times = [
                None if info.mtime is None else info.mtime.ns // _MICROSECOND for info in infos
            ]
            columns.append(pa.array(times, pa.int64()).cast(field.type))
        else:
            columns.append(pa.array([_value(info, field.name) for info in infos], field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(info: ObjectInfo, name: str) -> Any:
    if name == "path":
        return info.name
    if name == "length":
        return info.size
    if name == "headers":
        return list(info.headers.items())
    if name == "metadata":
        return list(info.metadata.items())
    return getattr(info, name)
