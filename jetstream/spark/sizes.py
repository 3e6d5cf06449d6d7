"""The sizes of messages: read without their payloads, or, if there is no consumer, with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.api.metadata import read_metadata
from natsproto.errors import InvalidValue

from .connect import client
from .pull import Pulls
from .retry import RETRYABLE_READS, Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .options import Settings
    from .queries import StreamQueries

_SIZE = b"\r\nNats-Msg-Size: "  # which the server adds to the headers
_FRAME = len(b"NATS/1.0\r\n\r\n")
_SPARE = 1.1
_INACTIVE = 5.0


def read_sizes(
    queries: StreamQueries,
    settings: Settings,
    span: tuple[int, int],
    filters: list[str],
    expected: int,
) -> Iterator[tuple[int, int]]:
    """Yield the sequence and the size of each message in [start, end).

    expected  about the number that will be used
    """
    position, end = span
    read = _read_direct if settings.text("fetchMode") == "direct" else _read
    backoff = Backoff()
    while position < end:
        try:
            for seq, size in read(queries, settings, position, filters, expected):
                if seq >= end:
                    return
                position = seq + 1
                backoff.reset()
                yield seq, size
            return
        except RETRYABLE_READS as caught:
            error = caught
        backoff.failed(error)


def _read(
    queries: StreamQueries, settings: Settings, start: int, filters: list[str], expected: int
) -> Iterator[tuple[int, int]]:
    consumer = queries.consumer(start, filters, True, _INACTIVE)
    if not consumer.cached_info.num_pending:
        return
    pulls = Pulls(client(settings), queries.api(), consumer)
    try:
        while True:
            pulls.request(min(settings.number("fetchSize"), int(expected * _SPARE) + 1))
            messages, failure = pulls.take()
            for msg in messages:
                yield read_metadata(msg.raw_reply).stream_seq, size_of(msg.raw_headers or b"")
            if failure is not None:
                raise failure
            if not messages or not read_metadata(messages[-1].raw_reply).pending:
                return
    finally:
        pulls.close()


def _read_direct(
    queries: StreamQueries, settings: Settings, start: int, filters: list[str], expected: int
) -> Iterator[tuple[int, int]]:
    from .direct import fits, get_rows

    while True:
        rows = get_rows(queries, settings, filters, start, int(expected * _SPARE) + 1)
        if rows is None:
            return
        assert rows.data is not None
        sequences: list[int] = rows.sequences.to_pylist()
        for seq, subject, data, block in zip(sequences, rows.subjects, rows.data, rows.headers):
            if fits(subject, filters):
                yield seq, len(data) + len(block or b"")
        start = sequences[-1] + 1


def size_of(block: bytes) -> int:
    """Return the size of a message, payload and own headers, from the headers without payload."""
    place = block.rfind(_SIZE)
    digits, _, _ = block[place + len(_SIZE) :].partition(b"\r\n")
    if place < 0 or not digits.isdigit():
        raise InvalidValue("message without payload has no Nats-Msg-Size: %r" % block[:100])
    own = len(block) - len(_SIZE) - len(digits)
    return int(digits) + (own if own > _FRAME else 0)
