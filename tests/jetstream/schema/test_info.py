"""Answers of a real nats-server 2.15.1, shortened."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import InvalidResponse
from jetstream.schema.info import (
    AccountInfo,
    ApiStats,
    ClusterInfo,
    ConsumerInfo,
    ConsumerPause,
    LostData,
    PubAck,
    StreamAlternate,
    StreamInfo,
    Tier,
)
from jetstream.schema.timestamp import Timestamp

STREAM = """
{"type":"io.nats.jetstream.api.v1.stream_info_response","total":3,"offset":0,"limit":100000,
"config":{"name":"S","subjects":["s.\\u003e"],"retention":"limits","max_consumers":-1,"max_msgs":-1,
"max_bytes":-1,"max_age":1000000000000,"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old",
"storage":"file","num_replicas":1,"duplicate_window":120000000000,"compression":"none",
"allow_direct":false,"mirror_direct":false,"sealed":false,"deny_delete":false,"deny_purge":false,
"allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false,
"metadata":{"_nats.level":"5","_nats.req.level":"0","_nats.ver":"2.15.1"}},
"created":"2026-11-16T03:51:43.076997835Z",
"state":{"messages":3,"bytes":102,"first_seq":1,"first_ts":"2026-11-16T03:51:43.081425552Z",
"last_seq":4,"last_ts":"2026-11-16T03:51:43.082818342Z","num_subjects":3,
"subjects":{"s.0":1,"s.2":1,"s.3":1},"num_deleted":1,"deleted":[2],
"lost":{"msgs":[7],"bytes":9},"consumer_count":0},
"cluster":{"name":"test","raft_group":"S-R3F-6RfRHeab","leader":"s3"},
"mirror":{"name":"O","lag":0,"active":-1},
"alternates":[{"name":"S","cluster":"test"}],
"ts":"2026-11-16T03:51:43.08614848Z"}
"""
CONSUMER = """
{"type":"io.nats.jetstream.api.v1.consumer_reset_response","stream_name":"S","name":"c",
"created":"2026-11-16T03:51:43.087090107Z","config":{"name":"c","deliver_policy":"all",
"ack_policy":"explicit","ack_wait":30000000000,"max_deliver":-1,"replay_policy":"instant",
"max_waiting":512,"max_ack_pending":1000,"inactive_threshold":5000000000,"num_replicas":0,
"pause_until":"2100-01-01T00:00:00Z","priority_groups":["g"],"priority_policy":"pinned_client",
"priority_timeout":120000000000},"delivered":{"consumer_seq":0,"stream_seq":2},
"ack_floor":{"consumer_seq":0,"stream_seq":2},"num_ack_pending":0,"num_redelivered":0,
"num_waiting":0,"num_pending":2,"paused":true,"pause_remaining":2307643696908050420,
"ts":"2026-11-16T03:51:43.091948959Z",
"priority_groups":[{"group":"g","pinned_ts":"0001-01-01T00:00:00Z"}],"reset_seq":3}
"""
ACCOUNT = """
{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"storage":102,
"reserved_memory":0,"reserved_storage":0,"streams":3,"consumers":1,"limits":{"max_memory":-1,
"max_storage":-1,"max_streams":-1,"max_consumers":-1,"max_ack_pending":-1,
"memory_max_stream_bytes":-1,"storage_max_stream_bytes":-1,"max_bytes_required":false},
"domain":"hub","api":{"level":5,"total":12,"errors":0},
"tiers":{"R1":{"memory":5,"limits":{"max_memory":9}}}}
"""


def test_stream():
    info = StreamInfo.from_json(json.loads(STREAM))
    assert info.extra == {}
    assert info.config.name == "S"
    assert info.config.subjects == ["s.>"]
    assert info.config.max_age == 1000.0
    assert info.created == Timestamp.parse("2026-11-16T03:51:43.076997835Z")
    assert (info.state.messages, info.state.first_seq, info.state.last_seq) == (3, 1, 4)
    assert info.state.subjects == {"s.0": 1, "s.2": 1, "s.3": 1}
    assert info.state.deleted == [2]
    assert info.state.lost == LostData(msgs=[7], bytes=9)
    assert (info.total, info.offset, info.limit, info.did_create) == (3, 0, 100000, False)
    assert info.cluster == ClusterInfo(name="test", leader="s3", raft_group="S-R3F-6RfRHeab")
    assert info.mirror.active < 0
    assert info.alternates == [StreamAlternate(name="S", cluster="test")]
    assert info.sources == []


@pytest.mark.rule("TIME-4", "JSAPI-1")
def test_consumer():
    info = ConsumerInfo.from_json(json.loads(CONSUMER))
    assert info.extra == {}
    assert (info.stream_name, info.name, info.num_pending, info.reset_seq) == ("S", "c", 2, 3)
    assert info.config.ack_wait == 30.0
    assert str(info.config.pause_until) == "2100-01-01T00:00:00Z"
    assert info.delivered.stream_seq == 2
    assert info.ack_floor.last_active is None
    assert info.priority_groups[0].group == "g"
    assert info.priority_groups[0].pinned_ts is None
    assert info.cluster is None
    assert info.to_json()["pause_remaining"] == 2307643696908050420


def test_account():
    info = AccountInfo.from_json(json.loads(ACCOUNT))
    assert info.extra == {}
    assert (info.storage, info.streams, info.domain) == (102, 3, "hub")
    assert info.limits.max_streams == -1
    assert info.api == ApiStats(level=5, total=12)
    assert info.tiers == {"R1": Tier(memory=5, limits={"max_memory": 9})}


def test_pause():
    raw = {"paused": True, "pause_until": "2100-01-01T00:00:00Z", "pause_remaining": 5 * 10**9}
    pause = ConsumerPause.from_json(raw)
    assert (pause.paused, pause.pause_remaining) == (True, 5.0)
    assert ConsumerPause.from_json({"paused": False, "pause_until": "0001-01-01T00:00:00Z"}) == (
        ConsumerPause()
    )


ACKS = [
    ({"stream": "S", "seq": 1}, PubAck(stream="S", seq=1)),
    (
        {"stream": "S", "seq": 18446744073709551615, "duplicate": True, "domain": "hub"},
        PubAck(stream="S", seq=2**64 - 1, duplicate=True, domain="hub"),
    ),
    ({"stream": "S", "seq": 4, "val": "-12"}, PubAck(stream="S", seq=4, val="-12")),
    (
        {"stream": "S", "seq": 9, "batch": "b", "count": 3},
        PubAck(stream="S", seq=9, batch="b", count=3),
    ),
]


@pytest.mark.rule("JSAPI-8")
@pytest.mark.parametrize(("raw", "ack"), ACKS)
def test_acks(raw, ack):
    assert PubAck.from_json(raw) == ack
    assert ack.to_json() == raw


@pytest.mark.rule("JSAPI-6")
def test_an_invalid_ack():
    with pytest.raises(InvalidResponse, match=r"PubAck\.seq: '1' is not a whole number"):
        PubAck.from_json({"stream": "S", "seq": "1"})


def test_missing_fields_are_zero():
    info = StreamInfo.from_json({})
    assert info.config.name == ""
    assert info.state.messages == 0
    assert info.cluster is None
    assert ConsumerInfo.from_json({}).config.ack_policy == "explicit"
