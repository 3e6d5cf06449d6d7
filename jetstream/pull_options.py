"""The options of fetch, next and consume: defaults and limits of ADR-37, checked before a pull."""

from __future__ import annotations

from natsproto.errors import InvalidValue

from .pull import PullTemplate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    class PriorityOptions(TypedDict, total=False):
        """For consumers with priority groups (ADR-42)."""

        group: str
        min_pending: int
        min_ack_pending: int
        priority: int


NANO = 10**9
SHORTEST_HEARTBEAT = 0.5
LONGEST_HEARTBEAT = 30.0
DEFAULT_MESSAGES = 500


def fetch_template(
    subject: str,
    expires: float,
    heartbeat: float | None,
    no_wait: bool,
    priority: PriorityOptions,
) -> PullTemplate:
    """For one pull; it has heartbeats if asked for, or if it may take longer than 30 s."""
    check_time("expires", expires, 0.001)
    if heartbeat is None:
        heartbeat = min(expires / 2, LONGEST_HEARTBEAT) if expires > 30 and not no_wait else 0.0
    elif heartbeat:
        check_heartbeat(heartbeat, expires, 0.001)
    fields = _priority_fields(priority)
    if no_wait:
        fields["no_wait"] = True
        heartbeat = 0.0
    else:
        fields["expires"] = round(expires * NANO)
    if heartbeat:
        fields["idle_heartbeat"] = round(heartbeat * NANO)
    return PullTemplate(subject.encode(), fields, heartbeat)


def consume_template(
    subject: str, expires: float, heartbeat: float | None, priority: PriorityOptions
) -> PullTemplate:
    """For pull after pull: always with heartbeats, which alone tell of a silent server."""
    check_time("expires", expires, 1.0)
    if heartbeat is None:
        heartbeat = max(SHORTEST_HEARTBEAT, min(expires / 2, LONGEST_HEARTBEAT))
    else:
        check_heartbeat(heartbeat, expires, SHORTEST_HEARTBEAT)
    fields = _priority_fields(priority)
    fields["expires"] = round(expires * NANO)
    fields["idle_heartbeat"] = round(heartbeat * NANO)
    return PullTemplate(subject.encode(), fields, heartbeat)


def check_time(name: str, value: float, least: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
        raise InvalidValue("%s %r is not %g seconds or more" % (name, value, least), "PULL-4")


def check_heartbeat(heartbeat: float, expires: float, least: float) -> None:
    check_time("heartbeat", heartbeat, least)
    if heartbeat > LONGEST_HEARTBEAT or heartbeat > expires / 2:
        text = "heartbeat %g is above 30 s or above half of expires %g" % (heartbeat, expires)
        raise InvalidValue(text, "PULL-5")


def check_count(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValue("%s %r is not a whole number from 1" % (name, value), "PULL-3")
    return value


def threshold(name: str, value: int | None, limit: int) -> int:
    """Half of the limit, rounded up so that a limit of 1 works; never above it."""
    if value is None:
        return (limit + 1) // 2
    if check_count(name, value) > limit:
        raise InvalidValue("%s %d is above the limit %d" % (name, value, limit), "CONSUME-3")
    return value


def _priority_fields(priority: PriorityOptions) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    group = priority.get("group")
    if group:
        fields["group"] = group
    for name in ("min_pending", "min_ack_pending", "priority"):
        value: Any = priority.get(name)
        if value is None:
            continue
        least, most = (0, 9) if name == "priority" else (1, 2**63)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            raise InvalidValue(
                "%s %r is not a whole number from %d" % (name, value, least), "PULL-6"
            )
        if not group:
            raise InvalidValue("%s needs a group" % name, "PULL-6")
        fields[name] = value
    return fields
