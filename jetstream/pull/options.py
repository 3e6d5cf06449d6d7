"""The options of fetch, next and consume: defaults and limits of ADR-37, checked before a pull."""

from __future__ import annotations

from jetstream.schema.groups import is_group
from jetstream.schema.types import MOST_COUNT
from natsproto import session
from natsproto.durations import check_seconds, to_seconds
from natsproto.errors import InvalidValue
from natsproto.session import check_flag
from natsproto.wire.text import shorten

from .ledger import MANY, PullTemplate

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from typing_extensions import NotRequired

    from jetstream.schema.consumer_config import ConsumerConfig
    from natsproto.durations import Seconds

    class ConsumeLimits(TypedDict):
        """The limits of a Consume."""

        max_messages: NotRequired[int]
        max_bytes: NotRequired[int]
        threshold: int
        stop_after: int

    class PriorityOptions(TypedDict, total=False):
        """For consumers with priority groups (ADR-42)."""

        group: str
        min_pending: int
        min_ack_pending: int
        priority: int


NANO = 10**9
LONGEST_EXPIRES = 30.0
SHORTEST_HEARTBEAT = 0.5
LONGEST_HEARTBEAT = 30.0
DEFAULT_MESSAGES = 500
_ACK_WAIT = 30.0  # the server's default
_PRIORITY = ("group", "min_pending", "min_ack_pending", "priority")
_OPTIONS = {
    "fetch": ("max_messages", "max_bytes", "expires", "heartbeat", "no_wait"),
    "next": ("expires", "heartbeat"),
    "consume": (
        "max_messages",
        "max_bytes",
        "expires",
        "heartbeat",
        "threshold_messages",
        "threshold_bytes",
        "stop_after",
        "nak_on_exit",
    ),
}


def check_options(call: str, rest: PriorityOptions) -> None:
    """Raise InvalidValue if `rest`, the other keywords, has any but those of priority groups."""
    for name in rest:
        if name not in _PRIORITY:
            from jetstream.api.hints import PULL

            known = ", ".join(_OPTIONS[call] + _PRIORITY)
            text = "%s has no option %s; it has %s" % (call, shorten(name), known)
            if PULL.get(name) in _OPTIONS[call]:  # D-HINT-1
                text = "%s has no option %s; use %s" % (call, shorten(name), PULL[name])
            raise InvalidValue(text, "D-PULL-15")


def default_expires(config: ConsumerConfig | None) -> float:
    """Return an `expires` before which no message of the batch is redelivered (D-FETCH-17).

    None is the configuration of a consumer with the server's defaults.
    """
    if config is None:
        return _ACK_WAIT / 2
    if config.ack_policy == "none":
        return LONGEST_EXPIRES
    ack_wait = config.backoff[0] if config.backoff else config.ack_wait
    return min(max((ack_wait or _ACK_WAIT) / 2, 0.001), LONGEST_EXPIRES)


def next_subject(prefix: str, stream: str, name: str) -> str:
    """Return the subject of pull requests to a consumer; `prefix` is that of the API."""
    return "%s.CONSUMER.MSG.NEXT.%s.%s" % (prefix, stream, name)


def fetch_template(
    subject: str,
    expires: Seconds,
    heartbeat: Seconds | None,
    no_wait: bool,
    priority: PriorityOptions,
    pinned: bool,
) -> PullTemplate:
    """Return the template of a fetch, with heartbeats if requested or above 30 s."""
    fields = _priority_fields(priority)
    if check_flag("no_wait", no_wait):
        # FETCH-11: the server takes no_wait with expires as another thing: wait for the first.
        if heartbeat:
            text = "heartbeat %s and no_wait: there is no time for heartbeats" % shorten(heartbeat)
            raise InvalidValue(text, "PULL-5")
        fields["no_wait"] = True
        return PullTemplate(subject.encode(), fields, 0.0, 0.0, pinned)
    ends = check_time("expires", expires, 0.001)
    beat: float = _fetch_heartbeat(ends) if heartbeat is None else to_seconds(heartbeat)
    if heartbeat is not None and beat:
        check_heartbeat(heartbeat, ends, 0.001)
    return _template(subject, fields, ends, beat, pinned)


def first_template(
    subject: str, expires: float, pinned: bool, heartbeat: float = 0.0
) -> PullTemplate:
    """Return the template of a pull for stored messages, or else for the first new one (PSUB-5)."""
    fields: dict[str, Any] = {"no_wait": True}
    beat = heartbeat or _fetch_heartbeat(expires)
    return _template(subject, fields, expires, beat, pinned)


def _fetch_heartbeat(expires: float) -> float:
    return min(expires / 2, LONGEST_HEARTBEAT) if expires > 30 else 0.0  # FETCH-6


