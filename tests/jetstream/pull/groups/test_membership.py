"""Membership: the table of its states."""

from __future__ import annotations

import pytest

from jetstream.errors import ConsumerDeleted, GroupChanged, NotAMember
from jetstream.pull.groups.config import ElasticGroupConfig, StaticGroupConfig
from jetstream.pull.groups.membership import Membership

A = ElasticGroupConfig(2, ["a"])
B = ElasticGroupConfig(2, ["b"])
AB = ElasticGroupConfig(2, ["a", "b"])
AC = ElasticGroupConfig(2, ["a", "c"])  # the same partitions for a
OTHER = ElasticGroupConfig(3, ["a"])
JOINED = [("seen", A, 1.0), ("created",)]
PINNED = ("looked", True, ["x"], 0, 4.0)
DROPPED = [*JOINED, ("seen", B, 2.0)]
MOVED = [*JOINED, ("seen", AB, 2.0), ("stopped", 0, 3.0)]
OLD = [("seen", A, 1.0), ("refused", 2.0, True)]

TABLE = [  # inputs, the state then, the action at 5.0, when it is due
    ([], "OUT", "wait", None),
    ([("seen", B, 1.0)], "OUT", "wait", None),
    ([("seen", A, 1.0)], "WANTED", "create", None),
    ([("seen", B, 1.0), ("seen", A, 2.0)], "WANTED", "create", None),
    ([("seen", A, 1.0), ("seen", B, 2.0)], "OUT", "wait", None),
    (JOINED, "IN", "run", None),
    ([*JOINED, ("seen", A, 2.0)], "IN", "run", None),
    ([*JOINED, ("seen", AB, 2.0)], "CHANGED", "stop", None),
    ([("seen", AB, 1.0), ("created",), ("seen", AC, 2.0)], "IN", "run", None),
    ([*JOINED, ("seen", AB, 2.0), ("stopped", 0, 3.0)], "STOPPED", "look", None),
    ([*MOVED, PINNED], "LEAVING", "delete", None),
    (
        [*MOVED, PINNED, ("deleted", 4.5)],
        "WANTED",
        "create",
        4.5,
    ),
    (
        [*DROPPED, ("stopped", 0, 3.0), PINNED, ("deleted", 4.5)],
        "OUT",
        "wait",
        4.5,
    ),
    # Messages in hand: 1 of 1, none but the one that was not taken, and too long.
    ([*DROPPED, ("stopped", 0, 3.0), ("looked", True, ["x"], 1, 5.0)], "STOPPED", "wait", 5.05),
    ([*DROPPED, ("stopped", 1, 3.0), ("looked", True, ["x"], 1, 5.0)], "LEAVING", "delete", None),
    ([*DROPPED, ("stopped", 0, 3.0), ("looked", True, ["x"], 1, 13.0)], "LEAVING", "delete", None),
    # Another instance is pinned, or none.
    ([*MOVED, ("looked", False, ["x"], 1, 5.0)], "WANTED", "wait", 5.5),
    ([*DROPPED, ("stopped", 0, 3.0), ("looked", False, ["x"], 0, 5.0)], "OUT", "wait", 5.5),
    # Another instance has replaced the consumer, or the partitions are the same again.
    ([*OLD, ("looked", False, ["0.>", "1.>"], 1, 4.0)], "WANTED", "create", 4.0),
    ([*MOVED, ("seen", A, 3.5), ("looked", True, ["0.>", "1.>"], 1, 4.0)], "WANTED", "create", 4.0),
    # The configuration changes again: an old consumer is left to the instance that is pinned.
    ([*OLD, ("seen", B, 4.0), ("looked", False, ["x"], 0, 5.0)], "OUT", "wait", 5.5),
    ([*MOVED, ("seen", B, 4.0), ("looked", True, ["x"], 1, 13.5)], "STOPPED", "wait", 13.55),
    # Consumers that cannot be created yet.
    ([("seen", A, 1.0), ("refused", 5.0, False)], "WANTED", "wait", 5.25),
    ([("seen", A, 1.0), ("refused", 5.0, True)], "STOPPED", "look", None),
    ([*OLD, ("looked", False, ["x"], 0, 3.0)], "LEAVING", "delete", None),
    ([*OLD, ("looked", False, ["x"], 1, 5.0)], "STOPPED", "wait", 5.05),
    ([*JOINED, ("lost", 5.0)], "WANTED", "wait", 5.5),
    # The group ends.
    ([("seen", A, 1.0), ("seen", None, 2.0)], "ENDED", "end", None),
    ([*JOINED, ("seen", None, 2.0)], "CHANGED", "stop", None),
    ([*JOINED, ("seen", None, 2.0), ("stopped", 0, 3.0)], "ENDED", "end", None),
    ([*JOINED, ("seen", None, 2.0), ("seen", A, 2.5), ("stopped", 0, 3.0)], "ENDED", "end", None),
    ([*JOINED, ("seen", OTHER, 2.0), ("stopped", 0, 3.0)], "ENDED", "end", None),
    ([*MOVED, ("seen", None, 3.5), PINNED, ("deleted", 4.5)], "ENDED", "end", None),
    ([*JOINED, ("close",)], "ENDED", "end", None),
    # Another change while the consumer is deleted.
    ([*MOVED, PINNED, ("seen", A, 4.2), ("deleted", 4.5)], "WANTED", "create", 4.5),
]  # fmt: skip


