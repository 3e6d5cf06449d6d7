from __future__ import annotations

import json

import pytest

from jetstream.call import Api
from jetstream.errors import (
    ConsumerDeleted,
    ConsumerExists,
    ConsumerUnavailable,
    MessagesMissed,
    PullRefused,
    StreamNotFound,
)
from jetstream.ordered import ConsumerReset
from jetstream.ordered_consumer import open_ordered, ordered_config
from natsproto.errors import (
    ConnectionLost,
    InvalidName,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    LocalError,
    NotSupported,
)

from .support import NOBODY, SILENCE, Delivery, Lost, Stage, Status

DEFAULTS = {
    "filter_subjects": None,
    "deliver_policy": "all",
    "opt_start_seq": None,
    "opt_start_time": None,
    "replay_policy": "instant",
    "headers_only": False,
    "inactive_threshold": 300.0,
    "metadata": None,
}
DELETED = Status("409 Consumer Deleted")
NO_STREAM = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
TIMEOUT = Status("408 Request Timeout")


def config(**options):
    return ordered_config(**{**DEFAULTS, **options})


def created(seq=0, consumer_seq=0, **fields):
    delivered = {"consumer_seq": consumer_seq, "stream_seq": seq}
    return {"stream_name": "S", "name": "o", "config": fields, "delivered": delivered}


def delivery(serial, seq, number):
    return Delivery("s.a", f"$JS.ACK.S.o_{serial}.1.{seq}.{number}.1.0", b"%d" % seq)


def handle(*answers, most=None, info=None, **options):
    """A stage that answers so, and the handle, whose first consumer is there."""
    stage = Stage(created(), *answers, **(info or {}))
    api = Api(stage.client.session, "", "$JS.API", 5.0)
    ordered = stage.run(open_ordered(api, "S", "o", config(**options), most))
    assert [short(pub) for pub in stage.pubs] == ["create 1"]
    return stage, ordered


def short(pub):
    """`create 2 from 5`, `delete 1`, `pull 1 10`, `info 1`."""
    words = pub.subject.split(".")
    verb = {"CREATE": "create", "DELETE": "delete", "MSG": "pull", "INFO": "info"}[words[3]]
    serial = words[6 if verb == "pull" else 5].split("_")[1]
    body = json.loads(pub.data or b"{}")
    if verb == "pull":
        return "pull %s %d" % (serial, body["batch"])
    start = body.get("config", {}).get("opt_start_seq")
    return "%s %s" % (verb, serial) + (" from %d" % start if start else "")


def sent(stage):
    return [short(pub) for pub in stage.pubs]


def seqs(messages):
    return [int(msg.data) for msg in messages]


CONFIGS = [  # options, what is asked for besides the defaults
    ({}, {}),
    ({"filter_subjects": "a.>"}, {"filter_subject": "a.>"}),
    ({"filter_subjects": ["a.>"]}, {"filter_subject": "a.>"}),
    ({"filter_subjects": ("a", "b")}, {"filter_subjects": ["a", "b"]}),
    ({"deliver_policy": "new"}, {"deliver_policy": "new"}),
    (
        {"deliver_policy": "last_per_subject"},
        {"deliver_policy": "last_per_subject", "filter_subject": ">"},
    ),
    (
        {"deliver_policy": "last_per_subject", "filter_subjects": "a"},
        {"deliver_policy": "last_per_subject", "filter_subject": "a"},
    ),
    (
        {"deliver_policy": "by_start_sequence", "opt_start_seq": 7},
        {"deliver_policy": "by_start_sequence", "opt_start_seq": 7},
    ),
    (
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T00:00:00Z"},
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T00:00:00Z"},
    ),
    ({"replay_policy": "original"}, {"replay_policy": "original"}),
    ({"headers_only": True}, {"headers_only": True}),
    ({"inactive_threshold": 2}, {"inactive_threshold": 2_000_000_000}),
    ({"metadata": {"a": "b"}}, {"metadata": {"a": "b"}}),
]


@pytest.mark.rule("ORDERED-1")
@pytest.mark.rule("ORDERED-20")
@pytest.mark.parametrize(("options", "fields"), CONFIGS)
def test_config(options, fields):
    body = config(**options).to_json()
    assert body.pop("ack_policy") == "none"
    assert body.pop("mem_storage") is True
    assert body.pop("num_replicas") == 1
    if "inactive_threshold" not in fields:
        assert body.pop("inactive_threshold") == 300 * 10**9
    assert body == {"deliver_policy": "all", "replay_policy": "instant", **fields}


