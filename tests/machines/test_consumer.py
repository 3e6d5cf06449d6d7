from __future__ import annotations

import pytest

from jetstream.call import Api
from jetstream.consumer import Consumer
from jetstream.errors import ConsumerNotFound
from jetstream.info import ConsumerInfo
from natsproto.errors import InvalidValue

from .support import Delivery, Stage, Status

NEXT = "$JS.API.CONSUMER.MSG.NEXT.S.C"


def make(stage, **config):
    api = Api(stage.client.session, "", "$JS.API", 5.0)
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


@pytest.mark.rule("PULL-15")
@pytest.mark.parametrize(
    ("call", "name"), [("fetch", "batch"), ("next", "timeout"), ("consume", "colour")]
)
def test_an_option_that_there_is_not(call, name):
    stage = Stage()
    with pytest.raises(InvalidValue, match=f"^{call} has no option '{name}'; it has"):
        stage.run(getattr(make(stage), call)(**{name: 1}))
    assert stage.quiet()


def test_consume():
    stage = Stage([Delivery("s.a", "$JS.ACK.S.C.1.1.1.1.0", b"m1")])
    messages = make(stage, ack_policy="none").consume(max_messages=5)
    msg = stage.run(messages.next())
    assert (msg.data, msg.settled) == (b"m1", True)
    [(subject, body)] = stage.asked
    assert (subject, body["batch"]) == (NEXT, 5)
