from __future__ import annotations

import pickle
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetstream.schema.timestamp import FIRST, LAST, Timestamp
from natsproto.errors import InvalidValue

READ = [  # text, nanoseconds, written
    ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
    ("2024-01-02T03:04:05.678901234Z", 1704164645678901234, "2024-01-02T03:04:05.678901234Z"),
    ("2024-01-02T03:04:05.5Z", 1704164645500000000, "2024-01-02T03:04:05.5Z"),
    ("2024-01-02T03:04:05.000000001Z", 1704164645000000001, "2024-01-02T03:04:05.000000001Z"),
    ("2024-01-02T03:04:05.100000000Z", 1704164645100000000, "2024-01-02T03:04:05.1Z"),
    ("1969-12-31T23:59:59.999999999Z", -1, "1969-12-31T23:59:59.999999999Z"),
    ("0001-01-01T00:00:00Z", FIRST, "0001-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59.999999999Z", LAST, "9999-12-31T23:59:59.999999999Z"),
    ("2000-02-29T00:00:00Z", 951782400 * 10**9, "2000-02-29T00:00:00Z"),
    ("2024-02-29T12:00:00Z", 1709208000 * 10**9, "2024-02-29T12:00:00Z"),
    # upper and lower case, offsets
    ("2024-01-02t03:04:05z", 1704164645 * 10**9, "2024-01-02T03:04:05Z"),
    ("2024-01-02 03:04:05Z", 1704164645 * 10**9, "2024-01-02T03:04:05Z"),
    ("2024-01-02T05:04:05+02:00", 1704164645 * 10**9, "2024-01-02T03:04:05Z"),
    ("2024-01-01T21:34:05.25-05:30", 1704164645250000000, "2024-01-02T03:04:05.25Z"),
    ("1969-12-31T23:00:00-01:00", 0, "1970-01-01T00:00:00Z"),
    ("2024-01-02T03:04:05+00:00", 1704164645 * 10**9, "2024-01-02T03:04:05Z"),
    # more digits than nine
    ("2024-01-02T03:04:05.6789012349Z", 1704164645678901234, "2024-01-02T03:04:05.678901234Z"),
    ("2024-01-02T03:04:05.0000000009Z", 1704164645 * 10**9, "2024-01-02T03:04:05Z"),
]


@pytest.mark.rule("TIME-1", "TIME-2", "TIME-3")
@pytest.mark.parametrize(("text", "ns", "written"), READ)
def test_read_and_written(text, ns, written):
    moment = Timestamp.parse(text)
    assert moment.ns == ns
    assert str(moment) == written
    assert repr(moment) == f"Timestamp({written!r})"


