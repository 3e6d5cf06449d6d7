"""The publish calls of JetStream: each calls its implementation."""

from __future__ import annotations

import pytest

from jetstream import JetStream, PubAck
from jetstream.errors import FastBatchFailed, InvalidResponse
from natsproto.errors import InvalidSubject, InvalidValue, NotSupported, TimeoutExpired
from tests.jetstream.support import SILENCE, Stage

TOKEN = "0" * 22  # the id from the scripted randomness


@pytest.mark.rule("PUB-1")
def test_publish():
    stage = Stage({"stream": "S", "seq": 7}, {"stream": "S", "seq": 7, "duplicate": True})
    js = JetStream(stage.client)
    assert stage.run(js.publish("s.a", b"x")) == PubAck(stream="S", seq=7)
    assert stage.run(js.publish("s.a", b"x", msg_id="1", timeout=1.0, retries=0)).duplicate
    first, second = stage.pubs
    assert (first.subject, first.data, first.headers) == ("s.a", b"x", None)
    assert second.headers.items() == [("Nats-Msg-Id", "1")]


@pytest.mark.rule("PUB-5")
def test_publish_has_the_timeout_of_the_api():
    stage = Stage(SILENCE)
    with pytest.raises(TimeoutExpired):
        stage.run(JetStream(stage.client, timeout=1.5).publish("s.a"))
    assert stage.now() == 1.5


@pytest.mark.parametrize(("given", "at"), [({}, 1.5), ({"ack_timeout": 0.5}, 0.5)])
def test_a_window_has_the_timeout_of_the_api_or_its_own(given, at):
    async def main(window):
        publication = await window.publish("s.a")
        await window._session.port.wait(publication)  # sent
        while not publication.done:
            await window._session.port.wait(publication)

    stage = Stage(SILENCE)
    stage.run(main(JetStream(stage.client, timeout=1.5).publisher(**given)))
    assert stage.now() == at


@pytest.mark.rule("BATCH-6")
def test_an_atomic_batch():
    stage = Stage({"stream": "S", "seq": 1, "batch": TOKEN, "count": 1}, SILENCE)
    js = JetStream(stage.client, timeout=1.5)
    assert stage.run(js.atomic_batch().commit("s.a")).count == 1
    with pytest.raises(TimeoutExpired):
        stage.run(js.atomic_batch(timeout=0.5).commit("s.a"))
    assert stage.now() == 0.5
    with pytest.raises(NotSupported):
        JetStream(Stage(version="2.11.0", api_lvl=0).client).atomic_batch()


@pytest.mark.rule("FAST-12")
def test_a_fast_batch():
    stage = Stage({"stream": "S", "seq": 1, "batch": TOKEN, "count": 1}, SILENCE)
    js = JetStream(stage.client, timeout=0.5)
    assert stage.run(js.fast_batch().commit("s.a")).count == 1
    for timeout, at in [(None, 0.5), (0.25, 0.75)]:
        with pytest.raises(FastBatchFailed):
            stage.run(js.fast_batch(ack_timeout=timeout).commit("s.a"))
        assert stage.now() == at
        stage.answers = [SILENCE]
    with pytest.raises(NotSupported):
        JetStream(Stage(version="2.12.0", api_lvl=3).client).fast_batch()


@pytest.mark.rule("COUNT-1", "COUNT-2", "COUNT-3")
def test_counters():
    given = {"A": "b"}
    stage = Stage({"stream": "C", "seq": 1, "val": "-5"}, {"stream": "C", "seq": 1})
    js = JetStream(stage.client)
    assert stage.run(js.add_to_counter("c.a", -7, headers=given, msg_id="1")) == -5
    [pub] = stage.pubs
    assert pub.headers.items() == [("A", "b"), ("Nats-Incr", "-7"), ("Nats-Msg-Id", "1")]
    assert (pub.data, given) == (b"", {"A": "b"})
    with pytest.raises(InvalidResponse):
        stage.run(js.add_to_counter("c.a"))
    old = Stage(version="2.11.0", api_lvl=0)
    with pytest.raises(NotSupported):
        old.run(JetStream(old.client).add_to_counter("c.a"))
    assert old.quiet()


