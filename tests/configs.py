"""Configurations that are rejected before they are sent, and similar ones that are accepted.

tests/jetstream checks them with the machines, and tests/conformance with a real server, which must
reject and accept the same ones. Values are keywords, so times are in seconds.
"""

from __future__ import annotations

import pytest

from jetstream.config import (
    ConsumerLimits,
    ExternalStream,
    Placement,
    Republish,
    SourceConsumer,
    StreamSource,
    SubjectTransform,
)
from jetstream.schema.timestamp import Timestamp

THEN = Timestamp.parse("2024-01-02T03:04:05.678901234Z")
ORIGIN = StreamSource(name="ORIGIN")
BY_CONSUMER = SourceConsumer(name="c", deliver_subject="d")
ELSEWHERE = ExternalStream(api="x.API")
BAD_TRANSFORM = SubjectTransform(src="a..b", dest="c")


def source(**values: object) -> StreamSource:
    """Return a source of the stream that the tests have."""
    return StreamSource(name="ORIGIN", **values)


def refused(table: list[tuple[str, dict[str, object]]]) -> list[object]:
    """Return parameters for a test, each with its rules: the rule in the error, and the config."""
    return [
        pytest.param(rules.split()[-1], config, marks=pytest.mark.rule(*rules.split()))
        for rules, config in table
    ]


REFUSED_STREAMS = [  # our rule and the rule it repeats, if any; config without the name
    ("STREAM-1 SUBJ-7", {"name": ""}),
    ("STREAM-1 SUBJ-7", {"name": "a.b"}),
    ("STREAM-1 SUBJ-7", {"name": "a b"}),
    ("STREAM-1 SUBJ-7", {"name": "x" * 256}),
    ("STREAM-2 SUBJ-1", {"subjects": ["a..b"]}),
    ("STREAM-2 SUBJ-1", {"subjects": [".a"]}),
    ("STREAM-2 SUBJ-3", {"subjects": ["a.>.b"]}),
    ("STREAM-2 SUBJ-4", {"subjects": [""]}),
    ("STREAM-2 SUBJ-4", {"subjects": ["a b"]}),
    ("STREAM-2 SUBJ-1", {"subject_transform": BAD_TRANSFORM}),
    ("STREAM-2 SUBJ-1", {"republish": Republish(src="a..b", dest="r")}),
    ("STREAM-3", {"description": "x" * 4097}),
    ("STREAM-3", {"description": "é" * 2049}),
    ("STREAM-4", {"metadata": {"é": "x" * 131071}}),
    ("STREAM-5", {"num_replicas": 6}),
    ("STREAM-5", {"num_replicas": -1}),
    ("STREAM-6", {"max_age": 0.099}),
    ("STREAM-7", {"duplicate_window": 0.099}),
    ("STREAM-7", {"duplicate_window": 2, "max_age": 1}),
    ("STREAM-8", {"deny_purge": True, "allow_rollup_hdrs": True}),
    ("STREAM-9", {"allow_msg_counter": True, "discard": "new"}),
    ("STREAM-9", {"allow_msg_counter": True, "retention": "interest"}),
    ("STREAM-9", {"allow_msg_counter": True, "allow_msg_ttl": True}),
    ("STREAM-9", {"allow_msg_counter": True, "allow_msg_schedules": True}),
    ("STREAM-10", {"discard_new_per_subject": True, "max_msgs_per_subject": 1}),
    ("STREAM-10", {"discard_new_per_subject": True, "discard": "new"}),
    ("STREAM-11", {"subject_delete_marker_ttl": 0.999}),
    ("STREAM-12", {"allow_msg_schedules": True, "discard": "new"}),
    ("STREAM-12", {"allow_msg_schedules": True, "sources": [ORIGIN]}),
    ("STREAM-13", {"persist_mode": "async", "storage": "memory"}),
    ("STREAM-13", {"persist_mode": "async", "num_replicas": 3}),
    ("STREAM-13", {"persist_mode": "async", "allow_atomic": True}),
    ("STREAM-14", {"mirror": ORIGIN, "subjects": ["a"]}),
    ("STREAM-14", {"mirror": ORIGIN, "sources": [ORIGIN]}),
    ("STREAM-14", {"mirror": ORIGIN, "first_seq": 5}),
    ("STREAM-14", {"mirror": ORIGIN, "allow_msg_counter": True}),
    ("STREAM-14", {"mirror": ORIGIN, "allow_atomic": True}),
    ("STREAM-14", {"mirror": ORIGIN, "allow_batched": True}),
    ("STREAM-14", {"mirror": ORIGIN, "allow_msg_schedules": True}),
    ("STREAM-14", {"mirror": ORIGIN, "subject_delete_marker_ttl": 1}),
    ("STREAM-15", {"mirror_direct": True}),
    ("STREAM-16", {"placement": Placement(preferred="s1")}),
    ("STREAM-17 SUBJ-8", {"mirror": StreamSource(name="")}),
    ("STREAM-17 SUBJ-8", {"mirror": StreamSource(name="a.b")}),
    ("STREAM-17 SUBJ-8", {"sources": [StreamSource(name="a b")]}),
    (
        "STREAM-17 SUBJ-8",
        {"sources": [StreamSource(name="a b", external=ELSEWHERE)]},
    ),
    ("STREAM-2 SUBJ-1", {"mirror": source(filter_subject="a..b")}),
    ("STREAM-2 SUBJ-1", {"sources": [source(filter_subject="a..b")]}),
    (
        "STREAM-2 SUBJ-1",
        {"sources": [source(subject_transforms=[BAD_TRANSFORM])]},
    ),
    (
        "STREAM-18",
        {"mirror": source(filter_subject="o", subject_transforms=[SubjectTransform(src="o")])},
    ),
    (
        "STREAM-18",
        {"sources": [source(filter_subject="o", subject_transforms=[SubjectTransform(src="o")])]},
    ),
    ("STREAM-19", {"mirror": source(consumer=BY_CONSUMER, opt_start_seq=5)}),
    ("STREAM-19", {"mirror": source(consumer=BY_CONSUMER, opt_start_time=THEN)}),
    ("STREAM-19", {"sources": [source(consumer=BY_CONSUMER, filter_subject="o")]}),
    ("STREAM-19 SUBJ-8", {"mirror": source(consumer=SourceConsumer(name="", deliver_subject="d"))}),
    ("STREAM-19 SUBJ-4", {"mirror": source(consumer=SourceConsumer(name="c", deliver_subject=""))}),
    (
        "STREAM-19 SUBJ-2",
        {"sources": [source(consumer=SourceConsumer(name="c", deliver_subject="d.*"))]},
    ),
    ("STREAM-20 SUBJ-2", {"mirror": source(external=ExternalStream(api="x.*", deliver="d"))}),
    (
        "STREAM-20 SUBJ-2",
        {"sources": [source(external=ExternalStream(api="x.API", deliver="d.>"))]},
    ),
]

