from __future__ import annotations

import pytest

from jetstream.machine.queue import MAX_EVENTS, EventLog, MessageQueue


def test_messages_are_taken_in_order():
    queue = MessageQueue()
    batch, fresh = queue.batch, queue.fresh
    fresh += [1, 2]
    assert (queue.pop(), queue.messages()) == (1, [2])
    fresh.append(3)
    assert queue.messages() == [2, 3]
    assert [queue.pop(), queue.pop()] == [2, 3]
    fresh += [4, 5, 6]
    assert queue.pop() == 4
    fresh.append(7)
    assert (queue.clear(), queue.messages()) == ([5, 6, 7], [])
    assert (queue.batch is batch, queue.fresh is fresh) == (True, True)


def test_several_messages_are_taken_at_once():
    queue = MessageQueue()
    queue.fresh.extend(range(6))
    assert queue.peek(3) == []  # only those that `pop` has moved
    assert queue.pop() == 0
    assert [queue.peek(most) for most in (-1, 0, 2, 9)] == [[], [], [1, 2], [1, 2, 3, 4, 5]]
    queue.take(0)
    queue.take(2)
    assert queue.messages() == [3, 4, 5]
    queue.take(3)
    assert (queue.peek(1), queue.messages()) == ([], [])


def test_messages_are_lent():
    queue = MessageQueue()
    ready = queue.ready
    queue.fresh.extend(range(6))
    assert (queue.lend(3), queue.pop()) == ([], 0)
    assert (queue.lend(2), queue.ready, queue.messages()) == ([2, 1], [2, 1], [3, 4, 5])
    queue.put_back()
    assert (queue.ready, queue.messages()) == ([], [1, 2, 3, 4, 5])
    assert (queue.lend(9), queue.messages(), queue.ready is ready) == ([5, 4, 3, 2, 1], [], True)


@pytest.mark.rule("D-CONSUME-19")
def test_the_newest_events_are_kept():
    log = EventLog()
    for number in range(MAX_EVENTS + 3):
        log.add(number)
    assert log.items == list(range(3, MAX_EVENTS + 3))
    assert log.total == MAX_EVENTS + 3