@pytest.mark.rule("ORDERED-18")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"filter_subjects": []}, InvalidValue),
        ({"filter_subjects": ""}, InvalidValue),
        ({"filter_subjects": 5}, InvalidValue),
        ({"filter_subjects": {"a": 1}}, InvalidValue),
        ({"filter_subjects": ["a", 5]}, InvalidValue),
        ({"metadata": ["a"]}, InvalidValue),
        ({"headers_only": "no"}, InvalidValue),
        ({"filter_subjects": "a..b"}, InvalidSubject),
        ({"filter_subjects": ["a", "b c"]}, InvalidSubject),
        ({"deliver_policy": "by_start_sequence"}, InvalidValue),
        ({"deliver_policy": "by_start_time"}, InvalidValue),
        ({"deliver_policy": "whenever"}, InvalidValue),
        ({"opt_start_seq": 5}, InvalidValue),
        ({"opt_start_time": "2026-01-01T00:00:00Z"}, InvalidValue),
        ({"opt_start_time": "yesterday"}, InvalidValue),
        ({"deliver_policy": "new", "opt_start_seq": 5}, InvalidValue),
        ({"inactive_threshold": 0}, InvalidValue),
        ({"inactive_threshold": "5m"}, InvalidValue),
    ],
)
def test_refused_options(options, error):
    with pytest.raises(error):
        config(**options)


