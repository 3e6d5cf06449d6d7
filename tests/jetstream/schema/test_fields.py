from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetstream.errors import InvalidResponse
from jetstream.schema.fields import Field, Fields, refuse
from jetstream.schema.timestamp import Timestamp
from jetstream.schema.types import (
    COUNT,
    DURATION,
    DURATIONS,
    FLAG,
    MAP,
    TEXT,
    TEXTS,
    TIME,
    Choice,
    Embedded,
    Object,
    list_of,
)
from natsproto.errors import InvalidValue


class Leg(Fields):
    """A part of a journey."""

    FIELDS = (Field("to", TEXT, "Where."), Field("takes", DURATION, "How long."))


class Trip(Fields):
    """All kinds of fields."""

    FIELDS = (
        Field("name", TEXT, "What it is called."),
        Field("stops", TEXTS, "Where it stops."),
        Field("paid", FLAG, "Whether it is."),
        Field("seats", COUNT, "How many.", (2, 9)),
        Field("takes", DURATION, "How long."),
        Field("pauses", DURATIONS, "How long each."),
        Field("starts", TIME, "When."),
        Field("labels", MAP, "Anything."),
        Field("by", Choice("train", "ship"), "How.", always=True),
        Field("first", Object(Leg), "The first leg."),
        Field("legs", list_of(Leg), "All legs."),
        Field("limits", Embedded(Leg), "The most."),
    )


FULL = {
    "name": "north",
    "stops": ["a", "b"],
    "paid": True,
    "seats": -1,
    "takes": 1500000001,
    "pauses": [1, 2],
    "starts": "2024-01-02T03:04:05.000000006Z",
    "labels": {"k": "v"},
    "by": "ship",
    "first": {"to": "x"},
    "legs": [{"to": "x", "takes": 5}, {}],
    "limits": {"takes": 7},
}


@pytest.mark.rule("JSAPI-5")
def test_zeros_are_not_sent():
    trip = Trip()
    assert trip.to_json() == {"by": "train"}
    assert (trip.name, trip.stops, trip.paid, trip.seats, trip.takes) == ("", [], False, 0, 0.0)
    assert (trip.starts, trip.first, trip.by) == (None, None, "train")
    assert trip.limits.takes == 0.0
    assert trip.to_json() == {"by": "train"}
    assert trip.given_fields() == []


@pytest.mark.rule("JSAPI-5")
def test_zeros_that_were_given_are_sent():
    trip = Trip(seats=0, stops=[], paid=False, takes=0, labels={}, limits={})
    trip.name = ""
    assert trip.to_json() == {
        "name": "",
        "stops": [],
        "paid": False,
        "seats": 0,
        "takes": 0,
        "labels": {},
        "by": "train",
        "limits": {},
    }
    assert [field.name for field in trip.given_fields()] == [
        "name",
        "stops",
        "paid",
        "seats",
        "takes",
        "labels",
        "limits",
    ]


@pytest.mark.rule("JSAPI-5")
def test_changes_in_place_are_sent():
    trip = Trip()
    trip.stops.append("a")
    trip.labels["k"] = "v"
    trip.limits.takes = 1
    trip.legs.append(Leg(to="x"))
    assert trip.to_json() == {
        "stops": ["a"],
        "labels": {"k": "v"},
        "by": "train",
        "legs": [{"to": "x"}],
        "limits": {"takes": 10**9},
    }


def test_two_objects_do_not_share_their_lists():
    Trip().stops.append("a")
    assert Trip().stops == []


def test_none_takes_an_object_back():
    trip = Trip(first={"to": "x"}, starts=5)
    trip.first = None
    trip.starts = None
    assert trip.to_json() == {"by": "train"}


@pytest.mark.rule("JSAPI-5", "JSAPI-6")
def test_read_and_written_back():
    trip = Trip.from_json(FULL)
    assert trip.takes == 1.500000001
    assert trip.pauses == [1e-9, 2e-9]
    assert trip.starts == Timestamp.parse(FULL["starts"])
    assert trip.legs == [Leg(to="x", takes=5e-9), Leg()]
    assert trip.to_json() == FULL
    assert Trip.from_json(trip.to_json()) == trip


@pytest.mark.rule("JSAPI-6")
def test_null_is_nothing():
    trip = Trip.from_json(dict.fromkeys(FULL))
    assert trip == Trip()
    assert trip.given_fields() == []
    assert trip.stops == []


