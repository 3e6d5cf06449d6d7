"""The headers of a publish, from the options of the calls."""

from __future__ import annotations

import pytest

from jetstream.publish.headers import publish_headers, schedule_headers, time_to_live
from natsproto.errors import InvalidHeader, InvalidName, InvalidSubject, InvalidValue, NotSupported
from natsproto.wire.headers import Headers
from tests.jetstream.support import Stage

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


@pytest.mark.rule("D-PUB-9")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"msgid": "1"},
            "option does not exist: 'msgid'; the options are headers, .* ttl, timeout",
        ),
        ({"payload": b"x"}, r"option does not exist: 'payload'; use data \(D-PUB-9\)"),
        ({"msg_id": 0}, "msg_id 0 is not a str"),
        ({"expect_stream": b"S"}, "is not a str"),
        ({"expect_last_msg_id": 1}, "is not a str"),
    ],
)
def test_unknown_options(options, text):
    with pytest.raises(InvalidValue, match=text):
        publish_headers(options, Stage().connection, ("timeout",))


@pytest.mark.rule("PUB-6")
@pytest.mark.parametrize("seq", [-1, 2**64, True, 1.0, "1"])
@pytest.mark.parametrize("name", ["expect_last_seq", "expect_last_subject_seq"])
def test_invalid_sequences(name, seq):
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
def test_invalid_ttls(ttl):
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
def test_invalid_schedules(args):
    with pytest.raises((InvalidValue, InvalidSubject)):
        schedule_headers(*args)
