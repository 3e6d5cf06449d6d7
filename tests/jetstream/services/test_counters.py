from __future__ import annotations

import pytest

from jetstream.services.counters import Counters


def shown(counters):
    return (
        counters.num_requests,
        counters.num_errors,
        counters.last_error,
        counters.processing_ns,
        counters.average_ns,
    )


@pytest.mark.rule("SERVICE-16", "D-SERVICE-5")
def test_requests_are_counted_when_they_begin_and_timed_when_they_end():
    counters = Counters()
    assert shown(counters) == (0, 0, "", 0, 0)
    first, second = counters.begin(), counters.begin()
    assert shown(counters) == (2, 0, "", 0, 0)
    counters.end(0.25, first)
    assert shown(counters) == (2, 0, "", 250_000_000, 125_000_000)
    counters.fail("bad", second)
    counters.end(0.000000001, second)
    assert shown(counters) == (2, 1, "bad", 250_000_001, 125_000_000)
    counters.fail("worse", second)
    assert shown(counters)[1:3] == (2, "worse")


def test_time_does_not_go_back():
    counters = Counters()
    counters.end(-1.0, counters.begin())
    assert counters.processing_ns == 0


def test_the_last_error_is_short():
    counters = Counters()
    counters.fail("x" * 1000, counters.begin())
    assert len(counters.last_error) < 250


@pytest.mark.rule("SERVICE-19", "D-SERVICE-20")
def test_a_reset_forgets_what_began_before():
    counters = Counters()
    old = counters.begin()
    counters.fail("bad", old)
    counters.reset()
    assert shown(counters) == (0, 0, "", 0, 0)
    counters.fail("bad", old)
    counters.end(1.0, old)
    assert shown(counters) == (0, 0, "", 0, 0)
    counters.end(1.0, counters.begin())
    assert shown(counters) == (1, 0, "", 10**9, 10**9)


@pytest.mark.rule("D-SERVICE-9")
def test_refused_requests_are_errors():
    counters = Counters()
    counters.refuse("full")
    assert shown(counters) == (1, 1, "full", 0, 0)
