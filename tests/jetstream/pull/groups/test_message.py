from __future__ import annotations

import pytest

from jetstream.message import JsMsg
from jetstream.pull.groups.message import GroupMsg, group_msg
from natsproto.wire.frames import Msg


@pytest.mark.rule("GROUP-9")
@pytest.mark.parametrize(
    ("received", "subject", "partition"),
    [(b"3.orders.new", "orders.new", 3), (b"12.x", "x", 12), (b"orders.new", "new", -1)],
)
def test_the_partition_is_not_part_of_the_subject(received, subject, partition):
    msg = GroupMsg(Msg(received, 1, b"", b"x"), None)
    assert (msg.subject, msg.partition, msg.raw_subject) == (subject, partition, received)


def test_a_message_of_a_consumer_becomes_one_of_a_group():
    msg = JsMsg(Msg(b"3.x", 1, b"", b"y"), None, True)
    assert group_msg(msg).subject == "x"
    assert group_msg(msg).settled
