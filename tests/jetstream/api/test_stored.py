from __future__ import annotations

import json
from base64 import b64encode

import pytest

from jetstream.api.client import ApiClient
from jetstream.api.stored import (
    StoredMsg,
    get_by_api,
    get_direct,
    get_direct_last,
)
from jetstream.api.stored_batch import get_direct_batch
from jetstream.errors import InvalidResponse, JetStreamError, MessageNotFound, StreamNotFound
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import (
    ConnectionClosed,
    HeaderError,
    NotSupported,
    TimeoutExpired,
)
from natsproto.wire.headers import Headers
from tests.core import ROOT
from tests.jetstream.support import NOBODY, SILENCE, SlowStage, Stage, Status

TIME = "2026-11-15T23:55:50.159073055Z"


def api(stage, prefix="$JS.API"):
    return ApiClient(stage.client.session, "", prefix, 5.0)


def answer(seq, data=b"x", own="", **more):
    """Return a direct get response, with the message's own headers before the added ones."""
    place = {"Nats_Subject": "s.x", "Nats_Sequence": seq, "Nats_Time_Stamp": TIME, **more}
    status = Status("", data, Nats_Stream="S", **place)
    if own:
        status.block = status.block.replace(b"NATS/1.0\r\n", b"NATS/1.0\r\n" + own.encode(), 1)
    return status


def eob(pending=0, last=0, **more):
    return Status("204 EOB", Nats_Num_Pending=pending, Nats_Last_Sequence=last, **more)


def stored(seq, data=b"x", headers=None):
    return StoredMsg("S", "s.x", seq, Timestamp.parse(TIME), data, headers)


# By the API


@pytest.mark.rule("GET-2")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"data": b64encode(b"m3").decode()}, stored(3, b"m3")),
        ({}, stored(3, b"")),
        (
            {"hdrs": b64encode(b"NATS/1.0\r\nA: b\r\n\r\n").decode()},
            stored(3, b"", b"NATS/1.0\r\nA: b\r\n\r\n"),
        ),
    ],
)
def test_by_the_api(message, expected):
    stage = Stage({"message": {"subject": "s.x", "seq": 3, "time": TIME, **message}})
    assert stage.run(get_by_api(api(stage), "S", {"seq": 3})) == expected
    assert stage.asked == [("$JS.API.STREAM.MSG.GET.S", {"seq": 3})]


@pytest.mark.rule("GET-3")
def test_by_the_api_not_found():
    error = {"code": 404, "err_code": 10037, "description": "no message found"}
    stage = Stage({"error": error}, {"error": {**error, "err_code": 10059}})
    with pytest.raises(MessageNotFound):
        stage.run(get_by_api(api(stage), "S", {"seq": 3}))
    with pytest.raises(StreamNotFound):
        stage.run(get_by_api(api(stage), "S", {"seq": 3}))


GOOD = {"subject": "s.x", "seq": 3, "time": TIME}


@pytest.mark.rule("D-GET-9")
@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"message": None},
        {"message": "text"},
        {"message": {}},
        {"message": {**GOOD, "time": "yesterday"}},
        {"message": {**GOOD, "time": 7}},
        {"message": {**GOOD, "data": "a"}},
        {"message": {**GOOD, "data": "é"}},
        {"message": {**GOOD, "hdrs": 7}},
        {"message": {**GOOD, "seq": "3"}},
        {"message": {**GOOD, "seq": None}},
        {"message": {**GOOD, "subject": 7}},
    ],
)
def test_by_the_api_invalid_answers(reply):
    stage = Stage(reply)
    with pytest.raises(InvalidResponse, match=r"response to STREAM\.MSG\.GET is not valid"):
        stage.run(get_by_api(api(stage), "S", {"seq": 3}))


# One, by direct get


