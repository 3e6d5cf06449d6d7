"""The configuration of a consumer.

`check` refuses what the server would refuse, with the reason, before anything is sent. It knows the
rules that have been stable and can be told from the configuration alone. What depends on the
stream, the account or the server's limits is left to the server, and so is what it silently mends.
"""

from __future__ import annotations

from natsproto.subjects import check_known_name, check_new_name, check_publish, check_subscribe

from .fields import Field, Fields, refuse
from .kinds import (
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
from .stream_config import MAX_REPLICAS, check_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias, TypedDict

    from typing_extensions import Unpack

    from .fields import Refusal
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


MAX_GROUP = 16
_GROUP = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_=-"


class ConsumerConfig(Fields):
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
            always=True,
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
        for what, name in (("durable", self.durable_name), ("consumer", self.name)):
            if name:
                (check_new_name if new else check_known_name)(what, name)
        check_limits(self, self.description, self.metadata, "CONS-2", "CONS-3")
        refuse(self, _REFUSED)
        for subject in self.filter_subjects:
            check_subscribe(subject, "filter subject")
        if self.filter_subject:
            check_subscribe(self.filter_subject, "filter subject")
        if self.deliver_subject:
            check_publish(self.deliver_subject, "deliver subject")
        refuse(self, _REFUSED_PUSH if self.deliver_subject else _REFUSED_PULL)


def _is_percent(text: str) -> bool:
    # As Go reads numbers. More than 100 is taken for 100.
    digits = text[:-1] if text[-1:] == "%" else text
    digits = digits[1:] if digits[:1] == "+" else digits
    return digits != "" and all(char in "0123456789" for char in digits)


def _is_group(name: str) -> bool:
    return 0 < len(name) <= MAX_GROUP and all(char in _GROUP for char in name)


# Rule, the fields that it is about, what must not be, and why; the first that applies is told.
_REFUSED: list[Refusal[ConsumerConfig]] = [
    (
        "CONS-4",
        ("name", "durable_name"),
        lambda c: c.name and c.durable_name and c.name != c.durable_name,
        "they are the same if both are given",
    ),
    (
        "CONS-5",
        ("filter_subject", "filter_subjects"),
        lambda c: c.filter_subject and c.filter_subjects,
        "only one of the two can be given",
    ),
    (
        "CONS-7",
        ("deliver_policy", "opt_start_seq"),
        lambda c: (c.deliver_policy == "by_start_sequence") != (c.opt_start_seq > 0),
        "by_start_sequence and opt_start_seq need each other",
    ),
    (
        "CONS-8",
        ("deliver_policy", "opt_start_time"),
        lambda c: (c.deliver_policy == "by_start_time") != (c.opt_start_time is not None),
        "by_start_time and opt_start_time need each other",
    ),
    (
        "CONS-9",
        ("deliver_policy", "filter_subject", "filter_subjects"),
        lambda c: (
            c.deliver_policy == "last_per_subject" and not (c.filter_subject or c.filter_subjects)
        ),
        "last_per_subject needs a filter; '>' is one",
    ),
    (
        "CONS-17",
        ("backoff", "max_deliver"),
        lambda c: 0 < c.max_deliver < len(c.backoff),
        "there are more waits than deliveries",
    ),
    (
        "CONS-18",
        ("sample_freq",),
        lambda c: c.sample_freq and not _is_percent(c.sample_freq),
        "it is a number of percent, such as '30' or '30%'",
    ),
    (
        "CONS-19",
        ("num_replicas",),
        lambda c: not 0 <= c.num_replicas <= MAX_REPLICAS,
        "a consumer has as many replicas as its stream, or fewer",
    ),
    (
        "CONS-20",
        ("priority_policy", "priority_groups"),
        lambda c: (c.priority_policy == "none") == bool(c.priority_groups),
        "a policy and groups need each other",
    ),
    (
        "CONS-20",
        ("priority_policy", "priority_timeout"),
        lambda c: c.priority_policy == "none" and c.priority_timeout,
        "a timeout needs a policy",
    ),
    (
        "CONS-21",
        ("priority_groups",),
        lambda c: not all(_is_group(name) for name in c.priority_groups),
        "a group has 1 to 16 of A-Z a-z 0-9 / _ = -",
    ),
    (
        "CONS-23",
        ("ack_policy", "ack_wait", "backoff", "max_deliver", "max_ack_pending"),
        lambda c: (
            c.ack_policy == "flow_control"
            and (c.ack_wait or c.backoff or c.max_deliver > 0 or c.max_ack_pending < 0)
        ),
        "flow_control never delivers again, and needs a max_ack_pending",
    ),
]

_REFUSED_PUSH: list[Refusal[ConsumerConfig]] = [
    (
        "CONS-11",
        ("deliver_subject", "max_waiting"),
        lambda c: c.max_waiting > 0,
        "nobody waits at a push consumer",
    ),
    (
        "CONS-12",
        ("deliver_subject", "ack_policy", "max_ack_pending"),
        lambda c: c.ack_policy == "none" and c.max_ack_pending > 0,
        "without acknowledgements nothing is pending",
    ),
    # With the ack policy flow_control the server sets flow control and heartbeat by itself.
    (
        "CONS-13",
        ("idle_heartbeat",),
        lambda c: 0 < c.idle_heartbeat < 0.1 and c.ack_policy != "flow_control",
        "0.1 s is the least",
    ),
    (
        "CONS-14",
        ("flow_control", "idle_heartbeat"),
        lambda c: c.flow_control and not c.idle_heartbeat and c.ack_policy != "flow_control",
        "flow control needs heartbeats",
    ),
    (
        "CONS-22",
        ("deliver_subject", "priority_policy"),
        lambda c: c.priority_policy != "none",
        "only pull consumers have priority groups",
    ),
]

_REFUSED_PULL: list[Refusal[ConsumerConfig]] = [
    (
        "CONS-13",
        ("idle_heartbeat",),
        lambda c: c.idle_heartbeat,
        "it needs a deliver_subject; a pull request has its own heartbeat",
    ),
    (
        "CONS-14",
        ("flow_control",),
        lambda c: c.flow_control,
        "it needs a deliver_subject; pull requests control the flow",
    ),
    (
        "CONS-15",
        ("rate_limit_bps",),
        lambda c: c.rate_limit_bps,
        "it needs a deliver_subject",
    ),
    (
        "CONS-16",
        ("max_expires",),
        lambda c: 0 < c.max_expires < 0.001,
        "0.001 s is the least",
    ),
    (
        "CONS-23",
        ("ack_policy",),
        lambda c: c.ack_policy == "flow_control",
        "flow_control needs a deliver_subject",
    ),
]
