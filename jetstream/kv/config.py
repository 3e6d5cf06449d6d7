"""KeyValueConfig: a bucket as users configure it, and the stream that it is (ADR-8, 48 and 57).

KeyValueStatus: what the server tells about it.
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from typing_extensions import Unpack

    from jetstream.schema.fields import Refusal
    from jetstream.schema.stream_config import PlacementDict, RepublishDict, Storage
    from jetstream.schema.stream_sources import StreamSourceDict

    class KeyValueConfigDict(TypedDict, total=False):
        """The keywords of KeyValueConfig, for functions that pass them on."""

        bucket: str
        description: str
        history: int
        ttl: float
        limit_marker_ttl: float
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
_WINDOW = 120.0  # of duplicates, at most


class KeyValueConfig(Fields):
    """The configuration of a bucket; all but its name may be left to defaults."""

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

    FIELDS = (
        Field("bucket", TEXT, "What it is called: letters, digits, `-` and `_`."),
        Field("description", TEXT, "What it is for; at most 4096 bytes.", (2, 3)),
        Field("history", COUNT, "How many values of a key it keeps, 1 to 64; 0: 1.", (2, 6)),
        Field("ttl", DURATION, "How old values get; 0: no limit, else 0.1 at least."),
        Field(
            "limit_marker_ttl",
            DURATION,
            "When a value goes by its age, a marker stays for so long; also allows TTLs of single"
            " keys, which cannot be taken back. 0: no markers, else 1 at least.",
            (2, 11),
        ),
        Field("max_value_size", COUNT32, "How many bytes a value may have; -1: any."),
        Field("max_bytes", COUNT, "How many bytes it holds; -1: any."),
        Field("storage", Choice("file", "memory"), "Where values are kept."),
        Field("replicas", COUNT, "On how many servers of a cluster; 1 to 5, 0: 1."),
        Field("placement", Object(Placement), "Where in the cluster it is."),
        Field("republish", Object(Republish), "Changes are published again.", (2, 8)),
        Field(
            "mirror",
            Object(StreamSource),
            "The bucket that this one is a copy of: it is read here and written there.",
        ),
        Field(
            "sources",
            list_of(StreamSource),
            "The buckets that it also gets keys from; with transforms of their own any streams.",
            (2, 10),
        ),
        Field("compression", FLAG, "Files are compressed.", (2, 10)),
        Field("metadata", MAP, "Anything; at most 131072 bytes.", (2, 10)),
    )

    @classmethod
    def of_stream(cls, config: StreamConfig) -> KeyValueConfig:
        """As the stream of a bucket says it."""
        made = cls(
            history=config.max_msgs_per_subject, mirror=config.mirror, sources=config.sources
        )
        read_stream(made, config, STREAM, _SAME)
        return made

    def check(self) -> None:
        """LocalError, with the rule, if this cannot be a bucket."""
        check_bucket(self.bucket)
        refuse(self, _REFUSED)
        for source in self.sources:
            if source.filter_subject and not source.subject_transforms:
                text = "source %s of bucket %s: filter by subject_transforms, not by filter_subject"
                raise InvalidValue(text % (shorten(source), shorten(self.bucket)), "KV-13")

    def to_stream(self) -> StreamConfig:
        """The stream that is this bucket (KV-5 to KV-12)."""
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
    """How a bucket is configured, and what it holds. Made by KeyValue.status."""

    PREFIX = STREAM

    @property
    def values(self) -> int:
        """How many values it holds, with those of the past and markers."""
        return self.stream_info.state.messages

    @property
    def bytes(self) -> int:
        """How large they are."""
        return self.stream_info.state.bytes

    @property
    def history(self) -> int:
        """How many values of a key it keeps."""
        return self.stream_info.config.max_msgs_per_subject

    @property
    def limit_marker_ttl(self) -> float:
        """How long the markers stay of what went by its age; 0: there are none."""
        return self.stream_info.config.subject_delete_marker_ttl

    @property
    def config(self) -> KeyValueConfig:
        """All of its configuration, which can be changed and given to update_key_value."""
        return KeyValueConfig.of_stream(self.stream_info.config)

    def __repr__(self) -> str:
        told = (cut_middle(self.bucket), self.values, self.bytes)
        return "<KeyValueStatus of %s: %d values, %d bytes>" % told


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
        "a key has 1 to 64 values",
    ),
    ("STREAM-6", ("ttl",), lambda c: 0 < c.ttl < 0.1, "0.1 s is the least"),
    (
        "KV-9",
        ("limit_marker_ttl",),
        lambda c: 0 < c.limit_marker_ttl < 1,
        "1 s is the least",
    ),
    (
        "KV-13",
        ("mirror", "sources"),
        lambda c: c.mirror is not None and c.sources,
        "it is a copy of one bucket, or gets keys from several",
    ),
]