@pytest.mark.rule("GET-2")
@pytest.mark.parametrize("prefix", ["$JS.API", "my.js"])
def test_direct(prefix):
    stage = Stage(answer(3, b"m3"))
    assert stage.run(get_direct(api(stage, prefix), "S", {"seq": 3})) == stored(3, b"m3")
    assert stage.asked == [(prefix + ".DIRECT.GET.S", {"seq": 3})]


@pytest.mark.rule("GET-10")
@pytest.mark.parametrize("prefix", ["$JS.API", "my.js"])
def test_direct_by_subject(prefix):
    stage = Stage(answer(3, b"m3"), Status("404 Message Not Found"), NOBODY)
    ask = [get_direct_last(api(stage, prefix), "S", "s.x") for _ in range(3)]
    assert stage.run(ask[0]) == stored(3, b"m3")
    with pytest.raises(MessageNotFound):
        stage.run(ask[1])
    with pytest.raises(NotSupported):
        stage.run(ask[2])
    assert stage.asked == [(prefix + ".DIRECT.GET.S.s.x", None)] * 3


@pytest.mark.rule("GET-2")
def test_the_api_instead_of_a_direct_get_that_is_not_allowed():
    reply = {"message": {"subject": "s.x", "seq": 3, "time": TIME}}
    stage = Stage(NOBODY, reply, NOBODY, reply)
    last = get_direct_last(api(stage), "S", "s.x", {"last_by_subj": "s.x"})
    assert stage.run(last) == stored(3, b"")
    assert stage.run(get_direct(api(stage), "S", {"seq": 3}, {"seq": 3})) == stored(3, b"")
    assert stage.asked == [
        ("$JS.API.DIRECT.GET.S.s.x", None),
        ("$JS.API.STREAM.MSG.GET.S", {"last_by_subj": "s.x"}),
        ("$JS.API.DIRECT.GET.S", {"seq": 3}),
        ("$JS.API.STREAM.MSG.GET.S", {"seq": 3}),
    ]


OWN = [
    # the message's own headers, what it has of them
    ("", None),
    ("A: b\r\n", [("A", "b")]),
    (
        "Nats-Sequence: 999\r\nNats-Stream: OTHER\r\n"
        "Nats-Subject: evil\r\nNats-Last-Sequence: 7\r\n",
        [
            ("Nats-Sequence", "999"),
            ("Nats-Stream", "OTHER"),
            ("Nats-Subject", "evil"),
            ("Nats-Last-Sequence", "7"),
        ],
    ),
]


@pytest.mark.rule("GET-4")
@pytest.mark.parametrize(("own", "pairs"), OWN)
def test_headers_of_its_own_are_kept_apart(own, pairs):
    stage = Stage(answer(3, b"m3", own, Nats_Num_Pending=5, Nats_Last_Sequence=2))
    msg = stage.run(get_direct(api(stage), "S", {"seq": 3}))
    assert (msg.stream, msg.subject, msg.seq, str(msg.time)) == ("S", "s.x", 3, TIME)
    assert (None if msg.headers is None else msg.headers.items()) == pairs


@pytest.mark.rule("GET-8")
def test_an_invalid_block_loses_only_the_headers():
    stage = Stage(answer(3, b"m3", "no colon\r\n"))
    msg = stage.run(get_direct(api(stage), "S", {"seq": 3}))
    assert (msg.seq, msg.data) == (3, b"m3")
    for _ in range(2):
        with pytest.raises(HeaderError):
            _ = msg.headers
    assert msg.raw_headers == b"NATS/1.0\r\nno colon\r\n\r\n"


@pytest.mark.rule("GET-8")
def test_headers_are_read_once():
    msg = stored(1, b"", b"NATS/1.0\r\nA: b\r\n\r\n")
    assert msg.headers is msg.headers
    assert msg.headers == Headers({"A": "b"})
    assert repr(msg).endswith(r"raw_headers=b'NATS/1.0\r\nA: b\r\n\r\n')")


