"""Fetches whose callers are gone, and pulls that the server may still have."""

from __future__ import annotations

import pytest

from natsproto.errors import TimeoutExpired
from tests.connection.support import PONG
from tests.jetstream.stages import Cancelled, Stage, cancel, messages, status, timer


def fetch(puller, max_messages, expires=30.0, no_wait=False):
    return puller.fetch(max_messages, None, expires, None, no_wait, {})


def pong(stage):
    return lambda: stage.wire.data(PONG)


def sequences(batch):
    return [msg.metadata.stream_seq for msg in batch]


@pytest.mark.rule("D-FETCH-8")
@pytest.mark.rule("FETCH-13")
def test_cancelled():
    """The pull is canceled; messages that arrived or were in flight are kept for the next fetch."""
    stage = Stage()
    puller = stage.puller()
    assert isinstance(stage.run(fetch(puller, 3), messages(stage, 1), cancel), Cancelled)
    assert stage.sent() == ["SUB", "pull 3", "UNSUB", "PING"]
    batch = stage.run(fetch(puller, 3), messages(stage, 2), pong(stage), messages(stage, 3, sid=2))
    assert sequences(batch) == [1, 2, 3]
    assert stage.sent() == ["SUB", "pull 1"]
    assert len(stage.wire.connection.subscriptions.by_sid) == 1


@pytest.mark.rule("D-FETCH-8")
def test_canceled_with_enough_for_the_next_one():
    stage = Stage()
    puller = stage.puller()
    stage.run(fetch(puller, 3), messages(stage, 1, 2), cancel)
    pong(stage)()
    stage.sent()
    assert sequences(stage.run(fetch(puller, 2))) == [1, 2]
    assert stage.sent() == ["SUB"]


def nested(stage, call, *script):
    """Make another call while one waits; its step is the first of that call's script."""

    def step():
        outer, stage.script = stage.script, []
        stage.run(call(), *script)
        stage.script = outer

    return step


@pytest.mark.rule("D-FETCH-8")
def test_several_canceled_at_once():
    """The messages of all canceled fetches reach the next fetch, in the order of delivery."""
    stage = Stage()
    puller = stage.puller()
    inner = nested(
        stage,
        lambda: fetch(puller, 5),
        nested(
            stage,
            lambda: fetch(puller, 5),
            messages(stage, 1, 4, sid=1),
            messages(stage, 2, 5, sid=2),
            messages(stage, 3, 6, sid=3),
            cancel,
        ),
        cancel,
    )
    assert isinstance(stage.run(fetch(puller, 5), inner, cancel), Cancelled)
    assert len(puller._idle) == 3
    for _ in range(3):
        pong(stage)()
    assert sequences(stage.run(fetch(puller, 6))) == [1, 2, 3, 4, 5, 6]
    assert len(stage.wire.connection.subscriptions.by_sid) == 1


@pytest.mark.rule("D-FETCH-8")
def test_several_canceled_fetches_with_messages_of_unknown_order():
    stage = Stage()
    puller = stage.puller()
    odd = lambda: stage.wire.data(b"MSG s 1 odd 1\r\nx\r\n")  # noqa: E731
    inner = nested(stage, lambda: fetch(puller, 5), odd, messages(stage, 2, sid=2), cancel)
    stage.run(fetch(puller, 5), inner, cancel)
    for _ in range(2):
        pong(stage)()
    batch = stage.run(fetch(puller, 2))
    assert sorted(msg.reply for msg in batch) == [batch[0].reply, "odd"]


@pytest.mark.rule("FETCH-13")
@pytest.mark.rule("FETCH-5")
def test_the_next_fetch_does_not_wait_forever_for_the_fence():
    stage = Stage()
    puller = stage.puller()
    stage.run(fetch(puller, 3), messages(stage, 1), cancel)
    result = stage.run(fetch(puller, 3, expires=1.0), timer(stage, 2.0))
    assert isinstance(result, TimeoutExpired)
    assert "consumer 'C' of stream 'S'" in str(result)
    # The time that the fence took is part of the fetch's time.
    step = lambda: stage.wire.data(PONG, at=3.0)  # noqa: E731
    batch = stage.run(fetch(puller, 3, expires=2.0), step, timer(stage, 4.5), timer(stage, 5.0))
    assert (sequences(batch), type(batch.error)) == ([1], TimeoutExpired)


@pytest.mark.rule("FETCH-13")
@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"expires": 1.0}, [2.0]),
        ({"expires": 60.0}, [60.0]),
        ({"no_wait": True}, [0.05, 6.0]),
    ],
)
def test_a_pull_that_the_server_does_not_end_is_abandoned(options, steps):
    stage = Stage()
    stage.run(fetch(stage.puller(), 2, **options), *[timer(stage, at) for at in steps])
    assert [word for word in stage.sent() if "pull" not in word] == ["SUB", "UNSUB", "PING"]


@pytest.mark.rule("FETCH-13")
def test_after_a_lost_connection_another_inbox_is_used():
    """The server may still have the pull, and would send to the old one."""
    stage = Stage()
    puller = stage.puller()
    stage.run(fetch(puller, 1), lambda: stage.wire.lost(at=1.0))
    assert stage.wire.connection.subscriptions.by_sid == {}
    assert puller._idle[0].ended


@pytest.mark.rule("FETCH-12")
@pytest.mark.parametrize("count", [0, 2])
def test_no_wait_at_max_ack_pending(count):
    """The server does not respond: the arrived messages are the batch, without an error."""
    stage = Stage()
    puller = stage.puller()
    script = [messages(stage, 1, 2, at=0.001)][: count // 2]
    script += [timer(stage, 0.06), status(stage, 2, "408 Request Timeout", at=0.07)]
    batch = stage.run(fetch(puller, 5, no_wait=True), *script, timer(stage, 0.13))
    assert (len(batch), batch.error) == (count, None)
    assert stage.sent() == ["SUB", "pull 5", "pull 1", "UNSUB", "PING"]


@pytest.mark.rule("D-FETCH-16")
def test_a_handle_that_is_gone_ends_its_subscription():
    stage = Stage()
    puller = stage.puller()
    stage.run(fetch(puller, 1), messages(stage, 1))
    stage.sent()
    del puller
    (work,) = stage.later
    assert stage.sent() == []  # a finalizer itself sends nothing: any thread may run it
    work()
    assert (stage.sent(), stage.wire.connection.subscriptions.by_sid) == (["UNSUB"], {})


@pytest.mark.rule("D-FETCH-16")
def test_a_handle_without_subscriptions_has_nothing_to_end():
    stage = Stage()
    stage.puller()
    puller = stage.puller()
    stage.run(fetch(puller, 1), messages(stage, 1))
    puller.close()
    del puller
    assert stage.later == []


@pytest.mark.rule("D-FETCH-16")
def test_a_dropped_iteration_leaves_its_unread_messages_to_the_next_fetch():
    stage = Stage()
    puller = stage.puller()
    made = fetch(puller, 5)
    assert stage.run(made.__anext__(), messages(stage, 1, 2)).metadata.stream_seq == 1
    del made
    (work,) = stage.later
    work()
    work()
    assert stage.sent() == ["SUB", "pull 5", "UNSUB", "PING"]
    pong(stage)()
    assert sequences(stage.run(fetch(puller, 1))) == [2]
