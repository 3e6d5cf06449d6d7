"""Binding: check whether an existing consumer fits the options of a subscription (ADR-15).

These are pure functions, for push and pull subscriptions. `check_queue_use` checks the caller's
options before anything is sent; `bind` compares them with the consumer's info. Each mismatch has
its own error, with the values that differ.

Only fields that the caller has set are compared, so call `given_names` before the configuration is
copied. A zero that means "the server's default" counts as not set. Values that the server rewrites
when it stores a configuration are normalized: `30%` is `30`, no limit is -1, and so on.
"""

from __future__ import annotations

from jetstream.config import ConsumerConfig
from jetstream.errors import (
    ConfigMismatch,
    DuplicateSubscription,
    FlowControlWithQueue,
    HeartbeatWithQueue,
    PullOfPushConsumer,
    PushOfPullConsumer,
    QueueMismatch,
    QueueNotServed,
    QueueRequired,
    SubjectMismatch,
)
from natsproto.wire.text import cut_middle, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from jetstream.errors import BindRefused
    from jetstream.schema.consumer_info import ConsumerInfo
    from jetstream.schema.fields import Field

# BIND-10: zero leaves them to the server, to the stream's consumer_limits or to the account.
_DEFAULTED = (
    "ack_wait",
    "inactive_threshold",
    "max_ack_pending",
    "max_waiting",
    "num_replicas",
    "priority_timeout",
)
# Checked elsewhere, or (pause_until) part of the state: pausing and resuming changes it.
_ELSEWHERE = (
    "name",
    "deliver_group",
    "filter_subject",
    "filter_subjects",
    "pause_until",
)


def given_names(
    config: ConsumerConfig | Mapping[str, Any] | None, fields: Mapping[str, Any]
) -> list[str]:
    """Return the names of the fields that a caller has set, in a configuration or by keyword."""
    names = [field.name for field in ConsumerConfig.FIELDS if fields.get(field.name) is not None]
    if isinstance(config, ConsumerConfig):
        names += [field.name for field in config.given_fields()]
    elif isinstance(config, dict):
        names += [name for name in config if config[name] is not None]
    return names


def check_queue_use(
    queue: str, config: ConsumerConfig, stream: str = "", consumer: str = ""
) -> None:
    """Reject flow control and heartbeats with a queue group: each goes to only one member.

    Raise FlowControlWithQueue or HeartbeatWithQueue.
    """
    if not queue:
        return
    start = "queue %s: " % shorten(queue)
    if config.flow_control:  # BIND-8
        text = start + "no flow control with a queue group: its messages go to any member"
        raise FlowControlWithQueue(text, "BIND-8", stream, consumer, queue, True)
    if config.idle_heartbeat:  # BIND-9
        text = start + "no heartbeat (%r s) with a queue group: it goes to any member" % (
            config.idle_heartbeat
        )
        raise HeartbeatWithQueue(text, "BIND-9", stream, consumer, queue, config.idle_heartbeat)


def bind(
    info: ConsumerInfo,
    *,
    subject: str = "",
    queue: str = "",
    config: ConsumerConfig | None = None,
    given: Sequence[str] | None = None,
    pull: bool = False,
) -> str:
    """Return the consumer's deliver subject, "" for pull; raise BindRefused if it does not fit.

    `given` are the names of the fields of `config` that the caller has set; by default those that
    `config` itself has set.
    """
    wanted = ConsumerConfig() if config is None else config
    names = [field.name for field in wanted.given_fields()] if given is None else given
    found = info.config
    _check_kind(info, pull)
    if not pull:
        _check_queue(info, queue)
    _check_filter(info, subject, wanted, names)
    if not pull:
        check_queue_use(queue, found, info.stream_name, info.name)
    _check_config(info, wanted, names)
    return found.deliver_subject


def _refusal(
    kind: type[BindRefused],
    rule: str,
    info: ConsumerInfo,
    wanted: object,
    found: object,
    text: str,
) -> BindRefused:
    text = "consumer %s of stream %s %s" % (shorten(info.name), shorten(info.stream_name), text)
    return kind(text, rule, info.stream_name, info.name, wanted, found)


