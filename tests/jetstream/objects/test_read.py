"""Objects as they are read, on a scripted stream."""

from __future__ import annotations

import pytest

from jetstream.errors import BucketNotFound, ObjectChanged, ObjectCorrupt
from jetstream.objects.info import ObjectInfo
from jetstream.objects.read import open_reader
from natsproto.errors import InvalidState, InvalidValue, TimeoutExpired
from tests.jetstream import buckets
from tests.jetstream.buckets import SAME_STREAM
from tests.jetstream.object_stores import (
    NO_MESSAGE,
    NO_STREAM,
    by_api,
    created,
    delivery,
    info_json,
    store,
)
from tests.jetstream.support import SILENCE, Lost, Status

NAME = "1" * 22
CHUNK = "$O.b.C.N"
DELETED = Status("409 Consumer Deleted")


def comes(*chunks, first=1, serial=1, pending=0, name=NAME, number=1):
    """Return these chunks, the first one with this sequence and number."""
    found = []
    for place, data in enumerate(chunks):
        left = len(chunks) - 1 - place + pending
        each = delivery(CHUNK, data, number + place, left, name, serial, first + place)
        found.append(each)
    return found


def chunks(count):
    """Return how many chunks the stream has."""
    return buckets.state("OBJ_b", 9, {CHUNK: count} if count else {})


def start(*answers, pending=3, info=None, **config):
    """Return a reader of an object with three chunks, whose consumer exists."""
    found = info or info_json(data=b"12345", chunks=3)
    first = [created(NAME, pending)] if found["size"] else []
    stage, bucket = store(*first, *answers, **config)
    reader = stage.run(open_reader(bucket._metas, ObjectInfo.from_json(found)))
    return stage, reader


async def all_of(reader):
    return [chunk async for chunk in reader]


@pytest.mark.rule("OBJ-28", "OBJ-29")
def test_chunks():
    stage, reader = start(comes(b"12", b"34", b"5"), SILENCE)
    assert repr(reader) == "<ObjectReader of o: 0 of 5 bytes>"
    assert stage.run(all_of(reader)) == [b"12", b"34", b"5"]
    assert repr(reader) == "<ObjectReader of o: 5 of 5 bytes>"
    assert stage.run(reader.read()) == b""
    create, pull, delete = stage.pubs
    path = "OBJ_b.%s_1" % NAME
    assert create.subject == "$JS.API.CONSUMER.CREATE.%s.%s" % (path, CHUNK)
    assert pull.subject == "$JS.API.CONSUMER.MSG.NEXT." + path
    assert b'"max_bytes":4194304' in pull.data
    assert delete.subject == "$JS.API.CONSUMER.DELETE." + path


@pytest.mark.rule("OBJ-28")
def test_large_messages():
    stage, bucket = store(created(NAME, 1), comes(b"12345"), SILENCE)
    stage.connection.info.max_payload = 2**24
    info = ObjectInfo.from_json(info_json(data=b"12345", chunks=1))
    stage.run(open_reader(bucket._metas, info))
    assert b'"max_bytes":%d' % (2**24 + 2**17) in stage.pubs[1].data


SIZES = [
    # the sizes to read, and the bytes that are returned
    ([-1], [b"12345"]),
    ([0, 1, 1, 1, 1, 1, 1], [b"", b"1", b"2", b"3", b"4", b"5", b""]),
    ([3, 3, 3], [b"123", b"45", b""]),
    ([4, -1, -1], [b"1234", b"5", b""]),
    ([100], [b"12345"]),
]


@pytest.mark.parametrize(("sizes", "parts"), SIZES)
def test_read(sizes, parts):
    stage, reader = start(comes(b"12", b"34", b"5"), SILENCE)
    assert [stage.run(reader.read(size)) for size in sizes] == parts


def test_read_and_iterate():
    stage, reader = start(comes(b"12", b"34", b"5"), SILENCE)
    assert stage.run(reader.read(1)) == b"1"
    assert stage.run(all_of(reader)) == [b"2", b"34", b"5"]


@pytest.mark.parametrize("size", [-2, 1.5, "7", None, True])
def test_invalid_sizes(size):
    stage, reader = start(SILENCE)
    with pytest.raises(InvalidValue, match="size"):
        stage.run(reader.read(size))


@pytest.mark.rule("OBJ-29")
def test_an_empty_object():
    stage, reader = start(info=info_json())
    assert stage.run(reader.read()) == b""
    assert stage.run(all_of(reader)) == []
    assert stage.quiet()
    stage, reader = start(by_api(info_json(digest="SHA-256=x")), info=info_json(digest="SHA-256=x"))
    with pytest.raises(ObjectCorrupt):
        stage.run(reader.read())


DAMAGES = [
    # case; the chunks, and later answers of the stream; the error
    ("too few bytes", [comes(b"12", b"34", b"")], "there are 4 bytes in 3 chunks, not 5 in 3"),
    ("too few chunks", [comes(b"12", b"345")], "there are 5 bytes in 2 chunks, not 5 in 3"),
    ("one is gone", [comes(b"12", b"34"), chunks(2)], "there are 4 bytes in 2 chunks, not 5 in 3"),
    ("too many bytes", [comes(b"12", b"34", b"56")], "there are 6 bytes in 3 chunks, not 5 in 3"),
    ("other bytes", [comes(b"12", b"34", b"6")], "the digest of its 5 bytes in 3 chunks is not"),
    (
        "gone while it was read",
        [comes(b"12", pending=2), chunks(1)],
        "there are 2 bytes in 1 chunks, not 5 in 3",
    ),
]


