from __future__ import annotations

import json

import pytest

from jetstream.events import ResponseTruncated, ServiceStopped
from jetstream.schema.timestamp import Timestamp
from jetstream.services import states
from jetstream.services.machine import ServiceMachine
from jetstream.services.queue import RequestQueue
from jetstream.services.responses import EndpointRecord, Identity
from jetstream.testing.service_schema import SCHEMAS, validate
from natsproto.connection.effects import Poke, Publish, Unsubscribe, Wake
from natsproto.errors import PermissionDenied
from natsproto.wire.frames import Msg

DENIED = PermissionDenied("no")


class Bench:
    """A service with one endpoint, and a list that stands for its connection."""

    def __init__(self, custom=False, start=True):
        identity = Identity("s", "1", "1.0.0", "Adds.", {})
        self.service = ServiceMachine(identity, "$SRV", Timestamp(0), custom)
        self.queue = RequestQueue(self.service, EndpointRecord("e", "e", "q", {}), 10, 1000)
        self.service.add(self.queue)
        self.subjects = {}
        self.sids = 0
        if start:
            for subject, monitor in self.service.make_monitors():
                self.subscribe(monitor)
                self.subjects[subject] = monitor
            self.subscribe(self.queue)
            self.service.start(Timestamp(5))
        self.woken()

    def subscribe(self, receiver):
        self.sids += 1
        receiver.sid = self.sids
        self.service.subscribed()

    def woken(self):
        """Return the waitables that were woken since the last look."""
        effects = self.service.take_effects()
        for receiver in [self.queue, *self.subjects.values()]:
            effects += [each for each in receiver.effects if isinstance(each, Wake)]
            receiver.effects = [each for each in receiver.effects if not isinstance(each, Wake)]
        return [each for effect in effects for each in effect.waitables]

    def request(self):
        self.queue.receive(Msg(b"e", 1, b"r", b"", None, 5), 0.0)

    def ask(self, subject, reply=b"m"):
        monitor = self.subjects[subject]
        assert monitor.receive(Msg(subject.encode(), 1, reply), 0.0) is False
        effects = [each for each in monitor.effects if isinstance(each, Publish)]
        monitor.effects = [each for each in monitor.effects if each not in effects]
        assert all(each.subject == b"m" for each in effects)
        return [json.loads(each.data) for each in effects]

    def end_all(self, error=None):
        for receiver in self.service.receivers():
            receiver.end(error)


@pytest.mark.rule("SERVICE-11", "SERVICE-13", "SERVICE-14", "SERVICE-15", "D-SERVICE-2")
@pytest.mark.parametrize("path", ["", ".s", ".s.1"])
@pytest.mark.parametrize("verb", ["PING", "INFO", "STATS"])
def test_monitors_answer_at_once(verb, path):
    bench = Bench()
    bench.request()
    bench.queue.take(0.0)  # and the handler does not return
    [found] = bench.ask("$SRV." + verb + path)
    validate(found, SCHEMAS[verb])
    assert found["type"] == f"io.nats.micro.v1.{verb.lower()}_response"
    if verb == "STATS":
        assert found["started"] == "1970-01-01T00:00:00.000000005Z"
        assert found["endpoints"][0]["num_requests"] == 1
    assert len(bench.subjects) == 9
    assert bench.subjects["$SRV." + verb].pending() == 0


def test_monitors_do_not_answer_without_a_reply_subject():
    assert Bench().ask("$SRV.PING", reply=b"") == []


@pytest.mark.rule("SERVICE-10")
def test_endpoints_can_be_added_while_it_runs():
    bench = Bench()
    more = RequestQueue(bench.service, EndpointRecord("f", "g.f", "", {}), 1, 1)
    bench.service.add(more)
    assert bench.service.changed in bench.woken()
    assert [each["name"] for each in bench.ask("$SRV.INFO")[0]["endpoints"]] == ["e", "f"]
    assert [each["name"] for each in bench.ask("$SRV.STATS")[0]["endpoints"]] == ["e", "f"]


@pytest.mark.rule("D-SERVICE-3", "SERVICE-18")
def test_statistics_with_data_wait_for_the_api():
    bench = Bench(custom=True)
    [without] = bench.ask("$SRV.STATS")  # there is no caller to run the function
    assert "data" not in without["endpoints"][0]
    assert not bench.service.stats_waiting
    bench.service.serving += 1
    assert bench.ask("$SRV.STATS") == []
    assert bench.woken() == [bench.service.work]
    assert bench.service.stats_waiting
    [msg] = bench.service.take_stats_requests()
    assert (msg.raw_reply, bench.service.stats_waiting) == (b"m", False)
    more = RequestQueue(bench.service, EndpointRecord("f", "f", "", {}), 1, 1)
    bench.service.add(more)
    found = bench.service.stats_json([(more, 0), (bench.queue, {"x": 1})])
    assert [each["data"] for each in found["endpoints"]] == [{"x": 1}, 0]


@pytest.mark.rule("D-SERVICE-3")
def test_statistics_that_wait_are_bounded():
    bench = Bench(custom=True)
    bench.service.serving += 1
    for _ in range(256):
        assert bench.ask("$SRV.STATS") == []
    assert len(bench.ask("$SRV.STATS")) == 1


