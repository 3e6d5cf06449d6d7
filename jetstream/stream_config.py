"""The configuration of a stream, and the objects in it.

`check` refuses what the server would refuse, with the reason, before anything is sent. It knows the
rules that have been stable and can be told from the configuration alone. What depends on other
streams, on the account or on the cluster is left to the server, and so is what it silently mends.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.subjects import check_known_name, check_new_name, check_publish, check_subscribe

from .fields import Field, Fields, refuse
from .kinds import (
    COUNT,
    COUNT32,
    DURATION,
    FLAG,
    MAP,
    SEQUENCE,
    TEXT,
    TEXTS,
    TIME,
    Choice,
    Object,
    Objects,
    Part,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias, TypedDict

    from typing_extensions import Unpack

    from .fields import Refusal
    from .timestamp import Timestamp, TimestampLike

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

    class SubjectTransformDict(TypedDict, total=False):
        """The keywords of SubjectTransform."""

        src: str
        dest: str

    class RepublishDict(TypedDict, total=False):
        """The keywords of Republish."""

        src: str
        dest: str
        headers_only: bool

    class ConsumerLimitsDict(TypedDict, total=False):
        """The keywords of ConsumerLimits."""

        inactive_threshold: float
        max_ack_pending: int

    class ExternalStreamDict(TypedDict, total=False):
        """The keywords of ExternalStream."""

        api: str
        deliver: str

    class SourceConsumerDict(TypedDict, total=False):
        """The keywords of SourceConsumer."""

        name: str
        deliver_subject: str

    class StreamSourceDict(TypedDict, total=False):
        """The keywords of StreamSource."""

        name: str
        opt_start_seq: int
        opt_start_time: TimestampLike | None
        filter_subject: str
        subject_transforms: Sequence[SubjectTransform | SubjectTransformDict]
        external: ExternalStream | ExternalStreamDict | None
        consumer: SourceConsumer | SourceConsumerDict | None

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


MAX_DESCRIPTION = 4096  # bytes
MAX_METADATA = 131072  # bytes, keys and values
MAX_REPLICAS = 5


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


class SubjectTransform(Fields):
    """How subjects change: those that match `src` become `dest`."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[SubjectTransformDict]) -> None: ...

    src: str
    dest: str

    FIELDS = (
        Field("src", TEXT, "What subjects must match, with wildcards; empty: all do.", (2, 10)),
        Field("dest", TEXT, "What they become, such as `a.{{wildcard(1)}}`.", (2, 10)),
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


class ExternalStream(Fields):
    """How to reach a stream of another account or domain."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ExternalStreamDict]) -> None: ...

    api: str
    deliver: str

    FIELDS = (
        Field("api", TEXT, "The prefix of its API, such as `$JS.hub.API`."),
        Field("deliver", TEXT, "The prefix of subjects that its messages are delivered to."),
    )


class SourceConsumer(Fields):
    """A consumer that somebody made for this mirror or source, instead of one of its own."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[SourceConsumerDict]) -> None: ...

    name: str
    deliver_subject: str

    FIELDS = (
        Field("name", TEXT, "The consumer; its ack_policy is `flow_control`.", (2, 14)),
        Field("deliver_subject", TEXT, "The subject that it delivers to.", (2, 14)),
    )


class StreamSource(Fields):
    """Another stream, from which messages are copied."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[StreamSourceDict]) -> None: ...

    name: str
    opt_start_seq: int
    opt_start_time: Timestamp | None
    filter_subject: str
    subject_transforms: list[SubjectTransform]
    external: ExternalStream | None
    consumer: SourceConsumer | None

    FIELDS = (
        Field("name", TEXT, "The stream."),
        Field("opt_start_seq", SEQUENCE, "Copy from this sequence on; 0: from the first."),
        Field("opt_start_time", TIME, "Copy from this time on."),
        Field("filter_subject", TEXT, "Copy only what matches; excludes subject_transforms."),
        Field(
            "subject_transforms",
            Objects(SubjectTransform),
            "Copy only what matches one of these, under the new subject.",
            (2, 10),
        ),
        Field("external", Object(ExternalStream), "Where it is, if not in this account."),
        Field(
            "consumer",
            Object(SourceConsumer),
            "The consumer to copy by; excludes opt_start_seq, opt_start_time and filter_subject.",
            (2, 14),
        ),
    )


class StreamConfig(Fields):
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
        Field("sources", Objects(StreamSource), "The streams that it also gets messages from."),
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
            Part(ConsumerLimits),
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
        (check_new_name if new else check_known_name)("stream", self.name)
        for subject in self.subjects:
            check_subscribe(subject, "subject of stream %r" % self.name)
        check_limits(self, self.description, self.metadata, "STREAM-3", "STREAM-4")
        refuse(self, _REFUSED)
        if self.subject_transform is not None and self.subject_transform.src:
            check_subscribe(self.subject_transform.src, "source of a transform")
        if self.mirror is not None:
            _check_mirror(self, self.mirror)
        for source in self.sources:
            check_known_name("source", source.name)
            _check_source(source)


def check_limits(
    config: Fields, description: str, metadata: dict[str, str], rule: str, rule_of_metadata: str
) -> None:
    """The two limits that streams and consumers share, in bytes."""
    size = len(description.encode())
    if size > MAX_DESCRIPTION:
        text = "%s.description has %d bytes, more than %d"
        raise InvalidValue(text % (type(config).__name__, size, MAX_DESCRIPTION), rule)
    size = sum([len(key.encode()) + len(metadata[key].encode()) for key in metadata])
    if size > MAX_METADATA:
        text = "%s.metadata has %d bytes, more than %d"
        raise InvalidValue(text % (type(config).__name__, size, MAX_METADATA), rule_of_metadata)


def _check_mirror(config: StreamConfig, mirror: StreamSource) -> None:
    for name in _NOT_FOR_MIRRORS:
        value = getattr(config, name)
        if value:
            text = "StreamConfig with mirror=%r and %s=%r: a mirror has what its origin has"
            raise InvalidValue(text % (mirror, name, value), "STREAM-14")
    # The name of a stream elsewhere is not looked at.
    if mirror.external is None:
        check_known_name("mirror", mirror.name)
    _check_source(mirror)


def _check_source(source: StreamSource) -> None:
    refuse(source, _REFUSED_SOURCES)
    if source.filter_subject:
        check_subscribe(source.filter_subject, "filter subject of source %r" % source.name)
    for transform in source.subject_transforms:
        if transform.src:
            check_subscribe(transform.src, "source of a transform")
    if source.consumer is not None:
        check_known_name("consumer of a source", source.consumer.name)
        check_publish(source.consumer.deliver_subject, "deliver subject of a source's consumer")
    if source.external is not None:
        for prefix in (source.external.api, source.external.deliver):
            if prefix:
                check_publish(prefix, "prefix of an external stream")


_NOT_FOR_MIRRORS = (
    "subjects",
    "sources",
    "first_seq",
    "allow_msg_counter",
    "allow_atomic",
    "allow_batched",
    "allow_msg_schedules",
    "subject_delete_marker_ttl",
)

# Rule, the fields that it is about, what must not be, and why; the first that applies is told.
_REFUSED: list[Refusal[StreamConfig]] = [
    (
        "STREAM-5",
        ("num_replicas",),
        lambda c: not 0 <= c.num_replicas <= MAX_REPLICAS,
        "a stream has 1 to 5 replicas",
    ),
    ("STREAM-6", ("max_age",), lambda c: 0 < c.max_age < 0.1, "0.1 s is the least"),
    (
        "STREAM-7",
        ("duplicate_window",),
        lambda c: 0 < c.duplicate_window < 0.1,
        "0.1 s is the least",
    ),
    (
        "STREAM-7",
        ("duplicate_window", "max_age"),
        lambda c: c.max_age and c.duplicate_window > c.max_age,
        "ids cannot be remembered for longer than messages",
    ),
    (
        "STREAM-8",
        ("allow_rollup_hdrs", "deny_purge"),
        lambda c: c.allow_rollup_hdrs and c.deny_purge,
        "a rollup purges",
    ),
    (
        "STREAM-9",
        ("allow_msg_counter", "discard"),
        lambda c: c.allow_msg_counter and c.discard == "new",
        "counters need discard old",
    ),
    (
        "STREAM-9",
        ("allow_msg_counter", "retention"),
        lambda c: c.allow_msg_counter and c.retention != "limits",
        "counters need retention limits",
    ),
    (
        "STREAM-9",
        ("allow_msg_counter", "allow_msg_ttl", "allow_msg_schedules"),
        lambda c: c.allow_msg_counter and (c.allow_msg_ttl or c.allow_msg_schedules),
        "counters exclude TTLs and schedules",
    ),
    (
        "STREAM-10",
        ("discard_new_per_subject", "discard", "max_msgs_per_subject"),
        lambda c: c.discard_new_per_subject and (c.discard != "new" or c.max_msgs_per_subject <= 0),
        "it needs discard new and max_msgs_per_subject",
    ),
    (
        "STREAM-11",
        ("subject_delete_marker_ttl",),
        lambda c: 0 < c.subject_delete_marker_ttl < 1,
        "1 s is the least",
    ),
    (
        "STREAM-12",
        ("allow_msg_schedules", "discard", "sources"),
        lambda c: c.allow_msg_schedules and (c.discard == "new" or c.sources),
        "schedules exclude discard new and sources",
    ),
    (
        "STREAM-13",
        ("persist_mode", "storage", "num_replicas", "allow_atomic"),
        lambda c: (
            c.persist_mode == "async"
            and (c.storage != "file" or c.num_replicas > 1 or c.allow_atomic)
        ),
        "async needs storage file and one replica, and excludes atomic batches",
    ),
    (
        "STREAM-15",
        ("mirror_direct",),
        lambda c: c.mirror_direct and c.mirror is None,
        "this is no mirror",
    ),
    (
        "STREAM-16",
        ("placement",),
        lambda c: c.placement is not None and c.placement.preferred,
        "a stream has no preferred server",
    ),
]

_REFUSED_SOURCES: list[Refusal[StreamSource]] = [
    (
        "STREAM-18",
        ("filter_subject", "subject_transforms"),
        lambda c: c.filter_subject and c.subject_transforms,
        "only one of the two can be given",
    ),
    (
        "STREAM-19",
        ("consumer", "opt_start_seq", "opt_start_time", "filter_subject"),
        lambda c: (
            c.consumer is not None
            and (c.opt_start_seq or c.opt_start_time is not None or c.filter_subject)
        ),
        "the consumer has its own start and filter",
    ),
]
