"""MessagePath: reports in any order become a tree."""

from __future__ import annotations

import itertools

import pytest

from natsproto.paths.path import MessagePath
from tests.connection.reports import ALONE, IN, S1, S2, S3, event, report

DEEP = [  # a leafnode after a leafnode, and a second one after the first
    report("hub", [IN, event("eg", kind=4, hop="1")], hops=1),
    report("leaf", [IN, event("eg", hop="1.1"), event("eg", hop="1.2")], hop="1", hops=2),
    report("end", [IN], hop="1.1"),
    report("other", [IN], hop="1.2"),
]


def path_of(*reports: bytes) -> MessagePath:
    path = MessagePath()
    for each in reports:
        path.add(each)
    return path


@pytest.mark.rule("HOP-5")
def test_a_path_is_complete_when_all_announced_hops_have_reported():
    path = MessagePath()
    states = []
    for each in (S3, S1, S2):
        assert path.add(each) is path.hops[-1]
        states.append((path.complete, path.missing))
    assert states == [(False, []), (False, ["2"]), (True, [])]
    assert path_of(ALONE).complete
    assert not path_of().complete


@pytest.mark.rule("HOP-4")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_of_reports_does_not_matter(order):
    path = path_of(*[DEEP[number] for number in order])
    assert path.complete
    assert path.origin is not None
    [leaf] = path.origin.next
    assert (path.origin.server.name, leaf.server.name) == ("hub", "leaf")
    assert [each.server.name for each in leaf.next] == ["end", "other"]
    assert [each.next for each in leaf.next] == [[], []]


@pytest.mark.rule("HOP-4")
def test_hops_are_sorted_by_number():
    origin = report("s1", [event("eg", hop=str(number)) for number in range(1, 12)])
    others = [report(f"n{number}", [], hop=str(number)) for number in (10, 2, 11, 1)]
    path = path_of(*others[:2], origin, *others[2:], report("odd", [], hop="x"))
    assert path.origin is not None
    assert [each.id for each in path.origin.next] == ["1", "2", "10", "11", "x"]


def test_the_deliveries_and_the_errors():
    path = path_of(S1, S2, S3)
    assert [each.name for each in path.deliveries] == ["s2c", "s3c"]
    assert path.errors == []
    denied = path_of(report("s1", [event("in", error="denied"), event("eg", error="closed")]))
    assert denied.errors == ["denied", "closed"]


@pytest.mark.rule("D-HOP-8")
def test_unreadable_reports_are_kept():
    path = path_of(b"junk", ALONE)
    assert path.unreadable == [b"junk"]
    assert path.complete


def test_the_text_of_a_path():
    assert str(path_of()) == str(path_of(S2)) == "no report of the first server"
    assert str(path_of(S1, S2)).splitlines()[-1] == "no report of hop 1"
