from __future__ import annotations

import pytest

from jetstream.errors import ConsumerDeleted
from jetstream.events import PullWarning
from jetstream.pull.messages import Batch, machine_of
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidState,
    TimeoutExpired,
)
from natsproto.port import run_sync
from tests.connection.support import PONG
from tests.jetstream.stages import Cancelled, Stage, cancel, messages, status, timer


def begin(max_messages=10, stop_after=None):
    stage = Stage()
    consuming = stage.puller().consume(
        max_messages,
        None,
        30.0,
        5.0,
        None,
        None,
        stop_after,
        {},
    )
    stage.sent()
    return stage, consuming


async def numbers(consuming, most=1000):
    """Return the sequences of an iteration until it ends, or `most` of them."""
    found = []
    async for msg in consuming:
        found.append(msg.metadata.stream_seq)
        if len(found) == most:
            break
    return found


def test_batch():
    batch = Batch(["a", "b"], None)
    assert (len(batch), batch[1], list(batch)) == (2, "b", ["a", "b"])
    assert repr(batch) == "<Batch of 2, error None>"


@pytest.mark.rule("CONSUME-1")
def test_iteration():
    stage, consuming = begin(4)
    assert machine_of(consuming) is consuming._machine
    assert (consuming.pending, consuming.closed, consuming.dropped) == (0, False, 0)
    found = stage.run(
        numbers(consuming, 5), messages(stage, 1, 2), messages(stage, 3), messages(stage, 4, 5)
    )
    assert found == [1, 2, 3, 4, 5]
    assert stage.sent() == ["pull 3"]


@pytest.mark.rule("CONSUME-1")
def test_others_have_their_turn():
    stage, consuming = begin(1000)
    messages(stage, *range(200))()
    stage.run(numbers(consuming, 200))
    assert stage.checkpoints == 3


@pytest.mark.rule("D-CONSUME-17")
def test_next():
    stage, consuming = begin()
    msg = stage.run(consuming.next(), messages(stage, 1, at=1.0))
    assert msg.metadata.stream_seq == 1
    result = stage.run(consuming.next(timeout=2.0), timer(stage, 2.9), timer(stage, 3.0))
    assert isinstance(result, TimeoutExpired)
    assert stage.wire.connection.bus.timers.pop_due(3.1) == []
    msg = stage.run(consuming.next(timeout=2.0), messages(stage, 2))
    assert msg.metadata.stream_seq == 2
    lost = stage.run(
        consuming.next(timeout=2.0), lambda: stage.wire.lost(at=4.0), timer(stage, 5.0)
    )
    assert isinstance(lost, TimeoutExpired)


@pytest.mark.rule("D-CONSUME-17")
def test_cancelled():
    stage, consuming = begin()
    assert isinstance(stage.run(consuming.next(timeout=1.0), cancel), Cancelled)
    messages(stage, 1)()
    assert stage.run(consuming.next()).metadata.stream_seq == 1


@pytest.mark.rule("D-CONSUME-7")
def test_a_pause_that_begins_when_a_message_is_taken():
    stage, consuming = begin(4)
    messages(stage, 1, 2, 3)()
    status(stage, 1, "409 Exceeded MaxWaiting")()
    stage.run(consuming.next())
    stage.run(consuming.next())
    assert stage.sent() == []
    stage.wire.timer(at=0.05)
    assert stage.sent() == ["pull 3"]


@pytest.mark.rule("CONSUME-6")
@pytest.mark.rule("D-CONSUME-18")
def test_a_consumer_that_is_deleted():
    stage, consuming = begin()
    messages(stage, 1)()
    status(stage, 1, "409 Consumer Deleted")()
    assert stage.sent() == ["UNSUB"]
    assert stage.run(consuming.next()).metadata.stream_seq == 1
    for call in (consuming.next, consuming.__anext__):
        assert isinstance(stage.run(call()), ConsumerDeleted)
    assert consuming.closed


@pytest.mark.rule("CONSUME-14")
@pytest.mark.parametrize("nak", [False, True])
def test_stop(nak):
    stage, consuming = begin()
    messages(stage, 1, 2)()
    rest = stage.run(consuming.stop(nak=nak))
    assert [msg.metadata.stream_seq for msg in rest] == ([] if nak else [1, 2])
    assert stage.wire.sent().count(b"-NAK") == (2 if nak else 0)
    assert stage.wire.connection.subscriptions.by_sid == {}
    assert (consuming.closed, stage.run(consuming.stop())) == (True, [])
    assert isinstance(stage.run(consuming.next()), InvalidState)
    assert stage.run(numbers(consuming)) == []


