"""Reading a range by direct get: without a consumer, so nothing is taken from a work queue.

The place of a message is in headers that the server puts behind its own. They are cut off here and
read in columns: Stream.get_msgs, which makes an object of each message, takes ten times the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jetstream.call import encode_json
from jetstream.errors import InvalidResponse, JetStreamError
from jetstream.timestamp import Timestamp
from natsproto import _text
from natsproto.errors import NoResponders, NotSupported, TimeoutExpired
from natsproto.headers import VERSION
from natsproto.port import run_sync
from natsproto.subjects import matches

from .arrow import Rows
from .connect import client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from jetstream.call import Api
    from natsproto.frames import Msg

    from .lookup import Lookup
    from .options import Settings
    from .ranges import Range

# The server answers up to 8 MiB or so at a time, however many are asked for.
_MOST = 1000
_STREAM = b"\r\nNats-Stream: "
_SUBJECT = b"Nats-Subject: "
_SEQUENCE = b"Nats-Sequence: "
_TIME = b"Nats-Time-Stamp: "
_NONE, _END = 404, 204


def read_direct(
    lookup: Lookup, part: Range, start: int, settings: Settings, bare: bool
) -> Iterator[Rows]:
    """Rows from `start` to the end of the range, or until there are no more now; never `bare`."""
    most = min(settings.number("fetchSize"), settings.number("arrowBatchRows"), _MOST)
    api = lookup.api()
    api.require_level(1, "fetchMode=direct")
    # Direct get knows one filter; several are applied here.
    several = part.filters if len(part.filters) > 1 else []
    body: dict[str, Any] = {}
    if len(part.filters) == 1:
        body["next_by_subj"] = part.filters[0]
    while start < part.end:
        body["seq"] = start
        body["batch"] = max(1, min(most, part.end - start))
        with client(settings).port.lock:
            found = run_sync(_get(api, part.stream, body))
        if not found:
            return
        rows = direct_rows(part.stream, found)
        sequences: list[int] = rows.sequences.to_pylist()
        start = sequences[-1] + 1
        wanted = [
            i
            for i, seq in enumerate(sequences)
            if seq < part.end and _fits(rows.subjects[i], several)
        ]
        if wanted:
            yield rows if len(wanted) == len(rows) else rows.take(wanted)


async def _get(api: Api, stream: str, body: dict[str, Any]) -> list[Msg]:
    """The messages of one answer; none if there are no more."""
    session = api.session
    gather = session.connection.start_gather(
        "%s.DIRECT.GET.%s" % (api.prefix, stream),
        encode_json(body),
        deadline=session.deadline(api.timeout),
    )
    session.port.flush_soon()
    try:
        while not gather.done:
            await session.port.wait(gather)
    finally:
        session.connection.cancel(gather)
    if isinstance(gather.error, NoResponders):
        raise NotSupported("stream %r does not allow direct get, or is gone" % stream)
    if gather.error is not None:
        raise gather.error
    last = gather.replies[-1] if gather.replies else None
    if last is None or not last.status:
        raise TimeoutExpired("direct get of stream %r was not answered to its end" % stream)
    if last.status not in (_NONE, _END):
        raise JetStreamError("direct get: %d %s" % (last.status, last.description))
    return gather.replies[:-1]


def _fits(subject: bytes, filters: list[str]) -> bool:
    return not filters or any(matches(each, _text.decode(subject)) for each in filters)


def direct_rows(stream: str, messages: list[Msg]) -> Rows:
    """What the server has answered; InvalidResponse if it is no stored message."""
    sequences: list[bytes] = []
    times: list[bytes] = []
    subjects: list[bytes] = []
    headers: list[bytes | None] = []
    for msg in messages:
        block = msg.raw_headers or b""
        place = block.rfind(_STREAM)
        _, *lines = block[place + 2 :].split(b"\r\n", 4)
        if (
            place < 0
            or len(lines) < 4
            or not lines[0].startswith(_SUBJECT)
            or not lines[1].startswith(_SEQUENCE)
            or not lines[2].startswith(_TIME)
        ):
            raise InvalidResponse("answer to DIRECT.GET is no stored message: %r" % block[:200])
        subjects.append(lines[0][len(_SUBJECT) :])
        sequences.append(lines[1][len(_SEQUENCE) :])
        times.append(lines[2][len(_TIME) :])
        own = block[:place]
        headers.append(None if own == VERSION else own + b"\r\n\r\n")
    return Rows(
        stream,
        pa.array(sequences, pa.string()).cast(pa.int64()),
        read_times(times),
        subjects,
        [msg.data for msg in messages],
        headers,
    )


def read_times(texts: list[bytes]) -> Any:
    """RFC 3339 as nanoseconds since 1970, in an int64 array."""
    try:
        return pa.array(texts, pa.string()).cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.array([Timestamp.parse(text.decode()).ns for text in texts], pa.int64())
