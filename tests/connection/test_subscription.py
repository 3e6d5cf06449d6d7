"""Subscription, without a server: taking messages, and how it ends."""

from __future__ import annotations

import pytest

from natsproto.errors import ConnectionClosed, InvalidState, PermissionDenied, TimeoutExpired
from natsproto.subscription import _TURN, at_hand
from tests.connection.support import err, msg
from tests.jetstream.support import Stage


def subscribed(*payloads: bytes, subject: str = "a", queue: str = ""):
    """Return a stage and a subscription for which these messages have arrived."""
    stage = Stage()
    sub = stage.run(stage.client.subscribe(subject, queue=queue))
    stage.serve()
    if payloads:
        stage.wire.data(b"".join([msg(subject, sub.sid, payload) for payload in payloads]))
    return stage, sub


def rest(stage, sub):
    """Return all messages that the iteration still returns."""

    async def take():
        return [each.data async for each in sub]

    return stage.run(take())


def test_the_repr_and_the_attributes():
    _, sub = subscribed(b"1", b"2", subject="é.x", queue="q")
    assert (sub.subject, sub.queue, sub.sid, sub.pending, sub.dropped) == ("é.x", "q", 1, 2, 0)
    assert repr(sub) == "<Subscription 1 to 'é.x', 2 pending>"


def test_next_takes_the_oldest():
    stage, sub = subscribed(b"1", b"2")
    assert [stage.run(sub.next()).data, stage.run(sub.next(timeout=0)).data] == [b"1", b"2"]


def test_only_messages_that_need_no_further_work_are_at_hand():
    stage, sub = subscribed(b"1", b"2", b"3")
    assert at_hand(sub) is None  # no caller has requested any yet
    stage.run(sub.next())
    assert at_hand(sub).data == b"2"
    stage.run(sub.unsubscribe())
    assert at_hand(sub) is None  # a drain may wait for the last of them to be taken
    assert rest(stage, sub) == [b"3"]
    assert sub._mailbox.bytes == 0


def test_next_respects_its_timeout():
    stage, sub = subscribed()
    with pytest.raises(TimeoutExpired, match="no message on 'a' in time"):
        stage.run(sub.next(timeout=0.75))
    assert stage.now() == 0.75


def test_next_is_woken_by_the_message():
    stage, sub = subscribed()

    async def wait(waitable):
        stage.wire.data(msg("a", sub.sid, b"late"))

    stage.wait = wait
    assert stage.run(sub.next()).data == b"late"
    assert stage.run(sub.next(timeout=5)).data == b"late"


def test_after_unsubscribe_arrived_messages_can_be_taken():
    stage, sub = subscribed(b"1", b"2")
    stage.run(sub.unsubscribe())
    assert stage.wire.sent() == b"UNSUB 1\r\n"
    assert rest(stage, sub) == [b"1", b"2"]
    with pytest.raises(InvalidState, match="the subscription to 'a' has ended"):
        stage.run(sub.next())


@pytest.mark.rule("SUB-3")
def test_unsubscribe_after_a_number_of_messages():
    stage, sub = subscribed(b"1")
    stage.run(sub.unsubscribe(after=3))
    assert stage.wire.sent() == b"UNSUB 1 3\r\n"
    stage.wire.data(msg("a", 1, b"2"), msg("a", 1, b"3"), msg("a", 1, b"4"))
    assert rest(stage, sub) == [b"1", b"2", b"3"]


@pytest.mark.rule("DRAIN-2")
def test_drain_waits_for_the_fence_and_leaves_the_rest_to_be_taken():
    stage, sub = subscribed(b"1")
    stage.run(sub.drain())
    assert rest(stage, sub) == [b"1"]


def test_leaving_the_block_unsubscribes():
    stage, sub = subscribed()

    async def use():
        async with sub as same:
            assert same is sub

    stage.run(use())
    assert stage.wire.sent() == b"UNSUB 1\r\n"


@pytest.mark.rule("ERR-5")
def test_a_rejected_subscription_raises_after_the_arrived_messages():
    stage, sub = subscribed(b"1")
    stage.wire.data(err('Permissions Violation for Subscription to "a"'))
    assert stage.run(sub.next()).data == b"1"
    for call in (sub.next, sub.__anext__):
        with pytest.raises(PermissionDenied):
            stage.run(call())


def test_the_iteration_ends_with_the_client():
    stage, sub = subscribed(b"1", b"2")
    stage.run(stage.client.close())
    assert rest(stage, sub) == [b"1", b"2"]


def test_the_iteration_raises_when_the_connection_fails_for_good():
    stage, sub = subscribed()
    stage.connection.options.max_reconnects = 0
    stage.wire.lost()
    with pytest.raises(ConnectionClosed):
        rest(stage, sub)


@pytest.mark.parametrize("before", [0, 10])
def test_an_iterator_lets_others_run_now_and_then(before):
    stage, sub = subscribed(*[b"%d" % i for i in range(2 * _TURN + before)])
    turns = []

    async def checkpoint():
        turns.append(sub.pending)

    stage.checkpoint = checkpoint
    stage.run(sub.unsubscribe(after=2 * _TURN + before))
    assert rest(stage, sub) == [b"%d" % i for i in range(2 * _TURN + before)]
    assert len(turns) == 2


def test_an_iterator_returns_messages_in_order_and_deducts_their_bytes():
    stage, sub = subscribed(b"1", b"2", b"3")

    async def two():
        return [(await sub.__anext__()).data for _ in range(2)]

    assert stage.run(two()) == [b"1", b"2"]
    assert (sub.pending, sub._mailbox.bytes) == (1, len(msg("a", 1, b"3")))


def test_an_iterator_that_waits_is_woken():
    stage, sub = subscribed()

    async def wait(waitable):
        assert waitable is sub._mailbox
        stage.wire.data(msg("a", sub.sid, b"1"))

    stage.wait = wait

    async def one():
        async for each in sub:
            return each.data

    assert stage.run(one()) == b"1"


@pytest.mark.rule("DRAIN-3")
def test_the_last_message_taken_ends_the_drain_of_the_client():
    stage, sub = subscribed(b"1", b"2")
    drain = stage.connection.start_drain(stage.now() + 10)
    stage.serve()
    assert not drain.done
    assert rest(stage, sub) == [b"1", b"2"]
    stage.serve()
    assert drain.done
    assert drain.error is None


def test_a_name_that_does_not_exist():
    _, sub = subscribed()
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        sub.nothing  # noqa: B018 - the attribute is what raises


@pytest.mark.rule("D-SUB-10")
def test_run_calls_for_each_message():
    stage, sub = subscribed(b"1", b"2")
    seen = []

    async def callback(message):
        seen.append(message.data)
        if message.data == b"2":
            await sub.unsubscribe()

    stage.run(sub.run(callback))
    assert seen == [b"1", b"2"]
