"""Permissions and limits of users, as JWTs have them."""

from __future__ import annotations

import pytest

from natsproto.auth.limits import Permissions, UserLimits
from natsproto.errors import InvalidSubject, InvalidValue

pytestmark = pytest.mark.rule("JWT-5")
PERMISSIONS = Permissions(
    publish_allow=["a.>"],
    publish_deny=["a.b"],
    subscribe_allow=("c.* q", "d"),
    subscribe_deny=["c.e"],
    max_responses=-1,
    response_ttl=1.5,
)
PERMITTED = {
    "pub": {"allow": ["a.>"], "deny": ["a.b"]},
    "sub": {"allow": ["c.* q", "d"], "deny": ["c.e"]},
    "resp": {"max": -1, "ttl": 1_500_000_000},
}
UNLIMITED = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}
LIMITS = UserLimits(
    permissions=PERMISSIONS,
    max_subscriptions=1,
    max_data=0,
    max_payload=3,
    bearer=True,
    proxy_required=True,
    source_networks=["10.0.0.0/8"],
    connection_types=["mqtt"],
    hours=[("08:00:00", "17:00:00")],
    time_zone="Europe/Berlin",
)
LIMITED = {
    **PERMITTED,
    "subs": 1,
    "data": 0,
    "payload": 3,
    "bearer_token": True,
    "proxy_required": True,
    "src": ["10.0.0.0/8"],
    "allowed_connection_types": ["MQTT"],
    "times": [{"start": "08:00:00", "end": "17:00:00"}],
    "times_location": "Europe/Berlin",
}


@pytest.mark.parametrize(
    ("kind", "value", "body"),
    [
        (Permissions, Permissions(), {"pub": {}, "sub": {}}),
        (Permissions, PERMISSIONS, PERMITTED),
        (UserLimits, UserLimits(), UNLIMITED),
        (UserLimits, LIMITS, LIMITED),
    ],
)
def test_both_ways(kind, value, body):
    assert value.to_json() == body
    assert kind.from_json(body).to_json() == body
    assert repr(value).startswith(kind.__name__ + "(")


def test_limits_that_a_jwt_does_not_have_are_zero():
    found = UserLimits.from_json({})
    assert (found.max_subscriptions, found.max_data, found.max_payload) == (0, 0, 0)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"publish_allow": ["a b"]}, InvalidValue),
        ({"publish_deny": "a"}, InvalidValue),
        ({"subscribe_allow": ["a..b"]}, InvalidSubject),
        ({"subscribe_deny": [""]}, InvalidSubject),
        ({"max_responses": -2}, InvalidValue),
        ({"response_ttl": -1}, InvalidValue),
        ({"response_ttl": "1s"}, InvalidValue),
    ],
)
def test_bad_permissions(given, error):
    with pytest.raises(error, match=next(iter(given))):
        Permissions(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"permissions": {"pub": {}}},
        {"max_subscriptions": -2},
        {"max_data": "1"},
        {"max_payload": 1.5},
        {"bearer": "yes"},
        {"proxy_required": 1},
        {"source_networks": ["10.0.0.1"]},
        {"connection_types": ["TCP"]},
        {"hours": [("8", "9")]},
        {"time_zone": None},
    ],
)
def test_bad_limits(given):
    with pytest.raises(InvalidValue, match=next(iter(given))):
        UserLimits(**given)


@pytest.mark.parametrize("body", [{"pub": 5}, {"resp": {"ttl": "1"}}, {"times": [5]}, {"src": 5}])
def test_malformed_jwts(body):
    with pytest.raises(InvalidValue):
        UserLimits.from_json(body)
