from __future__ import annotations

import inspect

import pytest

from jetstream import Counter, JetStream, Timestamp
from jetstream.errors import InvalidResponse, MessageNotFound
from jetstream.schema.info import StreamInfo
from jetstream.streams.consumer import Consumer
from jetstream.streams.stream import Stream, stream_through
from natsproto.errors import InvalidSubject, InvalidValue, NotSupported, TimeoutExpired
from tests.jetstream.api.test_stored import answer, eob
from tests.jetstream.support import NOBODY, SILENCE, Stage, Status

TIME = "2026-11-15T23:55:50.159073055Z"
MESSAGE = {"message": {"subject": "s.x", "seq": 3, "time": TIME, "data": "bTM="}}


def make(stage, **config):
    js = JetStream(stage.client)
    return Stream(js._streams, js._api, StreamInfo(config={"name": "S", **config}))


INFOS = [
    # keywords, answers, bodies, subjects
    ({}, [{"config": {"name": "S"}}], [{}], {}),
    ({"deleted_details": True}, [{"total": 9}], [{"deleted_details": True}], {}),
    (
        {"subjects_filter": "s.>"},
        [{"total": 2, "state": {"subjects": {"s.a": 1, "s.b": 2}}}],
        [{"subjects_filter": "s.>"}],
        {"s.a": 1, "s.b": 2},
    ),
    (
        {"subjects_filter": ">", "deleted_details": True},
        [
            {"total": 3, "state": {"subjects": {"a": 1, "b": 2}}},
            {"total": 3, "state": {"subjects": {"c": 3}}},
        ],
        [
            {"subjects_filter": ">", "deleted_details": True},
            {"subjects_filter": ">", "deleted_details": True, "offset": 2},
        ],
        {"a": 1, "b": 2, "c": 3},
    ),
    # They disappeared in the meantime.
    (
        {"subjects_filter": ">"},
        [{"total": 3, "state": {"subjects": {"a": 1}}}, {"total": 1, "state": {}}],
        [{"subjects_filter": ">"}, {"subjects_filter": ">", "offset": 1}],
        {"a": 1},
    ),
    # New subjects appeared in the meantime, and moved the others.
    (
        {"subjects_filter": ">"},
        [
            {"total": 2, "state": {"subjects": {"b": 1}}},
            {"total": 3, "state": {"subjects": {"b": 1}}},
        ],
        [{"subjects_filter": ">"}, {"subjects_filter": ">", "offset": 1}],
        {"b": 1},
    ),
]


@pytest.mark.rule("CALL-5")
@pytest.mark.parametrize(("keywords", "answers", "bodies", "subjects"), INFOS)
def test_info(keywords, answers, bodies, subjects):
    stage = Stage(*answers)
    stream = make(stage)
    info = stage.run(stream.info(**keywords))
    assert info.state.subjects == subjects
    assert stream.cached_info is info
    assert stage.asked == [("$JS.API.STREAM.INFO.S", body) for body in bodies]
    assert repr(stream) == "<Stream S>"


@pytest.mark.rule("D-CALL-15")
def test_subjects_without_end_end(monkeypatch):
    def page(*subjects):
        return {
            "config": {"name": "S"},
            "total": 9**20,
            "state": {"subjects": dict.fromkeys(subjects, 1)},
        }

    stage = Stage(page("a"), page("a"))
    assert stage.run(make(stage).info(subjects_filter=">")).state.subjects == {"a": 1}
    monkeypatch.setattr("jetstream.streams.stream.MOST_PAGES", 3)
    stage = Stage(*[page(str(n)) for n in range(4)])
    with pytest.raises(InvalidResponse, match="subjects of stream 'S' do not end after 3 pages"):
        stage.run(make(stage).info(subjects_filter=">"))


PURGES = [
    ({}, {}),
    ({"subject": "s.*"}, {"filter": "s.*"}),
    ({"seq": 5}, {"seq": 5}),
    ({"keep": 5, "subject": "s.a"}, {"keep": 5, "filter": "s.a"}),
]


@pytest.mark.rule("D-CALL-10")
@pytest.mark.parametrize(("keywords", "body"), PURGES)
def test_purge(keywords, body):
    stage = Stage({"success": True, "purged": 7})
    assert stage.run(make(stage).purge(**keywords)) == 7
    assert stage.asked == [("$JS.API.STREAM.PURGE.S", body)]


