from __future__ import annotations

import pickle

import pytest

from jetstream import errors
from jetstream.config import ConsumerConfig
from jetstream.errors import BindRefused, ConfigMismatch
from jetstream.schema.info import ConsumerInfo
from jetstream.subscribe.binding import bind, check_queue_use, given_names
from natsproto.errors import LocalError

PUSH = {"deliver_subject": "d", "ack_policy": "explicit"}
PULL = {"ack_policy": "explicit"}
QUEUE = {"deliver_group": "q", **PUSH}
SECOND = 10**9


def info(config, **state):
    """Return the info of a consumer."""
    made = {"stream_name": "S", "name": "c", "config": {"durable_name": "c", **config}, **state}
    return ConsumerInfo.from_json(made)


FIT = [  # the consumer, its state; the requested options; the subject to subscribe to
    (PUSH, {}, {}, "d"),
    (PUSH, {"push_bound": False}, {"subject": "s.a"}, "d"),
    (PULL, {}, {"pull": True}, ""),
    (PULL, {}, {"pull": True, "subject": "s.a"}, ""),
    (QUEUE, {}, {"queue": "q"}, "d"),
    (QUEUE, {"push_bound": True}, {"queue": "q"}, "d"),
    ({"filter_subject": "s.*", **PUSH}, {}, {"subject": "s.*"}, "d"),
    ({"filter_subject": "s.*", **PUSH}, {}, {}, "d"),
    ({"filter_subjects": ["s.*"], **PUSH}, {}, {"subject": "s.*"}, "d"),
]


@pytest.mark.rule("BIND-1", "BIND-2", "BIND-3", "BIND-4", "BIND-5", "BIND-6", "BIND-7")
@pytest.mark.parametrize(("config", "state", "asked", "target"), FIT)
def test_consumers_that_fit(config, state, asked, target):
    assert bind(info(config, **state), **asked) == target


UNFIT = [  # rule, error; the consumer, its state; the requested options; what is wanted and found
    ("BIND-1", "DuplicateSubscription", PUSH, {"push_bound": True}, {}, "", "d"),
    ("BIND-2", "QueueRequired", QUEUE, {}, {}, "", "q"),
    ("BIND-2", "QueueRequired", QUEUE, {"push_bound": True}, {}, "", "q"),
    ("BIND-3", "QueueMismatch", QUEUE, {}, {"queue": "p"}, "p", "q"),
    ("BIND-4", "QueueNotServed", PUSH, {}, {"queue": "q"}, "q", ""),
    ("BIND-4", "QueueNotServed", PUSH, {"push_bound": True}, {"queue": "q"}, "q", ""),
    (
        *("BIND-5", "SubjectMismatch", {"filter_subject": "s.a", **PUSH}, {}),
        *({"subject": "s.*"}, ["s.*"], ["s.a"]),
    ),
    (
        *("BIND-5", "SubjectMismatch", {"filter_subjects": ["s.b", "s.a"], **PULL}, {}),
        *({"subject": "s.a", "pull": True}, ["s.a"], ["s.a", "s.b"]),
    ),
    ("BIND-6", "PullOfPushConsumer", PUSH, {}, {"pull": True}, "", "d"),
    ("BIND-7", "PushOfPullConsumer", PULL, {}, {}, "", ""),
    ("BIND-7", "PushOfPullConsumer", PULL, {}, {"queue": "q"}, "", ""),
    (
        *("BIND-8", "FlowControlWithQueue"),
        *({"flow_control": True, "idle_heartbeat": SECOND, **QUEUE}, {}),
        *({"queue": "q"}, "q", True),
    ),
    (
        *("BIND-9", "HeartbeatWithQueue", {"idle_heartbeat": SECOND, **QUEUE}, {}),
        *({"queue": "q"}, "q", 1.0),
    ),
]


@pytest.mark.rule("BIND-1", "BIND-2", "BIND-3", "BIND-4", "BIND-5", "BIND-6", "BIND-7", "BIND-8")
@pytest.mark.rule("BIND-9")
@pytest.mark.parametrize(("rule", "name", "config", "state", "asked", "wanted", "found"), UNFIT)
def test_each_mismatch_has_its_own_error(rule, name, config, state, asked, wanted, found):
    with pytest.raises(BindRefused) as caught:
        bind(info(config, **state), **asked)
    error = caught.value
    assert (type(error).__name__, error.rule) == (name, rule)
    assert (error.stream, error.consumer) == ("S", "c")
    assert (error.wanted, error.found) == (wanted, found)
    assert isinstance(error, LocalError)


