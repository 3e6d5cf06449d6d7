"""StreamConfig, the configuration of a stream, and its parts.

stream_sources.py has mirrors and sources; stream_rules.py has the rules checked before sending.
"""

from __future__ import annotations

from .fields import Field, Fields
from .stream_sources import StreamSource, SubjectTransform
from .types import (
    COUNT,
    COUNT32,
    DURATION,
    FLAG,
    MAP,
    SEQUENCE,
    TEXT,
    TEXTS,
    Choice,
    Embedded,
    Object,
    list_of,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias, TypedDict

    from typing_extensions import Unpack

    from natsproto.durations import Seconds

    from .stream_sources import StreamSourceDict, SubjectTransformDict

    Retention: TypeAlias = Literal["limits", "interest", "workqueue"]
    Discard: TypeAlias = Literal["old", "new"]
    Storage: TypeAlias = Literal["file", "memory"]
    Compression: TypeAlias = Literal["none", "s2"]
    PersistMode: TypeAlias = Literal["default", "async"]

    class PlacementDict(TypedDict, total=False):
        """The keywords of Placement."""

        cluster: str
        tags: list[str] | tuple[str, ...]
        preferred: str

    class RepublishDict(TypedDict, total=False):
        """The keywords of Republish."""

        src: str
        dest: str
        headers_only: bool

    class ConsumerLimitsDict(TypedDict, total=False):
        """The keywords of ConsumerLimits."""

        inactive_threshold: Seconds
        max_ack_pending: int

    class StreamConfigDict(TypedDict, total=False):
        """The keywords of StreamConfig, for functions that pass them on."""

        name: str
        description: str
        subjects: list[str] | tuple[str, ...]
        retention: Retention
        max_consumers: int
        max_msgs: int
        max_bytes: int
        max_age: Seconds
        max_msgs_per_subject: int
        max_msg_size: int
        discard: Discard
        storage: Storage
        num_replicas: int
        no_ack: bool
        duplicate_window: Seconds
        placement: Placement | PlacementDict | None
        mirror: StreamSource | StreamSourceDict | None
        sources: Sequence[StreamSource | StreamSourceDict]
        compression: Compression
        first_seq: int
        subject_transform: SubjectTransform | SubjectTransformDict | None
        republish: Republish | RepublishDict | None
        allow_direct: bool
        mirror_direct: bool
        discard_new_per_subject: bool
        sealed: bool
        deny_delete: bool
        deny_purge: bool
        allow_rollup_hdrs: bool
        consumer_limits: ConsumerLimits | ConsumerLimitsDict
        allow_msg_ttl: bool
        subject_delete_marker_ttl: Seconds
        allow_msg_counter: bool
        allow_atomic: bool
        allow_msg_schedules: bool
        persist_mode: PersistMode
        allow_batched: bool
        metadata: dict[str, str]


class Placement(Fields):
    """The placement of a stream's replicas in a cluster, or among clusters."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[PlacementDict]) -> None: ...

    cluster: str
    tags: list[str]
    preferred: str

    FIELDS: tuple[Field, ...] = (
        Field("cluster", TEXT, "The cluster."),
        Field("tags", TEXTS, "Servers must have all of these tags."),
        Field(
            "preferred",
            TEXT,
            "The preferred leader, in step-down requests; not allowed in a stream.",
            (2, 11),
        ),
    )


class Republish(Fields):
    """How stored messages are republished under another subject."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[RepublishDict]) -> None: ...

    src: str
    dest: str
    headers_only: bool

    FIELDS: tuple[Field, ...] = (
        Field("src", TEXT, "The subjects of the messages to republish; empty: all.", (2, 8)),
        Field("dest", TEXT, "The subject to republish them to.", (2, 8)),
        Field("headers_only", FLAG, "Republish without the payload.", (2, 8)),
    )


class ConsumerLimits(Fields):
    """Defaults and upper limits for the consumers of a stream."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ConsumerLimitsDict]) -> None: ...

    inactive_threshold: float
    max_ack_pending: int

    FIELDS: tuple[Field, ...] = (
        Field(
            "inactive_threshold", DURATION, "Maximum idle time of a consumer; 0: no limit.", (2, 10)
        ),
        Field(
            "max_ack_pending",
            COUNT,
            "Maximum number of unacknowledged messages; 0: no limit.",
            (2, 10),
        ),
    )


class StreamConfig(Fields):  # JSAPI-9
    """The configuration of a stream; only the name is required."""

    if TYPE_CHECKING:

        def __init__(self, **config: Unpack[StreamConfigDict]) -> None: ...

    name: str
    description: str
    subjects: list[str]
    retention: str
    max_consumers: int
    max_msgs: int
    max_bytes: int
    max_age: float
    max_msgs_per_subject: int
    max_msg_size: int
    discard: str
    storage: str
    num_replicas: int
    no_ack: bool
    duplicate_window: float
    placement: Placement | None
    mirror: StreamSource | None
    sources: list[StreamSource]
    compression: str
    first_seq: int
    subject_transform: SubjectTransform | None
    republish: Republish | None
    allow_direct: bool
    mirror_direct: bool
    discard_new_per_subject: bool
    sealed: bool
    deny_delete: bool
    deny_purge: bool
    allow_rollup_hdrs: bool
    consumer_limits: ConsumerLimits
    allow_msg_ttl: bool
    subject_delete_marker_ttl: float
    allow_msg_counter: bool
    allow_atomic: bool
    allow_msg_schedules: bool
    persist_mode: str
    allow_batched: bool
    metadata: dict[str, str]

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The name of the stream, unique in its account."),
        Field("description", TEXT, "A description of at most 4096 bytes.", (2, 3)),
        Field(
            "subjects",
            TEXTS,
            "The subjects to store, with wildcards. Default: its name; none for mirrors and"
            " streams with sources.",
        ),
        Field(
            "retention",
            Choice("limits", "interest", "workqueue"),
            "How long messages are kept, within the limits: until a limit is reached, until all"
            " consumers have acknowledged them, or until one consumer has.",
        ),
        Field("max_consumers", COUNT, "Maximum number of consumers; -1: no limit."),
        Field("max_msgs", COUNT, "Maximum number of messages; -1: no limit."),
        Field("max_bytes", COUNT, "Maximum number of bytes; -1: no limit."),
        Field("max_age", DURATION, "Maximum age of messages; 0: no limit; else at least 0.1."),
        Field(
            "max_msgs_per_subject",
            COUNT,
            "Maximum number of messages per subject; -1: no limit.",
            (2, 3),
        ),
        Field("max_msg_size", COUNT32, "Maximum size of a message in bytes; -1: no limit."),
        Field(
            "discard",
            Choice("old", "new"),
            "Which message is discarded at a limit: the oldest (`old`) or the new one (`new`).",
        ),
        Field("storage", Choice("file", "memory"), "Where messages are stored."),
        Field("num_replicas", COUNT, "Number of replicas in a cluster, 1 to 5; 0: 1."),
        Field("no_ack", FLAG, "Publishes are not acknowledged."),
        Field(
            "duplicate_window",
            DURATION,
            "How long message ids are kept; 0: two minutes, or max_age if that is shorter.",
        ),
        Field("placement", Object(Placement), "The placement of its replicas."),
        Field("mirror", Object(StreamSource), "The stream that this one mirrors."),
        Field(
            "sources", list_of(StreamSource), "The streams whose messages are added to this one."
        ),
        Field("compression", Choice("none", "s2"), "The compression of files.", (2, 10)),
        Field("first_seq", SEQUENCE, "The sequence of the first message; 0: 1.", (2, 10)),
        Field(
            "subject_transform",
            Object(SubjectTransform),
            "How subjects are transformed before messages are stored.",
            (2, 10),
        ),
        Field("republish", Object(Republish), "How stored messages are republished.", (2, 8)),
        Field("allow_direct", FLAG, "Any replica may serve a get, not just the leader.", (2, 9)),
        Field(
            "mirror_direct",
            FLAG,
            "This mirror also serves direct gets of its origin. Follows allow_direct of an"
            " origin in the same account.",
            (2, 9),
        ),
        Field(
            "discard_new_per_subject",
            FLAG,
            "Apply discard `new` to max_msgs_per_subject as well.",
            (2, 9),
        ),
        Field(
            "sealed",
            FLAG,
            "Messages cannot be added or removed; set by updates only.",
            (2, 6),
        ),
        Field("deny_delete", FLAG, "Messages cannot be deleted by the API.", (2, 6)),
        Field("deny_purge", FLAG, "The stream cannot be purged by the API.", (2, 6)),
        Field(
            "allow_rollup_hdrs",
            FLAG,
            "A message with the header Nats-Rollup replaces all earlier ones.",
            (2, 6),
        ),
        Field(
            "consumer_limits",
            Embedded(ConsumerLimits),
            "Defaults and limits of its consumers.",
            (2, 10),
        ),
        Field("allow_msg_ttl", FLAG, "Message TTLs are allowed.", (2, 11)),
        Field(
            "subject_delete_marker_ttl",
            DURATION,
            "How long a marker is kept after a limit removed the last message of a subject; 0: no"
            " marker, otherwise at least 1.",
            (2, 11),
        ),
        Field("allow_msg_counter", FLAG, "Messages are increments of counters.", (2, 12)),
        Field("allow_atomic", FLAG, "Atomic batches are allowed.", (2, 12)),
        Field("allow_msg_schedules", FLAG, "Message schedules are allowed.", (2, 12)),
        Field(
            "persist_mode",
            Choice("default", "async"),
            "With `async`, messages are acknowledged before they are on disk.",
            (2, 12),
        ),
        Field("allow_batched", FLAG, "Fast batches are allowed.", (2, 14)),
        Field(
            "metadata",
            MAP,
            "Any metadata, at most 131072 bytes. Keys that start with `_nats` are reserved.",
            (2, 10),
        ),
    )

    def check(self, *, new: bool = True) -> None:
        """Raise LocalError, with the rule, if a server is certain to reject this configuration.

        Pass new=False for a stream that may already exist: its name is checked less strictly.
        """
        from .stream_rules import check_stream

        check_stream(self, new)
