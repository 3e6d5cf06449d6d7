from __future__ import annotations

import pytest

from jetstream.objects.config import ObjectStoreConfig, ObjectStoreStatus
from jetstream.schema.info import StreamInfo
from natsproto.errors import InvalidName, InvalidValue, LocalError

ALWAYS = {
    "name": "OBJ_b",
    "subjects": ["$O.b.C.>", "$O.b.M.>"],
    "discard": "new",
    "storage": "file",
    "allow_rollup_hdrs": True,
    "allow_direct": True,
}
ALL = {
    "description": "d",
    "ttl": 60.0,
    "max_bytes": 1000,
    "storage": "memory",
    "replicas": 3,
    "placement": {"cluster": "c"},
    "compression": True,
    "metadata": {"k": "v"},
}
IN_STREAM = {
    "description": "d",
    "max_age": 60 * 10**9,
    "max_bytes": 1000,
    "storage": "memory",
    "num_replicas": 3,
    "placement": {"cluster": "c"},
    "compression": "s2",
    "metadata": {"k": "v"},
}


@pytest.mark.rule("OBJ-4", "OBJ-5")
@pytest.mark.parametrize(
    ("fields", "more"),
    [({}, {}), (ALL, IN_STREAM), ({"max_bytes": -1, "compression": False}, {"max_bytes": -1})],
)
def test_configuration_of_the_stream(fields, more):
    stream = ObjectStoreConfig(bucket="b", **fields).to_stream()
    assert stream.to_json() == {**ALWAYS, **more}
    stream.check()


@pytest.mark.rule("OBJ-1", "OBJ-5")
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, InvalidName),
        ({"bucket": "a.b"}, InvalidName),
        ({"bucket": "b", "ttl": 0.05}, InvalidValue),
    ],
)
def test_invalid_configurations(fields, error):
    for call in (ObjectStoreConfig.check, ObjectStoreConfig.to_stream):
        with pytest.raises(error) as caught:
            call(ObjectStoreConfig(**fields))
        assert isinstance(caught.value, LocalError)


@pytest.mark.rule("D-OBJ-6")
@pytest.mark.parametrize("fields", [{}, ALL])
def test_configuration_of_the_stream_is_read_back(fields):
    stream = ObjectStoreConfig(bucket="b", **fields).to_stream()
    found = ObjectStoreConfig.of_stream(stream)
    assert found == ObjectStoreConfig(bucket="b", **fields)
    assert found.to_stream().to_json() == stream.to_json()


def test_status():
    config = {**ALWAYS, **IN_STREAM, "sealed": True}
    info = StreamInfo.from_json({"config": config, "state": {"bytes": 99}})
    status = ObjectStoreStatus(info)
    assert repr(status) == "<ObjectStoreStatus of b: 99 bytes>"
    assert (status.bucket, status.description, status.ttl) == ("b", "d", 60.0)
    assert (status.storage, status.replicas, status.size) == ("memory", 3, 99)
    assert (status.sealed, status.is_compressed) == (True, True)
    assert (status.backing_store, status.metadata) == ("JetStream", {"k": "v"})
    assert status.config == ObjectStoreConfig(bucket="b", **ALL)
    assert status.stream_info is info