TEXTS = [
    (PUSH, {"push_bound": True}, {}, "consumer 'c' of stream 'S' has a subscriber already, on 'd'"),
    (QUEUE, {}, {}, "is for the queue group 'q': subscribe with queue='q'"),
    (QUEUE, {}, {"queue": "p"}, "is for the queue group 'q', not for 'p'"),
    (PUSH, {}, {"queue": "q"}, "is not for a queue group: subscribe without queue='q'"),
    ({"filter_subject": "a", **PUSH}, {}, {"subject": "b"}, "filters 'a', not 'b' (BIND-5)"),
    (PUSH, {}, {"config": ConsumerConfig(filter_subject="b")}, "filters nothing, not 'b'"),
    (PUSH, {}, {"pull": True}, "is a push consumer, which delivers to 'd': use subscribe"),
    (PULL, {}, {}, "is a pull consumer, without a deliver_subject: use pull_subscribe or fetch"),
    (PUSH, {}, {"config": ConsumerConfig(ack_wait=2.0)}, "has ack_wait=0.0, not 2.0 (BIND-10)"),
]


@pytest.mark.parametrize(("config", "state", "asked", "text"), TEXTS)
def test_error_texts(config, state, asked, text):
    with pytest.raises(BindRefused) as caught:
        bind(info(config, **state), **asked)
    assert text in str(caught.value)


FILTERS = [  # of the consumer; of the caller; fit
    ({"filter_subjects": ["b", "a"]}, {"filter_subjects": ["a", "b"]}, True),
    ({"filter_subject": "a"}, {"filter_subjects": ["a"]}, True),
    ({"filter_subjects": ["a"]}, {"filter_subject": "a"}, True),
    ({"filter_subjects": ["a"]}, {"filter_subjects": []}, True),
    ({"filter_subjects": ["a", "b"]}, {"filter_subjects": ["a"]}, False),
    ({}, {"filter_subjects": ["a"]}, False),
    ({}, {"filter_subject": "a"}, False),
]


@pytest.mark.rule("BIND-5")
@pytest.mark.parametrize(("found", "asked", "fit"), FILTERS)
def test_comparison_of_filters(found, asked, fit):
    try:
        bind(info({**PUSH, **found}), config=ConsumerConfig(**asked))
    except errors.SubjectMismatch:
        assert not fit
    else:
        assert fit


# The info of a consumer of nats-server 2.15.1 for which only deliver_subject was set.
PLAIN = {
    "durable_name": "c",
    "name": "c",
    "deliver_policy": "all",
    "ack_policy": "explicit",
    "ack_wait": 30 * SECOND,
    "max_deliver": -1,
    "replay_policy": "instant",
    "max_ack_pending": 1000,
    "deliver_subject": "d",
    "num_replicas": 0,
    "metadata": {"_nats.level": "5", "_nats.req.level": "0", "_nats.ver": "2.15.1"},
}
CLUSTER = {"cluster": {"name": "C", "leader": "a", "replicas": [{"name": "b"}, {"name": "c"}]}}

