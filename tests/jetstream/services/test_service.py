from __future__ import annotations

import pytest

from jetstream import blocking
from jetstream.events import RequestFailed, ServiceStopped
from jetstream.services.service import add_service
from natsproto.errors import (
    ConnectionClosed,
    InvalidName,
    InvalidSubject,
    InvalidValue,
    PermissionDenied,
    TimeoutExpired,
)
from tests.jetstream.service_stage import UNAVAILABLE, ServiceStage


@pytest.mark.rule("D-SERVICE-1")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": ""}, InvalidName),
        ({"name": "a b"}, InvalidName),
        ({"name": "a.b"}, InvalidName),
        ({"name": "a>"}, InvalidName),
        ({"version": "1"}, InvalidValue),
        ({"description": None}, InvalidValue),
        ({"metadata": {"a": 1}}, InvalidValue),
        ({"queue_group": "a b"}, InvalidSubject),
        ({"stats_data": 5}, InvalidValue),
        ({"prefix": "a.>"}, InvalidSubject),
        ({"drain_timeout": 0}, InvalidValue),
    ],
)
def test_arguments(options, error):
    stage = ServiceStage()
    with pytest.raises(error):
        stage.service(**options)
    assert stage.wire.sent() == b""


def test_clients_of_the_other_kind():
    stage = ServiceStage()
    with pytest.raises(InvalidValue, match=r"use jetstream\.blocking\.add_service"):
        add_service(stage.blocking, name="s", version="1.0.0")
    assert blocking.add_service


@pytest.mark.rule("SERVICE-3", "SERVICE-4")
def test_attributes():
    stage = ServiceStage()
    metadata = {"a": "b"}
    service = stage.service(description="Adds.", metadata=metadata)
    other = stage.service()
    metadata["c"] = "d"
    endpoint = service.add_endpoint("e")
    assert (service.name, service.version, service.state) == ("s", "1.0.0", "NEW")
    assert (service.error, service.endpoints, service.prefix) == (None, [endpoint], "")
    assert service.id != other.id
    info = service.info()
    assert (info.description, info.metadata, info.id) == ("Adds.", {"a": "b"}, service.id)
    info.metadata["x"] = "y"
    assert service.info().metadata == {"a": "b"}
    assert repr(service) == f"<Service 's' {service.id} NEW>"


@pytest.mark.rule("SERVICE-15")
def test_stats():
    stage = ServiceStage()
    service = stage.service()
    service.add_endpoint("e")
    stage.run(service.start())
    stats = stage.run(service.stats())
    assert (stats.name, str(stats.started)) == ("s", "1970-01-01T00:00:00Z")
    assert stats.endpoints[0].num_requests == 0


@pytest.mark.rule("SERVICE-19", "SERVICE-16")
def test_reset():
    stage = ServiceStage()
    service = stage.service()
    endpoint = service.add_endpoint("e")
    stage.run(service.start())
    stage.send("e")
    request = stage.run(endpoint.next())
    stage.wire.now = 2.0
    stage.run(request.respond())
    assert (endpoint.stats.num_requests, endpoint.stats.processing_time) == (1, 2.0)
    service.reset()
    assert endpoint.stats.num_requests == 0


def test_the_block():
    stage = ServiceStage()
    states = []

    async def main():
        async with stage.service() as service:
            states.append(service.state)
            service.add_endpoint("e", lambda request: b"x")
            stage.send("e")
        states.append(service.state)
        await service.run()

    assert stage.run(main()) is None
    assert states == ["RUNNING", "STOPPED"]
    assert stage.answers() == [("r", b"x", {})]


@pytest.mark.rule("D-SERVICE-13")
def test_the_block_that_raises():
    stage = ServiceStage()

    async def main():
        async with stage.service() as service:
            service.add_endpoint("e", lambda request: b"x")
            stage.send("e")
            raise ValueError("mine")

    assert str(stage.run(main())) == "mine"
    assert stage.answers() == [("r", b"", UNAVAILABLE)]


@pytest.mark.rule("SERVICE-23")
def test_stopped():
    stage = ServiceStage()
    service = stage.service()
    stage.run(service.start())
    assert isinstance(stage.run(service.stopped(0)), TimeoutExpired)
    waiting = stage.start(service.stopped())
    stage.settle()
    assert not waiting.done
    stage.run(service.stop())
    assert waiting.outcome() is None
    assert stage.run(service.stopped(0)) is None


@pytest.mark.rule("SERVICE-23", "D-SERVICE-10")
def test_events():
    stage = ServiceStage()
    service = stage.service()
    stage.run(service.start())
    assert isinstance(stage.run(service.events.next(0)), TimeoutExpired)

    async def loop():
        return [event async for event in service.events]

    looping = stage.start(loop())
    stage.settle()
    failed = RequestFailed("e", "e", ValueError())
    service.hub.machine.emit(failed)
    stage.settle()
    stage.deny("$SRV.PING")
    stage.settle()
    assert looping.outcome() == [failed, ServiceStopped("s", service.id, service.error)]
    assert isinstance(service.error, PermissionDenied)
    assert isinstance(stage.run(service.events.next()), ConnectionClosed)


def test_the_next_event():
    stage = ServiceStage()
    service = stage.service()
    stage.run(service.start())
    waiting = stage.start(service.events.next(5.0))
    stage.settle()
    stage.run(service.stop())
    stage.settle()
    assert waiting.outcome() == ServiceStopped("s", service.id, None)
