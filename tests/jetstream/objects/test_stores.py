"""How buckets of objects are made, found and listed, on a server that is scripted."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.errors import (
    BucketNotFound,
)
from jetstream.objects import ObjectStore, ObjectStoreConfig, ObjectStoreStatus
from jetstream.objects.stores import ObjectStores
from natsproto.errors import InvalidName, InvalidValue, NotSupported
from tests.jetstream.buckets import NOT_MADE, check_not_made
from tests.jetstream.object_stores import NO_STREAM, stream
from tests.jetstream.support import Stage


def make(*answers, **info):
    stage = Stage(*answers, **info)
    js = JetStream(stage.client)
    return stage, ObjectStores(js, js._api)


@pytest.mark.rule("OBJ-7")
@pytest.mark.parametrize(
    ("call", "verb"),
    [("create", "CREATE"), ("update", "UPDATE"), ("create_or_update", "UPDATE")],
)
def test_make(call, verb):
    before = [] if call == "create" else [stream()]
    stage, stores = make(*before, stream(), *before, stream())
    store = stage.run(getattr(stores, call)(ObjectStoreConfig(bucket="b"), {}))
    assert isinstance(store, ObjectStore)
    assert store.bucket == "b"
    stage.run(getattr(stores, call)(ObjectStoreConfig(bucket="x", ttl=60), {"bucket": "b"}))
    asked = stage.asked
    assert [subject for subject, _ in asked if ".INFO." in subject] == [
        "$JS.API.STREAM.INFO.OBJ_b"
    ] * 2 * len(before)
    [(first, body), (second, other)] = [each for each in asked if ".INFO." not in each[0]]
    assert first == second == "$JS.API.STREAM.%s.OBJ_b" % verb
    assert body["subjects"] == ["$O.b.C.>", "$O.b.M.>"]
    assert (other["name"], other["max_age"]) == ("OBJ_b", 60 * 10**9)


@pytest.mark.rule("OBJ-7")
@pytest.mark.parametrize(("call", "answers", "error", "also"), NOT_MADE)
def test_not_made(call, answers, error, also):
    check_not_made(*make(*answers), call, error, also)


@pytest.mark.rule("OBJ-6")
@pytest.mark.parametrize("given", [{"bucket": "b"}, "b", 7])
def test_what_is_no_configuration(given):
    stage, stores = make()
    with pytest.raises(InvalidValue, match="is not of type ObjectStoreConfig"):
        stage.run(stores.create(given, {}))
    assert stage.quiet()


@pytest.mark.rule("OBJ-5")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"compression": True}, "compression needs server 2.10; this is 2.9.10"),
        ({"metadata": {"a": "b"}}, "metadata needs server 2.10"),
    ],
)
def test_old_servers(fields, text):
    stage, stores = make(version="2.9.10", api_lvl=0)
    with pytest.raises(NotSupported, match=text):
        stage.run(stores.create(None, {"bucket": "b", **fields}))
    assert stage.quiet()


@pytest.mark.rule("OBJ-7")
def test_find_and_delete():
    stage, stores = make(stream(), NO_STREAM, {"success": True}, NO_STREAM)
    assert stage.run(stores.find("b")).bucket == "b"
    with pytest.raises(BucketNotFound):
        stage.run(stores.find("b"))
    stage.run(stores.delete("b"))
    with pytest.raises(BucketNotFound):
        stage.run(stores.delete("b"))
    verbs = ["INFO"] * 2 + ["DELETE"] * 2
    assert stage.asked == [("$JS.API.STREAM.%s.OBJ_b" % verb, None) for verb in verbs]


@pytest.mark.rule("OBJ-1")
@pytest.mark.parametrize("call", ["find", "delete"])
def test_no_names(call):
    stage, stores = make()
    with pytest.raises(InvalidName):
        stage.run(getattr(stores, call)("a.b"))
    assert stage.quiet()


@pytest.mark.rule("OBJ-8")
def test_lists():
    names = ["OBJ_a", "ORDERS", "KV_k", "OBJ_m"]
    infos = [stream("a"), {"config": {"name": "ORDERS"}}, stream("m", mirror={"name": "OBJ_a"})]
    stage, stores = make({"streams": names, "total": 4}, {"streams": infos, "total": 3})
    assert stage.run(stores.names()) == ["a", "m"]
    found = stage.run(stores.statuses())
    assert [type(status) for status in found] == [ObjectStoreStatus] * 2
    assert [status.bucket for status in found] == ["a", "m"]
