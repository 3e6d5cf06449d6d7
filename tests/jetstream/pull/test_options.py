from __future__ import annotations

import json
from inspect import signature

import pytest

from jetstream.config import ConsumerConfig
from jetstream.pull.options import (
    check_count,
    check_group,
    check_options,
    consume_limits,
    consume_template,
    default_expires,
    fetch_limits,
    fetch_template,
    first_template,
    next_subject,
    threshold,
)
from jetstream.streams.consumer import Consumer
from natsproto.errors import InvalidValue

S = 10**9
NAN = float("nan")
INF = float("inf")
PRIORITY = ["group", "min_pending", "min_ack_pending", "priority"]


def fetch(expires=30.0, heartbeat=None, no_wait=False, **priority):
    return fetch_template("next", expires, heartbeat, no_wait, priority, True)


def consume(expires=30.0, heartbeat=None, **priority):
    return consume_template("next", expires, heartbeat, priority, False)


@pytest.mark.rule("PULL-4")
@pytest.mark.rule("FETCH-6")
@pytest.mark.rule("FETCH-11")
@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, {"expires": 30 * S}),
        ({"expires": 30.5}, {"expires": 30.5 * S, "idle_heartbeat": 15.25 * S}),
        ({"expires": 90}, {"expires": 90 * S, "idle_heartbeat": 30 * S}),
        ({"expires": 90, "heartbeat": 0}, {"expires": 90 * S}),
        ({"expires": 0.001}, {"expires": S // 1000}),
        ({"expires": 1, "heartbeat": 0.5}, {"expires": S, "idle_heartbeat": S // 2}),
        ({"expires": 0.1, "heartbeat": 0.01}, {"expires": S // 10, "idle_heartbeat": S // 100}),
        ({"no_wait": True}, {"no_wait": True}),
        ({"no_wait": True, "expires": 90}, {"no_wait": True}),
        ({"group": "A", "min_pending": 1}, {"expires": 30 * S, "group": "A", "min_pending": 1}),
        ({"group": "", "priority": None}, {"expires": 30 * S}),
    ],
)
def test_fetch(options, body):
    template = fetch(**options)
    assert json.loads(template.body(1, 0, "")) == {"batch": 1, **body}
    assert template.heartbeat * S == body.get("idle_heartbeat", 0)
    assert (template.subject, template.pinned) == (b"next", True)
    assert template.expires == (0.0 if "no_wait" in body else options.get("expires", 30.0))


@pytest.mark.rule("PSUB-5")
@pytest.mark.parametrize(
    ("expires", "given", "heartbeat"), [(2.0, 0.0, 0.0), (40.0, 0.0, 20.0), (40.0, 3.0, 3.0)]
)
def test_for_the_first(expires, given, heartbeat):
    template = first_template("next", expires, True, given)
    beat = {"idle_heartbeat": heartbeat * S} if heartbeat else {}
    expected = {"batch": 5, "no_wait": True, "expires": expires * S, **beat}
    assert json.loads(template.body(5, 0, "")) == expected
    assert (template.expires, template.heartbeat, template.pinned) == (expires, heartbeat, True)


@pytest.mark.rule("D-FETCH-17")
@pytest.mark.parametrize(
    ("config", "seconds"),
    [
        ({}, 15.0),
        ({"ack_wait": 30.0}, 15.0),
        ({"ack_wait": 5.0}, 2.5),
        ({"ack_wait": 61.0}, 30.0),
        ({"ack_wait": 0.0001}, 0.001),
        ({"ack_wait": 30.0, "backoff": [2.0, 9.0]}, 1.0),
        ({"ack_policy": "all", "ack_wait": 5.0}, 2.5),
        ({"ack_policy": "none"}, 30.0),
        ({"ack_policy": "none", "ack_wait": 5.0}, 30.0),
    ],
)
def test_default_expires(config, seconds):
    assert default_expires(ConsumerConfig(**config)) == seconds


@pytest.mark.rule("D-FETCH-17")
def test_default_expires_of_a_consumer_with_the_defaults_of_the_server():
    assert default_expires(None) == default_expires(ConsumerConfig())


@pytest.mark.rule("CONSUME-20")
@pytest.mark.rule("PULL-5")
@pytest.mark.parametrize(
    ("options", "heartbeat"),
    [
        ({}, 15.0),
        ({"expires": 1}, 0.5),
        ({"expires": 1.000000001}, 0.5),
        ({"expires": 60}, 30.0),
        ({"expires": 3600}, 30.0),
        ({"expires": 60, "heartbeat": 30}, 30.0),
        ({"expires": 5, "heartbeat": 0.5}, 0.5),
    ],
)
def test_consume(options, heartbeat):
    template = consume(**options)
    body = json.loads(template.body(1, 0, ""))
    assert template.heartbeat == pytest.approx(heartbeat)
    assert body["idle_heartbeat"] == pytest.approx(heartbeat * S)
    assert 2 * body["idle_heartbeat"] <= body["expires"]
    assert (template.expires, template.pinned) == (options.get("expires", 30.0), False)


@pytest.mark.rule("PULL-6")
def test_priority():
    body = json.loads(
        consume(group="a/Z9_=-", min_pending=1, min_ack_pending=2**63 - 1, priority=0).body(
            1, 0, ""
        )
    )
    assert body["group"] == "a/Z9_=-"
    assert (body["min_pending"], body["min_ack_pending"], body["priority"]) == (1, 2**63 - 1, 0)


@pytest.mark.parametrize(
    ("make", "options", "rule"),
    [
        pytest.param(fetch, {"expires": 0}, "PULL-4", marks=pytest.mark.rule("PULL-4")),
        (fetch, {"expires": NAN}, "PULL-4"),
        (fetch, {"expires": INF}, "PULL-4"),
        (fetch, {"expires": "1"}, "PULL-4"),
        (fetch, {"expires": True}, "PULL-4"),
        (consume, {"expires": 0.99}, "PULL-4"),
        (consume, {"heartbeat": 0.49}, "PULL-4"),
        (fetch, {"expires": 10, "heartbeat": 5.1}, "PULL-5"),
        (fetch, {"expires": 100, "heartbeat": 31}, "PULL-5"),
        (fetch, {"no_wait": True, "heartbeat": 1}, "PULL-5"),
        (consume, {"expires": 100, "heartbeat": 31}, "PULL-5"),
        (consume, {"expires": 10, "heartbeat": 5.1}, "PULL-5"),
        (consume, {"priority": 1}, "PULL-6"),
        (consume, {"group": "A", "priority": 10}, "PULL-6"),
        (consume, {"group": "A", "priority": -1}, "PULL-6"),
        (consume, {"group": "A", "min_pending": 0}, "PULL-6"),
        (consume, {"group": "A", "min_ack_pending": 1.0}, "PULL-6"),
        (consume, {"group": "A", "min_ack_pending": True}, "PULL-6"),
        (consume, {"group": "x" * 17}, "PULL-6"),
        (consume, {"group": "a b"}, "PULL-6"),
        (consume, {"group": 5}, "PULL-6"),
        (fetch, {"no_wait": "yes"}, ""),
        (fetch, {"no_wait": None}, ""),
    ],
)
def test_refused(make, options, rule):
    with pytest.raises(InvalidValue) as caught:
        make(**options)
    assert caught.value.rule == rule


@pytest.mark.rule("D-HINT-1", "D-PULL-15")
def test_an_option_of_nats_py():
    with pytest.raises(InvalidValue, match=r"fetch has no option 'batch'; use max_messages \(D-P"):
        check_options("fetch", {"batch": 5})
    with pytest.raises(InvalidValue, match="next has no option 'batch'; it has expires"):
        check_options("next", {"batch": 5})


@pytest.mark.rule("D-PULL-15")
@pytest.mark.parametrize("call", ["fetch", "next", "consume"])
def test_an_option_that_does_not_exist(call):
    check_options(call, {})
    check_options(call, dict.fromkeys(PRIORITY))
    with pytest.raises(InvalidValue) as caught:
        check_options(call, {"wait": 2.0})
    options = [name for name in signature(getattr(Consumer, call)).parameters if name != "self"]
    assert options.pop() == "priority"  # the rest
    known = ", ".join([*options, *PRIORITY])
    assert str(caught.value) == f"{call} has no option 'wait'; it has {known} (D-PULL-15)"


TEXTS = [
    (
        lambda: fetch(expires="2"),
        "expires '2' is not a number of seconds from 0.001 to 1000000000 (PULL-4)",
    ),
    (
        lambda: fetch(no_wait=True, heartbeat=1),
        "heartbeat 1 and no_wait: there is no time for heartbeats (PULL-5)",
    ),
    (lambda: consume(min_pending=5), "min_pending 5 needs a group (PULL-6)"),
    (lambda: check_group(""), "group '' is not 1 to 16 letters, digits or /_=- (PULL-6)"),
    (
        lambda: fetch_limits(5, 9),
        "fetch takes either max_messages or max_bytes, not 5 and 9 (FETCH-2)",
    ),
    (
        lambda: consume_limits(5, 9, None, None, None),
        "consume takes either max_messages or max_bytes, not 5 and 9 (CONSUME-2)",
    ),
    (
        lambda: consume_limits(None, 9, 5, None, None),
        "threshold_messages 5 is not a threshold of max_bytes (CONSUME-2)",
    ),
    (
        lambda: consume_limits(None, None, None, 5, None),
        "threshold_bytes 5 is not a threshold of max_messages (CONSUME-2)",
    ),
]


@pytest.mark.parametrize(("call", "text"), TEXTS)
def test_errors_state_the_problem(call, text):
    with pytest.raises(InvalidValue) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.rule("PULL-3")
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", 2**63])
def test_counts(value):
    assert check_count("max_messages", 1) == 1
    with pytest.raises(InvalidValue, match=r"max_messages .* from 1"):
        check_count("max_messages", value)


@pytest.mark.rule("CONSUME-3")
@pytest.mark.rule("CONSUME-4")
@pytest.mark.parametrize(
    ("value", "limit", "found"),
    [(None, 1, 1), (None, 2, 1), (None, 3, 2), (None, 500, 250), (1, 500, 1), (500, 500, 500)],
)
def test_threshold(value, limit, found):
    assert threshold("threshold_messages", value, limit) == found


@pytest.mark.rule("CONSUME-3")
def test_threshold_above_the_limit():
    with pytest.raises(InvalidValue, match="above the limit 10"):
        threshold("threshold_messages", 11, 10)


@pytest.mark.rule("CONSUME-2")
@pytest.mark.rule("CONSUME-3")
@pytest.mark.parametrize(
    ("given", "limits"),  # max_messages, max_bytes, their thresholds, stop_after
    [
        ((None, None, None, None, None), ("max_messages", 500, 250, 0)),
        ((10, None, None, None, 7), ("max_messages", 10, 5, 7)),
        ((1, None, None, None, None), ("max_messages", 1, 1, 0)),
        ((10, None, 3, None, None), ("max_messages", 10, 3, 0)),
        ((None, 1000, None, None, None), ("max_bytes", 1000, 500, 0)),
        ((None, 1000, None, 100, 7), ("max_bytes", 1000, 100, 7)),
        ((10, 1000, None, None, None), None),
        ((10, None, None, 5, None), None),
        ((None, 1000, 5, None, None), None),
        ((0, None, None, None, None), None),
        ((None, 0, None, None, None), None),
        ((10, None, 11, None, None), None),
        ((10, None, None, None, 0), None),
    ],
)
def test_consume_limits(given, limits):
    if limits is None:
        with pytest.raises(InvalidValue):
            consume_limits(*given)
        return
    name, limit, refill_at, stop_after = limits
    expected = {name: limit, "threshold": refill_at, "stop_after": stop_after}
    assert consume_limits(*given) == expected


@pytest.mark.rule("FETCH-2")
def test_fetch_limits():
    assert fetch_limits(5, None) == (5, 0)
    assert fetch_limits(None, 4096) == (1_000_000, 4096)
    for given in [(None, None), (5, 4096)]:
        with pytest.raises(InvalidValue, match="either max_messages or max_bytes"):
            fetch_limits(*given)
    for given in [(0, None), (None, 0)]:
        with pytest.raises(InvalidValue, match="not a whole number from 1"):
            fetch_limits(*given)


def test_the_subject_of_pulls():
    assert next_subject("$JS.hub.API", "S", "c") == "$JS.hub.API.CONSUMER.MSG.NEXT.S.c"