@pytest.mark.rule("D-CALL-10")
@pytest.mark.parametrize(
    ("keywords", "wrong"),
    [
        ({"seq": 0}, InvalidValue),
        ({"keep": 0}, InvalidValue),
        ({"seq": -1}, InvalidValue),
        ({"seq": True}, InvalidValue),
        ({"seq": 1.0}, InvalidValue),
        ({"seq": 1, "keep": 1}, InvalidValue),
        ({"subject": ""}, InvalidSubject),
        ({"subject": "a..b"}, InvalidSubject),
    ],
)
def test_invalid_purges(keywords, wrong):
    stage = Stage()
    with pytest.raises(wrong):
        stage.run(make(stage).purge(**keywords))
    assert stage.quiet()


@pytest.mark.rule("CALL-2")
def test_a_purge_that_does_not_count():
    stage = Stage({"success": True, "purged": "7"}, {"success": True})
    with pytest.raises(InvalidResponse):
        stage.run(make(stage).purge())
    assert stage.run(make(stage).purge()) == 0


GETS = [
    # arguments, keywords, body
    ((3,), {}, {"seq": 3}),
    ((), {"last_by_subject": "s.x"}, {"last_by_subj": "s.x"}),
    ((), {"next_by_subject": "s.>"}, {"seq": 1, "next_by_subj": "s.>"}),
    ((3,), {"next_by_subject": "s.>"}, {"seq": 3, "next_by_subj": "s.>"}),
]


@pytest.mark.rule("GET-1", "GET-2")
@pytest.mark.parametrize(("args", "keywords", "body"), GETS)
def test_get_msg(args, keywords, body):
    stage = Stage(MESSAGE, answer(3, b"m3"))
    for stream, endpoint in (
        (make(stage), "STREAM.MSG.GET.S"),
        (make(stage, allow_direct=True), "DIRECT.GET.S"),
    ):
        msg = stage.run(stream.get_msg(*args, **keywords))
        assert (msg.subject, msg.seq, msg.data, str(msg.time)) == ("s.x", 3, b"m3", TIME)
        assert stage.asked == [(f"$JS.API.{endpoint}", body)]


@pytest.mark.rule("GET-13")
def test_get_msg_without_headers_asks_the_leader():
    stage = Stage(MESSAGE)
    msg = stage.run(make(stage, allow_direct=True).get_msg(3, no_headers=True))
    assert (msg.subject, msg.seq, msg.data, msg.headers) == ("s.x", 3, b"m3", None)
    assert stage.asked == [("$JS.API.STREAM.MSG.GET.S", {"seq": 3, "no_hdr": True})]


MANY = [
    # call, arguments, keywords, body
    ("get_msgs", (), {"batch": 3}, {"seq": 1, "batch": 3}),
    ("get_msgs", (), {"batch": 3, "seq": 5}, {"seq": 5, "batch": 3}),
    (
        "get_msgs",
        (),
        {"batch": 3, "subject": "s.>", "max_bytes": 100},
        {"seq": 1, "batch": 3, "next_by_subj": "s.>", "max_bytes": 100},
    ),
    (
        "get_msgs",
        (),
        {"batch": 3, "start_time": Timestamp.parse(TIME)},
        {"start_time": TIME, "batch": 3},
    ),
    ("get_last_msgs", (["a", "b.>"],), {}, {"multi_last": ["a", "b.>"]}),
    (
        "get_last_msgs",
        (("a",),),
        {"up_to_seq": 9, "batch": 2},
        {"multi_last": ["a"], "up_to_seq": 9, "batch": 2},
    ),
    (
        "get_last_msgs",
        (["a"],),
        {"up_to_time": TIME},
        {"multi_last": ["a"], "up_to_time": TIME},
    ),
]


@pytest.mark.rule("GET-1", "GET-5")
@pytest.mark.parametrize(("call", "args", "keywords", "body"), MANY)
def test_many(call, args, keywords, body):
    stage = Stage([answer(7), eob(0, 7)])
    found = stage.run(getattr(make(stage), call)(*args, **keywords))
    assert [msg.seq for msg in found] == [7]
    assert stage.asked == [("$JS.API.DIRECT.GET.S", body)]


async def every(messages):
    return [msg async for msg in messages]


@pytest.mark.rule("GET-1", "D-GET-14")
@pytest.mark.parametrize(("call", "args", "keywords", "body"), MANY)
def test_many_one_by_one(call, args, keywords, body):
    stage = Stage([answer(7), eob(0, 7)])
    found = stage.run(every(getattr(make(stage), "iter_" + call)(*args, **keywords)))
    assert [msg.seq for msg in found] == [7]
    assert stage.asked == [("$JS.API.DIRECT.GET.S", body)]


