"""Batches of stored messages by direct get (ADR-31): as a list, or one by one.

A request for many messages is answered by the messages themselves and a final status, 204. The
server ends a large answer early, and says how many messages remain; these are requested from after
the last one, as of the same sequence, so that all pages show the stream at one moment (GET-6).
"""

from __future__ import annotations

from jetstream.errors.api import MessageNotFound
from jetstream.schema.timestamp import Timestamp
from jetstream.schema.types import MOST_COUNT, MOST_SEQUENCE
from natsproto.connection.waitable import is_status_reply
from natsproto.errors import InvalidValue, NoResponders
from natsproto.replies import ReplyReader
from natsproto.session import check_count
from natsproto.wire.subjects import check_subscribe
from natsproto.wire.text import shorten

from .client import encode_json
from .stored import (
    END_OF_BATCH,
    direct_endpoint,
    incomplete,
    not_allowed,
    page_end,
    read_direct,
    request_direct,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from jetstream.schema.timestamp import TimestampLike
    from natsproto.wire.frames import Msg

    from .client import ApiClient
    from .stored import PageEnd, StoredMsg

MOST_SUBJECTS = 1024  # with more, the server answers with an error
_PAGE = 1000  # messages per request of an iteration, which may wait to be taken


def batch_request(
    batch: int, seq: int, start_time: TimestampLike | None, subject: str, max_bytes: int
) -> dict[str, Any]:
    """Return the request for messages that start at a sequence or a time."""
    body: dict[str, Any] = {"batch": check_sequence("batch", batch)}
    if start_time is None:
        body["seq"] = check_sequence("seq", seq or 1)
    elif seq:
        text = "seq %s and start_time: only one of the two can be given"
        raise InvalidValue(text % shorten(seq))
    else:
        body["start_time"] = str(Timestamp.of(start_time))
    if subject != "":
        body["next_by_subj"] = check_subscribe(subject).decode()
    if max_bytes:
        body["max_bytes"] = check_sequence("max_bytes", max_bytes)
    return body


def last_request(
    subjects: Sequence[str], up_to_seq: int, up_to_time: TimestampLike | None, batch: int
) -> dict[str, Any]:
    """Return the request for the last message of each subject."""
    if isinstance(subjects, str) or not hasattr(subjects, "__iter__") or not subjects:
        raise InvalidValue("subjects %s is not a list of subjects" % shorten(subjects))
    body: dict[str, Any] = {"multi_last": [check_subscribe(each).decode() for each in subjects]}
    if up_to_seq and up_to_time is not None:
        text = "up_to_seq %s and up_to_time: only one can be given"
        raise InvalidValue(text % shorten(up_to_seq))
    if up_to_seq:
        body["up_to_seq"] = check_sequence("up_to_seq", up_to_seq)
    if up_to_time is not None:
        body["up_to_time"] = str(Timestamp.of(up_to_time))
    if batch:
        body["batch"] = check_sequence("batch", batch)
    return body


def check_sequence(name: str, value: int) -> int:
    """Raise InvalidValue unless it is a sequence or another positive number."""
    return check_count(name, value, 1, MOST_SEQUENCE)


class Pages:
    """Which page to request next: `body` is its request, None if there are no more.

    There are at most `most` messages in total and, if the request limits them, `page` in each page.
    """

    def __init__(self, body: dict[str, Any], most: int, page: int = MOST_COUNT) -> None:
        self.body: dict[str, Any] | None = dict(body)
        if "batch" in body:
            self.body["batch"] = min(body["batch"], page)
        self._most = most
        self._page = page
        self._found = 0  # messages in all pages so far
        self._before = 0  # in all pages except the current one

    def add(self) -> None:
        """Record a message of the current page."""
        self._found += 1

    def ended(self, end: PageEnd) -> None:
        """Record the end of a page; GET-6 describes the next request."""
        body = self.body
        assert body is not None
        empty = self._found == self._before
        self._before = self._found
        if empty or not end.pending or self._found >= self._most:
            self.body = None
            return
        body["seq"] = end.last + 1
        body.pop("start_time", None)
        if "batch" in body:
            body["batch"] = min(self._most - self._found, self._page)
        if end.up_to:
            body["up_to_seq"] = end.up_to
            body.pop("up_to_time", None)


async def get_direct_batch(
    api: ApiClient, stream: str, body: dict[str, Any], most: int = 0
) -> list[StoredMsg]:
    """Return many messages, an empty list if there are none (needs 2.11).

    With `most`, further pages are requested as well, up to that many messages in total.
    """
    api.require_level(1, "batched direct get")  # GET-7
    found: list[StoredMsg] = []
    pages = Pages(body, most)
    while pages.body is not None:
        end: PageEnd | None = None
        try:
            for msg in await request_direct(api, stream, pages.body):
                if msg.status == END_OF_BATCH and is_status_reply(msg):
                    end = page_end(msg)
                    break
                found.append(read_direct(msg))
                pages.add()
        except MessageNotFound:
            return found
        if end is None:
            raise incomplete(stream)
        pages.ended(end)
    return found


class StoredMsgs:
    """Stored messages, one by one. Returned by Stream.iter_get_msgs and iter_get_last_msgs.

    The first request is sent when the iteration starts, and each further one when the messages of
    the previous one are taken. A loop may be left at any time; `aclose` ends the iteration without
    waiting for the garbage collector. TimeoutExpired: no message arrived within the timeout of the
    JetStream.
    """

    def __init__(self, api: ApiClient, stream: str, body: dict[str, Any], most: int) -> None:
        api.require_level(1, "batched direct get")  # GET-7
        self._api = api
        self._stream = stream
        self._pages = Pages(body, most, _PAGE)  # D-GET-14
        self._reader: ReplyReader | None = None

    def __aiter__(self) -> StoredMsgs:
        return self

    async def __anext__(self) -> StoredMsg:
        try:
            while self._pages.body is not None:
                msg = await self._read(self._pages.body)
                if msg is None:
                    raise incomplete(self._stream)
                if msg.status != END_OF_BATCH or not is_status_reply(msg):
                    self._pages.add()
                    return read_direct(msg)
                await self._close_page()
                self._pages.ended(page_end(msg))
        except NoResponders:
            await self.aclose()
            raise not_allowed(self._stream) from None
        except MessageNotFound:
            pass  # no messages: an empty iteration
        except BaseException:
            await self.aclose()
            raise
        await self.aclose()
        raise StopAsyncIteration

    async def _read(self, body: dict[str, Any]) -> Msg | None:
        if self._reader is None:
            session = self._api.session
            request = session.connection.start_gather(
                direct_endpoint(self._api, self._stream), encode_json(body), deadline=None
            )
            self._reader = ReplyReader(session, request, self._api.timeout)  # D-GET-14
        return await self._reader.next()

    async def _close_page(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.leave()

    async def aclose(self) -> None:
        """End the iteration: no more messages are requested."""
        self._pages.body = None
        await self._close_page()
