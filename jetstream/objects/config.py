"""ObjectStoreConfig: the configuration of an object store, and of its stream (ADR-20).

ObjectStoreStatus: the configuration and the state that the server reports.
"""

from __future__ import annotations

from jetstream.config import Placement, StreamConfig
from jetstream.kv.bucket import BucketStatus, read_stream, write_stream
from jetstream.schema.fields import Field, Fields, refuse
from jetstream.schema.types import COUNT, DURATION, FLAG, MAP, TEXT, Choice, Object
from natsproto.wire.text import cut_middle

from .names import STREAM, check_bucket, chunks_of, infos_of, stream_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import TypedDict

    from typing_extensions import Unpack

    from jetstream.schema.fields import Refusal
    from jetstream.schema.stream_config import PlacementDict, Storage
    from natsproto.durations import Seconds

    class ObjectStoreConfigDict(TypedDict, total=False):
        """The keywords of ObjectStoreConfig, for functions that forward them."""

        bucket: str
        description: str
        ttl: Seconds
        max_bytes: int
        storage: Storage
        replicas: int
        placement: Placement | PlacementDict | None
        compression: bool
        metadata: dict[str, str]


class ObjectStoreConfig(Fields):
    """The configuration of an object store; every field but `bucket` has a default."""

    if TYPE_CHECKING:

        def __init__(self, **config: Unpack[ObjectStoreConfigDict]) -> None: ...

    bucket: str
    description: str
    ttl: float
    max_bytes: int
    storage: str
    replicas: int
    placement: Placement | None
    compression: bool
    metadata: dict[str, str]

    FIELDS: tuple[Field, ...] = (
        Field("bucket", TEXT, "The name: letters, digits, `-` and `_`."),
        Field("description", TEXT, "A description; at most 4096 bytes.", (2, 3)),
        Field("ttl", DURATION, "Maximum age of objects; 0: no limit, otherwise at least 0.1."),
        Field("max_bytes", COUNT, "Maximum size in bytes; -1: no limit."),
        Field("storage", Choice("file", "memory"), "Storage of the objects."),
        Field("replicas", COUNT, "Number of replicas in a cluster, 1 to 5; 0: 1."),
        Field("placement", Object(Placement), "Placement in the cluster."),
        Field("compression", FLAG, "Compress the files.", (2, 10)),
        Field("metadata", MAP, "User-defined metadata; at most 131072 bytes.", (2, 10)),
    )

    @classmethod
    def of_stream(cls, config: StreamConfig) -> ObjectStoreConfig:
        """Return the configuration of the object store that this stream is."""
        made = cls()
        read_stream(made, config, STREAM)
        return made

    def check(self) -> None:
        """Raise a LocalError that names the rule if the configuration is invalid."""
        check_bucket(self.bucket)
        refuse(self, _REFUSED)

    def to_stream(self) -> StreamConfig:
        """Return the configuration of the stream (OBJ-4, OBJ-5)."""
        self.check()
        stream = StreamConfig(
            name=stream_of(self.bucket),
            subjects=[chunks_of(self.bucket) + ">", infos_of(self.bucket) + ">"],
            discard="new",
            allow_rollup_hdrs=True,
            allow_direct=True,
        )
        write_stream(self, stream)
        return stream


class ObjectStoreStatus(BucketStatus):
    """The configuration and the state of an object store. Returned by ObjectStore.status."""

    PREFIX = STREAM

    @property
    def sealed(self) -> bool:
        """Whether the object store is sealed: no object can be added, changed or deleted."""
        return self.stream_info.config.sealed

    @property
    def size(self) -> int:
        """The size in bytes, including the infos of objects."""
        return self.stream_info.state.bytes

    @property
    def config(self) -> ObjectStoreConfig:
        """The configuration; change it and pass it to update_object_store."""
        return ObjectStoreConfig.of_stream(self.stream_info.config)

    def __repr__(self) -> str:
        return "<ObjectStoreStatus of %s: %d bytes>" % (cut_middle(self.bucket), self.size)


_REFUSED: list[Refusal[ObjectStoreConfig]] = [
    ("STREAM-6", ("ttl",), lambda c: 0 < c.ttl < 0.1, "the minimum is 0.1 s"),
]