@pytest.mark.rule("SERVICE-19")
def test_reset():
    bench = Bench()
    bench.request()
    bench.queue.take(0.0)
    bench.service.reset(Timestamp(7))
    [found] = bench.ask("$SRV.STATS")
    assert found["started"] == "1970-01-01T00:00:00.000000007Z"
    assert found["endpoints"][0]["num_requests"] == 0


@pytest.mark.rule("SERVICE-22", "SERVICE-23")
def test_stop_waits_for_subscriptions_and_requests():
    bench = Bench()
    service = bench.service
    bench.request()
    bench.request()
    handling = bench.queue.take(0.0)
    assert service.stop() is True
    assert (service.state, service.drained, service.unfinished) == (states.STOPPING, False, 2)
    assert service.stop() is False  # twice is fine
    assert len(service.receivers()) == 10
    bench.end_all()
    assert (service.state, service.drained, service.receivers()) == (states.STOPPING, True, [])
    handling.finish(1.0)
    assert service.state == states.STOPPING
    bench.woken()
    bench.queue.take(1.0).finish(2.0)
    assert (service.state, service.drained) == (states.STOPPED, True)
    assert service.events.items == [ServiceStopped("s", "1", None)]
    assert {service.changed, service.work, bench.queue} <= set(bench.woken())
    assert service.stop() is False
    assert len(service.events.items) == 1


@pytest.mark.rule("SERVICE-22")
def test_requests_that_arrive_after_stop_are_accepted_until_the_fence():
    bench = Bench()
    bench.service.stop()
    bench.request()
    assert bench.service.unfinished == 1
    bench.end_all()
    assert bench.service.state == states.STOPPING
    bench.queue.take(0.0).finish(0.0)
    assert bench.service.state == states.STOPPED


@pytest.mark.rule("SERVICE-23")
def test_an_error_of_the_user():
    bench = Bench()
    error = ValueError("mine")
    bench.service.stop(error)
    bench.service.stop(KeyError())
    bench.end_all(DENIED)
    assert bench.service.error is error
    assert bench.service.events.items == [ServiceStopped("s", "1", error)]


def test_a_service_that_was_never_started():
    bench = Bench(start=False)
    assert not bench.service.drained
    assert bench.service.stop() is False
    assert (bench.service.state, bench.service.drained) == (states.STOPPED, True)


@pytest.mark.rule("D-SERVICE-10")
@pytest.mark.parametrize("lost", ["$SRV.PING", "e"])
def test_a_subscription_that_is_lost_ends_the_service(lost):
    bench = Bench()
    service = bench.service
    bench.request()
    receiver = bench.queue if lost == "e" else bench.subjects[lost]
    assert receiver.end(DENIED) is True
    assert receiver.end(DENIED) is False
    assert (service.state, service.error, service.must_drain) == (states.STOPPING, DENIED, True)
    assert {service.changed, service.work, bench.queue} <= set(bench.woken())
    # The monitors leave at once, and the API drains the endpoints.
    monitors = [each for each in bench.subjects.values() if each is not receiver]
    assert all(monitor.effects == [Unsubscribe()] for monitor in monitors)
    assert [each.receiver for each in receiver.effects if isinstance(each, Poke)] == monitors
    assert not receiver.leaving
    assert service.stop() is True
    assert service.stop() is False
    bench.end_all()
    assert (service.state, service.error) == (states.STOPPING, DENIED)
    bench.queue.take(0.0).finish(0.0)
    assert service.state == states.STOPPED
    assert service.events.items == [ServiceStopped("s", "1", DENIED)]


@pytest.mark.rule("D-SERVICE-13")
def test_abort():
    bench = Bench()
    service = bench.service
    bench.request()
    bench.request()
    handling = bench.queue.take(0.0)
    assert service.abort() is True
    assert (service.refusing, service.unfinished) == (True, 2)
    assert len(bench.queue.refuse(1.0)) == 1
    assert service.abort() is False
    bench.request()
    assert len([each for each in bench.queue.take_effects() if isinstance(each, Publish)]) == 1
    bench.end_all()
    handling.finish(3.0)
    assert service.state == states.STOPPED


def test_events_wake():
    bench = Bench()
    bench.service.emit(ServiceStopped("x", "y", None))
    assert bench.woken() == [bench.service.changed]


class Limits:
    def __init__(self, max_payload):
        self.max_payload = max_payload


@pytest.mark.rule("D-SERVICE-27")
@pytest.mark.parametrize(
    ("verb", "most", "left_out", "endpoints"),
    [
        ("PING", 150, "", None),
        ("PING", 90, "everything", None),
        ("INFO", 180, "endpoints", 0),
        ("STATS", 200, "endpoints", 0),
        ("STATS", 50, "everything", None),
        ("INFO", 10_000, "", 1),
    ],
)
def test_a_response_that_is_too_large_is_truncated_and_reported(verb, most, left_out, endpoints):
    bench = Bench()
    whole = len(json.dumps(bench.ask("$SRV." + verb)[0], separators=(",", ":")))
    bench.service.limits = Limits(most)
    found = bench.ask("$SRV." + verb)
    if left_out == "everything":
        assert found == []
    elif endpoints is not None:
        assert len(found[0]["endpoints"]) == endpoints
        validate(found[0], SCHEMAS[verb])
    expected = [ResponseTruncated(verb, whole, most, left_out)] if left_out else []
    assert bench.service.events.items == expected
    assert (bench.service.changed in bench.woken()) is bool(left_out)
