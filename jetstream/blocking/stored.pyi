# Written by `python -m tests.facades`. Do not edit.

from jetstream.api import stored_batch as _stored_batch
from jetstream.api.stored import StoredMsg
from natsproto.port import BlockingPort

class StoredMsgs:
    """Stored messages, one by one. Returned by Stream.iter_get_msgs and iter_get_last_msgs.

    A loop may be left at any time; `close` ends the iteration without waiting for the garbage
    collector.
    """

    inner: _stored_batch.StoredMsgs
    port: BlockingPort

    def __init__(self, inner: _stored_batch.StoredMsgs, port: BlockingPort) -> None: ...
    def __iter__(self) -> StoredMsgs: ...
    def __next__(self) -> StoredMsg: ...
    def close(self) -> None:
        """End the iteration: no more messages are requested."""
        ...
