"""The facades of the object store behave like their inner objects."""

from __future__ import annotations

import io
import json

import pytest

from jetstream import objects as object_store
from jetstream.blocking import JetStream
from jetstream.blocking.objects import InitialObjects, ObjectReader, ObjectStore, ObjectWatcher
from jetstream.objects import watch as object_watch
from natsproto.errors import InvalidState
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.object_stores import (
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
    stream,
    token,
)
from tests.jetstream.stages import Cancelled
from tests.jetstream.support import SILENCE, Stage

NAME = "1" * 22
TWINS = [
    (object_store.ObjectStore, ObjectStore),
    (object_store.ObjectReader, ObjectReader),
    (object_store.ObjectWatcher, ObjectWatcher),
    (object_watch.InitialObjects, InitialObjects),
]


@pytest.mark.rule("D-CALL-14")
@pytest.mark.parametrize(("cls", "twin"), TWINS)
def test_they_are_twins(cls, twin):
    check_twins(cls, twin)


def make(*answers):
    stage = Stage(stream(), *answers)
    store = JetStream(stage.blocking).object_store("b")
    assert isinstance(store, ObjectStore)
    assert (store.bucket, repr(store)) == ("b", "<ObjectStore b>")
    assert len(stage.pubs) == 1
    return stage, store


@pytest.mark.rule("OBJ-27")
@pytest.mark.parametrize(
    "data", [b"12345", io.BytesIO(b"12345"), [b"123", b"", b"45"], iter([b"12345"])]
)
def test_put(data):
    stage, store = make(*[ack(1), ack(2), ack(3)], NOT_FOUND, ack(9), by_api(info_json(), 9))
    info = store.put("o", data, chunk_size=2, description="d", metadata={"k": "v"})
    assert (info.size, info.chunks, info.description, info.metadata) == (5, 3, "d", {"k": "v"})
    assert [pub.data for pub in stage.pubs[:3]] == [b"12", b"34", b"5"]


def failing(error):
    yield b"12"
    raise error


@pytest.mark.rule("OBJ-25")
@pytest.mark.parametrize(("error", "rounds"), [(ValueError("mine"), 2), (Cancelled(), 1)])
def test_a_put_that_fails(error, rounds):
    stage, store = make(ack(1), *[PURGED] * rounds)
    with pytest.raises(type(error)):
        store.put("o", failing(error), chunk_size=2)
    assert short(stage) == ["$O.b.C." + NAME, *["STREAM.PURGE.OBJ_b"] * rounds]


def chunks(*parts):
    count = len(parts)
    return [
        delivery("$O.b.C.N", part, number + 1, count - 1 - number, NAME)
        for number, part in enumerate(parts)
    ]


def test_a_reader():
    info = direct(info_json(data=b"12345", chunks=3))
    _, store = make(info, created(NAME, 3), chunks(b"12", b"34", b"5"), SILENCE)
    with store.get("o") as reader:
        assert isinstance(reader, ObjectReader)
        assert (reader.info.name, repr(reader)) == ("o", "<ObjectReader of o: 0 of 5 bytes>")
        assert reader.read(1) == b"1"
        assert list(reader) == [b"2", b"34", b"5"]
        assert reader.read() == b""
    _, store = make(info, created(NAME, 3), chunks(b"12", b"34", b"5"), SILENCE)
    reader = store.get("o")
    reader.close()
    with pytest.raises(InvalidState):
        next(reader)


def test_a_watch():
    rows = [info_json("a"), info_json("b"), info_json("c"), info_json("d")]
    comes = [
        delivery(
            "$O.b.M." + token(row["name"]), json.dumps(row).encode(), number + 1, 3 - number, NAME
        )
        for number, row in enumerate(rows)
    ]
    _, store = make(listed("a", "b"), created(NAME, 2), comes, SILENCE)
    with store.watch() as watcher:
        assert isinstance(watcher, ObjectWatcher)
        assert repr(watcher) == "<ObjectWatcher of b>"
        assert not watcher.initialized
        assert watcher.next_initial().name == "a"
        initial = watcher.initial()
        assert isinstance(initial, InitialObjects)
        assert [info.name for info in initial] == ["b"]
        assert watcher.initialized
        assert next(watcher).name == "c"
        assert watcher.next(timeout=1.0).name == "d"
        assert not watcher.closed
    assert watcher.closed
    assert list(watcher) == []
    assert watcher.events.inner is watcher.inner.events


def test_the_rest():
    _, store = make(direct(info_json()), stream())
    assert store.get_info("o").name == "o"
    assert store.status().size == 99