SAME = [  # other fields of the consumer; the requested options
    ({}, {}),
    ({}, {"durable_name": "c", "name": "c"}),
    ({}, {"ack_wait": 0.0, "max_ack_pending": 0, "num_replicas": 0, "inactive_threshold": 0}),
    ({}, {"ack_wait": 30, "max_ack_pending": 1000, "num_replicas": 1}),
    ({}, {"max_deliver": 0}),
    ({}, {"max_deliver": -3}),
    ({"max_deliver": -7}, {"max_deliver": -1}),
    ({"max_ack_pending": -5}, {"max_ack_pending": -1}),
    ({}, {"deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"}),
    ({}, {"headers_only": False, "description": "", "metadata": {}, "backoff": []}),
    ({}, {"deliver_subject": "d"}),
    ({"sample_freq": "30%"}, {"sample_freq": "30"}),
    ({"sample_freq": "+030"}, {"sample_freq": "30%"}),
    ({"metadata": {"_nats.ver": "2.15.1", "a": "b"}}, {"metadata": {"a": "b"}}),
    ({"ack_wait": SECOND, "backoff": [SECOND]}, {"ack_wait": 5.0, "backoff": [1.0]}),
    ({"backoff": [333_333_333]}, {"backoff": [1 / 3]}),
    (
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-02T03:04:05+02:00"},
        {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-02T01:04:05Z"},
    ),
    ({"pause_until": "2020-01-01T00:00:00Z"}, {"pause_until": "2030-01-01T00:00:00Z"}),
]


@pytest.mark.rule("BIND-10")
@pytest.mark.parametrize(("found", "asked"), SAME)
def test_equivalent_values(found, asked):
    assert bind(info({**PLAIN, **found}), config=ConsumerConfig(**asked)) == "d"


OTHER = [  # other fields of the consumer; the requested options; the field, wanted, found
    ({}, {"ack_wait": 31.0}, "ack_wait", 31.0, 30.0),
    ({"backoff": [SECOND], "ack_wait": SECOND}, {"ack_wait": 5.0}, "ack_wait", 5.0, 1.0),
    ({}, {"ack_wait": 1.0, "backoff": [1.0]}, "backoff", [1.0], []),
    ({}, {"max_deliver": 3}, "max_deliver", 3, -1),
    ({}, {"max_ack_pending": -1}, "max_ack_pending", -1, 1000),
    ({}, {"deliver_policy": "new"}, "deliver_policy", "new", "all"),
    ({}, {"ack_policy": "none", "ack_wait": 2.0}, "ack_policy", "none", "explicit"),
    ({}, {"replay_policy": "original"}, "replay_policy", "original", "instant"),
    ({}, {"num_replicas": 3}, "num_replicas", 3, 1),
    ({"num_replicas": 2}, {"num_replicas": 1}, "num_replicas", 1, 2),
    ({"headers_only": True}, {"headers_only": False}, "headers_only", False, True),
    ({}, {"idle_heartbeat": 1.0}, "idle_heartbeat", 1.0, 0.0),
    ({}, {"flow_control": True}, "flow_control", True, False),
    ({"sample_freq": "30%"}, {"sample_freq": "100"}, "sample_freq", "100", "30%"),
    ({}, {"sample_freq": "1"}, "sample_freq", "1", ""),
    ({}, {"deliver_subject": "e"}, "deliver_subject", "e", "d"),
    ({"durable_name": ""}, {"durable_name": "c"}, "durable_name", "c", ""),
    ({"description": "x"}, {"description": "y"}, "description", "y", "x"),
    ({}, {"rate_limit_bps": 9}, "rate_limit_bps", 9, 0),
    ({}, {"inactive_threshold": 9.0}, "inactive_threshold", 9.0, 0.0),
    ({}, {"mem_storage": True}, "mem_storage", True, False),
    ({}, {"opt_start_seq": 5}, "opt_start_seq", 5, 0),
]


@pytest.mark.rule("BIND-10")
@pytest.mark.parametrize(("found", "asked", "field", "wanted", "theirs"), OTHER)
def test_values_that_differ(found, asked, field, wanted, theirs):
    with pytest.raises(ConfigMismatch) as caught:
        bind(info({**PLAIN, **found}), config=ConsumerConfig(**asked))
    error = caught.value
    assert (error.field, error.wanted, error.found) == (field, wanted, theirs)
    assert f"{field}={theirs!r}, not {wanted!r}" in str(error)


@pytest.mark.rule("BIND-10")
def test_default_replicas_are_the_current_ones():
    clustered = info(PLAIN, **CLUSTER)
    assert bind(clustered, config=ConsumerConfig(num_replicas=3)) == "d"
    with pytest.raises(ConfigMismatch):
        bind(clustered, config=ConsumerConfig(num_replicas=1))


@pytest.mark.rule("BIND-10")
def test_only_given_fields_are_compared():
    config = ConsumerConfig.of(ConsumerConfig(max_deliver=-1), {})
    found = info({**PLAIN, "ack_policy": "none"})
    # A copy of a configuration includes all fields that are always written.
    with pytest.raises(ConfigMismatch):
        bind(found, config=config)
    assert bind(found, config=config, given=["max_deliver"]) == "d"


@pytest.mark.rule("BIND-10")
@pytest.mark.parametrize(
    ("config", "fields", "names"),
    [
        (None, {}, []),
        (None, {"max_deliver": 3, "opt_start_time": None}, ["max_deliver"]),
        (ConsumerConfig(ack_wait=3.0), {"max_deliver": 3}, ["max_deliver", "ack_wait"]),
        ({"ack_wait": 3, "opt_start_time": None}, {}, ["ack_wait"]),
    ],
)
def test_names_of_given_fields(config, fields, names):
    assert given_names(config, fields) == names


@pytest.mark.rule("BIND-8", "BIND-9")
def test_queue_use_is_checked_without_a_consumer():
    check_queue_use("", ConsumerConfig(flow_control=True, idle_heartbeat=1.0))
    check_queue_use("q", ConsumerConfig())
    with pytest.raises(errors.FlowControlWithQueue, match=r"'q'.*BIND-8"):
        check_queue_use("q", ConsumerConfig(flow_control=True, idle_heartbeat=1.0))
    with pytest.raises(errors.HeartbeatWithQueue, match=r"1\.0 s.*BIND-9") as caught:
        check_queue_use("q", ConsumerConfig(idle_heartbeat=1.0), "S", "c")
    assert (caught.value.stream, caught.value.consumer) == ("S", "c")


def test_errors_survive_a_pickle():
    with pytest.raises(ConfigMismatch) as caught:
        bind(info(PLAIN), config=ConsumerConfig(max_deliver=3))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.field, copy.wanted) == (str(caught.value), "max_deliver", 3)
