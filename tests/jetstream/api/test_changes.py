from __future__ import annotations

import pytest

from jetstream.api.changes import differences, merge
from jetstream.config import ConsumerConfig, StreamConfig
from natsproto.errors import InvalidValue

STREAM = {
    "name": "S",
    "subjects": ["s.>"],
    "max_age": 0,
    "max_msgs": 9,
    "duplicate_window": 120 * 10**9,
    "from_the_future": 1,
}
CONSUMER = {"durable_name": "C", "ack_policy": "explicit", "ack_wait": 30 * 10**9}
SECOND = 10**9

# fmt: off
MERGED = [  # kind, what exists, keywords, what changes
    (StreamConfig, STREAM, {}, {}),
    (StreamConfig, STREAM, {"max_msgs": 5}, {"max_msgs": 5}),
    (StreamConfig, STREAM, {"max_msgs": 0, "subjects": []}, {"max_msgs": 0, "subjects": []}),
    (StreamConfig, STREAM, {"max_age": 60}, {"max_age": 60 * SECOND, "duplicate_window": 0}),
    (StreamConfig, STREAM | {"max_age": 7 * SECOND, "duplicate_window": 7 * SECOND},
     {"max_age": 60}, {"max_age": 60 * SECOND, "duplicate_window": 0}),
    (StreamConfig, STREAM | {"duplicate_window": 7 * SECOND},
     {"max_age": 60}, {"max_age": 60 * SECOND}),
    (StreamConfig, STREAM, {"max_age": 60, "duplicate_window": 5},
     {"max_age": 60 * SECOND, "duplicate_window": 5 * SECOND}),
    (ConsumerConfig, CONSUMER, {"max_deliver": 3}, {"max_deliver": 3}),
    (ConsumerConfig, CONSUMER, {"backoff": [1, 2]},
     {"backoff": [SECOND, 2 * SECOND], "ack_wait": SECOND}),
    (ConsumerConfig, CONSUMER, {"backoff": []}, {"backoff": []}),
    (ConsumerConfig, CONSUMER, {"backoff": [1, 2], "ack_wait": 4},
     {"backoff": [SECOND, 2 * SECOND], "ack_wait": 4 * SECOND}),
    (ConsumerConfig, CONSUMER | {"filter_subject": "a"}, {"filter_subjects": ["b", "c"]},
     {"filter_subject": "", "filter_subjects": ["b", "c"]}),
    (ConsumerConfig, CONSUMER | {"filter_subjects": ["b", "c"]}, {"filter_subject": "a"},
     {"filter_subject": "a", "filter_subjects": []}),
    (ConsumerConfig, CONSUMER | {"filter_subjects": ["b"]}, {"filter_subject": ""},
     {"filter_subject": ""}),
    (ConsumerConfig, CONSUMER, {"filter_subject": "a", "filter_subjects": ["b"]},
     {"filter_subject": "a", "filter_subjects": ["b"]}),
]
# fmt: on


@pytest.mark.rule("D-CALL-16")
@pytest.mark.parametrize(("kind", "there", "fields", "changed"), MERGED)
def test_keywords_change_only_these_fields(kind, there, fields, changed):
    found = kind.from_json(there)
    assert merge(found, fields).to_json() == {**there, **changed}
    assert found.to_json() == there


@pytest.mark.rule("D-CALL-16")
def test_invalid_values_are_rejected():
    with pytest.raises(InvalidValue):
        merge(StreamConfig.from_json(STREAM), {"max_msgs": "many"})
    with pytest.raises(InvalidValue):
        merge(StreamConfig.from_json(STREAM), {"max_msg": 5})


# What a server makes of a configuration that has nothing but a name.
FILLED = {
    "name": "S", "subjects": ["S"], "retention": "limits", "max_consumers": -1, "max_msgs": -1,
    "max_bytes": -1, "max_age": 0, "max_msgs_per_subject": -1, "max_msg_size": -1,
    "discard": "old", "storage": "file", "num_replicas": 1, "duplicate_window": 120 * SECOND,
    "compression": "none", "consumer_limits": {}, "metadata": {"_nats.level": "0"},
}  # fmt: skip
MADE = {
    "durable_name": "C", "name": "C", "ack_policy": "explicit", "ack_wait": 30 * SECOND,
    "max_deliver": -1, "max_waiting": 512, "max_ack_pending": 1000, "num_replicas": 0,
    "metadata": {"_nats.ver": "2.15.1"}, "pause_until": "2030-01-02T03:04:05Z",
}  # fmt: skip

# fmt: off
DIFFERENT = [  # wanted, existing, expected texts
    (StreamConfig(name="S"), FILLED, []),
    (StreamConfig(name="S", max_msgs=0, max_bytes=-1, num_replicas=1), FILLED, []),
    (StreamConfig(name="S", metadata={}), FILLED, []),
    (StreamConfig(name="S", max_age=7),
     FILLED | {"max_age": 7 * SECOND, "duplicate_window": 7 * SECOND}, []),
    (StreamConfig(name="S", max_age=60), FILLED, ["max_age is 0.0, not 60.0"]),
    (StreamConfig(name="S"), FILLED | {"max_age": 60 * SECOND}, ["max_age is 60.0, not 0.0"]),
    (StreamConfig(name="S", num_replicas=3), FILLED, ["num_replicas is 1, not 3"]),
    (StreamConfig(name="S", subjects=["a"]), FILLED, ["subjects is ['S'], not ['a']"]),
    (StreamConfig(name="S"), FILLED | {"subjects": ["a"]}, ["subjects is ['a'], not []"]),
    (StreamConfig(name="S", storage="memory", metadata={"a": "b"}), FILLED,
     ["storage is 'file', not 'memory'", "metadata is {'_nats.level': '0'}, not {'a': 'b'}"]),
    (StreamConfig(name="S", description="d" * 200), FILLED,
     ["description is '', not '" + "d" * 79 + "... (200 characters)"]),
    (ConsumerConfig(durable_name="C"), MADE, []),
    (ConsumerConfig(name="C", ack_wait=30, max_deliver=-1), MADE, []),
    (ConsumerConfig(name="C", ack_wait=7), MADE, ["ack_wait is 30.0, not 7.0"]),
    (ConsumerConfig(name="C", filter_subject="a"), MADE, ["filter_subject is '', not 'a'"]),
    (ConsumerConfig(name="C"), MADE | {"max_deliver": 3}, ["max_deliver is 3, not 0"]),
]
# fmt: on


@pytest.mark.rule("D-CALL-17")
@pytest.mark.parametrize(("wanted", "there", "texts"), DIFFERENT)
def test_differences(wanted, there, texts):
    assert differences(wanted, type(wanted).from_json(there)) == texts
