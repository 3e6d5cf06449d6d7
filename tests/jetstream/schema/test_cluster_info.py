"""An answer of a real nats-server 2.15.1, shortened."""

from __future__ import annotations

import json

from jetstream.schema.cluster_info import (
    ClusterInfo,
    DesiredCluster,
    MoveOrigin,
    MoveStatus,
    PeerInfo,
)
from jetstream.schema.timestamp import Timestamp

CLUSTER = """
{"name":"test","raft_group":"S-R3F-6RfRHeab","leader":"s3",
"leader_since":"2026-11-16T03:51:43.544075743Z","system_account":true,"traffic_account":"$SYS",
"replicas":[{"name":"s1","current":true,"active":67806,"peer":"k2My6qdB"},
{"name":"s2","current":false,"active":0,"lag":1,"peer":"noC8kOtg"}],
"desired":{"created":"2026-11-16T03:51:44.66335399Z","name":"test","origin":{"replicas":3}}}
"""


def test_a_cluster_that_changes():
    info = ClusterInfo.from_json(json.loads(CLUSTER))
    assert (info.name, info.leader, info.system_account) == ("test", "s3", True)
    assert info.leader_since == Timestamp.parse("2026-11-16T03:51:43.544075743Z")
    assert info.replicas == [
        PeerInfo(name="s1", current=True, active=67806e-9, peer="k2My6qdB"),
        PeerInfo(name="s2", lag=1, peer="noC8kOtg"),
    ]
    assert isinstance(info.desired, DesiredCluster)
    assert info.desired.origin == MoveOrigin(replicas=3)
    assert (info.desired.status, info.desired.extra, info.extra) == (None, {}, {})
    assert info.to_json() == json.loads(CLUSTER)


def test_a_move_that_waits():
    status = {"description": "catching up", "type": "peers", "err": "no space"}
    assert DesiredCluster.from_json({"status": status}).status == MoveStatus(**status)
