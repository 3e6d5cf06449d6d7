"""delivery=fast: rows by fast batches, which cost the server and the worker least.

    all are acknowledged    counted
    a row is refused        the task fails with the server's error, and Spark decides
    some were lost          the batch tells how many are stored: on it goes behind them
    the server was lost     nobody knows what is stored behind the last acknowledgement: it is sent
                            again, and stored twice unless the rows have ids

Each Arrow batch is a fast batch of its own: nothing is open while Spark makes the next rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.errors import (
    ApiError,
    BatchRefused,
    DuplicateInProcess,
    FastBatchFailed,
    NoStreamResponse,
    TemporarilyUnavailable,
    TooManyRequests,
)
from jetstream.publish.request import ELECTION, RETRY_WAIT, in_cluster
from natsproto.errors import PayloadTooLarge
from natsproto.port import run_sync

from .sending import Tally, WriteFailed, complaints

if TYPE_CHECKING:
    from jetstream.blocking import JetStream
    from natsproto.blocking import Client
    from natsproto.errors import NatsError

    from .columns import Piece

_PATIENCE = 2.0  # seconds for tries that store nothing; in a cluster an election more
_DISABLED = 10205
_PASSING = (NoStreamResponse, TooManyRequests, TemporarilyUnavailable, DuplicateInProcess)


class FastSender:
    """One task's rows: `send` returns when they are stored. Used as Sender is.

    Of the places in a stream the tally has only those of the last row of each batch: the server
    tells no others.
    """

    def __init__(self, client: Client, js: JetStream, ack_timeout: float) -> None:
        self._port = client.port
        self._session = client.inner.session
        self._js = js.inner
        self._timeout = ack_timeout
        self._patience = _PATIENCE
        if in_cluster(self._session.connection):
            self._patience += ELECTION
        self.tally: Tally = Tally()

    def __enter__(self) -> FastSender:
        return self

    def __exit__(self, *exc: object) -> None:
        pass  # nothing is open between the calls

    def send(self, pieces: list[Piece]) -> None:
        """Have them stored; WriteFailed if any row is refused."""
        with self._port.lock:
            run_sync(self._send(pieces))

    def finish(self) -> None:
        """They are stored already."""

    async def _send(self, pieces: list[Piece]) -> None:
        failing_since = 0.0
        while pieces:
            before = self.tally.rows
            error = await self._store(pieces)
            stored = self.tally.rows - before
            pieces = pieces[stored:]
            if error is None:
                continue
            self._check_allowed(pieces)
            now = self._port.now()
            if stored or not failing_since:
                failing_since = now
            if not _may_pass(error) or now - failing_since >= self._patience:
                raise WriteFailed(self.tally.rows, _subject(pieces[0]), error)
            await self._session.sleep(RETRY_WAIT)

    async def _store(self, pieces: list[Piece]) -> NatsError | None:
        """One batch; what is stored of it is counted. The error, if it was not all."""
        batch = self._js.fast_batch(ack_timeout=self._timeout)
        unfit: NatsError | None = None
        try:
            try:
                await batch.add_encoded(pieces)
            except PayloadTooLarge as error:
                unfit = error  # those before it are on their way
            ack = await batch.close()
        except FastBatchFailed as failure:
            self.tally.rows += failure.stored
            return None if failure.stored == len(pieces) else failure.cause or failure
        except (ApiError, NoStreamResponse) as error:  # of the first row
            return error
        if ack is not None:
            self.tally.count(ack.stream, ack.seq, ack.seq, ack.count)
        return unfit

    def _check_allowed(self, pieces: list[Piece]) -> None:
        """What may not be published is not answered: the server only complains."""
        for error in complaints(self._session.connection):
            for place, piece in enumerate(pieces):
                if _subject(piece) == error.subject:
                    raise WriteFailed(self.tally.rows + place, error.subject, error)


def _may_pass(error: NatsError) -> bool:
    """Whether it may be another time; not if the server refused a row."""
    if isinstance(error, BatchRefused):
        return error.err_code != _DISABLED  # it does not know the batch, or has too many of them
    return isinstance(error, (FastBatchFailed, *_PASSING))


def _subject(piece: Piece) -> str:
    return piece[0].decode(errors="replace")
