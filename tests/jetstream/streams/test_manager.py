from __future__ import annotations

import pytest

from jetstream import ConsumerConfig, JetStream, StreamConfig
from jetstream.errors import (
    AmbiguousStream,
    ConsumerDoesNotExist,
    ConsumerExists,
    ConsumerNotFound,
    FilterIgnored,
    InvalidResponse,
    JetStreamError,
    JetStreamNotAvailable,
    StreamNameInUse,
    StreamNotFound,
)
from jetstream.streams.consumer import Consumer
from jetstream.streams.stream import Stream
from natsproto.errors import (
    InvalidName,
    InvalidSubject,
    InvalidValue,
    LocalError,
    NotSupported,
    TimeoutExpired,
)
from tests.jetstream.support import NOBODY, SILENCE, Stage

TOKEN = "0" * 22  # the names from the scripted randomness


def error(code, err_code):
    return {"error": {"code": code, "err_code": err_code, "description": "x"}}


def stream(name="S", **config):
    return {"config": {"name": name, **config}, "state": {"messages": 3}}


def consumer(name="C", **config):
    return {"stream_name": "S", "name": name, "config": {"name": name, **config}}


PAUSE = {"paused": True, "pause_until": "2030-01-02T03:04:05Z", "pause_remaining": 5_000_000_000}
EXPLICIT = {"ack_policy": "explicit"}

CALLS = [
    # call, arguments, keywords; answer; endpoint, body
    ("account_info", (), {}, {"streams": 3}, "INFO", None),
    ("create_stream", (), {"name": "S"}, stream(), "STREAM.CREATE.S", {"name": "S"}),
    (
        "create_stream",
        ({"name": "S", "max_age": 1_500_000_000},),
        {"subjects": ["s.>"]},
        stream(),
        "STREAM.CREATE.S",
        {"name": "S", "subjects": ["s.>"], "max_age": 1_500_000_000},
    ),
    (
        "update_stream",
        (StreamConfig(name="S", max_msgs=5),),
        {},
        stream(),
        "STREAM.UPDATE.S",
        {"name": "S", "max_msgs": 5},
    ),
    ("update_stream", ({"name": "é"},), {}, stream("é"), "STREAM.UPDATE.é", {"name": "é"}),
    (
        "create_or_update_stream",
        (StreamConfig(name="S"),),
        {"max_msgs": 5},
        stream(),
        "STREAM.UPDATE.S",
        {"name": "S", "max_msgs": 5},
    ),
    ("stream", ("S",), {}, stream(), "STREAM.INFO.S", None),
    ("stream", ("日本",), {}, stream("日本"), "STREAM.INFO.日本", None),
    ("delete_stream", ("S",), {}, {"success": True}, "STREAM.DELETE.S", None),
    ("streams", (), {}, {"streams": [stream()], "total": 1}, "STREAM.LIST", {"offset": 0}),
    (
        "streams",
        ("s.>",),
        {},
        {"streams": None, "total": 0},
        "STREAM.LIST",
        {"subject": "s.>", "offset": 0},
    ),
    ("stream_names", (), {}, {"streams": ["S"], "total": 1}, "STREAM.NAMES", {"offset": 0}),
    (
        "stream_name_by_subject",
        ("s.a",),
        {},
        {"streams": ["S"], "total": 1},
        "STREAM.NAMES",
        {"subject": "s.a", "offset": 0},
    ),
    (
        "create_consumer",
        ("S",),
        {"durable_name": "C"},
        consumer(),
        "CONSUMER.CREATE.S.C",
        {"stream_name": "S", "config": {"durable_name": "C", **EXPLICIT}, "action": "create"},
    ),
    (
        "create_consumer",
        ("S",),
        {},
        consumer(),
        f"CONSUMER.CREATE.S.{TOKEN}",
        {"stream_name": "S", "config": {"name": TOKEN, **EXPLICIT}, "action": "create"},
    ),
    (
        "create_consumer",
        ("S", ConsumerConfig(name="C", filter_subject="s.*.>")),
        {"ack_wait": 2.5},
        consumer(),
        "CONSUMER.CREATE.S.C.s.*.>",
        {
            "stream_name": "S",
            "config": {
                "name": "C",
                "ack_wait": 2_500_000_000,
                "filter_subject": "s.*.>",
                **EXPLICIT,
            },
            "action": "create",
        },
    ),
    (
        "update_consumer",
        ("S", {"durable_name": "é"}),
        {},
        consumer("é"),
        "CONSUMER.CREATE.S.é",
        {"stream_name": "S", "config": {"durable_name": "é", **EXPLICIT}, "action": "update"},
    ),
    (
        "create_or_update_consumer",
        ("S", {"name": "C"}),
        {"filter_subjects": ["a", "b"]},
        consumer(filter_subjects=["a", "b"]),
        "CONSUMER.CREATE.S.C",
        {
            "stream_name": "S",
            "config": {"name": "C", "filter_subjects": ["a", "b"], **EXPLICIT},
            "action": "",
        },
    ),
    ("consumer", ("S", "C"), {}, consumer(), "CONSUMER.INFO.S.C", None),
    ("delete_consumer", ("S", "C"), {}, {"success": True}, "CONSUMER.DELETE.S.C", None),
    (
        "consumers",
        ("S",),
        {},
        {"consumers": [consumer()], "total": 1},
        "CONSUMER.LIST.S",
        {"offset": 0},
    ),
    (
        "consumer_names",
        ("S",),
        {},
        {"consumers": ["C"], "total": 1},
        "CONSUMER.NAMES.S",
        {"offset": 0},
    ),
    (
        "pause_consumer",
        ("S", "C", "2030-01-02T03:04:05+00:00"),
        {},
        PAUSE,
        "CONSUMER.PAUSE.S.C",
        {"pause_until": "2030-01-02T03:04:05Z"},
    ),
    ("resume_consumer", ("S", "C"), {}, {"paused": False}, "CONSUMER.PAUSE.S.C", {}),
    ("reset_consumer", ("S", "C"), {}, consumer(), "CONSUMER.RESET.S.C", {}),
    ("reset_consumer", ("S", "C", 5), {}, consumer(), "CONSUMER.RESET.S.C", {"seq": 5}),
    ("unpin_consumer", ("S", "C", "g"), {}, {}, "CONSUMER.UNPIN.S.C", {"group": "g"}),
]


