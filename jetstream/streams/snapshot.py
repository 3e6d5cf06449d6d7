"""StreamSnapshot: iterate the bytes of a whole stream, or save them to a file."""

from __future__ import annotations

from jetstream.api.client import encode_json
from jetstream.errors import InvalidResponse
from jetstream.schema.stream_config import StreamConfig
from jetstream.schema.stream_info import StreamState
from natsproto.errors import InvalidState, InvalidValue
from natsproto.session import check_count, check_flag
from natsproto.wire.subjects import check_known_name
from natsproto.wire.text import cut_middle, shorten

from .snapshot_machine import SnapshotMachine

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from typing_extensions import Self

    from jetstream.api.client import ApiClient

    class Writable(Protocol):
        """A file that is open for writing bytes."""

        def write(self, __data: bytes) -> object: ...


CHUNK = 128 * 1024
WINDOW = 8 * 1024 * 1024
_LEAST = 1024
_MOST_CHUNK = 1024 * 1024
_MOST_WINDOW = 32 * 1024 * 1024


async def open_snapshot(
    api: ApiClient, stream: str, consumers: bool, check: bool, chunk_size: int, window: int
) -> StreamSnapshot:
    """Request a snapshot, and return it as soon as the server has started to send it."""
    check_known_name("stream", stream)
    session = api.session
    connection = session.connection
    inbox = connection.new_inbox()
    body: dict[str, Any] = {
        "deliver_subject": inbox,
        "chunk_size": check_count("chunk_size", chunk_size, _LEAST, _MOST_CHUNK),
    }
    if check_count("window", window, _LEAST, _MOST_WINDOW) != WINDOW:
        body["window_size"] = window  # servers before 2.14 reject the field
    if not check_flag("consumers", consumers):
        body["no_consumers"] = True
    if check_flag("check", check):
        body["jsck"] = True
    machine = SnapshotMachine(shorten(stream))
    session.attach(machine, inbox)
    try:
        reply = await api.call("STREAM.SNAPSHOT.%s" % stream, body)
        for key in ("config", "state"):
            if not isinstance(reply.get(key), dict):
                raise InvalidResponse("response to STREAM.SNAPSHOT has no %s" % key)
        snapshot = StreamSnapshot(api, machine, reply)
    except BaseException:
        machine.discard()
        session.poke(machine)
        raise
    machine.start(session.port.now())
    session.poke(machine)
    return snapshot


class StreamSnapshot:
    """The bytes of a whole stream: iterate its chunks, or `save` it to a file.

    The iteration ends when all chunks have arrived. It raises SnapshotFailed if the server ends the
    snapshot early, or the connection is lost: nothing can be resumed. A server waits 5 s for a
    reader that does not keep up. Returned by JetStream.snapshot_stream.
    """

    def __init__(self, api: ApiClient, machine: SnapshotMachine, reply: dict[str, Any]) -> None:
        self._session = api.session
        self._machine = machine
        self._reply = reply
        #: The configuration of the stream.
        self.config: StreamConfig = StreamConfig.from_json(reply["config"])
        #: The state of the stream when the snapshot was taken.
        self.state: StreamState = StreamState.from_json(reply["state"])
        #: Number of bytes that were taken.
        self.received: int = 0

    @property
    def complete(self) -> bool:
        """Whether all bytes were taken."""
        return self._machine.complete and not self._machine.pending()

    @property
    def header(self) -> bytes:
        """The configuration and the state as a line of JSON: the beginning of a saved file."""
        kept = {"config": self._reply["config"], "state": self._reply["state"]}
        return encode_json(kept) + b"\n"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        session = self._session
        machine = self._machine
        while not machine.pending():
            if machine.complete:
                raise StopAsyncIteration
            if machine.failure is not None:
                raise machine.failure
            if machine.ended:
                raise machine.error or InvalidState("the snapshot was stopped")
            await session.port.wait(machine)
        chunk = machine.pop(session.port.now())
        session.poke(machine)
        self.received += len(chunk)
        return chunk

    async def save(self, file: Writable, *, progress: Callable[[int], object] | None = None) -> int:
        """Write the snapshot to a file that JetStream.restore_stream reads; return its size.

        The file has a line with the configuration and the state, and then the chunks. `progress`
        is called with the number of bytes after each chunk.
        """
        if not hasattr(file, "write"):
            text = "file %s is not a file: open it in binary mode"
            raise InvalidValue(text % shorten(file), "D-SNAP-6")
        header = self.header
        file.write(header)
        async for chunk in self:
            file.write(chunk)
            if progress is not None:
                progress(self.received)
        return len(header) + self.received

    async def stop(self) -> None:
        """End the snapshot now; the rest of it is discarded."""
        self._machine.discard()
        self._session.poke(self._machine)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def __repr__(self) -> str:
        name = cut_middle(self.config.name)
        return "<StreamSnapshot of stream %s, %d bytes taken>" % (name, self.received)
