"""StoredMsgs without async and await: stored messages, one by one."""

from __future__ import annotations

from jetstream.api import stored_batch as _stored_batch
from natsproto.port import blocking, blocking_next

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.port import BlockingPort


class StoredMsgs:
    """Stored messages, one by one. Returned by Stream.iter_get_msgs and iter_get_last_msgs.

    A loop may be left at any time; `close` ends the iteration without waiting for the garbage
    collector.
    """

    def __init__(self, inner: _stored_batch.StoredMsgs, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    def __iter__(self) -> StoredMsgs:
        return self

    __next__ = blocking_next(_stored_batch.StoredMsgs.__anext__)
    close = blocking(_stored_batch.StoredMsgs.aclose)
