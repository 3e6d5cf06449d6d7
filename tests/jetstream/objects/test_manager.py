"""ObjectStoreManager, by way of the calls of JetStream, on a scripted server."""

from __future__ import annotations

import pytest

from jetstream.objects import ObjectStore, ObjectStoreConfig, ObjectStoreStatus
from tests.jetstream.buckets import check_call
from tests.jetstream.object_stores import stream

CREATE, UPDATE = "STREAM.CREATE.OBJ_b", "STREAM.UPDATE.OBJ_b"
CONFIG = ObjectStoreConfig(bucket="b")
CALLS = [
    # call, arguments, keywords; answer; endpoint; the result
    ("create_object_store", (), {"bucket": "b"}, stream(), CREATE, ObjectStore),
    ("create_object_store", (CONFIG,), {"ttl": 5}, stream(), CREATE, ObjectStore),
    ("update_object_store", (), {"bucket": "b"}, stream(), UPDATE, ObjectStore),
    ("create_or_update_object_store", (), {"bucket": "b"}, stream(), UPDATE, ObjectStore),
    ("object_store", ("b",), {}, stream(), "STREAM.INFO.OBJ_b", ObjectStore),
    ("delete_object_store", ("b",), {}, {"success": True}, "STREAM.DELETE.OBJ_b", type(None)),
    ("object_store_names", (), {}, {"streams": ["OBJ_b"], "total": 1}, "STREAM.NAMES", list),
    ("object_stores", (), {}, {"streams": [stream()], "total": 1}, "STREAM.LIST", list),
]


@pytest.mark.rule("OBJ-7")
@pytest.mark.parametrize(("call", "args", "keywords", "answer", "endpoint", "gives"), CALLS)
def test_each_call(call, args, keywords, answer, endpoint, gives):
    check_call(call, args, keywords, answer, endpoint, gives, ObjectStoreStatus)
