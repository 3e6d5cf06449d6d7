"""GroupMember: the iteration, on a server in memory."""

from __future__ import annotations

import pytest

from jetstream.config import ConsumerConfig
from jetstream.errors import ApiError, GroupChanged, GroupNotFound, NotAMember
from jetstream.pull.groups.member import GroupMember
from jetstream.pull.groups.plan import MemberPlan
from natsproto.errors import InvalidState, TimeoutExpired
from natsproto.port import run_sync
from tests.jetstream.pull.groups.fake import Js, configured

ELASTIC = "elastic-consumer-groups"
STATIC = "static-consumer-groups"


def member_of(server, name="a", elastic=True):
    return GroupMember(MemberPlan(Js(server), "S", "g", name, elastic, ConsumerConfig()))


def ack(server, msg, stream="S-g", name="a"):
    server.ack(stream, name, int(msg.raw_reply.split(b".")[5]))


def filled(count=3):
    server = configured(ELASTIC, max_members=2, members=["a"])
    for number in range(count):
        server.publish("S-g", f"{number % 2}.x", b"%d" % number)
    return server


async def take(server, member, count):
    found = []
    for _ in range(count):
        msg = await member.next(5.0)
        found.append(msg.data)
        ack(server, msg)
    return found


@pytest.mark.rule("GROUP-9")
def test_messages_one_after_the_other():
    server = filled()
    member = member_of(server)
    assert (member.name, member.state, member.partitions) == ("a", "OUT", [])
    assert run_sync(take(server, member, 3)) == [b"0", b"1", b"2"]
    assert (member.state, member.partitions) == ("IN", [0, 1])
    assert repr(member) == "<GroupMember a of S.g, IN>"
    before = server.now
    with pytest.raises(TimeoutExpired):
        run_sync(member.next(1.0))
    assert server.now == before + 1.0
    run_sync(member.stop())


def test_iteration_ends_when_the_group_is_deleted():
    server = filled()

    async def main():
        found = []
        async with member_of(server) as member:
            async for msg in member:
                assert msg.subject == "x"
                found.append((msg.data, msg.partition))
                ack(server, msg)
                if len(found) == 3:
                    server.later.append(lambda: server.write(ELASTIC, "S.g", None))
        return found, member.closed

    assert run_sync(main()) == ([(b"0", 0), (b"1", 1), (b"2", 0)], True)
    assert server.feeds == []


def test_a_member_may_join_before_it_is_added():
    server = filled()
    server.write(ELASTIC, "S.g", b'{"max_members":2,"partitioning_filters":null}')
    member = member_of(server)
    run_sync(member.start())
    assert run_sync(member.start()) is member
    with pytest.raises(TimeoutExpired):
        run_sync(member.next(0.1))
    server.later.append(lambda: server.write(ELASTIC, "S.g", b'{"max_members":2,"members":["a"]}'))
    assert run_sync(take(server, member, 1)) == [b"0"]


@pytest.mark.rule("D-GROUP-12")
def test_partitions_are_handed_over_when_no_message_is_in_progress():
    server = filled(0)
    first, second = member_of(server), member_of(server, "b")
    for number in range(3):
        server.publish("S-g", "1.x", b"%d" % number)
    held = run_sync(first.next(5.0))
    server.write(ELASTIC, "S.g", b'{"max_members":2,"members":["a","b"]}')
    with pytest.raises(TimeoutExpired):
        run_sync(second.next(1.0))
    ack(server, held)
    with pytest.raises(TimeoutExpired):
        run_sync(first.next(0))
    assert (first.partitions, second.partitions) == ([0], [1])
    msg = run_sync(second.next(5.0))
    assert msg.data == b"1"


@pytest.mark.rule("GROUP-10")
def test_errors_end_the_iteration():
    server = filled()
    member = member_of(server)
    run_sync(take(server, member, 1))
    server.write(ELASTIC, "S.g", b'{"max_members":3,"members":["a"]}')
    with pytest.raises(GroupChanged):
        run_sync(member.next(5.0))
    assert member.closed
    with pytest.raises(InvalidState, match="member a has left its group"):
        run_sync(member.next(5.0))


def test_groups_that_cannot_be_joined():
    server = configured(STATIC, max_members=1, members=["b"])
    with pytest.raises(NotAMember):
        run_sync(member_of(server, elastic=False).start())
    server.buckets[STATIC].clear()
    member = member_of(server, elastic=False)
    with pytest.raises(GroupNotFound):
        run_sync(member.start())
    assert member.closed
    assert server.feeds == []


@pytest.mark.rule("D-GROUP-17")
@pytest.mark.parametrize("refused", [True, False])
def test_an_instance_that_leaves_lets_another_one_take_over(refused):
    server = filled()
    member, other = member_of(server), member_of(server)
    run_sync(take(server, member, 1))
    with pytest.raises(TimeoutExpired):
        run_sync(other.next(0))
    if refused:
        server.fail["unpin"] = ApiError(503, 10008, "unavailable")
    run_sync(member.stop())
    run_sync(member.stop())
    if not refused:
        assert run_sync(take(server, other, 2)) == [b"1", b"2"]


def test_an_instance_that_was_never_pinned_leaves_without_a_call():
    server = filled(0)
    member = member_of(server)
    with pytest.raises(TimeoutExpired):
        run_sync(member.next(0))
    run_sync(member.stop())
    assert "unpin" not in server.calls
    idle = member_of(server)
    run_sync(idle.stop())
    assert idle.closed


def test_a_callback_for_each_message():
    server = filled()
    seen, failed = [], []

    async def callback(msg):
        seen.append(msg.data)
        ack(server, msg)
        if msg.data == b"1":
            raise ValueError("one")
        if msg.data == b"2":
            server.later.append(lambda: server.write(ELASTIC, "S.g", None))

    async def on_error(msg, error):
        failed.append((msg.data, str(error)))

    member = member_of(server)
    run_sync(member.run(callback, on_error=on_error))
    assert (seen, failed) == ([b"0", b"1", b"2"], [(b"1", "one")])
    assert member.closed


def test_an_error_of_a_callback_ends_the_member():
    server = filled()

    async def callback(msg):
        raise ValueError("no")

    member = member_of(server)
    with pytest.raises(ValueError, match="no"):
        run_sync(member.run(callback))
    assert member.closed


def test_a_consumer_that_is_lost_is_replaced():
    server = filled()
    member = member_of(server)
    run_sync(take(server, member, 1))
    server.consumers.clear()
    assert run_sync(take(server, member, 2)) == [b"1", b"2"]