@pytest.mark.rule("ORDERED-18")
@pytest.mark.parametrize(
    ("prefix", "most", "error"),
    [
        ("a.b", None, InvalidName),
        ("é", None, InvalidName),
        (5, None, InvalidName),
        ("o" * 250, None, InvalidName),
        ("o", 0, InvalidValue),
        ("o", "3", InvalidValue),
    ],
)
def test_refused_handles(prefix, most, error):
    stage = Stage()
    api = Api(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(error):
        stage.run(open_ordered(api, "S", prefix, config(), most))
    assert stage.quiet()


@pytest.mark.rule("CALL-7")
def test_an_old_server():
    with pytest.raises(NotSupported):
        handle(filter_subjects=["a", "b"], info={"version": "2.9.10", "api_lvl": 0})


def test_a_name_is_made_up():
    stage = Stage(created())
    api = Api(stage.client.session, "", "$JS.API", 5.0)
    ordered = stage.run(open_ordered(api, "S", "", config(), None))
    prefix, _, serial = ordered.name.partition("_")
    assert (len(prefix), serial, ordered.stream) == (22, "1", "S")
    assert repr(ordered) == "<OrderedConsumer %s of S>" % ordered.name


@pytest.mark.rule("ORDERED-3")
def test_names_that_others_use():
    stage = Stage(created(5, 5), created(7, 7), created())
    api = Api(stage.client.session, "", "$JS.API", 5.0)
    ordered = stage.run(open_ordered(api, "S", "o", config(), None))
    assert ordered.name == "o_3"
    stage = Stage(*[created(5, 5)] * 5)
    api = Api(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(ConsumerExists):
        stage.run(open_ordered(api, "S", "o", config(), None))


def test_info_and_delete():
    stage, ordered = handle({"name": "o_1", "num_pending": 7}, {"success": True}, created())
    assert ordered.cached_info.num_pending == 0
    info = stage.run(ordered.info())
    assert (info.num_pending, ordered.cached_info) == (7, info)
    stage.run(ordered.delete())
    ordered.consume()
    assert sent(stage) == ["info 1", "delete 1", "create 2 from 1"]


# fetch and next


@pytest.mark.rule("ORDERED-22")
def test_fetch_after_fetch():
    stage, ordered = handle(
        [delivery(1, 4, 1), delivery(1, 6, 2)],
        [delivery(1, 7, 3), Status("404 No Messages")],
        [delivery(1, 9, 4)],
        TIMEOUT,
    )
    batch = stage.run(ordered.fetch(2))
    assert (seqs(batch), batch.error, batch[0].settled) == ([4, 6], None, True)
    assert seqs(stage.run(ordered.fetch(5, no_wait=True))) == [7]
    assert stage.run(ordered.next(expires=2.0)).data == b"9"
    assert stage.run(ordered.next(expires=2.0)) is None
    assert sent(stage) == ["pull 1 2", "pull 1 5", "pull 1 1", "pull 1 1"]


@pytest.mark.rule("ORDERED-22")
@pytest.mark.parametrize("answer", [DELETED, NOBODY])
def test_the_consumer_is_gone(answer):
    stage, ordered = handle(
        [delivery(1, 4, 1)], answer, SILENCE, created(4), [delivery(2, 5, 1), TIMEOUT]
    )
    assert seqs(stage.run(ordered.fetch(1))) == [4]
    assert seqs(stage.run(ordered.fetch(3, heartbeat=1.0))) == [5]
    assert sent(stage) == ["pull 1 1", "pull 1 3", "delete 1", "create 2 from 5", "pull 2 3"]


@pytest.mark.rule("ORDERED-22")
def test_it_is_gone_twice():
    stage, ordered = handle(DELETED, SILENCE, created(), NOBODY, SILENCE, created(), TIMEOUT)
    with pytest.raises(ConsumerUnavailable):
        stage.run(ordered.fetch(3))
    assert len(stage.run(ordered.fetch(3))) == 0
    assert sent(stage)[-2:] == ["create 3 from 1", "pull 3 3"]


@pytest.mark.rule("ORDERED-22")
def test_it_is_gone_when_the_time_is_nearly_over():
    stage, ordered = handle([], SILENCE)
    fetching = ordered.fetch(3, expires=30.0)
    stage.answers[0] = []
    wait = stage.wait

    async def later(waitable):
        stage.wait = wait
        stage.serve()
        stage.wire.now += 29.96
        reply = stage._pubs[-1].reply.encode()
        block = DELETED.block
        head = (reply, len(block), len(block), block)
        stage.wire.data(b"HMSG %s 2 %d %d\r\n%s\r\n" % head)

    stage.wait = later
    with pytest.raises(ConsumerDeleted):
        stage.run(fetching)
    assert sent(stage) == ["pull 1 3", "delete 1"]


@pytest.mark.rule("ORDERED-22")
def test_the_stream_is_gone():
    stage, ordered = handle(DELETED, SILENCE, NO_STREAM)
    with pytest.raises(StreamNotFound):
        stage.run(ordered.fetch(3))


GAPS = [  # what the first consumer gives, what the fetch gives, and the next one
    ([delivery(1, 1, 1), delivery(1, 3, 3), TIMEOUT], [1], [2]),
    ([delivery(1, 1, 1), DELETED], [1], [2]),
    ([delivery(1, 1, 1), Status("408 x", Nats_Pending_Messages=1)], [1], [2]),
    ([delivery(1, 1, 1), Status("408 x", Nats_Pending_Messages=2)], [1], None),
    ([Delivery("s.a", "reply", b"9"), delivery(1, 1, 1), TIMEOUT], [1], None),
]


@pytest.mark.rule("ORDERED-22")
@pytest.mark.parametrize(("answers", "first", "second"), GAPS)
def test_gaps(answers, first, second):
    stage, ordered = handle(answers, SILENCE, created(1), [delivery(2, 2, 1), TIMEOUT])
    batch = stage.run(ordered.fetch(3))
    assert seqs(batch) == first
    assert (batch.error is not None) == (DELETED in answers)
    if second is None:
        assert ordered.name == "o_1"
        return
    assert seqs(stage.run(ordered.fetch(3))) == second
    assert sent(stage) == ["pull 1 3", "delete 1", "create 2 from 2", "pull 2 3"]


@pytest.mark.rule("ORDERED-22")
def test_a_gap_at_once():
    stage, ordered = handle(
        [delivery(1, 2, 2), TIMEOUT], SILENCE, created(), [delivery(2, 1, 1), TIMEOUT]
    )
    assert seqs(stage.run(ordered.fetch(3))) == [1]
    assert sent(stage) == ["pull 1 3", "delete 1", "create 2 from 1", "pull 2 3"]
    stage, ordered = handle(
        [delivery(1, 2, 2), TIMEOUT], SILENCE, created(), [delivery(2, 9, 9), TIMEOUT], SILENCE
    )
    with pytest.raises(MessagesMissed, match="'o_2'"):
        stage.run(ordered.fetch(3))


@pytest.mark.rule("ORDERED-22")
def test_a_lost_connection():
    stage, ordered = handle([delivery(1, 1, 1)], Lost(), SILENCE, created(1), [delivery(2, 2, 1)])
    assert seqs(stage.run(ordered.fetch(1))) == [1]
    with pytest.raises(ConnectionLost):
        stage.run(ordered.fetch(1))
    assert seqs(stage.run(ordered.fetch(1))) == [2]


def test_what_the_server_refuses():
    stage, ordered = handle(Status("409 Exceeded MaxRequestBatch of 5"), SILENCE)
    with pytest.raises(PullRefused):
        stage.run(ordered.fetch(10))


@pytest.mark.rule("FETCH-2")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_messages": 1, "max_bytes": 1},
        {"max_messages": 0},
        {"max_bytes": 0},
        {"max_messages": 1, "expires": 0},
        {"max_messages": 1, "no_wait": True, "heartbeat": 1.0},
    ],
)
def test_refused_fetches(options):
    stage, ordered = handle()
    with pytest.raises(LocalError):
        stage.run(ordered.fetch(**options))
    assert stage.quiet()