def play(inputs, elastic=True):
    tested = Membership("a", elastic, 10.0)
    for name, *args in inputs:
        getattr(tested, name)(*args)
    return tested


@pytest.mark.rule("GROUP-10", "GROUP-11", "D-GROUP-12", "D-GROUP-14")
@pytest.mark.parametrize(("inputs", "state", "action", "due"), TABLE)
def test_the_states(inputs, state, action, due):
    tested = play(inputs)
    assert (tested.state, tested.action(5.0)) == (state, action)
    if due is not None:
        assert tested.next_at == due


@pytest.mark.rule("D-GROUP-12")
def test_the_pauses_between_looks_grow():
    tested = play([*DROPPED, ("stopped", 0, 3.0)])
    times = []
    for _ in range(7):
        tested.looked(True, ["x"], 1, 3.0)
        times.append(round(tested.next_at - 3.0, 2))
    assert times == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.rule("GROUP-10", "D-GROUP-14")
def test_a_static_group():
    one = StaticGroupConfig(2, ["a", "b"])
    joined = [("seen", one, 1.0), ("created",)]
    changed = play(
        [*joined, ("seen", StaticGroupConfig(2, ["a"]), 2.0), ("stopped", 0, 3.0)], False
    )
    assert changed.state == "ENDED"
    assert isinstance(changed.error, GroupChanged)
    deleted = play([*joined, ("seen", None, 2.0), ("stopped", 0, 3.0)], False)
    assert (deleted.state, deleted.error) == ("STOPPED", None)
    deleted.looked(False, ["x"], 0, 3.0)
    deleted.deleted(4.0)
    assert deleted.action(5.0) == "end"
    stranger = play([("seen", StaticGroupConfig(1, ["b"]), 1.0)], False)
    assert stranger.state == "ENDED"
    assert isinstance(stranger.error, NotAMember)


def test_seen_returns_whether_the_configuration_is_new():
    tested = Membership("a", True, 10.0)
    assert [tested.seen(each, 1.0) for each in (A, A, AB, None, A)] == [
        True, False, True, True, False,
    ]  # fmt: skip


def test_the_reason_of_the_end():
    error = ConsumerDeleted(409, "Consumer Deleted")
    assert play([*JOINED, ("close", error)]).error is error
    ended = play([*JOINED, ("seen", None, 2.0)])
    ended.lost(3.0)
    assert (ended.state, ended.next_at) == ("ENDED", 3.0)
