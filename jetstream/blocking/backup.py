"""Snapshots without async and await: the results of JetStream.snapshot_stream."""

from __future__ import annotations

from jetstream.streams import snapshot as _snapshot
from natsproto.port import blocking, blocking_next

from .loops import StoppableLoop

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.schema.stream_config import StreamConfig
    from jetstream.schema.stream_info import StreamState
    from natsproto.port import BlockingPort


class StreamSnapshot(StoppableLoop):
    """The bytes of a whole stream: iterate its chunks, or `save` it to a file.

    The iteration ends when all chunks have arrived. It raises SnapshotFailed if the server ends the
    snapshot early, or the connection is lost: nothing can be resumed. A server waits 5 s for a
    reader that does not keep up. Returned by JetStream.snapshot_stream.
    """

    def __init__(self, inner: _snapshot.StreamSnapshot, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def config(self) -> StreamConfig:
        """The configuration of the stream."""
        return self.inner.config

    @property
    def state(self) -> StreamState:
        """The state of the stream when the snapshot was taken."""
        return self.inner.state

    @property
    def received(self) -> int:
        """Number of bytes that were taken."""
        return self.inner.received

    @property
    def complete(self) -> bool:
        """Whether all bytes were taken."""
        return self.inner.complete

    @property
    def header(self) -> bytes:
        """The configuration and the state as a line of JSON: the beginning of a saved file."""
        return self.inner.header

    save = blocking(_snapshot.StreamSnapshot.save)
    stop = blocking(_snapshot.StreamSnapshot.stop)
    __next__ = blocking_next(_snapshot.StreamSnapshot.__anext__)

    def __repr__(self) -> str:
        return repr(self.inner)
