from __future__ import annotations

import pytest

from jetstream.errors import ServiceError
from natsproto.errors import InvalidValue, PayloadTooLarge
from tests.jetstream.service_stage import UNAVAILABLE, ServiceStage


class Bench:
    """A stage, and the request that a loop or a handler has."""

    def __init__(self, hold=False, data=b"x", reply="r", **info):
        self.stage = ServiceStage()
        service = self.stage.service()
        self.endpoint = service.add_endpoint("e")
        self.stage.run(service.start())
        self.stage.send("e", data, reply)
        self.request = self.endpoint.take_queued(hold)
        self.stage.answers()

    def answers(self, call):
        assert self.stage.run(call) is None
        return self.stage.answers()


def test_attributes():
    request = Bench(data=b'{"a":1}').request
    assert (request.subject, request.reply, request.headers) == ("e", "r", None)
    assert (request.data, request.json(), request.answered) == (b'{"a":1}', {"a": 1}, False)
    assert repr(request) == "<ServiceRequest to 'e'>"
    with pytest.raises(ValueError, match="Expecting value"):
        Bench(data=b"x").request.json()


@pytest.mark.parametrize(
    ("call", "data", "headers"),
    [
        (lambda request: request.respond(), b"", {}),
        (lambda request: request.respond(bytearray(b"a")), b"a", {}),
        (lambda request: request.respond(b"a", headers={"A": "b"}), b"a", {"A": "b"}),
        (lambda request: request.respond_json([1, None]), b"[1,null]", {}),
        (lambda request: request.respond_json("x", headers={"A": "b"}), b'"x"', {"A": "b"}),
    ],
)
def test_answers(call, data, headers):
    bench = Bench()
    assert bench.answers(call(bench.request)) == [("r", data, headers)]
    assert bench.request.answered
    assert bench.endpoint.in_progress == 1  # until the handler returns
    assert bench.answers(call(bench.request)) == [("r", data, headers)]  # several are allowed


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda request: request.respond("text"), InvalidValue),
        (lambda request: request.respond_json({1, 2}), TypeError),
        (lambda request: request.respond(b"x" * 1048577), PayloadTooLarge),
        (lambda request: request.respond_error(0, ""), InvalidValue),
        (lambda request: request.respond_error(1, "x", "text"), InvalidValue),
    ],
)
def test_answers_that_cannot_be_sent(call, error):
    bench = Bench()
    assert isinstance(bench.stage.run(call(bench.request)), error)
    assert not bench.request.answered
    assert bench.endpoint.stats.num_errors == 0


@pytest.mark.rule("SERVICE-20", "D-SERVICE-6")
def test_errors():
    bench = Bench()
    call = bench.request.respond_error(404, "not found", b"x", headers={"A": "b"})
    headers = {"A": "b", "Nats-Service-Error": "not found", "Nats-Service-Error-Code": "404"}
    assert bench.answers(call) == [("r", b"x", headers)]
    assert (bench.endpoint.stats.num_errors, bench.endpoint.stats.last_error) == (
        1,
        "404: not found",
    )


@pytest.mark.rule("D-SERVICE-6")
@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ServiceError(404, "gone"), "404", "gone"),
        (KeyError("x"), "500", "KeyError: 'x'"),
        (ServiceError(400, "x", "text"), "500", "InvalidValue: payload 'text' is str, not bytes"),
    ],
)
def test_failures(error, code, text):
    bench = Bench()
    [(_, data, headers)] = bench.answers(bench.request.fail(error))
    assert (data, headers["Nats-Service-Error-Code"]) == (b"", code)
    assert headers["Nats-Service-Error"].startswith(text)
    assert bench.endpoint.stats.num_errors == 1


@pytest.mark.rule("D-SERVICE-7")
def test_a_failure_after_the_answer_is_only_counted():
    bench = Bench()
    bench.answers(bench.request.respond())
    assert bench.answers(bench.request.fail(ValueError("x"))) == []
    assert bench.endpoint.stats.last_error == "ValueError: x"


@pytest.mark.rule("D-SERVICE-8")
def test_without_a_reply_subject_nothing_is_sent():
    bench = Bench(reply="")
    assert bench.answers(bench.request.respond(b"x")) == []
    assert bench.answers(bench.request.fail(ValueError())) == []
    assert bench.endpoint.stats.num_errors == 1
    bench = Bench(reply="")
    bench.request.abandon()
    assert bench.stage.answers() == []


@pytest.mark.rule("D-SERVICE-17")
def test_a_request_of_a_loop_is_done_when_it_is_answered():
    bench = Bench(hold=True)
    assert bench.endpoint.in_progress == 1
    bench.answers(bench.request.respond())
    assert bench.endpoint.in_progress == 0


@pytest.mark.rule("D-SERVICE-13")
def test_abandon():
    bench = Bench()
    bench.request.abandon()
    assert bench.stage.answers() == [("r", b"", UNAVAILABLE)]
    bench.request.abandon()
    assert bench.stage.answers() == []
    assert bench.endpoint.stats.num_errors == 1


def test_abandon_on_a_connection_that_is_closed():
    bench = Bench()
    bench.stage.connection.close(0.0)
    bench.request.abandon()
    assert bench.request.answered


@pytest.mark.rule("D-SERVICE-16")
def test_an_answer_without_a_connection_is_sent_on_the_next_one():
    bench = Bench()
    bench.stage.lose()
    assert bench.answers(bench.request.respond(b"late")) == []
    bench.stage.reconnect()
    assert bench.stage.answers() == [("r", b"late", {})]


@pytest.mark.rule("D-SERVICE-14")
def test_the_client_can_drain_when_the_last_request_is_finished():
    bench = Bench()
    stage = bench.stage
    draining = stage.start(stage.client.drain())
    stage.settle()
    assert not draining.done
    bench.answers(bench.request.respond(b"last"))
    bench.request.finish()
    stage.settle()
    assert (draining.done, draining.error, stage.client.state) == (True, None, "CLOSED")


def test_a_congested_connection_makes_answers_wait():
    bench = Bench()
    bench.stage.wire.writable = False
    data = b"x" * 300_000
    task = bench.stage.start(bench.request.respond(data))
    bench.stage.settle()
    assert not task.done
    bench.stage.wire.writable = True
    bench.stage.settle()
    assert task.done
    assert [len(each[1]) for each in bench.stage.answers()] == [300_000]


@pytest.mark.rule("D-SERVICE-13")
def test_a_request_that_was_refused_gets_no_other_answer():
    bench = Bench(hold=True)
    bench.endpoint.refuse()
    assert bench.stage.answers() == [("r", b"", UNAVAILABLE)]
    assert bench.request.answered
    assert bench.answers(bench.request.respond(b"late")) == []
