from __future__ import annotations

import pytest

from jetstream.api.client import (
    ApiClient,
    encode_json,
    is_no_responders,
    read_number,
    read_reply,
    require_level,
    session_of,
)
from jetstream.config import ConsumerConfig, StreamConfig
from jetstream.errors import (
    ApiError,
    InvalidResponse,
    JetStreamNotAvailable,
    StreamNotFound,
)
from natsproto.errors import (
    InvalidName,
    InvalidSubject,
    InvalidValue,
    NotSupported,
    TimeoutExpired,
)
from natsproto.wire.frames import Info, Msg
from tests.jetstream.support import NOBODY, SILENCE, SlowStage, Stage, Status


def api(stage, domain="", prefix="$JS.API", timeout=5.0):
    return ApiClient(stage.client.session, domain, prefix, timeout)


@pytest.mark.rule("CALL-1")
@pytest.mark.parametrize(
    ("domain", "prefix", "subject"),
    [
        ("", "$JS.API", "$JS.API.INFO"),
        ("hub", "$JS.API", "$JS.hub.API.INFO"),
        ("", "my.js", "my.js.INFO"),
    ],
)
@pytest.mark.parametrize(
    ("body", "sent"), [(None, None), ({}, {}), ({"a": [1, "é"]}, {"a": [1, "é"]})]
)
def test_subjects_of_calls(domain, prefix, subject, body, sent):
    stage = Stage({"type": "x", "value": 7})
    reply = stage.run(api(stage, domain, prefix).call("INFO", body))
    assert reply == {"type": "x", "value": 7}
    assert stage.asked == [(subject, sent)]


@pytest.mark.rule("CALL-1")
@pytest.mark.parametrize(
    ("domain", "prefix", "error"),
    [
        ("a.b", "$JS.API", InvalidName),
        ("*", "$JS.API", InvalidName),
        (7, "$JS.API", InvalidName),
        ("", "$JS.API.", InvalidSubject),
        ("", "", InvalidSubject),
        ("", "a.>", InvalidSubject),
        ("", 7, InvalidSubject),
    ],
)
def test_invalid_prefixes_and_domains(domain, prefix, error):
    with pytest.raises(error):
        api(Stage(), domain, prefix)


@pytest.mark.parametrize("client", [None, "nats://127.0.0.1:4222", object()])
def test_blocking_clients_are_rejected_with_a_hint(client):
    with pytest.raises(InvalidValue, match=r"use jetstream\.blocking\.JetStream"):
        session_of(client)
    stage = Stage()
    assert session_of(stage.client) is stage.client.session


def test_bodies_are_compact():
    assert encode_json({"a": [1, 2], "b": "c"}) == b'{"a":[1,2],"b":"c"}'


@pytest.mark.rule("CALL-2")
def test_errors():
    error = {"code": 404, "err_code": 10059, "description": "stream not found"}
    stage = Stage({"type": "x", "error": error})
    with pytest.raises(StreamNotFound) as raised:
        stage.run(api(stage).call("STREAM.INFO.S"))
    assert str(raised.value) == "stream not found (404, 10059), in response to STREAM.INFO.S"
    assert raised.value.asked == "STREAM.INFO.S"
    with pytest.raises(ApiError, match="error without a description"):
        read_reply(b'{"error":{"code":null}}')
    assert read_reply(b'{"error":null,"a":1}')["a"] == 1


@pytest.mark.rule("CALL-2")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"-ERR 'something'",
        b"+OK",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe",
        b'{"error":"text"}',
        b'{"error":[1]}',
        b"[" * 100_000,
        b'{"a":%s}' % (b"9" * 5000),
    ],
)
def test_invalid_answers(data):
    stage = Stage(data[:60_000])
    with pytest.raises(InvalidResponse):
        stage.run(api(stage).call("INFO"))
    with pytest.raises(InvalidResponse) as caught:
        read_reply(data)
    assert len(str(caught.value)) < 1000


