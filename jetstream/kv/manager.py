"""KeyValueManager: creates, finds, updates and lists key-value buckets (ADR-8)."""

from __future__ import annotations

from jetstream.errors.kv import NotABucket
from natsproto.errors import NotSupported

from .buckets import BucketManager
from .config import GOVERNED as _GOVERNED
from .config import KeyValueConfig, KeyValueStatus
from .names import STREAM
from .store import KeyValue

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.streams.manager import StreamManager
    from jetstream.streams.stream import Stream

    _Manager = BucketManager[KeyValueConfig, KeyValue, KeyValueStatus]
else:
    _Manager = BucketManager


class KeyValueManager(_Manager):
    """Manage key-value buckets. The docstrings of JetStream describe the calls."""

    PREFIX: str = STREAM
    CONFIG = KeyValueConfig
    STATUS = KeyValueStatus
    GOVERNED: tuple[str, ...] = _GOVERNED
    RULES: tuple[str, str] = ("KV-1", "KV-14")

    async def check(self, config: KeyValueConfig, streams: StreamManager) -> None:
        """Raise NotSupported if limit markers are requested of a server without them (KV-9)."""
        if config.limit_marker_ttl:
            # The server that answers for this JetStream may not be the one we are connected to.
            level = (await streams.account_info()).api.level
            if level < 1:
                text = "limit_marker_ttl needs JetStream API level 1; this one has %d"
                raise NotSupported(text % level)

    def open(self, stream: Stream) -> KeyValue:
        """Return the bucket in this stream; raise NotABucket if it has no history (KV-16)."""
        if stream.cached_info.config.max_msgs_per_subject < 1:
            raise NotABucket(stream.name[len(STREAM) :])
        return KeyValue(self.publisher, self.api, stream)
