"""What a push subscription asks for: checked as a whole before anything is sent (ADR-15)."""

from __future__ import annotations

from jetstream.config import ConsumerConfig
from jetstream.ordered.push import HEARTBEAT, ordered_config
from natsproto.errors import InvalidValue
from natsproto.session import check_count, check_flag, check_seconds
from natsproto.wire.subjects import check_known_name, check_new_name, check_queue, check_subscribe
from natsproto.wire.text import shorten

from .binding import check_queue_use, given_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# JSSUB-4: a push consumer has no use for them; the server would keep some without a word.
_PULL_ONLY = (
    "max_waiting",
    "max_batch",
    "max_expires",
    "max_bytes",
    "priority_groups",
    "priority_policy",
    "priority_timeout",
)


class SubscribeOptions:
    """The subscription that a caller asks for.

    `name` is the consumer to look for, "" for a new one of its own. `given` are the fields of
    `config` that the caller has set. `target` is where a new consumer delivers, "" for an inbox.
    """

    def __init__(
        self,
        subject: str,
        stream: str,
        durable: str,
        queue: str,
        bind: bool,
        delete_on_end: bool | None,
        config: ConsumerConfig | Mapping[str, Any] | None,
        fields: Mapping[str, Any],
    ) -> None:
        given = given_names(config, fields)
        made = ConsumerConfig.of(config, fields)
        self.subject = subject
        self.stream = stream
        self.durable = _one_of("durable", durable, "durable_name", made.durable_name)
        self.queue = _one_of("queue", queue, "deliver_group", made.deliver_group)
        self.bind = check_flag("bind", bind)
        if delete_on_end is not None:
            check_flag("delete_on_end", delete_on_end)
        self.delete_on_end = delete_on_end
        self.config = made
        self.name = _one_of("durable", self.durable, "name", made.name)
        self.target = made.deliver_subject
        _check_where(subject, stream)
        _check_pull_only(made, given)
        if self.queue:
            check_queue(self.queue)
            check_queue_use(self.queue, made, stream, self.name)
        if bind and not self.name and not self.queue:
            raise InvalidValue("bind needs the name of a consumer: durable or name", "JSSUB-5")
        self._name_by_queue()
        if self.durable and not bind:
            made.durable_name = self.durable
            if durable:
                given.append("durable_name")
        self.given = [name for name in given if not (bind and name == "durable_name")]
        _set_filter(made, subject)
        self._check_new()

    def _name_by_queue(self) -> None:
        # JSSUB-6: else each member would get a consumer of its own, and so every message.
        if self.queue and not self.name:
            (check_known_name if self.bind else check_new_name)("queue as durable", self.queue)
            self.name = self.durable = self.queue

    def _check_new(self) -> None:
        """What the server would refuse is refused now, not after the look for the consumer."""
        if not self.bind:
            self.config_for(self.name, self.target or "inbox").check()

    def config_for(self, name: str, target: str) -> ConsumerConfig:
        """The configuration of a new consumer."""
        config = self.config.copy()
        config.name = name
        config.deliver_subject = target
        if self.queue:
            config.deliver_group = self.queue
        return config

    @property
    def deletes(self) -> bool:
        """Whether the consumer is to be deleted at the end, should this call create it."""
        if self.delete_on_end is None:
            # JSSUB-11: others may be at work on what has a durable name or a queue group.
            return not self.durable and not self.queue
        return self.delete_on_end


class Limits:
    """What the queue of a subscription may hold, how long silence may last, and how it ends."""

    def __init__(
        self,
        alarm_after: float,
        max_messages: int | None,
        max_bytes: int | None,
        nak_on_exit: bool = False,
    ) -> None:
        self.nak_on_exit = check_flag("nak_on_exit", nak_on_exit)
        check_seconds("alarm_after", alarm_after)
        if alarm_after < 1:
            raise InvalidValue(
                "alarm_after %s is less than one heartbeat" % shorten(alarm_after), "JSSUB-13"
            )
        self.alarm_after = alarm_after
        self.max_messages = _limit("max_pending_messages", max_messages)
        self.max_bytes = _limit("max_pending_bytes", max_bytes)