@pytest.mark.rule("CALL-3")
def test_no_responders_and_no_answer():
    stage = Stage(NOBODY, SILENCE)
    with pytest.raises(JetStreamNotAvailable, match=r"\$JS\.hub\.API\.INFO"):
        stage.run(api(stage, "hub").call("INFO"))
    assert stage.now() == 0.0
    with pytest.raises(TimeoutExpired):
        stage.run(api(stage, timeout=1.5).call("INFO"))
    assert stage.now() == 1.5


@pytest.mark.rule("CALL-3")
def test_another_status_is_an_invalid_answer():
    stage = Stage(Status("408 Bad Request"))
    with pytest.raises(InvalidResponse):
        stage.run(api(stage).call("INFO"))


PAGES = [
    # answers,                                                        offsets, rows
    ([{"total": 0, "offset": 0, "limit": 2, "rows": []}], [0], []),
    ([{"total": 0, "rows": None}], [0], []),
    ([{}], [0], []),
    ([{"total": 2, "limit": 2, "rows": ["a", "b"]}], [0], ["a", "b"]),
    (
        [{"total": 3, "limit": 2, "rows": ["a", "b"]}, {"total": 3, "limit": 2, "rows": ["c"]}],
        [0, 2],
        ["a", "b", "c"],
    ),
    # Without a limit the rows count.
    ([{"total": 2, "rows": ["a"]}, {"total": 2, "rows": ["b"]}], [0, 1], ["a", "b"]),
    # Rows disappeared in the meantime.
    ([{"total": 3, "limit": 2, "rows": ["a", "b"]}, {"total": 2, "rows": []}], [0, 2], ["a", "b"]),
    ([{"total": 9, "limit": 2, "rows": ["a", "b"]}, {"total": 9, "rows": []}], [0, 2], ["a", "b"]),
    # No server described b.
    (
        [
            {"total": 3, "limit": 2, "rows": ["a"], "missing": ["b"]},
            {"total": 3, "limit": 2, "rows": ["c"]},
        ],
        [0, 2],
        ["a", "c"],
    ),
    (
        [
            {"total": 3, "limit": 2, "rows": [], "missing": ["a", "b"]},
            {"total": 3, "limit": 2, "rows": ["c"]},
        ],
        [0, 2],
        ["c"],
    ),
]


@pytest.mark.rule("CALL-4")
@pytest.mark.parametrize(("answers", "offsets", "rows"), PAGES)
def test_pages(answers, offsets, rows):
    stage = Stage(*answers)
    assert stage.run(api(stage).pages("LIST", "rows", {"subject": "a"})) == rows
    assert stage.asked == [("$JS.API.LIST", {"subject": "a", "offset": n}) for n in offsets]


@pytest.mark.rule("CALL-4")
def test_streams_that_the_server_could_not_describe_are_named():
    stage = Stage(
        {"total": 5, "limit": 3, "rows": ["a"], "missing": ["b"], "offline": {"c": "too new"}},
        {"total": 5, "limit": 3, "rows": ["d"], "missing": ["e"]},
    )
    found = stage.run(api(stage).pages("LIST", "rows", {}))
    assert (found, found.missing, found.offline) == (["a", "d"], ["b", "e"], {"c": "too new"})


@pytest.mark.rule("D-CALL-15")
@pytest.mark.parametrize(
    "page",
    [
        {"total": 9**20, "limit": 2, "rows": ["a", "b"]},
        {"total": 9**20, "limit": 0, "rows": [], "missing": ["a"]},
        {"total": 9**20, "limit": 0, "rows": [], "offline": {"a": "b"}},
    ],
)
def test_a_listing_that_repeats_itself_ends(page):
    stage = Stage(page, page)
    with pytest.raises(InvalidResponse, match="LIST returned the same page twice"):
        stage.run(api(stage).pages("LIST", "rows", {}))


@pytest.mark.rule("D-CALL-15")
def test_a_listing_without_end_ends(monkeypatch):
    monkeypatch.setattr("jetstream.api.client.MOST_PAGES", 5)
    stage = Stage(*[{"total": 9**20, "limit": 1, "rows": [str(n)]} for n in range(5)])
    with pytest.raises(InvalidResponse, match="LIST does not end after 5 pages"):
        stage.run(api(stage).pages("LIST", "rows", {}))
    assert stage.answers == []