CUT = [
    # the block of a publisher, what direct get leaves of it
    (b"garbage", b"garba"),
    (b"NATS/1.0", b"NATS/1"),
    (b"NATS/1.0\r\nA: b", b"NATS/1.0\r\nA:"),
    (b"NATS/1.0\r\nA: b\r\n", b"NATS/1.0\r\nA: b"),
    (b"NATS/1.0\r\nA: b\r\n\r", b"NATS/1.0\r\nA: b\r"),
    (b"NATS/1.0 404", b"NATS/1.0 4"),
    (b"\xff\xff\xff", b"\xff"),
    (b"NATS/1.0\r\nNats-Stream: X\r\nNats-Sequence: 9\r\n", None),
    (b"\r\n\r\n", b"\r\n\r\n"),
]


def mangled(seq, block):
    """Return the response of 2.15.1 if a publisher stored this block."""
    status = answer(seq, b"payload")
    status.block = block[:-2] + status.block[len(b"NATS/1.0\r\n") :]
    return status


@pytest.mark.rule("GET-11")
@pytest.mark.parametrize(("block", "left"), CUT)
def test_a_block_without_its_end_loses_only_the_headers(block, left):
    poison = mangled(2, block)
    many = [answer(1), poison, answer(3), eob()]
    stage = Stage(poison, many)
    one = stage.run(get_direct(api(stage), "S", {"seq": 2}))
    found = stage.run(get_direct_batch(api(stage), "S", {"batch": 3}, 3))
    assert [msg.seq for msg in found] == [1, 2, 3]
    for msg in (one, found[1]):
        assert (msg.subject, msg.seq, msg.data) == ("s.x", 2, b"payload")
        assert msg.raw_headers == (left or block[:-2])
        with pytest.raises(HeaderError):
            _ = msg.headers


@pytest.mark.rule("GET-11")
def test_a_block_of_two_bytes():
    stage = Stage(mangled(2, b"xy"))
    assert stage.run(get_direct(api(stage), "S", {"seq": 2})) == stored(2, b"payload")


@pytest.mark.rule("GET-12")
@pytest.mark.parametrize("line", ["503", "404 Message Not Found", "204 EOB", "408 x", "413", "100"])
def test_a_stored_status_is_a_message(line):
    poison = answer(2, b"", Nats_Num_Pending=1, Nats_Last_Sequence=1)
    poison.block = poison.block.replace(b"NATS/1.0", b"NATS/1.0 " + line.encode(), 1)
    expected = stored(2, b"", b"NATS/1.0 %s\r\n\r\n" % line.encode())
    stage = Stage(poison, [answer(1), poison, answer(3), eob()])
    assert stage.run(get_direct(api(stage), "S", {"seq": 2})) == expected
    found = stage.run(get_direct_batch(api(stage), "S", {"batch": 3}, 3))
    assert found == [stored(1), expected, stored(3)]


@pytest.mark.rule("GET-3")
@pytest.mark.parametrize(
    ("reply", "error", "text", "at"),
    [
        (Status("404 Message Not Found"), MessageNotFound, "message not found", 0.0),
        (Status("408 Empty Request"), JetStreamError, "408 Empty Request", 0.0),
        (Status("413 Too Many Results"), JetStreamError, "413", 0.0),
        (NOBODY, NotSupported, "'S' does not allow direct get", 0.0),
        (SILENCE, TimeoutExpired, "in time", 5.0),
    ],
)
def test_direct_failures(reply, error, text, at):
    stage = Stage(reply, reply)
    with pytest.raises(error, match=text):
        stage.run(get_direct(api(stage), "S", {"seq": 3}))
    assert stage.now() == at
    if error is not MessageNotFound:
        with pytest.raises(error):
            stage.run(get_direct_batch(api(stage), "S", {"batch": 3}))


