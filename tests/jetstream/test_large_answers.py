"""Errors about a server's response do not repeat it, however large it is."""

from __future__ import annotations

import json

import pytest

from jetstream import JetStream
from jetstream.api.counters import read_counter
from jetstream.api.stored import StoredMsg
from jetstream.config import ConsumerConfig
from jetstream.kv.entry import delivered_entry
from jetstream.message import JsMsg
from jetstream.objects.info import read_info
from jetstream.publish.request import read_ack
from jetstream.schema.info import ConsumerInfo
from jetstream.schema.timestamp import Timestamp
from jetstream.subscribe import binding
from natsproto import NatsError
from natsproto.errors import RemoteError
from natsproto.wire import frames
from tests.jetstream import kvs
from tests.jetstream import object_stores as objects
from tests.jetstream.push import test_machine_in_order as test_ordered_push
from tests.jetstream.support import NOBODY, Stage, Status
from tests.jetstream.test_large_values import DATA, LIST, TEXT, TOKEN, check_short

ERROR = {"error": {"code": 500, "err_code": 1, "description": TOKEN}}
STREAM = {"config": {"name": "S"}}
LINK = {"link": {"bucket": TOKEN}}
PLACE = {"Nats_Stream": "S", "Nats_Subject": "a", "Nats_Sequence": 1, "Nats_Time_Stamp": kvs.TIME}


async def get_msg(js):
    await (await js.stream("S")).get_msg(1)


async def fetch(js):
    batch = await js.bind_consumer("S", "c").fetch(1)
    raise batch.error


async def add_to_batch(js):
    await js.atomic_batch().add("a")


async def commit(js):
    await js.atomic_batch().commit("a")


async def get_key(js):
    await (await js.key_value("b")).get("k")


async def update_key(js):
    await (await js.key_value("b")).update("k", b"", 1)


async def get_object(js):
    await (await js.object_store("b")).get("o")


async def filtered(js):
    await js.create_consumer("S", durable_name="c", filter_subject=TOKEN[:2000])


DIRECT = {"config": {"name": "S", "allow_direct": True}}
ANSWERS = [  # call, answers
    (lambda js: js.stream("S"), [DATA]),
    (lambda js: js.stream("S"), [json.dumps(LIST).encode()]),
    (lambda js: js.stream("S"), [ERROR]),
    (lambda js: js.stream("S"), [{"error": TOKEN}]),
    (lambda js: js.stream("S"), [{"error": {"code": TOKEN, "description": LIST}}]),
    (lambda js: js.stream("S"), [{"config": TOKEN}]),
    (lambda js: js.stream("S"), [{"config": {"name": LIST}}]),
    (lambda js: js.stream("S"), [{"config": {"name": "S", "max_msgs": TOKEN}}]),
    (lambda js: js.stream("S"), [{"config": {"name": "S"}, "created": TOKEN}]),
    (lambda js: js.stream_names(), [{"streams": TOKEN}]),
    (lambda js: js.stream_names(), [{"streams": [LIST]}]),
    (lambda js: js.stream_names(), [{"streams": ["a"], "total": TOKEN}]),
    (lambda js: js.stream_names(), [{"streams": ["a"], "missing": TOKEN}]),
    (lambda js: js.stream_names(), [{"streams": ["a"], "missing": [LIST]}]),
    (lambda js: js.stream_names(), [{"streams": ["a"], "offline": LIST}]),
    (lambda js: js.stream_name_by_subject(TOKEN), [{"streams": []}]),
    (lambda js: js.stream_name_by_subject(TOKEN), [{"streams": ["x"] * 1000}]),
    (lambda js: js.publish("a"), [DATA]),
    (lambda js: js.publish("a"), [{"stream": LIST, "seq": 1}]),
    (lambda js: js.publish("a"), [{"seq": 1, "domain": TOKEN}]),
    (lambda js: js.publish("a"), [ERROR]),
    (lambda js: js.publish(TOKEN[:2000]), [[]]),
    (filtered, [NOBODY]),
    (filtered, [ERROR]),
    (get_msg, [STREAM, {"message": {"subject": "a", "seq": 1, "time": TOKEN}}]),
    (get_msg, [STREAM, {"message": TOKEN}]),
    (get_msg, [STREAM, ERROR]),
    (get_msg, [DIRECT, Status("", a=TOKEN)]),
    (get_msg, [DIRECT, Status("404 " + TOKEN)]),
    (get_msg, [DIRECT, Status("500 " + TOKEN)]),
    (get_msg, [DIRECT, Status("", **{**PLACE, "Nats_Sequence": TOKEN})]),
    (get_msg, [DIRECT, Status("", **{**PLACE, "Nats_Time_Stamp": TOKEN})]),
    (fetch, [Status("409 " + TOKEN)]),
    (add_to_batch, [{"stream": "S", "seq": 1, "domain": TOKEN}]),
    (commit, [{"stream": "S", "seq": 1, "batch": TOKEN, "count": 1}]),
    (get_key, [kvs.stream(), Status("500 " + TOKEN)]),
    (get_key, [ERROR]),
    (update_key, [kvs.stream(), {"error": {**ERROR["error"], "err_code": 10071}}]),
    (get_object, [objects.stream(), objects.direct({**objects.info_json(), "nuid": TOKEN + " "})]),
    (get_object, [objects.stream(), objects.direct({**objects.info_json(), "size": TOKEN})]),
    (get_object, [objects.stream(), objects.direct({**objects.info_json(), "options": LINK})]),
]


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize(("call", "answers"), ANSWERS, ids=range(len(ANSWERS)))
def test_an_error_about_a_large_answer_is_short(call, answers):
    stage = Stage(*answers)
    with pytest.raises(RemoteError) as caught:
        stage.run(call(JetStream(stage.client)))
    check_short(str(caught.value))
    assert stage.answers == []


