"""Answers of a real nats-server 2.15.1, shortened."""

from __future__ import annotations

import json

from jetstream.schema.account_info import AccountInfo, ApiStats, Tier

ACCOUNT = """
{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"storage":102,
"reserved_memory":0,"reserved_storage":0,"streams":3,"consumers":1,"limits":{"max_memory":-1,
"max_storage":-1,"max_streams":-1,"max_consumers":-1,"max_ack_pending":-1,
"memory_max_stream_bytes":-1,"storage_max_stream_bytes":-1,"max_bytes_required":false},
"domain":"hub","api":{"level":5,"total":12,"errors":0},
"tiers":{"R1":{"memory":5,"limits":{"max_memory":9}}}}
"""


def test_account():
    info = AccountInfo.from_json(json.loads(ACCOUNT))
    assert info.extra == {}
    assert (info.storage, info.streams, info.domain) == (102, 3, "hub")
    assert info.limits.max_streams == -1
    assert info.api == ApiStats(level=5, total=12)
    assert info.tiers == {"R1": Tier(memory=5, limits={"max_memory": 9})}
