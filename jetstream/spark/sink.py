"""The sink: the writers that Spark calls for a DataFrame or for the micro-batches of a query.

A writer is created on the driver, which checks columns and options, and is pickled to the tasks. A
task that fails runs again from its first row, and a query that restarts repeats its last
micro-batch. The delivery determines what happens to the rows that are already stored:

    dedup        each row has an id, and the stream drops ids that it knows (sending.py)
    atomic       the last marker says how many rows to skip (atomic.py)
    atLeastOnce  they are stored again
    fast         they are stored again; costs the least (fast.py)

With dedup and atomic, a repeated write must have the rows that are stored (replay.py).

Only tasks import encoder.py, which needs pyarrow: see columns.py.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from jetstream.api.client import require_level
from natsproto.errors import InvalidState, InvalidValue, NatsError

from .atomic import ROWS, AtomicWriter, Task, new_name, read_marker, sweep_unnamed
from .columns import check_columns
from .compat import ARROW_QUERIES
from .connect import client, jetstream
from .covered import Positions, check_task, check_write, may_be_replay, unchecked
from .deadletter import DeadLetters
from .fast import FastSender
from .garbage import no_collection
from .queries import StreamQueries
from .replay import Verifier, mismatch
from .retry import retry
from .sending import Sender, Tally
from .target import check_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

    from .atomic import Marker
    from .columns import Piece
    from .options import Settings

logger: logging.Logger = logging.getLogger("jetstream.spark")
_SLOW = 0.5  # seconds from batch to batch
_checked: set[str] = set()  # the queries whose stream this process has checked


class Written(WriterCommitMessage):
    """The result of a task.

    With delivery=atomic also the `task`, and whether it left markers; with delivery=dedup its
    `positions`, unless all rows have ids of their own.
    """

    def __init__(
        self,
        tally: Tally,
        task: Task | None = None,
        marked: bool = False,
        positions: Positions | None = None,
    ) -> None:
        self.tally = tally
        self.task = task
        self.marked = marked
        self.positions = positions

    def __repr__(self) -> str:
        return "Written(%r)" % self.tally


class Sink:
    """The base of the writers. Picklable; in the tasks, `write` does the work."""

    def __init__(self, settings: Settings, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise InvalidValue(
                "a stream cannot be overwritten: use mode append (of a query: output mode append)"
            )
        self._settings = settings
        self._types = check_columns(schema, settings)
        # The same for all attempts at the tasks of a write.
        self._write_id = settings.text("writeId") or new_name(time.time())
        self._query = ""  # the id in its checkpoint, if a query writes
        self._again = settings.given("writeId")  # whether this may be the repetition of a write

    def write_batches(self, batches: Iterable[pa.RecordBatch], write: int | None) -> Written:
        """Write all rows of a task; `write` is the number of the micro-batch, None for a batch."""
        with no_collection():
            return self._write_batches(batches, write)

    def _write_batches(self, batches: Iterable[pa.RecordBatch], write: int | None) -> Written:
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
        return self._send(batches, self._ids(write, partition))

    @property
    def _by_content(self) -> bool:
        return self._settings.text("rowIds") == "content"

    def _ids(self, write: int | None, partition: int) -> str:
        """Return the prefix of this task's row ids; "" if the rows get none."""
        if self._settings.text("delivery") != "dedup":
            return ""
        names = [self._write_id]
        if self._query and self._query != self._write_id:
            names.append(self._query)  # a new checkpoint under this writeId is another write
        if write is not None:
            names.append(str(write))
        if not self._by_content:  # which does not depend on the partition
            names.append(str(partition))
        return ".".join(names)

    def _send(self, batches: Iterable[pa.RecordBatch], ids: str) -> Written:
        from .encoder import Encoder

        encoder = Encoder(self._settings, ids)
        verifier = self._verifier(ids)
        dead = self._settings.text("deadLetterSubject")
        letters = DeadLetters(dead, ids, self._by_content) if dead else None
        stored: tuple[int, str] | None = None  # the first row that is not a dead letter
        with self._sender(verifier, letters) as sender:
            requested = time.monotonic()
            for batch in batches:
                # Acknowledgments are not read while Spark computes the next rows. If that may take
                # long, judging by the time for this batch, all are awaited first.
                begin = encoder.rows
                slow = stored is None or time.monotonic() - requested > _SLOW
                pieces = letters.encode(encoder, batch) if letters else encoder.encode(batch)
                left = pieces
                if not begin and verifier is not None and pieces:
                    # Alone: if the rows of the task have changed, none of them is stored.
                    sender.send(pieces[:1])
                    sender.finish()
                    left = pieces[1:]
                sender.send(left)
                if slow:
                    sender.finish()
                    stored = stored or _first_stored(pieces, begin, letters)
                requested = time.monotonic()
            sender.finish()
        if letters is not None:
            sender.tally.dead = len(letters.rows)
        if verifier is None or encoder.all_named:
            return Written(sender.tally)
        if verifier.gone:
            logger.warning(
                "%d rows of %s were stored before, but the stream has removed them, so they could"
                " not be compared",
                verifier.gone,
                ids,
            )
        again = self._again or sender.tally.duplicates > 0
        row, subject = stored or (0, "")
        positions = Positions(ids, encoder.rows, subject, again, row)
        check_task(self._settings, positions, letters)
        return Written(sender.tally, positions=self._for_driver(positions))

    def _for_driver(self, positions: Positions) -> Positions:
        if self._query or self._settings.given("writeId"):
            return positions
        # No earlier write had these ids, so the driver has nothing to check: a duplicate is a row
        # that was sent again.
        return positions._replace(again=False)

    def _verifier(self, ids: str) -> Verifier | None:
        if not ids or self._by_content:  # an id that is known says that the content is the same
            return None
        settings = self._settings
        api = StreamQueries(settings, "").api()
        return Verifier(jetstream(settings).inner, api, ids, settings.text("writeId"))

    def _sender(
        self, verifier: Verifier | None, letters: DeadLetters | None
    ) -> Sender | FastSender:
        settings = self._settings
        timeout = settings.seconds("requestTimeout")
        if settings.text("delivery") == "fast":
            return FastSender(client(settings), jetstream(settings), timeout)
        window = settings.number("maxInFlight")
        return Sender(client(settings), jetstream(settings), window, timeout, verifier, letters)

    def _write_atomic(self, batches: Iterable[pa.RecordBatch], task: Task) -> Written:
        from .encoder import Encoder

        settings = self._settings
        encoder = Encoder(settings, "")
        writer: AtomicWriter | None = None
        skip = 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None:  # only now: an empty partition leaves no marker
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
        """Finish a write on the driver: log the totals, check the partitions, purge old markers."""
        tally = Tally()
        written = [message for message in messages if isinstance(message, Written)]
        for message in written:
            tally.add(message.tally)
        logger.info("%s: %r", what, tally)
        if tally.dead:
            subject = self._settings.text("deadLetterSubject")
            logger.warning(
                "%s: %d rows could not be written and are on %s", what, tally.dead, subject
            )
        tasks = [message.task for message in written if message.task is not None]
        marked = [message.task.markers for message in written if message.task and message.marked]
        if tasks and (tasks[0].query or self._settings.given("writeId")):
            self._check_all_covered(tasks[0], set(marked))
        if marked:
            self._sweep(marked)
        positions = [message.positions for message in written if message.positions is not None]
        check_write(self._settings, positions)
        return tally

    def _check_all_covered(self, task: Task, marked: set[str]) -> None:
        """Raise ReplayMismatch if an earlier run stored rows of partitions that are empty here.

        Each task checks the rows of its own partition. If this run does not have a partition, or
        has no rows for it, its rows are in another one now, and were stored there a second time.
        """
        base = task.markers.rpartition(".")[0]

        def look_up() -> list[Marker]:
            stream = jetstream(self._settings).stream("".join(self._settings.list("stream")))
            known = stream.info(subjects_filter=base + ".>").state.subjects
            return [read_marker(stream, each, task.query) for each in known if each not in marked]

        try:
            others = retry(look_up)
        except NatsError as error:
            raise unchecked(error) from error
        for marker in others:
            if (marker.task.query, marker.task.write) == task[1:] and marker.rows:
                text = "%s: an earlier run stored %d rows of a partition that has none now, so they"
                text += " are stored twice; purge this subject to continue"
                where = (marker.task.markers, marker.rows)
                raise mismatch(text % where, self._settings.text("writeId"))

    def _sweep(self, markers: list[str]) -> None:
        try:
            stream = jetstream(self._settings).stream("".join(self._settings.list("stream")))
            for subject in markers:
                stream.purge(subject=subject, keep=1)
            sweep_unnamed(stream, self._settings.text("markerSubject"), time.time())
        except NatsError as error:  # old markers do no harm
            logger.warning("old markers were not purged: %s", error)


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
    """Writes micro-batches by rows, the only way of Spark 4.0."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        from .encoder import to_batches

        return self.write_micro_batch(to_batches(iterator, self._types))

    def write_micro_batch(self, batches: Iterable[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task of a micro-batch, which the task's properties identify."""
        context = _context()
        query = context.getLocalProperty("sql.streaming.queryId")
        number = context.getLocalProperty("streaming.sql.batchId")
        if not query or number is None:
            raise InvalidState("Spark did not pass the query id and the batch id to the task")
        self._query = query  # as it is in the checkpoint
        run = context.getLocalProperty("spark.jobGroup.id") or ""
        self._again = may_be_replay(query, run, int(number))
        if not self._settings.given("writeId"):
            self._write_id = query
        if query not in _checked:
            # In the first task of each worker, not on the driver: there Spark creates two writers
            # for each micro-batch, in separate processes, and one of them only for the commit.
            check_target(self._settings, self._write_id, self._types)
            _checked.add(query)
        return self.write_batches(batches, int(number))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.end(messages, "micro-batch %d" % batchId)