@pytest.mark.rule("CONSUME-14")
def test_stop_wakes_waiting_callers():
    stage, consuming = begin()
    assert isinstance(stage.run(consuming.next(), lambda: run_sync(consuming.stop())), InvalidState)


@pytest.mark.rule("CONSUME-14")
def test_a_block_ends_with_stop():
    stage, consuming = begin()

    async def block():
        async with consuming as entered:
            assert entered is consuming
            messages(stage, 1)()

    stage.run(block())
    assert stage.sent() == ["UNSUB"]


@pytest.mark.rule("CONSUME-15")
def test_drain():
    stage, consuming = begin()
    messages(stage, 1)()

    def fence():
        messages(stage, 2)()
        stage.wire.data(PONG)

    stage.run(consuming.drain(), fence)
    assert stage.sent() == ["UNSUB", "PING"]
    assert (consuming.pending, consuming.closed) == (2, False)
    assert stage.run(numbers(consuming)) == [1, 2]
    assert (consuming.closed, stage.sent()) == (True, [])


@pytest.mark.rule("CONSUME-15")
def test_the_client_drains():
    stage, consuming = begin()
    messages(stage, 1, 2)()
    drain = stage.wire.connection.start_drain(9.0)
    stage.wire.data(PONG)
    assert stage.run(numbers(consuming)) == [1, 2]
    assert stage.sent() == ["UNSUB", "PING", "PING"]
    stage.wire.data(PONG)
    assert drain.done
    assert drain.error is None


@pytest.mark.rule("CONSUME-15")
def test_the_client_drains_and_the_block_ends():
    stage, consuming = begin()
    messages(stage, 1, 2)()
    drain = stage.wire.connection.start_drain(9.0)
    stage.wire.data(PONG)
    stage.run(consuming.stop())
    stage.wire.data(PONG)
    assert drain.done
    assert drain.error is None


@pytest.mark.rule("CONSUME-16")
def test_stop_after():
    stage, consuming = begin(stop_after=2)
    messages(stage, 1, 2, 3)()
    assert stage.run(numbers(consuming)) == [1, 2]
    assert (consuming.closed, consuming.pending, stage.sent()) == (True, 0, ["UNSUB"])
    assert [msg.metadata.stream_seq for msg in stage.run(consuming.stop())] == [3]


@pytest.mark.rule("RUN-3")
def test_run():
    stage, consuming = begin(stop_after=2)
    seen = []

    async def callback(msg):
        seen.append(msg.metadata.stream_seq)
        await msg.ack()

    assert stage.run(consuming.run(callback), messages(stage, 1, 2)) is None
    assert (seen, consuming.closed) == ([1, 2], True)


@pytest.mark.rule("D-CONSUME-18")
def test_the_end_of_the_client():
    stage, consuming = begin()
    assert stage.run(numbers(consuming), lambda: stage.wire.tell("close")) == []
    stage = Stage()
    stage.wire.connection.options.max_reconnects = 0
    consuming = stage.puller().consume(10, None, 30.0, None, None, None, None, {})
    result = stage.run(numbers(consuming), stage.wire.lost)
    assert isinstance(result, ConnectionClosed)


@pytest.mark.rule("D-CONSUME-17")
@pytest.mark.rule("CONSUME-8")
def test_events():
    stage, consuming = begin()
    event = stage.run(consuming.events.next(), timer(stage, 10.0))
    assert isinstance(event, PullWarning)
    result = stage.run(consuming.events.next(timeout=1.0), timer(stage, 11.0))
    assert isinstance(result, TimeoutExpired)

    async def one():
        async for event in consuming.events:
            return event

    event = stage.run(one(), status(stage, 3, "409 Leadership Change"))
    assert event.error.description == "Leadership Change"
    ended = stage.run(consuming.events.next(), lambda: stage.wire.tell("close"))
    assert isinstance(ended, ConnectionClosed)
    assert not isinstance(ended, ConnectionLost)
    assert stage.run(one()) is None
