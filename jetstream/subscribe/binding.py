"""Whether a consumer that there is fits what a subscription asks for (ADR-15).

Pure functions: `check_queue_use` looks at what the caller asked, before anything is sent, `bind` at
that and at what the server tells of the consumer. Each way not to fit is an error of its own,
with the values that differ. Push and pull subscriptions share them.

Only what the caller has set counts, so `given_names` has to be asked before the configuration is
copied. A zero that stands for "the server's default" is as good as nothing set, and what the server
rewrites when it stores a configuration is understood: `30%` is `30`, no limit is -1, and so on.
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from jetstream.errors import BindRefused
    from jetstream.schema.fields import Field
    from jetstream.schema.info import ConsumerInfo

# BIND-10: zero leaves them to the server, to the stream's consumer_limits or to the account.
_DEFAULTED = (
    "ack_wait",
    "inactive_threshold",
    "max_ack_pending",
    "max_waiting",
    "num_replicas",
    "priority_timeout",
)
# Checked by themselves, or (pause_until) rather state: pausing and resuming changes it.
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
    """The names of the fields that a caller has set, of a configuration and keywords on top."""
    names = [field.name for field in ConsumerConfig.FIELDS if fields.get(field.name) is not None]
    if isinstance(config, ConsumerConfig):
        names += [field.name for field in config.given_fields()]
    elif isinstance(config, dict):
        names += [name for name in config if config[name] is not None]
    return names


def check_queue_use(
    queue: str, config: ConsumerConfig, stream: str = "", consumer: str = ""
) -> None:
    """FlowControlWithQueue, HeartbeatWithQueue: members of a group would each see a part of it."""
    if not queue:
        return
    told = "queue %s: " % shorten(queue)
    if config.flow_control:  # BIND-8
        text = told + "no flow control with a queue group: its messages go to any member"
        raise FlowControlWithQueue(text, "BIND-8", stream, consumer, queue, True)
    if config.idle_heartbeat:  # BIND-9
        text = told + "no heartbeat (%r s) with a queue group: it goes to any member" % (
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
    """The subject to subscribe to for the consumer's messages, "" for pull; BindRefused if not fit.

    `given` are the names of the fields of `config` that the caller has set; without them those that
    the configuration says.
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
    told = "consumer %s of stream %s %s" % (shorten(info.name), shorten(info.stream_name), text)
    return kind(told, rule, info.stream_name, info.name, wanted, found)


def _check_kind(info: ConsumerInfo, pull: bool) -> None:
    target = info.config.deliver_subject
    if pull and target:
        text = "delivers to %s: it cannot be pulled from" % shorten(target)
        raise _refusal(PullOfPushConsumer, "BIND-6", info, "", target, text)
    if not pull and not target:
        text = "has no deliver_subject: its messages are to be pulled"
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
        # A consumer without filter has the subject as well, and maybe others: ADR-15 takes it.
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
            continue  # the server has replaced it by the first wait
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
    return field.type.encode(value)  # so that what counts is nanoseconds and UTC


def _replicas(info: ConsumerInfo) -> int:
    """0 is as many as the stream has: those that there are."""
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