TAKEN_STREAMS = [  # config without the name
    {},
    {"description": "x" * 4096},
    {"metadata": {"k": "x" * 131000}},
    {"subjects": ["taken.*.>", "foo*"]},
    {"subjects": []},
    {"num_replicas": 0},
    {"max_msgs": -5, "max_bytes": -1, "max_msg_size": -1, "max_consumers": 0},
    {"max_age": 0.1},
    {"max_age": 1},
    {"duplicate_window": 0.1},
    {"duplicate_window": 1, "max_age": 1},
    {"deny_purge": True},
    {"allow_msg_counter": True},
    {"discard_new_per_subject": True, "discard": "new", "max_msgs_per_subject": 1},
    {"subject_delete_marker_ttl": 1, "deny_purge": True},
    {"allow_msg_schedules": True, "deny_purge": True},
    {"persist_mode": "async", "allow_batched": True},
    {"mirror": ORIGIN, "retention": "workqueue", "allow_direct": True, "deny_delete": True},
    {"mirror": ORIGIN, "allow_msg_ttl": True, "duplicate_window": 1},
    {"mirror": source(opt_start_seq=5, opt_start_time=THEN)},
    {"mirror": source(consumer=BY_CONSUMER)},
    {"mirror": StreamSource(name="a b", external=ExternalStream(api="x.API", deliver="d"))},
    {"mirror": source(external=ExternalStream(api="", deliver=""))},
    {"mirror": source(subject_transforms=[SubjectTransform(src="o", dest="")])},
    {"sources": [source(filter_subject="a"), source(filter_subject="b")]},
    {"sources": [source(subject_transforms=[SubjectTransform(src="", dest="p.>")])]},
    {"sources": [source(consumer=BY_CONSUMER)], "retention": "workqueue"},
    {"placement": Placement(cluster="c", tags=["a"])},
    {"subject_transform": SubjectTransform(src="", dest="p.>")},
    {"republish": Republish(src="taken", dest="")},
    {"storage": "memory", "compression": "s2"},
    {"consumer_limits": ConsumerLimits(max_ack_pending=-1)},
    {"no_ack": True, "allow_atomic": True},
]