@pytest.mark.rule("TIME-4")
def test_no_time_is_not_written():
    trip = Trip.from_json({"starts": "0001-01-01T00:00:00Z"})
    assert trip.starts is None
    assert trip.to_json() == {"by": "train"}


@pytest.mark.rule("JSAPI-2")
def test_unknown_fields_are_kept():
    raw = {
        "type": "io.nats.x",
        "name": "north",
        "by": "balloon",
        "wings": {"n": [2]},
        "first": {"z": 1},
    }
    trip = Trip.from_json(raw)
    assert trip.extra == {"wings": {"n": [2]}}
    assert trip.by == "balloon"
    del raw["type"]
    assert trip.to_json() == raw
    assert trip.copy() == trip
    trip.extra["tail"] = 1
    assert trip.to_json()["tail"] == 1


def test_a_copy_with_another_value():
    trip = Trip.from_json({"name": "north", "seats": 3, "wings": 2})
    other = trip.with_value("seats", 4)
    assert other.to_json() == {**trip.to_json(), "seats": 4}
    other.name = "south"
    other.extra["tail"] = 1
    other.paid = True
    assert trip.to_json() == {"name": "north", "seats": 3, "by": "train", "wings": 2}


def test_extra_can_be_given():
    assert Trip(name="a", extra={"wings": 2}).to_json() == {"name": "a", "by": "train", "wings": 2}
    with pytest.raises(InvalidValue, match=r"Trip\.extra: 5 is not a dict"):
        Trip(extra=5)


EXACT = [  # field, JSON that a float or another text would change
    ("takes", 9223372036854775807),
    ("takes", 9007199254740993),
    ("takes", -1),
    ("pauses", [9007199254740993, 1]),
    ("starts", "2024-01-02T03:04:05+02:00"),
    ("starts", "2024-01-02T03:04:05.100Z"),
    ("by", "balloon"),
]


@pytest.mark.rule("JSAPI-1", "JSAPI-2")
@pytest.mark.parametrize(("name", "raw"), EXACT)
def test_unchanged_values_are_written_as_they_were_read(name, raw):
    trip = Trip.from_json({name: raw})
    assert trip.to_json()[name] == raw
    assert trip.copy().to_json()[name] == raw
    assert pickle.loads(pickle.dumps(trip)).to_json()[name] == raw
    setattr(trip, name, Trip.FIELDS[8].type.zero() if name == "by" else getattr(Trip(), name))
    assert trip.to_json().get(name) != raw


@pytest.mark.rule("JSAPI-1")
def test_a_changed_list_is_written_again():
    trip = Trip.from_json({"pauses": [2000000001]})
    trip.pauses.append(1.5)
    assert trip.to_json()["pauses"] == [2000000001, 1500000000]


@pytest.mark.rule("JSAPI-1")
@given(st.integers(-(2**63), 2**63 - 1))
def test_every_duration_round_trips(ns):
    assert Trip.from_json({"takes": ns}).to_json()["takes"] == ns


@pytest.mark.rule("JSAPI-6")
@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ([], r"Trip: \[\] is not a JSON object"),
        ({"seats": "5"}, r"Trip\.seats: '5' is not a whole number"),
        ({"takes": 1.5}, r"Trip\.takes: 1\.5 is not a whole number of nanoseconds"),
        ({"first": {"to": 5}}, r"Leg\.to: 5 is not a str"),
        ({"first": "x"}, r"Leg: 'x' is not a JSON object"),
        ({"legs": [{"takes": []}]}, r"Leg\.takes: \[\] is not a whole number of nanoseconds"),
        ({"legs": {}}, r"Trip\.legs: \{\} is not a list"),
    ],
)
def test_answers_that_are_wrong(raw, text):
    with pytest.raises(InvalidResponse, match="^" + text + "$"):
        Trip.from_json(raw)


@pytest.mark.rule("D-JSAPI-3")
def test_wrong_values_name_class_field_and_value():
    with pytest.raises(InvalidValue) as error:
        Trip(seats=True)
    assert str(error.value) == "Trip.seats: True is not a whole number (D-JSAPI-3)"
    trip = Trip(seats=5)
    with pytest.raises(InvalidValue):
        trip.seats = "6"
    assert trip.seats == 5


