from __future__ import annotations

import pytest

from jetstream.api.client import ApiClient
from jetstream.config import ConsumerConfig
from jetstream.errors import ConsumerNotFound
from jetstream.schema.info import ConsumerInfo
from jetstream.streams.consumer import BoundConsumer, Consumer, bind_consumer
from natsproto.errors import InvalidName, InvalidValue
from tests.jetstream.support import Delivery, Stage, Status

NEXT = "$JS.API.CONSUMER.MSG.NEXT.S.C"


def make(stage, **config):
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    return Consumer(api, "S", "C", ConsumerInfo(name="C", config=config))


@pytest.mark.rule("CALL-1")
def test_info_and_delete():
    stage = Stage({"name": "C", "num_pending": 7}, {"success": True})
    consumer = make(stage)
    assert consumer.cached_info.num_pending == 0
    info = stage.run(consumer.info())
    assert (info.num_pending, consumer.cached_info) == (7, info)
    stage.run(consumer.delete())
    assert stage.asked == [
        ("$JS.API.CONSUMER.INFO.S.C", None),
        ("$JS.API.CONSUMER.DELETE.S.C", None),
    ]
    assert repr(consumer) == "<Consumer C of S>"


@pytest.mark.rule("CALL-2")
def test_it_may_be_gone():
    error = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
    stage = Stage(error, error)
    consumer = make(stage)
    for call in (consumer.info, consumer.delete):
        with pytest.raises(ConsumerNotFound):
            stage.run(call())


def test_fetch_and_next():
    message = Delivery("s.a", "$JS.ACK.S.C.1.1.1.1.0", b"m1")
    stage = Stage(
        [message, Status("404 No Messages")],
        [message],
        Status("408 Request Timeout", Nats_Pending_Messages=1, Nats_Pending_Bytes=0),
    )
    consumer = make(stage)
    batch = stage.run(consumer.fetch(5, no_wait=True))
    assert [msg.data for msg in batch] == [b"m1"]
    assert stage.run(consumer.next(expires=2.0)).metadata.stream_seq == 1
    assert stage.run(consumer.next(expires=2.0)) is None
    subjects, bodies = zip(*stage.asked)
    assert set(subjects) == {NEXT}
    assert [body["batch"] for body in bodies] == [5, 1, 1]
    assert [body.get("no_wait", False) for body in bodies] == [True, False, False]


@pytest.mark.rule("FETCH-14")
@pytest.mark.parametrize("name", ["fetch", "iter_fetch"])
def test_iterated(name):
    stage = Stage(
        [Delivery("s.a", f"$JS.ACK.S.C.1.{n}.{n}.1.0", b"m%d" % n) for n in (1, 2)],
    )

    async def take():
        call = getattr(make(stage), name)
        return [msg.data async for msg in call(2, max_bytes=None, expires=9.0, group="g")]

    assert stage.run(take()) == [b"m1", b"m2"]
    [(_, body)] = stage.asked
    assert body == {"batch": 2, "expires": 9_000_000_000, "group": "g"}


@pytest.mark.rule("D-FETCH-17")
@pytest.mark.parametrize(
    ("config", "seconds"),
    [
        ({}, 15.0),
        ({"ack_wait": 20.0}, 10.0),
        ({"ack_wait": 600.0}, 30.0),
        ({"ack_wait": 30.0, "backoff": [1.0, 60.0]}, 0.5),
        ({"ack_policy": "all", "ack_wait": 4.0}, 2.0),
        ({"ack_policy": "none", "ack_wait": 4.0}, 30.0),
    ],
)
def test_the_default_of_expires(config, seconds):
    """A message must not be redelivered to others before its batch is returned."""
    stage = Stage(Status("404 x"), Status("404 x"), Status("404 x"))
    consumer = make(stage, **config)
    stage.run(consumer.fetch(1))
    stage.run(consumer.fetch(1, expires=60.0))
    stage.run(consumer.next())
    asked = [body["expires"] / 1e9 for _, body in stage.asked]
    assert asked == [seconds, 60.0, 30.0]


