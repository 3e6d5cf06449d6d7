from __future__ import annotations

import pytest

from jetstream.schema.timestamp import Timestamp
from jetstream.services.machine import ServiceMachine
from jetstream.services.queue import RequestQueue
from jetstream.services.responses import EndpointRecord, Identity
from natsproto.connection.effects import Drop, Publish, Wake
from natsproto.errors import PermissionDenied
from natsproto.wire.frames import Msg


def request(number=0, reply=b"r", size=10):
    return Msg(b"e", 1, reply, b"%d" % number, None, size)


class Bench:
    """A queue of a service that runs."""

    def __init__(self, max_msgs=3, max_bytes=1000):
        self.service = ServiceMachine(Identity("s", "1", "1.0.0", "", {}), "$SRV", Timestamp(0))
        self.queue = RequestQueue(
            self.service, EndpointRecord("e", "e", "q", {}), max_msgs, max_bytes
        )
        self.queue.sid = 1
        self.service.add(self.queue)
        self.service.subscribed()
        self.service.start(Timestamp(0))
        self.service.take_effects()

    def counts(self):
        queue = self.queue
        return queue.queued, queue.in_progress, queue.pending(), queue.dropped

    def answers(self):
        """Return the subjects that were answered with 503."""
        effects = [each for each in self.queue.take_effects() if isinstance(each, Publish)]
        assert all(b"Nats-Service-Error-Code: 503" in effect.block for effect in effects)
        return [effect.subject for effect in effects]


@pytest.mark.rule("D-SERVICE-14")
def test_requests_are_pending_until_they_are_finished():
    bench = Bench()
    queue = bench.queue
    assert queue.receive(request(1), 0.0) is True
    assert queue.take_effects() == [Wake([bench.service.work])]
    assert queue.receive(request(2), 0.0) is False  # the waiting caller was woken
    assert bench.counts() == (2, 0, 2, 0)
    first = queue.take(1.0)
    assert (first.msg.data, bench.counts()) == (b"1", (1, 1, 2, 0))
    second = queue.take(1.5)
    assert (second.msg.data, bench.counts()) == (b"2", (0, 2, 2, 0))
    second.finish(2.0)
    second.finish(9.0)
    assert bench.counts() == (0, 1, 1, 0)
    first.finish(3.0)
    assert bench.counts() == (0, 0, 0, 0)
    assert queue.counters.processing_ns == 2_500_000_000
    assert bench.answers() == []


@pytest.mark.rule("D-SERVICE-9")
@pytest.mark.parametrize(
    ("limits", "sizes", "refused"),
    [
        ((2, 1000), [10, 10, 10], [b"r2"]),
        ((9, 25), [10, 10, 10, 5], [b"r2"]),
        ((9, 5), [10], [b"r0"]),
    ],
)
def test_requests_that_do_not_fit_are_answered(limits, sizes, refused):
    bench = Bench(*limits)
    for number, size in enumerate(sizes):
        bench.queue.receive(request(number, b"r%d" % number, size), 0.0)
    assert bench.queue.effects.count(Drop()) == len(refused)
    assert bench.answers() == refused
    assert bench.counts()[3] == len(refused)
    counters = bench.queue.counters
    assert (counters.num_requests, counters.num_errors) == (1, 1)
    assert counters.last_error == "service has too many pending requests"


@pytest.mark.rule("D-SERVICE-9")
def test_taking_a_request_makes_room():
    bench = Bench(max_msgs=1, max_bytes=10)
    for _ in range(3):
        bench.queue.receive(request(), 0.0)
        bench.queue.take(0.0)
    assert (bench.answers(), bench.counts()) == ([], (0, 3, 3, 0))


@pytest.mark.rule("D-SERVICE-8")
def test_messages_without_a_reply_subject_are_refused_silently():
    bench = Bench(max_msgs=1)
    bench.queue.receive(request(), 0.0)
    bench.queue.receive(request(2, b""), 0.0)
    assert (bench.answers(), bench.counts()[3]) == ([], 1)


@pytest.mark.rule("D-SERVICE-13")
def test_refuse_answers_requests_that_no_handler_has():
    bench = Bench()
    queue = bench.queue
    for number in range(3):
        queue.receive(request(number, b"r%d" % number), 0.0)
    running = queue.take(0.0)
    held = queue.take(0.0, hold=True)
    assert not held.answered
    assert [msg.raw_reply for msg in queue.refuse(1.0)] == [b"r2", b"r1"]
    assert bench.counts() == (0, 1, 1, 0)
    assert (running.done, held.done) == (False, True)
    assert queue.refuse(2.0) == []
    queue.receive(request(4, b""), 0.0)
    assert queue.refuse(2.0) == []  # no answer is expected
    assert queue.counters.num_errors == 3


@pytest.mark.rule("D-SERVICE-17")
def test_a_held_request_that_was_answered_is_only_finished():
    bench = Bench()
    bench.queue.receive(request(), 0.0)
    held = bench.queue.take(0.0, hold=True)
    held.answered = True
    assert bench.queue.refuse(1.0) == []
    assert (held.done, bench.queue.counters.num_errors) == (True, 0)


@pytest.mark.rule("D-SERVICE-13")
def test_after_an_abort_every_request_is_refused():
    bench = Bench()
    bench.service.abort()
    assert bench.queue.receive(request(), 0.0) is False
    assert (bench.answers(), bench.counts()) == ([b"r"], (0, 0, 0, 0))


@pytest.mark.rule("D-SERVICE-10")
def test_the_end_of_the_subscription_ends_the_service_once():
    bench = Bench()
    error = PermissionDenied("no")
    assert bench.queue.end(error) is True
    assert bench.queue.end(None) is False
    assert (bench.service.error, bench.service.state) == (error, "STOPPED")


def test_errors_of_a_request():
    bench = Bench()
    bench.queue.receive(request(), 0.0)
    bench.queue.take(0.0).fail("bad")
    assert bench.queue.counters.last_error == "bad"
