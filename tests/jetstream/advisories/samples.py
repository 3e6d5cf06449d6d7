"""An event of each kind, as nats-server 2.15.1 sends it, except where a comment says otherwise."""

from __future__ import annotations

from typing import Any

HEAD = {"id": "oTVLhYPZO3NpXFnS5o5XLX", "timestamp": "2026-11-17T18:02:39.123456789Z"}
CLIENT = {
    "start": "2026-11-17T18:02:39.1Z",
    "host": "127.0.0.1",
    "id": 7,
    "acc": "$G",
    "name": "auditor",
    "lang": "python",
    "ver": "0.1.0",
    "rtt": 250000,
    "server": "s1",
    "cluster": "test",
    "kind": "Client",
    "client_type": "nats",
}
PEER = {"name": "s2", "current": True, "active": 1000000, "peer": "pv3AGgPw"}
STREAM = {"stream": "S"}
CONSUMER = {"stream": "S", "consumer": "c"}
TIMES = {"start": "2026-11-17T18:02:39.1Z", "end": "2026-11-17T18:02:39.2Z"}
SERVER = {"server": "s1", "server_id": "NC6ES", "cluster": "test"}
STATE = {
    "messages": 3,
    "bytes": 90,
    "first_seq": 1,
    "first_ts": "2026-11-17T18:02:39Z",
    "last_seq": 3,
    "last_ts": "2026-11-17T18:02:39Z",
    "consumer_count": 0,
}

STREAMS: dict[str, dict[str, Any]] = {
    "stream_action": {**STREAM, "action": "create"},
    "stream_leader_elected": {**STREAM, "leader": "s1", "replicas": [PEER], "account": "A"},
    "stream_quorum_lost": {**STREAM, "replicas": [PEER], "domain": "hub"},
    "stream_batch_abandoned": {**STREAM, "batch": "b1", "reason": "incomplete"},
    "snapshot_create": {**STREAM, "state": STATE, "client": CLIENT},
    "snapshot_complete": {**STREAM, **TIMES, "client": CLIENT, "error": "no flow response"},
    "restore_create": {**STREAM, "client": CLIENT},
    "restore_complete": {**STREAM, **TIMES, "bytes": 1024, "client": CLIENT},
}
CONSUMERS: dict[str, dict[str, Any]] = {
    "consumer_action": {**CONSUMER, "action": "delete"},
    "consumer_pause": {**CONSUMER, "paused": True, "pause_until": "2100-01-01T00:00:00Z"},
    "max_deliver": {**CONSUMER, "stream_seq": 3, "deliveries": 2},
    "terminated": {
        **CONSUMER,
        "consumer_seq": 1,
        "stream_seq": 1,
        "deliveries": 1,
        "reason": "cannot be parsed",
    },
    "nak": {**CONSUMER, "consumer_seq": 3, "stream_seq": 3, "deliveries": 1},
    "consumer_ack": {
        **CONSUMER,
        "consumer_seq": 2,
        "stream_seq": 2,
        "ack_time": 1250000,
        "deliveries": 1,
    },
    "consumer_group_pinned": {**CONSUMER, "group": "g", "pinned_id": "ruHq", "account": "$G"},
    "consumer_group_unpinned": {**CONSUMER, "group": "g", "reason": "admin", "account": "$G"},
    "consumer_leader_elected": {**CONSUMER, "leader": "s1", "replicas": [PEER]},
    "consumer_quorum_lost": {**CONSUMER, "replicas": [PEER]},
}
SERVERS: dict[str, dict[str, Any]] = {
    "api_audit": {
        "server": "s1",
        "client": CLIENT,
        "subject": "$JS.API.STREAM.INFO.S",
        "request": "{}",
        "response": '{"type":"io.nats.jetstream.api.v1.stream_info_response"}',
    },
    "api_limit_reached": {"server": "s1", "dropped": 1},
    # From the source of the server: only a full disk provokes it.
    "server_out_of_space": {**SERVER, "stream": "S"},
    "server_removed": SERVER,
    "meta_rescue": {**SERVER, "prev_quorum": 2, "new_quorum": 1},
    "domain_leader_elected": {"leader": "pv3AGgPw", "replicas": [PEER], "cluster": "test"},
}
EVERY = {**STREAMS, **CONSUMERS, **SERVERS}


def event(kind: str, **more: object) -> dict[str, Any]:
    """Return an event of this kind as JSON."""
    part = "metric" if kind == "consumer_ack" else "advisory"
    return {"type": f"io.nats.jetstream.{part}.v1.{kind}", **HEAD, **EVERY[kind], **more}


def check_fields(cls: Any, kind: str) -> None:
    """Check that the class knows every field that the server sends, and annotates its own."""
    raw = event(kind)
    found = cls.from_json(raw)
    assert found.extra == {}
    assert found.kind == kind
    assert found.to_json() == raw
    names = {field.name for field in found.FIELDS}
    assert names >= set(EVERY[kind])
    common = {"type", "id", "timestamp", "domain"}
    assert set(cls.__annotations__) - {"FIELDS"} == names - common
