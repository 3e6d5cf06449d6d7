from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetstream.schema.fields import Field, Fields
from jetstream.schema.timestamp import FIRST, Timestamp
from jetstream.schema.types import (
    ANY,
    COUNT,
    COUNT32,
    COUNTS,
    DURATION,
    DURATIONS,
    FLAG,
    MAP,
    MAP_OF_ANY,
    SEQUENCE,
    SEQUENCES,
    SIGNED_DURATION,
    TEXT,
    TEXTS,
    TIME,
    Choice,
    Embedded,
    Object,
    TypeMismatch,
    list_of,
    map_of,
)
from natsproto.errors import InvalidValue

MOST = 2**63 - 1
CHOICE = Choice("old", "new")


class Point(Fields):
    FIELDS = (Field("x", COUNT, "Across."), Field("y", COUNT, "Up."))


ONE = Point(x=1)
THEN = Timestamp.parse("2024-01-02T03:04:05Z")

ZEROS = [
    (TEXT, ""),
    (FLAG, False),
    (COUNT, 0),
    (SEQUENCE, 0),
    (DURATION, 0.0),
    (TIME, None),
    (ANY, None),
    (CHOICE, "old"),
    (TEXTS, []),
    (DURATIONS, []),
    (MAP, {}),
    (Object(Point), None),
    (Embedded(Point), Point()),
    (list_of(Point), []),
    (map_of(Point), {}),
]


@pytest.mark.parametrize(("kind", "zero"), ZEROS)
def test_zeros(kind, zero):
    value = kind.zero()
    assert value == zero
    assert type(value) is type(zero)
    if kind.mutable:
        assert kind.zero() is not value


GOOD = [  # kind, the user's value, the attribute, JSON
    (TEXT, "é", "é", "é"),
    (FLAG, True, True, True),
    (COUNT, -(2**63), -(2**63), -(2**63)),
    (COUNT, MOST, MOST, MOST),
    (COUNT32, 2**31 - 1, 2**31 - 1, 2**31 - 1),
    (SEQUENCE, 2**64 - 1, 2**64 - 1, 2**64 - 1),
    (DURATION, 5, 5.0, 5 * 10**9),
    (DURATION, 0.1, 0.1, 10**8),
    (DURATION, 1e-9, 1e-9, 1),
    (DURATION, 4e-10, 4e-10, 0),
    (DURATION, 86400.000000001, 86400.000000001, 86400 * 10**9 + 1),
    (DURATION, 9223372036, 9223372036.0, 9223372036 * 10**9),
    (SIGNED_DURATION, -1.5, -1.5, -1500000000),
    (DURATIONS, (1, 2.5), [1.0, 2.5], [10**9, 2500000000]),
    (TIME, "2024-01-02T04:04:05+01:00", THEN, "2024-01-02T03:04:05Z"),
    (TIME, THEN.ns, THEN, "2024-01-02T03:04:05Z"),
    (TIME, THEN.datetime(), THEN, "2024-01-02T03:04:05Z"),
    (CHOICE, "new", "new", "new"),
    (TEXTS, ["a", "b"], ["a", "b"], ["a", "b"]),
    (TEXTS, ("a",), ["a"], ["a"]),
    (SEQUENCES, [1, 2], [1, 2], [1, 2]),
    (MAP, {"a": "b"}, {"a": "b"}, {"a": "b"}),
    (COUNTS, {"a": 5}, {"a": 5}, {"a": 5}),
    (MAP_OF_ANY, {"a": [None]}, {"a": [None]}, {"a": [None]}),
    (ANY, [1, {}], [1, {}], [1, {}]),
    (Object(Point), ONE, ONE, {"x": 1}),
    (Object(Point), {"x": 1}, ONE, {"x": 1}),
    (Embedded(Point), {"x": 1}, ONE, {"x": 1}),
    (list_of(Point), [ONE, {"y": 2}], [ONE, Point(y=2)], [{"x": 1}, {"y": 2}]),
    (map_of(Point), {"a": {"x": 1}}, {"a": ONE}, {"a": {"x": 1}}),
]


@pytest.mark.rule("JSAPI-1", "D-JSAPI-3", "JSAPI-8")
@pytest.mark.parametrize(("kind", "given", "value", "json"), GOOD)
def test_checked_and_encoded(kind, given, value, json):
    checked = kind.check(given)
    assert checked == value
    assert type(checked) is type(value)
    assert kind.encode(checked) == json
    # And back, unless the wire holds less.
    if json != 0:
        assert kind.decode(json) == value


@pytest.mark.parametrize("kind", [TIME, Object(Point), ANY])
def test_none_is_absent(kind):
    assert kind.check(None) is None


@pytest.mark.rule("TIME-4")
def test_the_zero_time_of_go_means_no_time():
    assert TIME.decode("0001-01-01T00:00:00Z") is None
    assert TIME.decode("0001-01-01T01:00:00+01:00") is None
    assert TIME.check(Timestamp(FIRST)) is None


