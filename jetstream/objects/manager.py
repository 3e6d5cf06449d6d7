"""ObjectStoreManager: creates, finds, updates and lists object stores (ADR-20)."""

from __future__ import annotations

from jetstream.kv.bucket import GOVERNED as _GOVERNED
from jetstream.kv.buckets import BucketManager

from .config import ObjectStoreConfig, ObjectStoreStatus
from .names import STREAM
from .store import ObjectStore

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.streams.stream import Stream

    _Manager = BucketManager[ObjectStoreConfig, ObjectStore, ObjectStoreStatus]
else:
    _Manager = BucketManager


class ObjectStoreManager(_Manager):
    """Manage object stores. The docstrings of JetStream describe the calls."""

    PREFIX: str = STREAM
    CONFIG = ObjectStoreConfig
    STATUS = ObjectStoreStatus
    GOVERNED: tuple[str, ...] = _GOVERNED
    RULES: tuple[str, str] = ("OBJ-1", "D-OBJ-6")

    def open(self, stream: Stream) -> ObjectStore:
        """Return the object store in this stream."""
        return ObjectStore(self, stream)