def _limit(name: str, value: int | None) -> int | None:
    return None if value is None else check_count(name, value)


def _one_of(name: str, value: str, field: str, other: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue("%s %s is not a str" % (name, shorten(value)))
    if value and other and value != other:
        text = "%s %s and %s %s: they are the same if both are given"
        raise InvalidValue(text % (name, shorten(value), field, shorten(other)), "JSSUB-8")
    return value or other


class OrderedSubscribeOptions:
    """The ordered subscription that a caller asks for: what can be chosen of its consumers."""

    def __init__(
        self,
        subject: str,
        stream: str,
        durable: str,
        queue: str,
        bind: bool,
        delete_on_end: bool | None,
        config: ConsumerConfig | Mapping[str, Any] | None,
        fields: Mapping[str, Any],
    ) -> None:
        given = given_names(config, fields)
        made = ConsumerConfig.of(config, fields)
        asked = {"durable": durable, "queue": queue, "bind": bind, "delete_on_end": delete_on_end}
        for name, applies, why in _NOT_ORDERED:
            value = asked[name] if name in asked else getattr(made, name)
            if (name in asked or name in given) and applies(value):
                text = "ordered with %s=%s: %s"
                raise InvalidValue(text % (name, shorten(value), why), "JSSUB-14")
        _check_where(subject, stream)
        _check_pull_only(made, given)
        _set_filter(made, subject)
        if made.deliver_policy == "last_per_subject" and not made.filter_subjects:
            made.filter_subject = made.filter_subject or ">"
        self.subject = subject
        self.stream = stream
        self.heartbeat = made.idle_heartbeat or HEARTBEAT
        made.ack_policy = "none"
        self.config = made
        full = ConsumerConfig.from_json(ordered_config(made.to_json(), self.heartbeat))
        full.deliver_subject = "inbox"
        full.check()


def _check_where(subject: str, stream: str) -> None:
    if subject:
        check_subscribe(subject)
    if stream:
        check_known_name("stream", stream)
    elif not subject:
        raise InvalidValue("subscribe needs a subject or a stream", "JSSUB-1")


def _check_pull_only(config: ConsumerConfig, given: list[str]) -> None:
    for name in _PULL_ONLY:
        value = getattr(config, name)
        if name in given and value and value != "none":
            text = "%s=%s is for pull consumers; subscribe makes a push consumer"
            raise InvalidValue(text % (name, shorten(value)), "JSSUB-4")


def _set_filter(config: ConsumerConfig, subject: str) -> None:
    if not subject or config.filter_subjects:
        return  # then the subject is there to find the stream by, if at all
    if config.filter_subject and config.filter_subject != subject:
        text = "subject %s and filter_subject %s: they are the same if both are given"
        raise InvalidValue(text % (shorten(subject), shorten(config.filter_subject)), "JSSUB-7")
    config.filter_subject = subject


def _set(value: Any) -> bool:
    return bool(value)


_ANEW = "its consumer is made anew after every gap, under another name"
_NOT_ORDERED: list[tuple[str, Callable[[Any], bool], str]] = [
    ("durable", _set, _ANEW),
    ("durable_name", _set, _ANEW),
    ("name", _set, _ANEW),
    ("bind", _set, _ANEW),
    ("delete_on_end", lambda value: value is False, _ANEW),
    ("deliver_subject", _set, "each of its consumers delivers to an inbox of its own"),
    ("queue", _set, "members of a group would see gaps only"),
    ("deliver_group", _set, "members of a group would see gaps only"),
    ("ack_policy", lambda value: value != "none", "order makes acknowledgements needless"),
    ("max_deliver", lambda value: value != 1, "what comes again would be out of order"),
    ("backoff", _set, "nothing is delivered again"),
    ("ack_wait", _set, "nothing is acknowledged"),
    ("num_replicas", lambda value: value > 1, "one that is lost is made anew"),
    ("mem_storage", lambda value: not value, "one that is lost is made anew"),
    ("flow_control", lambda value: not value, "it needs flow control"),
]
