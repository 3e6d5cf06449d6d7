"""Uploads of objects, on a scripted stream."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    ApiError,
    NoStreamResponse,
    ObjectCorrupt,
    PublishInDoubt,
    PublishTimeout,
    WrongLastSequence,
)
from jetstream.objects.info import ObjectMeta
from jetstream.objects.put import Upload, send_all
from jetstream.publish.source import source_of
from natsproto.errors import InvalidValue, TimeoutExpired
from tests.jetstream.object_stores import (
    NOT_FOUND,
    PURGED,
    ack,
    by_api,
    digest,
    direct,
    info_json,
    short,
    store,
    stream,
    wrong,
)
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import NOBODY, SILENCE, Lost

NUID = "1" * 22
CHUNK = "$O.b.C." + NUID
INFO = "$O.b.M.bw=="
GET = "DIRECT.GET.OBJ_b." + INFO
ASK = "STREAM.MSG.GET.OBJ_b"
PURGE = "STREAM.PURGE.OBJ_b"
FULL = {"error": {"code": 503, "err_code": 10077, "description": "maximum bytes exceeded"}}
STORED = by_api(info_json(), 99)


def start(*answers, chunk_size=2, meta=None, **options):
    stage, bucket = store(*answers, **options)
    made = meta or ObjectMeta(name="o")
    return stage, bucket._upload(made, "", None, None, chunk_size)


def put(stage, upload, *pieces):
    async def main():
        for piece in pieces:
            await upload.add(piece)
        return await upload.finish()

    return stage.run(main())


PIECES = [
    # what is added, the chunks of 2
    ([], []),
    ([b""], []),
    ([b"1"], [b"1"]),
    ([b"12"], [b"12"]),
    ([b"123"], [b"12", b"3"]),
    ([b"1", b"2", b"3"], [b"12", b"3"]),
    ([b"1", b"", b"23456", b"7"], [b"12", b"34", b"56", b"7"]),
    ([bytearray(b"12"), memoryview(b"34")], [b"12", b"34"]),
]


@pytest.mark.rule("OBJ-17", "OBJ-22", "OBJ-23")
@pytest.mark.parametrize(("pieces", "chunks"), PIECES)
def test_chunks(pieces, chunks):
    acks = [ack(1 + number) for number in range(len(chunks))]
    stage, upload = start(*acks, NOT_FOUND, ack(9), STORED)
    info = put(stage, upload, *pieces)
    data = b"".join(chunks)
    assert (info.size, info.chunks, info.digest) == (len(data), len(chunks), digest(data))
    pubs = stage.pubs
    sent = [pub for pub in pubs if pub.subject == CHUNK]
    assert [pub.data for pub in sent] == chunks
    ids = ["%s.%d" % (NUID, number + 1) for number in range(len(chunks))]
    assert [pub.headers.items() for pub in sent] == [[("Nats-Msg-Id", id)] for id in ids]
    # The info of the object is stored after them.
    rest = [pub.subject.replace("$JS.API.", "") for pub in pubs[len(chunks) :]]
    assert rest == [GET, INFO, ASK]
    assert json.loads(pubs[-2].data) == {
        **info_json(data=data, chunks=len(chunks), nuid=NUID),
        "options": {"max_chunk_size": 2},
    }
    assert stage.answers == []


@pytest.mark.rule("OBJ-22")
def test_an_object_does_not_exist_before_its_chunks():
    stage, upload = start(ack(1), SILENCE, ack(3))
    with pytest.raises(PublishInDoubt):
        put(stage, upload, b"12", b"34", b"56")
    assert short(stage) == [CHUNK] * 3


def test_info_has_the_fields_that_users_set():
    meta = ObjectMeta(name="o", description="d", headers={"A": "1"}, metadata={"k": "v"})
    stage, upload = start(NOT_FOUND, ack(9), STORED, meta=meta)
    info = put(stage, upload)
    assert (info.description, info.headers, info.metadata) == ("d", {"A": ["1"]}, {"k": "v"})
    assert (info.bucket, info.nuid, info.mtime is None) == ("b", NUID, False)


@pytest.mark.rule("OBJ-17", "D-OBJ-18")
def test_sizes_of_chunks():
    table = [
        # keyword, of the meta, what is used
        (None, None, 131072),
        (None, 0, 131072),
        (0, 7, 131072),
        (None, 7, 7),
        (5, 7, 5),
    ]
    for keyword, told_size, used in table:
        options = None if told_size is None else {"max_chunk_size": told_size}
        meta = ObjectMeta(name="o", options=options)
        _, upload = start(chunk_size=keyword, meta=meta)
        assert upload.chunk_size == used
    for wrong_size in (-1, 1.5, "7", True, 2**20, 2**20 - 127):
        with pytest.raises(InvalidValue, match="chunk_size"):
            start(chunk_size=wrong_size)
    start(chunk_size=2**20 - 128)


@pytest.mark.rule("D-OBJ-18", "OBJ-43")
@pytest.mark.parametrize(
    ("payload", "used"), [(8192, 8064), (131199, 131071), (131200, 131072), (5, 1)]
)
def test_a_server_with_small_messages(payload, used):
    stage, bucket = store()
    stage.connection.info.max_payload = payload
    for given in (None, 0):
        assert Upload(bucket._metas, ObjectMeta(name="o"), given).chunk_size == used
    for meta, given in (
        (ObjectMeta(name="o"), used + 1),
        (ObjectMeta(name="o", options={"max_chunk_size": used + 1}), None),
    ):
        if used < 131072:
            with pytest.raises(InvalidValue, match="chunk_size %d exceeds %d" % (used + 1, used)):
                Upload(bucket._metas, meta, given)


@pytest.mark.rule("D-OBJ-19")
@pytest.mark.parametrize(
    ("chunk_size", "most"), [(131072, 32), (1, 1000), (2**20 - 128, 4), (5 * 2**20, 1)]
)
def test_number_of_chunks_in_flight(chunk_size, most):
    stage, bucket = store()
    stage.connection.info.max_payload = 64 * 2**20
    upload = bucket._upload("o", "", None, None, chunk_size)
    assert upload._window._machine.max_pending == most


@pytest.mark.rule("OBJ-24")
@pytest.mark.parametrize(
    ("chunks", "deleted", "purged"), [(2, False, True), (0, False, False), (0, True, True)]
)
def test_chunks_of_the_replaced_object_are_purged(chunks, deleted, purged):
    before = info_json(chunks=chunks, nuid="OLD", deleted=deleted)
    stage, upload = start(ack(1), direct(before), ack(9), *[PURGED] * purged, STORED)
    put(stage, upload, b"12")
    bodies = [body for subject, body in stage.asked if PURGE in subject]
    assert bodies == [{"filter": "$O.b.C.OLD"}] * purged
    assert stage.answers == []


@pytest.mark.rule("OBJ-24")
def test_another_client_replaces_the_object_in_the_meantime():
    one, two = info_json(chunks=1, nuid="ONE"), info_json(chunks=1, nuid="TWO")
    answers = [direct(one), wrong(8), by_api(two, 8), ack(9), PURGED, STORED]
    stage, upload = start(ack(1), *answers)
    put(stage, upload, b"12")
    assert stage.asked[-2][1] == {"filter": "$O.b.C.TWO"}


# Failures


@pytest.mark.rule("D-OBJ-20", "D-OBJ-21")
@pytest.mark.parametrize("count", [2, 3])
def test_the_connection_is_lost(count):
    info = stream()
    info["state"]["subjects"] = {CHUNK: count}
    info["total"] = 1
    lost = [Lost(), ack(2), *[SILENCE] * (count - 2), info]
    stage, upload = start(ack(1), *lost, NOT_FOUND, ack(9), STORED)
    if count == 2:
        assert put(stage, upload, b"12", b"34").chunks == 2
        sent = [pub for pub in stage.pubs if pub.subject == CHUNK]
        assert [pub.data for pub in sent] == [b"12", b"34", b"34"]
        assert sent[1].headers == sent[2].headers
    else:
        with pytest.raises(ObjectCorrupt, match="3 chunks are stored, not 2"):
            put(stage, upload, b"12", b"34")


@pytest.mark.rule("D-OBJ-21")
def test_no_chunk_overtakes_another():
    stage, upload = start(NOBODY, NOBODY, ack(1), ack(2), ack(3))

    async def main():
        await upload.add(b"12")
        stage.serve()  # no responders now
        await upload.add(b"34")
        await upload.add(b"56")

    stage.run(main())
    assert [pub.data for pub in stage.pubs] == [b"12", b"34", b"12", b"34", b"56"]


@pytest.mark.rule("D-OBJ-21")
@pytest.mark.parametrize("seq", [4, 5])
def test_chunks_stored_out_of_order_are_an_error(seq):
    stage, upload = start(ack(5), ack(seq))
    with pytest.raises(ObjectCorrupt, match="not stored in order"):
        put(stage, upload, b"12", b"34")


def test_a_chunk_is_refused():
    stage, upload = start(FULL, ack(7), chunk_size=1)

    async def main():
        await upload.add(b"12")
        while stage.serve():
            pass
        await upload.add(b"3")

    with pytest.raises(ApiError, match="maximum bytes"):
        stage.run(main())
    stage, upload = start(FULL)
    with pytest.raises(ApiError, match="maximum bytes"):
        put(stage, upload, b"12")


def test_wrong_data():
    stage, upload = start()
    for piece in ("text", 7, None):
        with pytest.raises(InvalidValue):
            stage.run(upload.add(piece))
    assert stage.quiet()


def give_up(stage, upload):
    stage.run(upload.give_up(ValueError()))
    return [body for subject, body in stage.asked if PURGE in subject]


@pytest.mark.rule("OBJ-25")
def test_a_failed_put():
    stage, upload = start(FULL, PURGED, PURGED)
    with pytest.raises(ApiError):
        put(stage, upload, b"12")
    assert give_up(stage, upload) == [{"filter": CHUNK}] * 2
    assert stage.now() < 0.1


@pytest.mark.rule("OBJ-25")
def test_a_failed_put_without_a_response_to_the_purge():
    stage, upload = start(*[SILENCE] * 9)
    begin = stage.now()
    give_up(stage, upload)
    assert stage.now() - begin == 5.0


@pytest.mark.rule("D-CALL-21")
@pytest.mark.parametrize("error", [TimeoutExpired("late"), PublishTimeout("late")])
def test_a_put_that_waited_for_the_server_does_not_wait_for_the_purge(error):
    stage, upload = start(*[SILENCE] * 9)
    begin = stage.now()
    stage.run(upload.give_up(error))
    assert stage.now() == begin
    assert short(stage) == [PURGE]


@pytest.mark.rule("OBJ-25")
def test_abandon():
    stage, upload = start(SILENCE, PURGED, PURGED, PURGED)
    stage.run(upload.add(b"12"))
    machine = upload.abandon()
    waits = stage.waits
    while not machine.ended:
        if not stage.serve():
            stage.wire.ring()
    assert stage.waits == waits
    assert short(stage) == [CHUNK, PURGE, PURGE, PURGE]


DOUBTS = [
    # the response to the info; the error; whether it is looked up
    ("no answer", [SILENCE], PublishInDoubt, True),
    ("refused", [FULL], ApiError, False),
    ("no responders", [NOBODY] * 3, NoStreamResponse, False),
    (
        "too many others",
        [wrong(8), by_api(info_json(), 8)] * 49 + [wrong(8)],
        WrongLastSequence,
        False,
    ),
]


@pytest.mark.rule("OBJ-25")
@pytest.mark.parametrize(("name", "answers", "error", "looked"), DOUBTS)
@pytest.mark.parametrize("chunks", [0, 2])
def test_the_info_is_not_written(name, answers, error, looked, chunks):
    old = info_json(chunks=chunks, nuid="OLD")
    ours = [by_api(info_json(nuid=NUID), 9)] if looked else []
    stage, upload = start(ack(1), direct(old), *answers, *ours, PURGED, PURGED)
    with pytest.raises(error):
        put(stage, upload, b"12")
    stage.pubs.clear()
    stage.run(upload.give_up(ValueError()))
    asked = stage.asked
    if looked:
        assert asked[0] == ("$JS.API." + ASK, {"last_by_subj": INFO})
        # The info is stored, so the chunks of the replaced object are purged.
        assert [body for _, body in asked[1:]] == [{"filter": "$O.b.C.OLD"}] * chunks
    else:
        assert [body for _, body in asked] == [{"filter": CHUNK}] * 2


def put_and_cancel(stage, upload):
    """Cancel the put when no more answers are available at once."""

    async def cancel(waitable):
        if not stage.serve():
            raise Cancelled

    stage.wait = cancel
    with pytest.raises(Cancelled):
        put(stage, upload, b"12")


@pytest.mark.rule("OBJ-25")
def test_canceled_while_the_info_is_in_doubt():
    stage, upload = start(ack(1), SILENCE)
    put_and_cancel(stage, upload)
    machine = upload.abandon()
    assert machine.expected.target == ""


@pytest.mark.rule("OBJ-24", "OBJ-25")
@pytest.mark.parametrize("chunks", [0, 2])
def test_canceled_after_the_info_is_stored(chunks):
    """Its own chunks stay; those of the replaced object are purged."""
    before = info_json(chunks=chunks, nuid="OLD")
    stage, upload = start(ack(1), direct(before), ack(9), SILENCE, PURGED, PURGED)
    put_and_cancel(stage, upload)
    while stage.serve():
        pass
    assert upload.abandon() is None
    stage.run(upload.give_up(ValueError()))
    bodies = [body for subject, body in stage.asked if PURGE in subject]
    assert bodies == [{"filter": "$O.b.C.OLD"}] * chunks


# All of it, with a lock that is free while the data is read


class Lock:
    def __init__(self):
        self.held = False
        self.log = []

    def __enter__(self):
        assert not self.held
        self.held = True

    def __exit__(self, *exc):
        self.held = False
        self.log.append("held")

    def data(self, *pieces):
        for piece in pieces:
            assert not self.held
            self.log.append("read")
            if isinstance(piece, BaseException):
                raise piece
            yield piece


SENDS = [
    # the data; the requests; how often the lock is held
    ([b"12", b"3"], [GET, INFO, ASK], 3),
    ([b"12", ValueError("mine")], [PURGE, PURGE], 2),
    ([b"12", Cancelled()], [PURGE], 2),
]


@pytest.mark.rule("OBJ-25", "OBJ-27")
@pytest.mark.parametrize(("pieces", "asked", "held"), SENDS)
def test_send_all(pieces, asked, held):
    answers = [NOT_FOUND, ack(9), STORED] if INFO in asked else [PURGED, PURGED]
    stage, upload = start(*[ack(1 + number) for number in range(len(pieces))], *answers)
    if isinstance(pieces[-1], BaseException):
        stage.answers.pop(1)
    lock = Lock()
    call = send_all(source_of(lock.data(*pieces), 2), upload, lock)
    if isinstance(pieces[-1], BaseException):
        with pytest.raises(type(pieces[-1])):
            stage.run(call)
    else:
        assert stage.run(call).size == 3
    assert [subject for subject in short(stage) if subject != CHUNK] == asked
    assert lock.log.count("held") == held
    assert not lock.held
