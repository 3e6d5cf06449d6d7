"""StaticGroup and ElasticGroup."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import GroupNotFound
from jetstream.pull.groups.config import MemberMapping
from jetstream.pull.groups.group import ElasticGroup, StaticGroup
from natsproto.errors import InvalidValue, LocalError
from natsproto.port import run_sync
from tests.jetstream.pull.groups.fake import Js, configured

ELASTIC = "elastic-consumer-groups"
STATIC = "static-consumer-groups"


def elastic(**config):
    server = configured(ELASTIC, max_members=2, **config)
    return server, ElasticGroup(Js(server), "S", "g")


def static(**config):
    server = configured(STATIC, max_members=2, **config)
    return server, StaticGroup(Js(server), "S", "g")


def stored(server):
    return json.loads(server.buckets[ELASTIC]["S.g"][0])


@pytest.mark.parametrize("make", [elastic, static])
def test_a_group_that_does_not_exist(make):
    server, group = make()
    for clear in (
        server.buckets[ELASTIC if make is elastic else STATIC].clear,
        server.buckets.clear,
    ):
        clear()
        with pytest.raises(GroupNotFound):
            run_sync(group.config())


def test_members_that_are_active():
    server, group = static(members=["a", "b"])
    assert repr(group) == "<StaticGroup S.g>"
    assert run_sync(group.active_members()) == []
    server.publish("S", "0.x", b"1")
    member = group.join("a", ack_wait=1.0)
    run_sync(member.next(1.0))
    assert run_sync(group.active_members()) == ["a"]
    run_sync(group.step_down("a"))
    assert run_sync(group.active_members()) == []


def test_a_static_group_is_deleted_with_its_consumers():
    server, group = static(members=["a", "b"])
    server.publish("S", "0.x", b"1")
    run_sync(group.join("a").next(1.0))
    assert list(server.consumers) == [("S", "g-a")]
    run_sync(group.delete())
    assert server.consumers == {}
    with pytest.raises(GroupNotFound):
        run_sync(group.delete())


def test_members_are_added_and_dropped():
    server, group = elastic(partitioning_filters=None, color="red")
    assert (repr(group), group.queue) == ("<ElasticGroup S.g>", "S-g")
    assert run_sync(group.add_members("b", "a")) == ["a", "b"]
    assert run_sync(group.add_members("c", "a")) == ["a", "b", "c"]
    assert run_sync(group.drop_members("b", "z")) == ["a", "c"]
    assert stored(server) == {
        "max_members": 2,
        "partitioning_filters": None,
        "members": ["a", "c"],
        "color": "red",
    }
    with pytest.raises(LocalError):
        run_sync(group.add_members("a.b"))


@pytest.mark.rule("GROUP-5")
def test_mappings_replace_members():
    server, group = elastic(members=["a"])
    run_sync(group.set_mappings([MemberMapping("a", [1]), MemberMapping("b", [0])]))
    assert "members" not in stored(server)
    for call in (group.add_members, group.drop_members):
        with pytest.raises(InvalidValue, match="has mappings"):
            run_sync(call("c"))
    run_sync(group.delete_mappings())
    assert stored(server) == {"max_members": 2, "partitioning_filters": None}


def test_an_elastic_group_and_its_members():
    server, group = elastic(members=["a", "b"])
    server.publish("S-g", "0.x", b"1")
    run_sync(group.join("a").next(1.0))
    assert run_sync(group.active_members()) == ["a"]
    run_sync(group.step_down("a"))
    run_sync(group.delete())
    assert "S-g" not in server.streams
    with pytest.raises(GroupNotFound):
        run_sync(group.delete())


def test_a_group_whose_queue_is_gone_can_be_deleted():
    server, group = elastic()
    del server.streams["S-g"]
    run_sync(group.delete())


def test_a_deletion_that_failed_halfway_is_completed():
    server, group = elastic()
    del server.buckets["elastic-consumer-groups"]["S.g"]
    run_sync(group.delete())
    assert "S-g" not in server.streams