@pytest.mark.rule("CALL-1", "CALL-8", "CALL-11")
@pytest.mark.parametrize(("call", "args", "keywords", "answer", "endpoint", "body"), CALLS)
def test_the_bytes_of_each_call(call, args, keywords, answer, endpoint, body):
    for options, prefix in (
        ({}, "$JS.API"),
        ({"domain": "hub"}, "$JS.hub.API"),
        ({"prefix": "my.js"}, "my.js"),
    ):
        stage = Stage(answer)
        js = JetStream(stage.client, **options)
        stage.run(getattr(js, call)(*args, **keywords))
        assert stage.asked == [(f"{prefix}.{endpoint}", body)]


@pytest.mark.rule("CALL-3")
@pytest.mark.parametrize(("call", "args", "keywords"), [row[:3] for row in CALLS])
def test_every_call_without_an_answer(call, args, keywords):
    stage = Stage(NOBODY, SILENCE)
    js = JetStream(stage.client, timeout=1.5)
    with pytest.raises(JetStreamNotAvailable):
        stage.run(getattr(js, call)(*args, **keywords))
    with pytest.raises(TimeoutExpired):
        stage.run(getattr(js, call)(*args, **keywords))
    assert stage.now() == 1.5


def test_the_results_of_calls():
    stage = Stage(
        {"streams": 3, "type": "x"},
        stream("S", subjects=["s"]),
        {"total": 2, "limit": 1, "streams": [stream("A")]},
        {"total": 2, "limit": 1, "streams": [stream("B")]},
        {"total": 1, "consumers": [consumer("C")]},
        PAUSE,
        {**consumer(), "reset_seq": 5},
        consumer("C"),
    )
    js = JetStream(stage.client)
    assert stage.run(js.account_info()).streams == 3
    found = stage.run(js.stream("S"))
    assert isinstance(found, Stream)
    assert (found.name, found.cached_info.config.subjects) == ("S", ["s"])
    assert [info.config.name for info in stage.run(js.streams())] == ["A", "B"]
    assert [info.name for info in stage.run(js.consumers("S"))] == ["C"]
    pause = stage.run(js.pause_consumer("S", "C", 0))
    assert (pause.paused, pause.pause_remaining) == (True, 5.0)
    assert stage.run(js.reset_consumer("S", "C", 5)).reset_seq == 5
    made = stage.run(js.consumer("S", "C"))
    assert isinstance(made, Consumer)
    assert (made.stream, made.name, made.cached_info.name) == ("S", "C", "C")


