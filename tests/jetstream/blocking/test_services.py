"""Services without async: each method reaches its asynchronous counterpart, in plain functions."""

from __future__ import annotations

import pytest

from jetstream.blocking.services import Services, add_auth_callout, add_service
from jetstream.events import RequestFailed, ServiceStopped
from natsproto.auth import AuthCallout
from natsproto.auth.callout import SUBJECT, AuthResponse
from natsproto.errors import InvalidValue, TimeoutExpired, UserRejected
from tests.connection.jwt_keys import ACCOUNT
from tests.connection.test_callout import request_jwt
from tests.jetstream.service_bench import Bench
from tests.jetstream.service_stage import ServiceStage


def test_clients_of_the_other_kind():
    stage = ServiceStage()
    with pytest.raises(InvalidValue, match=r"for others, use jetstream\.add_service"):
        add_service(stage.client, name="s", version="1.0.0")
    with pytest.raises(InvalidValue, match=r"for others, use jetstream\.Services"):
        Services(stage.client)


def test_attributes():
    bench = Bench(metadata={"a": "b"}, stats_data=lambda endpoint: {"name": endpoint.name})
    service = bench.service
    service.add_group("g").add_endpoint("e")
    assert (service.name, service.version, len(service.id)) == ("s", "1.0.0", 22)
    assert (service.state, service.error) == ("RUNNING", None)
    assert [each.name for each in service.endpoints] == ["e"]
    assert service.info().metadata == {"a": "b"}
    assert service.stats().endpoints[0].data == {"name": "e"}
    service.reset()
    assert repr(service).startswith("<Service 's'")


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