@pytest.mark.rule("CALL-2", "CALL-4")
@pytest.mark.parametrize(
    "answer",
    [
        {"rows": [], "missing": 7},
        {"rows": [], "missing": [7]},
        {"rows": [], "offline": ["a"]},
        {"rows": [], "offline": {"a": 7}},
        {"rows": 7},
        {"rows": {"a": 1}},
        {"rows": ["a"], "total": "x"},
        {"rows": ["a"], "total": None},
        {"rows": ["a"], "total": 1.5},
        {"rows": ["a"], "total": 1, "limit": True},
    ],
)
def test_invalid_pages(answer):
    stage = Stage(answer)
    with pytest.raises(InvalidResponse):
        stage.run(api(stage).pages("LIST", "rows", {}))


STATUSES = [
    # header block, payload, whether it is the server's 503
    (b"NATS/1.0 503\r\n\r\n", b"", True),
    (b"NATS/1.0 503\r\n\r\n", b"x", False),
    (b"NATS/1.0 404\r\n\r\n", b"", False),
    (b"NATS/1.0\r\na: b\r\n\r\n", b"", False),
    (None, b"", False),
]


@pytest.mark.rule("CALL-3")
@pytest.mark.parametrize(("block", "data", "expected"), STATUSES)
def test_no_responders(block, data, expected):
    assert is_no_responders(Msg(b"reply", 1, b"", data, block)) is expected


def test_numbers_of_answers():
    assert read_number({"a": 7}, "a") == 7
    assert read_number({}, "a") == 0
    with pytest.raises(InvalidResponse, match="field a of the response is not a number: '7'"):
        read_number({"a": "7"}, "a")


@pytest.mark.rule("CALL-6")
def test_a_level_is_named():
    stage = Stage({})
    stage.run(api(stage).call("X", {}, level=4))
    [pub] = stage.pubs
    assert pub.headers.items() == [("Nats-Required-Api-Level", "4")]


LEVELS = [
    # INFO,                                    highest level that is not refused
    ({"version": "2.15.1", "api_lvl": 5}, 5),
    ({"version": "2.12.0", "api_lvl": 2}, 2),
    ({"version": "2.11.9"}, 1),
    ({"version": "2.11.0-preview.1"}, 1),
    ({"version": "2.10.29"}, 0),
    ({"version": "1.4"}, 0),
    ({"version": "3"}, 1),
    ({"version": "proxy"}, 99),
    ({}, 99),
]


@pytest.mark.rule("CALL-6")
@pytest.mark.parametrize(("info", "highest"), LEVELS)
def test_levels(info, highest):
    for level in (0, highest):
        require_level(Info(info), level, "it")
    if highest < 99:
        with pytest.raises(NotSupported, match=f"it needs JetStream API level {highest + 1}"):
            require_level(Info(info), highest + 1, "it")


@pytest.mark.rule("CALL-6")
def test_a_call_above_the_level_is_not_sent():
    stage = Stage(version="2.10.0", api_lvl=0)
    with pytest.raises(NotSupported, match=r"level 1 \(nats-server 2\.11\); server 2\.10\.0 has 0"):
        stage.run(api(stage).call("X", level=1))
    assert stage.quiet()
    require_level(None, 9, "before the first INFO nothing is known")


def test_the_timeout_is_checked():
    stage = Stage()
    with pytest.raises(InvalidValue):
        stage.run(api(stage, timeout=-1).call("INFO"))


@pytest.mark.rule("D-CALL-7")
@pytest.mark.parametrize(
    ("version", "refused"), [("2.9.10", True), ("2.10.0", False), ("?", False), (None, False)]
)
def test_fields_that_are_newer_than_the_server(version, refused):
    stage = Stage(version=version or "2.9.10")
    if version is None:
        stage.connection.lifecycle.info = None
    config = ConsumerConfig(filter_subjects=["a", "b"], mem_storage=True)
    if refused:
        with pytest.raises(NotSupported, match=r"filter_subjects needs server 2.10; this is 2.9"):
            api(stage).check_since(config)
    else:
        api(stage).check_since(config)


