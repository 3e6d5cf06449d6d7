"""Send rows through the publisher machine: a bounded window of acknowledged publishes.

    acknowledged                counted, with its stream and sequence
    acknowledged as duplicate   counted, if the stored message is the same row (replay.py)
    in doubt, or still being    sent again: the stream recognizes its id; a row without an id may
    stored by another attempt   be stored twice, as "at least once" allows
    rejected or not permitted   the task fails with the server's error, and Spark decides

`Sender` works on the blocking adapter. It passes the messages of a whole batch to the socket at
once, and waits only while the window is full.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from jetstream.errors import (
    DuplicateInProcess,
    JetStreamError,
    MessageNotFound,
    PublishInDoubt,
    WrongLastSequence,
)
from jetstream.publish.headers import EXPECTED_LAST_SUBJECT_SEQ, MSG_ID
from jetstream.publish.request import ELECTION, in_cluster
from jetstream.publish.window_machine import AckWindow, Publication
from jetstream.schema.pub_ack import PubAck
from natsproto.errors import ConnectionClosed, NatsError
from natsproto.port import run_sync
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten

from .connect import denied_publishes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetstream.blocking import JetStream
    from natsproto.blocking import Client

    from .columns import Piece
    from .deadletter import DeadLetters
    from .replay import Verifier

_RETRIES = 8  # after a 503, 250 ms apart: a server restores its streams after a restart
_TRIES = 4  # for a row in doubt
_TURN = 64  # rows that are sent without a look at the connection,
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
        self._machine = AckWindow(inbox.encode(), max_in_flight, ack_timeout, _RETRIES, backoff)
        self._sent: deque[Publication] = deque()  # in order, from the first that is not yet counted
        self._first = 0  # the row number of that one
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
            # Some rows at a time, because these checks are a tenth of the cost of a row.
            end = place + min(machine.max_pending - len(machine.open), _TURN)
            some = pieces[place:end]
            if sum([len(data) for _, data, _ in some]) > _MUCH:
                some = some[:1]
            self._send_some(some, self._port.now())
            place += len(some)
        self._port.flush_soon()
        await self._harvest()

    def _send_some(self, pieces: Sequence[Piece], now: float) -> None:
        machine = self._machine
        connection = self._connection
        sent = self._sent
        online = connection.online
        port = self._port
        for subject, data, block in pieces:
            publication = Publication(port, subject, data, block)
            sent.append(publication)
            if machine.submit(publication, now, online):
                connection.apply(machine)
            if online:
                try:
                    connection.send(subject, data, publication.reply, block)
                except NatsError as error:  # the row is too large
                    machine.reject(publication, error)

    async def _room(self) -> None:
        """Wait until half of the window is free, so that many rows are sent at a time."""
        machine = self._machine
        connection = self._connection
        most = machine.max_pending // 2 if machine.full else machine.max_pending
        while len(machine.open) > most or connection.congested:
            await self._look()
            self._port.flush_soon()
            await self._port.wait(machine)
        await self._look()
        await self._harvest()

    async def _finish(self) -> None:
        while self._sent:
            self._port.flush_soon()
            if self._machine.open:
                await self._port.wait(self._machine)
            await self._look()
            await self._harvest()

    async def _look(self) -> None:
        """Send rows in doubt again; raise WriteFailed for a row that was rejected."""
        for publication in self._machine.take_failed():
            row = self._first + self._sent.index(publication)
            error = publication.error
            assert error is not None
            tries = self._tries[row] = self._tries.get(row, 1) + 1
            unclear = isinstance(error, (PublishInDoubt, DuplicateInProcess))
            if isinstance(error, WrongLastSequence) and await self._is_stored(publication):
                continue
            piece = (publication.raw_subject, publication.data, publication.block)
            if not unclear or tries > _TRIES or self._machine.ended:
                letters = self._letters
                letter = letters.replace(row, publication, error) if letters else None
                if letter is None:
                    raise WriteFailed(row, publication.subject, error)
                piece = letter
            self._send_some([piece], self._port.now())
            self._sent[row - self._first] = self._sent.pop()
        self._listen()
        if self._connection.closed:
            raise ConnectionClosed(self._connection.closed)

    def _listen(self) -> None:
        """Raise if a row is not permitted: the server reports that, but does not reply."""
        for error in denied_publishes(self._connection):
            for place, publication in enumerate(self._sent):
                if publication.subject == error.subject:
                    raise WriteFailed(self._first + place, error.subject, error)

    async def _is_stored(self, publication: Publication) -> bool:
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
        return True

    async def _harvest(self) -> None:
        """Count the first rows that are acknowledged, and verify the duplicates among them."""
        sent = self._sent
        verifier = self._verifier
        like: PubAck | None = None
        again = False
        run: list[bytes] = []  # the sequences of acks that are equal otherwise
        while sent and sent[0].answer is not None:
            publication = sent.popleft()
            assert publication.answer is not None
            ack, digits = publication.answer
            if ack is not like:
                self._count(like, run)
                like, run = ack, []
                again = verifier is not None and ack.duplicate
            run.append(digits or b"%d" % ack.seq)
            if again and verifier is not None:
                row = self._first + len(run) - 1
                verifier.add(row, publication, ack.stream, int(run[-1]))
        self._count(like, run)
        if verifier is not None:
            await verifier.verify()

    def _count(self, like: PubAck | None, run: list[bytes]) -> None:
        if run and like is not None:
            self._first += len(run)
            sequences = list(map(int, run))
            duplicates = len(run) if like.duplicate else 0
            self.tally.count(like.stream, min(sequences), max(sequences), len(run), duplicates)
