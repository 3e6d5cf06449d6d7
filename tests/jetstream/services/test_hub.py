from __future__ import annotations

import pytest

from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    PermissionDenied,
    TimeoutExpired,
)
from tests.jetstream.service_stage import UNAVAILABLE, Cancelled, ServiceStage


def handle(request):
    return b""


def started(**options):
    stage = ServiceStage()
    service = stage.service(**options)
    assert stage.run(service.start()) is None
    stage.pump()
    return stage, service


@pytest.mark.rule("SERVICE-11", "SERVICE-12", "SERVICE-4")
def test_start_subscribes_to_everything():
    stage = ServiceStage()
    service = stage.service()
    service.add_endpoint("e", handle)
    stage.pump()
    assert stage.subs == {}
    stage.run(service.start())
    monitors = [(subject, queue) for subject, queue in stage.subs.values() if subject != "e"]
    assert sorted(monitors) == sorted(
        (f"$SRV.{verb}{path}", "")
        for verb in ("PING", "INFO", "STATS")
        for path in ("", ".s", ".s." + service.id)
    )
    assert ("e", "q") in stage.subs.values()
    assert len(service.id) == 22
    assert isinstance(stage.run(service.start()), InvalidState)


@pytest.mark.rule("SERVICE-11")
def test_another_prefix():
    stage, service = started(prefix="other")
    assert stage.ask("other.PING.s")["id"] == service.id


def test_start_waits_for_the_server():
    stage = ServiceStage()
    stage.pongs = False
    service = stage.service()
    task = stage.start(service.start(5.0))
    stage.settle()
    assert (task.done, service.state) == (False, "RUNNING")
    stage.pongs = True
    stage.settle()
    assert task.done


def test_start_without_a_response_ends_the_service():
    stage = ServiceStage()
    stage.pongs = False
    service = stage.service()
    task = stage.start(service.start(5.0))
    stage.settle()
    stage.wire.timer(at=6.0)
    stage.settle()
    assert isinstance(task.outcome(), TimeoutExpired)
    stage.pongs = True
    stage.settle()
    assert (service.state, stage.subs) == ("STOPPED", {})


def test_start_that_is_canceled_ends_the_service():
    stage = ServiceStage()
    stage.pongs = False
    service = stage.service()
    task = stage.start(service.start(5.0))
    stage.settle()
    stage.cancel(task)
    assert isinstance(task.outcome(), Cancelled)
    stage.pongs = True
    stage.settle()
    assert (service.state, stage.subs) == ("STOPPED", {})


@pytest.mark.rule("D-SERVICE-10")
def test_a_denied_subject_ends_start():
    stage = ServiceStage()
    stage.pongs = False
    service = stage.service()
    task = stage.start(service.start())
    stage.settle()
    stage.deny("$SRV.INFO.s")
    stage.pongs = True
    stage.settle()
    assert isinstance(task.outcome(), PermissionDenied)
    assert service.state == "STOPPED"
    assert isinstance(service.error, PermissionDenied)
    assert stage.subs == {}


@pytest.mark.rule("D-SERVICE-16")
def test_start_without_a_connection():
    stage = ServiceStage()
    stage.lose()
    service = stage.service()
    service.add_endpoint("e")
    assert stage.run(service.start()) is None
    assert stage.subs == {}
    stage.reconnect()
    assert len(stage.subs) == 10
    assert stage.ask("$SRV.PING")["name"] == "s"


@pytest.mark.rule("D-SERVICE-16")
def test_a_connection_that_is_lost_during_start():
    stage = ServiceStage()
    stage.pongs = False
    service = stage.service()
    task = stage.start(service.start())
    stage.settle()
    stage.lose()
    stage.settle()
    assert task.outcome() is None
    stage.pongs = True
    stage.reconnect()
    assert (service.state, len(stage.subs)) == ("RUNNING", 9)


def test_start_on_a_client_that_is_closed():
    stage = ServiceStage()
    service = stage.service()
    stage.connection.close(0.0)
    assert isinstance(stage.run(service.start()), ConnectionClosed)


@pytest.mark.rule("SERVICE-10")
def test_endpoints_cannot_be_added_after_the_end():
    stage, service = started()
    stage.run(service.stop())
    with pytest.raises(InvalidState, match=r"service has ended: 's' \(SERVICE-10\)"):
        service.add_endpoint("e")


@pytest.mark.rule("D-SERVICE-18", "D-SERVICE-11")
def test_a_single_thread_handles_one_request_at_once():
    service = ServiceStage(alone=True).service()
    service.add_endpoint("e", handle, concurrency=1)
    with pytest.raises(InvalidState, match="client is for one thread, not for 2 requests at once"):
        service.add_endpoint("f", handle, concurrency=2)
    assert len(service.endpoints) == 1