PUSH = {"deliver_subject": "d"}
GROUP = {"priority_policy": "overflow", "priority_groups": ["a"]}
REFUSED_CONSUMERS = [  # as above
    ("CONS-1 SUBJ-7", {"name": "a.b"}),
    ("CONS-1 SUBJ-7", {"durable_name": "a b"}),
    ("CONS-2", {"description": "x" * 4097}),
    ("CONS-3", {"metadata": {"é": "x" * 131071}}),
    ("CONS-4", {"durable_name": "a", "name": "b"}),
    ("CONS-5", {"filter_subject": "o", "filter_subjects": ["o"]}),
    ("CONS-6 SUBJ-4", {"filter_subjects": [""]}),
    ("CONS-6 SUBJ-1", {"filter_subjects": ["o", "a..b"]}),
    ("CONS-6 SUBJ-1", {"filter_subject": "a..b"}),
    ("CONS-6 SUBJ-4", {"filter_subject": "a b"}),
    ("CONS-7", {"opt_start_seq": 5}),
    ("CONS-7", {"deliver_policy": "last", "opt_start_seq": 5}),
    ("CONS-7", {"deliver_policy": "new", "opt_start_seq": 5}),
    ("CONS-7", {"deliver_policy": "by_start_sequence"}),
    ("CONS-7", {"deliver_policy": "by_start_time", "opt_start_seq": 5, "opt_start_time": THEN}),
    ("CONS-8", {"opt_start_time": THEN}),
    ("CONS-8", {"deliver_policy": "last", "opt_start_time": THEN}),
    ("CONS-8", {"deliver_policy": "new", "opt_start_time": THEN}),
    ("CONS-8", {"deliver_policy": "by_start_time"}),
    ("CONS-8", {"deliver_policy": "by_start_sequence", "opt_start_seq": 5, "opt_start_time": THEN}),
    ("CONS-9", {"deliver_policy": "last_per_subject"}),
    ("CONS-10 SUBJ-2", {"deliver_subject": "d.*"}),
    ("CONS-10 SUBJ-1", {"deliver_subject": "d..x"}),
    ("CONS-10 SUBJ-4", {"deliver_subject": "d x"}),
    ("CONS-11", {**PUSH, "max_waiting": 5}),
    ("CONS-12", {**PUSH, "ack_policy": "none", "max_ack_pending": 5}),
    ("CONS-13", {**PUSH, "idle_heartbeat": 0.099}),
    ("CONS-13", {"idle_heartbeat": 1}),
    ("CONS-14", {"flow_control": True}),
    ("CONS-14", {**PUSH, "flow_control": True}),
    ("CONS-15", {"rate_limit_bps": 1000}),
    ("CONS-16", {"max_expires": 0.0009}),
    ("CONS-17", {"backoff": [1, 2], "max_deliver": 1}),
    *[
        ("CONS-18", {"sample_freq": text})
        for text in ["x", "-1", "30.5", "%", "+", " 30", "30%%", "1_0", "٣"]
    ],
    ("CONS-19", {"num_replicas": -1}),
    ("CONS-19", {"num_replicas": 6}),
    ("CONS-20", {"priority_groups": ["a"]}),
    ("CONS-20", {"priority_policy": "overflow"}),
    ("CONS-20", {"priority_timeout": 1}),
    *[
        ("CONS-21", {**GROUP, "priority_groups": [name]})
        for name in ["", "a b", "a\n", "é", "x" * 17]
    ],
    ("CONS-22", {**GROUP, **PUSH}),
    ("CONS-23", {"ack_policy": "flow_control"}),
    ("CONS-23", {**PUSH, "ack_policy": "flow_control", "max_ack_pending": -1}),
    ("CONS-23", {**PUSH, "ack_policy": "flow_control", "ack_wait": 1}),
    ("CONS-23", {**PUSH, "ack_policy": "flow_control", "backoff": [1]}),
    ("CONS-23", {**PUSH, "ack_policy": "flow_control", "max_deliver": 3}),
]

TAKEN_CONSUMERS = [
    {},
    {"durable_name": "x", "name": "x"},
    {"description": "x" * 4096},
    {"metadata": {"k": "x" * 131000}},
    {"filter_subject": "zzz"},
    {"filter_subjects": ["o", "p.>"]},
    {"deliver_policy": "by_start_sequence", "opt_start_seq": 5},
    {"deliver_policy": "by_start_time", "opt_start_time": THEN},
    {"deliver_policy": "last_per_subject", "filter_subject": "o"},
    {"deliver_policy": "last_per_subject", "filter_subjects": [">"]},
    {"backoff": [1, 2]},
    {"backoff": [1, 2], "max_deliver": 2},
    {"backoff": [0], "max_deliver": -2},
    {"ack_policy": "none", "max_ack_pending": 5, "ack_wait": 1, "max_deliver": 3},
    *[{"sample_freq": text} for text in ["0", "30", "30%", "+30", "00030", "101"]],
    {**PUSH, "max_waiting": -5, "max_batch": 5, "max_expires": 0.0001, "max_bytes": 5},
    {**PUSH, "ack_policy": "none", "max_ack_pending": -1},
    {**PUSH, "deliver_group": "g", "idle_heartbeat": 0.1, "flow_control": True},
    {**PUSH, "rate_limit_bps": 1},
    {"deliver_group": "g"},
    {"max_waiting": -5, "max_batch": -5, "max_bytes": -5, "max_deliver": -5},
    {"max_expires": 0.001},
    {**GROUP, "priority_groups": ["a/_=-9", "x" * 16], "priority_timeout": 1},
    {"priority_policy": "pinned_client", "priority_groups": ["a"], "priority_timeout": 1},
    {"priority_policy": "prioritized", "priority_groups": ["a", "a"]},
    {**PUSH, "ack_policy": "flow_control"},
    {**PUSH, "ack_policy": "flow_control", "idle_heartbeat": 0.01, "flow_control": False},
    {**PUSH, "ack_policy": "flow_control", "flow_control": True, "max_ack_pending": 5},
    {"num_replicas": 1, "mem_storage": True, "headers_only": True, "replay_policy": "original"},
]
