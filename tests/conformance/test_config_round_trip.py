"""A real nats-server accepts every field of a configuration and returns it unchanged.

It must reject every configuration that we reject before sending, and we must send all others.
"""

from __future__ import annotations

import contextlib
import json

import pytest

from jetstream.config import ConsumerConfig, StreamConfig, StreamSource
from jetstream.errors import ApiError, ConsumerNotFound, api_error
from jetstream.schema.fields import Fields
from jetstream.schema.info import AccountInfo, ConsumerInfo, StreamInfo
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.configs import (
    REFUSED_CONSUMERS,
    REFUSED_STREAMS,
    TAKEN_CONSUMERS,
    TAKEN_STREAMS,
    THEN,
    refused,
    source,
)

LATER = "2100-01-01T00:00:00.123456789Z"


class ApiClient:
    """Raw calls, so that nothing but the configuration is between us and the server."""

    def __init__(self, client) -> None:
        self.client = client

    def call(self, endpoint: str, body: object = None) -> dict:
        data = b"" if body is None else json.dumps(body).encode()
        reply = json.loads(self.client.request("$JS.API." + endpoint, data).data)
        if "error" in reply:
            raise api_error(reply["error"])
        return reply

    def put_stream(self, config: StreamConfig, verb: str = "CREATE") -> StreamInfo:
        # The server compares the two names; an unusual one is not part of the subject.
        name = config.name if config.name.isalnum() else "T"
        return StreamInfo.from_json(self.call(f"STREAM.{verb}.{name}", config.to_json()))

    def put_consumer(self, config: ConsumerConfig) -> ConsumerInfo:
        body = {"stream_name": "ORIGIN", "config": config.to_json()}
        # An unusual name is not part of the subject; the older endpoint has none.
        name = "." + config.name if config.name.isalnum() else ""
        return ConsumerInfo.from_json(self.call(f"CONSUMER.CREATE.ORIGIN{name}", body))


@pytest.fixture(scope="module")
def api():
    with Server(jetstream=True) as server, connect(server.url) as client:
        api = ApiClient(client)
        api.put_stream(StreamConfig(name="ORIGIN", subjects=["o", "p.>"]))
        yield api


@pytest.fixture
def clean(api):
    """Yield the API, with all streams but the first and all consumers removed afterwards."""
    yield api
    for name in api.call("STREAM.NAMES")["streams"]:
        if name != "ORIGIN":
            api.call(f"STREAM.DELETE.{name}")
    # A direct consumer does not appear in lists.
    for name in {"x", *api.call("CONSUMER.NAMES.ORIGIN")["consumers"]}:
        with contextlib.suppress(ConsumerNotFound):
            api.call(f"CONSUMER.DELETE.ORIGIN.{name}")


TRANSFORM = {"src": "o", "dest": "q"}
STREAM_FIELDS = {  # field: values that come back, and what else they need
    "name": [("T", {})],
    "description": [("é\n", {})],
    "subjects": [(["a.*", "b.>", "c"], {})],
    "retention": [("interest", {}), ("workqueue", {}), ("limits", {})],
    "max_consumers": [(5, {}), (-1, {})],
    "max_msgs": [(2**63 - 1, {})],
    "max_bytes": [(10**6, {})],
    "max_age": [(3600, {}), (0.1, {}), (86400.5, {})],
    "max_msgs_per_subject": [(7, {})],
    "max_msg_size": [(1024, {}), (2**31 - 1, {})],
    "discard": [("new", {}), ("old", {})],
    "storage": [("memory", {}), ("file", {})],
    "num_replicas": [(1, {})],
    "no_ack": [(True, {})],
    "duplicate_window": [(60.25, {})],
    "placement": [({"cluster": "c", "tags": ["a", "b"]}, {})],
    "mirror": [
        ({"name": "ORIGIN", "opt_start_seq": 2**64 - 1}, {}),
        ({"name": "ORIGIN", "opt_start_time": THEN}, {}),
        ({"name": "ORIGIN", "filter_subject": "o"}, {}),
        ({"name": "ORIGIN", "subject_transforms": [TRANSFORM]}, {}),
        ({"name": "ORIGIN", "external": {"api": "x.API", "deliver": "d"}}, {}),
        ({"name": "ORIGIN", "consumer": {"name": "c", "deliver_subject": "d"}}, {}),
    ],
    "sources": [([{"name": "ORIGIN", "subject_transforms": [TRANSFORM]}, {"name": "OTHER"}], {})],
    "compression": [("s2", {}), ("none", {})],
    "first_seq": [(2**63, {})],
    "subject_transform": [(TRANSFORM, {})],
    "republish": [({"src": "T", "dest": "r", "headers_only": True}, {})],
    "allow_direct": [(True, {})],
    "mirror_direct": [
        (True, {"mirror": StreamSource(name="O", external={"api": "x.API", "deliver": "d"})})
    ],
    "discard_new_per_subject": [(True, {"discard": "new", "max_msgs_per_subject": 1})],
    "sealed": [(False, {})],  # True: see below
    "deny_delete": [(True, {})],
    "deny_purge": [(True, {})],
    "allow_rollup_hdrs": [(True, {})],
    "consumer_limits": [({"inactive_threshold": 60, "max_ack_pending": 10}, {})],
    "allow_msg_ttl": [(True, {})],
    "subject_delete_marker_ttl": [(1.5, {})],
    "allow_msg_counter": [(True, {})],
    "allow_atomic": [(True, {})],
    "allow_msg_schedules": [(True, {})],
    "persist_mode": [("async", {})],
    "allow_batched": [(True, {})],
    "metadata": [({"k": "v", "é": ""}, {})],
}

