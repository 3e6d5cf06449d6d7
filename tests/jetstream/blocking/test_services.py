"""Services without async: each method reaches its asynchronous counterpart, in plain functions."""

from __future__ import annotations

import pytest

from jetstream.blocking.services import (
    ServiceRequest,
    Services,
    add_auth_callout,
    add_service,
)
from jetstream.events import RequestFailed, ServiceStopped
from natsproto.auth import AuthCallout
from natsproto.auth.callout import SUBJECT, AuthResponse
from natsproto.errors import InvalidState, InvalidValue, TimeoutExpired, UserRejected
from tests.connection.jwt_keys import ACCOUNT
from tests.connection.test_callout import request_jwt
from tests.jetstream.service_stage import ServiceStage


class Bench:
    """A service on a client of one thread. `script` is played while a call waits."""

    def __init__(self, start=True, **options):
        self.stage = ServiceStage(alone=True)
        options = {"name": "s", "version": "1.0.0", **options}
        self.service = add_service(self.stage.blocking, **options)
        if start:
            self.idle(9)
            self.service.start()
            self.stage.script = []

    def idle(self, turns):
        self.stage.script = [lambda: None] * turns

    def send(self, subject, data=b"", reply="r"):
        return lambda: self.stage.send(subject, data, reply)

    def stop(self):
        self.service._service.hub.begin_stop(None)

    def run(self, *script):
        self.stage.script = [*script, self.stop]
        self.service.run()
        assert self.stage.script == []
        return self.stage.answers()


def test_clients_of_the_other_kind():
    stage = ServiceStage()
    with pytest.raises(InvalidValue, match=r"for others, use jetstream\.add_service"):
        add_service(stage.client, name="s", version="1.0.0")
    with pytest.raises(InvalidValue, match=r"for others, use jetstream\.Services"):
        Services(stage.client)


def test_attributes():
    bench = Bench(metadata={"a": "b"}, stats_data=lambda endpoint: {"name": endpoint.name})
    service = bench.service
    group = service.add_group("g", queue_group="other")
    endpoint = group.add_endpoint("e", metadata={"c": "d"})
    assert (service.name, service.version, len(service.id)) == ("s", "1.0.0", 22)
    assert (service.state, service.error, group.prefix) == ("RUNNING", None, "g")
    assert (endpoint.name, endpoint.subject, endpoint.queue_group) == ("e", "g.e", "other")
    assert (endpoint.metadata, endpoint.concurrency) == ({"c": "d"}, 1)
    assert (endpoint.pending, endpoint.in_progress, endpoint.dropped) == (0, 0, 0)
    assert (endpoint.ended, endpoint.stats.num_requests) == (False, 0)
    assert [each.name for each in service.endpoints] == ["e"]
    assert service.info().metadata == {"a": "b"}
    assert service.stats().endpoints[0].data == {"name": "e"}
    service.reset()
    assert repr(service).startswith("<Service 's'")
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


@pytest.mark.rule("D-SERVICE-18")
def test_async_functions_are_refused():
    bench = Bench()

    @bench.service.endpoint()
    async def e(request):
        raise AssertionError

    [(_, _, headers)] = bench.run(bench.send("e"))
    assert headers["Nats-Service-Error"].startswith("InvalidValue: function <")
    first, second = list(bench.service.events)
    assert isinstance(first, RequestFailed)
    assert second == ServiceStopped("s", bench.service.id, None)


def reject(request):
    raise UserRejected("bob has left")


async def coroutine(request):
    raise AssertionError


@pytest.mark.rule("CALLOUT-3", "D-CALLOUT-5")
@pytest.mark.parametrize(
    ("authorize", "error", "num_errors"),
    [
        (lambda request: request.user(), "", 0),
        (reject, "bob has left", 0),
        (coroutine, "authorization failed", 1),
    ],
)
def test_an_auth_callout(authorize, error, num_errors):
    bench = Bench()
    endpoint = add_auth_callout(bench.service, AuthCallout(ACCOUNT), authorize)
    [(_, answer, _)] = bench.run(bench.send(SUBJECT, request_jwt()))
    assert AuthResponse.decode(answer.decode()).error == error
    assert endpoint.stats.num_errors == num_errors


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


def test_the_block():
    bench = Bench(start=False)
    bench.idle(9)
    with bench.service as service:
        assert service is bench.service
        service.add_endpoint("e", lambda request: request.data)
        bench.send("e", b"1")()
    assert bench.stage.answers() == [("r", b"1", {})]
    assert service.state == "STOPPED"


def test_stop():
    bench = Bench()
    error = ValueError("mine")
    with pytest.raises(TimeoutExpired):
        bench.service.stopped(0)
    bench.idle(3)
    bench.service.stop(error, timeout=1.0)
    assert bench.service.stopped(0) is error
    assert bench.service.error is error
    assert bench.service.events.next(0) == ServiceStopped("s", bench.service.id, error)


def test_discovery():
    stage = ServiceStage(alone=True)
    stage.script = [lambda: stage.wire.timer(at=5.0)] * 9
    assert len(Services(stage.blocking).ping("s")) == 0
