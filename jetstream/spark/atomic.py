"""delivery=atomic: each batch is stored as a whole, with a marker that counts the rows so far.

Every task of a write has a subject for its markers. A marker is the last message of an atomic
batch and contains the number of rows of the task that are stored. It is stored only if the marker
before it is still the last on its subject, so only one attempt at a task can write at a time:

    an attempt starts    it reads the last marker, takes over by writing its own, and skips the
                         rows that are stored, whose digest must be the one in the marker
    it continues         each batch expects the marker of the batch before
    it was superseded    its next batch is rejected (10071), because another attempt took over: it
                         fails
    no response          it reads the last marker: its own means that the batch is stored; if it is
                         the one before, the batch is sent again
    a later micro-batch  has written to this subject: the attempt fails

No clock and no window is involved: an attempt may start at any later time, as long as the stream
keeps the last marker.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from jetstream.api.client import read_reply, require_level
from jetstream.errors import (
    BatchRefused,
    InvalidResponse,
    JetStreamError,
    MessageNotFound,
    NoStreamResponse,
    PublishInDoubt,
    TooManyRequests,
    WrongLastSequence,
)
from jetstream.publish.atomic import BATCH_COMMIT, BATCH_ID, BATCH_SEQUENCE, MAX_BATCH
from jetstream.publish.headers import EXPECTED_LAST_SUBJECT_SEQ
from natsproto.errors import (
    ConnectionLost,
    NatsError,
    NoResponders,
    TimeoutExpired,
)
from natsproto.port import run_sync
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten, show

from .connect import client, jetstream
from .replay import Chain, ReplayMismatch, mismatch
from .retry import RETRYABLE_CALLS, retry
from .sending import Tally, WriteFailed

if TYPE_CHECKING:
    from jetstream.blocking import Stream
    from natsproto.connection.waitable import Request

    from .columns import Piece
    from .options import Settings

ROWS = MAX_BATCH - 1  # the marker is one of the messages of a batch
_TRIES = 6
_REST = 0.1  # before the second try; doubles
_UNCLEAR = (TimeoutExpired, ConnectionLost, NoResponders, TooManyRequests)
_INCOMPLETE = 10176
_UNNAMED = re.compile("unnamed-([0-9]{1,12})-[0-9a-f]{16}")
_KEPT = 600.0  # seconds that the markers of a write without a name are kept


class WriterFenced(JetStreamError):
    """Another attempt at this task, or a later micro-batch, has taken over: this one must stop."""


class Task(NamedTuple):
    """What all attempts at a task have in common.

    markers  the subject of its markers
    query    the id of the query; "" for a batch write
    write    the number of the micro-batch; 0 for a batch write
    """

    markers: str
    query: str
    write: int


class Marker:
    """The progress of a task: the number of rows that are stored, and their digest."""

    def __init__(
        self, seq: int, owner: str, task: Task, rows: int = 0, digest: str | None = None
    ) -> None:
        self.seq = seq
        self.owner = owner
        self.task = task
        self.rows = rows
        self.digest = digest

    def encode(self) -> bytes:
        """Return the payload of the message."""
        fields = {"owner": self.owner, "query": self.task.query, "write": self.task.write}
        return json.dumps({**fields, "rows": self.rows, "digest": self.digest}).encode()

    @staticmethod
    def decode(subject: str, seq: int, data: bytes, query: str) -> Marker:
        """Return the marker in a message; `query` is for markers of older versions, without one."""
        try:
            fields: Any = json.loads(data)
            task = Task(subject, str(fields.get("query", query)), int(fields["write"]))
            return Marker(
                seq, str(fields["owner"]), task, int(fields["rows"]), fields.get("digest")
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            text = "message %d on a marker subject is not a marker: %s"
            raise InvalidResponse(text % (seq, shorten(data))) from None


def read_marker(stream: Stream, subject: str, query: str) -> Marker:
    """Return the last marker; if there is none, one that precedes all others."""
    # From the leader: the last marker of a replica may be an old one.
    stream.cached_info.config.allow_direct = False
    try:
        msg = retry(lambda: stream.get_msg(last_by_subject=subject))
    except MessageNotFound:
        return Marker(0, "", Task(subject, query, -1))
    return Marker.decode(subject, msg.seq, msg.data, query)


def new_name(now: float) -> str:
    """Return a name for a write that has none; it contains the time in minutes."""
    return "unnamed-%d-%s" % (now // 60, secrets.token_hex(8))


def sweep_unnamed(stream: Stream, base: str, now: float) -> None:
    """Purge the markers of writes without a name that began some time ago.

    Nobody can repeat such a write. But copies of its tasks may still be starting when it ends.
    """
    subjects = stream.info(subjects_filter=base + ".>").state.subjects
    for name in {subject[len(base) + 1 :].partition(".")[0] for subject in subjects}:
        found = _UNNAMED.fullmatch(name)
        if found is not None and int(found[1]) * 60 < now - _KEPT:
            stream.purge(subject="%s.%s.>" % (base, name))


class AtomicWriter:
    """One attempt at one task: `take_over`, `skip` the stored rows, then `write` the others."""

    def __init__(self, settings: Settings, task: Task) -> None:
        self._js = jetstream(settings)
        self._stream = retry(lambda: self._js.stream("".join(settings.list("stream"))))
        self._port = self._js.port
        self._session = client(settings).inner.session
        require_level(self._session.connection.info, 2, "delivery=atomic")  # BATCH-6
        self._task = task
        self._subject = task.markers
        self._write_id = settings.text("writeId")
        self._timeout = settings.seconds("requestTimeout")
        self._owner = self._session.connection.new_token()
        self._last = Marker(0, "", task)
        self._chain = Chain()  # of the rows that were skipped or stored
        self._skipped = 0  # rows so far, of those that earlier attempts stored
        self._stored = 0  # the number of those
        self._connects = 0  # the number of the connection that the batch was sent on
        self._begun = False  # whether the stream has accepted a batch
        self.tally: Tally = Tally()

    def take_over(self) -> int:
        """Become the only attempt that may write; return the number of rows already stored."""
        for _ in range(_TRIES):
            last = self._read()
            self._check_owner(last)
            mine = Marker(0, self._owner, self._task)
            if last.task == self._task:
                mine.rows, mine.digest = last.rows, last.digest
            try:
                ack = self._js.publish(
                    self._subject,
                    mine.encode(),
                    expect_last_subject_seq=last.seq,
                    expect_stream=self._stream.name,
                )
            except WrongLastSequence:
                continue  # another attempt was faster: read its marker
            except (NoStreamResponse, PublishInDoubt, *RETRYABLE_CALLS):
                last = self._read()
                if last.owner != self._owner:
                    continue
                self._last = last
            else:
                mine.seq = ack.seq
                self._last = mine
            self._stored = self._last.rows
            return self._stored
        raise WriterFenced("%s: too many other attempts at this task took over" % self._subject)

    def skip(self, pieces: list[Piece]) -> None:
        """Skip rows that are stored; raise ReplayMismatch after the last if the digest differs."""
        self._chain.add(pieces)
        self._skipped += len(pieces)
        self.tally.count_stored(len(pieces))
        digest = self._last.digest  # None in a marker of an older version
        if self._skipped == self._stored and digest not in (None, self._chain.digest()):
            text = "%s: the first %d rows of this task are not those that an earlier attempt stored"
            raise mismatch(text % (self._subject, self._skipped), self._write_id)

    def finish(self) -> None:
        """End the task; raise ReplayMismatch if an earlier attempt stored more rows."""
        if self._skipped < self._stored:
            text = "%s: this task has %d rows, and an earlier attempt stored %d"
            raise mismatch(text % (self._subject, self._skipped, self._stored), self._write_id)

    def _read(self) -> Marker:
        return read_marker(self._stream, self._subject, self._task.query)

    def _check_owner(self, last: Marker) -> None:
        if last.task.query != self._task.query:
            text = "%s has markers of %s, and this is %s: use another writeId for each write, and"
            text += " purge the markers of finished ones"
            raise ReplayMismatch(text % (self._subject, _name(last.task), _name(self._task)))
        if last.task.write > self._task.write:
            raise self._fenced(last)

    def _fenced(self, last: Marker) -> WriterFenced:
        later = last.task.write > self._task.write
        who = "a later micro-batch" if later else "another attempt"
        text = "%s: %s has taken over: its marker is at %d, ours at %d"
        return WriterFenced(text % (self._subject, who, last.seq, self._last.seq))

    def new_id(self) -> str:
        """Return an id for the next batch."""
        return self._session.connection.new_token()

    def write(self, batch_id: str, pieces: list[Piece]) -> None:
        """Store up to ROWS rows, encoded for the batch of this id; raise WriteFailed, WriterFenced.

        After WriteFailed, none of them is stored.
        """
        chain = self._chain.copy()
        chain.add(pieces)
        rows = self._last.rows + len(pieces)
        marker = Marker(0, self._owner, self._task, rows, chain.digest())
        for turn in range(_TRIES):
            try:
                with self._port.lock:
                    marker.seq = run_sync(self._store(batch_id, pieces, marker.encode()))
            except (WrongLastSequence, BatchRefused, *_UNCLEAR) as error:
                last = self._read()
                if last.owner != self._owner:
                    raise self._fenced(last) from error
                if last.rows != self._last.rows:
                    marker.seq = last.seq  # the batch is stored; only the response was lost
                elif turn + 1 < _TRIES and _may_try_again(error):
                    self._rest(turn)
                    old, batch_id = batch_id, self.new_id()
                    pieces = [_for_batch(piece, old, batch_id) for piece in pieces]
                    continue
                else:
                    raise self._failed(pieces, error) from error
            except NatsError as error:
                raise self._failed(pieces, error) from error
            self._last, self._chain = marker, chain
            first, last_seq = marker.seq - len(pieces), marker.seq - 1
            self.tally.count(self._stream.name, first, last_seq, len(pieces))
            return

    def _rest(self, turn: int) -> None:
        with self._port.lock:
            run_sync(self._session.sleep(_REST * 2**turn))

    def _failed(self, pieces: list[Piece], error: NatsError) -> WriteFailed:
        return WriteFailed(self._last.rows, pieces[0][0].decode(errors="replace"), error)

    async def _store(self, batch_id: str, pieces: list[Piece], marker: bytes) -> int:
        """Send rows as one batch; return the sequence of its marker."""
        connection = self._session.connection
        port = self._port
        self._connects = connection.stats.connects
        first = self._request(*pieces[0])
        if not self._begun:
            # Only for the first batch: a stream without batches reports it before anything else is
            # sent.
            await self._check_begin(first)
            self._begun = True
        for subject, data, block in pieces[1:]:
            if connection.congested:
                port.flush_soon()
                while connection.congested:
                    await port.wait(connection.writable)
            if not connection.online:
                raise ConnectionLost("connection lost in the middle of a batch")
            connection.send(subject, data, b"", block)
        headers = Headers()
        headers.set(BATCH_ID, batch_id)
        headers.set(BATCH_SEQUENCE, str(len(pieces) + 1))
        headers.set(BATCH_COMMIT, "1")
        headers.set(EXPECTED_LAST_SUBJECT_SEQ, str(self._last.seq))
        commit = self._request(self._subject.encode(), marker, headers.encode())
        reply = await self._settle(commit)
        await self._check_begin(first)
        ack = read_reply(reply)
        if ack.get("batch") != batch_id or ack.get("count") != len(pieces) + 1:
            text = "batch %s of %d messages was acknowledged as %s"
            raise InvalidResponse(text % (batch_id, len(pieces) + 1, show(ack)))
        return int(ack["seq"])

    def _request(self, subject: bytes, data: bytes, block: bytes | None) -> Request:
        return self._session.connection.start_request(
            subject.decode(),
            data,
            deadline=self._session.deadline(self._timeout),
            headers=None if block is None else Headers.decode(block),
        )

    async def _settle(self, request: Request) -> bytes:
        """Await a response like Session.settle, but fail if the batch's connection is lost."""
        connection = self._session.connection
        self._port.flush_soon()
        try:
            while not request.done:
                await self._port.wait(request)
                if connection.stats.connects != self._connects or not connection.online:
                    raise ConnectionLost("connection lost before the response to a batch")
        except BaseException:
            connection.cancel(request)
            raise
        if request.error is not None:
            raise request.error
        assert request.reply is not None
        return request.reply.data

    async def _check_begin(self, first: Request) -> None:
        answer = await self._settle(first)
        if answer:
            read_reply(answer)  # raises if it is an error
            raise InvalidResponse("stream did not start a batch: %s" % shorten(answer))


def _name(task: Task) -> str:
    return "query %s" % task.query if task.query else "a batch write"


def _may_try_again(error: NatsError) -> bool:
    """Return whether a batch may be stored on the next try; not if the server rejected a row."""
    if isinstance(error, BatchRefused):
        return error.err_code == _INCOMPLETE  # messages were lost with a connection or a leader
    return not isinstance(error, WrongLastSequence)


def _for_batch(piece: Piece, old: str, new: str) -> Piece:
    subject, data, block = piece
    return subject, data, block and block.replace(old.encode(), new.encode(), 1)
