"""The object that fetch returns: awaited, iterated, left, dropped."""

from __future__ import annotations

import collections.abc
import gc

import pytest

from jetstream.errors import ConsumerDeleted
from natsproto.errors import InvalidState, NatsError, TimeoutExpired
from natsproto.port import run_sync
from tests.connection.support import PONG
from tests.jetstream.stages import Cancelled, Stage, cancel, messages, status, timer


def fetch(puller, count=3, expires=30.0, no_wait=False):
    return puller.fetch(count, None, expires, None, no_wait, {})


async def take(fetching, most=1000):
    """Return the sequences of the messages of an iteration, and the error at its end."""
    taken = []
    try:
        async for msg in fetching:
            taken.append(msg.metadata.stream_seq)
            if len(taken) == most:
                break
    except NatsError as error:
        return taken, error
    return taken, None


@pytest.mark.rule("D-SNAPSHOT-1")
def test_snapshots_of_an_iteration():
    stage = Stage()
    made = fetch(stage.puller())
    assert made.snapshot().stopped
    assert stage.sent() == []
    stage.run(made.__anext__(), messages(stage, 1, 2))
    found = made.snapshot()
    assert (found.pending, found.pulls[0].messages) == (1, 1)
    stage.run(made.aclose())
    assert made.snapshot().ended


@pytest.mark.rule("FETCH-14")
def test_unused_it_does_nothing():
    stage = Stage()
    made = fetch(stage.puller())
    assert stage.sent() == []
    made.close()
    del made
    assert (stage.sent(), stage.later) == ([], [])


@pytest.mark.rule("FETCH-14")
@pytest.mark.parametrize("way", ["await", "send", "iter"])
def test_awaited(way):
    stage = Stage()
    made = fetch(stage.puller(), 2)
    assert isinstance(made, collections.abc.Coroutine)  # the methods that task factories look for

    async def wait():
        return await made

    call = {"await": wait, "send": lambda: made, "iter": made.__iter__}[way]()
    batch = stage.run(call, messages(stage, 1, 2))
    assert [msg.metadata.stream_seq for msg in batch] == [1, 2]


@pytest.mark.rule("FETCH-14")
def test_as_a_task_it_is_canceled_and_closed():
    stage = Stage()
    puller = stage.puller()

    class Pause:
        def __await__(self):
            yield

    async def wait(waitable):
        await Pause()

    stage.wait = wait
    for end in (lambda made: made.close(), lambda made: made.throw(Cancelled)):
        made = fetch(puller)
        made.send(None)
        made.send(None)  # woken without a reason
        try:
            end(made)
        except Cancelled:
            pass
        assert [word for word in stage.sent() if word == "UNSUB"] == ["UNSUB"]
        stage.wire.data(PONG)
    made = fetch(puller)
    with pytest.raises(Cancelled):
        made.throw(Cancelled)  # before it began
    assert stage.sent() == []


@pytest.mark.rule("FETCH-14")
def test_it_is_used_once():
    stage = Stage()
    made = fetch(stage.puller(), 1)
    stage.run(made, messages(stage, 1))
    for again in (made.__iter__, lambda: take(made)):
        result = stage.run(again())
        error = result if isinstance(result, InvalidState) else result[1]
        assert isinstance(error, InvalidState)
        assert str(error) == "the fetch was used before: call fetch() again (FETCH-14)"


@pytest.mark.rule("FETCH-14")
def test_iterated():
    """Each message is returned when it arrives, not when the batch is full."""
    stage = Stage()
    made = fetch(stage.puller(ack_none=True))
    first = stage.run(made.__anext__(), messages(stage, 1))
    assert (first.metadata.stream_seq, first.settled) == (1, True)
    assert stage.sent() == ["SUB", "pull 3"]
    assert stage.run(take(made), messages(stage, 2, 3)) == ([2, 3], None)
    assert stage.run(take(made)) == ([], None)
    assert stage.sent() == []


