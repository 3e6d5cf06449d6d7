"""The configuration of a consumer; consumer_rules.py has what is refused before it is sent."""

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias, TypedDict

    from typing_extensions import Unpack

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
        ack_wait: float
        max_deliver: int
        backoff: Sequence[float]
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
        pause_until: TimestampLike | None
        priority_groups: list[str] | tuple[str, ...]
        priority_policy: PriorityPolicy
        priority_timeout: float


class ConsumerConfig(Fields):  # JSAPI-9
    """The configuration of a consumer; all of it may be left to the server's defaults.

    With a deliver_subject it is a push consumer, without one a pull consumer.
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

    FIELDS = (
        Field(
            "durable_name",
            TEXT,
            "The name of a consumer that stays until it is deleted; else it goes when it is not"
            " used for inactive_threshold.",
        ),
        Field(
            "name",
            TEXT,
            "The name; the same as durable_name if both are given. One is made up if neither is.",
            (2, 9),
        ),
        Field("description", TEXT, "What it is for; at most 4096 bytes.", (2, 3)),
        Field(
            "deliver_policy",
            Choice("all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"),
            "Where it starts: with the first message, the last, the next to come, the one of"
            " opt_start_seq or opt_start_time, or the last of each subject of its filter.",
        ),
        Field("opt_start_seq", SEQUENCE, "Where `by_start_sequence` starts."),
        Field("opt_start_time", TIME, "Where `by_start_time` starts."),
        Field(
            "ack_policy",
            Choice("explicit", "all", "none", "flow_control"),
            "What is acknowledged: each message, with a message all before it, or nothing;"
            " `flow_control` (2.14) is for sourcing: answers to flow control acknowledge.",
            always=True,  # CONS-24
        ),
        Field(
            "ack_wait",
            DURATION,
            "A message that is not acknowledged in this time is delivered again; 0: 30 s.",
        ),
        Field("max_deliver", COUNT, "How often a message is delivered at most; -1 or 0: any."),
        Field(
            "backoff",
            DURATIONS,
            "Instead of ack_wait, after the first delivery, the second, ...; the last one stays."
            " Not for messages that were refused with a NAK.",
            (2, 7),
        ),
        Field("filter_subject", TEXT, "Only messages that match this, with wildcards."),
        Field("filter_subjects", TEXTS, "Only messages that match one of these.", (2, 10)),
        Field(
            "replay_policy",
            Choice("instant", "original"),
            "At once, or in the rhythm in which the messages were stored.",
        ),
        Field("rate_limit_bps", SEQUENCE, "Push: how many bits a second; 0: no limit."),
        Field(
            "sample_freq",
            TEXT,
            "How many percent of the acknowledgements are told as a metric, such as `30` or `30%`.",
        ),
        Field("max_waiting", COUNT, "Pull: how many requests may wait; 0: 512."),
        Field(
            "max_ack_pending",
            COUNT,
            "How many messages may be delivered and not acknowledged; 0: 1000, -1: any.",
        ),
        Field("flow_control", FLAG, "Push: the server waits for answers to go on sending."),
        Field("headers_only", FLAG, "Without payloads; Nats-Msg-Size tells their size.", (2, 6)),
        Field("max_batch", COUNT, "Pull: how many messages a request may ask for; 0: any.", (2, 7)),
        Field("max_expires", DURATION, "Pull: how long a request may wait; 0: any time.", (2, 7)),
        Field("max_bytes", COUNT, "Pull: how many bytes a request may ask for; 0: any.", (2, 8)),
        Field("deliver_subject", TEXT, "Push: where messages are sent."),
        Field("deliver_group", TEXT, "Push: the queue group of those who receive them.", (2, 4)),
        Field(
            "idle_heartbeat",
            DURATION,
            "Push: a heartbeat is sent after so long without a message; 0.1 at least.",
        ),
        Field(
            "inactive_threshold",
            DURATION,
            "It goes when it is not used for so long; 0: 5 s, and never if it is durable.",
            (2, 7),
        ),
        Field("num_replicas", COUNT, "On how many servers; 0: on as many as the stream.", (2, 8)),
        Field("mem_storage", FLAG, "Its state is in memory, not where the stream is.", (2, 8)),
        Field("direct", FLAG, "For mirrors and sources; not for clients."),
        Field("sourcing", FLAG, "For mirrors and sources; not for clients.", (2, 14)),
        Field(
            "metadata",
            MAP,
            "Anything; at most 131072 bytes. Keys that start with `_nats` are the server's.",
            (2, 10),
        ),
        Field("pause_until", TIME, "Nothing is delivered until then.", (2, 11)),
        Field(
            "priority_groups",
            TEXTS,
            "Pull: the groups that requests name; up to 16 of A-Z a-z 0-9 / _ = - each.",
            (2, 11),
        ),
        Field(
            "priority_policy",
            Choice("none", "overflow", "pinned_client", "prioritized"),
            "Pull: who of a group gets messages: all alike, those whose conditions hold, one"
            " client until it is gone, or (2.12) those with the lowest number.",
            (2, 11),
        ),
        Field(
            "priority_timeout",
            DURATION,
            "With `pinned_client`: how long it may be silent; 0: two minutes.",
            (2, 11),
        ),
    )

    def check(self, *, new: bool = True) -> None:
        """LocalError, with the rule, if the server is sure to refuse this configuration.

        Not `new` is one that may exist, under a name that only a laxer client would give.
        """
        from .consumer_rules import check_consumer

        check_consumer(self, new)