@pytest.mark.rule("D-JSAPI-3")
def test_lists_are_checked_again_when_they_are_sent():
    trip = Trip()
    trip.stops.append(5)
    with pytest.raises(InvalidValue, match=r"Trip.stops: \[5\] has 5, which is not a str"):
        trip.to_json()


@pytest.mark.rule("D-JSAPI-4")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("seat", "; did you mean 'seats'?"),
        ("Seats", "; did you mean 'seats'?"),
        ("leg", "; did you mean 'legs'?"),
        ("frist", "; did you mean 'first'?"),
        ("pausse", "; did you mean 'pauses'?"),
        ("wings", ""),
        ("x", ""),
    ],
)
def test_unknown_fields_are_refused_with_the_nearest(name, hint):
    with pytest.raises(InvalidValue) as error:
        Trip(**{name: 1})
    assert str(error.value) == f"Trip has no field {name!r}{hint} (D-JSAPI-4)"
    with pytest.raises(InvalidValue):
        setattr(Trip(), name, 1)
    with pytest.raises(AttributeError, match=f"Trip has no field '{name}'"):
        getattr(Trip(), name)


@pytest.mark.rule("D-JSAPI-4")
def test_a_part_of_a_name_is_near():
    class Ticket(Fields):
        FIELDS = (Field("price", COUNT, "How much."), Field("passenger_name", TEXT, "Whose."))

    with pytest.raises(InvalidValue, match="did you mean 'passenger_name'"):
        Ticket(passenger="x")


@pytest.mark.rule("D-JSAPI-7")
def test_of():
    assert Trip.of(None, {"seats": 5}) == Trip(seats=5)
    given = Trip(name="a", stops=["x"], extra={"wings": 2})
    made = Trip.of(given, {"seats": 5})
    assert made == Trip(name="a", stops=["x"], seats=5, extra={"wings": 2})
    made.stops.append("y")
    assert given == Trip(name="a", stops=["x"], extra={"wings": 2})
    # A dict is in the server's words and units, keywords are in ours.
    raw = {"takes": 5, "wings": 2}
    assert Trip.of(raw, {"pauses": [1]}) == Trip(takes=5e-9, pauses=[1], extra={"wings": 2})
    assert raw == {"takes": 5, "wings": 2}


@pytest.mark.rule("D-JSAPI-7")
@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"seats": "5"}, r"Trip.seats: '5' is not a whole number \(D-JSAPI-3\)"),
        (
            "north",
            r"'north' is neither a Trip nor a dict; .* keyword: name='north' \(D-JSAPI-3\)",
        ),
        (Leg(), r"Leg\(\) is neither a Trip nor a dict \(D-JSAPI-3\)"),
    ],
)
def test_of_invalid_values(config, text):
    with pytest.raises(InvalidValue, match=text):
        Trip.of(config, {})


def test_equality():
    assert Trip(seats=0) == Trip()
    assert Trip(seats=1) != Trip()
    assert Trip(extra={"a": 1}) != Trip()
    assert Trip() != Leg()
    assert Trip() != 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(Trip())


def test_repr():
    assert repr(Leg()) == "Leg()"
    assert repr(Trip(seats=0, by="ship")) == "Trip(seats=0, by='ship')"
    trip = Trip.from_json({"takes": 5, "by": "train", "limits": {"to": "x"}, "wings": 2})
    text = "Trip(takes=5e-09, by='train', limits=Leg(to='x'), extra={'wings': 2})"
    assert repr(trip) == text
    assert eval(text, {"Trip": Trip, "Leg": Leg}) == trip
    assert repr(Trip.FIELDS[0]) == "Field('name')"


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies(clone):
    trip = Trip.from_json({**FULL, "wings": 2})
    made = clone(trip)
    assert made == trip
    assert made.to_json() == trip.to_json()
    made.seats = 0
    made.name = "south"
    assert clone(Trip()) == Trip()


def test_refuse():
    table = [
        ("TRIP-1", ("name", "seats"), lambda trip: trip.name and trip.seats > 5, "too many"),
        ("TRIP-2", ("paid",), lambda trip: not trip.paid, "pay"),
    ]
    refuse(Trip(paid=True), table)
    with pytest.raises(InvalidValue) as error:
        refuse(Trip(name="a", seats=6), table)
    assert str(error.value) == "Trip with name='a', seats=6: too many (TRIP-1)"
    with pytest.raises(InvalidValue, match="TRIP-2"):
        refuse(Trip(), table)
