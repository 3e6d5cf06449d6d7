from __future__ import annotations

import math
from datetime import timedelta

import pytest

from natsproto.durations import check_patience, check_seconds, in_range, to_seconds
from natsproto.errors import InvalidValue


class Odd:
    """A duration whose seconds are not a number."""

    def total_seconds(self):
        return "2"


@pytest.mark.rule("D-SPAN-1")
@pytest.mark.parametrize(
    ("value", "seconds"),
    [(timedelta(minutes=2), 120.0), (timedelta(microseconds=1), 1e-06), (2, 2), (2.5, 2.5)],
)
def test_a_timedelta_is_converted_and_a_number_is_kept(value, seconds):
    assert to_seconds(value) == check_seconds("timeout", value) == seconds


@pytest.mark.rule("D-SPAN-1")
@pytest.mark.parametrize("value", [None, "2", timedelta, object()])
def test_other_values_are_not_converted(value):
    assert to_seconds(value) is value


@pytest.mark.rule("D-SPAN-2")
@pytest.mark.parametrize("value", [0, 0.0, 1, 2.5, 10**9, timedelta(0)])
def test_seconds(value):
    assert check_seconds("timeout", value) == to_seconds(value)


@pytest.mark.rule("D-SPAN-2")
@pytest.mark.parametrize(
    "value",
    [-1, -0.1, math.nan, math.inf, 10**9 + 1, True, "1", None, timedelta, timedelta(-1), Odd()],
)
def test_a_value_that_is_not_a_duration_is_rejected(value):
    text = r"^timeout .* is not a number of seconds from 0 to 1000000000 \(D-SPAN-2\)$"
    with pytest.raises(InvalidValue, match=text):
        check_seconds("timeout", value)


def test_limits_and_the_rule_of_the_caller():
    assert check_seconds("expires", 1.0, 1.0, 2.0, "PULL-4") == 1.0
    for value in (0.5, timedelta(seconds=3)):
        with pytest.raises(InvalidValue, match=r"seconds from 1 to 2 \(PULL-4\)$"):
            check_seconds("expires", value, 1.0, 2.0, "PULL-4")


def test_in_range():
    assert [in_range(value, 1, 2) for value in (1, 1.5, 2)] == [True] * 3
    assert [in_range(value, 1, 2) for value in (0, 3, True, "1", None)] == [False] * 5


@pytest.mark.rule("D-REQ-11")
def test_a_response_takes_time():
    assert check_patience("ack_timeout", 0.001) == 0.001
    assert check_patience("ack_timeout", timedelta(seconds=1)) == 1.0
    for value in (0, 0.0, timedelta(0)):
        with pytest.raises(InvalidValue, match=r"ack_timeout 0 leaves no time .* \(D-REQ-11\)$"):
            check_patience("ack_timeout", value)
