"""How buckets are made, found and listed, on a server that is scripted."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.errors import (
    BucketNotFound,
    NotABucket,
)
from jetstream.kv import KeyValue, KeyValueConfig, KeyValueStatus
from jetstream.kv.buckets import Buckets
from natsproto.errors import InvalidName, InvalidValue, NotSupported
from tests.jetstream.buckets import NOT_MADE, check_not_made
from tests.jetstream.kvs import NO_STREAM, stream
from tests.jetstream.support import Stage


def make(*answers, **info):
    stage = Stage(*answers, **info)
    js = JetStream(stage.client)
    return stage, Buckets(js, js._api)


@pytest.mark.rule("KV-15")
@pytest.mark.parametrize(
    ("call", "verb"),
    [("create", "CREATE"), ("update", "UPDATE"), ("create_or_update", "UPDATE")],
)
def test_make(call, verb):
    before = [] if call == "create" else [stream()]
    stage, buckets = make(*before, stream(), *before, stream())
    kv = stage.run(getattr(buckets, call)(KeyValueConfig(bucket="b", history=5), {}))
    assert isinstance(kv, KeyValue)
    assert kv.bucket == "b"
    kv = stage.run(getattr(buckets, call)(KeyValueConfig(bucket="x", ttl=60), {"bucket": "b"}))
    asked = stage.asked
    assert [subject for subject, _ in asked if ".INFO." in subject] == [
        "$JS.API.STREAM.INFO.KV_b"
    ] * 2 * len(before)
    [(first, body), (second, other)] = [each for each in asked if ".INFO." not in each[0]]
    assert first == second == "$JS.API.STREAM.%s.KV_b" % verb
    assert (body["subjects"], body["max_msgs_per_subject"]) == (["$KV.b.>"], 5)
    assert (other["name"], other["max_age"]) == ("KV_b", 60 * 10**9)


@pytest.mark.rule("KV-15")
@pytest.mark.parametrize(("call", "answers", "error", "also"), NOT_MADE)
def test_not_made(call, answers, error, also):
    check_not_made(*make(*answers), call, error, also)


@pytest.mark.rule("KV-14")
@pytest.mark.parametrize("given", [{"bucket": "b"}, "b", 7])
def test_what_is_no_configuration(given):
    stage, buckets = make()
    with pytest.raises(InvalidValue, match="is not of type KeyValueConfig"):
        stage.run(buckets.create(given, {}))
    assert stage.quiet()


@pytest.mark.rule("KV-9")
@pytest.mark.parametrize(("level", "fine"), [(0, False), (1, True)])
def test_limit_markers_need_a_level(level, fine):
    stage, buckets = make({"api": {"level": level}}, stream())
    call = buckets.create(None, {"bucket": "b", "limit_marker_ttl": 60})
    if fine:
        stage.run(call)
        assert [subject for subject, _ in stage.asked] == [
            "$JS.API.INFO",
            "$JS.API.STREAM.CREATE.KV_b",
        ]
    else:
        with pytest.raises(NotSupported, match="limit_marker_ttl needs JetStream API level 1"):
            stage.run(call)
        assert stage.asked == [("$JS.API.INFO", None)]


@pytest.mark.rule("KV-10")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"compression": True}, "compression needs server 2.10; this is 2.9.10"),
        ({"metadata": {"a": "b"}}, "metadata needs server 2.10"),
        ({"sources": [{"name": "a"}]}, "sources needs server 2.10"),
        ({"limit_marker_ttl": 60}, "limit_marker_ttl needs server 2.11"),
    ],
)
def test_old_servers(fields, text):
    stage, buckets = make(version="2.9.10", api_lvl=0)
    with pytest.raises(NotSupported, match=text):
        stage.run(buckets.create(None, {"bucket": "b", **fields}))
    assert stage.quiet()


@pytest.mark.rule("KV-15", "KV-16")
def test_find():
    stage, buckets = make(stream(), NO_STREAM, stream(max_msgs_per_subject=-1))
    assert stage.run(buckets.find("b")).bucket == "b"
    with pytest.raises(BucketNotFound):
        stage.run(buckets.find("b"))
    with pytest.raises(NotABucket):
        stage.run(buckets.find("b"))
    assert stage.asked == [("$JS.API.STREAM.INFO.KV_b", None)] * 3


@pytest.mark.rule("KV-15")
def test_delete():
    stage, buckets = make({"success": True}, NO_STREAM)
    stage.run(buckets.delete("b"))
    with pytest.raises(BucketNotFound):
        stage.run(buckets.delete("b"))
    assert stage.asked == [("$JS.API.STREAM.DELETE.KV_b", None)] * 2


@pytest.mark.rule("KV-1")
@pytest.mark.parametrize("call", ["find", "delete"])
def test_no_names(call):
    stage, buckets = make()
    with pytest.raises(InvalidName):
        stage.run(getattr(buckets, call)("a.b"))
    assert stage.quiet()


@pytest.mark.rule("KV-17")
def test_lists():
    names = ["KV_a", "ORDERS", "KV_m"]
    infos = [stream("a"), {"config": {"name": "ORDERS"}}, stream("m", mirror={"name": "KV_a"})]
    stage, buckets = make({"streams": names, "total": 3}, {"streams": infos, "total": 3})
    assert stage.run(buckets.names()) == ["a", "m"]
    found = stage.run(buckets.statuses())
    assert [type(status) for status in found] == [KeyValueStatus] * 2
    assert [status.bucket for status in found] == ["a", "m"]
