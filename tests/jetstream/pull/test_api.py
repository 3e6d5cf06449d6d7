from __future__ import annotations

import pytest

from jetstream.errors import ConsumerDeleted, HeartbeatMissed, PullRefused
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidValue,
    TimeoutExpired,
)
from tests.connection.support import PONG
from tests.jetstream.stages import Stage, messages, status, timer


def fetch(puller, max_messages=None, max_bytes=None, expires=30.0, heartbeat=None, no_wait=False):
    return puller.fetch(max_messages, max_bytes, expires, heartbeat, no_wait, {})


def consume(puller, max_messages=None, max_bytes=None, stop_after=None, **options):
    thresholds = [options.pop(f"threshold_{unit}", None) for unit in ("messages", "bytes")]
    return puller.consume(
        max_messages,
        max_bytes,
        options.pop("expires", 30.0),
        None,
        *thresholds,
        stop_after,
        options,
        options.pop("nak_on_exit", False),
    )


@pytest.mark.rule("FETCH-1")
@pytest.mark.rule("PULL-2")
def test_fetch():
    stage = Stage()
    puller = stage.puller()
    batch = stage.run(fetch(puller, 2), messages(stage, 1), messages(stage, 2))
    assert [msg.metadata.stream_seq for msg in batch] == [1, 2]
    assert (batch.error, batch[0].settled) == (None, False)
    assert stage.sent() == ["SUB", "pull 2"]
    batch = stage.run(fetch(puller, 2), status(stage, 2, "408 Request Timeout"))
    assert len(batch) == 0
    assert stage.sent() == ["pull 2"]


@pytest.mark.rule("FETCH-4")
@pytest.mark.parametrize("count", [0, 1])
def test_errors(count):
    stage = Stage()
    script = [messages(stage, 1)][:count] + [status(stage, 1, "409 Consumer Deleted")]
    result = stage.run(fetch(stage.puller(ack_none=True), 2), *script)
    error = result.error if count else result
    assert isinstance(error, ConsumerDeleted)
    assert (error.code, error.description) == (409, "Consumer Deleted")
    if count:
        assert (len(result), result[0].settled) == (1, True)


@pytest.mark.rule("FETCH-2")
@pytest.mark.rule("PULL-3")
@pytest.mark.parametrize(
    "limits", [{}, {"max_messages": 1, "max_bytes": 1}, {"max_messages": 0}, {"max_bytes": 0}]
)
def test_limits(limits):
    stage = Stage()
    with pytest.raises(InvalidValue):
        fetch(stage.puller(), **limits)
    assert stage.sent() == []


@pytest.mark.rule("PULL-4")
def test_a_template_is_used_again():
    """Options that are the same objects make the same pull; all others are checked."""
    puller = Stage().puller()

    def template(expires=5.0, heartbeat=None, no_wait=False, **priority):
        return puller.fetch(1, None, expires, heartbeat, no_wait, priority)._pull[0]

    first = template()
    assert template() is first
    assert template(expires=6.0).expires == 6.0
    assert template(no_wait=True).expires == 0.0
    assert template(heartbeat=1.0).heartbeat == 1.0
    assert template(heartbeat=1.0, group="g") is not template(heartbeat=1.0)
    for wrong in ({"expires": True}, {"no_wait": 0}, {"heartbeat": False, "no_wait": 1}):
        template(expires=1)
        with pytest.raises(InvalidValue):
            template(**wrong)
    before = template()
    puller.pinned = True
    assert (before.pinned, template().pinned) == (False, True)


@pytest.mark.rule("PULL-13")
@pytest.mark.rule("FETCH-9")
def test_bytes():
    stage = Stage()
    line = "409 Message Size Exceeds MaxBytes"
    result = stage.run(fetch(stage.puller(), max_bytes=400), status(stage, 1, line))
    assert isinstance(result, PullRefused)
    assert stage.sent() == ["SUB", "pull 1000000"]


