"""Endpoints without async: each method reaches its asynchronous counterpart."""

from __future__ import annotations

import pytest

from jetstream.blocking.endpoints import ServiceRequest
from natsproto.errors import InvalidState, TimeoutExpired
from tests.jetstream.service_bench import Bench


def test_attributes():
    bench = Bench()
    group = bench.service.add_group("g", queue_group="other")
    endpoint = group.add_endpoint("e", metadata={"c": "d"})
    assert (group.prefix, endpoint.name, endpoint.subject) == ("g", "e", "g.e")
    assert (endpoint.queue_group, endpoint.metadata) == ("other", {"c": "d"})
    assert (endpoint.concurrency, endpoint.pending, endpoint.in_progress) == (1, 0, 0)
    assert (endpoint.dropped, endpoint.ended, endpoint.stats.num_requests) == (0, False, 0)
    assert repr(endpoint) == "<Endpoint 'e' of 'g.e'>"


@pytest.mark.rule("D-SERVICE-18")
def test_handlers():
    bench = Bench()
    seen = []

    @bench.service.endpoint(metadata={"a": "b"})
    def e(request):
        assert isinstance(request, ServiceRequest)
        assert bench.stage.locked == 0
        seen.append((request.subject, request.reply, request.data, request.headers))
        assert request.json() == 1
        assert repr(request) == "<ServiceRequest to 'e'>"
        request.respond(b"a")
        assert request.answered
        request.respond_json(2)
        request.respond_error(400, "bad")

    assert e.__name__ == "e"
    answers = bench.run(bench.send("e", b"1"))
    assert seen == [("e", "r", b"1", None)]
    assert [each[1] for each in answers] == [b"a", b"2", b""]
    assert bench.service.state == "STOPPED"


def test_failing_a_request():
    bench = Bench()
    endpoint = bench.service.add_endpoint("e")
    bench.stage.script = [bench.send("e", b"1"), bench.stop]
    for request in endpoint:
        request.fail(ValueError("bad"))
        assert request.answered
    assert endpoint.stats.num_errors == 1


def test_concurrency_is_for_threads():
    bench = Bench()
    with pytest.raises(InvalidState, match="client is for one thread"):
        bench.service.add_endpoint("e", lambda request: b"", concurrency=2)


@pytest.mark.rule("D-SERVICE-17")
def test_loops():
    bench = Bench()
    endpoint = bench.service.add_endpoint("e")
    bench.stage.script = [bench.send("e", b"1"), bench.send("e", b"2"), bench.stop]
    seen = []
    for request in endpoint:
        seen.append(request.data)
        request.respond(request.data)
    assert seen == [b"1", b"2"]
    assert len(bench.stage.answers()) == 2
    loop = iter(endpoint)
    assert iter(loop) is loop


def test_next():
    bench = Bench()
    endpoint = bench.service.add_endpoint("e")
    with pytest.raises(TimeoutExpired):
        endpoint.next(0)
    bench.send("e", b"1")()
    assert endpoint.next(0).data == b"1"
