"""Read a range by direct get: without a consumer, so that a work queue loses no messages.

The position of a message is in headers that the server appends to those of the message. They are
cut off and parsed in columns: Stream.get_msgs, with an object per message, takes ten times the CPU.

A publisher may have sent a header block without a proper end. The server then appends its own
headers in the middle of the last line, and the reply no longer shows what was stored. Such a
message is read again from the stream's leader (STREAM.MSG.GET), which returns the stored bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jetstream.api.stored import END_OF_BATCH, NOT_FOUND, incomplete, request_direct
from jetstream.errors import InvalidResponse, JetStreamError
from jetstream.schema.timestamp import Timestamp
from natsproto.connection.waitable import is_status_reply
from natsproto.port import run_sync
from natsproto.wire import text as _text
from natsproto.wire.headers import VERSION
from natsproto.wire.subjects import matches
from natsproto.wire.text import cut_middle, shorten

from .arrow import Rows
from .connect import client
from .pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from natsproto.wire.frames import Msg

    from .loss import LossWatch
    from .options import Settings
    from .queries import StreamQueries
    from .ranges import Range

# The server returns about 8 MiB at a time, however many messages are requested.
_MOST = 1000
_BARE = VERSION + b"\r\n"  # before the server's headers: the message has none of its own
_STREAM = b"Nats-Stream: "
_NAMES = (b"Nats-Subject: ", b"Nats-Sequence: ", b"Nats-Time-Stamp: ")


def read_direct(
    queries: StreamQueries,
    part: Range,
    start: int,
    settings: Settings,
    bare: bool,
    watch: LossWatch,
) -> Iterator[Rows]:
    """Yield the rows from `start` to the end of the range or of the stream; never `bare`."""
    most = min(settings.number("fetchSize"), settings.number("arrowBatchRows"), _MOST)
    pace = Pace(part, start, most)
    while start < part.end:
        rows = get_rows(queries, settings, part.filters, start, pace.next(start))
        if rows is None:
            watch.look(start, part.end - 1)
            return
        sequences: list[int] = rows.sequences.to_pylist()
        if sequences[-1] - start + 1 > len(sequences):
            watch.look(start, min(sequences[-1], part.end - 1))
        start = sequences[-1] + 1
        pace.got(len(sequences), start)
        wanted = [
            i
            for i, seq in enumerate(sequences)
            if seq < part.end and fits(rows.subjects[i], part.filters)
        ]
        if wanted:
            yield rows if len(wanted) == len(rows) else rows.take(wanted)


def get_rows(
    queries: StreamQueries, settings: Settings, filters: list[str], start: int, count: int
) -> Rows | None:
    """Return up to `count` messages from `start` on; None if there are no more.

    Direct get supports one filter. If there are several, the rows include other messages.
    """
    api = queries.api()
    api.require_level(1, "fetchMode=direct")
    body: dict[str, Any] = {"seq": start, "batch": min(count, _MOST)}
    if len(filters) == 1:
        body["next_by_subj"] = filters[0]
    with client(settings).port.lock:
        found = run_sync(_get(api, queries.stream, body))
    return direct_rows(queries.stream, found, queries.next_message) if found else None


async def _get(api: ApiClient, stream: str, body: dict[str, Any]) -> list[Msg]:
    """Return the messages of one reply; an empty list if there are no more."""
    replies = await request_direct(api, stream, body)
    last = replies[-1] if replies else None
    if last is None or not (last.status and is_status_reply(last)):  # GET-12
        raise incomplete(stream)
    if last.status not in (NOT_FOUND, END_OF_BATCH):
        raise JetStreamError("direct get: %d %s" % (last.status, cut_middle(last.description)))
    return replies[:-1]


def fits(subject: bytes, filters: list[str]) -> bool:
    """Return whether one of several filters matches; the server has applied a single one."""
    return len(filters) < 2 or any(matches(each, _text.decode(subject)) for each in filters)


def direct_rows(
    stream: str, messages: list[Msg], reread: Callable[[int], StoredMsg | None]
) -> Rows:
    """Return the messages of a reply as rows; InvalidResponse for one that is not stored.

    `reread` returns the message of this sequence, or the next one, from the stream's leader.
    """
    sequences: list[bytes] = []
    times: list[bytes] = []
    subjects: list[bytes] = []
    headers: list[bytes | None] = []
    data: list[bytes] = []
    for msg in messages:
        own, (subject, sequence, time) = _cut(msg.raw_headers or b"")
        payload = msg.data
        if own == _BARE:
            block = None
        elif own.endswith(b"\r\n"):
            block = own + b"\r\n"
        else:
            block = own
            stored = reread(int(sequence))
            # Otherwise it was deleted in the meantime, and only this reply is available.
            if stored is not None and stored.seq == int(sequence):
                block, payload = stored.raw_headers, stored.data
        sequences.append(sequence)
        times.append(time)
        subjects.append(subject)
        headers.append(block)
        data.append(payload)
    return Rows(
        stream,
        pa.array(sequences, pa.string()).cast(pa.int64()),
        read_times(times),
        subjects,
        data,
        headers,
    )


def _cut(block: bytes) -> tuple[bytes, list[bytes]]:
    """Return the message's own headers, and its subject, sequence and time from the server's."""
    place = block.rfind(_STREAM)
    _, *lines = block[place:].split(b"\r\n", 4)
    if place < 0 or len(lines) < 4 or not all(map(bytes.startswith, lines, _NAMES)):
        raise InvalidResponse("response to DIRECT.GET is not a stored message: %s" % shorten(block))
    return block[:place], [line[len(name) :] for line, name in zip(lines, _NAMES)]


def read_times(texts: list[bytes]) -> Any:
    """Parse RFC 3339 texts; return nanoseconds since 1970 as an int64 array."""
    try:
        return pa.array(texts, pa.string()).cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.array([Timestamp.parse(text.decode()).ns for text in texts], pa.int64())
