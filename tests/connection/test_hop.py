"""Hop: the report of one server."""

from __future__ import annotations

import pytest

from natsproto.errors import InvalidValue
from natsproto.paths.hop import decode_hop
from natsproto.paths.steps import Egress, Ingress, UnknownStep
from tests.connection.reports import ALONE, IN, S1, S2, event, report


def test_a_report():
    hop = decode_hop(S1)
    server = hop.server
    assert (server.name, server.cluster, server.version) == ("s1", "test", "2.15.1")
    assert (server.domain, server.id) == ("", "")
    assert (hop.size, hop.count, hop.next) == (62, 2, [])
    assert hop.headers == {"Nats-Trace-Dest": ["T.1"], "Nats-Trace-Only": ["true"]}
    assert [type(step) for step in hop.steps] == [Ingress, Egress, Egress]
    assert hop.ingress is hop.steps[0]
    assert hop.egresses == hop.steps[1:]
    assert hop.data["server"]["flags"] == 7


@pytest.mark.rule("HOP-4")
def test_the_id_is_a_header_of_the_message():
    assert decode_hop(S1).id == ""
    assert decode_hop(S2).id == "2"


@pytest.mark.rule("HOP-5")
def test_the_announced_hops():
    assert decode_hop(S1).announced() == ["1", "2"]
    assert decode_hop(ALONE).announced() == []
    old = event("eg", kind=1, hop="1", error="remote does not support message tracing")
    assert decode_hop(report("s1", [IN, old], hops=1)).announced() == []


@pytest.mark.rule("HOP-6")
def test_headers_are_found_in_any_case():
    request = {"header": {"TraceParent": ["00-1"], "Empty": [], "Odd": [1, "x"], "Bad": "y"}}
    hop = decode_hop(report("s1", [], request=request))
    assert hop.header("traceparent") == "00-1"
    assert hop.header("empty") == hop.header("absent") == hop.header("bad") == ""
    assert hop.header("odd") == "x"
    assert hop.ingress is None
    assert decode_hop(report("s1", [event("sm", to="b"), IN])).ingress is not None


@pytest.mark.rule("D-HOP-8")
def test_fields_of_the_wrong_type_are_empty():
    hop = decode_hop(b'{"server": 1, "request": [], "hops": "2", "events": [1, {"type": "zz"}]}')
    assert (hop.server.name, hop.headers, hop.count) == ("", {}, 0)
    assert [type(step) for step in hop.steps] == [UnknownStep, UnknownStep]
    assert decode_hop(b'{"events": 1}').steps == []


@pytest.mark.rule("HOP-1")
@pytest.mark.parametrize("payload", [b"", b"[]", b"\xff", b"{", b"7"])
def test_a_payload_that_is_not_a_json_object(payload):
    with pytest.raises(InvalidValue, match="not a JSON object"):
        decode_hop(payload)
