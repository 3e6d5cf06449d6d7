"""The facades of consumer groups: they behave like their inner objects."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.blocking.groups import (
    ConsumerGroups,
    ElasticGroup,
    GroupMember,
    GroupMsg,
    StaticGroup,
)
from jetstream.pull.groups import api, group, member, message
from natsproto.errors import InvalidValue
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.pull.groups.fake import Js, Server
from tests.jetstream.support import Stage


@pytest.mark.rule("D-CALL-14")
@pytest.mark.parametrize(
    ("inner", "facade"),
    [
        (api.ConsumerGroups, ConsumerGroups),
        (group.StaticGroup, StaticGroup),
        (group.ElasticGroup, ElasticGroup),
        (member.GroupMember, GroupMember),
        (message.GroupMsg, GroupMsg),
    ],
)
def test_they_are_twins(inner, facade):
    check_twins(inner, facade)


def groups_of(**stream):
    """Return the groups of a server in memory."""
    server = Server()
    server.add_stream("S", **stream)
    groups = ConsumerGroups(JetStream(Stage().blocking))
    groups.inner._js = Js(server)
    return server, groups


def ack(server, msg, stream, name):
    server.ack(stream, name, int(msg.raw_reply.split(b".")[5]))


def test_a_static_group():
    server, groups = groups_of()
    made = groups.create_static("S", "g", max_members=1, members=["a"])
    assert isinstance(made, StaticGroup)
    assert (made.stream, made.name, repr(made)) == ("S", "g", "<StaticGroup S.g>")
    assert groups.static_names("S") == ["g"]
    assert groups.elastic_names("S") == []
    assert repr(groups).startswith("<ConsumerGroups of")
    server.publish("S", "0.x", b"1")
    server.publish("S", "0.y", b"2")
    with groups.static("S", "g").join("a") as joined:
        assert isinstance(joined, GroupMember)
        assert (joined.name, joined.partitions, joined.closed) == ("a", [0], False)
        msg = joined.next(1.0)
        assert isinstance(msg, GroupMsg)
        assert (msg.subject, msg.partition) == ("x", 0)
        ack(server, msg, "S", "g-a")
        assert next(iter(joined)).subject == "y"
        assert (joined.state, repr(joined)) == ("IN", "<GroupMember a of S.g, IN>")
        assert made.active_members() == ["a"]
        made.step_down("a")
    made.delete()
    assert list(joined) == []


def test_an_elastic_group():
    server, groups = groups_of()
    made = groups.create_elastic("S", "g", max_members=1)
    assert isinstance(made, ElasticGroup)
    assert (made.stream, made.name, made.queue) == ("S", "g", "S-g")
    assert repr(groups.elastic("S", "g")) == "<ElasticGroup S.g>"
    assert made.add_members("a") == ["a"]
    assert made.config().members == ["a"]
    for number in range(3):
        server.publish("S-g", "0.x", b"%d" % number)
    seen, failed = [], []

    def callback(msg):
        seen.append(msg.data)
        ack(server, msg, "S-g", "a")
        if msg.data == b"1":
            raise ValueError("one")
        if msg.data == b"2":
            made.delete()

    made.join("a").run(callback, on_error=lambda msg, error: failed.append(str(error)))
    assert (seen, failed) == ([b"0", b"1", b"2"], ["one"])


def test_an_error_of_a_callback_ends_the_member():
    server, groups = groups_of()
    made = groups.create_elastic("S", "g", max_members=1, members=["a"])
    server.publish("S-g", "0.x", b"1")
    joined = made.join("a")
    with pytest.raises(ZeroDivisionError):
        joined.run(lambda msg: 1 // 0)
    assert joined.closed


def test_the_asynchronous_jetstream_is_refused():
    with pytest.raises(InvalidValue, match="use jetstream"):
        ConsumerGroups(Js(Server()))
