from __future__ import annotations

import pytest

from jetstream.ordered.config import ordered_push_config
from natsproto.errors import InvalidSubject, InvalidValue
from tests.jetstream.ordered_handles import config

CONFIGS = [  # options, settings besides the defaults
    ({}, {}),
    ({"filter_subjects": "a.>"}, {"filter_subject": "a.>"}),
    ({"filter_subjects": ["a.>"]}, {"filter_subject": "a.>"}),
    ({"filter_subjects": ("a", "b")}, {"filter_subjects": ["a", "b"]}),
    ({"deliver_policy": "new"}, {"deliver_policy": "new"}),
    (
        {"deliver_policy": "last_per_subject"},
        {"deliver_policy": "last_per_subject", "filter_subject": ">"},
    ),
    (
        {"deliver_policy": "last_per_subject", "filter_subjects": "a"},
        {"deliver_policy": "last_per_subject", "filter_subject": "a"},
    ),
    (
        {"deliver_policy": "by_start_sequence", "opt_start_seq": 7},
        {"deliver_policy": "by_start_sequence", "opt_start_seq": 7},
    ),
    (
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T00:00:00Z"},
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T00:00:00Z"},
    ),
    ({"replay_policy": "original"}, {"replay_policy": "original"}),
    ({"headers_only": True}, {"headers_only": True}),
    ({"inactive_threshold": 2}, {"inactive_threshold": 2_000_000_000}),
    ({"metadata": {"a": "b"}}, {"metadata": {"a": "b"}}),
]


@pytest.mark.rule("ORDERED-1")
@pytest.mark.rule("ORDERED-20")
@pytest.mark.parametrize(("options", "fields"), CONFIGS)
def test_config(options, fields):
    body = config(**options).to_json()
    assert body.pop("ack_policy") == "none"
    assert body.pop("mem_storage") is True
    assert body.pop("num_replicas") == 1
    if "inactive_threshold" not in fields:
        assert body.pop("inactive_threshold") == 300 * 10**9
    assert body == {"deliver_policy": "all", "replay_policy": "instant", **fields}


@pytest.mark.rule("ORDERED-18")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"filter_subjects": []}, InvalidValue),
        ({"filter_subjects": ""}, InvalidValue),
        ({"filter_subjects": 5}, InvalidValue),
        ({"filter_subjects": {"a": 1}}, InvalidValue),
        ({"filter_subjects": ["a", 5]}, InvalidValue),
        ({"metadata": ["a"]}, InvalidValue),
        ({"headers_only": "no"}, InvalidValue),
        ({"filter_subjects": "a..b"}, InvalidSubject),
        ({"filter_subjects": ["a", "b c"]}, InvalidSubject),
        ({"deliver_policy": "by_start_sequence"}, InvalidValue),
        ({"deliver_policy": "by_start_time"}, InvalidValue),
        ({"deliver_policy": "whenever"}, InvalidValue),
        ({"opt_start_seq": 5}, InvalidValue),
        ({"opt_start_time": "2026-01-01T00:00:00Z"}, InvalidValue),
        ({"opt_start_time": "yesterday"}, InvalidValue),
        ({"deliver_policy": "new", "opt_start_seq": 5}, InvalidValue),
        ({"inactive_threshold": 0}, InvalidValue),
        ({"inactive_threshold": "5m"}, InvalidValue),
    ],
)
def test_refused_options(options, error):
    with pytest.raises(error):
        config(**options)


@pytest.mark.rule("ORDPUSH-1")
def test_push_config():
    config = {"deliver_policy": "new", "ack_policy": "explicit", "ack_wait": 1}
    assert ordered_push_config(config) == {
        "deliver_policy": "new",
        "flow_control": True,
        "idle_heartbeat": 5_000_000_000,
        "ack_policy": "none",
        "ack_wait": 79_200_000_000_000,
        "max_deliver": 1,
        "mem_storage": True,
        "num_replicas": 1,
    }
    assert ordered_push_config({}, 0.5)["idle_heartbeat"] == 500_000_000
    assert config["ack_wait"] == 1