@pytest.mark.rule("FETCH-14")
@pytest.mark.parametrize("count", [0, 1])
def test_an_error_is_raised_after_the_messages(count):
    stage = Stage()
    made = fetch(stage.puller())
    script = [messages(stage, 1)][:count] + [status(stage, 1, "409 Consumer Deleted")]
    taken, error = stage.run(take(made), *script)
    assert taken == [1][:count]
    assert isinstance(error, ConsumerDeleted)
    assert "consumer 'C' of stream 'S'" in str(error)
    assert stage.run(take(made)) == ([], None)


@pytest.mark.rule("FETCH-14")
def test_the_time_is_over():
    stage = Stage()
    made = fetch(stage.puller(), expires=1.0)
    script = [messages(stage, 1), status(stage, 1, "408 Request Timeout")]
    assert stage.run(take(made), *script) == ([1], None)
    made = fetch(stage.puller(), expires=1.0)
    taken, error = stage.run(take(made), messages(stage, 1, sid=2), timer(stage, 3.0))
    assert (taken, type(error)) == ([1], TimeoutExpired)


@pytest.mark.rule("FETCH-13")
@pytest.mark.rule("FETCH-14")
def test_cancelled():
    stage = Stage()
    puller = stage.puller()
    made = fetch(puller, 5)
    stage.run(made.__anext__(), messages(stage, 1, 2))
    assert stage.run(made.__anext__()).metadata.stream_seq == 2
    assert isinstance(stage.run(made.__anext__(), cancel), Cancelled)
    assert stage.sent() == ["SUB", "pull 5", "UNSUB", "PING"]
    assert stage.run(take(made)) == ([], None)
    stage.wire.data(PONG)
    assert stage.run(take(fetch(puller, 1)), messages(stage, 3, sid=2)) == ([3], None)


@pytest.mark.rule("FETCH-14")
@pytest.mark.parametrize("how", ["break", "close"])
def test_left_early(how):
    """The pull is canceled, and untaken messages are kept for the next fetch."""
    stage = Stage()
    puller = stage.puller()
    made = fetch(puller, 5)
    assert stage.run(take(made, 1), messages(stage, 1, 2)) == ([1], None)
    assert stage.sent() == ["SUB", "pull 5"]
    if how == "close":
        stage.run(made.aclose())
        stage.run(made.aclose())
        assert stage.run(take(made)) == ([], None)
    else:
        del made
        gc.collect()
        assert stage.sent() == []  # a finalizer itself sends nothing: any thread may run it
        (work,) = stage.later
        work()
    assert stage.sent() == ["UNSUB", "PING"]
    messages(stage, 3)()
    stage.wire.data(PONG)
    assert stage.run(take(fetch(puller, 2))) == ([2, 3], None)
    assert stage.sent() == ["SUB"]


@pytest.mark.rule("FETCH-14")
@pytest.mark.rule("D-FETCH-16")
def test_left_early_and_the_next_fetch_starts_first():
    stage = Stage()
    puller = stage.puller()
    stage.run(take(fetch(puller, 5), 1), messages(stage, 1, 2))
    (work,) = stage.later
    again = fetch(puller, 1)
    assert stage.run(take(again), lambda: stage.wire.data(PONG)) == ([2], None)
    work()
    assert [word for word in stage.sent() if word == "UNSUB"] == ["UNSUB"]


@pytest.mark.rule("FETCH-14")
def test_closed_before_it_began():
    stage = Stage()
    made = fetch(stage.puller())
    stage.run(made.aclose())
    assert stage.run(take(made)) == ([], None)
    assert stage.sent() == []


@pytest.mark.rule("FETCH-14")
def test_other_tasks_run_in_the_meantime():
    stage = Stage()
    made = fetch(stage.puller(), 200)
    assert stage.run(take(made), messages(stage, *range(1, 201)))[0] == list(range(1, 201))
    assert stage.checkpoints == 3


@pytest.mark.rule("FETCH-12")
def test_iterated_without_waiting():
    stage = Stage()
    made = fetch(stage.puller(), 5, no_wait=True)
    script = [messages(stage, 1, 2, at=0.001), timer(stage, 0.06)]
    script += [status(stage, 2, "408 Request Timeout", at=0.07), timer(stage, 0.13)]
    assert stage.run(take(made), *script) == ([1, 2], None)
    assert run_sync(take(made)) == ([], None)
