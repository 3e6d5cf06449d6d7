"""The options of a subscription, checked as a whole before anything is sent (ADR-15)."""

from __future__ import annotations

from jetstream.api.hints import SUBSCRIBE
from jetstream.config import ConsumerConfig
from jetstream.ordered.config import HEARTBEAT, ordered_push_config
from natsproto.durations import LONGEST, in_range
from natsproto.errors import InvalidValue
from natsproto.hints import with_hint
from natsproto.session import check_count, check_flag
from natsproto.wire.subjects import check_known_name, check_new_name, check_queue, check_subscribe
from natsproto.wire.text import shorten

from .binding import check_queue_use, given_names

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class ConsumerOptions:
    """The options that all subscription workflows share.

    `given` are the names of the fields of `config` that the caller has set. The class attributes
    are the names and the rules for the error messages of the call.

    UNUSED      fields that have no effect on the consumer that the call creates, because they
                belong to a consumer of the OTHER kind
    """

    CALL = "subscribe"
    KIND, OTHER = "push", "pull"
    # D-JSSUB-4: the server would silently keep some of them.
    UNUSED: tuple[str, ...] = (
        "max_waiting",
        "max_batch",
        "max_expires",
        "max_bytes",
        "priority_groups",
        "priority_policy",
        "priority_timeout",
    )
    PLACE_RULE = "JSSUB-1"
    UNUSED_RULE = "D-JSSUB-4"
    FILTER_RULE = "JSSUB-7"
    NAME_RULE = "D-JSSUB-8"

    def __init__(
        self,
        subject: str,
        stream: str,
        config: ConsumerConfig | Mapping[str, Any] | None,
        fields: Mapping[str, Any],
    ) -> None:
        for name in fields:
            if name in SUBSCRIBE:
                raise InvalidValue(
                    with_hint("option does not exist: %s", name, SUBSCRIBE), "D-HINT-1"
                )
        self.given: list[str] = given_names(config, fields)
        self.config: ConsumerConfig = ConsumerConfig.of(config, fields)
        self.subject = subject
        self.stream = stream

    def _check(self) -> None:
        """Check subject and stream, and that no field is for the other kind of consumer."""
        if self.subject:
            check_subscribe(self.subject)
        if self.stream:
            check_known_name("stream", self.stream)
        elif not self.subject:
            raise InvalidValue("%s needs a subject or a stream" % self.CALL, self.PLACE_RULE)
        for name in self.UNUSED:
            value = getattr(self.config, name)
            if name in self.given and value and value != "none":
                text = "%s=%s is for %s consumers; %s makes a %s consumer"
                words = (name, shorten(value), self.OTHER, self.CALL, self.KIND)
                raise InvalidValue(text % words, self.UNUSED_RULE)

    def _set_filter(self) -> None:
        config = self.config
        if not self.subject or config.filter_subjects:
            return  # then the subject is used only to find the stream, if at all
        if config.filter_subject and config.filter_subject != self.subject:
            text = "subject %s conflicts with filter_subject %s"
            values = (shorten(self.subject), shorten(config.filter_subject))
            raise InvalidValue(text % values, self.FILTER_RULE)
        config.filter_subject = self.subject

    def _one_of(self, name: str, value: str, field: str, other: str) -> str:
        """Return the one of two values that is given; if both are, they must be equal."""
        if not isinstance(value, str):
            raise InvalidValue("%s %s is not a str" % (name, shorten(value)), self.NAME_RULE)
        if value and other and value != other:
            text = "%s %s conflicts with %s %s"
            words = (name, shorten(value), field, shorten(other))
            raise InvalidValue(text % words, self.NAME_RULE)
        return value or other


