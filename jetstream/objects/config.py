"""ObjectStoreConfig: a bucket of objects as users configure it, and the stream that it is (ADR-20).

ObjectStoreStatus: what the server tells about it.
"""

from __future__ import annotations

from jetstream.config import Placement, StreamConfig
from jetstream.kv.bucket import BucketStatus, read_stream, write_stream
from jetstream.schema.fields import Field, Fields, refuse
from jetstream.schema.types import COUNT, DURATION, FLAG, MAP, TEXT, Choice, Object
from natsproto.wire.text import cut_middle

from .names import STREAM, check_bucket, chunks_of, infos_of, stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from typing_extensions import Unpack

    from jetstream.schema.fields import Refusal
    from jetstream.schema.stream_config import PlacementDict, Storage

    class ObjectStoreConfigDict(TypedDict, total=False):
        """The keywords of ObjectStoreConfig, for functions that pass them on."""

        bucket: str
        description: str
        ttl: float
        max_bytes: int
        storage: Storage
        replicas: int
        placement: Placement | PlacementDict | None
        compression: bool
        metadata: dict[str, str]


class ObjectStoreConfig(Fields):
    """The configuration of a bucket; all but its name may be left to defaults."""

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

    FIELDS = (
        Field("bucket", TEXT, "What it is called: letters, digits, `-` and `_`."),
        Field("description", TEXT, "What it is for; at most 4096 bytes.", (2, 3)),
        Field("ttl", DURATION, "How old objects get; 0: no limit, else 0.1 at least."),
        Field("max_bytes", COUNT, "How many bytes it holds; -1: any."),
        Field("storage", Choice("file", "memory"), "Where objects are kept."),
        Field("replicas", COUNT, "On how many servers of a cluster; 1 to 5, 0: 1."),
        Field("placement", Object(Placement), "Where in the cluster it is."),
        Field("compression", FLAG, "Files are compressed.", (2, 10)),
        Field("metadata", MAP, "Anything; at most 131072 bytes.", (2, 10)),
    )

    @classmethod
    def of_stream(cls, config: StreamConfig) -> ObjectStoreConfig:
        """As the stream of a bucket says it."""
        made = cls()
        read_stream(made, config, STREAM)
        return made

    def check(self) -> None:
        """LocalError, with the rule, if this cannot be a bucket."""
        check_bucket(self.bucket)
        refuse(self, _REFUSED)

    def to_stream(self) -> StreamConfig:
        """The stream that is this bucket (OBJ-4, OBJ-5)."""
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
    """How a bucket is configured, and what it holds. Made by ObjectStore.status."""

    PREFIX = STREAM

    @property
    def sealed(self) -> bool:
        """Whether nothing goes in or out any more."""
        return self.stream_info.config.sealed

    @property
    def size(self) -> int:
        """How many bytes it holds, with all that is told about objects."""
        return self.stream_info.state.bytes

    @property
    def config(self) -> ObjectStoreConfig:
        """All of its configuration, which can be changed and given to update_object_store."""
        return ObjectStoreConfig.of_stream(self.stream_info.config)

    def __repr__(self) -> str:
        return "<ObjectStoreStatus of %s: %d bytes>" % (cut_middle(self.bucket), self.size)


_REFUSED: list[Refusal[ObjectStoreConfig]] = [
    ("STREAM-6", ("ttl",), lambda c: 0 < c.ttl < 0.1, "0.1 s is the least"),
]
