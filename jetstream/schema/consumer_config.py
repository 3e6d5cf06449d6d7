"""ConsumerConfig; consumer_rules.py has the rules that are checked before sending."""

from __future__ import annotations

from .fields import Field, Fields
from .types import (
    COUNT,
    DURATION,
    DURATIONS,
    FLAG,
    MAP,
    SEQUENCE,
    TEXT,
    TEXTS,
    TIME,
    Choice,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias, TypedDict

    from typing_extensions import Unpack

    from natsproto.durations import Seconds

    from .timestamp import Timestamp, TimestampLike

    DeliverPolicy: TypeAlias = Literal[
        "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"
    ]
    AckPolicy: TypeAlias = Literal["explicit", "all", "none", "flow_control"]
    ReplayPolicy: TypeAlias = Literal["instant", "original"]
    PriorityPolicy: TypeAlias = Literal["none", "overflow", "pinned_client", "prioritized"]

    class ConsumerConfigDict(TypedDict, total=False):
        """The keywords of ConsumerConfig, for functions that pass them on."""

        durable_name: str
        name: str
        description: str
        deliver_policy: DeliverPolicy
        opt_start_seq: int
        opt_start_time: TimestampLike | None
        ack_policy: AckPolicy
        ack_wait: Seconds
        max_deliver: int
        backoff: Sequence[Seconds]
        filter_subject: str
        filter_subjects: list[str] | tuple[str, ...]
        replay_policy: ReplayPolicy
        rate_limit_bps: int
        sample_freq: str
        max_waiting: int
        max_ack_pending: int
        flow_control: bool
        headers_only: bool
        max_batch: int
        max_expires: Seconds
        max_bytes: int
        deliver_subject: str
        deliver_group: str
        idle_heartbeat: Seconds
        inactive_threshold: Seconds
        num_replicas: int
        mem_storage: bool
        direct: bool
        sourcing: bool
        metadata: dict[str, str]
        pause_until: TimestampLike | None
        priority_groups: list[str] | tuple[str, ...]
        priority_policy: PriorityPolicy
        priority_timeout: Seconds


class ConsumerConfig(Fields):  # JSAPI-9
    """The configuration of a consumer; no field is required.

    A consumer with a deliver_subject is a push consumer, all others are pull consumers.
    """

    if TYPE_CHECKING:

        def __init__(self, **config: Unpack[ConsumerConfigDict]) -> None: ...

    durable_name: str
    name: str
    description: str
    deliver_policy: str
    opt_start_seq: int
    opt_start_time: Timestamp | None
    ack_policy: str
    ack_wait: float
    max_deliver: int
    backoff: list[float]
    filter_subject: str
    filter_subjects: list[str]
    replay_policy: str
    rate_limit_bps: int
    sample_freq: str
    max_waiting: int
    max_ack_pending: int
    flow_control: bool
    headers_only: bool
    max_batch: int
    max_expires: float
    max_bytes: int
    deliver_subject: str
    deliver_group: str
    idle_heartbeat: float
    inactive_threshold: float
    num_replicas: int
    mem_storage: bool
    direct: bool
    sourcing: bool
    metadata: dict[str, str]
    pause_until: Timestamp | None
    priority_groups: list[str]
    priority_policy: str
    priority_timeout: float

    FIELDS: tuple[Field, ...] = (
        Field(
            "durable_name",
            TEXT,
            "The name of a durable consumer, which exists until it is deleted. Other consumers are"
            " deleted after inactive_threshold without use.",
        ),
        Field(
            "name",
            TEXT,
            "The name; equal to durable_name if both are given, generated if neither is.",
            (2, 9),
        ),
        Field("description", TEXT, "A description of at most 4096 bytes.", (2, 3)),
        Field(
            "deliver_policy",
            Choice("all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"),
            "The first message to deliver: the first of the stream, the last, the next new one, the"
            " one at opt_start_seq or opt_start_time, or the last of each subject of the filter.",
        ),
        Field("opt_start_seq", SEQUENCE, "The start for `by_start_sequence`."),
        Field("opt_start_time", TIME, "The start for `by_start_time`."),
        Field(
            "ack_policy",
            Choice("explicit", "all", "none", "flow_control"),
            "What is acknowledged: each message, a message and all before it, or nothing;"
            " `flow_control` (2.14) is for sourcing: responses to flow control acknowledge.",
            always=True,  # CONS-24
        ),
        Field(
            "ack_wait",
            DURATION,
            "A message is redelivered if it is not acknowledged in this time; 0: 30 s.",
        ),
        Field(
            "max_deliver", COUNT, "Maximum number of deliveries of a message; -1 or 0: no limit."
        ),
        Field(
            "backoff",
            DURATIONS,
            "The ack_wait after the first delivery, the second, and so on; the last entry repeats."
            " Does not apply after a NAK.",
            (2, 7),
        ),
        Field("filter_subject", TEXT, "The subject of the messages to deliver, with wildcards."),
        Field("filter_subjects", TEXTS, "The subjects of the messages to deliver.", (2, 10)),
        Field(
            "replay_policy",
            Choice("instant", "original"),
            "Deliver at once, or at the pace at which the messages were stored.",
        ),
        Field("rate_limit_bps", SEQUENCE, "Push: maximum bits per second; 0: no limit."),
        Field(
            "sample_freq",
            TEXT,
            "Percentage of acknowledgments that are sampled as metrics, such as `30` or `30%`.",
        ),
        Field("max_waiting", COUNT, "Pull: maximum number of waiting requests; 0: 512."),
        Field(
            "max_ack_pending",
            COUNT,
            "Maximum number of unacknowledged messages; 0: 1000, -1: no limit.",
        ),
        Field("flow_control", FLAG, "Push: the server pauses until the client responds."),
        Field(
            "headers_only", FLAG, "Deliver without payloads; Nats-Msg-Size has their size.", (2, 6)
        ),
        Field("max_batch", COUNT, "Pull: maximum messages per request; 0: no limit.", (2, 7)),
        Field("max_expires", DURATION, "Pull: maximum expiry of a request; 0: no limit.", (2, 7)),
        Field("max_bytes", COUNT, "Pull: maximum bytes per request; 0: no limit.", (2, 8)),
        Field("deliver_subject", TEXT, "Push: the subject to deliver to."),
        Field("deliver_group", TEXT, "Push: the queue group of the subscribers.", (2, 4)),
        Field(
            "idle_heartbeat",
            DURATION,
            "Push: interval of heartbeats without messages; at least 0.1.",
        ),
        Field(
            "inactive_threshold",
            DURATION,
            "The consumer is deleted after this time without use; 0: 5 s, or never if durable.",
            (2, 7),
        ),
        Field("num_replicas", COUNT, "Number of replicas; 0: as many as the stream has.", (2, 8)),
        Field("mem_storage", FLAG, "Keep its state in memory, whatever the stream uses.", (2, 8)),
        Field("direct", FLAG, "Internal: for mirrors and sources."),
        Field("sourcing", FLAG, "Internal: for mirrors and sources.", (2, 14)),
        Field(
            "metadata",
            MAP,
            "Any metadata, at most 131072 bytes. Keys that start with `_nats` are reserved.",
            (2, 10),
        ),
        Field("pause_until", TIME, "Deliver nothing before this time.", (2, 11)),
        Field(
            "priority_groups",
            TEXTS,
            "Pull: the groups of requests; each name has up to 16 of A-Z a-z 0-9 / _ = -.",
            (2, 11),
        ),
        Field(
            "priority_policy",
            Choice("none", "overflow", "pinned_client", "prioritized"),
            "Pull: which requests of a group receive messages: all, those whose conditions hold,"
            " those of one pinned client, or (2.12) those with the lowest priority number.",
            (2, 11),
        ),
        Field(
            "priority_timeout",
            DURATION,
            "How long the pinned client may be silent; 0: two minutes.",
            (2, 11),
        ),
    )

    def check(self, *, new: bool = True) -> None:
        """Raise LocalError, with the rule, if a server is certain to reject this configuration.

        Pass new=False for a consumer that may already exist: its name is checked less strictly.
        """
        from .consumer_rules import check_consumer

        check_consumer(self, new)