def batch_writer(settings: Settings, schema: StructType, overwrite: bool) -> BatchWriter:
    """Return the writer of a DataFrame."""
    return BatchWriter(settings, schema, overwrite)


def stream_writer(settings: Settings, schema: StructType, overwrite: bool) -> StreamWriter:
    """Return the writer of a query, by Arrow batches if Spark can."""
    if ARROW_QUERIES:
        from .sink_arrow import StreamArrowWriter

        return StreamArrowWriter(settings, schema, overwrite)
    return StreamWriter(settings, schema, overwrite)


def _first_stored(
    pieces: list[Piece], first: int, letters: DeadLetters | None
) -> tuple[int, str] | None:
    """Return the number and the subject of the first of these rows that is not a dead letter."""
    for row, (subject, _, _) in enumerate(pieces, first):
        if letters is None or row not in letters.rows:
            return row, subject.decode(errors="replace")
    return None


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise InvalidState("rows can only be written in a task of Spark")
    return context


def _parts(batch: pa.RecordBatch, most: int) -> Iterator[Any]:
    """Yield slices of about the same size, so that none of them is tiny."""
    count = batch.num_rows
    parts = -(-count // most)
    for part in range(parts):
        start, end = count * part // parts, count * (part + 1) // parts
        yield batch.slice(start, end - start)