@pytest.mark.rule("COUNT-5")
def test_an_increment_that_is_a_duplicate():
    time = "2024-05-06T07:08:09.123456789Z"
    message = {"subject": "c.a", "seq": 3, "data": "eyJ2YWwiOiI3In0=", "time": time}
    stage = Stage({"stream": "C", "seq": 1, "duplicate": True}, {"message": message})
    assert stage.run(JetStream(stage.client).add_to_counter("c.a", 5, msg_id="1")) == 7
    assert stage.asked[-1] == ("$JS.API.STREAM.MSG.GET.C", {"last_by_subj": "c.a"})


@pytest.mark.rule("SCHED-7")
def test_a_schedule_is_canceled_by_a_message_to_its_target():
    stage = Stage({"stream": "S", "seq": 2})
    canceling = JetStream(stage.client).cancel_schedule("s.a", b"x", target="t", headers={"K": "v"})
    assert stage.run(canceling).seq == 2
    [pub] = stage.pubs
    assert (pub.subject, pub.data) == ("t", b"x")
    assert pub.headers.items() == [
        ("K", "v"),
        ("Nats-Scheduler", "s.a"),
        ("Nats-Schedule-Next", "purge"),
    ]


@pytest.mark.rule("SCHED-1", "SCHED-2", "SCHED-4")
def test_schedules():
    stage = Stage({"stream": "S", "seq": 1})
    js = JetStream(stage.client)
    ack = js.schedule(
        "s.a",
        b"x",
        when="@daily",
        target="t",
        source="u",
        schedule_ttl=60,
        time_zone="UTC",
        rollup=True,
        ttl=120,
    )
    assert stage.run(ack).seq == 1
    [pub] = stage.pubs
    assert (pub.subject, pub.data) == ("s.a", b"x")
    assert pub.headers.items() == [
        ("Nats-Schedule", "@daily"),
        ("Nats-Schedule-Target", "t"),
        ("Nats-Schedule-Source", "u"),
        ("Nats-Schedule-TTL", "60"),
        ("Nats-Schedule-Time-Zone", "UTC"),
        ("Nats-Schedule-Rollup", "sub"),
        ("Nats-TTL", "120"),
    ]
    old = Stage(version="2.11.0", api_lvl=0)
    with pytest.raises(NotSupported):
        old.run(JetStream(old.client).schedule("s.a", when="@daily", target="t"))
    assert old.quiet()


@pytest.mark.parametrize(
    ("call", "args", "keywords", "wrong"),
    [
        ("add_to_counter", ("s", 1.5), {}, InvalidValue),
        ("schedule", ("s",), {"when": "", "target": "t"}, InvalidValue),
        ("cancel_schedule", ("s.*",), {"target": "t"}, InvalidSubject),
        pytest.param(
            "schedule",
            ("s",),
            {"when": "@daily", "target": "s"},
            InvalidValue,
            marks=pytest.mark.rule("SCHED-5"),
        ),
        ("publish", ("s.*",), {}, InvalidSubject),
        ("publish", ("s",), {"msgid": "1"}, InvalidValue),
    ],
)
def test_wrong_calls_are_not_sent(call, args, keywords, wrong):
    stage = Stage()
    with pytest.raises(wrong):
        stage.run(getattr(JetStream(stage.client), call)(*args, **keywords))
    assert stage.quiet()


def test_wrong_batches_and_windows():
    client = Stage().client
    js = JetStream(client)
    with pytest.raises(InvalidValue):
        js.atomic_batch(timeout=-1)
    with pytest.raises(InvalidValue):
        js.publisher(max_pending=0)
