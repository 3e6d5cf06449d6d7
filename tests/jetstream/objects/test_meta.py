"""Infos of objects, read and replaced, on a scripted stream."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    ApiError,
    BucketNotFound,
    InvalidResponse,
    NoStreamResponse,
    ObjectNotFound,
    PublishInDoubt,
    WrongLastSequence,
)
from jetstream.objects.info import ObjectInfo
from jetstream.objects.meta import is_in_doubt
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import ConnectionClosed, InvalidValue, TimeoutExpired
from tests.jetstream.object_stores import (
    NO_MESSAGE,
    NO_STREAM,
    NOT_FOUND,
    PURGED,
    TIME,
    ack,
    by_api,
    direct,
    info_json,
    short,
    store,
    wrong,
)
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import NOBODY, SILENCE, Lost, Status

GET = "DIRECT.GET.OBJ_b.$O.b.M.bw=="
ASK = "STREAM.MSG.GET.OBJ_b"
PUT = "$O.b.M.bw=="
ID = "1" * 22


def make(*answers, **config):
    stage, bucket = store(*answers, **config)
    return stage, bucket._metas


def test_watch_targets():
    stage, metas = make()
    target = metas.target(metas.chunks)
    assert (target.stream, target.bucket, target.prefix) == ("OBJ_b", "b", "$O.b.C.")
    assert stage.asked == []


FINDS = [
    # answers; the requests; the sequence that is found
    ([direct(info_json())], [GET], 7),
    ([NOT_FOUND], [GET], None),
    ([NOBODY, by_api(info_json(), 8)], [GET, ASK], 8),
    ([NOBODY, NO_MESSAGE], [GET, ASK], None),
    ([NOBODY, NO_STREAM], [GET, ASK], BucketNotFound),
]


@pytest.mark.rule("OBJ-15")
@pytest.mark.parametrize(("answers", "asked", "gives"), FINDS)
def test_find(answers, asked, gives):
    stage, metas = make(*answers)
    if gives is BucketNotFound:
        with pytest.raises(BucketNotFound):
            stage.run(metas.find("o"))
    else:
        found = stage.run(metas.find("o"))
        assert (found and found.seq) == gives
    assert short(stage) == asked


@pytest.mark.rule("OBJ-11", "OBJ-15")
def test_find_by_the_leader():
    stage, metas = make(by_api(info_json()), by_api(info_json()), allow_direct=False)
    for _ in range(2):
        found = stage.run(metas.find("o"))
    assert found.info.mtime == Timestamp.parse(TIME)
    assert short(stage) == [ASK] * 2
    stage, metas = make(by_api(info_json()))
    stage.run(metas.find("o", leader=True))
    assert stage.asked == [("$JS.API." + ASK, {"last_by_subj": PUT})]


def test_ids():
    block = b"NATS/1.0\r\nNats-Msg-Id: me\r\n\r\n"
    odd = b"NATS/1.0\r\nNats-Msg-Id\r\n\r\n"
    for headers, id in ((b"", ""), (block, "me"), (odd, "")):
        stage, metas = make(by_api(info_json(), 7, headers), allow_direct=False)
        assert stage.run(metas.find("o")).id == id


@pytest.mark.rule("OBJ-16")
def test_get():
    stage, metas = make(*[direct(info_json(deleted=True))] * 2, NOT_FOUND, direct(info_json()))
    assert stage.run(metas.get("o", True)).deleted
    for _ in range(2):
        with pytest.raises(ObjectNotFound, match="'o' is not in bucket 'b'"):
            stage.run(metas.get("o"))
    assert stage.run(metas.get("o")).name == "o"
    with pytest.raises(InvalidValue, match="show_deleted 'yes' is neither True nor False"):
        stage.run(metas.get("o", "yes"))
    odd = Status("", b"{", Nats_Stream="OBJ_b", Nats_Sequence=7, Nats_Time_Stamp=TIME)
    stage, metas = make(odd)
    with pytest.raises(InvalidResponse):
        stage.run(metas.get("o"))


def new(found):
    """Return the info to write: its size is one more than that of the old one."""
    info = ObjectInfo(name="o")
    info.size = 0 if found is None else found.size + 1
    return info


def with_id(info, seq, id=ID):
    return by_api(info, seq, b"NATS/1.0\r\nNats-Msg-Id: %s\r\n\r\n" % id.encode())


ONE, TWO = info_json(data=b"1"), info_json(data=b"22")
REPLACES = [
    # answers; the sequences that were expected, "get" and "ask" for reads; sizes before and now
    ("new", [NOT_FOUND, ack(9)], ["get", 0], (None, 0)),
    ("there", [direct(ONE), ack(9)], ["get", 7], (1, 2)),
    pytest.param(
        "another client was first",
        [direct(ONE), wrong(8), by_api(TWO, 8), ack(9)],
        ["get", 7, "ask", 8],
        (2, 3),
        marks=pytest.mark.rule("D-OBJ-13"),
    ),
    pytest.param(
        "an old read",
        [NOT_FOUND, wrong(8), by_api(TWO, 8), wrong(9), NO_MESSAGE, ack(9)],
        ["get", 0, "ask", 8, "ask", 0],
        (None, 0),
        marks=pytest.mark.rule("D-OBJ-13"),
    ),
    pytest.param(
        "it was ours",
        [direct(ONE), wrong(9), with_id(TWO, 9)],
        ["get", 7, "ask"],
        (1, 2),
        marks=pytest.mark.rule("D-OBJ-14"),
    ),
    pytest.param(
        "it was another's",
        [direct(ONE), wrong(9), with_id(TWO, 9, "x"), ack(9)],
        ["get", 7, "ask", 9],
        (2, 3),
        marks=pytest.mark.rule("D-OBJ-14"),
    ),
    pytest.param(
        "it was ours, and was replaced",
        [direct(ONE), Lost(), wrong(10), by_api(TWO, 10), {**ack(9), "duplicate": True}],
        ["get", 7, 7, "ask", 10],
        (1, 3),
        marks=pytest.mark.rule("D-OBJ-14"),
    ),
    pytest.param(
        "it is known by its id",
        [direct(ONE), Lost(), {**ack(9), "duplicate": True}],
        ["get", 7, 7],
        (1, 2),
        marks=pytest.mark.rule("D-OBJ-14"),
    ),
    pytest.param(
        "a read is lost",
        [Lost(), by_api(ONE), wrong(8), SILENCE, by_api(TWO, 8), ack(9)],
        ["get", "ask", 7, "ask", "ask", 8],
        (2, 3),
        marks=pytest.mark.rule("D-OBJ-13"),
    ),
    pytest.param(
        "the connection is lost",
        [direct(ONE), Lost(), ack(9)],
        ["get", 7, 7],
        (1, 2),
        marks=pytest.mark.rule("D-OBJ-14"),
    ),
]


def asked(stage):
    words = []
    for pub in stage.pubs:
        if pub.subject == PUT:
            assert pub.headers["Nats-Rollup"] == "sub"
            assert pub.headers["Nats-Msg-Id"] == ID
            words.append(int(pub.headers["Nats-Expected-Last-Subject-Sequence"]))
        else:
            words.append("get" if ".DIRECT.GET." in pub.subject else "ask")
    return words


@pytest.mark.rule("OBJ-12")
@pytest.mark.parametrize(("name", "answers", "wants", "sizes"), REPLACES)
def test_replace(name, answers, wants, sizes):
    stage, metas = make(*answers)
    before, info, seq = stage.run(metas.replace("o", new))
    assert (before and before.size, info.size, seq) == (*sizes, 9)
    assert asked(stage) == wants
    assert stage.answers == []


@pytest.mark.rule("OBJ-11")
def test_message_that_stores_an_info():
    stage, metas = make(direct(ONE), ack(9), by_api(TWO, 9), NO_MESSAGE)
    _, info, seq = stage.run(metas.replace("o", new))
    assert stage.run(metas.dated(info, seq)).mtime == Timestamp.parse(TIME)
    stage.run(metas.dated(info, seq))  # replaced meanwhile
    assert json.loads(stage.pubs[1].data) == {
        **{"name": "o", "bucket": "", "nuid": "", "size": 2, "chunks": 0},
    }


def test_replace_without_a_change_sends_nothing():
    stage, metas = make(direct(ONE))
    before, info, seq = stage.run(metas.replace("o", lambda found: None))
    assert (before.size, info, seq) == (1, None, 0)
    assert asked(stage) == ["get"]


def test_replace_stops_after_too_many_conflicts():
    stage, metas = make(direct(ONE), *[wrong(8), by_api(TWO, 8)] * 49, wrong(8))
    with pytest.raises(WrongLastSequence):
        stage.run(metas.replace("o", new))
    assert stage.answers == []


FULL = {"error": {"code": 503, "err_code": 10077, "description": "maximum bytes exceeded"}}


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([{"error": {"code": 400, "err_code": 10109, "description": "sealed"}}], ApiError),
        ([NOBODY] * 3, NoStreamResponse),
        ([SILENCE], PublishInDoubt),
        ([Lost(), FULL], PublishInDoubt),
        ([NOBODY, FULL], ApiError),
    ],
)
def test_errors_of_replace(answers, error):
    stage, metas = make(NOT_FOUND, *answers)
    with pytest.raises(error):
        stage.run(metas.replace("o", new))


@pytest.mark.rule("OBJ-3")
@pytest.mark.parametrize(
    ("options", "front", "api"),
    [
        ({}, "", "$JS.API."),
        ({"domain": "hub"}, "", "$JS.hub.API."),
        ({"prefix": "fromA"}, "fromA.", "fromA."),
    ],
)
def test_prefixes(options, front, api):
    stage, metas = make(NOT_FOUND, ack(9), by_api(TWO, 9), info=options)
    _, info, seq = stage.run(metas.replace("o", new))
    stage.run(metas.dated(info, seq))
    assert [pub.subject for pub in stage.pubs] == [api + GET, front + PUT, api + ASK]


@pytest.mark.rule("OBJ-24")
def test_obsolete_chunks_are_purged():
    stage, metas = make(PURGED, NO_STREAM, NO_STREAM)
    info = ObjectInfo.from_json(info_json())
    stage.run(metas.purge_chunks(info))
    assert stage.asked == []
    info.chunks = 2
    stage.run(metas.purge_chunks(info))
    assert stage.asked == [("$JS.API.STREAM.PURGE.OBJ_b", {"filter": "$O.b.C.N"})]
    stage.run(metas.purge_chunks(info))
    assert len(stage.asked) == 2  # once more, in the background


@pytest.mark.rule("OBJ-24")
def test_chunks_of_an_object_that_another_client_deleted():
    stage, metas = make(PURGED)
    stage.run(metas.purge_chunks(ObjectInfo.from_json(info_json(deleted=True))))
    assert stage.asked == [("$JS.API.STREAM.PURGE.OBJ_b", {"filter": "$O.b.C.N"})]


def swept(stage):
    """Return the requests after all are answered, those of the background included."""
    while stage.answers:
        if not stage.serve():
            stage.wire.ring()
    return [body for _, body in stage.asked]


UNANSWERED = [
    # the outcome of the first purge; the error
    ([Lost()], None),
    ([SILENCE], None),
    ([SILENCE], Cancelled),
]


@pytest.mark.rule("OBJ-24")
@pytest.mark.parametrize(("answers", "error"), UNANSWERED)
def test_an_unanswered_purge_is_repeated(answers, error):
    """The purge is repeated, whether its caller still waits or not."""
    calls = [
        (
            lambda metas: metas.purge_chunks(ObjectInfo.from_json(info_json(chunks=2))),
            "$O.b.C.N",
            {},
        ),
        (lambda metas: metas.purge_info("o", 7), PUT, {"seq": 8}),
    ]
    for call, subject, more in calls:
        stage, metas = make(*answers, *[PURGED] * 3)
        if error is None:
            stage.run(call(metas))
        else:
            patient, stage.wait = stage.wait, cancel
            with pytest.raises(error):
                stage.run(call(metas))
            stage.wait = patient
        assert swept(stage) == [{"filter": subject, **more}] * 4


async def cancel(waitable):
    raise Cancelled


@pytest.mark.rule("OBJ-34")
@pytest.mark.parametrize("deleted", [True, False])
def test_a_deletion_in_doubt(deleted):
    stage, metas = make(by_api(info_json(deleted=deleted)), *[PURGED] * 3 * deleted)
    metas.purge_if_deleted(ObjectInfo.from_json(info_json(chunks=2)))
    assert swept(stage) == [{"last_by_subj": PUT}, *[{"filter": "$O.b.C.N"}] * 3 * deleted]


def test_errors_that_leave_a_write_in_doubt():
    doubts = [PublishInDoubt("d"), Cancelled(), TimeoutExpired("t"), ConnectionClosed("c")]
    assert [is_in_doubt(error) for error in doubts] == [True] * 4
    for error in (ApiError(400, 1, "d"), NoStreamResponse("s"), ObjectNotFound("b", "o")):
        assert not is_in_doubt(error)


@pytest.mark.rule("OBJ-42")
@pytest.mark.parametrize("deleted", [False, True])
def test_an_object_without_a_nuid_has_no_chunks(deleted):
    stage, bucket = store()
    info = ObjectInfo.from_json({"name": "l", "bucket": "b", "deleted": deleted})
    stage.run(bucket._metas.purge_chunks(info))
    bucket._metas.purge_if_deleted(info)
    assert stage.quiet()
