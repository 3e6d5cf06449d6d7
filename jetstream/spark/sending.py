"""Send rows through the publisher machine: a bounded window of acknowledged publishes.

    acknowledged                counted, with its stream and sequence
    acknowledged as duplicate   counted, if the stored message is the same row (replay.py)
    in doubt, or still being    sent again: the stream recognizes its id; a row without an id may
    stored by another attempt   be stored twice, as "at least once" allows
    rejected or not permitted   the task fails with the server's error, and Spark decides

`Sender` works on the blocking adapter. It encodes and sends rows in blocks, whose acknowledgments
are also read together (row_frames.py, row_window.py), and waits only while the window is full.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from jetstream.errors import (
    DuplicateInProcess,
    JetStreamError,
    MessageNotFound,
    PublishInDoubt,
    WrongLastSequence,
)
from jetstream.publish.headers import EXPECTED_LAST_SUBJECT_SEQ, MSG_ID
from jetstream.publish.request import ELECTION, in_cluster, make_ack
from jetstream.schema.pub_ack import PubAck
from natsproto.errors import ConnectionClosed, NatsError
from natsproto.port import run_sync
from natsproto.wire.headers import Headers
from natsproto.wire.text import decode, shorten

from .connect import denied_publishes
from .row_frames import RowFrames, new_tokens
from .row_window import RowWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetstream.blocking import JetStream
    from natsproto.blocking import Client

    from .columns import Piece
    from .deadletter import DeadLetters
    from .replay import Verifier
    from .row_window import RowPublication

_RETRIES = 8  # after a 503, 250 ms apart: a server restores its streams after a restart
_TRIES = 4  # for a row in doubt
_TURN = 512  # rows of a block,
_MUCH = 256 * 1024  # unless they have more bytes


class WriteFailed(JetStreamError):
    """A row was not stored; `row` is its number in the partition, `error` the reason.

    Rows before and after it may be stored. A task that runs again stores the others once, if the
    delivery is dedup or atomic.
    """

    def __init__(self, row: int, subject: str, error: NatsError) -> None:
        text = "row %d to %s: %s: %s" % (row, shorten(subject), type(error).__name__, error)
        super().__init__(text)
        self.row = row
        self.subject = subject
        self.error = error

    # By default an exception is pickled as its message alone.
    def __reduce__(self) -> tuple[type[WriteFailed], tuple[int, str, NatsError]]:
        return type(self), (self.row, self.subject, self.error)


class Tally:
    """Counts of rows: written, and of these stored before; and their places.

    `streams` has the first and the last sequence in each stream, including duplicates.
    """

    def __init__(self) -> None:
        self.rows: int = 0
        self.duplicates: int = 0
        self.dead: int = 0  # of the rows, those that were published as dead letters
        self.streams: dict[str, tuple[int, int]] = {}

    def count(self, stream: str, first: int, last: int, rows: int, duplicates: int = 0) -> None:
        """Add rows that are stored between these sequences."""
        self.rows += rows
        self.duplicates += duplicates
        known = self.streams.get(stream, (first, last))
        self.streams[stream] = min(known[0], first), max(known[1], last)

    def count_stored(self, rows: int) -> None:
        """Add rows that an earlier attempt stored, without their places."""
        self.rows += rows
        self.duplicates += rows

    def add(self, other: Tally) -> None:
        """Add the counts of another task."""
        self.rows += other.rows
        self.duplicates += other.duplicates
        self.dead += other.dead
        for stream, (first, last) in other.streams.items():
            self.count(stream, first, last, 0)

    def __repr__(self) -> str:
        places = ["%s %d-%d" % (stream, *place) for stream, place in self.streams.items()]
        text = "%d rows, %d of them stored before: %s"
        return text % (self.rows, self.duplicates, ", ".join(places) or "nowhere")


class Sender:
    """The window of one task: `send` returns when the rows are sent, `finish` when all are stored.

    A context manager: the subscription for the acknowledgments ends with the block.
    """

    def __init__(
        self,
        client: Client,
        js: JetStream,
        max_in_flight: int,
        ack_timeout: float,
        verifier: Verifier | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        self._port = client.port
        self._js = js.inner
        self._connection = connection = client.inner.session.connection
        inbox = connection.new_inbox()
        backoff = ELECTION if in_cluster(connection) else 0.0
        prefix = inbox.encode()
        self._machine = RowWindow(
            client.port, prefix, max_in_flight, ack_timeout, _RETRIES, backoff
        )
        self._frames = RowFrames(prefix + b".")
        self._next = 0  # the number of the next row
        self._tries: dict[int, int] = {}  # of the rows in doubt
        self._verifier = verifier
        self._letters = letters
        self.tally: Tally = Tally()
        with self._port.lock:
            connection.subscribe(inbox + ".*", self._machine)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._connection.closed:
            return
        with self._port.lock:
            self._connection.unsubscribe(self._machine.sid)
            self._port.flush_soon()

    def send(self, pieces: Sequence[Piece]) -> None:
        """Publish rows; raise WriteFailed or ReplayMismatch for any row so far."""
        with self._port.lock:
            run_sync(self._send(pieces))

    def finish(self) -> None:
        """Wait until every row is acknowledged; raise WriteFailed or ReplayMismatch."""
        with self._port.lock:
            run_sync(self._finish())

    async def _send(self, pieces: Sequence[Piece]) -> None:
        machine = self._machine
        connection = self._connection
        place = 0
        while place < len(pieces):
            if machine.full or machine.failed or machine.ended or connection.congested:
                await self._room()
            # A block at a time, because these checks are a tenth of the cost of a row.
            end = place + min(machine.max_pending - machine.pending(), _TURN)
            block = pieces[place:end]
            if not block:
                continue  # rows in doubt, which were sent again, have filled the window
            sizes = list(accumulate([len(data) for _, data, _ in block]))
            if sizes[-1] > _MUCH:
                block = block[: max(1, bisect_right(sizes, _MUCH))]
            self._send_block(block)
            place += len(block)
        self._port.flush_soon()
        await self._harvest()

    def _send_block(self, pieces: Sequence[Piece]) -> None:
        outbound = self._connection.outbound
        first = self._next
        self._next += len(pieces)
        if self._connection.online:
            tokens = new_tokens(len(pieces))
            frames = self._frames.encode(pieces, tokens, outbound.max_payload)
            if frames is not None:
                if self._machine.submit_block(first, pieces, tokens, self._port.now()):
                    self._connection.apply(self._machine)
                outbound.send_all(frames, len(pieces))
                return
        for row, piece in enumerate(pieces, first):
            self._send_one(row, piece)

    def _send_one(self, row: int, piece: Piece) -> None:
        connection = self._connection
        online = connection.online
        publication = self._machine.submit(row, piece, self._port.now(), online)
        connection.apply(self._machine)
        if online:
            subject, data, block = piece
            try:
                connection.send(subject, data, publication.reply, block)
            except NatsError as error:  # the row is too large
                self._machine.reject(publication, error)

    async def _room(self) -> None:
        """Wait until half of the window is free, so that many rows are sent at a time."""
        machine = self._machine
        connection = self._connection
        most = machine.max_pending // 2 if machine.full else machine.max_pending
        while machine.pending() > most or connection.congested:
            await self._look()
            self._port.flush_soon()
            await self._port.wait(machine)
        await self._look()
        await self._harvest()

    async def _finish(self) -> None:
        machine = self._machine
        while machine.pending() or machine.failed:
            self._port.flush_soon()
            if machine.pending():
                await self._port.wait(machine)
            await self._look()
        await self._harvest()

    async def _look(self) -> None:
        """Send rows in doubt again; raise WriteFailed for a row that was rejected."""
        for publication in self._machine.take_failed():
            row = publication.row
            error = publication.error
            assert error is not None
            tries = self._tries[row] = self._tries.get(row, 1) + 1
            unclear = isinstance(error, (PublishInDoubt, DuplicateInProcess))
            if isinstance(error, WrongLastSequence) and await self._is_stored(publication):
                continue
            piece = publication.piece
            if not unclear or tries > _TRIES or self._machine.ended:
                letters = self._letters
                letter = letters.replace(row, piece, error) if letters else None
                if letter is None:
                    raise WriteFailed(row, publication.subject, error)
                piece = letter
            self._send_one(row, piece)
        self._listen()
        if self._connection.closed:
            raise ConnectionClosed(self._connection.closed)

    def _listen(self) -> None:
        """Raise if a row is not permitted: the server reports that, but does not reply."""
        for error in denied_publishes(self._connection):
            for row, (subject, _, _) in self._machine.in_flight():
                if decode(subject) == error.subject:
                    raise WriteFailed(row, error.subject, error)

    async def _is_stored(self, publication: RowPublication) -> bool:
        """Return whether an expectation failed because another attempt stored this row.

        A stream checks expectations before ids. So a row that is sent again fails because of its
        own first copy, which is then the message after the expected sequence.
        """
        headers = Headers.decode(publication.block or b"\r\n\r\n")
        expected = headers.get(EXPECTED_LAST_SUBJECT_SEQ)
        if MSG_ID not in headers or not expected:
            return False
        subject = publication.subject
        stream = await self._js.stream(await self._js.stream_name_by_subject(subject))
        stream.cached_info.config.allow_direct = False  # a replica may lag
        try:
            msg = await stream.get_msg(int(expected) + 1, next_by_subject=subject)
        except MessageNotFound:
            return False
        if msg.headers is None or msg.headers.get(MSG_ID) != headers[MSG_ID]:
            return False
        ack = {"stream": stream.name, "seq": msg.seq, "duplicate": True}
        publication.answer = PubAck.from_json(ack), b""
        self._machine.answered.append(publication)
        return True

    async def _harvest(self) -> None:
        """Count the rows that are acknowledged, and verify the duplicates among them."""
        machine = self._machine
        verifier = self._verifier
        for ack, rows, sequences in machine.acked:
            self._count(ack, sequences)
            if verifier is not None and ack.duplicate:
                for row, sequence in zip(rows, sequences):
                    verifier.add(row, machine.piece(row), ack.stream, sequence)
        for publication in machine.answered:
            assert publication.answer is not None
            ack = make_ack(publication.answer)
            self._count(ack, [ack.seq])
            if verifier is not None and ack.duplicate:
                verifier.add(publication.row, publication.piece, ack.stream, ack.seq)
        machine.acked.clear()
        machine.answered.clear()
        machine.trim()
        if verifier is not None:
            await verifier.verify()

    def _count(self, ack: PubAck, sequences: list[int]) -> None:
        duplicates = len(sequences) if ack.duplicate else 0
        self.tally.count(ack.stream, min(sequences), max(sequences), len(sequences), duplicates)
