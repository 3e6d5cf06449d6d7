"""The arithmetic of partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetstream.pull.groups.config import MemberMapping, PartitioningFilter
from jetstream.pull.groups.partitions import balanced, filter_subjects, mapped, transform

TABLE = [  # members, partitions, the partitions of each member, as orbit.go computes them
    (["a"], 3, {"a": [0, 1, 2], "z": []}),
    (["m1", "m2"], 6, {"m1": [0, 1, 2], "m2": [3, 4, 5]}),
    (["c", "a", "b"], 7, {"a": [0, 1, 6], "b": [2, 3], "c": [4, 5]}),
    (["a", "b", "c"], 8, {"a": [0, 1, 6], "b": [2, 3, 7], "c": [4, 5]}),
    (["b", "a", "b"], 2, {"a": [0], "b": [1]}),
    (["c", "b", "a"], 2, {"a": [0], "b": [1], "c": []}),
    ([], 2, {"a": []}),
]


@pytest.mark.rule("GROUP-4")
@pytest.mark.parametrize(("members", "count", "found"), TABLE)
def test_members_share_the_partitions(members, count, found):
    assert {name: balanced(members, count, name) for name in found} == found


@pytest.mark.rule("GROUP-4")
@given(st.sets(st.text("abc", min_size=1), min_size=1), st.integers(1, 40))
def test_each_partition_has_one_member(members, count):
    parts = [balanced(members, count, name) for name in members]
    assert sorted(each for part in parts for each in part) == list(range(count))
    sizes = [len(part) for part in parts if part]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.rule("GROUP-5")
def test_mappings_name_the_partitions():
    mappings = [MemberMapping("a", [2, 0]), MemberMapping("b", [1])]
    assert [mapped(mappings, name) for name in "abc"] == [[2, 0], [1], []]


@pytest.mark.rule("GROUP-5")
def test_filters_are_after_the_partition():
    assert filter_subjects([0, 2], ["a.*", "b.>"]) == ["0.a.*", "2.a.*", "0.b.>", "2.b.>"]
    assert filter_subjects([], ["a"]) == []


@pytest.mark.rule("GROUP-7")
@pytest.mark.parametrize(
    ("subject", "wildcards", "destination"),
    [
        (">", [], "{{Partition(3)}}.>"),
        ("foo.*", [1], "{{Partition(3,1)}}.foo.{{Wildcard(1)}}"),
        ("*.x.*", [2, 1], "{{Partition(3,2,1)}}.{{Wildcard(1)}}.x.{{Wildcard(2)}}"),
        ("a.*.>", [], "{{Partition(3)}}.a.{{Wildcard(1)}}.>"),
    ],
)
def test_the_transform_puts_the_partition_first(subject, wildcards, destination):
    assert transform(PartitioningFilter(subject, wildcards), 3) == destination