def consume_template(
    subject: str,
    expires: Seconds,
    heartbeat: Seconds | None,
    priority: PriorityOptions,
    pinned: bool,
) -> PullTemplate:
    """Return the template of consume(), with heartbeats: only they reveal a silent server."""
    ends = check_time("expires", expires, 1.0)
    if heartbeat is None:
        beat = min(ends / 2, LONGEST_HEARTBEAT)  # CONSUME-20
    else:
        beat = check_heartbeat(heartbeat, ends, SHORTEST_HEARTBEAT)
    return _template(subject, _priority_fields(priority), ends, beat, pinned)


def _template(
    subject: str, fields: dict[str, Any], expires: float, heartbeat: float, pinned: bool
) -> PullTemplate:
    fields["expires"] = round(expires * NANO)
    if heartbeat:
        # Not rounded up: twice the heartbeat must not be above expires.
        fields["idle_heartbeat"] = min(round(heartbeat * NANO), fields["expires"] // 2)
    return PullTemplate(subject.encode(), fields, expires, heartbeat, pinned)


def check_time(name: str, value: Seconds, least: float) -> float:
    """Return a duration in seconds; raise InvalidValue if it is not from `least`."""
    return check_seconds(name, value, least, rule="PULL-4")


def check_heartbeat(heartbeat: Seconds, expires: float, least: float) -> float:
    """Return a heartbeat in seconds; raise InvalidValue if it does not fit `expires`."""
    beat = check_time("heartbeat", heartbeat, least)
    if beat > LONGEST_HEARTBEAT or beat > expires / 2:
        text = "heartbeat %g is above 30 s or above half of expires %g" % (beat, expires)
        raise InvalidValue(text, "PULL-5")
    return beat


def check_count(name: str, value: int) -> int:
    return session.check_count(name, value, 1, MOST_COUNT, "PULL-3")


def threshold(name: str, value: int | None, limit: int) -> int:
    """Return the threshold: by default half of the limit, rounded up so that a limit of 1 works."""
    if value is None:
        return (limit + 1) // 2  # CONSUME-4
    if check_count(name, value) > limit:
        raise InvalidValue("%s %d is above the limit %d" % (name, value, limit), "CONSUME-3")
    return value


def fetch_limits(max_messages: int | None, max_bytes: int | None) -> tuple[int, int]:
    """Return batch and bytes of the pull; exactly one of the arguments must be given."""
    if (max_messages is None) == (max_bytes is None):
        text = "fetch takes either max_messages or max_bytes, not %s and %s"
        raise InvalidValue(text % (shorten(max_messages), shorten(max_bytes)), "FETCH-2")
    batch = MANY if max_messages is None else check_count("max_messages", max_messages)
    return batch, 0 if max_bytes is None else check_count("max_bytes", max_bytes)


def consume_limits(
    max_messages: int | None,
    max_bytes: int | None,
    threshold_messages: int | None,
    threshold_bytes: int | None,
    stop_after: int | None,
) -> ConsumeLimits:
    """Return the limits of the machine: one of messages and bytes, its threshold, stop_after."""
    by_bytes = max_bytes is not None
    unfit = threshold_messages if by_bytes else threshold_bytes
    if by_bytes and max_messages is not None:
        text = "consume takes either max_messages or max_bytes, not %s and %s"
        raise InvalidValue(text % (shorten(max_messages), shorten(max_bytes)), "CONSUME-2")
    if unfit is not None:
        pair = ("messages", "bytes") if by_bytes else ("bytes", "messages")
        text = "threshold_%s %s is not a threshold of max_%s"
        raise InvalidValue(text % (pair[0], shorten(unfit), pair[1]), "CONSUME-2")
    stop_at = 0 if stop_after is None else check_count("stop_after", stop_after)
    if max_bytes is not None:
        limit = check_count("max_bytes", max_bytes)
        refill_at = threshold("threshold_bytes", threshold_bytes, limit)
        return {"max_bytes": limit, "threshold": refill_at, "stop_after": stop_at}
    most = DEFAULT_MESSAGES if max_messages is None else max_messages
    limit = check_count("max_messages", most)
    refill_at = threshold("threshold_messages", threshold_messages, limit)
    return {"max_messages": limit, "threshold": refill_at, "stop_after": stop_at}


def _priority_fields(priority: PriorityOptions) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    group: Any = priority.get("group")
    if group:
        fields["group"] = check_group(group)
    for name in _PRIORITY[1:]:
        value: Any = priority.get(name)
        if value is None:
            continue
        least, most = (0, 9) if name == "priority" else (1, MOST_COUNT)
        session.check_count(name, value, least, most, "PULL-6")
        if not group:
            raise InvalidValue("%s %d needs a group" % (name, value), "PULL-6")
        fields[name] = value
    return fields


def check_group(group: Any) -> str:
    """Return the name of a priority group; raise InvalidValue if it is not valid."""
    if isinstance(group, str) and is_group(group):
        return group
    text = "group %s is not 1 to 16 letters, digits or /_=-" % shorten(group)
    raise InvalidValue(text, "PULL-6")
