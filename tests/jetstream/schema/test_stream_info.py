"""Answers of a real nats-server 2.15.1, shortened."""

from __future__ import annotations

import json

from jetstream.schema.cluster_info import ClusterInfo
from jetstream.schema.stream_info import LostData, StreamAlternate, StreamInfo
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


def test_missing_fields_are_zero():
    info = StreamInfo.from_json({})
    assert info.config.name == ""
    assert info.state.messages == 0
    assert info.cluster is None
