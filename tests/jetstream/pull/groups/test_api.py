"""ConsumerGroups: create and find groups."""

from __future__ import annotations

import pytest

from jetstream.errors import GroupExists, GroupNotFound, StreamNotFound
from jetstream.errors.kv import BucketExists
from jetstream.pull.groups.api import ConsumerGroups
from jetstream.pull.groups.config import PartitioningFilter
from natsproto.errors import LocalError
from natsproto.port import run_sync
from tests.jetstream.pull.groups.fake import Js, Server

BUCKETS = {"static": "static-consumer-groups", "elastic": "elastic-consumer-groups"}


def groups_of(**stream):
    server = Server()
    server.add_stream("S", **stream)
    return server, ConsumerGroups(Js(server))


@pytest.mark.rule("GROUP-1", "GROUP-2")
def test_a_static_group():
    server, groups = groups_of(num_replicas=3)
    group = run_sync(groups.create_static("S", "g", max_members=2, members=["a"], filters=["x"]))
    stored = b'{"max_members":2,"filters":["x"],"members":["a"]}'
    assert server.buckets["static-consumer-groups"]["S.g"][0] == stored
    assert run_sync(run_sync(groups.static("S", "g")).config()) == run_sync(group.config())
    again = groups.create_static("S", "g", max_members=2, members=["a"], filters=["x"])
    assert run_sync(again).name == "g"
    with pytest.raises(GroupExists):
        run_sync(groups.create_static("S", "g", max_members=2, members=["b"], filters=["x"]))
    assert repr(groups).startswith("<ConsumerGroups of ")


@pytest.mark.rule("GROUP-1", "GROUP-3", "GROUP-7")
def test_an_elastic_group():
    server, groups = groups_of(storage="memory", num_replicas=3)
    options = {
        "max_members": 2,
        "partitioning_filters": [PartitioningFilter("a.*", [1])],
        "max_buffered_msgs": 5,
    }
    group = run_sync(groups.create_elastic("S", "g", members=["a"], **options))
    queue = server.streams["S-g"]
    assert queue.to_json() == {
        "name": "S-g",
        "retention": "workqueue",
        "discard": "new",
        "num_replicas": 3,
        "storage": "memory",
        "max_msgs": 5,
        "max_bytes": -1,
        "sources": [
            {
                "name": "S",
                "subject_transforms": [
                    {"src": "a.*", "dest": "{{Partition(2,1)}}.a.{{Wildcard(1)}}"}
                ],
            }
        ],
        "allow_direct": True,
    }
    assert run_sync(run_sync(groups.elastic("S", "g")).config()) == run_sync(group.config())
    # Other members are not another configuration.
    assert run_sync(groups.create_elastic("S", "g", **options)).queue == "S-g"
    with pytest.raises(GroupExists):
        run_sync(groups.create_elastic("S", "g", max_members=2))
    run_sync(groups.create_elastic("S", "all", max_members=2))
    [source] = server.streams["S-all"].sources
    assert source.subject_transforms[0].dest == "{{Partition(2)}}.>"


@pytest.mark.parametrize("kind", BUCKETS)
def test_groups_are_found_by_name(kind):
    _, groups = groups_of()
    find, names = getattr(groups, kind), getattr(groups, kind + "_names")
    assert run_sync(names("S")) == []
    with pytest.raises(GroupNotFound):
        run_sync(find("S", "g"))
    create = getattr(groups, "create_" + kind)
    for name in ("h", "g"):
        run_sync(create("S", name, max_members=1))
    assert run_sync(names("S")) == ["g", "h"]
    assert run_sync(names("T")) == []


@pytest.mark.rule("GROUP-1")
def test_another_program_may_create_the_bucket_first():
    server, groups = groups_of()

    async def slow(bucket, replicas):
        server.buckets[bucket] = {}
        raise BucketExists(bucket)

    groups._js.create_key_value = slow
    run_sync(groups.create_static("S", "g", max_members=1))
    assert list(server.buckets["static-consumer-groups"]) == ["S.g"]


def test_invalid_groups_are_not_stored():
    server, groups = groups_of()
    with pytest.raises(LocalError):
        run_sync(groups.create_static("S", "g", max_members=0))
    with pytest.raises(LocalError):
        run_sync(groups.create_static("S", "a.b", max_members=1))
    with pytest.raises(StreamNotFound):
        run_sync(groups.create_elastic("T", "g", max_members=1))
    assert server.buckets == {}
