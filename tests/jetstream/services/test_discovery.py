from __future__ import annotations

import pytest

from jetstream.errors import InvalidResponse, ServiceError
from jetstream.services.discovery import Services
from jetstream.services.responses import encode
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue
from tests.jetstream.support import NOBODY, SILENCE, Stage, Status


def ping(id="1", **fields):
    made = {"type": "io.nats.micro.v1.ping_response", "name": "s", "id": id, "version": "1.0.0"}
    return encode({**made, "metadata": {}, **fields})


@pytest.mark.rule("SERVICE-25")
@pytest.mark.parametrize(
    ("call", "subject"),
    [
        (lambda services: services.ping(), "$SRV.PING"),
        (lambda services: services.ping("s"), "$SRV.PING.s"),
        (lambda services: services.info("s"), "$SRV.INFO.s"),
        (lambda services: services.stats("s"), "$SRV.STATS.s"),
        (lambda services: services.ping("s", "1"), "$SRV.PING.s.1"),
    ],
)
def test_subjects(call, subject):
    stage = Stage(NOBODY)
    found = stage.run(call(Services(stage.client)))
    assert (len(found), found.invalid) == (0, [])
    assert [each[0] for each in stage.asked] == [subject]


@pytest.mark.rule("SERVICE-25")
def test_all_instances_respond():
    stage = Stage([ping("1"), ping("2")])
    found = stage.run(Services(stage.client).ping("s", stall=0.25))
    assert [each.id for each in found] == ["1", "2"]
    assert (found[1].id, len(found), found.rtts) == ("2", 2, [0.0, 0.0])
    assert stage.now() == 0.25  # the pause after the last response
    assert repr(found) == "<ServiceResponses of 2 services, 0 invalid>"


@pytest.mark.rule("SERVICE-25")
def test_discovery_does_not_wait_after_the_only_instance():
    stage = Stage([ping("1")])
    found = stage.run(Services(stage.client).ping("s", "1"))
    assert (len(found), stage.now()) == (1, 0.0)


def test_the_timeout():
    stage = Stage(SILENCE, SILENCE)
    services = Services(stage.client, timeout=3.0)
    assert len(stage.run(services.ping())) == 0
    assert stage.now() == 3.0
    assert len(stage.run(services.stats(timeout=1.0))) == 0
    assert stage.now() == 4.0


@pytest.mark.rule("SERVICE-26")
def test_responses_that_are_invalid_do_not_hide_others():
    stage = Stage([b"x", ping("1", metadata=None), ping("2", name=5)])
    found = stage.run(Services(stage.client).ping())
    assert [each.id for each in found] == ["1"]
    assert [str(each) for each in found.invalid] == [
        "response is not valid JSON: b'x'",
        "ServicePing.name: 5 is not a str",
    ]
    assert all(isinstance(each, InvalidResponse) for each in found.invalid)


@pytest.mark.rule("SERVICE-25", "D-SERVICE-1")
def test_arguments():
    stage = Stage()
    services = Services(stage.client)
    for call, error in [
        (services.ping("", "1"), InvalidValue),
        (services.info("a.b"), InvalidName),
        (services.stats("a", "b.*"), InvalidSubject),
        (services.ping(timeout=0), InvalidValue),
    ]:
        with pytest.raises(error):
            stage.run(call)
    with pytest.raises(InvalidSubject):
        Services(stage.client, prefix="a b")
    with pytest.raises(InvalidValue):
        Services(stage.client, timeout=0)
    with pytest.raises(InvalidValue, match=r"use jetstream\.blocking\.Services"):
        Services(stage.blocking)
    assert stage.quiet()


def test_another_prefix():
    stage = Stage(NOBODY)
    stage.run(Services(stage.client, prefix="other").ping())
    assert [each[0] for each in stage.asked] == ["other.PING"]


@pytest.mark.rule("SERVICE-20")
def test_requests():
    error = Status("", b"x", Nats_Service_Error="bad", Nats_Service_Error_Code=400)
    stage = Stage(b"fine", error)
    services = Services(stage.client)
    assert stage.run(services.request("e", b"1")).data == b"fine"
    with pytest.raises(ServiceError, match="400: bad") as caught:
        stage.run(services.request("e", headers={"A": "b"}, timeout=1.0))
    assert caught.value.data == b"x"
