"""delivery=atomic: batches that a stream stores whole, each with a marker that says how far it is.

Every task of a write has a subject for its markers. A marker is the last message of an atomic
batch, and tells how many rows of the task are stored. It is stored only if the one before it is
still the last on its subject, so of all attempts at a task one at a time can write:

    an attempt begins    it reads the last marker, takes over by a marker of its own, and skips the
                         rows that are stored, which must be those that the marker was written for
    it goes on           each batch expects the marker of the batch before
    it is an old one     its next batch is refused (10071): somebody took over. It fails.
    no answer            it reads the last marker: its own means that the batch is stored, the one
                         before that it is not, and is sent again
    a later micro-batch  has written to this subject: it fails

No clock and no window is involved: it does not matter how much later an attempt comes, as long as
the stream keeps the last marker.
"""

from __future__ import annotations

import json
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
from natsproto.connection.effects import Publish
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

ROWS = MAX_BATCH - 1  # of a batch: the marker is one of its messages
_TRIES = 6
_REST = 0.1  # before the second try; doubles
_UNCLEAR = (TimeoutExpired, ConnectionLost, NoResponders, TooManyRequests)
_INCOMPLETE = 10176


class WriterFenced(JetStreamError):
    """Another attempt at this task, or a later micro-batch, has taken over: this one must stop."""


class Task(NamedTuple):
    """A task whatever the attempt: the subject of its markers, its query ("" for none), its write.

    The write is the number of a micro-batch.
    """

    markers: str
    query: str
    write: int


class Marker:
    """How far a task is: the rows that are stored, and a digest of them."""

    def __init__(
        self, seq: int, owner: str, task: Task, rows: int = 0, digest: str | None = None
    ) -> None:
        self.seq = seq
        self.owner = owner
        self.task = task
        self.rows = rows
        self.digest = digest

    def encode(self) -> bytes:
        fields = {"owner": self.owner, "query": self.task.query, "write": self.task.write}
        return json.dumps({**fields, "rows": self.rows, "digest": self.digest}).encode()

    @staticmethod
    def decode(subject: str, seq: int, data: bytes, query: str) -> Marker:
        """The marker; older versions wrote no query, so there it is taken for this one."""
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
    """The last marker; one that is before all others if there is none."""
    # Markers are asked for from the leader: what a replica has may be old.
    stream.cached_info.config.allow_direct = False
    try:
        msg = retry(lambda: stream.get_msg(last_by_subject=subject))
    except MessageNotFound:
        return Marker(0, "", Task(subject, query, -1))
    return Marker.decode(subject, msg.seq, msg.data, query)


class AtomicWriter:
    """One attempt at one task: `take_over` once, `skip` what is stored, then `write` the rest."""

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
        self._chain = Chain()  # of the rows that are skipped or stored
        self._skipped = self._stored = 0  # rows, so far and in all, of attempts before this one
        self._connects = 0  # which connection it is that the batch is sent on
        self._begun = False  # whether the stream has taken a batch
        self.tally: Tally = Tally()

    def take_over(self) -> int:
        """Make this the one attempt that may write; returns how many rows are stored already."""
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
                continue  # another one was faster: what it has written is to be read
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
        raise WriterFenced("%s: too many attempts at one task take over" % self._subject)

    def skip(self, pieces: list[Piece]) -> None:
        """Rows that are stored, in order, ReplayMismatch if they are others than these."""
        self._chain.add(pieces)
        self._skipped += len(pieces)
        self.tally.count_stored(len(pieces))
        digest = self._last.digest  # None: an older version wrote it
        if self._skipped == self._stored and digest not in (None, self._chain.digest()):
            text = "%s: the first %d rows of this task are not those that an earlier attempt stored"
            raise mismatch(text % (self._subject, self._skipped), self._write_id)

    def finish(self) -> None:
        """All rows are there; ReplayMismatch if more are stored."""
        if self._skipped < self._stored:
            text = "%s: this task has %d rows, and an earlier attempt stored %d"
            raise mismatch(text % (self._subject, self._skipped, self._stored), self._write_id)

    def _read(self) -> Marker:
        return read_marker(self._stream, self._subject, self._task.query)

    def _check_owner(self, last: Marker) -> None:
        if last.task.query != self._task.query:
            text = "%s: its markers are of %s, and this is %s: give each write its own writeId, and"
            text += " purge the markers of those that are over"
            raise ReplayMismatch(text % (self._subject, _name(last.task), _name(self._task)))
        if last.task.write > self._task.write:
            raise self._fenced(last)

    def _fenced(self, last: Marker) -> WriterFenced:
        later = last.task.write > self._task.write
        who = "a later micro-batch" if later else "another attempt"
        text = "%s: %s has taken over: its marker at %d, ours at %d"
        return WriterFenced(text % (self._subject, who, last.seq, self._last.seq))

    def new_id(self) -> str:
        """For the next batch."""
        return self._session.connection.new_token()

    def write(self, batch_id: str, pieces: list[Piece]) -> None:
        """Store these rows, ROWS at most, made for the batch of this id; WriteFailed, WriterFenced.

        Nothing of them is stored after WriteFailed.
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
                    marker.seq = last.seq  # it is stored, only the answer was lost
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
        """Send them as one batch; the sequence of its marker."""
        connection = self._session.connection
        port = self._port
        self._connects = connection.stats.connects
        first = self._request(*pieces[0])
        if not self._begun:
            # Only once: a stream that takes no batches says so before anything else is sent.
            await self._check_begin(first)
            self._begun = True
        for subject, data, block in pieces[1:]:
            if connection.congested:
                port.flush_soon()
                while connection.congested:
                    await port.wait(connection.writable)
            if not connection.online:
                raise ConnectionLost("the connection was lost in the middle of a batch")
            connection.send(Publish(subject, data, b"", block))
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
            text = "batch %s of %d messages is acknowledged as %s"
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
        """As Session.settle, but not beyond the connection that the batch was sent on."""
        connection = self._session.connection
        self._port.flush_soon()
        try:
            while not request.done:
                await self._port.wait(request)
                if connection.stats.connects != self._connects or not connection.online:
                    raise ConnectionLost("the connection was lost before a batch was answered")
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
            read_reply(answer)  # raises, if it is a refusal
            raise InvalidResponse("the stream did not begin a batch: %s" % shorten(answer))


def _name(task: Task) -> str:
    return "query %s" % task.query if task.query else "a batch write"


def _may_try_again(error: NatsError) -> bool:
    """Whether a batch that is not stored may be the next time: not if the server refused a row."""
    if isinstance(error, BatchRefused):
        return error.err_code == _INCOMPLETE  # some of it was lost with a connection or a leader
    return not isinstance(error, WrongLastSequence)


def _for_batch(piece: Piece, old: str, new: str) -> Piece:
    subject, data, block = piece
    return subject, data, block and block.replace(old.encode(), new.encode(), 1)