@pytest.mark.rule("OBJ-29")
@pytest.mark.parametrize(("name", "answers", "why"), DAMAGES)
def test_damaged(name, answers, why):
    found = info_json(data=b"12345", chunks=3)
    for after, error in (
        (by_api(found), ObjectCorrupt),
        (by_api({**found, "nuid": "X"}), ObjectChanged),
        (by_api({**found, "deleted": True}), ObjectChanged),
        (NO_MESSAGE, ObjectChanged),
    ):
        stage, reader = start(*answers, SILENCE, after)
        with pytest.raises(error, match=why):
            stage.run(reader.read())
        with pytest.raises(error, match=why):
            stage.run(all_of(reader))  # and does not report the end of the object
        stage.run(reader.close())
        assert stage.answers == []


@pytest.mark.rule("OBJ-29")
@pytest.mark.parametrize("last", [b"6", b"56"])
def test_the_last_chunk_is_returned_only_if_the_object_is_intact(last):
    stage, reader = start(comes(b"12", b"34", last), SILENCE, by_api(info_json()))
    assert [stage.run(reader.__anext__()) for _ in range(2)] == [b"12", b"34"]
    with pytest.raises(ObjectCorrupt):
        stage.run(reader.__anext__())


@pytest.mark.rule("OBJ-29")
def test_all_chunks_are_missing():
    stage, reader = start(SILENCE, chunks(0), SILENCE, by_api(info_json(nuid="X")), pending=0)
    stage.run(reader.read(0))
    with pytest.raises(ObjectChanged, match="0 bytes in 0 chunks"):
        stage.run(reader.read())


@pytest.mark.rule("OBJ-29")
def test_damaged_and_the_lookup_times_out():
    stage, reader = start(comes(b"12", b"34"), chunks(2), SILENCE, SILENCE, SILENCE)
    for _ in range(2):
        with pytest.raises(TimeoutExpired):
            stage.run(reader.read())


@pytest.mark.rule("D-OBJ-40")
def test_chunks_stop_arriving():
    stage, reader = start(comes(b"12", b"34", pending=1), SILENCE)
    assert stage.run(reader.read(1)) == b"1"
    with pytest.raises(TimeoutExpired, match="bucket 'b' for 5 s"):
        stage.run(reader.read())
    assert stage.now() == 5.0
    assert stage.run(reader.read(2)) == b"23"
    assert stage.run(reader.__anext__()) == b"4"


@pytest.mark.rule("D-OBJ-39")
def test_the_server_counts_too_few():
    later = comes(b"34", b"5", number=2, first=2)
    stage, reader = start(comes(b"12") + later, chunks(3), SILENCE)
    assert stage.run(reader.read()) == b"12345"


@pytest.mark.rule("OBJ-29", "D-OBJ-30")
@pytest.mark.parametrize("more", [{"chunks": 0}, {"digest": ""}])
def test_fields_missing_in_the_info_are_not_compared(more):
    info = {**info_json(data=b"12345", chunks=3), **more}
    stage, reader = start(comes(b"12", b"34", b"5"), SILENCE, info=info)
    assert stage.run(reader.read()) == b"12345"


@pytest.mark.rule("OBJ-28")
def test_the_connection_is_lost():
    stage, reader = start(
        Lost(),
        SILENCE,
        created(NAME, 3, 2),
        SAME_STREAM,
        comes(b"12", b"34", b"5", serial=2),
        SILENCE,
    )
    assert stage.run(reader.read()) == b"12345"


@pytest.mark.rule("OBJ-28")
def test_the_consumer_is_lost():
    stage, reader = start(
        [*comes(b"12", pending=2), DELETED],
        SILENCE,
        created(NAME, 2, 2),
        SAME_STREAM,
        comes(b"34", b"5", serial=2, first=2),
        SILENCE,
    )
    assert stage.run(reader.read()) == b"12345"


def test_the_bucket_is_gone():
    stage, reader = start(DELETED, SILENCE, NO_STREAM)
    with pytest.raises(BucketNotFound):
        stage.run(reader.read())
    stage, bucket = store(NO_STREAM)
    with pytest.raises(BucketNotFound):
        stage.run(open_reader(bucket._metas, ObjectInfo.from_json(info_json(data=b"1", chunks=1))))


@pytest.mark.rule("KV-39")
def test_another_account():
    name = "2" * 22
    answer = [created(name, 3), *comes(b"12", b"34", b"5", name=name)]
    stage, bucket = store(answer, SILENCE, info={"prefix": "fromA"})
    info = ObjectInfo.from_json(info_json(data=b"12345", chunks=3))
    reader = stage.run(open_reader(bucket._metas, info))
    assert stage.run(reader.read()) == b"12345"
    assert b"deliver_subject" in stage.pubs[0].data


def test_close():
    async def main():
        async with reader:
            assert await reader.read(3) == b"123"
        await reader.close()

    stage, reader = start(comes(b"12", b"34", b"5"), SILENCE)
    stage.run(main())
    for call in (reader.read, reader.__anext__):
        with pytest.raises(InvalidState, match="was closed"):
            stage.run(call())
    assert len(stage.pubs) == 3
    stage, reader = start(comes(b"12", b"34", b"5"), SILENCE)
    stage.run(reader.read())
    stage.run(reader.close())
    assert stage.run(reader.read()) == b""