@pytest.mark.rule("D-GET-9")
@pytest.mark.parametrize(
    "reply",
    [
        b"text",
        Status("", b"x", A="b"),
        Status("", b"x", Nats_Stream="S"),
        answer("x"),
        answer("-1"),
        answer("\u0663"),
        answer("9" * 21),
        Status("", b"x", Nats_Stream="S", Nats_Sequence=1, Nats_Time_Stamp="never"),
    ],
)
def test_direct_invalid_answers(reply):
    stage = Stage(reply)
    with pytest.raises(InvalidResponse):
        stage.run(get_direct(api(stage), "S", {"seq": 3}))


@pytest.mark.rule("GET-2", "GET-3", "GET-5")
def test_answers_of_a_real_server():
    frames = json.loads((ROOT / "tests/vectors/56-direct-get.json").read_text())["frames"]
    blocks = {}
    for frame in frames:
        if frame["latin1"].startswith("HMSG"):
            line, _, rest = frame["latin1"].partition("\r\n")
            reply, _, size, total = line.split(" ")[1:]
            status = Status("")
            status.block, status.data = (
                rest[: int(size)].encode(),
                rest[int(size) : int(total)].encode(),
            )
            blocks.setdefault(reply, []).append(status)
    stage = Stage(*blocks.values())
    assert stage.run(get_direct(api(stage), "DG", {"seq": 1})).data == b"m1..."
    last = stage.run(get_direct(api(stage), "DG", {"last_by_subj": "dg.x"}))
    assert (last.stream, last.subject, last.seq, last.data) == ("DG", "dg.x", 3, b"m3...")
    with pytest.raises(MessageNotFound):
        stage.run(get_direct(api(stage), "DG", {"seq": 99}))
    for text in ("408 Empty Request", "408 Malformed Request"):
        with pytest.raises(JetStreamError, match=text):
            stage.run(get_direct(api(stage), "DG", {}))
    many = stage.run(get_direct_batch(api(stage), "DG", {"seq": 1, "batch": 2}))
    assert [msg.seq for msg in many] == [1, 2]
    many = stage.run(get_direct_batch(api(stage), "DG", {"multi_last": ["dg.x"]}))
    assert [msg.seq for msg in many] == [3]
    assert stage.run(get_direct_batch(api(stage), "DG", {"multi_last": ["none.>"]})) == []
    by_subject = stage.run(get_direct(api(stage), "DG.dg.x", {}))
    assert by_subject == last


# Many, by direct get


PAGES = [
    # what,                    body,       most, answers, bodies, sequences
    (
        "one page",
        {"seq": 1, "batch": 3},
        3,
        [[answer(1), answer(2), answer(3), eob(7, 3)]],
        [{"seq": 1, "batch": 3}],
        [1, 2, 3],
    ),
    (
        "there are fewer",
        {"seq": 1, "batch": 3},
        3,
        [[answer(1), eob(0, 1)]],
        [{"seq": 1, "batch": 3}],
        [1],
    ),
    (
        "none at all",
        {"seq": 1, "batch": 3},
        3,
        [Status("404 Message Not Found")],
        [{"seq": 1, "batch": 3}],
        [],
    ),
    ("the end alone", {"seq": 1, "batch": 3}, 3, [eob(5, 0)], [{"seq": 1, "batch": 3}], []),
    (
        "large messages",
        {"seq": 1, "batch": 4},
        4,
        [[answer(1), answer(5), eob(9, 5)], [answer(6), eob(8, 6)], [answer(8), eob(7, 8)]],
        [{"seq": 1, "batch": 4}, {"seq": 6, "batch": 2}, {"seq": 7, "batch": 1}],
        [1, 5, 6, 8],
    ),
    (
        "gone meanwhile",
        {"seq": 1, "batch": 4},
        4,
        [[answer(1), eob(9, 1)], Status("404 Message Not Found")],
        [{"seq": 1, "batch": 4}, {"seq": 2, "batch": 3}],
        [1],
    ),
    (
        "one page is wanted",
        {"seq": 1, "batch": 4, "max_bytes": 10},
        0,
        [[answer(1), eob(9, 1)]],
        [{"seq": 1, "batch": 4, "max_bytes": 10}],
        [1],
    ),
    (
        "from a time on",
        {"start_time": TIME, "batch": 2},
        2,
        [[answer(4), eob(1, 4)], [answer(5), eob(0, 5)]],
        [{"start_time": TIME, "batch": 2}, {"seq": 5, "batch": 1}],
        [4, 5],
    ),
    (
        "the last ones, as of one moment",
        {"multi_last": ["a", "b"]},
        1024,
        [
            [answer(3), eob(1, 3, Nats_UpTo_Sequence=9)],
            [answer(8), eob(0, 8, Nats_UpTo_Sequence=9)],
        ],
        [{"multi_last": ["a", "b"]}, {"multi_last": ["a", "b"], "seq": 4, "up_to_seq": 9}],
        [3, 8],
    ),
    (
        "the last ones, as of a time",
        {"multi_last": ["a"], "up_to_time": TIME, "batch": 2},
        2,
        [[answer(3), eob(1, 3, Nats_UpTo_Sequence=9)], [answer(8), eob(0, 8)]],
        [
            {"multi_last": ["a"], "up_to_time": TIME, "batch": 2},
            {"multi_last": ["a"], "seq": 4, "up_to_seq": 9, "batch": 1},
        ],
        [3, 8],
    ),
]