@pytest.mark.rule("GET-6")
@pytest.mark.parametrize(
    ("call", "args", "keywords", "pages"),
    [
        ("get_msgs", (), {"batch": 2}, 2),
        ("get_msgs", (), {"batch": 2, "max_bytes": 100}, 1),
        ("get_last_msgs", (["a"],), {}, 2),
        ("get_last_msgs", (["a"],), {"batch": 1}, 1),
    ],
)
def test_the_remaining_messages_are_requested(call, args, keywords, pages):
    stage = Stage([answer(1), eob(1, 1)], [answer(2), eob(0, 2)])
    assert len(stage.run(getattr(make(stage), call)(*args, **keywords))) == pages
    assert len(stage.asked) == pages


@pytest.mark.rule("GET-1")
@pytest.mark.parametrize(
    ("call", "args", "keywords", "wrong"),
    [
        ("get_msg", (), {}, InvalidValue),
        ("get_msg", (-1,), {}, InvalidValue),
        ("get_msg", (2**64,), {}, InvalidValue),
        ("get_msg", (), {"last_by_subject": None}, InvalidSubject),
        ("get_msg", (), {"next_by_subject": None}, InvalidSubject),
        ("info", (), {"subjects_filter": None}, InvalidSubject),
        ("info", (), {"deleted_details": "yes"}, InvalidValue),
        ("get_msg", (3,), {"last_by_subject": "a"}, InvalidValue),
        ("get_msg", (), {"last_by_subject": "a", "next_by_subject": "b"}, InvalidValue),
        ("get_msg", (), {"last_by_subject": "a..b"}, InvalidSubject),
        ("get_msg", (), {"next_by_subject": "a b"}, InvalidSubject),
        ("get_msgs", (), {"batch": 0}, InvalidValue),
        ("get_msgs", (), {"batch": 1, "seq": -1}, InvalidValue),
        ("get_msgs", (), {"batch": 1, "max_bytes": -1}, InvalidValue),
        ("get_msgs", (), {"batch": 1, "subject": "a..b"}, InvalidSubject),
        ("get_msgs", (), {"batch": 1, "seq": 1, "start_time": TIME}, InvalidValue),
        ("get_msgs", (), {"batch": 1, "start_time": "now"}, InvalidValue),
        ("get_last_msgs", ([],), {}, InvalidValue),
        ("get_last_msgs", ("a.b",), {}, InvalidValue),
        ("get_last_msgs", (5,), {}, InvalidValue),
        ("get_last_msgs", (["a..b"],), {}, InvalidSubject),
        ("get_last_msgs", (["a"],), {"up_to_seq": -1}, InvalidValue),
        ("get_last_msgs", (["a"],), {"up_to_seq": 1, "up_to_time": TIME}, InvalidValue),
        ("get_last_msgs", (["a"],), {"batch": -1}, InvalidValue),
        ("get_counter", ("a..b",), {}, InvalidSubject),
        ("get_counter", ("",), {}, InvalidSubject),
        ("get_counter", ("a.*",), {}, InvalidSubject),
        ("get_counters", ("a",), {}, InvalidValue),
        ("delete_msg", (0,), {}, InvalidValue),
        ("delete_msg", (1,), {"secure": "no"}, InvalidValue),
    ],
)
def test_wrong_calls_are_not_sent(call, args, keywords, wrong):
    stage = Stage()
    with pytest.raises(wrong):
        stage.run(getattr(make(stage), call)(*args, **keywords))
    assert stage.quiet()


@pytest.mark.rule("GET-3")
def test_direct_get_that_is_no_longer_allowed():
    stage = Stage(NOBODY, NOBODY)
    stream = make(stage, allow_direct=True)
    with pytest.raises(NotSupported):
        stage.run(stream.get_msg(1))
    with pytest.raises(NotSupported):
        stage.run(stream.get_msgs(batch=1))


@pytest.mark.rule("COUNT-4")
def test_counters():
    stage = Stage(
        answer(3, b'{"val":"5"}', "Nats-Incr: +2\r\n"),
        [answer(3, b'{"val":"5"}'), answer(4, b'{"val":"6"}'), eob(0, 4)],
        Status("404 Message Not Found"),
    )
    stream = make(stage, allow_direct=True)
    assert stage.run(stream.get_counter("s.x")) == Counter("s.x", 5, 2, {})
    assert [each.value for each in stage.run(stream.get_counters(["s.>"]))] == [5, 6]
    with pytest.raises(MessageNotFound):
        stage.run(stream.get_counter("s.y"))


@pytest.mark.parametrize(
    ("keywords", "body"),
    [({}, {"seq": 3, "no_erase": True}), ({"secure": True}, {"seq": 3})],
)
def test_delete_msg(keywords, body):
    stage = Stage({"success": True})
    stage.run(make(stage).delete_msg(3, **keywords))
    assert stage.asked == [("$JS.API.STREAM.MSG.DELETE.S", body)]


