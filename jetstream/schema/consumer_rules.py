"""Rules for the configuration of a consumer that the server enforces, each with its id.

These are the rules that have been stable and depend on the configuration alone. Rules that depend
on the stream, the account or the server's limits are left to the server, and so are settings that
it silently corrects.
"""

from __future__ import annotations

from natsproto.wire.subjects import check_known_name, check_new_name, check_publish, check_subscribe

from .fields import refuse
from .groups import is_group
from .stream_rules import MAX_REPLICAS, check_limits

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .consumer_config import ConsumerConfig
    from .fields import Refusal


def check_consumer(config: ConsumerConfig, new: bool) -> None:
    """Raise LocalError for the first rule that is broken; `new`: see ConsumerConfig.check."""
    for what, name in (("durable", config.durable_name), ("consumer", config.name)):
        if name:
            (check_new_name if new else check_known_name)(what, name)  # CONS-1
    check_limits(config, config.description, config.metadata, "CONS-2", "CONS-3")
    refuse(config, _REFUSED)
    for subject in config.filter_subjects:
        check_subscribe(subject, "filter subject")  # CONS-6
    if config.filter_subject:
        check_subscribe(config.filter_subject, "filter subject")
    if config.deliver_subject:
        check_publish(config.deliver_subject, "deliver subject")  # CONS-10
    refuse(config, _REFUSED_PUSH if config.deliver_subject else _REFUSED_PULL)


def _is_percent(text: str) -> bool:
    # As Go parses numbers. More than 100 counts as 100.
    digits = text[:-1] if text[-1:] == "%" else text
    digits = digits[1:] if digits[:1] == "+" else digits
    return digits != "" and all(char in "0123456789" for char in digits)


# Rule, the fields that it applies to, the condition that breaks it, and the reason; the first row
# that applies is reported.
_REFUSED: list[Refusal[ConsumerConfig]] = [
    (
        "CONS-4",
        ("name", "durable_name"),
        lambda c: c.name and c.durable_name and c.name != c.durable_name,
        "they must be equal if both are given",
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
        "backoff has more entries than there are deliveries",
    ),
    (
        "CONS-18",
        ("sample_freq",),
        lambda c: c.sample_freq and not _is_percent(c.sample_freq),
        "it must be a percentage, such as '30' or '30%'",
    ),
    (
        "CONS-19",
        ("num_replicas",),
        lambda c: not 0 <= c.num_replicas <= MAX_REPLICAS,
        "a consumer has at most as many replicas as its stream",
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
        lambda c: not all(is_group(name) for name in c.priority_groups),
        "a group has 1 to 16 of A-Z a-z 0-9 / _ = -",
    ),
    (
        "CONS-23",
        ("ack_policy", "ack_wait", "backoff", "max_deliver", "max_ack_pending"),
        lambda c: (
            c.ack_policy == "flow_control"
            and (c.ack_wait or c.backoff or c.max_deliver > 0 or c.max_ack_pending < 0)
        ),
        "flow_control never redelivers, and needs a max_ack_pending",
    ),
]

_REFUSED_PUSH: list[Refusal[ConsumerConfig]] = [
    (
        "CONS-11",
        ("deliver_subject", "max_waiting"),
        lambda c: c.max_waiting > 0,
        "a push consumer has no waiting requests",
    ),
    (
        "CONS-12",
        ("deliver_subject", "ack_policy", "max_ack_pending"),
        lambda c: c.ack_policy == "none" and c.max_ack_pending > 0,
        "without acknowledgments nothing is pending",
    ),
    # With the ack policy flow_control the server sets flow control and heartbeat itself.
    (
        "CONS-13",
        ("idle_heartbeat",),
        lambda c: 0 < c.idle_heartbeat < 0.1 and c.ack_policy != "flow_control",
        "the minimum is 0.1 s",
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
        "the minimum is 0.001 s",
    ),
    (
        "CONS-23",
        ("ack_policy",),
        lambda c: c.ack_policy == "flow_control",
        "flow_control needs a deliver_subject",
    ),
]
