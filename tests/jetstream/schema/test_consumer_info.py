"""Answers of a real nats-server 2.15.1, shortened."""

from __future__ import annotations

import json

import pytest

from jetstream.schema.consumer_info import ConsumerInfo, ConsumerPause

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


def test_pause():
    raw = {"paused": True, "pause_until": "2100-01-01T00:00:00Z", "pause_remaining": 5 * 10**9}
    pause = ConsumerPause.from_json(raw)
    assert (pause.paused, pause.pause_remaining) == (True, 5.0)
    assert ConsumerPause.from_json({"paused": False, "pause_until": "0001-01-01T00:00:00Z"}) == (
        ConsumerPause()
    )


def test_missing_fields_are_zero():
    assert ConsumerInfo.from_json({}).config.ack_policy == "explicit"
