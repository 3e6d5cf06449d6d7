"""The drawing of a path."""

from __future__ import annotations

import pytest

from natsproto.paths.draw import describe
from natsproto.paths.path import MessagePath
from natsproto.paths.steps import decode_step
from tests.connection.reports import S1, S2, S3, event, report

CLUSTER = """\
s1 in cluster test
  in from client s1c (cid 21), subject k
  out to router s3 (cid 15)
    s3 in cluster test
      in from router s1 (cid 15), subject k
      out to client s3c (cid 21), subscription k
  out to router s2 (cid 19)
    s2 in cluster test
      in from router s1 (cid 18), subject k
      out to client s2c (cid 21), subscription k"""


def test_a_cluster():
    path = MessagePath()
    for each in (S3, S2, S1):
        path.add(each)
    assert str(path) == CLUSTER


def test_hops_that_no_step_names_come_last():
    path = MessagePath()
    path.add(report("", [], server={}))
    path.add(report("s2", [], hop="1"))
    assert str(path).splitlines() == ["unnamed server", "    s2 in cluster test"]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (event("sm", to="b"), "mapped to b"),
        (event("se", acc="B", to="x"), "exported to account B as x"),
        (event("si", acc="B", to="x"), "imported service of account B as x"),
        (event("js", stream="S"), "stream S"),
        (event("js", stream="S", nointerest=True), "stream S, no interest"),
        (event("js", stream="S", error="full"), "stream S: full"),
        (event("eg", cid=3, sub="a", queue="q"), "out to client (cid 3), subscription a, queue q"),
        (event("in", subj="a", error="denied"), "in from client (cid 0), subject a: denied"),
    ],
)
def test_each_step_is_a_line(data, line):
    assert describe(decode_step(data)) == line


def test_an_unknown_step():
    assert describe(decode_step({"type": "xx"})).startswith("unknown step UnknownStep(")
