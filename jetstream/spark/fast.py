"""delivery=fast: rows in fast batches, which cost the server and the worker the least.

    all are acknowledged    counted
    a row is rejected       the task fails with the server's error, and Spark decides
    some were lost          the batch reports how many are stored; the others are sent again
    the server was lost     the rows after the last acknowledgment may be stored or not: they are
                            sent again, and may be stored twice unless they have ids

Each Arrow batch is a separate fast batch: none is open while Spark computes the next rows.
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

from .connect import denied_publishes
from .sending import Tally, WriteFailed

if TYPE_CHECKING:
    from jetstream.blocking import JetStream
    from natsproto.blocking import Client
    from natsproto.errors import NatsError

    from .columns import Piece

_PATIENCE = 2.0  # seconds of tries that store nothing; in a cluster plus an election
_DISABLED = 10205
_PASSING = (NoStreamResponse, TooManyRequests, TemporarilyUnavailable, DuplicateInProcess)


class FastSender:
    """The rows of one task: `send` returns when they are stored. Used like Sender.

    The tally has the place of the last row of each batch only: the server reports no others.
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
        """Store rows; raise WriteFailed if one is rejected."""
        with self._port.lock:
            run_sync(self._send(pieces))

    def finish(self) -> None:
        """Do nothing: all rows are already stored."""

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
        """Send one batch, count its stored rows, and return the error if some were not stored."""
        batch = self._js.fast_batch(ack_timeout=self._timeout)
        unfit: NatsError | None = None
        try:
            try:
                await batch.add_encoded(pieces)
            except PayloadTooLarge as error:
                unfit = error  # the rows before it were sent
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
        """Raise if a row is not permitted: the server reports that, but does not reply."""
        for error in denied_publishes(self._session.connection):
            for place, piece in enumerate(pieces):
                if _subject(piece) == error.subject:
                    raise WriteFailed(self.tally.rows + place, error.subject, error)


def _may_pass(error: NatsError) -> bool:
    """Return whether another try may succeed; not if the server rejected a row."""
    if isinstance(error, BatchRefused):
        return error.err_code != _DISABLED  # the batch is unknown, or there are too many of them
    return isinstance(error, (FastBatchFailed, *_PASSING))


def _subject(piece: Piece) -> str:
    return piece[0].decode(errors="replace")
