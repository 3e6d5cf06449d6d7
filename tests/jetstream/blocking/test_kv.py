"""The facades of the key-value store behave like their inner objects."""

from __future__ import annotations

import pytest

from jetstream import kv
from jetstream.blocking import JetStream
from jetstream.blocking.kv import InitialEntries, KeyLister, KeyValue, KeyWatcher
from jetstream.events import ConsumerReset
from jetstream.kv import watch as kv_watch
from natsproto.errors import InvalidState
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.kvs import TIME, created, direct, entry, stream, there
from tests.jetstream.support import SILENCE, Stage, Status

TWINS = [
    (kv.KeyValue, KeyValue),
    (kv_watch.KeyWatcher, KeyWatcher),
    (kv_watch.KeyLister, KeyLister),
    (kv_watch.InitialEntries, InitialEntries),
]


@pytest.mark.rule("D-CALL-14")
@pytest.mark.parametrize(("cls", "twin"), TWINS)
def test_they_are_twins(cls, twin):
    check_twins(cls, twin)


def make(*answers):
    stage = Stage(stream(), *answers)
    bucket = JetStream(stage.blocking).key_value("b")
    assert isinstance(bucket, KeyValue)
    assert (bucket.bucket, repr(bucket)) == ("b", "<KeyValue b>")
    return stage, bucket


def test_a_bucket():
    _, bucket = make({"stream": "KV_b", "seq": 7}, direct("a", 7))
    assert bucket.put("a", b"v") == 7
    assert bucket.get("a").value == b"v"


@pytest.mark.rule("KVCODEC-1")
def test_a_bucket_with_codecs():
    _, bucket = make(direct("YSBi", 7, b"dg"))
    coded = bucket.with_codecs(keys=kv.Base64Codec(), values=kv.Base64Codec())
    assert isinstance(coded, KeyValue)
    assert coded.get("a b").value == b"v"


def test_a_watch():
    comes = [entry("a", 3, 1, 1), entry("c", 4, 2, 0), entry("a", 5, 3, 0), entry("a", 6, 4, 0)]
    stage, bucket = make(there(2, 4), created(2), comes, SILENCE)
    with bucket.watch() as watcher:
        assert isinstance(watcher, KeyWatcher)
        assert (str(watcher.began), repr(watcher)) == (TIME, "<KeyWatcher of b>")
        assert not watcher.initialized
        assert watcher.next_initial().key == "a"
        initial = watcher.initial()
        assert isinstance(initial, InitialEntries)
        assert [each.key for each in initial] == ["c"]
        assert watcher.initialized
        assert next(watcher).revision == 5
        assert watcher.next(timeout=1.0).revision == 6
        assert not watcher.closed
    assert watcher.closed
    assert list(watcher) == []
    with pytest.raises(InvalidState):
        watcher.next()
    assert stage.answers == [SILENCE]


def test_events_of_a_watch():
    _, bucket = make(
        there(0), created(), Status("409 Consumer Deleted"), SILENCE, created(0, 2), SILENCE
    )
    with bucket.watch_all() as watcher:
        assert isinstance(next(watcher.events), ConsumerReset)


def test_keys():
    comes = [entry("a", 3, 1, 1), entry("c", 4, 2, 0)]
    _, bucket = make(there(2), created(2), comes, SILENCE)
    with bucket.list_keys() as lister:
        assert isinstance(lister, KeyLister)
        assert list(lister) == ["a", "c"]
        lister.stop()