@pytest.mark.rule("SERVICE-24")
def test_stop_leaves_other_services_and_subscriptions_alone():
    stage, first = started()
    second = stage.service(name="t")
    stage.run(second.start())
    stage.run(stage.client.subscribe("x"))
    stage.run(first.stop())
    assert (first.state, second.state, stage.client.state) == ("STOPPED", "RUNNING", "CONNECTED")
    assert len(stage.subs) == 10
    assert stage.ask("$SRV.PING")["name"] == "t"


@pytest.mark.rule("SERVICE-22")
def test_stop_waits_for_the_fence():
    stage, service = started()
    stage.pongs = False
    task = stage.start(service.stop())
    stage.settle()
    assert (task.done, service.state, stage.subs) == (False, "STOPPING", {})
    again = stage.start(service.stop(timeout=1.0))
    stage.settle()
    stage.wire.timer(at=2.0)
    stage.settle()
    assert isinstance(again.outcome(), TimeoutExpired)
    stage.pongs = True
    stage.settle()
    assert (task.outcome(), service.state) == (None, "STOPPED")


@pytest.mark.rule("SERVICE-22")
def test_stop_without_a_connection():
    stage, service = started()
    stage.lose()
    assert stage.run(service.stop()) is None
    assert service.state == "STOPPED"


@pytest.mark.rule("SERVICE-22")
def test_a_lost_connection_ends_the_drain():
    stage, service = started()
    stage.pongs = False
    task = stage.start(service.stop())
    stage.settle()
    stage.lose()
    stage.settle()
    assert (task.outcome(), service.state) == (None, "STOPPED")


def test_the_end_of_the_client_is_the_end_of_the_service():
    stage, service = started()
    stage.connection.close(0.0)
    assert (service.state, service.error) == ("STOPPED", None)
    stage, service = started()
    stage.connection.abandon("gone")
    assert service.state == "STOPPED"
    assert isinstance(service.error, ConnectionClosed)


@pytest.mark.rule("D-SERVICE-10")
def test_look_drains_the_rest_of_a_service():
    stage, service = started()
    service.add_endpoint("e")
    stage.pump()
    stage.deny("$SRV.PING")
    assert service.state == "STOPPING"
    assert list(stage.subs.values()).count(("e", "q")) == 1
    assert isinstance(stage.run(service.stopped()), PermissionDenied)
    assert (service.state, stage.subs) == ("STOPPED", {})
    service.hub.look()
    service.hub.begin_stop(None)
    assert service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-13")
def test_abort_answers_with_503_until_the_fence():
    stage, service = started()
    service.add_endpoint("e")
    stage.send("e", reply="r1")
    sid = next(sid for sid, pair in stage.subs.items() if pair[0] == "e")
    stage.pongs = False
    service.hub.abort()
    stage.send_to(sid, "e", b"", "r2")
    assert stage.answers() == [("r1", b"", UNAVAILABLE), ("r2", b"", UNAVAILABLE)]
    service.hub.abort()
    stage.pongs = True
    stage.pump()
    assert service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-12")
def test_refuse_rest_is_for_loops():
    stage, service = started()
    service.add_endpoint("loop")
    service.add_endpoint("handler", handle)
    stage.send("loop", reply="r1")
    stage.send("handler", reply="r2")
    service.hub.refuse_rest()
    assert stage.answers() == [("r1", b"", UNAVAILABLE)]


@pytest.mark.rule("SERVICE-19", "SERVICE-17")
def test_started_is_the_wall_clock():
    stage = ServiceStage()
    stage.wire.now = 1.5
    service = stage.service()
    stage.run(service.start())
    assert stage.ask("$SRV.STATS")["started"] == "1970-01-01T00:00:01.5Z"
    stage.wire.now = 3.0
    service.reset()
    assert stage.ask("$SRV.STATS")["started"] == "1970-01-01T00:00:03Z"


def test_calls_that_need_a_start():
    service = ServiceStage().service()
    with pytest.raises(InvalidState, match="service is not started: use it in a `with` block"):
        service.hub.check_started()
    _, service = started()
    assert service.hub.check_started() is None


@pytest.mark.rule("SERVICE-23")
def test_waiting_for_the_end():
    stage, service = started()
    waiting = stage.start(service.hub.wait_stopped(5.0))
    late = stage.start(service.hub.wait_stopped(1.0))
    stage.settle()
    stage.wire.timer(at=2.0)
    stage.settle()
    assert str(late.outcome()) == "no end of service 's' in time"
    assert not waiting.done
    stage.run(service.stop())
    assert waiting.outcome() is None


@pytest.mark.rule("D-SERVICE-16", "D-SERVICE-13")
def test_refusals_without_a_connection_are_sent_on_the_next_one():
    stage, service = started()
    service.add_endpoint("e")
    stage.send("e", reply="r1")
    stage.lose()
    service.hub.abort()
    assert (service.state, stage.answers()) == ("STOPPED", [])
    stage.reconnect()
    assert stage.answers() == [("r1", b"", UNAVAILABLE)]


def test_a_service_is_started_or_not():
    _, service = started()
    service._hub.check_started()
    with pytest.raises(InvalidState, match="service is not started"):
        ServiceStage().service()._hub.check_started()
