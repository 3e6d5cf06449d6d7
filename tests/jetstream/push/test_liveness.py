from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerMoved,
    HeartbeatMissed,
    JetStreamNotAvailable,
)
from jetstream.events import PushWarning
from jetstream.push.liveness import LivenessProbe
from jetstream.push.machine import Push
from jetstream.push.policy import PlainPush
from natsproto.connection.effects import Poke
from natsproto.wire.frames import Msg
from tests.effects import publishes, woken

ASK = (b"$JS.API.CONSUMER.INFO.S.c", b"", b"i")


def answer(body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Msg(b"i", 1, b"", data, None)


HERE = answer({"stream_name": "S", "name": "c", "config": {"deliver_subject": "t"}})
ELSEWHERE = answer({"stream_name": "S", "name": "c", "config": {"deliver_subject": "u"}})
ABSENT = answer({"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}})
NO_STREAM = answer({"error": {"code": 404, "err_code": 10059, "description": "stream not found"}})
NO_LEADER = answer({"error": {"code": 503, "err_code": 10009, "description": "no leader"}})
NOBODY = answer(b"")


def pair(**options):
    """Return a probe and its subscription, connected at 0.0."""
    watch = LivenessProbe("$JS.API", "S", "c", "t", "i")
    push = Push(PlainPush(probe=watch, probe_on_reconnect=not options), **options)
    watch.watch(push)
    push.connected(0.0)
    return watch, push


def asked(watch):
    """Return how often it sends its request, which is always the same."""
    orders = [(each.subject, each.data, each.reply) for each in publishes(watch)]
    assert orders == [ASK] * len(orders)
    return len(orders)


TABLE = [  # the answers (None: the timer fires); how often it asks; the error, the deadline
    ("it is there", [HERE], 1, None, None),
    ("it delivers elsewhere", [ELSEWHERE], 1, ConsumerMoved, None),
    ("it is gone", [ABSENT, None, ABSENT], 2, ConsumerDeleted, None),
    ("its stream is gone", [NO_STREAM, None, NO_STREAM], 2, ConsumerDeleted, None),
    ("it comes back", [ABSENT, None, HERE], 2, None, None),
    ("not found once", [ABSENT, None], 2, None, 3.0),
    ("no leader, then there", [NO_LEADER, None, HERE], 2, None, None),
    ("nobody, then gone", [NOBODY, None, ABSENT, None, ABSENT], 3, ConsumerDeleted, None),
    ("no answer yet", [None, None], 3, None, 4.0),
]


@pytest.mark.rule("JSSUB-16")
@pytest.mark.parametrize(("name", "answers", "asks", "error", "deadline"), TABLE)
def test_findings_of_the_probe(name, answers, asks, error, deadline):
    watch, push = pair()
    now = 1.0
    push.disconnected(0.5)
    watch.disconnected(0.5)
    push.connected(now)
    count = 0
    for each in answers:
        if each is None:
            now = watch.deadline
            assert not watch.handle_timer(now)
        else:
            assert not watch.receive(each, now)
        count += asked(watch)
    assert count + asked(watch) == asks
    assert watch.deadline == deadline
    assert isinstance(push.error, error or type(None))
    assert (push.ended, push.leaving, watch.leaving) == ((error is not None),) * 3
    assert (push in woken(push)) is (error is not None)
    assert watch.pending() == 0


@pytest.mark.rule("JSSUB-16")
def test_lookups_without_a_response():
    watch, push = pair()
    push.connected(1.0)
    for n in range(1, 6):
        assert asked(watch) == 1
        assert watch.deadline == 1.0 + n
        watch.handle_timer(watch.deadline)
    [event] = push.events.items
    assert isinstance(event, PushWarning)
    assert isinstance(event.error, JetStreamNotAvailable)
    assert "consumer 'c' of stream 'S'" in str(event.error)
    assert not push.ended
    assert woken(watch) == [push]
    assert watch.deadline is None
    push.connected(9.0)  # a new reason
    assert (asked(watch), watch.deadline) == (1, 10.0)


@pytest.mark.rule("JSSUB-16")
def test_the_first_connection_is_not_a_reason():
    watch, _ = pair()
    assert (asked(watch), watch.deadline) == (0, None)


@pytest.mark.rule("JSSUB-16")
def test_with_heartbeats_the_alarm_is_the_reason():
    watch, push = pair(heartbeat=1.0)
    push.connected(1.0)
    assert asked(watch) == 0
    assert push.handle_timer(4.0)
    assert isinstance(push.events.items[0].error, HeartbeatMissed)
    assert asked(watch) == 1
    push.handle_timer(14.0)  # another alarm, while it looks
    assert asked(watch) == 0
    watch.receive(HERE, 14.5)
    push.handle_timer(34.0)
    assert asked(watch) == 1


@pytest.mark.rule("JSSUB-16")
def test_without_a_connection_it_rests():
    watch, push = pair()
    push.connected(1.0)
    assert asked(watch) == 1
    watch.disconnected(1.5)
    assert watch.deadline is None
    assert not watch.receive(ELSEWHERE, 2.0)  # late
    assert not push.ended


@pytest.mark.rule("JSSUB-16")
def test_an_ended_subscription_is_not_probed():
    watch, push = pair()
    push.start_draining()
    push.connected(1.0)
    assert asked(watch) == 0
    watch, push = pair()
    push.connected(1.0)
    push.start_draining()
    watch.receive(ELSEWHERE, 2.0)
    assert push.error is None


@pytest.mark.rule("JSSUB-16")
def test_they_end_together():
    watch, push = pair()
    push.end()
    assert watch.leaving


@pytest.mark.rule("JSSUB-16")
def test_the_driver_is_told_to_look_at_the_subscription_that_ends():
    watch, push = pair()
    push.connected(1.0)
    watch.take_effects()
    watch.receive(ELSEWHERE, 1.0)
    assert push.ended
    assert [each.receiver for each in watch.take_effects() if isinstance(each, Poke)] == [push]