CONSUMERS = [
    # call, arguments, keywords, answer
    ("create_consumer", (), {"durable_name": "C"}, {"name": "C"}),
    ("update_consumer", ({"name": "C"},), {}, {"name": "C"}),
    ("create_or_update_consumer", ({"name": "C"},), {}, {"name": "C"}),
    ("consumer", ("C",), {}, {"name": "C"}),
    ("delete_consumer", ("C",), {}, {}),
    ("consumers", (), {}, {"consumers": [{"name": "C"}]}),
    ("consumer_names", (), {}, {"consumers": ["C"]}),
    ("pause_consumer", ("C", 0), {}, {"paused": True}),
    ("resume_consumer", ("C",), {}, {"paused": False}),
    ("reset_consumer", ("C", 5), {}, {"name": "C"}),
    ("unpin_consumer", ("C", "g"), {}, {}),
]


@pytest.mark.parametrize(("call", "args", "keywords", "reply"), CONSUMERS)
def test_consumer_calls_are_passed_to_jetstream(call, args, keywords, reply):
    stage = Stage(reply, reply)
    stream = make(stage)
    mine = stage.run(getattr(stream, call)(*args, **keywords))
    asked = stage.asked
    theirs = stage.run(getattr(stream._streams, call)("S", *args, **keywords))
    assert asked == stage.asked
    if isinstance(mine, Consumer):
        assert (mine.name, mine.cached_info) == (theirs.name, theirs.cached_info)
    else:
        assert mine == theirs


@pytest.mark.rule("BIND-11")
def test_a_consumer_is_bound_by_its_name():
    stage = Stage()
    bound = make(stage).bind_consumer("C", ack_policy="none")
    assert (bound.stream, bound.name, bound.puller.ack_none) == ("S", "C", True)
    assert stage.quiet()


def test_every_call_about_consumers_is_on_a_stream_too():
    def calls(cls):
        return {
            name: list(inspect.signature(method).parameters.values())
            for name, method in vars(cls).items()
            if "consumer" in name and not name.startswith("_")
        }

    mine, theirs = calls(Stream), calls(JetStream)
    for name, parameters in theirs.items():
        assert [each for each in parameters if each.name != "stream"] == mine[name], name


def test_delete():
    stage = Stage({"success": True})
    stage.run(make(stage).delete())
    assert stage.asked == [("$JS.API.STREAM.DELETE.S", None)]


@pytest.mark.rule("ORDERED-1")
def test_ordered_consumer():
    stage = Stage({"name": "o_1", "config": {}, "delivered": {}})
    made = make(stage).ordered_consumer(name_prefix="o", deliver_policy="new", metadata={"a": "b"})
    ordered = stage.run(made)
    assert (ordered.name, ordered.stream) == ("o_1", "S")
    [(subject, body)] = stage.asked
    assert subject == "$JS.API.CONSUMER.CREATE.S.o_1"
    assert body["config"] == {
        "name": "o_1",
        "ack_policy": "none",
        "deliver_policy": "new",
        "inactive_threshold": 300 * 10**9,
        "mem_storage": True,
        "metadata": {"a": "b"},
        "num_replicas": 1,
        "replay_policy": "instant",
    }
    with pytest.raises(InvalidValue):
        stage.run(make(stage).ordered_consumer(opt_start_seq=3))
    assert stage.quiet()


def test_replicas():
    stage = Stage(
        {"success": True}, {"success": True}, {"success": True}, {"config": {"name": "S"}}
    )
    stream = make(stage)
    stage.run(stream.step_down())
    stage.run(stream.remove_peer("s2"))
    stage.run(stream.evacuate_peer("s3"))
    info = stage.run(stream.cancel_move())
    assert stream.cached_info is info
    assert stage.asked == [
        ("$JS.API.STREAM.LEADER.STEPDOWN.S", None),
        ("$JS.API.STREAM.PEER.REMOVE.S", {"peer": "s2"}),
        ("$JS.API.STREAM.PEER.EVACUATE.S", {"peer": "s3"}),
        ("$JS.API.STREAM.CANCEL_MOVE.S", None),
    ]


@pytest.mark.rule("D-CALL-18")
def test_a_handle_that_calls_another_client():
    stage = Stage(SILENCE)
    stream = make(stage)
    through = stream_through(stream, stream._api.until(2.0))
    assert (through.name, through.cached_info) == (stream.name, stream.cached_info)
    with pytest.raises(TimeoutExpired):
        stage.run(through.info())
    assert stage.now() == 2.0
