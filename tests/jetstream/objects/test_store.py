"""One bucket of objects, on a scripted stream."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import (
    ApiError,
    BucketNotFound,
    LinkUnreadable,
    NoStreamResponse,
    ObjectAlreadyExists,
    ObjectNotFound,
    PublishInDoubt,
)
from jetstream.objects import (
    ObjectInfo,
    ObjectMeta,
    ObjectReader,
    ObjectStoreStatus,
    ObjectWatcher,
)
from natsproto.errors import InvalidName, InvalidValue, TimeoutExpired
from tests.jetstream.object_stores import (
    NO_STREAM,
    NOT_FOUND,
    PURGED,
    ack,
    by_api,
    created,
    delivery,
    direct,
    info_json,
    listed,
    short,
    store,
    stream,
    token,
    wrong,
)
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import NOBODY, SILENCE, Stage

NAME = "1" * 22
GET = "DIRECT.GET.OBJ_b.$O.b.M."
ASK = "STREAM.MSG.GET.OBJ_b"
SEALED = {"error": {"code": 400, "err_code": 10109, "description": "sealed"}}
STORED = by_api(info_json(), 99)


def link(name="l", to="o", bucket="b", **more):
    where = {"bucket": bucket, "name": to} if to else {"bucket": bucket}
    return {**info_json(name), "options": {"link": where}, **more}


def chunk(data, number, pending, name=NAME):
    return delivery("$O.b.C.N", data, number, pending, name)


# Reading


def test_get():
    stage, bucket = store(direct(info_json(data=b"12", chunks=1)), created(NAME, 1), SILENCE)
    reader = stage.run(bucket.get("o"))
    assert isinstance(reader, ObjectReader)
    assert (reader.info.name, repr(bucket)) == ("o", "<ObjectStore b>")
    info = direct(info_json(data=b"12", chunks=1))
    stage, bucket = store(info, created(NAME, 1), [chunk(b"12", 1, 0)], SILENCE)
    assert stage.run(bucket.get_bytes("o")) == b"12"


@pytest.mark.rule("OBJ-16")
def test_get_info():
    stage, bucket = store(direct(info_json()), *[direct(info_json(deleted=True))] * 3, NOT_FOUND)
    assert stage.run(bucket.get_info("o")).name == "o"
    assert stage.run(bucket.get_info("o", show_deleted=True)).deleted
    for call in (bucket.get_info, bucket.get, bucket.get_info):
        with pytest.raises(ObjectNotFound):
            stage.run(call("o"))


@pytest.mark.rule("OBJ-31")
def test_links():
    empty = direct(info_json())
    stage, bucket = store(direct(link()), empty)
    reader = stage.run(bucket.get("l"))
    assert reader.info.name == "o"
    assert short(stage) == [GET + token("l"), GET + token("o")]
    stage, bucket = store(direct(link(bucket="c")), stream("c"), empty)
    assert stage.run(bucket.get("l")).info.name == "o"
    assert short(stage) == [GET + "bA==", "STREAM.INFO.OBJ_c", "DIRECT.GET.OBJ_c.$O.c.M.bw=="]


@pytest.mark.rule("OBJ-31")
def test_links_that_cannot_be_read():
    stage, bucket = store(direct(link(to="", bucket="c")))
    with pytest.raises(LinkUnreadable, match="whole bucket 'c'"):
        stage.run(bucket.get("l"))
    stage, bucket = store(*[direct(link(to="l"))] * 9)
    with pytest.raises(LinkUnreadable, match="chain of links is too long"):
        stage.run(bucket.get("l"))
    assert stage.answers == []
    stage, bucket = store(direct(link()), NOT_FOUND, direct(link(bucket="c")), NO_STREAM)
    with pytest.raises(ObjectNotFound):
        stage.run(bucket.get("l"))
    with pytest.raises(BucketNotFound):
        stage.run(bucket.get("l"))


@pytest.mark.rule("OBJ-37")
@pytest.mark.parametrize("show_deleted", [False, True])
def test_list(show_deleted):
    rows = [
        info_json("b"),
        info_json("a"),
        info_json("c"),
        info_json("a", deleted=True),
        info_json("d", deleted=True),
    ]
    comes = []
    for number, row in enumerate(rows):
        subject = "$O.b.M." + token(row["name"])
        data = json.dumps(row).encode()
        comes.append(delivery(subject, data, number + 1, 4 - number, NAME))
    stage, bucket = store(listed("a", "b", "c", "d"), created(NAME, 5), comes, SILENCE)
    found = stage.run(bucket.list(show_deleted))
    assert [info.name for info in found] == (["a", "b", "c", "d"] if show_deleted else ["b", "c"])
    stage, bucket = store(listed(), created(NAME, 0))
    assert stage.run(bucket.list()) == []


def test_watch():
    stage, bucket = store(listed(), created(NAME, 0))
    assert isinstance(stage.run(bucket.watch()), ObjectWatcher)


# Putting

PUTS = [
    # the arguments; name, description, headers, metadata, size of chunks
    (("o", {}), ("o", "", {}, {}, 131072)),
    (("o", {"description": "d", "headers": {"A": "1"}, "metadata": {"k": "v"}, "chunk_size": 5}),
     ("o", "d", {"A": ["1"]}, {"k": "v"}, 5)),
    ((ObjectMeta(name="o", description="d"), {}), ("o", "d", {}, {}, 131072)),
    ((ObjectMeta(name="o", description="d", options={"max_chunk_size": 5}), {"description": "e"}),
     ("o", "e", {}, {}, 5)),
    ((ObjectInfo.from_json(info_json(description="d", nuid="X")), {}), ("o", "d", {}, {}, 131072)),
]  # fmt: skip


@pytest.mark.rule("OBJ-17")
@pytest.mark.parametrize(("given", "found"), PUTS)
def test_put(given, found):
    meta, options = given
    stage, bucket = store(ack(1), NOT_FOUND, ack(9), STORED)
    info = stage.run(bucket.put(meta, b"12345", **options))
    size = info.options.max_chunk_size
    assert (info.name, info.description, info.headers, info.metadata, size) == found
    assert (info.size, info.chunks, info.nuid) == (5, 1, NAME)


@pytest.mark.rule("OBJ-27")
def test_put_in_pieces():
    async def pieces():
        yield b"123"
        yield b"45"

    stage, bucket = store(ack(1), NOT_FOUND, ack(9), STORED)
    assert stage.run(bucket.put("o", pieces())).size == 5
    stage, bucket = store(NOT_FOUND, ack(9), STORED)
    assert stage.run(bucket.put("o")).size == 0


def failing(error):
    yield b"12"
    raise error


@pytest.mark.rule("OBJ-25")
def test_a_put_that_fails():
    stage, bucket = store(ack(1), PURGED, PURGED)
    with pytest.raises(ValueError, match="mine"):
        stage.run(bucket.put("o", failing(ValueError("mine")), chunk_size=2))
    chunks = "$O.b.C." + NAME
    assert short(stage) == [chunks, "STREAM.PURGE.OBJ_b", "STREAM.PURGE.OBJ_b"]
    stage, bucket = store(SEALED, SEALED)
    with pytest.raises(ApiError, match="sealed"):
        stage.run(bucket.put("o", b"12", chunk_size=2))
    assert stage.answers == []


@pytest.mark.rule("OBJ-25")
def test_a_put_that_is_canceled():
    stage, bucket = store(ack(1), PURGED)
    with pytest.raises(Cancelled):
        stage.run(bucket.put("o", failing(Cancelled()), chunk_size=2))
    waits = stage.waits
    assert short(stage) == ["$O.b.C." + NAME, "STREAM.PURGE.OBJ_b"]
    assert stage.waits == waits


WRONG = [
    ("put", ("",), InvalidName),
    ("put", (7,), InvalidValue),
    ("put", ("\ud800",), InvalidName),
    ("put", (ObjectMeta(description="d"),), InvalidName),
    ("put", ("o", "text"), InvalidValue),
    ("put", ("o", 7), InvalidValue),
    pytest.param(
        "put",
        (ObjectMeta(name="o", options={"link": {"bucket": "b"}}),),
        InvalidValue,
        marks=pytest.mark.rule("OBJ-26"),
    ),
    ("get", ("",), InvalidName),
    ("get_info", (7,), InvalidName),
    ("get_info", ("o", "yes"), InvalidValue),
    ("list", ("yes",), InvalidValue),
    ("delete", ("",), InvalidName),
    ("update_meta", ("",), InvalidName),
    ("update_meta", ("o", "meta"), InvalidValue),
    ("update_meta", ("o", ObjectMeta(name="\ud800")), InvalidName),
    ("add_link", ("l", 7), InvalidValue),
    ("add_link", ("l", ObjectMeta(name="o")), InvalidValue),
    ("add_link", ("l", ObjectInfo(name="o")), InvalidValue),
    ("add_link", ("l", ObjectInfo.from_json(info_json(deleted=True))), InvalidValue),
    ("add_link", ("l", ObjectInfo.from_json(link())), InvalidValue),
    ("add_link", ("", ObjectInfo.from_json(info_json())), InvalidName),
    ("add_bucket_link", ("l", "b"), InvalidValue),
    ("add_bucket_link", ("l", Stage), InvalidValue),
]


@pytest.mark.rule("OBJ-2", "OBJ-35")
@pytest.mark.parametrize(("call", "args", "error"), WRONG)
def test_wrong_calls_are_not_sent(call, args, error):
    stage, bucket = store()
    with pytest.raises(error):
        stage.run(getattr(bucket, call)(*args))
    assert stage.quiet()


@pytest.mark.rule("OBJ-35")
def test_an_invalid_bucket():
    stage, bucket = store()
    _, other = store()
    other.bucket = "a.b"
    with pytest.raises(InvalidName):
        stage.run(bucket.add_bucket_link("l", other))
    assert stage.quiet()


@pytest.mark.parametrize(
    "fields",
    [
        {"description": 7},
        {"headers": 7},
        {"metadata": [1]},
        {"new_name": 7},
        {"new_name": "\ud800"},
    ],
)
def test_wrong_changes_are_not_sent(fields):
    stage, bucket = store()
    with pytest.raises((InvalidValue, InvalidName)):
        stage.run(bucket.update_meta("o", **fields))
    assert stage.quiet()


# Changing

THERE = info_json(
    data=b"12345", chunks=3, description="d", headers={"H": ["1"]}, metadata={"k": "v"}
)
CHANGES = [
    # meta and keywords, what becomes of the fields
    (None, {}, {}),
    (None, {"description": "e"}, {"description": "e"}),
    (None, {"description": "", "headers": {}}, {"description": "", "headers": {}}),
    (None, {"metadata": {"x": "y"}, "new_name": "o"}, {"metadata": {"x": "y"}}),
    (
        ObjectMeta(description="e"),
        {},
        {"description": "e", "headers": {}, "metadata": {}},
    ),
    (
        ObjectMeta(name="o", headers={"A": "2"}, options={"max_chunk_size": 7}),
        {"description": "e"},
        {"description": "e", "headers": {"A": ["2"]}, "metadata": {}},
    ),
]


def written(stage, name="o"):
    subject = "$O.b.M." + token(name)
    return [json.loads(pub.data) for pub in stage.pubs if pub.subject == subject]


@pytest.mark.rule("OBJ-32")
@pytest.mark.parametrize(("meta", "fields", "changed"), CHANGES)
def test_update_meta(meta, fields, changed):
    stage, bucket = store(direct(THERE), ack(9), STORED)
    info = stage.run(bucket.update_meta("o", meta, **fields))
    assert written(stage) == [{**THERE, **changed}]
    assert (info.name, info.size, info.nuid) == ("o", 5, "N")


@pytest.mark.rule("OBJ-32")
@pytest.mark.parametrize("found", [NOT_FOUND, direct(info_json(deleted=True))])
@pytest.mark.parametrize("fields", [{"description": "e"}, {"new_name": "p"}])
def test_update_of_a_missing_object(found, fields):
    stage, bucket = store(found)
    with pytest.raises(ObjectNotFound):
        stage.run(bucket.update_meta("o", **fields))


@pytest.mark.rule("OBJ-33")
@pytest.mark.parametrize("target", [NOT_FOUND, direct(info_json("p", deleted=True), 5)])
def test_rename(target):
    stage, bucket = store(direct(THERE), target, ack(9), PURGED, STORED)
    info = stage.run(bucket.update_meta("o", new_name="p"))
    assert info.name == "p"
    pubs = stage.pubs
    assert json.loads(pubs[2].data) == {**THERE, "name": "p"}
    assert json.loads(pubs[3].data) == {"filter": "$O.b.M.bw==", "seq": 8}
    stage, bucket = store(direct(THERE), target, ack(9), PURGED, STORED)
    stage.run(bucket.update_meta("o", ObjectMeta(name="p")))
    assert written(stage, "p")[0]["description"] == ""


@pytest.mark.rule("OBJ-33")
def test_rename_again():
    """For example after a failure: the new name exists, and the old one is purged."""
    stage, bucket = store(direct(THERE), direct({**THERE, "name": "p"}, 5), ack(9), PURGED, STORED)
    assert stage.run(bucket.update_meta("o", new_name="p")).name == "p"
    assert json.loads(stage.pubs[3].data) == {"filter": "$O.b.M.bw==", "seq": 8}


@pytest.mark.rule("OBJ-33")
@pytest.mark.parametrize("target", [info_json("p", nuid="X"), link("p", nuid="X")])
def test_rename_to_an_existing_name(target):
    stage, bucket = store(direct(THERE), direct(target))
    with pytest.raises(ObjectAlreadyExists, match="'p'"):
        stage.run(bucket.update_meta("o", new_name="p"))
    assert len(stage.pubs) == 2


@pytest.mark.rule("OBJ-34")
def test_delete():
    stage, bucket = store(direct(THERE), ack(9), PURGED)
    stage.run(bucket.delete("o"))
    pubs = stage.pubs
    gone = {**THERE, "size": 0, "chunks": 0, "deleted": True}
    gone.pop("digest")
    assert json.loads(pubs[1].data) == gone
    assert json.loads(pubs[2].data) == {"filter": "$O.b.C.N"}


DOUBTS = [
    # the answers to the read and to the deletion; what it raises; whether it is looked up
    ([direct(THERE), SILENCE], PublishInDoubt, True),
    ([direct(THERE), SEALED], ApiError, False),
    ([SILENCE, SILENCE], TimeoutExpired, False),
]


@pytest.mark.rule("OBJ-34")
@pytest.mark.parametrize(("answers", "error", "looked"), DOUBTS)
def test_a_deletion_in_doubt(answers, error, looked):
    gone = by_api({**THERE, "deleted": True}, 9)
    stage, bucket = store(*answers, *[gone, PURGED, PURGED, PURGED] * looked)
    with pytest.raises(error):
        stage.run(bucket.delete("o"))
    while stage.answers:
        if not stage.serve():
            stage.wire.ring()
    purged = [body for subject, body in stage.asked if ".PURGE." in subject]
    assert purged == [{"filter": "$O.b.C.N"}] * 3 * looked


@pytest.mark.rule("D-OBJ-45")
def test_files_are_opened_by_the_port():
    stage, bucket = store(NOT_FOUND)

    async def open_file(path):
        raise FileNotFoundError(path)

    stage.open_file = open_file
    with pytest.raises(FileNotFoundError, match="path"):
        stage.run(bucket.put_file("path"))
    assert stage.pubs == []
    with pytest.raises(ObjectNotFound):
        stage.run(bucket.get_file("o", "path"))


@pytest.mark.rule("OBJ-34")
def test_delete_a_missing_object():
    stage, bucket = store(direct(info_json(deleted=True)), PURGED, NOT_FOUND)
    stage.run(bucket.delete("o"))
    with pytest.raises(ObjectNotFound):
        stage.run(bucket.delete("o"))
    # The client that deleted it may not have purged its chunks.
    assert stage.asked[1] == ("$JS.API.STREAM.PURGE.OBJ_b", {"filter": "$O.b.C.N"})
    assert written(stage) == []
    stage, bucket = store(direct(link("o")), ack(9))
    stage.run(bucket.delete("o"))
    assert stage.answers == []


@pytest.mark.rule("D-OBJ-13", "OBJ-34")
def test_delete_while_another_client_deletes():
    gone = by_api(info_json(deleted=True), 8)
    stage, bucket = store(direct(THERE), wrong(8), gone, PURGED)
    stage.run(bucket.delete("o"))
    assert stage.answers == []


FREE = [NOT_FOUND, direct(info_json("l", deleted=True)), direct(link()), direct(link(to=""))]


@pytest.mark.rule("OBJ-35")
@pytest.mark.parametrize("found", FREE)
def test_add_link(found):
    stage, bucket = store(found, ack(9), STORED)
    other = {**info_json(), "bucket": "c"}
    info = stage.run(bucket.add_link("l", ObjectInfo.from_json(other)))
    [body] = written(stage, "l")
    assert body == {
        **{"name": "l", "bucket": "b", "nuid": NAME, "size": 0, "chunks": 0},
        "options": {"link": {"bucket": "c", "name": "o"}},
    }
    assert (info.link.bucket, info.mtime is None) == ("c", False)
    stage, bucket = store(found, ack(9), STORED)
    info = stage.run(bucket.add_bucket_link("l", bucket))
    assert written(stage, "l")[0]["options"] == {"link": {"bucket": "b"}}


@pytest.mark.rule("OBJ-35")
def test_no_link_in_the_place_of_an_object():
    stage, bucket = store(*[direct(info_json())] * 2)
    with pytest.raises(ObjectAlreadyExists):
        stage.run(bucket.add_link("o", ObjectInfo.from_json(info_json("p"))))
    with pytest.raises(ObjectAlreadyExists):
        stage.run(bucket.add_bucket_link("o", bucket))
    assert len(stage.pubs) == 2


@pytest.mark.rule("D-OBJ-44")
@pytest.mark.parametrize(
    ("answer", "error"), [(NO_STREAM, BucketNotFound), (stream(), NoStreamResponse)]
)
def test_put_into_a_deleted_bucket(answer, error):
    stage, bucket = store(*[NOBODY] * 3, NO_STREAM, answer)
    with pytest.raises(error):
        stage.run(bucket.put("o", b"data"))
    asked = [subject for subject, _ in stage.asked]
    assert asked[3:] == ["$JS.API.STREAM.PURGE.OBJ_b", "$JS.API.STREAM.INFO.OBJ_b"]


@pytest.mark.rule("D-OBJ-38")
def test_orphans():
    stage, bucket = store(stream())
    assert stage.run(bucket.purge_orphans()) == 0
    assert short(stage) == ["STREAM.INFO.OBJ_b"]


# The bucket


def test_status():
    stage, bucket = store(stream(), NO_STREAM, NO_STREAM)
    status = stage.run(bucket.status())
    assert isinstance(status, ObjectStoreStatus)
    assert (bucket.bucket, status.size) == ("b", 99)
    for call in (bucket.status, bucket.seal):
        with pytest.raises(BucketNotFound):
            stage.run(call())


@pytest.mark.rule("OBJ-9")
def test_seal():
    config = {"subjects": ["$O.b.C.>", "$O.b.M.>"], "discard": "new"}
    stage, bucket = store(stream(**config), stream(sealed=True, **config))
    stage.run(bucket.seal())
    [_, (subject, body)] = stage.asked
    assert subject == "$JS.API.STREAM.UPDATE.OBJ_b"
    assert (body["sealed"], body["subjects"]) == (True, config["subjects"])