def _check_kind(info: ConsumerInfo, pull: bool) -> None:
    target = info.config.deliver_subject
    if pull and target:
        text = "is a push consumer, which delivers to %s: use subscribe" % shorten(target)
        raise _refusal(PullOfPushConsumer, "BIND-6", info, "", target, text)
    if not pull and not target:
        text = "is a pull consumer, without a deliver_subject: use pull_subscribe or fetch"
        raise _refusal(PushOfPullConsumer, "BIND-7", info, "", target, text)


def _check_queue(info: ConsumerInfo, queue: str) -> None:
    group = info.config.deliver_group
    if not queue and group:
        name = shorten(group)
        text = "is for the queue group %s: subscribe with queue=%s" % (name, name)
        raise _refusal(QueueRequired, "BIND-2", info, queue, group, text)
    if queue and not group:
        text = "is not for a queue group: subscribe without queue=%s" % shorten(queue)
        raise _refusal(QueueNotServed, "BIND-4", info, queue, group, text)
    if queue != group:
        text = "is for the queue group %s, not for %s" % (shorten(group), shorten(queue))
        raise _refusal(QueueMismatch, "BIND-3", info, queue, group, text)
    if info.push_bound and not group:
        target = info.config.deliver_subject
        text = "has a subscriber already, on %s; only a queue group can have several"
        raise _refusal(DuplicateSubscription, "BIND-1", info, "", target, text % shorten(target))


def _check_filter(
    info: ConsumerInfo, subject: str, wanted: ConsumerConfig, names: Sequence[str]
) -> None:
    found = _filters(info.config)
    asked = _filters(wanted)
    explicit = bool(asked) and ("filter_subject" in names or "filter_subjects" in names)
    if not explicit:
        # ADR-15 accepts a consumer without a filter, which delivers the subject among others.
        asked = [subject] if subject and found else found
    if asked != found:
        text = "filters %s, not %s" % (_listed(found), _listed(asked))
        raise _refusal(SubjectMismatch, "BIND-5", info, asked, found, text)


def _filters(config: ConsumerConfig) -> list[str]:
    if config.filter_subject:
        return [config.filter_subject]
    return sorted(config.filter_subjects)


def _listed(subjects: list[str]) -> str:
    return cut_middle(", ".join([repr(subject) for subject in subjects])) or "nothing"


def _check_config(info: ConsumerInfo, wanted: ConsumerConfig, names: Sequence[str]) -> None:
    for field in ConsumerConfig.FIELDS:
        name = field.name
        if name not in names or name in _ELSEWHERE:
            continue
        ours = getattr(wanted, name)
        theirs = getattr(info.config, name)
        if name in _DEFAULTED and not ours:
            continue
        if name == "ack_wait" and wanted.backoff and "backoff" in names:
            continue  # the server replaces it by the first backoff
        if name == "num_replicas" and not theirs:
            theirs = _replicas(info)
        if _comparable(field, ours) != _comparable(field, theirs):
            text = "has %s=%s, not %s" % (name, shorten(theirs), shorten(ours))
            error = _refusal(ConfigMismatch, "BIND-10", info, ours, theirs, text)
            assert isinstance(error, ConfigMismatch)
            error.field = name
            raise error


def _comparable(field: Field, value: Any) -> object:
    if field.name in _ALIKE:
        return _ALIKE[field.name](value)
    return field.type.encode(value)  # so that times are compared in nanoseconds and UTC


def _replicas(info: ConsumerInfo) -> int:
    """Return the current number of replicas: 0 means as many as the stream has."""
    return 1 if info.cluster is None else 1 + len(info.cluster.replicas)


def _limit(value: int) -> int:
    return -1 if value <= 0 else value


def _percent(text: str) -> str:
    digits = text[:-1] if text[-1:] == "%" else text
    return digits.lstrip("+").lstrip("0") or "0"


def _users_own(metadata: dict[str, str]) -> dict[str, str]:
    return {key: metadata[key] for key in metadata if not key.startswith("_nats")}


# BIND-10: fields that the server stores in other words, made comparable.
_ALIKE: dict[str, Callable[[Any], object]] = {
    "max_deliver": _limit,
    "max_ack_pending": _limit,
    "max_batch": _limit,
    "max_bytes": _limit,
    "sample_freq": _percent,
    "metadata": _users_own,
}
