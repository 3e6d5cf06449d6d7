from __future__ import annotations

import pytest

from jetstream.api.client import Api
from jetstream.errors import (
    InvalidResponse,
    JetStreamError,
    NoStreamResponse,
    PublishInDoubt,
    PublishTimeout,
    TtlDisabled,
    WrongLastSequence,
)
from jetstream.publish.acks import AckReader
from jetstream.publish.request import (
    CheckedSubjects,
    in_cluster,
    publish,
    publish_headers,
    schedule_headers,
    time_to_live,
)
from jetstream.schema.info import PubAck
from natsproto.errors import (
    ConnectionClosed,
    InvalidHeader,
    InvalidName,
    InvalidSubject,
    InvalidValue,
    NotSupported,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.wire.headers import Headers
from tests.connection.support import err
from tests.jetstream.support import NOBODY, SILENCE, Lost, Stage

ACK = {"stream": "S", "seq": 7}


def send(stage, timeout=None, retries=2, headers=None, api_timeout=5.0):
    api = Api(stage.client.session, "", "$JS.API", api_timeout)
    return stage.run(
        publish(api, "s.x", b"data", headers, AckReader(), timeout=timeout, retries=retries)
    )


@pytest.mark.rule("PUB-1")
def test_a_publish_is_a_request():
    stage = Stage(ACK)
    assert send(stage, headers=Headers({"A": "b"})) == PubAck(stream="S", seq=7)
    [pub] = stage.pubs
    assert (pub.subject, pub.data, pub.headers) == ("s.x", b"data", Headers({"A": "b"}))


@pytest.mark.rule("PUB-1", "PUB-2")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({}, InvalidResponse),
        (b"hello", InvalidResponse),
        ({"error": {"code": 400, "err_code": 10166, "description": "x"}}, TtlDisabled),
        (
            {"error": {"code": 400, "err_code": 10071, "description": "x: 1"}, "seq": 0},
            WrongLastSequence,
        ),
    ],
)
def test_refusals_are_not_tried_again(answer, error):
    stage = Stage(answer)
    with pytest.raises(error):
        send(stage)
    assert (len(stage.asked), stage.now()) == (1, 0.0)


SINGLE = {"cluster": ""}
CLUSTER = {"cluster": "C"}
TRIES = [
    # rule,  INFO, timeout, retries, of the API; answers; tries, error or None, at
    ("PUB-3", SINGLE, None, 2, 5.0, [NOBODY, ACK], 2, None, 0.25),
    ("PUB-3", SINGLE, None, 2, 5.0, [NOBODY] * 2 + [ACK], 3, None, 0.5),
    ("PUB-3", SINGLE, None, 2, 5.0, [NOBODY] * 3, 3, NoStreamResponse, 0.5),
    ("PUB-3", SINGLE, None, 0, 5.0, [NOBODY], 1, NoStreamResponse, 0.0),
    ("PUB-3", SINGLE, None, 5, 5.0, [NOBODY] * 6, 6, NoStreamResponse, 1.25),
    ("PUB-3", SINGLE, 1.0, -1, 5.0, [NOBODY] * 4, 4, NoStreamResponse, 0.75),
    ("PUB-3", SINGLE, None, -1, 5.0, [NOBODY] * 20, 20, NoStreamResponse, 4.75),
    ("PUB-5", SINGLE, 0.5, 2, 5.0, [NOBODY] * 2, 2, NoStreamResponse, 0.25),
    ("PUB-5", SINGLE, 0.5, 2, 5.0, [NOBODY, SILENCE], 2, PublishTimeout, 0.5),
    ("PUB-5", SINGLE, None, 2, 5.0, [SILENCE], 1, PublishTimeout, 5.0),
    ("PUB-5", SINGLE, 2.0, 2, 5.0, [SILENCE], 1, PublishTimeout, 2.0),
    ("PUB-5", SINGLE, None, 2, 5.0, [NOBODY, SILENCE], 2, PublishTimeout, 5.0),
    ("PUB-4", CLUSTER, None, 2, 5.0, [NOBODY] * 24 + [ACK], 25, None, 6.0),
    ("PUB-4", CLUSTER, None, 2, 5.0, [NOBODY] * 40, 40, NoStreamResponse, 9.75),
    ("PUB-4", CLUSTER, None, -1, 5.0, [NOBODY] * 40, 40, NoStreamResponse, 9.75),
    ("PUB-4", CLUSTER, None, 2, 12.0, [NOBODY] * 41, 41, NoStreamResponse, 10.0),
    ("PUB-4", CLUSTER, None, 0, 5.0, [NOBODY], 1, NoStreamResponse, 0.0),
    ("PUB-4", CLUSTER, 20.0, 2, 5.0, [NOBODY] * 41, 41, NoStreamResponse, 10.0),
    ("PUB-5", CLUSTER, 1.0, 2, 5.0, [NOBODY] * 4, 4, NoStreamResponse, 0.75),
    ("PUB-5", CLUSTER, None, 2, 5.0, [SILENCE], 1, PublishTimeout, 5.0),
    ("PUB-5", CLUSTER, None, 2, 5.0, [NOBODY] * 2 + [SILENCE], 3, PublishTimeout, 5.5),
]