BAD = [  # text, the problem
    ("", "is not in the form 2006-01-02T15:04:05Z"),
    ("yesterday", "is not in the form 2006-01-02T15:04:05Z"),
    ("2024-01-02", "is not in the form 2006-01-02T15:04:05Z"),
    ("2024-01-02T03:04", "is not in the form 2006-01-02T15:04:05Z"),
    ("2024-01-02X03:04:05Z", "is not in the form 2006-01-02T15:04:05Z"),
    ("2024-01-02T03-04:05Z", "is not in the form 2006-01-02T15:04:05Z"),
    ("2024/01/02T03:04:05Z", "is not in the form 2006-01-02T15:04:05Z"),
    ("2024-01-02T03:04:05", "does not end in Z or an offset like +01:00"),
    ("2024-01-02T03:04:05.5", "does not end in Z or an offset like +01:00"),
    ("2024-01-02T03:04:05X", "does not end in Z or an offset like +01:00"),
    ("2024-01-02T03:04:05+0100", "does not end in Z or an offset like +01:00"),
    ("2024-01-02T03:04:05ZZ", "does not end in Z or an offset like +01:00"),
    ("2024-01-02T03:04:05.Z", "has no digit after the point"),
    ("2024-01-02T03:04:05+01:00:00", "continues after its offset"),
    ("2024-01-02T03:04:05+01:00 ", "continues after its offset"),
    ("2024-01-02T03:04:05+24:00", "has the hour of the offset '24', not 0 to 23"),
    ("2024-01-02T03:04:05+01:60", "has the minute of the offset '60', not 0 to 59"),
    ("2024-01-02T03:04:05+01:6", "has the minute of the offset '6', not 0 to 59"),
    ("0000-01-02T03:04:05Z", "has the year '0000', not 1 to 9999"),
    ("2024-00-02T03:04:05Z", "has the month '00', not 1 to 12"),
    ("2024-13-02T03:04:05Z", "has the month '13', not 1 to 12"),
    ("2024-02-30T03:04:05Z", "has the day '30', not 1 to 29"),
    ("2023-02-29T03:04:05Z", "has the day '29', not 1 to 28"),
    ("1900-02-29T03:04:05Z", "has the day '29', not 1 to 28"),
    ("2024-04-31T03:04:05Z", "has the day '31', not 1 to 30"),
    ("2024-01-02T24:04:05Z", "has the hour '24', not 0 to 23"),
    ("2024-01-02T03:60:05Z", "has the minute '60', not 0 to 59"),
    ("2024-01-02T03:04:60Z", "has the second '60', not 0 to 59"),
    ("2024-01-+2T03:04:05Z", "has the day '+2', not 1 to 31"),
    ("2024-01-٣2T03:04:05Z", "has the day '٣2', not 1 to 31"),
    ("2024-01-02T03:04:05.٣Z", "has no digit after the point"),
]


@pytest.mark.rule("TIME-1")
@pytest.mark.parametrize(("text", "why"), BAD)
def test_invalid_times(text, why):
    with pytest.raises(InvalidValue) as error:
        Timestamp.parse(text)
    assert str(error.value) == f"timestamp {text!r} {why} (TIME-1)"


KNOWN = [  # of a day that was parsed before: text, the nanoseconds since its midnight
    ("2024-01-02T00:00:00.0Z", 0),
    ("2024-01-02T23:59:59.999999999Z", 86400 * 10**9 - 1),
    ("2024-01-02T03:04:05.6Z", 11045600000000),
    ("2024-01-02T03:04:05.6789012349Z", 11045678901234),
    ("2024-01-02T03:04:05Z", 11045 * 10**9),
    ("2024-01-02T03:04:05.5z", 11045500000000),
    ("2024-01-02t03:04:05.5Z", 11045500000000),
    ("2024-01-02T03:04:05.5+00:00", 11045500000000),
    ("2024-01-02T03:04:05.5-01:00", 14645500000000),
]


@pytest.mark.rule("TIME-1", "TIME-2")
@pytest.mark.parametrize(("text", "ns"), KNOWN)
def test_a_day_that_was_parsed_before(text, ns):
    midnight = Timestamp.parse("2024-01-02T00:00:00Z").ns
    assert Timestamp.parse(text).ns == midnight + ns


@pytest.mark.rule("TIME-1")
@pytest.mark.parametrize("text", [row[0] for row in BAD])
def test_invalid_times_of_a_day_that_was_parsed_before(text):
    Timestamp.parse("2024-01-02T00:00:00Z")
    with pytest.raises(InvalidValue, match="TIME-1"):
        Timestamp.parse(text.replace("05Z", "05.5Z"))


@pytest.mark.rule("TIME-1")
def test_times_of_many_days():
    for _ in range(2):
        for day in range(100):
            ns = (day * 86400 + 7) * 10**9 + 5
            assert Timestamp.parse(str(Timestamp(ns))).ns == ns


@pytest.mark.rule("TIME-1")
@pytest.mark.parametrize("value", [None, 5, b"2024-01-02T03:04:05Z"])
def test_parse_accepts_only_text(value):
    with pytest.raises(InvalidValue, match="is not a str"):
        Timestamp.parse(value)


