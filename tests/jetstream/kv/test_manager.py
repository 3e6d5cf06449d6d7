"""KeyValueManager, by way of the calls of JetStream, on a scripted server."""

from __future__ import annotations

import pytest

from jetstream import JetStream
from jetstream.errors import NotABucket
from jetstream.kv import KeyValue, KeyValueConfig, KeyValueStatus
from natsproto.errors import NotSupported
from tests.jetstream.buckets import check_call
from tests.jetstream.kvs import stream
from tests.jetstream.support import Stage

CALLS = [
    # call, arguments, keywords; answer; endpoint; the result
    ("create_key_value", (), {"bucket": "b"}, stream(), "STREAM.CREATE.KV_b", KeyValue),
    (
        "create_key_value",
        (KeyValueConfig(bucket="b"),),
        {"history": 5},
        stream(),
        "STREAM.CREATE.KV_b",
        KeyValue,
    ),
    ("update_key_value", (), {"bucket": "b"}, stream(), "STREAM.UPDATE.KV_b", KeyValue),
    ("create_or_update_key_value", (), {"bucket": "b"}, stream(), "STREAM.UPDATE.KV_b", KeyValue),
    ("key_value", ("b",), {}, stream(), "STREAM.INFO.KV_b", KeyValue),
    ("delete_key_value", ("b",), {}, {"success": True}, "STREAM.DELETE.KV_b", type(None)),
    ("key_value_names", (), {}, {"streams": ["KV_b"], "total": 1}, "STREAM.NAMES", list),
    ("key_values", (), {}, {"streams": [stream()], "total": 1}, "STREAM.LIST", list),
]


@pytest.mark.rule("KV-15")
@pytest.mark.parametrize(("call", "args", "keywords", "answer", "endpoint", "gives"), CALLS)
def test_each_call(call, args, keywords, answer, endpoint, gives):
    check_call(call, args, keywords, answer, endpoint, gives, KeyValueStatus)


@pytest.mark.rule("KV-9")
@pytest.mark.parametrize(("level", "fine"), [(0, False), (1, True)])
def test_limit_markers_need_an_api_level(level, fine):
    stage = Stage({"api": {"level": level}}, stream())
    call = JetStream(stage.client).create_key_value(bucket="b", limit_marker_ttl=60)
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
        ({"sources": [{"name": "a"}]}, "sources needs server 2.10"),
        ({"limit_marker_ttl": 60}, "limit_marker_ttl needs server 2.11"),
    ],
)
def test_old_servers(fields, text):
    stage = Stage(version="2.9.10", api_lvl=0)
    with pytest.raises(NotSupported, match=text):
        stage.run(JetStream(stage.client).create_key_value(bucket="b", **fields))
    assert stage.quiet()


@pytest.mark.rule("KV-16")
def test_a_stream_without_history_is_not_a_bucket():
    stage = Stage(stream(max_msgs_per_subject=-1))
    with pytest.raises(NotABucket):
        stage.run(JetStream(stage.client).key_value("b"))
    assert stage.asked == [("$JS.API.STREAM.INFO.KV_b", None)]
