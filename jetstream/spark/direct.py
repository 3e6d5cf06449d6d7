"""Reading a range by direct get: without a consumer, so nothing is taken from a work queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from natsproto import _text
from natsproto.subjects import matches

from .arrow import Rows
from .connect import jetstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jetstream.stored import StoredMsg

    from .lookup import Lookup
    from .options import Settings
    from .ranges import Range

# The server answers up to 8 MiB or so at a time, however many are asked for.
_MOST = 1000


def read_direct(
    lookup: Lookup, part: Range, start: int, settings: Settings, bare: bool
) -> Iterator[Rows]:
    """Rows from `start` to the end of the range, or until there are no more now; never `bare`."""
    stream = jetstream(settings).stream(part.stream)
    most = min(settings.number("fetchSize"), settings.number("arrowBatchRows"), _MOST)
    # Direct get knows one filter; several are applied here.
    subject = part.filters[0] if len(part.filters) == 1 else ""
    several = part.filters if len(part.filters) > 1 else []
    while start < part.end:
        batch = max(1, min(most, part.end - start))
        found = stream.get_msgs(batch=batch, seq=start, subject=subject)
        wanted = [msg for msg in found if msg.seq < part.end and _fits(msg, several)]
        if wanted:
            yield _rows(part.stream, wanted)
        if not found:
            return
        start = found[-1].seq + 1


def _fits(msg: StoredMsg, filters: list[str]) -> bool:
    return not filters or any(matches(each, msg.subject) for each in filters)


def _rows(stream: str, messages: list[StoredMsg]) -> Rows:
    return Rows(
        stream,
        pa.array([msg.seq for msg in messages], pa.int64()),
        pa.array([msg.time.ns for msg in messages], pa.int64()),
        [_text.encode(msg.subject) for msg in messages],
        [msg.data for msg in messages],
        [msg.raw_headers for msg in messages],
    )