@pytest.mark.parametrize(
    ("info", "timeout", "retries", "each", "answers", "tries", "error", "at"),
    [pytest.param(*row[1:], marks=pytest.mark.rule(row[0])) for row in TRIES],
)
def test_tries(info, timeout, retries, each, answers, tries, error, at):
    stage = Stage(*answers, **info)
    if error is None:
        assert send(stage, timeout, retries, api_timeout=each).seq == 7
    else:
        with pytest.raises(error):
            send(stage, timeout, retries, api_timeout=each)
    assert (len(stage.asked), stage.answers, stage.now()) == (tries, [], at)


@pytest.mark.rule("PUB-3")
@pytest.mark.parametrize("retries", [-2, 1.0, True, "2", None])
def test_retries_are_a_number(retries):
    stage = Stage()
    with pytest.raises(InvalidValue):
        send(stage, retries=retries)
    assert stage.quiet()


@pytest.mark.rule("PUB-5")
@pytest.mark.parametrize("timeout", [-1, "1", float("nan")])
def test_a_timeout_is_a_number(timeout):
    stage = Stage()
    with pytest.raises(InvalidValue):
        send(stage, timeout)
    assert stage.quiet()


@pytest.mark.rule("PUB-5", "PUB-21")
def test_a_lost_connection_leaves_it_open():
    stage = Stage(Lost())
    text = "publish to 's.x' was not acknowledged: no answer in time: it may be stored or not"
    with pytest.raises(TimeoutExpired, match=text) as caught:
        send(stage)
    assert isinstance(caught.value, PublishInDoubt)
    assert isinstance(caught.value, JetStreamError)


def during(stage, happens):
    """Let this happen while the publish waits for its answer."""

    async def step(waitable):
        stage.serve()
        happens()

    stage.wait = step


@pytest.mark.rule("PUB-21")
@pytest.mark.parametrize(
    ("happens", "text"),
    [
        (lambda stage: stage.connection.close(stage.now()), "the connection is closed"),
        (lambda stage: stage.connection.forked(stage.now()), "process was forked"),
        (
            lambda stage: stage.wire.data(
                err('Permissions Violation for Subscription to "_INBOX.%s.*"' % ("0" * 22))
            ),
            "Permissions Violation for Subscription",
        ),
    ],
)
def test_what_leaves_a_publish_in_doubt(happens, text):
    stage = Stage(SILENCE)
    during(stage, lambda: happens(stage))
    with pytest.raises(PublishInDoubt, match=text + ".*: it may be stored or not") as caught:
        send(stage)
    assert not isinstance(caught.value, TimeoutExpired)
    assert caught.value.__cause__ is not None


@pytest.mark.rule("PUB-21")
def test_what_the_server_forbids_is_not_stored():
    stage = Stage(SILENCE)
    during(stage, lambda: stage.wire.data(err('Permissions Violation for Publish to "s.x"')))
    with pytest.raises(PermissionDenied):
        send(stage)


@pytest.mark.rule("PUB-22")
def test_a_server_without_jetstream_is_named():
    stage = Stage(NOBODY, jetstream=False, server_name="edge")
    text = "no stream takes subject 's.x': server 'edge' has JetStream disabled"
    with pytest.raises(NoStreamResponse, match=text) as caught:
        send(stage, retries=0)
    assert caught.value.subject == "s.x"
    stage = Stage(NOBODY)
    with pytest.raises(NoStreamResponse, match=r"'s\.x'$"):
        send(stage, retries=0)
    stage = Stage(NOBODY)
    during(stage, lambda: setattr(stage.connection, "info", None))
    with pytest.raises(NoStreamResponse, match=r"'s\.x'$"):
        send(stage, retries=0)


@pytest.mark.rule("PUB-3")
def test_closing_ends_the_pause():
    stage = Stage(NOBODY)
    wait = stage.wait

    async def close_in_the_pause(waitable):
        if stage.answers:
            await wait(waitable)
        elif stage._pubs:
            stage.connection.close(stage.now())

    stage.wait = close_in_the_pause
    with pytest.raises(ConnectionClosed):
        send(stage)