@pytest.mark.rule("BIND-11")
def test_a_consumer_is_bound_by_its_name():
    stage = Stage()
    js = JetStream(stage.client)
    bound = js.bind_consumer("S", "C", ack_policy="none", ack_wait=4.0)
    assert (bound.stream, bound.name, bound.cached_info) == ("S", "C", None)
    assert bound.puller.ack_none
    for wrong in ({"stream": "a.b"}, {"name": "a b"}, {"name": ""}, {"ack_policy": "some"}):
        with pytest.raises(LocalError):
            js.bind_consumer(**{"stream": "S", "name": "C", **wrong})
    assert stage.quiet()


@pytest.mark.rule("CALL-8")
def test_a_consumer_without_a_name_gets_one():
    stage = Stage(consumer(TOKEN))
    config = ConsumerConfig()
    made = stage.run(JetStream(stage.client).create_consumer("S", config))
    assert (made.name, config.name) == (TOKEN, "")


@pytest.mark.rule("CALL-6")
@pytest.mark.parametrize(
    ("call", "args", "level"),
    [
        ("pause_consumer", ("S", "C", 0), 1),
        ("resume_consumer", ("S", "C"), 1),
        ("unpin_consumer", ("S", "C", "g"), 1),
        ("reset_consumer", ("S", "C"), 4),
    ],
)
def test_calls_that_need_a_level(call, args, level):
    stage = Stage({})
    stage.run(getattr(JetStream(stage.client), call)(*args))
    [pub] = stage.pubs
    assert pub.headers["Nats-Required-Api-Level"] == str(level)
    stage = Stage(api_lvl=level - 1, version="2.10.0")
    with pytest.raises(NotSupported):
        stage.run(getattr(JetStream(stage.client), call)(*args))
    assert stage.quiet()


@pytest.mark.parametrize(
    ("call", "args", "keywords", "wrong"),
    [
        ("stream", ("a.b",), {}, InvalidName),
        ("delete_stream", ("",), {}, InvalidName),
        ("create_stream", (), {"name": "é"}, InvalidName),
        ("create_stream", (), {}, InvalidName),
        ("create_stream", (), {"nmae": "S"}, InvalidValue),
        ("update_stream", (), {"name": "a b"}, InvalidName),
        ("streams", ("a..b",), {}, InvalidSubject),
        ("stream_names", (None,), {}, InvalidSubject),
        ("stream_name_by_subject", ("",), {}, InvalidSubject),
        ("create_consumer", ("a.b",), {}, InvalidName),
        ("create_consumer", ("S",), {"name": "é"}, InvalidName),
        ("create_consumer", ("S", 7), {}, InvalidValue),
        ("consumer", ("S", "*"), {}, InvalidName),
        ("consumer", ("*", "C"), {}, InvalidName),
        ("consumers", (">",), {}, InvalidName),
        ("consumer_names", (">",), {}, InvalidName),
        ("pause_consumer", ("S", "C", "tomorrow"), {}, InvalidValue),
        ("reset_consumer", ("S", "C", -1), {}, InvalidValue),
        ("reset_consumer", ("S", "C", 2**64), {}, InvalidValue),
        ("unpin_consumer", ("S", "C", ""), {}, InvalidValue),
        ("unpin_consumer", ("S", "C", "a b"), {}, InvalidValue),
        ("subscribe", ("s.a",), {"ordered": "yes"}, InvalidValue),
        pytest.param("update_consumer", ("S",), {}, InvalidValue, marks=pytest.mark.rule("CALL-9")),
    ],
)
def test_wrong_calls_are_not_sent(call, args, keywords, wrong):
    stage = Stage()
    with pytest.raises(wrong):
        stage.run(getattr(JetStream(stage.client), call)(*args, **keywords))
    assert stage.quiet()


@pytest.mark.rule("CALL-2")
@pytest.mark.parametrize(
    ("call", "args", "keywords", "answer", "raised"),
    [
        ("stream", ("S",), {}, error(404, 10059), StreamNotFound),
        ("consumer", ("S", "C"), {}, error(404, 10014), ConsumerNotFound),
        ("update_consumer", ("S", {"name": "C"}), {}, error(400, 10149), ConsumerDoesNotExist),
        ("stream", ("S",), {}, b"-ERR 'x'", InvalidResponse),
        ("stream", ("S",), {}, {"config": 7}, InvalidResponse),
        ("stream_names", (), {}, {"streams": [7], "total": 1}, InvalidResponse),
        ("consumer_names", ("S",), {}, {"consumers": [{}], "total": 1}, InvalidResponse),
    ],
)
def test_errors(call, args, keywords, answer, raised):
    stage = Stage(answer)
    with pytest.raises(raised):
        stage.run(getattr(JetStream(stage.client), call)(*args, **keywords))


