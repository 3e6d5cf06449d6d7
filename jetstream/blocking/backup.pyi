# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable

from jetstream.blocking.loops import StoppableLoop
from jetstream.schema.stream_config import StreamConfig
from jetstream.schema.stream_info import StreamState
from jetstream.streams import snapshot as _snapshot
from jetstream.streams.snapshot import Writable
from natsproto.port import BlockingPort

class StreamSnapshot(StoppableLoop):
    """The bytes of a whole stream: iterate its chunks, or `save` it to a file.

    The iteration ends when all chunks have arrived. It raises SnapshotFailed if the server ends the
    snapshot early, or the connection is lost: nothing can be resumed. A server waits 5 s for a
    reader that does not keep up. Returned by JetStream.snapshot_stream.
    """

    inner: _snapshot.StreamSnapshot
    port: BlockingPort

    def __init__(self, inner: _snapshot.StreamSnapshot, port: BlockingPort) -> None: ...
    @property
    def config(self) -> StreamConfig:
        """The configuration of the stream."""
        ...

    @property
    def state(self) -> StreamState:
        """The state of the stream when the snapshot was taken."""
        ...

    @property
    def received(self) -> int:
        """Number of bytes that were taken."""
        ...

    @property
    def complete(self) -> bool:
        """Whether all bytes were taken."""
        ...

    @property
    def header(self) -> bytes:
        """The configuration and the state as a line of JSON: the beginning of a saved file."""
        ...

    def save(self, file: Writable, *, progress: Callable[[int], object] | None = None) -> int:
        """Write the snapshot to a file that JetStream.restore_stream reads; return its size.

        The file has a line with the configuration and the state, and then the chunks. `progress`
        is called with the number of bytes after each chunk.
        """
        ...

    def stop(self) -> None:
        """End the snapshot now; the rest of it is discarded."""
        ...

    def __next__(self) -> bytes: ...
    def __repr__(self) -> str: ...