HEADERS = [
    # options, headers
    ({"msg_id": "42"}, [("Nats-Msg-Id", "42")]),
    ({"expect_stream": "S"}, [("Nats-Expected-Stream", "S")]),
    ({"expect_last_seq": 0}, [("Nats-Expected-Last-Sequence", "0")]),
    ({"expect_last_seq": 2**64 - 1}, [("Nats-Expected-Last-Sequence", "18446744073709551615")]),
    ({"expect_last_subject_seq": 3}, [("Nats-Expected-Last-Subject-Sequence", "3")]),
    (
        {"expect_last_subject_seq": 3, "expect_last_subject": "a.*"},
        [
            ("Nats-Expected-Last-Subject-Sequence", "3"),
            ("Nats-Expected-Last-Subject-Sequence-Subject", "a.*"),
        ],
    ),
    ({"expect_last_msg_id": "41"}, [("Nats-Expected-Last-Msg-Id", "41")]),
    ({"ttl": 60}, [("Nats-TTL", "60")]),
    ({"headers": {"A": ["b", "c"]}, "msg_id": "1"}, [("A", "b"), ("A", "c"), ("Nats-Msg-Id", "1")]),
    ({"headers": {"Nats-Msg-Id": "2"}, "msg_id": "1"}, [("Nats-Msg-Id", "1")]),
    ({"headers": {"Nats-Msg-Id": "2"}}, [("Nats-Msg-Id", "2")]),
    ({"headers": {}}, []),
]


@pytest.mark.rule("PUB-6", "PUB-8")
@pytest.mark.parametrize(("options", "pairs"), HEADERS)
def test_options_are_headers(options, pairs):
    given = Headers(options["headers"]) if "headers" in options else None
    found = publish_headers(options, Stage().connection)
    assert found.items() == pairs
    if given is not None:
        assert Headers(options["headers"]) == given, "what the user gave has changed"


@pytest.mark.parametrize(
    "options", [{}, {"headers": None}, {"msg_id": "", "ttl": None}, {"msg_id": None}]
)
def test_no_options_are_no_headers(options):
    assert publish_headers(options, Stage().connection) is None


@pytest.mark.rule("PUB-9")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"msgid": "1"}, "there is no option 'msgid'; there are headers, msg_id, .* ttl, timeout"),
        ({"msg_id": 0}, "msg_id 0 is not a str"),
        ({"expect_stream": b"S"}, "is not a str"),
        ({"expect_last_msg_id": 1}, "is not a str"),
    ],
)
def test_what_is_no_option(options, text):
    with pytest.raises(InvalidValue, match=text):
        publish_headers(options, Stage().connection, ("timeout",))


@pytest.mark.rule("PUB-6")
@pytest.mark.parametrize("seq", [-1, 2**64, True, 1.0, "1"])
@pytest.mark.parametrize("name", ["expect_last_seq", "expect_last_subject_seq"])
def test_what_is_no_sequence(name, seq):
    with pytest.raises(InvalidValue, match=f"{name} {seq!r} is not a whole number from 0 to"):
        publish_headers({name: seq}, Stage().connection)


@pytest.mark.rule("PUB-6")
def test_an_expected_subject_needs_a_sequence():
    with pytest.raises(InvalidValue, match="needs expect_last_subject_seq"):
        publish_headers({"expect_last_subject": "a"}, Stage().connection)
    options = {"expect_last_subject": "a..b", "expect_last_subject_seq": 1}
    with pytest.raises(InvalidSubject):
        publish_headers(options, Stage().connection)


@pytest.mark.rule("PUB-6")
def test_an_expected_stream_has_the_name_of_one():
    with pytest.raises(InvalidName, match=r"expect_stream 'a\.b' contains"):
        publish_headers({"expect_stream": "a.b"}, Stage().connection)


def test_headers_that_cannot_be_sent():
    with pytest.raises(InvalidHeader):
        publish_headers({"msg_id": "a\nb"}, Stage().connection)


@pytest.mark.rule("PUB-7")
@pytest.mark.parametrize(
    ("ttl", "text"),
    [
        (None, ""),
        ("never", "never"),
        (1, "1"),
        (1.0, "1"),
        (1.5, "1500ms"),
        (1.0004, "1000ms"),
        (3600, "3600"),
        (9223372036, "9223372036"),
    ],
)
def test_ttls(ttl, text):
    assert time_to_live(ttl) == text


@pytest.mark.rule("PUB-7")
@pytest.mark.parametrize(
    "ttl", [0, 0.999, -1, True, "", "5m", "1", float("nan"), float("inf"), 9223372037, b"1", []]
)
def test_what_is_no_ttl(ttl):
    with pytest.raises(InvalidValue, match="PUB-7"):
        time_to_live(ttl)


