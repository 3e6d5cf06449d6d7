"""The calls of JetStream that are about buckets: each leads to one of Buckets."""

from __future__ import annotations

import pytest

from jetstream.kv import KeyValue, KeyValueConfig, KeyValueStatus
from tests.jetstream.buckets import check_call
from tests.jetstream.kvs import stream

CALLS = [
    # call, arguments, keywords; answer; endpoint; what it gives
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
