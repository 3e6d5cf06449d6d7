"""The sink: what Spark calls to write a DataFrame, or the micro-batches of a query.

A writer is made on the driver, where columns and options are checked, and pickled to the tasks. A
task that fails runs again from its first row, and a query that restarts repeats its last
micro-batch. What that does to rows that are stored is the delivery:

    dedup        each row has an id, and the stream drops those that it knows (sending.py)
    atomic       rows are skipped by what the last marker tells (atomic.py)

and for both, that a repeated write has the rows that are stored is checked (replay.py).

    atLeastOnce  they are stored again
    fast         so they are, at the least cost (fast.py)

What needs pyarrow (encoder.py) is imported by the tasks alone: see columns.py.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from jetstream.api.client import require_level
from jetstream.errors import JetStreamNotAvailable, TemporarilyUnavailable
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidValue,
    NatsError,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.wire.text import shorten

from .atomic import ROWS, AtomicWriter, Task, read_marker
from .columns import check_columns
from .compat import ARROW_QUERIES
from .connect import client, jetstream
from .fast import FastSender
from .queries import StreamQueries
from .replay import Verifier, mismatch
from .sending import Sender, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

    from .options import Settings

logger: logging.Logger = logging.getLogger("jetstream.spark")
_SLOW = 0.5  # seconds from batch to batch
_UNASKED = (  # why a stream may not be asked on the driver, though tasks may write to it
    ConnectionClosed,
    JetStreamNotAvailable,
    PermissionDenied,
    TemporarilyUnavailable,
    TimeoutExpired,
)
_checked: set[str] = set()  # the queries whose stream this process has looked at


class Written(WriterCommitMessage):
    """What a task has written; `task` and whether it left markers, if the delivery is atomic."""

    def __init__(self, tally: Tally, task: Task | None = None, marked: bool = False) -> None:
        self.tally = tally
        self.task = task
        self.marked = marked

    def __repr__(self) -> str:
        return "Written(%r)" % self.tally


class Sink:
    """What the writers share. Picklable; in the tasks, `write` does the work."""

    def __init__(self, settings: Settings, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise InvalidValue(
                "a stream is appended to, never overwritten: use mode (of queries: output mode)"
                " append"
            )
        self._settings = settings
        self._types = check_columns(schema, settings)
        # The same for all attempts at the tasks of a write.
        self._write_id = settings.text("writeId") or secrets.token_hex(8)
        self._query = ""  # the id in its checkpoint, if it is one

    def write_batches(self, batches: Iterable[pa.RecordBatch], write: int | None) -> Written:
        """All rows of a task; `write` is the number of the micro-batch, if it is one."""
        context = _context()
        if "ttl" in self._types:
            info = client(self._settings).inner.session.connection.info
            require_level(info, 1, "the TTL of a message")
        partition = context.partitionId()
        if self._settings.text("delivery") == "atomic":
            markers = "%s.%s.%d" % (
                self._settings.text("markerSubject"),
                self._write_id,
                partition,
            )
            return self._write_atomic(batches, Task(markers, self._query, write or 0))
        return Written(self._send(batches, self._ids(write, partition)))

    def _ids(self, write: int | None, partition: int) -> str:
        """What the ids of this task's rows begin with; "" if they get none."""
        if self._settings.text("delivery") != "dedup":
            return ""
        names = [self._write_id]
        if self._query and self._query != self._write_id:
            names.append(self._query)  # a new checkpoint under this writeId is another write
        numbers = [partition] if write is None else [write, partition]
        return ".".join([*names, *map(str, numbers)])

    def _send(self, batches: Iterable[pa.RecordBatch], ids: str) -> Tally:
        from .encoder import Encoder

        encoder = Encoder(self._settings, ids)
        verifier = self._verifier(ids)
        with self._sender(verifier) as sender:
            asked = time.monotonic()
            for batch in batches:
                # Nobody reads acknowledgements while Spark makes the next rows. If that takes long,
                # as far as the first batch and the last wait tell, none are left open meanwhile.
                first = not encoder.rows
                slow = first or time.monotonic() - asked > _SLOW
                pieces = encoder.encode(batch)
                if first and verifier is not None and pieces:
                    # Alone: of a task that has other rows than before, nothing is stored then.
                    sender.send(pieces[:1])
                    sender.finish()
                    pieces = pieces[1:]
                sender.send(pieces)
                if slow:
                    sender.finish()
                asked = time.monotonic()
            sender.finish()
        if verifier is not None and verifier.gone:
            logger.warning(
                "%d rows of %s were stored before and are not in the stream any more, so that they"
                " are the same rows could not be verified",
                verifier.gone,
                ids,
            )
        return sender.tally

    def _verifier(self, ids: str) -> Verifier | None:
        if not ids:
            return None
        settings = self._settings
        api = StreamQueries(settings, "").api()
        return Verifier(jetstream(settings).inner, api, ids, settings.text("writeId"))

    def _sender(self, verifier: Verifier | None) -> Sender | FastSender:
        settings = self._settings
        timeout = settings.seconds("requestTimeout")
        if settings.text("delivery") == "fast":
            return FastSender(client(settings), jetstream(settings), timeout)
        window = settings.number("maxInFlight")
        return Sender(client(settings), jetstream(settings), window, timeout, verifier)

    def _write_atomic(self, batches: Iterable[pa.RecordBatch], task: Task) -> Written:
        from .encoder import Encoder

        settings = self._settings
        encoder = Encoder(settings, "")
        writer: AtomicWriter | None = None
        skip = 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None:  # not before there is a row: an empty partition leaves no marker
                writer = AtomicWriter(settings, task)
                skip = writer.take_over()
            stored = min(skip, batch.num_rows)
            skip -= stored
            if stored:
                writer.skip(encoder.encode(batch.slice(0, stored), writer.new_id()))
            for part in _parts(batch.slice(stored), ROWS):
                batch_id = writer.new_id()
                writer.write(batch_id, encoder.encode(part, batch_id))
        if writer is None:
            return Written(Tally(), task)
        writer.finish()
        return Written(writer.tally, task, marked=True)

    def end(self, messages: list[WriterCommitMessage | None], what: str) -> Tally:
        """On the driver, when all tasks have written; only the last markers are of use then."""
        tally = Tally()
        written = [message for message in messages if isinstance(message, Written)]
        for message in written:
            tally.add(message.tally)
        logger.info("%s: %r", what, tally)
        tasks = [message.task for message in written if message.task is not None]
        marked = [message.task.markers for message in written if message.task and message.marked]
        if tasks and (tasks[0].query or self._settings.given("writeId")):
            self._check_all_covered(tasks[0], set(marked))
        if marked:
            self._sweep(marked)
        return tally

    def _check_all_covered(self, task: Task, marked: set[str]) -> None:
        """Raise ReplayMismatch if an earlier run stored rows of partitions that are empty here.

        Each task looks at the rows of its own partition. Those of a partition that this run does
        not have, or has no rows for, are in another one now, and stored a second time there.
        """
        base = task.markers.rpartition(".")[0]
        try:
            stream = jetstream(self._settings).stream("".join(self._settings.list("stream")))
            known = stream.info(subjects_filter=base + ".>").state.subjects
            others = [read_marker(stream, each, task.query) for each in known if each not in marked]
        except NatsError as error:
            logger.warning("whether all partitions have their rows is not checked: %s", error)
            return
        for marker in others:
            if (marker.task.query, marker.task.write) == task[1:] and marker.rows:
                text = "%s: an earlier run stored %d rows of a partition that has none now, so they"
                text += " are stored twice; purge this subject to go on"
                where = (marker.task.markers, marker.rows)
                raise mismatch(text % where, self._settings.text("writeId"))

    def _sweep(self, markers: list[str]) -> None:
        try:
            stream = jetstream(self._settings).stream("".join(self._settings.list("stream")))
            for subject in markers:
                stream.purge(subject=subject, keep=1)
        except NatsError as error:  # they are in nobody's way
            logger.warning("old markers are left in the stream: %s", error)