@pytest.mark.rule("CALL-11")
def test_create_or_update_updates_first():
    stage = Stage(error(404, 10059), stream(), error(400, 10052))
    js = JetStream(stage.client)
    config = StreamConfig(name="S", max_msgs=5)
    stage.run(js.create_or_update_stream(config))
    body = {"name": "S", "max_msgs": 5}
    assert stage.asked == [
        ("$JS.API.STREAM.UPDATE.S", body),
        ("$JS.API.STREAM.CREATE.S", body),
    ]
    with pytest.raises(JetStreamError):
        stage.run(js.create_or_update_stream(config))
    assert len(stage.asked) == 1


def short(stage):
    """Return the verbs of the calls, and the fields of configurations."""
    asked = []
    for subject, body in stage.asked:
        config = (body or {}).get("config", body)
        asked.append((subject.split(".")[3], config))
    return asked


THERE = {"name": "S", "subjects": ["s.>"], "max_msgs": 9, "description": "mine", "new_field": 1}


@pytest.mark.rule("D-CALL-16")
@pytest.mark.parametrize("call", ["update_stream", "create_or_update_stream"])
def test_keywords_change_these_fields_of_a_stream(call):
    stage = Stage({"config": THERE}, stream())
    stage.run(getattr(JetStream(stage.client), call)(name="S", max_msgs=5, max_bytes=7))
    changed = {**THERE, "max_msgs": 5, "max_bytes": 7}
    assert short(stage) == [("INFO", None), ("UPDATE", changed)]


@pytest.mark.rule("D-CALL-16")
def test_keywords_for_a_stream_that_does_not_exist():
    stage = Stage(error(404, 10059), stream(), error(404, 10059))
    js = JetStream(stage.client)
    stage.run(js.create_or_update_stream(name="S", max_msgs=5))
    assert short(stage) == [("INFO", None), ("CREATE", {"name": "S", "max_msgs": 5})]
    with pytest.raises(StreamNotFound):
        stage.run(js.update_stream(name="S", max_msgs=5))


DURABLE = {"durable_name": "C", "ack_policy": "all", "max_deliver": 3, "filter_subject": "s.a"}


@pytest.mark.rule("D-CALL-16")
@pytest.mark.parametrize("call", ["update_consumer", "create_or_update_consumer"])
@pytest.mark.parametrize("name", ["name", "durable_name"])
def test_keywords_change_these_fields_of_a_consumer(call, name):
    stage = Stage({"config": DURABLE}, consumer())
    js = JetStream(stage.client)
    stage.run(getattr(js, call)("S", **{name: "C"}, max_deliver=5))
    changed = {**DURABLE, name: "C", "max_deliver": 5}
    assert short(stage) == [("INFO", None), ("CREATE", changed)]


@pytest.mark.rule("D-CALL-16")
def test_keywords_for_a_consumer_that_does_not_exist():
    missing = error(404, 10014)
    stage = Stage(missing, consumer(), missing, consumer())
    js = JetStream(stage.client)
    stage.run(js.create_or_update_consumer("S", durable_name="C"))
    assert short(stage) == [("INFO", None), ("CREATE", {"durable_name": "C", **EXPLICIT})]
    with pytest.raises(ConsumerDoesNotExist, match=r"in response to CONSUMER\.INFO\.S\.C"):
        stage.run(js.update_consumer("S", durable_name="C"))
    assert short(stage) == [("INFO", None)]
    stage.run(js.create_or_update_consumer("S"))  # an ephemeral one: there is nothing to look for
    assert [verb for verb, _ in short(stage)] == ["CREATE"]


@pytest.mark.rule("D-CALL-17")
def test_an_existing_configuration_is_compared():
    stage = Stage(error(400, 10058), {"config": THERE}, error(400, 10148), {"config": DURABLE})
    js = JetStream(stage.client)
    with pytest.raises(StreamNameInUse, match="max_msgs is 9, not 5"):
        stage.run(js.create_stream(name="S", subjects=["s.>"], max_msgs=5))
    with pytest.raises(ConsumerExists, match=": max_deliver is 3, not 5; ") as caught:
        stage.run(js.create_consumer("S", name="C", max_deliver=5, ack_policy="all"))
    assert caught.value.different[-1] == "filter_subject is 's.a', not ''"
    assert [verb for verb, _ in short(stage)] == ["CREATE", "INFO", "CREATE", "INFO"]