def msg(reply, data=b"", subject=b"$KV.b.k"):
    return frames.Msg(subject, 1, reply, data, None)


def js_msg(reply):
    return JsMsg(msg(reply), Stage().client.session)


RAW = TOKEN.encode()
COUNTER = b"NATS/1.0\r\nNats-Counter-Sources: %s\r\n\r\n" % RAW
READ = [
    lambda: js_msg(b"$JS.ACK." + RAW).metadata,
    lambda: js_msg(b"$JS.ACK.S.c.1.2.%s.4.5" % RAW).metadata,
    lambda: js_msg(b"$JS.ACK.S.c.1.2.%s.4.5" % (b"7" * len(RAW))).metadata,
    lambda: Stage().run(js_msg(RAW).ack()),
    lambda: Stage().run(js_msg(b"$JS.ACK.S.c.1.2.3.4.5").term(TEXT)),
    lambda: delivered_entry(js_msg(b"$JS.ACK.S.c.1.%s.3.4.5" % RAW), "b", "$KV.b."),
    lambda: read_ack(json.dumps({"stream": LIST}).encode()),
    lambda: read_info(json.dumps({"nuid": TOKEN}).encode(), Timestamp(0)),
    lambda: read_info(json.dumps({"name": TOKEN, "nuid": TOKEN + " "}).encode(), Timestamp(0)),
    lambda: read_counter(StoredMsg("S", "a", 1, Timestamp(0), RAW, None)),
    lambda: read_counter(StoredMsg("S", "a", 1, Timestamp(0), b'{"val":"%s"}' % RAW, None)),
    lambda: read_counter(StoredMsg("S", "a", 1, Timestamp(0), b'{"val":"1"}', COUNTER)),
]


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize("read", READ, ids=range(len(READ)))
def test_an_error_about_a_large_message_is_short(read):
    with pytest.raises(NatsError) as caught:
        read()
    check_short(str(caught.value))


def info(**config):
    return ConsumerInfo.from_json({"stream_name": "S", "name": "c", "config": config})


BOUND = [  # the consumer, the requested options
    (info(deliver_subject=TOKEN), {"pull": True}),
    (info(deliver_subject="d", deliver_group=TOKEN), {}),
    (info(deliver_subject="d"), {"queue": TOKEN}),
    (info(deliver_subject="d", deliver_group=TOKEN), {"queue": "q"}),
    (info(deliver_subject="d", deliver_group=TOKEN, flow_control=True), {"queue": TOKEN}),
    (info(deliver_subject="d", deliver_group=TOKEN, idle_heartbeat=1), {"queue": TOKEN}),
    (info(filter_subject=TOKEN), {"subject": "a", "pull": True}),
    (info(filter_subjects=LIST), {"subject": "a", "pull": True}),
    (
        info(metadata={"a": TOKEN}),
        {"pull": True, "config": ConsumerConfig(metadata={"a": TOKEN + "y"})},
    ),
]


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize(("found", "asked"), BOUND, ids=range(len(BOUND)))
def test_an_error_about_a_consumer_that_does_not_fit_is_short(found, asked):
    with pytest.raises(NatsError) as caught:
        binding.bind(found, **asked)
    check_short(str(caught.value))


@pytest.mark.rule("D-ERR-11")
def test_a_gap_with_a_large_reply_subject_is_short():
    machine = test_ordered_push.using()
    sent = test_ordered_push.message(4)
    reply = b".".join([*sent.raw_reply.split(b".")[:-1], RAW])
    machine.receive(frames.Msg(sent.raw_subject, 1, reply, b"", None), 1.0)
    (event,) = machine.events.items
    check_short(str(event.error))
    check_short(repr(event.error))


@pytest.mark.rule("D-ERR-11")
def test_an_old_server_with_a_large_version():
    stage = Stage(version="2.9." + "1" * 1000, api_lvl=0)
    js = JetStream(stage.client)
    with pytest.raises(NatsError) as caught:
        stage.run(js.reset_consumer("S", "c", 1))
    check_short(str(caught.value))