TRANSFORMS = [{"src": "a", "dest": "b"}]


@pytest.mark.rule("D-CALL-7")
@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"mirror": {"name": "S", "subject_transforms": TRANSFORMS}}, "mirror"),
        ({"sources": [{"name": "S", "subject_transforms": TRANSFORMS}]}, "sources"),
        ({"sources": [{"name": "S"}, {"name": "T", "subject_transforms": TRANSFORMS}]}, "sources"),
        ({"mirror": {"name": "S", "subject_transforms": []}}, None),
        ({"sources": [{"name": "S", "filter_subject": "a"}], "placement": {"tags": ["a"]}}, None),
        ({"metadata": {}, "placement": None}, None),
    ],
)
def test_fields_of_nested_objects_that_are_newer_than_the_server(fields, refused):
    config = StreamConfig(name="M", **fields)
    old = api(Stage(version="2.9.10"))
    if refused is None:
        old.check_since(config)
    else:
        text = rf"subject_transforms of {refused} needs server 2\.10; this is 2\.9\.10"
        with pytest.raises(NotSupported, match=text):
            old.check_since(config)
    api(Stage(version="2.10.0")).check_since(config)


@pytest.mark.rule("D-CALL-18")
def test_calls_that_share_a_timeout():
    stage = Stage(SILENCE, SILENCE, SILENCE)
    client = api(stage)
    bounded = client.bounded()
    assert bounded.bounded() is bounded
    assert (bounded.prefix, bounded.timeout) == ("$JS.API", 5.0)
    stage.wire.now = 3.0
    assert (client.deadline(), bounded.deadline()) == (8.0, 5.0)
    with pytest.raises(TimeoutExpired):
        stage.run(bounded.call("INFO", deadline=4.0))
    assert stage.now() == 4.0
    with pytest.raises(TimeoutExpired):
        stage.run(bounded.call("INFO"))
    assert stage.now() == 5.0
    with pytest.raises(TimeoutExpired):
        stage.run(client.call("INFO"))
    assert stage.now() == 10.0


@pytest.mark.rule("D-CALL-21")
def test_each_response_begins_another_timeout():
    stage = SlowStage({}, {}, {}, SILENCE, SILENCE)
    client = api(stage)
    paced = client.paced(3.0)
    assert (paced.deadline(), client.paced(9.0).deadline()) == (3.0, 5.0)
    for now in (2.0, 4.0, 6.0):
        stage.run(paced.call("INFO"))
        assert (stage.now(), paced.deadline()) == (now, now + 5.0)
    with pytest.raises(TimeoutExpired):
        stage.run(paced.call("INFO"))
    assert stage.now() == 11.0
    with pytest.raises(TimeoutExpired):
        stage.run(paced.paced(11.5).call("INFO"))
    assert stage.now() == 11.0  # a silence is not extended


@pytest.mark.rule("D-CALL-21")
def test_half_of_the_time_for_a_first_try():
    stage = Stage(SILENCE, SILENCE)
    bounded = api(stage).bounded()
    with pytest.raises(TimeoutExpired):
        stage.run(bounded.first_try().call("INFO"))
    assert stage.now() == 2.5
    with pytest.raises(TimeoutExpired):
        stage.run(bounded.call("INFO"))
    assert stage.now() == 5.0


@pytest.mark.rule("D-CALL-21")
def test_the_pages_of_a_listing_have_a_timeout_each():
    pages = [{"streams": [name], "total": 4, "offset": 0, "limit": 1} for name in "abc"]
    stage = SlowStage(*pages, SILENCE)
    with pytest.raises(TimeoutExpired):
        stage.run(api(stage).pages("STREAM.NAMES", "streams", {}))
    assert stage.now() == 3 * 2.0 + 5.0
