from __future__ import annotations

import pytest

from jetstream.config import StreamSource
from jetstream.kv.config import KeyValueConfig, KeyValueStatus
from jetstream.schema.info import StreamInfo
from natsproto.errors import InvalidName, InvalidValue, LocalError

ALWAYS = {
    "name": "KV_b",
    "subjects": ["$KV.b.>"],
    "max_msgs_per_subject": 1,
    "discard": "new",
    "storage": "file",
    "allow_rollup_hdrs": True,
    "deny_delete": True,
    "allow_direct": True,
    "duplicate_window": 120 * 10**9,
}
MOVED = {"src": "$KV.a.>", "dest": "$KV.b.>"}
OTHER = {"src": "events.>", "dest": "$KV.b.>"}

FIELDS = [
    # keywords, what is otherwise in the stream
    pytest.param({}, {}, marks=pytest.mark.rule("KV-5")),
    pytest.param({"history": 64}, {"max_msgs_per_subject": 64}, marks=pytest.mark.rule("KV-6")),
    ({"history": 0}, {}),
    pytest.param(
        {"ttl": 60.0},
        {"max_age": 60 * 10**9, "duplicate_window": 60 * 10**9},
        marks=pytest.mark.rule("KV-8"),
    ),
    ({"ttl": 120}, {"max_age": 120 * 10**9}),
    ({"ttl": 3600}, {"max_age": 3600 * 10**9}),
    pytest.param(
        {"limit_marker_ttl": 1},
        {"allow_msg_ttl": True, "subject_delete_marker_ttl": 10**9},
        marks=pytest.mark.rule("KV-9"),
    ),
    pytest.param(
        {
            "description": "d",
            "max_value_size": 10,
            "max_bytes": 1000,
            "storage": "memory",
            "replicas": 3,
            "placement": {"cluster": "c"},
            "republish": {"src": ">", "dest": "r.>"},
            "compression": True,
            "metadata": {"k": "v"},
        },
        {
            "description": "d",
            "max_msg_size": 10,
            "max_bytes": 1000,
            "storage": "memory",
            "num_replicas": 3,
            "placement": {"cluster": "c"},
            "republish": {"src": ">", "dest": "r.>"},
            "compression": "s2",
            "metadata": {"k": "v"},
        },
        marks=pytest.mark.rule("KV-10"),
    ),
    ({"storage": "file", "compression": False, "max_bytes": -1}, {"max_bytes": -1}),
    pytest.param(
        {"mirror": {"name": "a"}},
        {"mirror": {"name": "KV_a"}, "mirror_direct": True, "subjects": None},
        marks=pytest.mark.rule("KV-11"),
    ),
    (
        {"mirror": {"name": "KV_a", "external": {"api": "$JS.hub.API"}}},
        {
            "mirror": {"name": "KV_a", "external": {"api": "$JS.hub.API"}},
            "mirror_direct": True,
            "subjects": None,
        },
    ),
    pytest.param(
        {"sources": [{"name": "a"}, {"name": "KV_a"}]},
        {"sources": [{"name": "KV_a", "subject_transforms": [MOVED]}] * 2},
        marks=pytest.mark.rule("KV-12"),
    ),
    (
        {"sources": [{"name": "EVENTS", "subject_transforms": [OTHER]}]},
        {"sources": [{"name": "EVENTS", "subject_transforms": [OTHER]}]},
    ),
    (
        {"sources": [{"name": "b", "external": {"api": "x"}}]},
        {"sources": [{"name": "KV_b", "external": {"api": "x"}}]},
    ),
    (
        {"sources": [{"name": "a", "external": {"api": "x"}}]},
        {"sources": [{"name": "KV_a", "external": {"api": "x"}, "subject_transforms": [MOVED]}]},
    ),
]


@pytest.mark.rule("KV-7")
@pytest.mark.parametrize(("given", "otherwise"), FIELDS)
def test_the_stream_of_a_bucket(given, otherwise):
    stream = KeyValueConfig(bucket="b", **given).to_stream()
    stream.check()
    expected = {**ALWAYS, **otherwise}
    expected = {name: value for name, value in expected.items() if value is not None}
    assert stream.to_json() == expected


def test_the_given_configuration_is_not_modified():
    mirror, source = StreamSource(name="a"), StreamSource(name="a")
    KeyValueConfig(bucket="b", mirror=mirror).to_stream()
    KeyValueConfig(bucket="b", sources=[source]).to_stream()
    assert mirror == source == StreamSource(name="a")


WRONG = [
    # keywords, error, its rule
    ({}, InvalidName, "KV-1"),
    ({"bucket": "a.b"}, InvalidName, "KV-1"),
    ({"bucket": "b", "history": 65}, InvalidValue, "KV-6"),
    ({"bucket": "b", "history": -1}, InvalidValue, "KV-6"),
    ({"bucket": "b", "ttl": 0.05}, InvalidValue, "STREAM-6"),
    ({"bucket": "b", "limit_marker_ttl": 0.5}, InvalidValue, "KV-9"),
    ({"bucket": "b", "mirror": {"name": "a"}, "sources": [{"name": "c"}]}, InvalidValue, "KV-13"),
    ({"bucket": "b", "sources": [{"name": "c", "filter_subject": "x"}]}, InvalidValue, "KV-13"),
    ({"bucket": 7}, InvalidValue, "D-JSAPI-3"),
    ({"bucket": "b", "ttl": "1h"}, InvalidValue, "D-JSAPI-3"),
    ({"bucket": "b", "compression": "s2"}, InvalidValue, "D-JSAPI-3"),
    ({"bucket": "b", "storage": "disk"}, InvalidValue, "D-JSAPI-3"),
    ({"bucket": "b", "histroy": 2}, InvalidValue, "D-JSAPI-4"),
]


@pytest.mark.rule("KV-6", "KV-9", "KV-13")
@pytest.mark.parametrize(("given", "error", "rule"), WRONG)
def test_invalid_configurations(given, error, rule):
    with pytest.raises(error) as caught:
        KeyValueConfig(**given).to_stream()
    assert isinstance(caught.value, LocalError)
    assert caught.value.rule == rule


@pytest.mark.rule("KV-14")
@pytest.mark.parametrize(
    "given", [row.values[0] if hasattr(row, "values") else row[0] for row in FIELDS]
)
def test_configuration_of_the_stream_is_read_back(given):
    stream = KeyValueConfig(bucket="b", **given).to_stream()
    info = StreamInfo.from_json({"config": stream.to_json()})
    assert KeyValueStatus(info).config.to_stream() == stream


def test_status():
    config = {
        **ALWAYS,
        "max_msgs_per_subject": 5,
        "max_age": 60 * 10**9,
        "subject_delete_marker_ttl": 10**9,
        "compression": "s2",
        "storage": "memory",
        "metadata": {"k": "v"},
    }
    info = StreamInfo.from_json({"config": config, "state": {"messages": 3, "bytes": 99}})
    status = KeyValueStatus(info)
    assert (status.bucket, status.values, status.bytes) == ("b", 3, 99)
    assert (status.history, status.ttl, status.limit_marker_ttl) == (5, 60.0, 1.0)
    assert (status.is_compressed, status.backing_store) == (True, "JetStream")
    assert (status.metadata, status.stream_info) == ({"k": "v"}, info)
    assert repr(status) == "<KeyValueStatus of b: 3 values, 99 bytes>"
    assert (status.config.history, status.config.storage) == (5, "memory")