BAD = [  # kind, the user's value, the problem
    (TEXT, 5, "is not a str"),
    (TEXT, None, "is not a str"),
    (TEXT, b"a", "is not a str"),
    (FLAG, 1, "is neither True nor False"),
    (FLAG, "true", "is neither True nor False"),
    (COUNT, True, "is not a whole number"),
    (COUNT, 1.0, "is not a whole number"),
    (COUNT, "1", "is not a whole number"),
    (COUNT, None, "is not a whole number"),
    (COUNT, 2**63, "is not in -9223372036854775808 to 9223372036854775807"),
    (COUNT32, 2**31, "is not in -2147483648 to 2147483647"),
    (SEQUENCE, -1, "is not in 0 to 18446744073709551615"),
    (SEQUENCE, 2**64, "is not in 0 to 18446744073709551615"),
    (DURATION, True, "is not a number of seconds from 0 to 9223372036"),
    (DURATION, "5s", "is not a number of seconds from 0 to 9223372036"),
    (DURATION, -1, "is not a number of seconds from 0 to 9223372036"),
    (DURATION, math.nan, "is not a number of seconds from 0 to 9223372036"),
    (DURATION, math.inf, "is not a number of seconds from 0 to 9223372036"),
    (DURATION, 9223372037, "is not a number of seconds from 0 to 9223372036"),
    (SIGNED_DURATION, -math.inf, "is not a number of seconds from -9223372036 to 9223372036"),
    (DURATIONS, 5, "is not a list"),
    (
        DURATIONS,
        [1, "x"],
        "has 'x', which is not a number of seconds from 0 to 9223372036",
    ),
    (
        TIME,
        "yesterday",
        "is not a time: timestamp 'yesterday' is not in the form 2006-01-02T15:04:05Z (TIME-1)",
    ),
    (
        TIME,
        1.5,
        "is not a time: 1.5 is neither RFC 3339 text nor a Timestamp, an aware datetime or"
        " nanoseconds (D-TIME-6)",
    ),
    (CHOICE, "young", "is not one of old, new"),
    (CHOICE, "", "is not one of old, new"),
    (CHOICE, 5, "is not one of old, new"),
    (CHOICE, ["old"], "is not one of old, new"),
    (TEXTS, "orders.>", "is not a list"),
    (TEXTS, {"a": 1}, "is not a list"),
    (TEXTS, ["a", 5], "has 5, which is not a str"),
    (SEQUENCES, [-1], "has -1, which is not in 0 to 18446744073709551615"),
    (MAP, ["a"], "is not a dict"),
    (MAP, {"a": 5}, "has 5, which is not a str"),
    (MAP, {5: "a"}, "has 5, which is not a str"),
    (Object(Point), "x", "is neither a Point nor a dict"),
    (Object(Point), [ONE], "is neither a Point nor a dict"),
    (Embedded(Point), None, "is neither a Point nor a dict"),
    (list_of(Point), ONE, "is not a list"),
    (list_of(Point), [None], "has None, which is neither a Point nor a dict"),
]


@pytest.mark.rule("D-JSAPI-3")
@pytest.mark.parametrize(("kind", "value", "why"), BAD)
def test_invalid_user_values(kind, value, why):
    with pytest.raises(TypeMismatch) as error:
        kind.check(value)
    assert str(error.value) == why


def test_a_wrong_dict_for_an_object_is_named_by_its_class():
    with pytest.raises(InvalidValue, match=r"Point\.x: 'a' is not a whole number \(D-JSAPI-3\)"):
        Object(Point).check({"x": "a"})


WRONG = [  # kind, the server's value, the problem
    (TEXT, 5, "is not a str"),
    (FLAG, 0, "is neither True nor False"),
    (COUNT, "5", "is not a whole number"),
    (SEQUENCE, True, "is not a whole number"),
    (DURATION, 1.5, "is not a whole number of nanoseconds"),
    (DURATION, True, "is not a whole number of nanoseconds"),
    (DURATION, "5s", "is not a whole number of nanoseconds"),
    (DURATIONS, {}, "is not a list"),
    (DURATIONS, [None], "has None, which is not a whole number of nanoseconds"),
    (
        TIME,
        "soon",
        "is not a time: timestamp 'soon' is not in the form 2006-01-02T15:04:05Z (TIME-1)",
    ),
    (TIME, 5, "is not a time: timestamp 5 is not a str (TIME-1)"),
    (CHOICE, 5, "is not a str"),
    (TEXTS, ("a",), "is not a list"),
    (MAP, [], "is not a dict"),
    (COUNTS, {"a": "b"}, "has 'b', which is not a whole number"),
]


@pytest.mark.rule("JSAPI-6")
@pytest.mark.parametrize(("kind", "raw", "why"), WRONG)
def test_invalid_server_values(kind, raw, why):
    with pytest.raises(TypeMismatch) as error:
        kind.decode(raw)
    assert str(error.value) == why


@pytest.mark.rule("JSAPI-2")
def test_a_newer_server_may_have_more():
    assert CHOICE.decode("oldest") == "oldest"
    assert SEQUENCE.decode(2**70) == 2**70
    assert DURATION.decode(-1) == -1e-9


def test_labels():
    assert TEXTS.label == "list of text"
    assert CHOICE.label == "one of `old`, `new`"
    assert list_of(Point).label == "list of Point"
    assert COUNTS.label == "map from text to whole number"


@pytest.mark.rule("JSAPI-1")
@given(st.integers(0, 2**22 * 10**9))
def test_nanoseconds_survive_a_float(ns):
    # 48 days; beyond that the JSON value is kept, see Fields.
    assert DURATION.encode(DURATION.decode(ns)) == ns


@pytest.mark.rule("JSAPI-10")
@pytest.mark.parametrize("raw", [2**63, -(2**63) - 1, 10**400, -(10**400), 1.5, "1", True])
def test_invalid_durations_of_a_server(raw):
    with pytest.raises(TypeMismatch, match="is not a whole number of nanoseconds"):
        DURATION.decode(raw)
    assert DURATION.decode(2**63 - 1) == (2**63 - 1) / 10**9
