"""The configuration of the consumers of an ordered consumer (ADR-17)."""

from __future__ import annotations

from jetstream.config import ConsumerConfig
from jetstream.pull.options import check_time
from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from jetstream.config import ConsumerConfigDict
    from jetstream.schema.consumer_config import DeliverPolicy, ReplayPolicy
    from jetstream.schema.timestamp import TimestampLike
    from natsproto.durations import Seconds

HEARTBEAT = 5.0
_SECOND = 10**9


def ordered_config(
    filter_subjects: str | Sequence[str] | None,
    deliver_policy: DeliverPolicy,
    opt_start_seq: int | None,
    opt_start_time: TimestampLike | None,
    replay_policy: ReplayPolicy,
    headers_only: bool,
    inactive_threshold: Seconds,
    metadata: dict[str, str] | None,
) -> ConsumerConfig:
    """Return the checked configuration that all server-side consumers share (ORDERED-1)."""
    check_time("inactive_threshold", inactive_threshold, 0.001)
    fields: ConsumerConfigDict = {
        "ack_policy": "none",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": inactive_threshold,
        "deliver_policy": deliver_policy,
        "replay_policy": replay_policy,
    }
    filters = _list_of_filters(filter_subjects, deliver_policy)
    if len(filters) == 1:
        fields["filter_subject"] = filters[0]
    elif filters:
        fields["filter_subjects"] = filters
    if headers_only:
        fields["headers_only"] = headers_only
    if metadata:
        fields["metadata"] = metadata
    if opt_start_seq is not None:
        fields["opt_start_seq"] = opt_start_seq
    if opt_start_time is not None:
        fields["opt_start_time"] = opt_start_time
    config = ConsumerConfig(**fields)
    config.check()
    return config


def _list_of_filters(
    subjects: str | Sequence[str] | None, deliver_policy: DeliverPolicy
) -> list[str]:
    """Return the filters as a list, which is empty for all subjects."""
    if subjects is None:
        # ORDERED-20: the server requires a filter for this policy.
        return [">"] if deliver_policy == "last_per_subject" else []
    if not subjects:
        text = "filter_subjects %s is empty; None means all subjects"
        raise InvalidValue(text % shorten(subjects), "ORDERED-18")
    filters = [subjects] if isinstance(subjects, str) else subjects
    if not isinstance(filters, (list, tuple)):
        text = "filter_subjects %s is neither a subject nor a list of them"
        raise InvalidValue(text % shorten(filters), "ORDERED-18")
    return list(filters)


def ordered_push_config(config: dict[str, Any], heartbeat: float = HEARTBEAT) -> dict[str, Any]:
    """Return the server's JSON with the settings that ADR-17 prescribes for push consumers."""
    forced = dict(config)
    forced["flow_control"] = True
    forced["idle_heartbeat"] = round(heartbeat * _SECOND)
    forced["ack_policy"] = "none"
    forced["ack_wait"] = 22 * 3600 * _SECOND  # ORDPUSH-1
    forced["max_deliver"] = 1
    forced["mem_storage"] = True
    forced["num_replicas"] = 1
    return forced
