"""KeyValueConfig: the configuration of a bucket, and of its stream (ADR-8, 48 and 57).

KeyValueStatus: the configuration and the state that the server reports.
"""

from __future__ import annotations

from jetstream.config import Placement, Republish, StreamConfig, StreamSource, SubjectTransform
from jetstream.schema.fields import Field, Fields, refuse
from jetstream.schema.types import (
    COUNT,
    COUNT32,
    DURATION,
    FLAG,
    MAP,
    TEXT,
    Choice,
    Object,
    list_of,
)
from natsproto.errors import InvalidValue
from natsproto.wire.text import cut_middle, shorten

from .bucket import SAME, BucketStatus, read_stream, write_stream
from .names import ALL_KEYS, STREAM, check_bucket, prefix_of, stream_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from typing_extensions import Unpack

    from jetstream.schema.fields import Refusal
    from jetstream.schema.stream_config import PlacementDict, RepublishDict, Storage
    from jetstream.schema.stream_sources import StreamSourceDict
    from natsproto.durations import Seconds

    class KeyValueConfigDict(TypedDict, total=False):
        """The keywords of KeyValueConfig, for functions that forward them."""

        bucket: str
        description: str
        history: int
        ttl: Seconds
        limit_marker_ttl: Seconds
        max_value_size: int
        max_bytes: int
        storage: Storage
        replicas: int
        placement: Placement | PlacementDict | None
        republish: Republish | RepublishDict | None
        mirror: StreamSource | StreamSourceDict | None
        sources: Sequence[StreamSource | StreamSourceDict]
        compression: bool
        metadata: dict[str, str]


MAX_HISTORY = 64
_WINDOW = 120.0  # the longest duplicate window


class KeyValueConfig(Fields):
    """The configuration of a bucket; every field but `bucket` has a default."""

    if TYPE_CHECKING:

        def __init__(self, **config: Unpack[KeyValueConfigDict]) -> None: ...

    bucket: str
    description: str
    history: int
    ttl: float
    limit_marker_ttl: float
    max_value_size: int
    max_bytes: int
    storage: str
    replicas: int
    placement: Placement | None
    republish: Republish | None
    mirror: StreamSource | None
    sources: list[StreamSource]
    compression: bool
    metadata: dict[str, str]

    FIELDS: tuple[Field, ...] = (
        Field("bucket", TEXT, "The name: letters, digits, `-` and `_`."),
        Field("description", TEXT, "A description; at most 4096 bytes.", (2, 3)),
        Field("history", COUNT, "Number of values to keep of each key, 1 to 64; 0: 1.", (2, 6)),
        Field("ttl", DURATION, "Maximum age of values; 0: no limit, otherwise at least 0.1."),
        Field(
            "limit_marker_ttl",
            DURATION,
            "Lifetime of the markers of expired values; also allows a TTL of single keys, and"
            " cannot be unset. 0: no markers, otherwise at least 1.",
            (2, 11),
        ),
        Field("max_value_size", COUNT32, "Maximum size of a value in bytes; -1: no limit."),
        Field("max_bytes", COUNT, "Maximum size of the bucket in bytes; -1: no limit."),
        Field("storage", Choice("file", "memory"), "Storage of the values."),
        Field("replicas", COUNT, "Number of replicas in a cluster, 1 to 5; 0: 1."),
        Field("placement", Object(Placement), "Placement in the cluster."),
        Field("republish", Object(Republish), "Republish changes to another subject.", (2, 8)),
        Field(
            "mirror",
            Object(StreamSource),
            "The bucket that this one mirrors: reads are local, writes go to that bucket.",
        ),
        Field(
            "sources",
            list_of(StreamSource),
            "Buckets to copy keys from; streams of any kind if they have subject transforms.",
            (2, 10),
        ),
        Field("compression", FLAG, "Compress the files.", (2, 10)),
        Field("metadata", MAP, "User-defined metadata; at most 131072 bytes.", (2, 10)),
    )

    @classmethod
    def of_stream(cls, config: StreamConfig) -> KeyValueConfig:
        """Return the configuration of the bucket that this stream is."""
        made = cls(
            history=config.max_msgs_per_subject, mirror=config.mirror, sources=config.sources
        )
        read_stream(made, config, STREAM, _SAME)
        return made

    def check(self) -> None:
        """Raise a LocalError that names the rule if the configuration is invalid."""
        check_bucket(self.bucket)
        refuse(self, _REFUSED)
        for source in self.sources:
            if source.filter_subject and not source.subject_transforms:
                text = "source %s of bucket %s: filter by subject_transforms, not by filter_subject"
                raise InvalidValue(text % (shorten(source), shorten(self.bucket)), "KV-13")

    def to_stream(self) -> StreamConfig:
        """Return the configuration of the stream (KV-5 to KV-12)."""
        self.check()
        stream = StreamConfig(
            name=stream_of(self.bucket),
            max_msgs_per_subject=self.history or 1,
            discard="new",  # KV-7
            allow_rollup_hdrs=True,
            deny_delete=True,
            allow_direct=True,
            duplicate_window=min(self.ttl or _WINDOW, _WINDOW),  # KV-8
        )
        write_stream(self, stream, _SAME)
        if self.limit_marker_ttl:
            stream.allow_msg_ttl = True
        if self.mirror is not None:
            stream.mirror = self.mirror.copy()
            stream.mirror.name = _with_prefix(stream.mirror.name)
            stream.mirror_direct = True  # KV-11
        else:
            stream.subjects = [prefix_of(self.bucket) + ALL_KEYS]
            if self.sources:
                stream.sources = [self._source(source) for source in self.sources]
        return stream

    def _source(self, source: StreamSource) -> StreamSource:
        if source.subject_transforms:
            return source
        source = source.copy()
        source.name = _with_prefix(source.name)
        bucket = source.name[len(STREAM) :]
        if source.external is None or bucket != self.bucket:
            src = prefix_of(bucket) + ALL_KEYS
            dest = prefix_of(self.bucket) + ALL_KEYS
            source.subject_transforms = [SubjectTransform(src=src, dest=dest)]
        return source