def test_by_bytes():
    stage, ordered = handle([delivery(1, 1, 1), TIMEOUT])
    assert seqs(stage.run(ordered.fetch(max_bytes=1000))) == [1]
    assert sent(stage) == ["pull 1 1000000"]


# consume


@pytest.mark.rule("ORDERED-21")
@pytest.mark.parametrize(
    ("options", "heartbeat"),
    [({}, 5.0), ({"expires": 4.0}, 2.0), ({"heartbeat": 1.5}, 1.5), ({"expires": 60.0}, 5.0)],
)
def test_consume(options, heartbeat):
    stage, ordered = handle([delivery(1, 1, 1)])
    messages = ordered.consume(max_messages=5, **options)
    msg = stage.run(messages.next())
    assert (msg.data, msg.settled) == (b"1", True)
    (pull,) = stage.pubs
    assert json.loads(pull.data)["idle_heartbeat"] == heartbeat * 1e9


@pytest.mark.rule("ORDERED-14")
def test_a_reset():
    stage, ordered = handle(
        [delivery(1, 1, 1), DELETED], SILENCE, created(1), [delivery(2, 2, 1)], most=3
    )
    messages = ordered.consume(max_messages=5)
    assert seqs([stage.run(messages.next()) for _ in range(2)]) == [1, 2]
    event = stage.run(messages.events.next())
    assert isinstance(event, ConsumerReset)
    assert isinstance(event.error, ConsumerDeleted)
    assert (ordered.name, ordered.cached_info.delivered.stream_seq) == ("o_2", 1)
    assert (ordered.lineage.name, ordered.lineage.info) == ("o_2", ordered.cached_info)
    assert sent(stage) == ["pull 1 5", "delete 1", "create 2 from 2", "pull 2 5"]


@pytest.mark.rule("ORDERED-19")
def test_consume_again_and_fetch():
    stage, ordered = handle(
        [delivery(1, 1, 1), delivery(1, 2, 2), delivery(1, 3, 3)],
        SILENCE,
        created(1),
        [delivery(2, 2, 1)],
        SILENCE,
        created(2),
        [delivery(3, 3, 1)],
        [delivery(3, 4, 2)],
    )
    messages = ordered.consume(max_messages=5, threshold_messages=1)
    assert stage.run(messages.next()).data == b"1"
    assert seqs(stage.run(messages.stop())) == [2, 3]
    messages = ordered.consume(max_messages=5, threshold_messages=1)
    assert stage.run(messages.next()).data == b"2"
    stage.run(messages.stop())
    assert stage.run(ordered.next()).data == b"3"
    messages = ordered.consume(max_messages=5)
    assert stage.run(messages.next()).data == b"4"
    assert sent(stage) == [
        "pull 1 5",
        "delete 1",
        "create 2 from 2",
        "pull 2 5",
        "delete 2",
        "create 3 from 3",
        "pull 3 1",
        "pull 3 5",
    ]


@pytest.mark.rule("ORDERED-23")
def test_one_use_at_a_time():
    stage, ordered = handle(SILENCE, SILENCE)
    messages = ordered.consume()
    with pytest.raises(InvalidState, match="'o_1' is in use"):
        ordered.consume()
    for call in (ordered.fetch(1), ordered.next(), ordered.delete()):
        with pytest.raises(InvalidState):
            stage.run(call)
    stage.run(messages.stop())
    ordered.consume()


@pytest.mark.rule("ORDERED-23")
def test_one_fetch_at_a_time():
    stage, ordered = handle(SILENCE)
    found = []
    wait = stage.wait

    async def meddle(waitable):
        stage.wait = wait
        with pytest.raises(InvalidState) as caught:
            ordered.consume()
        found.append(caught.value)
        await wait(waitable)

    stage.wait = meddle
    stage.answers = [TIMEOUT]
    assert len(stage.run(ordered.fetch(1))) == 0
    assert len(found) == 1


def test_before_there_is_a_connection():
    stage, ordered = handle([delivery(1, 1, 1)])
    stage.wire.lost()
    stage.forget_transport()
    messages = ordered.consume(max_messages=5)
    stage.wire.greet(jetstream=True, api_lvl=5).data(b"PONG\r\n")
    assert stage.run(messages.next()).data == b"1"


@pytest.mark.rule("CONSUME-2")
@pytest.mark.parametrize(
    "options",
    [
        {"max_messages": 1, "max_bytes": 1},
        {"expires": 0.5},
        {"expires": "1"},
        {"heartbeat": 40.0},
        {"stop_after": 0},
    ],
)
def test_refused_consumes(options):
    stage, ordered = handle()
    with pytest.raises(LocalError):
        ordered.consume(**options)
    assert stage.quiet()