@pytest.mark.rule("FETCH-12")
@pytest.mark.rule("FETCH-5")
@pytest.mark.parametrize(
    ("options", "at", "error"),
    [
        ({"expires": 1.0}, 2.0, TimeoutExpired),
        ({"expires": 60.0}, 60.0, HeartbeatMissed),
        ({"expires": 60.0, "heartbeat": 0}, 61.0, TimeoutExpired),
    ],
)
def test_a_silent_server(options, at, error):
    stage = Stage()
    result = stage.run(fetch(stage.puller(), 1, **options), timer(stage, at))
    assert isinstance(result, error)


@pytest.mark.rule("D-FETCH-7")
def test_without_a_connection():
    stage = Stage(up=False)
    puller = stage.puller()
    result = stage.run(fetch(puller, 1), stage.wire.up, messages(stage, 1))
    assert len(result) == 1
    result = stage.run(fetch(puller, 1), lambda: stage.wire.lost(at=10.0))
    assert isinstance(result, ConnectionLost)


@pytest.mark.rule("D-FETCH-10")
def test_idleness():
    stage = Stage()
    puller = stage.puller()
    stage.run(fetch(puller, 1), messages(stage, 1, 2))
    assert stage.sent() == ["SUB", "pull 1"]
    stage.wire.timer(at=30.0)
    assert (stage.sent(), stage.wire.connection.subscriptions.by_sid) == (["UNSUB"], {})
    batch = stage.run(fetch(puller, 2), messages(stage, 3, sid=2))
    assert [msg.metadata.stream_seq for msg in batch] == [2, 3]
    assert stage.sent() == ["SUB", "pull 1"]


@pytest.mark.rule("D-FETCH-18")
def test_errors_name_the_consumer():
    stage = Stage()
    error = stage.run(fetch(stage.puller(), 1), status(stage, 1, "503"))
    assert str(error) == (
        "pull from consumer 'C' of stream 'S' failed: 503 (the consumer or its stream does not"
        " exist, has no leader, or is in another account, domain or prefix)"
    )
    assert (error.code, error.description) == (503, "")


@pytest.mark.rule("PULL-12")
def test_the_pin_carries_over_to_the_next_subscription():
    stage = Stage()
    puller = stage.puller(pinned=True)
    stage.run(fetch(puller, 1), messages(stage, 1))
    puller._idle[0].pin = "P"
    stage.wire.timer(at=30.0)
    stage.run(fetch(puller, 1), messages(stage, 2, sid=2))
    assert puller._idle[0].pin == "P"


@pytest.mark.rule("D-FETCH-10")
def test_many_fetches_at_once_and_one_after_the_other():
    stage = Stage()
    puller = stage.puller()
    batches = []

    def another():
        script, stage.script = stage.script, []
        batches.append(stage.run(fetch(puller, 1), messages(stage, 2, sid=2)))
        stage.script = script

    batches.append(stage.run(fetch(puller, 1), another, messages(stage, 1)))
    assert [batch[0].metadata.stream_seq for batch in batches] == [2, 1]
    for number in range(20):
        sid = puller._idle[-1].sid
        stage.run(fetch(puller, 1), messages(stage, number, sid=sid))
    assert len(stage.wire.connection.subscriptions.by_sid) == 2


@pytest.mark.rule("D-FETCH-7")
def test_a_client_that_is_closed_or_drained():
    stage = Stage()
    puller = stage.puller()
    closing = stage.run(fetch(puller, 1), lambda: stage.wire.tell("close"))
    assert isinstance(closing, ConnectionClosed)
    assert isinstance(stage.run(fetch(puller, 1)), ConnectionClosed)
    stage = Stage()
    puller = stage.puller()
    drain = []
    batch = stage.run(
        fetch(puller, 2),
        messages(stage, 1),
        lambda: drain.append(stage.wire.connection.start_drain(9.0)),
        lambda: stage.wire.data(PONG),
    )
    assert (len(batch), type(batch.error)) == (1, ConnectionClosed)
    stage.wire.data(PONG)
    assert drain[0].done
    assert drain[0].error is None