PUSH = {"deliver_subject": "d"}
GROUPS = {"priority_groups": ["a", "b"]}
CONSUMER_FIELDS = {
    "durable_name": [("x", {})],
    "name": [("x", {})],
    "description": [("é\n", {})],
    "deliver_policy": [
        ("all", {}),
        ("last", {}),
        ("new", {}),
        ("by_start_sequence", {"opt_start_seq": 5}),
        ("by_start_time", {"opt_start_time": THEN}),
        ("last_per_subject", {"filter_subjects": [">"]}),
    ],
    "opt_start_seq": [(2**64 - 1, {"deliver_policy": "by_start_sequence"})],
    "opt_start_time": [(THEN, {"deliver_policy": "by_start_time"})],
    "ack_policy": [("explicit", {}), ("all", {}), ("none", {}), ("flow_control", PUSH)],
    "ack_wait": [(1.000000001, {})],
    "max_deliver": [(5, {}), (-1, {})],
    "backoff": [([0.5, 1, 86400.25], {})],
    "filter_subject": [("p.*", {})],
    "filter_subjects": [(["o", "p.>"], {})],
    "replay_policy": [("original", {}), ("instant", {})],
    "rate_limit_bps": [(2**40, PUSH)],
    "sample_freq": [("30", {}), ("30%", {})],
    "max_waiting": [(5, {})],
    "max_ack_pending": [(5, {}), (-1, {})],
    "flow_control": [(True, {**PUSH, "idle_heartbeat": 1})],
    "headers_only": [(True, {})],
    "max_batch": [(5, {})],
    "max_expires": [(2.5, {})],
    "max_bytes": [(1024, {})],
    "deliver_subject": [("d.e", {})],
    "deliver_group": [("g", PUSH)],
    "idle_heartbeat": [(0.1, PUSH)],
    "inactive_threshold": [(3600, {})],
    "num_replicas": [(1, {})],
    "mem_storage": [(True, {})],
    "direct": [(True, PUSH)],
    "sourcing": [(True, PUSH)],
    "metadata": [({"k": "v", "é": ""}, {})],
    "pause_until": [(LATER, {})],
    "priority_groups": [(["a", "b/_=-9"], {"priority_policy": "overflow"})],
    "priority_policy": [("overflow", GROUPS), ("pinned_client", GROUPS), ("prioritized", GROUPS)],
    "priority_timeout": [(90.5, {"priority_policy": "pinned_client", **GROUPS})],
}


def rows(table):
    return [(name, value, more) for name, row in table.items() for value, more in row]


@pytest.mark.rule("JSAPI-9")
def test_every_field_is_in_the_tables():
    assert list(STREAM_FIELDS) == [field.name for field in StreamConfig.FIELDS]
    assert list(CONSUMER_FIELDS) == [field.name for field in ConsumerConfig.FIELDS]


def same(sent: Fields, got: Fields, name: str) -> None:
    want, value = getattr(sent, name), getattr(got, name)
    if name == "metadata":  # the server adds its own
        value = {key: value[key] for key in value if not key.startswith("_nats.")}
    assert value == want
    # A newer server has no fields that are unknown here, either.
    assert got.extra == {}