class SubscribeOptions(ConsumerOptions):
    """The options of a push subscription.

    `name` is the consumer to look for, "" for a new one that belongs to the call. `target` is the
    deliver subject of a new consumer, "" for an inbox.
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
        super().__init__(subject, stream, config, fields)
        given, made = self.given, self.config
        self.durable: str = self._one_of("durable", durable, "durable_name", made.durable_name)
        self.queue: str = self._one_of("queue", queue, "deliver_group", made.deliver_group)
        self.bind: bool = check_flag("bind", bind)
        if delete_on_end is not None:
            check_flag("delete_on_end", delete_on_end)
        self.delete_on_end = delete_on_end
        self.name: str = self._one_of("durable", self.durable, "name", made.name)
        self.target: str = made.deliver_subject
        self._check()
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
        self.given: list[str] = [name for name in given if not (bind and name == "durable_name")]
        self._set_filter()
        self._check_new()

    def _name_by_queue(self) -> None:
        # JSSUB-6: otherwise each member would get its own consumer, and so every message.
        if self.queue and not self.name:
            (check_known_name if self.bind else check_new_name)("queue as durable", self.queue)
            self.name = self.durable = self.queue

    def _check_new(self) -> None:
        """Reject a configuration that the server would reject, before the consumer is looked up."""
        if not self.bind:
            self.config_for(self.name, self.target or "inbox").check()

    def config_for(self, name: str, target: str) -> ConsumerConfig:
        """Return the configuration of a new consumer."""
        config = self.config.copy()
        config.name = name
        config.deliver_subject = target
        if self.queue:
            config.deliver_group = self.queue
        return config

    @property
    def deletes(self) -> bool:
        """Whether to delete the consumer at the end, if this call creates it."""
        if self.delete_on_end is None:
            # JSSUB-11: others may use a consumer with a durable name or a queue group.
            return not self.durable and not self.queue
        return self.delete_on_end


class Limits:
    """The limits of a subscription: queue size, missed heartbeats, and the naks at its end."""

    def __init__(
        self,
        alarm_after: float,
        max_messages: int | None,
        max_bytes: int | None,
        nak_on_exit: bool = False,
    ) -> None:
        self.nak_on_exit: bool = check_flag("nak_on_exit", nak_on_exit)
        if not in_range(alarm_after, 0, LONGEST):
            text = "alarm_after %s is not a number of heartbeats" % shorten(alarm_after)
            raise InvalidValue(text, "JSSUB-13")
        self.alarm_after: float = alarm_after
        if alarm_after < 1:
            raise InvalidValue(
                "alarm_after %s is less than one heartbeat" % shorten(alarm_after), "JSSUB-13"
            )
        self.max_messages: int | None = _limit("max_pending_messages", max_messages)
        self.max_bytes: int | None = _limit("max_pending_bytes", max_bytes)


def _limit(name: str, value: int | None) -> int | None:
    return None if value is None else check_count(name, value)


class OrderedSubscribeOptions(ConsumerOptions):
    """The options of an ordered push subscription: the settings that its consumers allow."""

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
        super().__init__(subject, stream, config, fields)
        given, made = self.given, self.config
        asked = {"durable": durable, "queue": queue, "bind": bind, "delete_on_end": delete_on_end}
        for name, applies, why in _NOT_ORDERED:
            value = asked[name] if name in asked else getattr(made, name)
            if (name in asked or name in given) and applies(value):
                text = "ordered with %s=%s: %s"
                raise InvalidValue(text % (name, shorten(value), why), "JSSUB-14")
        self._check()
        self._set_filter()
        if made.deliver_policy == "last_per_subject" and not made.filter_subjects:
            made.filter_subject = made.filter_subject or ">"
        self.heartbeat: float = made.idle_heartbeat or HEARTBEAT
        made.ack_policy = "none"
        full = ConsumerConfig.from_json(ordered_push_config(made.to_json(), self.heartbeat))
        full.deliver_subject = "inbox"
        full.check()


def _set(value: Any) -> bool:
    return bool(value)


_RECREATED = "its consumer is recreated after every gap, under another name"
_NOT_ORDERED: list[tuple[str, Callable[[Any], bool], str]] = [
    ("durable", _set, _RECREATED),
    ("durable_name", _set, _RECREATED),
    ("name", _set, _RECREATED),
    ("bind", _set, _RECREATED),
    ("delete_on_end", lambda value: value is False, _RECREATED),
    ("deliver_subject", _set, "each of its consumers delivers to its own inbox"),
    ("queue", _set, "members of a group would only see gaps"),
    ("deliver_group", _set, "members of a group would only see gaps"),
    ("ack_policy", lambda value: value != "none", "an ordered consumer does not acknowledge"),
    ("max_deliver", lambda value: value != 1, "redelivered messages would be out of order"),
    ("backoff", _set, "nothing is redelivered"),
    ("ack_wait", _set, "nothing is acknowledged"),
    ("num_replicas", lambda value: value > 1, "a lost consumer is recreated"),
    ("mem_storage", lambda value: not value, "a lost consumer is recreated"),
    ("flow_control", lambda value: not value, "it needs flow control"),
]
