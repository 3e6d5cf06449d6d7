"""The configurations of groups, in the JSON of orbit.go."""

from __future__ import annotations

import pytest

from jetstream.errors import InvalidResponse
from jetstream.pull.groups.config import (
    ElasticGroupConfig,
    GroupConfig,
    MemberMapping,
    PartitioningFilter,
    StaticGroupConfig,
)
from natsproto.errors import LocalError

# Derived from the struct tags and omitempty of orbit.go; Go escapes ">" in JSON.
STATIC = b'{"max_members":2,"filters":["a.\\u003e"],"members":["m1","m2"]}'
MAPPED = b'{"max_members":2,"member_mappings":[{"member":"m1","partitions":[1,0]}]}'
ELASTIC = (
    b'{"max_members":3,"partitioning_filters":[{"filter":"foo.*","partitioning_wildcards":[1]}],'
    b'"max_buffered_msg":100,"max_buffered_bytes":2048,"members":["m1"]}'
)
BARE = b'{"max_members":3,"partitioning_filters":null}'


@pytest.mark.rule("GROUP-2", "GROUP-3")
@pytest.mark.parametrize(
    ("data", "config"),
    [
        (STATIC, StaticGroupConfig(2, ["m1", "m2"], filters=["a.>"])),
        (MAPPED, StaticGroupConfig(2, mappings=[MemberMapping("m1", [1, 0])])),
        (
            ELASTIC,
            ElasticGroupConfig(
                3,
                ["m1"],
                partitioning_filters=[PartitioningFilter("foo.*", [1])],
                max_buffered_msgs=100,
                max_buffered_bytes=2048,
            ),
        ),
        (BARE, ElasticGroupConfig(3)),
    ],
)
def test_what_orbit_go_stores_is_read_and_written(data, config):
    assert type(config).decode(data) == config
    assert config.encode() == data.replace(b"\\u003e", b">")
    assert config.check() is config


@pytest.mark.rule("GROUP-3")
def test_null_and_absent_lists_are_empty():
    row = b'{"max_members":1,"partitioning_filters":[{"filter":">","partitioning_wildcards":null}]}'
    assert ElasticGroupConfig.decode(row).partitioning_filters == [PartitioningFilter(">")]
    assert StaticGroupConfig.decode(b'{"max_members":1,"members":null}').members == []


# What Go writes for a nil slice, and for an empty one; `reflect.DeepEqual` tells them apart.
FILTERS = [
    b"null",
    b"[]",
    b'[{"filter":"a.*","partitioning_wildcards":null}]',
    b'[{"filter":"a.*","partitioning_wildcards":[]}]',
]


@pytest.mark.rule("GROUP-3")
@pytest.mark.parametrize("filters", FILTERS)
def test_filters_are_stored_again_as_they_were(filters):
    data = b'{"max_members":2,"partitioning_filters":%s,"members":["a"]}' % filters
    config = ElasticGroupConfig.decode(data)
    config.members = ["a", "b"]
    assert config.encode() == data.replace(b'["a"]', b'["a","b"]')
    config.partitioning_filters = [PartitioningFilter("b.*", [1])]
    assert b'[{"filter":"b.*","partitioning_wildcards":[1]}]' in config.encode()


def test_unknown_keys_are_kept():
    data = b'{"max_members":1,"partitioning_filters":null,"color":"red"}'
    config = ElasticGroupConfig.decode(data)
    assert config.extra == {"color": "red"}
    assert config.encode() == data


@pytest.mark.rule("GROUP-4", "GROUP-5")
def test_the_subjects_of_a_member():
    static = StaticGroupConfig.decode(STATIC)
    assert static.subjects("m2") == ["1.a.>"]
    assert static.subjects("m3") == []
    assert StaticGroupConfig.decode(MAPPED).subjects("m1") == ["1.>", "0.>"]
    elastic = ElasticGroupConfig.decode(ELASTIC)
    assert elastic.subjects("m1") == ["0.foo.*", "1.foo.*", "2.foo.*"]
    assert ElasticGroupConfig(1, ["a"]).subjects("a") == ["0.>"]
    mapped = ElasticGroupConfig(
        1, mappings=[MemberMapping("a", [0])], partitioning_filters=[PartitioningFilter("x.*")]
    )
    assert mapped.subjects("a") == ["0.>"]
    assert (elastic.names, mapped.names) == (["m1"], ["a"])


def test_what_must_not_change():
    assert StaticGroupConfig(2, ["a"]).settings() != StaticGroupConfig(2, ["b"]).settings()
    assert ElasticGroupConfig(2, ["a"]).settings() == ElasticGroupConfig(2, ["b"]).settings()
    assert ElasticGroupConfig(2).settings() != ElasticGroupConfig(3).settings()


PAIR = [MemberMapping("a", [0]), MemberMapping("b", [1])]
INVALID = [
    (StaticGroupConfig(0), "max_members"),
    (StaticGroupConfig(2, ["a"], PAIR), "both"),
    (StaticGroupConfig(2, ["a.b"]), "member"),
    (StaticGroupConfig(3, mappings=PAIR), "from 0 to 2"),
    (StaticGroupConfig(2, mappings=[MemberMapping("a", [0]), MemberMapping("b", [2])]), "0 to 1"),
    (StaticGroupConfig(1, mappings=PAIR), "2 members for 1 partition"),
    (StaticGroupConfig(1, mappings=[MemberMapping("a", [0]), MemberMapping("b", [])]), "2 members"),
    (StaticGroupConfig(2, mappings=[MemberMapping("a", [0]), MemberMapping("a", [1])]), "twice"),
    (StaticGroupConfig(2, mappings=[MemberMapping("a", [0, 0])]), "once"),
    (StaticGroupConfig(2, filters=["a..b"]), "filter"),
    (ElasticGroupConfig(2, partitioning_filters=[PartitioningFilter("")]), "filter"),
    (ElasticGroupConfig(2, partitioning_filters=[PartitioningFilter("a.b")]), "no wildcard"),
    (ElasticGroupConfig(2, partitioning_filters=[PartitioningFilter("a.*", [1, 1])]), "duplicate"),
    (ElasticGroupConfig(2, partitioning_filters=[PartitioningFilter("a.*", [2])]), "from 1 to 1"),
    (ElasticGroupConfig(2, partitioning_filters=[PartitioningFilter("a.*", [0])]), "from 1 to 1"),
    (ElasticGroupConfig(2, max_buffered_msgs=-1), "max_buffered_msgs"),
    (ElasticGroupConfig(2, max_buffered_bytes=-1), "max_buffered_bytes"),
]


@pytest.mark.rule("GROUP-2", "GROUP-3", "GROUP-5")
@pytest.mark.parametrize(("config", "text"), INVALID)
def test_configurations_that_break_a_rule(config, text):
    with pytest.raises(LocalError, match=text):
        config.check()
    with pytest.raises(InvalidResponse, match="stored configuration"):
        type(config).decode(config.encode())


def test_the_base_has_no_form_of_its_own():
    base = GroupConfig(1)
    for call in (base.subject_filters, base.settings, base.to_json):
        with pytest.raises(NotImplementedError):
            call()
    assert repr(StaticGroupConfig(1)).startswith("StaticGroupConfig(max_members=1, ")
