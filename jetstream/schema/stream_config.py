"""The configuration of a stream, and the objects in it.

stream_source.py has what it copies from, and stream_rules.py what is refused before it is sent.
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias, TypedDict

    from typing_extensions import Unpack

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

        inactive_threshold: float
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
        max_age: float
        max_msgs_per_subject: int
        max_msg_size: int
        discard: Discard
        storage: Storage
        num_replicas: int
        no_ack: bool
        duplicate_window: float
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
        subject_delete_marker_ttl: float
        allow_msg_counter: bool
        allow_atomic: bool
        allow_msg_schedules: bool
        persist_mode: PersistMode
        allow_batched: bool
        metadata: dict[str, str]


class Placement(Fields):
    """Where in a cluster, or among clusters, the replicas of a stream are."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[PlacementDict]) -> None: ...

    cluster: str
    tags: list[str]
    preferred: str

    FIELDS = (
        Field("cluster", TEXT, "The cluster to be in."),
        Field("tags", TEXTS, "Only servers that have all these tags."),
        Field(
            "preferred",
            TEXT,
            "The server to be the leader, in requests to step down; streams may not have it.",
            (2, 11),
        ),
    )


class Republish(Fields):
    """Stored messages are published again under another subject."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[RepublishDict]) -> None: ...

    src: str
    dest: str
    headers_only: bool

    FIELDS = (
        Field("src", TEXT, "Which messages, by subject; empty: all.", (2, 8)),
        Field("dest", TEXT, "The subject to publish them to.", (2, 8)),
        Field("headers_only", FLAG, "Without the payload.", (2, 8)),
    )


class ConsumerLimits(Fields):
    """Defaults for the consumers of a stream, and the most that they may ask for."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ConsumerLimitsDict]) -> None: ...

    inactive_threshold: float
    max_ack_pending: int

    FIELDS = (
        Field(
            "inactive_threshold", DURATION, "How long a consumer may be idle; 0: no limit.", (2, 10)
        ),
        Field(
            "max_ack_pending", COUNT, "How many messages may be unacknowledged; 0: any.", (2, 10)
        ),
    )


class StreamConfig(Fields):  # JSAPI-9
    """The configuration of a stream; all but the name may be left to the server's defaults."""

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

    FIELDS = (
        Field("name", TEXT, "What the stream is called, in its account."),
        Field("description", TEXT, "What it is for; at most 4096 bytes.", (2, 3)),
        Field(
            "subjects",
            TEXTS,
            "What it stores, with wildcards; empty: the subject that is its name, and for mirrors"
            " and streams with sources none.",
        ),
        Field(
            "retention",
            Choice("limits", "interest", "workqueue"),
            "How long messages are kept, within the limits: until these are reached, until all"
            " consumers have acknowledged them, or until one has.",
        ),
        Field("max_consumers", COUNT, "How many consumers it may have; -1: any."),
        Field("max_msgs", COUNT, "How many messages it holds; -1: any."),
        Field("max_bytes", COUNT, "How many bytes it holds; -1: any."),
        Field("max_age", DURATION, "How old messages get; 0: no limit, else 0.1 at least."),
        Field(
            "max_msgs_per_subject",
            COUNT,
            "How many messages of one subject it holds; -1: any.",
            (2, 3),
        ),
        Field("max_msg_size", COUNT32, "How many bytes a message may have; -1: any."),
        Field(
            "discard",
            Choice("old", "new"),
            "What goes when a limit is reached: the oldest message, or the one that comes.",
        ),
        Field("storage", Choice("file", "memory"), "Where messages are kept."),
        Field("num_replicas", COUNT, "On how many servers of a cluster; 1 to 5, 0: 1."),
        Field("no_ack", FLAG, "Publishers get no acknowledgement."),
        Field(
            "duplicate_window",
            DURATION,
            "How long a message id is remembered; 0: two minutes, or max_age if that is less.",
        ),
        Field("placement", Object(Placement), "Where in the cluster it is."),
        Field("mirror", Object(StreamSource), "The stream that this one is a copy of."),
        Field("sources", list_of(StreamSource), "The streams that it also gets messages from."),
        Field("compression", Choice("none", "s2"), "How files are compressed.", (2, 10)),
        Field("first_seq", SEQUENCE, "The sequence of the first message; 0: 1.", (2, 10)),
        Field(
            "subject_transform",
            Object(SubjectTransform),
            "How subjects change before messages are stored.",
            (2, 10),
        ),
        Field("republish", Object(Republish), "Stored messages are published again.", (2, 8)),
        Field("allow_direct", FLAG, "Any replica may answer a get, not the leader alone.", (2, 9)),
        Field(
            "mirror_direct",
            FLAG,
            "This mirror answers direct gets of its origin as well; it follows the origin's"
            " allow_direct where that is in the same account.",
            (2, 9),
        ),
        Field(
            "discard_new_per_subject",
            FLAG,
            "With discard `new`: also if max_msgs_per_subject is reached.",
            (2, 9),
        ),
        Field("sealed", FLAG, "Nothing goes in or out any more; only by an update.", (2, 6)),
        Field("deny_delete", FLAG, "Messages cannot be deleted by the API.", (2, 6)),
        Field("deny_purge", FLAG, "The stream cannot be purged by the API.", (2, 6)),
        Field(
            "allow_rollup_hdrs",
            FLAG,
            "A message with the header Nats-Rollup replaces those before it.",
            (2, 6),
        ),
        Field(
            "consumer_limits",
            Embedded(ConsumerLimits),
            "Defaults and limits of its consumers.",
            (2, 10),
        ),
        Field("allow_msg_ttl", FLAG, "Messages may have a TTL of their own.", (2, 11)),
        Field(
            "subject_delete_marker_ttl",
            DURATION,
            "When the last message of a subject goes, a marker stays for so long; 0: none, else 1"
            " at least.",
            (2, 11),
        ),
        Field("allow_msg_counter", FLAG, "Messages are increments of counters.", (2, 12)),
        Field("allow_atomic", FLAG, "Batches of messages may be stored as one.", (2, 12)),
        Field("allow_msg_schedules", FLAG, "Messages may be published on a schedule.", (2, 12)),
        Field(
            "persist_mode",
            Choice("default", "async"),
            "With `async` a message is acknowledged before it is on disk.",
            (2, 12),
        ),
        Field("allow_batched", FLAG, "Batches of messages may be published fast.", (2, 14)),
        Field(
            "metadata",
            MAP,
            "Anything; at most 131072 bytes. Keys that start with `_nats` are the server's.",
            (2, 10),
        ),
    )

    def check(self, *, new: bool = True) -> None:
        """LocalError, with the rule, if the server is sure to refuse this configuration.

        Not `new` is one that may exist, under a name that only a laxer client would give.
        """
        from .stream_rules import check_stream

        check_stream(self, new)