class BatchWriter(Sink, DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, settings: Settings, schema: StructType, overwrite: bool) -> None:
        super().__init__(settings, schema, overwrite)
        check_target(settings, self._write_id, self._types)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:  # of RecordBatch
        return self.write_batches(iterator, None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.end(messages, "written")


class StreamWriter(Sink, DataSourceStreamWriter):
    """Writes micro-batches by rows: all that Spark 4.0 has."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        from .encoder import to_batches

        return self.write_micro_batch(to_batches(iterator, self._types))

    def write_micro_batch(self, batches: Iterable[pa.RecordBatch]) -> WriterCommitMessage:
        context = _context()
        query = context.getLocalProperty("sql.streaming.queryId")
        number = context.getLocalProperty("streaming.sql.batchId")
        if not query or number is None:
            raise InvalidState("Spark does not tell the task its query and its micro-batch")
        self._query = query  # as it is in the checkpoint
        if not self._settings.given("writeId"):
            self._write_id = query
        if query not in _checked:
            # In the first task of each worker: Spark makes two writers for each micro-batch on the
            # driver, in processes of their own, and one of them only to be told of the commit.
            check_target(self._settings, self._write_id, self._types)
            _checked.add(query)
        return self.write_batches(batches, int(number))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.end(messages, "micro-batch %d" % batchId)


def batch_writer(settings: Settings, schema: StructType, overwrite: bool) -> BatchWriter:
    return BatchWriter(settings, schema, overwrite)


def stream_writer(settings: Settings, schema: StructType, overwrite: bool) -> StreamWriter:
    if ARROW_QUERIES:
        from .sink_arrow import StreamArrowWriter

        return StreamArrowWriter(settings, schema, overwrite)
    return StreamWriter(settings, schema, overwrite)


def check_target(settings: Settings, write_id: str, types: dict[str, str]) -> None:
    """InvalidValue for what the stream will refuse; a warning where it may forget too early.

    Without a connection, or the permission to ask, nothing is said: a driver may have none.
    """
    try:
        js = jetstream(settings)
        name = "".join(settings.list("stream"))
        if not name and settings.given("subject") and "subject" not in types:
            name = js.stream_name_by_subject(settings.text("subject"))
        if not name:
            return
        config = js.stream(name).cached_info.config
        delivery = settings.text("delivery")
        if delivery == "fast" and not config.allow_batched:
            raise InvalidValue("delivery=fast: stream %s does not have allow_batched" % name)
        markers = ""
        if delivery == "atomic":
            markers = "%s.%s.0" % (settings.text("markerSubject"), write_id)
            if not config.allow_atomic:
                raise InvalidValue("delivery=atomic: stream %s does not have allow_atomic" % name)
            if js.stream_names(markers) != [name]:
                text = "option markerSubject: stream %s does not take %s"
                raise InvalidValue(text % (name, shorten(markers)))
    except _UNASKED as error:
        logger.warning("the stream cannot be asked, so nothing is checked: %s", error)
        return
    if "ttl" in types and not config.allow_msg_ttl:
        raise InvalidValue("column ttl: stream %s does not have allow_msg_ttl" % name)
    if delivery == "dedup":
        _check_window(name, config.duplicate_window, settings.seconds("minDuplicateWindow"))


def _check_window(name: str, window: float, least: float) -> None:
    if window < least:
        logger.warning(
            "stream %s has a duplicate_window of %g s: rows that are written again later than that,"
            " by a task that is retried or a query that restarts, are stored twice. At least %g s"
            " are wanted (option minDuplicateWindow); delivery=atomic needs no window",
            name,
            window,
            least,
        )


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise InvalidState("rows are written by tasks of Spark, and this is none")
    return context


def _parts(batch: pa.RecordBatch, most: int) -> Iterator[Any]:
    """Slices of about the same size, so that none of them is tiny."""
    count = batch.num_rows
    parts = -(-count // most)
    for part in range(parts):
        start, end = count * part // parts, count * (part + 1) // parts
        yield batch.slice(start, end - start)
