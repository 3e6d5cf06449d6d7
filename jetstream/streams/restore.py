"""restore_stream: create a stream from the bytes of a snapshot."""

from __future__ import annotations

from jetstream.api.client import read_object, read_reply
from jetstream.errors import InvalidResponse
from jetstream.publish.source import source_of
from jetstream.schema.stream_config import StreamConfig
from jetstream.schema.stream_info import StreamInfo, StreamState
from natsproto.durations import check_patience
from natsproto.errors import InvalidValue, NoResponders
from natsproto.session import check_count
from natsproto.wire.subjects import check_publish
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from jetstream.api.client import ApiClient
    from jetstream.publish.source import ObjectData, Source
    from natsproto.connection.waitable import Request
    from natsproto.durations import Seconds

    from .manager import StreamConfigLike

CHUNK = 128 * 1024
_MOST_CHUNK = 1024 * 1024
_IN_FLIGHT = 16  # chunks without an acknowledgment
_RETRY_WAIT = 0.1
_MOST_HEADER = 16 * 1024 * 1024


async def restore(
    api: ApiClient,
    data: ObjectData,
    config: StreamConfigLike | None,
    chunk_size: int,
    timeout: Seconds,
    progress: Callable[[int], object] | None,
) -> StreamInfo:
    """Create the stream, and return its info when all messages are stored."""
    check_count("chunk_size", chunk_size, 1024, _MOST_CHUNK)
    check_patience("timeout", timeout)
    header: dict[str, Any] = {}
    if hasattr(data, "readline"):
        header = await _read_header(data)
    elif config is None:
        text = "data %s is not a file: chunks of a snapshot need a config"
        raise InvalidValue(text % shorten(data), "D-SNAP-6")
    wanted = StreamConfig.of(config if config is not None else header.get("config"), {})
    wanted.check(new=False)
    body = {"config": wanted.to_json(), "state": header.get("state") or StreamState().to_json()}
    source = source_of(data, chunk_size)
    reply = await api.call("STREAM.RESTORE.%s" % wanted.name, body)
    target: Any = reply.get("deliver_subject")
    if not isinstance(target, str):
        raise InvalidResponse("response to STREAM.RESTORE has no deliver_subject")
    check_publish(target, "deliver_subject")
    transfer = Transfer(api, target, chunk_size, progress)
    await transfer.send_all(source)
    return StreamInfo.from_json(read_reply(await transfer.finish(timeout)))


async def _read_header(file: Any) -> dict[str, Any]:
    """Return the configuration and state in the first line of a saved snapshot."""
    line: Any = file.readline(_MOST_HEADER)
    if hasattr(line, "__await__"):
        line = await line
    try:
        header = read_object(line)
    except (InvalidResponse, AttributeError):
        header = {}
    if not isinstance(header.get("config"), dict):
        text = "file does not start with the header of a saved snapshot: %s"
        raise InvalidValue(text % shorten(line), "D-SNAP-6")
    return header


class Transfer:
    """The chunks in flight to the server, each of which is acknowledged (SNAP-4).

    The first chunk is sent alone, and again on 503: in a cluster, the server that restores the
    stream may respond before the client's server knows of its subscription (SNAP-7).
    """

    def __init__(
        self,
        api: ApiClient,
        target: str,
        chunk_size: int,
        progress: Callable[[int], object] | None,
    ) -> None:
        self._session = api.session
        self._timeout = api.timeout
        self._target = target
        self._progress = progress
        info = api.session.connection.info
        self._size = min(chunk_size, info.max_payload) if info is not None else chunk_size
        self._pending: list[tuple[Request, int]] = []
        self._reached = False  # whether the server has acknowledged a chunk
        self._sent = 0

    async def send_all(self, source: Source) -> None:
        """Send all data in chunks, and wait until the server has stored them."""
        try:
            while True:
                piece: Any = await source.next()
                if piece is None:
                    break
                view = memoryview(piece)
                for start in range(0, len(view), self._size):
                    await self._send(bytes(view[start : start + self._size]))
            while self._pending:
                await self._acknowledged()
        except BaseException:
            for request, _ in self._pending:
                self._session.connection.cancel(request)
            raise

    async def _send(self, chunk: bytes) -> None:
        if not self._reached:
            self._count(await self._reach(chunk, self._session.deadline(self._timeout)), len(chunk))
            return
        if len(self._pending) >= _IN_FLIGHT:
            await self._acknowledged()
        session = self._session
        deadline = session.deadline(self._timeout)
        request = session.connection.start_request(self._target, chunk, deadline=deadline)
        session.port.flush_soon()
        self._pending.append((request, len(chunk)))

    async def _reach(self, chunk: bytes, deadline: float) -> bytes:
        """Send the first chunk until there is a responder, and return its response (SNAP-7)."""
        session = self._session
        retry_until = min(deadline, session.deadline(self._timeout)) - _RETRY_WAIT
        while True:
            request = session.connection.start_request(self._target, chunk, deadline=deadline)
            try:
                reply = await session.settle(request)
            except NoResponders:
                if session.port.now() >= retry_until:
                    raise
                await session.sleep(_RETRY_WAIT)
                continue
            assert reply is not None
            self._reached = True
            return reply.data

    async def _acknowledged(self) -> None:
        request, size = self._pending.pop(0)
        reply = await self._session.settle(request)
        assert reply is not None
        self._count(reply.data, size)

    def _count(self, response: bytes, size: int) -> None:
        """Report the progress after an acknowledgment; raise if it is an error."""
        if response:
            read_reply(response)
        self._sent += size
        if self._progress is not None:
            self._progress(self._sent)

    async def finish(self, timeout: Seconds) -> bytes:
        """Report the end of the data, and return the final response of the server."""
        session = self._session
        deadline = session.answer_deadline(timeout)
        if not self._reached:
            return await self._reach(b"", deadline)
        request = session.connection.start_request(self._target, b"", deadline=deadline)
        reply = await session.settle(request)
        assert reply is not None
        return reply.data