@pytest.mark.rule("TIME-5")
@pytest.mark.parametrize("ns", [FIRST - 1, LAST + 1])
def test_years_of_four_digits(ns):
    with pytest.raises(InvalidValue, match="not in the years 1 to 9999") as error:
        Timestamp(ns)
    assert error.value.rule == "TIME-5"


@pytest.mark.rule("TIME-5")
def test_an_offset_may_lead_out_of_the_years():
    with pytest.raises(InvalidValue, match="not in the years"):
        Timestamp.parse("0001-01-01T00:00:00+00:01")


PARIS = ZoneInfo("Europe/Paris")
GIVEN = [  # the user's value, nanoseconds
    (Timestamp(5), 5),
    (5, 5),
    (-5, -5),
    ("1970-01-01T00:00:00.000000005Z", 5),
    (datetime(1970, 1, 1, tzinfo=timezone.utc), 0),
    (datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc), 1704164645678901000),
    (datetime(2024, 7, 1, 2, tzinfo=PARIS), 1719792000 * 10**9),
    (datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=-5))), 1704171600 * 10**9),
    # In 1900 Paris was 9 min 21 s ahead.
    (datetime(1900, 1, 1, tzinfo=PARIS), -2208989361 * 10**9),
]


@pytest.mark.rule("D-TIME-6")
@pytest.mark.parametrize(("value", "ns"), GIVEN)
def test_of_user_values(value, ns):
    assert Timestamp.of(value) == Timestamp(ns)


NO_TIME = "is neither RFC 3339 text nor a Timestamp, an aware datetime or nanoseconds"


@pytest.mark.rule("D-TIME-6")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (datetime(2024, 1, 2), "has no time zone: set its tzinfo"),  # noqa: DTZ001
        (time(1, 2, tzinfo=PARIS), "has no time zone: set its tzinfo"),
        (
            date(2024, 1, 2),
            NO_TIME,
        ),
        (1.5, NO_TIME),
        (None, NO_TIME),
        (True, "is not a whole number of nanoseconds"),
    ],
)
def test_of_invalid_times(value, why):
    with pytest.raises(InvalidValue, match=why) as error:
        Timestamp.of(value)
    assert error.value.rule == "D-TIME-6"


def test_of_a_time_without_a_date():
    with pytest.raises(InvalidValue, match="is not in the form"):
        Timestamp.of(time(1, 2, tzinfo=timezone.utc))


def test_of_an_offset_with_odd_seconds():
    odd = timezone(timedelta(seconds=1, microseconds=5))
    with pytest.raises(InvalidValue, match="second of the offset"):
        Timestamp.of(datetime(2024, 1, 2, tzinfo=odd))


def test_datetime():
    moment = Timestamp.parse("2024-01-02T03:04:05.678901234Z")
    assert moment.datetime() == datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    assert Timestamp(-1).datetime() == datetime(
        1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc
    )
    assert Timestamp(FIRST).datetime().year == 1
    assert Timestamp(LAST).datetime().year == 9999


def test_order_and_identity():
    early, late = Timestamp(1), Timestamp(2)
    assert early < late
    assert early <= Timestamp(1)
    assert late > early
    assert late >= Timestamp(2)
    assert early != late
    assert early != 1
    assert {early: "x"}[Timestamp(1)] == "x"
    assert pickle.loads(pickle.dumps(early)) == early
    for compare in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__"):
        assert getattr(early, compare)(1) is NotImplemented


@pytest.mark.rule("TIME-2", "TIME-3")
@given(st.integers(FIRST, LAST))
def test_every_moment_round_trips(ns):
    text = str(Timestamp(ns))
    assert Timestamp.parse(text).ns == ns
    assert len(text) <= 30


@given(st.datetimes(timezones=st.just(timezone.utc)))
def test_the_calendar_is_that_of_datetime(moment):
    stamp = Timestamp.of(moment)
    assert stamp.datetime() == moment
    assert str(stamp)[:19] == moment.isoformat()[:19]