class KeyValueStatus(BucketStatus):
    """The configuration and the state of a bucket. Returned by KeyValue.status."""

    PREFIX = STREAM

    @property
    def values(self) -> int:
        """The number of values, including history and markers."""
        return self.stream_info.state.messages

    @property
    def bytes(self) -> int:
        """The size of all values in bytes."""
        return self.stream_info.state.bytes

    @property
    def history(self) -> int:
        """The number of values that are kept of each key."""
        return self.stream_info.config.max_msgs_per_subject

    @property
    def limit_marker_ttl(self) -> float:
        """The lifetime of the markers of expired values; 0: there are no markers."""
        return self.stream_info.config.subject_delete_marker_ttl

    @property
    def config(self) -> KeyValueConfig:
        """The configuration; change it and pass it to update_key_value."""
        return KeyValueConfig.of_stream(self.stream_info.config)

    def __repr__(self) -> str:
        shown = (cut_middle(self.bucket), self.values, self.bytes)
        return "<KeyValueStatus of %s: %d values, %d bytes>" % shown


def _with_prefix(name: str) -> str:
    return name if name.startswith(STREAM) else STREAM + name


_SAME = SAME + (  # KV-10
    ("limit_marker_ttl", "subject_delete_marker_ttl"),
    ("max_value_size", "max_msg_size"),
    ("republish", "republish"),
)

GOVERNED = tuple([theirs for _, theirs in _SAME]) + (
    "compression",
    "mirror",
    "mirror_direct",
    "sources",
)

_REFUSED: list[Refusal[KeyValueConfig]] = [
    (
        "KV-6",
        ("history",),
        lambda c: not 0 <= c.history <= MAX_HISTORY,
        "the range is 1 to 64",
    ),
    ("STREAM-6", ("ttl",), lambda c: 0 < c.ttl < 0.1, "the minimum is 0.1 s"),
    (
        "KV-9",
        ("limit_marker_ttl",),
        lambda c: 0 < c.limit_marker_ttl < 1,
        "the minimum is 1 s",
    ),
    (
        "KV-13",
        ("mirror", "sources"),
        lambda c: c.mirror is not None and c.sources,
        "a bucket has a mirror or sources, not both",
    ),
]
