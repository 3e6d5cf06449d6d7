"""Checks of the values in claims."""

from __future__ import annotations

import pytest

from natsproto.auth import claim_checks as checks
from natsproto.errors import InvalidSubject, InvalidValue
from tests.connection.jwt_keys import A_KEY, O_KEY, U_KEY

pytestmark = pytest.mark.rule("JWT-5")

GOOD = [
    (checks.check_nkey, (f" {A_KEY}\n", "OA"), A_KEY),
    (checks.check_nkeys, ((A_KEY, O_KEY), "OA"), [A_KEY, O_KEY]),
    (checks.check_text, ("",), ""),
    (checks.check_list, (("a", 5),), ["a", 5]),
    (checks.check_map, ({"a": 5},), {"a": 5}),
    (checks.check_flag, (True,), True),
    (checks.check_limit, (-1,), -1),
    (checks.check_limit, (2**40,), 2**40),
    (checks.check_time, (1.9,), 1),
    (checks.check_time, (0,), 0),
    (checks.check_tags, ([" Team:A", "team:a", "b"],), ["team:a", "b"]),
    (checks.check_subjects, (["a.*", ">", "{{name()}}.b"],), ["a.*", ">", "{{name()}}.b"]),
    (checks.check_types, (["standard", "MQTT_WS"],), ["STANDARD", "MQTT_WS"]),
    (
        checks.check_networks,
        (
            [
                "10.0.0.0/8",
                " ::1/128",
                "FE80::/10",
                "1:2:3:4:5:6:7:8/0",
                "::ffff:1.2.3.4/96",
                "::/0",
            ],
        ),
        ["10.0.0.0/8", "::1/128", "fe80::/10", "1:2:3:4:5:6:7:8/0", "::ffff:1.2.3.4/96", "::/0"],
    ),
    (
        checks.check_hours,
        ([("08:00:00", "17:30:59")],),
        [{"start": "08:00:00", "end": "17:30:59"}],
    ),
]


@pytest.mark.parametrize(("check", "given", "expected"), GOOD)
def test_good_values(check, given, expected):
    assert check("what", *given) == expected


BAD = [
    (checks.check_nkey, (U_KEY, "A"), r"what is not a key of type account: its type is user \(U\)"),
    (checks.check_nkey, (U_KEY, "OA"), "operator or account"),
    (checks.check_nkey, (5, "A"), "what is int, not a str"),
    (checks.check_nkey, ("", "A"), "has 0 characters"),
    (checks.check_nkeys, (A_KEY, "A"), "what is not a list"),
    (checks.check_text, (5,), "what is int, not a str"),
    (checks.check_map, ([],), "what is not a map"),
    (checks.check_flag, (1,), "what is not True or False: 1"),
    (checks.check_limit, (-2,), "at least -1: -2"),
    (checks.check_limit, (True,), "at least -1: True"),
    (checks.check_limit, (1.0,), "at least -1: 1.0"),
    (checks.check_time, (-1,), "seconds since 1970: -1"),
    (checks.check_time, (float("nan"),), "seconds since 1970: nan"),
    (checks.check_time, (True,), "seconds since 1970: True"),
    (checks.check_time, ("1",), "seconds since 1970: '1'"),
    (checks.check_tags, ([" "],), "empty tag"),
    (checks.check_tags, ("team",), "what is not a list: 'team'"),
    (checks.check_subjects, (["a b"],), "what has a space: 'a b'"),
    (checks.check_subjects, ([5],), "not a str"),
    (checks.check_types, (["tcp"],), "unknown type: 'TCP'; known are STANDARD, "),
    (checks.check_hours, ([("8:00", "17:00")],), "no pair of times"),
    (checks.check_hours, ([("08:00:00",)],), "no pair of times"),
    (checks.check_hours, ([("08:00:00", "24:00:00")],), "no pair of times"),
    (checks.check_hours, ([("08:60:00", "09:00:00")],), "no pair of times"),
    (checks.check_hours, (["08:00:00"],), "what is not a list"),
    (checks.check_hours, ([(8, 17)],), "time is int"),
]


@pytest.mark.parametrize(("check", "given", "said"), BAD)
def test_bad_values(check, given, said):
    with pytest.raises(InvalidValue, match=said):
        check("what", *given)


@pytest.mark.parametrize(
    "network",
    [
        "",
        "10.0.0.0",
        "10.0.0/8",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.256/8",
        "10.0.0.x/8",
        "1.2.3.4.5/8",
        "::1/129",
        "1:2:3:4:5:6:7/64",
        "1:2:3:4:5:6:7:8:9/64",
        "1::2::3/64",
        ":::/64",
        "1:2:3:4:5:6:7::8/64",
        "g::/64",
        "12345::/64",
        "::1.2.3/96",
        ":1:2:3:4:5:6:7/64",
        "localhost/8",
    ],
)
def test_texts_that_are_not_networks(network):
    with pytest.raises(InvalidValue, match="what is not a network"):
        checks.check_networks("what", [network])


def test_queues_are_only_for_subscriptions():
    assert checks.check_subjects("what", ["a b"], queues=True) == ["a b"]
    for subject in ("", "a..b", "a b c", "a "):
        with pytest.raises(InvalidSubject):
            checks.check_subjects("what", [subject], queues=True)


def test_fields_that_may_be_missing():
    body = {"map": {"a": 1}, "list": [1], "none": None}
    assert checks.map_in(body, "map") == {"a": 1}
    assert checks.list_in(body, "list") == [1]
    assert checks.map_in(body, "none") == checks.map_in(body, "missing") == {}
    assert checks.list_in(body, "none") == checks.list_in(body, "missing") == []
    for read, name in ((checks.map_in, "list"), (checks.list_in, "map")):
        with pytest.raises(InvalidValue):
            read(body, name)