@pytest.mark.rule("PUB-7")
def test_an_old_server_would_ignore_a_ttl():
    stage = Stage(version="2.10.0", api_lvl=0)
    for options in ({"ttl": 5}, {"headers": {"Nats-TTL": "5"}}):
        with pytest.raises(NotSupported):
            publish_headers(options, stage.connection)
    assert publish_headers({"msg_id": "1"}, stage.connection) is not None


@pytest.mark.rule("PUB-20")
@pytest.mark.parametrize(
    "options",
    [
        {"expect_last_subject": "a", "expect_last_subject_seq": 0},
        {"headers": {"Nats-Expected-Last-Subject-Sequence-Subject": "a"}},
    ],
)
def test_an_old_server_would_compare_with_another_subject(options):
    old = Stage(version="2.10.25", api_lvl=0).connection
    with pytest.raises(NotSupported, match=r"expect_last_subject needs .*2\.11"):
        publish_headers(options, old)
    assert publish_headers(options, Stage(version="2.11.0", api_lvl=0).connection)
    assert publish_headers({"expect_last_subject_seq": 0}, old)


SCHEDULES = [
    # arguments, headers
    (("@every 5m", "t", "", None, "", False), ["@every 5m", "t"]),
    (("0 0 5 * * *", "t", "", None, "Europe/Paris", False), ["0 0 5 * * *", "t", "Europe/Paris"]),
    (("@daily", "t", "src", 60, "UTC", True), ["@daily", "t", "src", "60", "UTC", "sub"]),
    (("@hourly", "t", "", "never", "", False), ["@hourly", "t", "never"]),
]


@pytest.mark.rule("SCHED-1", "SCHED-3", "SCHED-4")
@pytest.mark.parametrize(("args", "values"), SCHEDULES)
def test_schedules(args, values):
    pairs = schedule_headers(*args)
    assert [value for _, value in pairs] == values
    names = ["", "-Target", "-Source", "-TTL", "-Time-Zone", "-Rollup"]
    assert set(dict(pairs)) <= {"Nats-Schedule" + name for name in names}
    assert [name for name, _ in pairs[:2]] == ["Nats-Schedule", "Nats-Schedule-Target"]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(("", "t", "", None, "", False), marks=pytest.mark.rule("SCHED-1")),
        pytest.param((7, "t", "", None, "", False), marks=pytest.mark.rule("SCHED-1")),
        pytest.param(("@daily", "", "", None, "", False), marks=pytest.mark.rule("SCHED-1")),
        pytest.param(("@daily", "a.*", "", None, "", False), marks=pytest.mark.rule("SCHED-1")),
        pytest.param(("@daily", "t", "a.>", None, "", False), marks=pytest.mark.rule("SCHED-1")),
        pytest.param(("@every 5m", "t", "", None, "UTC", False), marks=pytest.mark.rule("SCHED-3")),
        pytest.param(
            ("@at 2099-01-01T00:00:00Z", "t", "", None, "UTC", False),
            marks=pytest.mark.rule("SCHED-3"),
        ),
        pytest.param(("@daily", "t", "", 0.5, "", False), marks=pytest.mark.rule("SCHED-4")),
        pytest.param(("tomorrow", "t", "", None, "", False), marks=pytest.mark.rule("SCHED-5")),
        pytest.param(("0 0 * * *", "t", "", None, "", False), marks=pytest.mark.rule("SCHED-5")),
        pytest.param(("@every 5", "t", "", None, "", False), marks=pytest.mark.rule("SCHED-5")),
        pytest.param(("@at 2024", "t", "", None, "", False), marks=pytest.mark.rule("SCHED-5")),
        pytest.param(("@daily", "t", "", None, 5, False), marks=pytest.mark.rule("SCHED-3")),
        pytest.param(("@daily", "t", "", None, "", "yes"), marks=pytest.mark.rule("SCHED-4")),
    ],
)
def test_what_is_no_schedule(args):
    with pytest.raises((InvalidValue, InvalidSubject)):
        schedule_headers(*args)


def test_what_is_a_cluster():
    assert in_cluster(Stage(cluster="C").connection)
    stage = Stage()
    assert not in_cluster(stage.connection)
    stage.connection.info = None
    assert not in_cluster(stage.connection)


def test_checked_subjects():
    subjects = CheckedSubjects()
    assert subjects.check("s.é") == "s.é".encode()
    assert subjects.known == {"s.é": "s.é".encode()}
    with pytest.raises(InvalidSubject):
        subjects.check("s..a")
    for number in range(1024):
        subjects.check("s.%d" % number)
    assert subjects.known == {"s.1023": b"s.1023"}  # not more and more of them
