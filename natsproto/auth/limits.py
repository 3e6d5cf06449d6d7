"""Permissions and UserLimits: the rights of a user, in the JWT of a user or of a signing key."""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.text import shorten

from . import claim_checks as checks

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SECOND = 1_000_000_000


class Permissions:
    """The subjects that may be used; no `allow` at all: every subject that is not denied.

    publish_allow, publish_deny      subjects to publish to
    subscribe_allow, subscribe_deny  subjects to subscribe to; `orders.* workers` also names a queue
    max_responses                    how many times a received request may be answered, even though
                                     its reply subject is not allowed; 0: never, -1: no limit
    response_ttl                     for how many seconds; 0: without limit
    """

    def __init__(
        self,
        *,
        publish_allow: Sequence[str] = (),
        publish_deny: Sequence[str] = (),
        subscribe_allow: Sequence[str] = (),
        subscribe_deny: Sequence[str] = (),
        max_responses: int = 0,
        response_ttl: float = 0.0,
    ) -> None:
        self.publish_allow: Sequence[str] = publish_allow
        self.publish_deny: Sequence[str] = publish_deny
        self.subscribe_allow: Sequence[str] = subscribe_allow
        self.subscribe_deny: Sequence[str] = subscribe_deny
        self.max_responses: int = max_responses
        self.response_ttl: float = response_ttl
        self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the JWT; raise InvalidValue or InvalidSubject."""
        body: dict[str, Any] = {"pub": {}, "sub": {}}
        for way, name in (("publish", "pub"), ("subscribe", "sub")):
            for verb in ("allow", "deny"):
                what = way + "_" + verb
                subjects = checks.check_subjects(what, getattr(self, what), queues=name == "sub")
                if subjects:
                    body[name][verb] = subjects
        most = checks.check_limit("max_responses", self.max_responses)
        seconds = self.response_ttl
        if not isinstance(seconds, (int, float)) or not seconds >= 0:
            text = "response_ttl is not a number of seconds: %s"
            raise InvalidValue(text % shorten(seconds), checks.RULE)
        if most:
            body["resp"] = {"max": most, "ttl": int(seconds * _SECOND)}
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Permissions:
        """Return the permissions in the fields of a JWT."""
        pub, sub, resp = [checks.map_in(body, name) for name in ("pub", "sub", "resp")]
        return cls(
            publish_allow=checks.list_in(pub, "allow"),
            publish_deny=checks.list_in(pub, "deny"),
            subscribe_allow=checks.list_in(sub, "allow"),
            subscribe_deny=checks.list_in(sub, "deny"),
            max_responses=resp.get("max", 0),
            response_ttl=checks.check_time("ttl of responses", resp.get("ttl", 0)) / _SECOND,
        )

    def __repr__(self) -> str:
        return "Permissions(%s)" % shorten(self.to_json())


class UserLimits:
    """The rights of a user, and the places and times to which they are limited.

    permissions        the subjects
    max_subscriptions, max_data, max_payload
                       how many subscriptions, and how many bytes; -1: no limit
    bearer             the JWT alone is enough: the server does not ask for a signature
    proxy_required     connections must come through a trusted proxy
    source_networks    networks of the clients, such as 10.0.0.0/8; none: all
    connection_types   such as STANDARD, WEBSOCKET, MQTT, LEAFNODE; none: all
    hours              pairs of times between which to connect, as ("08:00:00", "17:30:00")
    time_zone          the time zone of `hours`, such as Europe/Berlin
    """

    def __init__(
        self,
        *,
        permissions: Permissions | None = None,
        max_subscriptions: int = -1,
        max_data: int = -1,
        max_payload: int = -1,
        bearer: bool = False,
        proxy_required: bool = False,
        source_networks: Sequence[str] = (),
        connection_types: Sequence[str] = (),
        hours: Sequence[tuple[str, str]] = (),
        time_zone: str = "",
    ) -> None:
        self.permissions: Permissions = permissions or Permissions()
        self.max_subscriptions: int = max_subscriptions
        self.max_data: int = max_data
        self.max_payload: int = max_payload
        self.bearer: bool = bearer
        self.proxy_required: bool = proxy_required
        self.source_networks: Sequence[str] = source_networks
        self.connection_types: Sequence[str] = connection_types
        self.hours: Sequence[tuple[str, str]] = hours
        self.time_zone: str = time_zone
        self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the JWT; raise InvalidValue or InvalidSubject."""
        if not isinstance(self.permissions, Permissions):
            text = "permissions is not a Permissions: %s"
            raise InvalidValue(text % shorten(self.permissions), checks.RULE)
        body = self.permissions.to_json()
        for name, theirs in _LIMITS:
            body[theirs] = checks.check_limit(name, getattr(self, name))
        for name, theirs, check in _OTHERS:
            value = check(name, getattr(self, name))
            if value:
                body[theirs] = value
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> UserLimits:
        """Return the limits in the fields of a JWT."""
        limits: dict[str, Any] = {name: body.get(theirs, 0) for name, theirs in _LIMITS}
        for name, theirs, _ in _OTHERS:
            if name != "hours" and body.get(theirs):
                limits[name] = body[theirs]
        hours = [checks.check_map("times", each) for each in checks.list_in(body, "times")]
        limits["hours"] = [(each.get("start"), each.get("end")) for each in hours]
        return cls(permissions=Permissions.from_json(body), **limits)

    def __repr__(self) -> str:
        return "UserLimits(%s)" % shorten(self.to_json())


_LIMITS = (("max_subscriptions", "subs"), ("max_data", "data"), ("max_payload", "payload"))
_OTHERS = (
    ("bearer", "bearer_token", checks.check_flag),
    ("proxy_required", "proxy_required", checks.check_flag),
    ("source_networks", "src", checks.check_networks),
    ("connection_types", "allowed_connection_types", checks.check_types),
    ("hours", "times", checks.check_hours),
    ("time_zone", "times_location", checks.check_text),
)
#: Fields that a JWT of a user with a scope does not have.
SCOPED = (
    {theirs for _, theirs in _LIMITS}
    | {theirs for _, theirs, _ in _OTHERS}
    | {"resp", "pub", "sub"}
)