@pytest.mark.rule("CALL-18")
@pytest.mark.parametrize(
    ("call", "args", "answers"),
    [
        ("create_stream", ({"name": "S"},), [stream()]),
        ("update_stream", ({"name": "S"},), [stream()]),
        ("create_or_update_stream", ({"name": "S"},), [error(404, 10059), stream()]),
        ("create_consumer", ("S", {"name": "C"}), [consumer()]),
        ("update_consumer", ("S", {"name": "C"}), [consumer()]),
        ("create_or_update_consumer", ("S", {"name": "C"}), [consumer()]),
    ],
)
def test_pedantic_is_part_of_the_request(call, args, answers):
    stage = Stage(*answers)
    stage.run(getattr(JetStream(stage.client), call)(*args, pedantic=True))
    for _, body in stage.asked:
        assert body["pedantic"] is True
        assert "pedantic" not in body.get("config", {})
    old = Stage(version="2.10.0", api_lvl=0)
    with pytest.raises(NotSupported, match="pedantic=True needs JetStream API level 1"):
        old.run(getattr(JetStream(old.client), call)(*args, pedantic=True))
    with pytest.raises(InvalidValue):
        old.run(getattr(JetStream(old.client), call)(*args, pedantic="yes"))
    assert old.quiet()


@pytest.mark.rule("CALL-13")
@pytest.mark.parametrize(
    ("names", "raised", "text"),
    [
        ([], StreamNotFound, "no stream accepts subject 's.a'"),
        (["A", "B"], AmbiguousStream, r"by several streams: \['A', 'B'\]"),
    ],
)
def test_the_stream_of_a_subject(names, raised, text):
    stage = Stage({"streams": names, "total": len(names)})
    with pytest.raises(raised, match=text):
        stage.run(JetStream(stage.client).stream_name_by_subject("s.a"))


@pytest.mark.rule("CALL-12")
@pytest.mark.parametrize("echo", [{}, {"filter_subject": "a"}, {"filter_subjects": None}])
def test_filters_that_the_server_ignored(echo):
    stage = Stage(consumer(**echo))
    with pytest.raises(FilterIgnored):
        stage.run(JetStream(stage.client).create_consumer("S", filter_subjects=["a", "b"]))


NEW = [
    # version, call, arguments, refused
    ("2.9.0", "create_stream", {"name": "S", "compression": "s2"}, True),
    ("2.10.0", "create_stream", {"name": "S", "compression": "s2"}, False),
    ("2.10.0-beta.1", "create_stream", {"name": "S", "compression": "s2"}, False),
    ("2.9.0", "create_stream", {"name": "S", "compression": "none"}, False),
    ("2.9.0", "create_stream", {"name": "S", "metadata": {}}, False),
    ("2.11.9", "update_stream", {"name": "S", "allow_atomic": True}, True),
    ("2.12.0", "update_stream", {"name": "S", "allow_atomic": True}, False),
    ("2.9.0", "create_consumer", {"name": "C", "filter_subjects": ["a"]}, True),
    ("2.10.0", "create_consumer", {"name": "C", "filter_subjects": ["a"]}, False),
    ("proxy", "create_stream", {"name": "S", "allow_atomic": True}, False),
]


@pytest.mark.rule("D-CALL-7")
@pytest.mark.parametrize(("version", "call", "fields", "refused"), NEW)
def test_fields_that_are_newer_than_the_server(version, call, fields, refused):
    consumers = call == "create_consumer"
    answers = [consumer(**fields)] if consumers else [stream(), stream()]
    stage = Stage(*answers, version=version)
    made = getattr(JetStream(stage.client), call)(*(["S"] if consumers else []), **fields)
    if refused:
        with pytest.raises(NotSupported, match=r"needs server 2\.\d+; this is " + version):
            stage.run(made)
        assert stage.asked == []
    else:
        stage.run(made)


@pytest.mark.rule("D-CALL-7")
def test_before_the_first_connection_nothing_is_known():
    stage = Stage(stream())
    stage.connection.lifecycle.info = None
    stage.run(JetStream(stage.client).create_stream(name="S", allow_atomic=True))