@pytest.mark.rule("GET-3", "GET-5", "GET-6")
@pytest.mark.parametrize(
    ("body", "most", "answers", "bodies", "sequences"),
    [pytest.param(*row[1:], id=row[0]) for row in PAGES],
)
def test_batches(body, most, answers, bodies, sequences):
    stage = Stage(*answers)
    before = dict(body)
    found = stage.run(get_direct_batch(api(stage), "S", body, most))
    assert [msg.seq for msg in found] == sequences
    assert stage.asked == [("$JS.API.DIRECT.GET.S", each) for each in bodies]
    assert body == before


@pytest.mark.rule("GET-5")
@pytest.mark.parametrize("replies", [SILENCE, [answer(1)], [answer(1), answer(2)]])
def test_a_batch_without_an_end_is_incomplete(replies):
    stage = Stage(replies)
    with pytest.raises(TimeoutExpired, match="did not end in time"):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 2}, 2))
    assert stage.now() == 5.0
    assert stage.connection.requests.inbox.open == {}


@pytest.mark.rule("D-GET-9")
@pytest.mark.parametrize("end", [Status("204 EOB", Nats_Num_Pending="x"), eob("-1"), eob(1, "x")])
def test_invalid_ends_of_batches(end):
    stage = Stage([answer(1), end])
    with pytest.raises(InvalidResponse):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 2}, 2))


@pytest.mark.rule("GET-3")
def test_an_error_in_the_middle():
    stage = Stage([answer(1), Status("408 Bad Request")])
    with pytest.raises(JetStreamError, match="408 Bad Request"):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 2}, 2))


def test_the_end_of_the_connection():
    stage = Stage(SILENCE)

    async def close(waitable):
        stage.connection.close(0.0)

    stage.wait = close
    with pytest.raises(ConnectionClosed):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 2}, 2))


@pytest.mark.rule("GET-7")
def test_an_old_server_does_not_support_batches():
    stage = Stage(version="2.10.0", api_lvl=0)
    with pytest.raises(NotSupported):
        stage.run(get_direct_batch(api(stage), "S", {"batch": 2}, 2))
    assert stage.quiet()


@pytest.mark.rule("D-CALL-18")
def test_the_api_is_asked_within_the_timeout_of_a_direct_get():
    stage = SlowStage(NOBODY, SILENCE)
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    with pytest.raises(TimeoutExpired):
        stage.run(get_direct_last(api, "S", "a", {"last_by_subj": "a"}))
    assert stage.now() == 5.0