@pytest.mark.rule("JSAPI-1", "JSAPI-8", "JSAPI-9", "STREAM-11")
@pytest.mark.parametrize(("name", "value", "more"), rows(STREAM_FIELDS))
def test_stream_field_round_trips(clean, name, value, more):
    config = StreamConfig(**{"name": "T", name: value, **more})
    config.check()
    created = clean.put_stream(config)
    info = StreamInfo.from_json(clean.call("STREAM.INFO.T"))
    for answer in (created, info):
        assert answer.extra == {}
        same(config, answer.config, name)
    # The server accepts the configuration that it returned, and changes nothing.
    again = clean.put_stream(info.config, "UPDATE")
    assert again.config == info.config


@pytest.mark.rule("JSAPI-9")
def test_a_stream_is_sealed_by_an_update(clean):
    config = clean.put_stream(StreamConfig(name="T")).config
    config.sealed = True
    assert clean.put_stream(config, "UPDATE").config.sealed


@pytest.mark.rule("JSAPI-1", "JSAPI-8", "JSAPI-9")
@pytest.mark.parametrize(("name", "value", "more"), rows(CONSUMER_FIELDS))
def test_consumer_field_round_trips(clean, name, value, more):
    config = ConsumerConfig(**{"name": "x", name: value, **more})
    config.check()
    created = clean.put_consumer(config)
    info = ConsumerInfo.from_json(clean.call("CONSUMER.INFO.ORIGIN.x"))
    for answer in (created, info):
        assert answer.extra == {}
        same(config, answer.config, name)
    again = clean.put_consumer(info.config)
    assert again.config == info.config


@pytest.mark.parametrize(("rule", "config"), refused(REFUSED_STREAMS))
def test_the_server_also_rejects_the_stream(clean, rule, config):
    with pytest.raises(ApiError):
        clean.put_stream(StreamConfig(**{"name": "T", **config}))


@pytest.mark.parametrize(("rule", "config"), refused(REFUSED_CONSUMERS))
def test_the_server_also_rejects_the_consumer(clean, rule, config):
    with pytest.raises(ApiError):
        clean.put_consumer(ConsumerConfig(**{"name": config.get("durable_name", "x"), **config}))


@pytest.mark.parametrize("config", TAKEN_STREAMS)
def test_the_server_accepts_the_stream(clean, config):
    clean.put_stream(StreamConfig(**{"name": "T", **config}))


@pytest.mark.parametrize("config", TAKEN_CONSUMERS)
def test_the_server_accepts_the_consumer(clean, config):
    clean.put_consumer(ConsumerConfig(**{"name": "x", **config}))


@pytest.mark.rule("CONS-24")
def test_the_default_ack_policy_of_the_server_differs(clean):
    reply = clean.call(
        "CONSUMER.CREATE.ORIGIN.x", {"stream_name": "ORIGIN", "config": {"name": "x"}}
    )
    assert reply["config"]["ack_policy"] == "none"
    assert clean.put_consumer(ConsumerConfig(name="y")).config.ack_policy == "explicit"


@pytest.mark.rule("JSAPI-2", "TIME-4")
def test_every_field_of_an_info_is_known(clean):
    clean.put_stream(StreamConfig(name="T", mirror=source()))
    clean.put_consumer(
        ConsumerConfig(name="x", priority_policy="pinned_client", priority_groups=["g"])
    )
    for _ in range(3):
        clean.client.request("o", b"x")
    clean.call("STREAM.MSG.DELETE.ORIGIN", {"seq": 2})
    body = {"subjects_filter": ">", "deleted_details": True}
    infos = [
        StreamInfo.from_json(clean.call("STREAM.INFO.ORIGIN", body)),
        StreamInfo.from_json(clean.call("STREAM.INFO.T")),
        ConsumerInfo.from_json(clean.call("CONSUMER.INFO.ORIGIN.x")),
        AccountInfo.from_json(clean.call("INFO")),
    ]
    unknown = []
    pending: list[object] = list(infos)
    while pending:
        value = pending.pop()
        if isinstance(value, Fields):
            unknown += [(type(value).__name__, key) for key in value.extra]
            pending += [getattr(value, field.name) for field in value.FIELDS]
        elif isinstance(value, list):
            pending += value
    assert unknown == []
    assert infos[0].state.deleted == [2]
    assert infos[2].priority_groups[0].pinned_ts is None
