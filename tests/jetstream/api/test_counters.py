from __future__ import annotations

import pytest

from jetstream.api.counters import Counter, increment, read_counter, read_value
from jetstream.api.stored import StoredMsg
from jetstream.errors import InvalidResponse
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidValue
from natsproto.wire.headers import Headers


@pytest.mark.rule("COUNT-1")
@pytest.mark.parametrize(
    ("by", "text"), [(1, "+1"), (0, "+0"), (-10, "-10"), (10**30, "+1" + "0" * 30)]
)
def test_increments(by, text):
    assert increment(by) == text


@pytest.mark.rule("COUNT-1")
@pytest.mark.parametrize("by", [1.0, True, "1", None, pytest.param(10**5000, id="long")])
def test_invalid_increments(by):
    with pytest.raises(InvalidValue, match="COUNT-1"):
        increment(by)


@pytest.mark.rule("COUNT-3")
@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("-5", -5), ("+5", 5), ("0", 0), ("1" + "0" * 40, 10**40)]
)
def test_values(text, value):
    assert read_value(text) == value


@pytest.mark.rule("COUNT-3")
@pytest.mark.parametrize(
    "text", ["", "-", "+-5", " 5", "1_000", "\u0665", "1.5", 5, 5.0, None, True, "9" * 5000]
)
def test_invalid_values(text):
    with pytest.raises(InvalidResponse):
        read_value(text)


def message(data, **headers):
    block = Headers({name.replace("_", "-"): value for name, value in headers.items()}).encode()
    return StoredMsg("S", "c.x", 1, Timestamp(0), data, block if headers else None)


COUNTERS = [
    (message(b'{"val":"5"}'), Counter("c.x", 5, None, {})),
    (message(b'{"val":"-5","new":1}', Nats_Incr="-7"), Counter("c.x", -5, -7, {})),
    (
        message(
            b'{"val":"100"}',
            Nats_Incr="+2",
            Nats_Counter_Sources='{"ES":{"c.es":"60"},"EU":{"c.eu":"40","c.uk":"-1"}}',
        ),
        Counter("c.x", 100, 2, {"ES": {"c.es": 60}, "EU": {"c.eu": 40, "c.uk": -1}}),
    ),
]


@pytest.mark.rule("COUNT-4")
@pytest.mark.parametrize(("msg", "counter"), COUNTERS)
def test_counters(msg, counter):
    assert read_counter(msg) == counter


@pytest.mark.rule("COUNT-3", "COUNT-4")
@pytest.mark.parametrize(
    "msg",
    [
        message(b""),
        message(b"5"),
        message(b"{}"),
        message(b"[]"),
        message(b'{"val":5}'),
        message(b'{"val":"5.5"}'),
        message(b"\xff"),
        message(b"[" * 100_000),
        message(b'{"val":"5"}', Nats_Incr="x"),
        message(b'{"val":"5"}', Nats_Counter_Sources="x"),
        message(b'{"val":"5"}', Nats_Counter_Sources="[1]"),
        message(b'{"val":"5"}', Nats_Counter_Sources='{"S":1}'),
        message(b'{"val":"5"}', Nats_Counter_Sources='{"S":{"a":1}}'),
    ],
)
def test_messages_that_are_not_counters(msg):
    with pytest.raises(InvalidResponse):
        read_counter(msg)