@pytest.mark.rule("CONSUME-2")
@pytest.mark.rule("CONSUME-3")
@pytest.mark.parametrize(
    ("options", "batch", "limit", "threshold"),
    [
        ({}, 500, 500, 250),
        ({"max_messages": 1}, 1, 1, 1),
        ({"max_messages": 10, "threshold_messages": 10}, 10, 10, 10),
        ({"max_bytes": 1024}, 1_000_000, 1024, 512),
        ({"max_bytes": 1024, "threshold_bytes": 3}, 1_000_000, 1024, 3),
        ({"stop_after": 7}, 7, 500, 250),
        ({"max_bytes": 1024, "stop_after": 7}, 7, 1024, 512),
    ],
)
def test_consume(options, batch, limit, threshold):
    stage = Stage()
    machine = consume(stage.puller(), **options)._machine
    assert stage.sent() == ["SUB", f"pull {batch}"]
    assert (machine.refill.limit, machine.refill.threshold) == (limit, threshold)
    assert machine._by_bytes is ("max_bytes" in options)


@pytest.mark.rule("CONSUME-2")
@pytest.mark.rule("PULL-3")
@pytest.mark.parametrize(
    "options",
    [
        {"max_messages": 1, "max_bytes": 1},
        {"max_messages": 0},
        {"max_bytes": 0},
        {"stop_after": 0},
        {"max_messages": 5, "threshold_messages": 6},
        {"max_messages": 5, "threshold_bytes": 1},
        {"max_bytes": 5, "threshold_messages": 1},
        {"threshold_bytes": 1},
        {"expires": 0.5},
        {"nak_on_exit": 1},
    ],
)
def test_refused(options):
    stage = Stage()
    with pytest.raises(InvalidValue):
        consume(stage.puller(), **options)
    assert stage.sent() == []


@pytest.mark.rule("D-CONSUME-30")
@pytest.mark.parametrize("nak", [False, True])
def test_nak_on_exit(nak):
    assert consume(Stage().puller(), nak_on_exit=nak).nak_on_exit is nak


@pytest.mark.rule("CONSUME-9")
def test_consume_without_a_connection():
    stage = Stage(up=False)
    consume(stage.puller(), 10)
    assert stage.sent() == []
    stage.wire.connect().greet().data(PONG)
    assert stage.sent() == ["PING", "SUB", "pull 10"]
    stage.wire.lost(at=10.0).greet().data(PONG)
    assert stage.sent() == ["PING", "SUB", "pull 10"]


@pytest.mark.rule("PSUB-9")
def test_close():
    stage = Stage()
    puller = stage.puller()
    stage.run(fetch(puller, 1), messages(stage, 1, 2, 3))
    rest = puller.close()
    assert [msg.metadata.stream_seq for msg in rest] == [2, 3]
    assert stage.sent() == ["SUB", "pull 1", "UNSUB"]
    assert puller.close() == []


@pytest.mark.rule("PSUB-9")
def test_close_while_a_fetch_waits():
    stage = Stage()
    puller = stage.puller()
    ended = stage.run(fetch(puller, 2), messages(stage, 1), puller.close)
    assert [msg.metadata.stream_seq for msg in ended] == [1]
    assert isinstance(ended.error, ConnectionClosed)
    assert isinstance(stage.run(fetch(puller, 2), puller.close), ConnectionClosed)


@pytest.mark.rule("CONSUME-25")
@pytest.mark.parametrize("looks_up", [True, False])
def test_the_lookup_of_a_consumer_that_does_not_answer(looks_up):
    stage = Stage()
    puller = stage.puller()
    puller.looks_up = looks_up
    consume(puller, 10)
    stage.wire.sent()
    stage.wire.timer(at=30.0)
    assert (b"PUB $JS.API.CONSUMER.INFO.S.C " in stage.wire.sent()) is looks_up