@pytest.mark.rule("BIND-11")
def test_bound_by_its_name():
    api = ApiClient(Stage().client.session, "", "$JS.API", 5.0)
    stage = Stage(
        [Delivery("s.a", "$JS.ACK.S.C.1.1.1.1.0", b"m1")],
        {"name": "C", "config": {"ack_policy": "none", "priority_policy": "pinned_client"}},
    )
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    consumer = BoundConsumer(api, "S", "C", ConsumerConfig(ack_wait=2.0))
    assert (consumer.cached_info, stage.asked) == (None, [])
    assert repr(consumer) == "<BoundConsumer C of S>"
    [msg] = stage.run(consumer.fetch(1))
    assert (msg.data, msg.settled) == (b"m1", False)
    assert [body["expires"] for _, body in stage.asked] == [1_000_000_000]
    info = stage.run(consumer.info())
    assert consumer.cached_info is info
    assert (consumer.puller.ack_none, consumer.puller.pinned) == (True, True)


@pytest.mark.rule("D-PULL-15")
@pytest.mark.parametrize(
    ("call", "name"), [("fetch", "batch"), ("next", "timeout"), ("consume", "colour")]
)
def test_an_option_that_does_not_exist(call, name):
    stage = Stage()
    consumer = make(stage)

    async def use():
        await getattr(consumer, call)(**{name: 1})

    with pytest.raises(InvalidValue, match=f"^{call} has no option '{name}'; "):
        stage.run(use())
    assert stage.quiet()


@pytest.mark.rule("FETCH-14")
def test_a_wrong_fetch_is_refused_by_the_call_itself():
    stage = Stage()
    with pytest.raises(InvalidValue):
        make(stage).fetch(0)
    make(stage).fetch(1)  # and a right one does nothing by itself
    assert stage.quiet()


def test_consume():
    stage = Stage([Delivery("s.a", "$JS.ACK.S.C.1.1.1.1.0", b"m1")])
    messages = make(stage, ack_policy="none").consume(max_messages=5)
    msg = stage.run(messages.next())
    assert (msg.data, msg.settled) == (b"m1", True)
    [(subject, body)] = stage.asked
    assert (subject, body["batch"]) == (NEXT, 5)


def test_dead_letters():
    stage = Stage({"config": {"name": "S"}})
    consumer = BoundConsumer(
        ApiClient(stage.client.session, "", "$JS.API", 5.0), "S", "C", ConsumerConfig()
    )
    letters = stage.run(consumer.dead_letters())
    assert (letters.stream, letters.consumer) == ("S", "C")
    assert stage.asked == [("$JS.API.STREAM.INFO.S", None)]


def test_step_down():
    stage = Stage({"success": True})
    consumer = BoundConsumer(
        ApiClient(stage.client.session, "", "$JS.API", 5.0), "S", "C", ConsumerConfig()
    )
    stage.run(consumer.step_down(preferred="s2"))
    body = {"placement": {"preferred": "s2"}}
    assert stage.asked == [("$JS.API.CONSUMER.LEADER.STEPDOWN.S.C", body)]


@pytest.mark.rule("BIND-11")
def test_a_consumer_is_bound_without_a_request():
    stage = Stage()
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    bound = bind_consumer(api, "S", "C", {})
    known = bind_consumer(api, "S", "C", {"ack_policy": "none", "ack_wait": 5.0})
    assert (bound.stream, bound.name, bound.cached_info) == ("S", "C", None)
    assert (bound.puller.ack_none, known.puller.ack_none) == (False, True)
    for stream, name in [("S.x", "C"), ("S", "C*"), ("", "C"), ("S", "")]:
        with pytest.raises(InvalidName):
            bind_consumer(api, stream, name, {})
    assert stage.asked == []
