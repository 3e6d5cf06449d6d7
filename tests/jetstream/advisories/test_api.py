from __future__ import annotations

import json

import pytest

from jetstream import JetStream
from jetstream.advisories.api import Advisories, open_advisories
from jetstream.api.client import ApiClient
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.wire.frames import Sub, Unsub
from tests.jetstream.advisories.samples import event
from tests.jetstream.support import Stage

NAKS = "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.S.c"


def frames(stage):
    found = stage._parser.feed(stage.wire.sent())
    return [
        frame.subject if isinstance(frame, Sub) else -frame.sid
        for frame in found
        if isinstance(frame, (Sub, Unsub))
    ]


def opened(*kinds, stage=None, **names):
    stage = stage or Stage()
    return stage, JetStream(stage.client).advisories(*kinds, **names)


def deliver(stage, raw, sid=1):
    data = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    stage.wire.data(b"MSG s %d %d\r\n%s\r\n" % (sid, len(data), data))


async def collect(events):
    return [each async for each in events]


@pytest.mark.rule("ADVIS-2")
def test_it_subscribes_to_the_narrowest_subjects():
    stage, events = opened("nak", "terminated", stream="S", consumer="c")
    assert events.subjects == [NAKS, NAKS.replace("NAKED", "TERMINATED")]
    assert frames(stage) == events.subjects
    assert repr(events) == f"<Advisories of {', '.join(events.subjects)}, 0 pending>"


@pytest.mark.parametrize(
    ("kinds", "names", "error"),
    [
        (["naks"], {}, InvalidValue),
        ([], {"prefix": "a.>"}, InvalidSubject),
        ([], {"prefix": ""}, InvalidSubject),
    ],
)
def test_nothing_is_sent_for_wrong_arguments(kinds, names, error):
    stage = Stage()
    with pytest.raises(error):
        JetStream(stage.client).advisories(*kinds, **names)
    assert frames(stage) == []


def test_another_prefix():
    stage, events = opened("nak", prefix="hub.events")
    assert frames(stage) == ["hub.events.ADVISORY.CONSUMER.MSG_NAKED.*.*"]
    assert not events.closed


def test_next():
    stage, events = opened("nak", "terminated")
    deliver(stage, event("nak"))
    deliver(stage, event("terminated"), sid=2)
    assert events.pending == 2
    assert stage.run(events.next()).stream_seq == 3
    assert stage.run(events.next(0)).reason == "cannot be parsed"
    began = stage.now()
    with pytest.raises(TimeoutExpired, match="no advisory in time"):
        stage.run(events.next(2.0))
    assert stage.now() - began == 2.0
    with pytest.raises(TimeoutExpired):
        stage.run(events.next(0))
    with pytest.raises(InvalidValue):
        stage.run(events.next(-1))


def test_iteration_until_stop():
    stage, events = opened("nak")
    for number in range(200):  # more than fit between two checkpoints
        deliver(stage, event("nak", stream_seq=number))
    found = []

    async def read():
        async for each in events:
            found.append(each.stream_seq)
            if len(found) == 199:
                await events.stop()

    stage.run(read())
    assert found == list(range(199))
    assert frames(stage)[1:] == [-1]
    assert events.closed
    assert events.pending == 0
    with pytest.raises(InvalidState, match="has ended"):
        stage.run(events.next())


def test_iteration_waits():
    stage, events = opened("nak")
    stage.serve = lambda: deliver(stage, event("nak")) is None
    assert stage.run(events.__anext__()).kind == "nak"
    assert stage.waits == 1


def test_a_block():
    stage, events = opened("nak", "terminated")

    async def block():
        async with events as same:
            assert same is events
            stage.wire.data(b"")

    stage.run(block())
    assert frames(stage)[2:] == [-1, -2]


@pytest.mark.rule("D-ADVIS-9")
def test_a_refused_subscription():
    stage, events = opened("nak", "terminated")
    deliver(stage, event("nak"))
    subject = events.subjects[1]
    stage.wire.data(
        b"-ERR 'Permissions Violation for Subscription to \"%s\"'\r\n" % subject.encode()
    )
    assert not events.closed
    assert stage.run(events.next()).kind == "nak"
    assert events.closed
    for ask in (events.next(), collect(events)):
        with pytest.raises(PermissionDenied):
            stage.run(ask)


def test_the_end_of_the_client():
    stage, events = opened("nak")
    stage.run(stage.client.close())
    assert stage.run(collect(events)) == []
    with pytest.raises(ConnectionClosed):
        JetStream(stage.client).advisories()


def test_a_drain_waits_until_all_events_are_taken():
    stage, events = opened("nak", "terminated")
    deliver(stage, event("nak"))
    drain = stage.connection.start_drain(stage.now() + 10)
    stage.serve()
    stage.serve()
    assert not drain.done
    assert stage.run(events.next()).kind == "nak"
    stage.serve()
    stage.serve()
    assert drain.done
    assert drain.error is None


DOMAINS = [
    # prefix of the API, domains of the events, domains of those that are returned
    ("$JS.API", ["", "hub", "leaf"], ["", "hub", "leaf"]),
    ("$JS.hub.API", ["", "hub", "leaf", "hub"], ["hub", "hub"]),
    ("$JS.a.b.API", ["", "hub"], ["", "hub"]),
    ("other.hub.API", ["", "hub"], ["", "hub"]),
    ("$JS.hub.X", ["", "hub"], ["", "hub"]),
]


@pytest.mark.rule("D-ADVIS-7")
@pytest.mark.parametrize(("prefix", "sent", "returned"), DOMAINS)
def test_domains(prefix, sent, returned):
    stage = Stage()
    api = ApiClient(stage.client.session, "", prefix, 5.0)
    events = open_advisories(api, ["nak"], None, None)
    assert isinstance(events, Advisories)
    for domain in sent:
        deliver(stage, event("nak", domain=domain))
    stage.wire.data(b"")
    stage.connection.unsubscribe(1)
    assert [each.domain for each in stage.run(collect(events))] == returned


@pytest.mark.rule("D-ADVIS-6", "D-ADVIS-8")
def test_invalid_events_and_drops():
    stage, events = opened("nak")
    events._feed._limits = (1, 1000)
    deliver(stage, b"x")
    deliver(stage, event("nak"))
    assert stage.run(events.next()).msg.data == b"x"
    assert events.dropped == 1
