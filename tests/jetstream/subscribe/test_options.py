from __future__ import annotations

import pytest

from jetstream.config import ConsumerConfig
from jetstream.errors import FlowControlWithQueue, HeartbeatWithQueue
from jetstream.subscribe.options import Limits, OrderedSubscribeOptions, SubscribeOptions
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue, LocalError

ASKED = {
    "subject": "s.a",
    "stream": "",
    "durable": "",
    "queue": "",
    "bind": False,
    "delete_on_end": None,
    "config": None,
}


def wanted(**asked):
    fields = {name: asked.pop(name) for name in list(asked) if name not in ASKED}
    return SubscribeOptions(**{**ASKED, **asked}, fields=fields)


NAMES = [  # the requested options; name, durable, queue
    ({}, "", "", ""),
    ({"durable": "d"}, "d", "d", ""),
    ({"durable_name": "d"}, "d", "d", ""),
    ({"durable": "d", "durable_name": "d", "name": "d"}, "d", "d", ""),
    ({"config": {"durable_name": "d"}}, "d", "d", ""),
    ({"name": "n"}, "n", "", ""),
    ({"queue": "q"}, "q", "q", "q"),
    ({"deliver_group": "q"}, "q", "q", "q"),
    ({"queue": "q", "deliver_group": "q"}, "q", "q", "q"),
    ({"queue": "q", "durable": "d"}, "d", "d", "q"),
    ({"queue": "q", "name": "n"}, "n", "", "q"),
    ({"queue": "q", "bind": True}, "q", "q", "q"),
    ({"queue": "a.b", "durable": "d"}, "d", "d", "a.b"),
]


@pytest.mark.rule("JSSUB-3", "JSSUB-6", "D-JSSUB-8")
@pytest.mark.parametrize(("asked", "name", "durable", "queue"), NAMES)
def test_the_name_of_the_consumer(asked, name, durable, queue):
    made = wanted(**asked)
    assert (made.name, made.durable, made.queue) == (name, durable, queue)


CONFIGS = [  # the requested options; the configuration of a new consumer n that delivers to t
    ({}, {"filter_subject": "s.a"}),
    ({"subject": "", "stream": "S"}, {}),
    ({"durable": "n"}, {"filter_subject": "s.a", "durable_name": "n"}),
    ({"queue": "n"}, {"filter_subject": "s.a", "durable_name": "n", "deliver_group": "n"}),
    ({"filter_subjects": ["s.b", "s.c"]}, {"filter_subjects": ["s.b", "s.c"]}),
    ({"filter_subject": "s.a"}, {"filter_subject": "s.a"}),
    (
        {"config": ConsumerConfig(ack_wait=3.0), "ack_policy": "all"},
        {"filter_subject": "s.a", "ack_policy": "all", "ack_wait": 3_000_000_000},
    ),
    (
        {"idle_heartbeat": 1.0, "flow_control": True},
        {"filter_subject": "s.a", "idle_heartbeat": 1_000_000_000, "flow_control": True},
    ),
]


@pytest.mark.rule("JSSUB-7", "JSSUB-15")
@pytest.mark.parametrize(("asked", "config"), CONFIGS)
def test_the_configuration_of_a_new_consumer(asked, config):
    made = wanted(**asked).config_for("n", "t").to_json()
    assert made == {"ack_policy": "explicit", "name": "n", "deliver_subject": "t", **config}


GIVEN = [  # the requested options; the fields that an existing consumer must have
    ({}, []),
    ({"durable": "d"}, ["durable_name"]),
    ({"durable": "d", "bind": True}, []),
    ({"durable_name": "d", "bind": True, "ack_wait": 3.0}, ["ack_wait"]),
    ({"queue": "q"}, []),
    ({"config": ConsumerConfig(ack_wait=3.0), "max_deliver": 3}, ["max_deliver", "ack_wait"]),
]


@pytest.mark.rule("BIND-10")
@pytest.mark.parametrize(("asked", "names"), GIVEN)
def test_names_of_given_fields(asked, names):
    assert wanted(**asked).given == names


REFUSED = [  # the requested options; error, its text or rule
    ({"subject": ""}, InvalidValue, "needs a subject or a stream (JSSUB-1)"),
    ({"subject": "a b"}, InvalidSubject, "'a b'"),
    ({"stream": "a.b"}, InvalidName, "'a.b'"),
    ({"durable": 5}, InvalidValue, "durable 5 is not a str"),
    (
        {"durable": "d", "durable_name": "e"},
        InvalidValue,
        "conflicts with durable_name 'e'",
    ),
    ({"durable": "d", "name": "e"}, InvalidValue, "durable 'd' conflicts with name 'e'"),
    (
        {"queue": "q", "deliver_group": "g"},
        InvalidValue,
        "conflicts with deliver_group 'g'",
    ),
    ({"queue": "a b"}, InvalidSubject, "'a b'"),
    ({"queue": "a.b"}, InvalidName, "queue as durable 'a.b' contains '.'"),
    ({"queue": "q", "idle_heartbeat": 1.0}, HeartbeatWithQueue, "(BIND-9)"),
    (
        {"queue": "q", "idle_heartbeat": 1.0, "flow_control": True},
        *(FlowControlWithQueue, "(BIND-8)"),
    ),
    ({"bind": True}, InvalidValue, "bind needs the name of a consumer"),
    ({"bind": "yes"}, InvalidValue, "bind 'yes' is neither True nor False"),
    ({"delete_on_end": 1}, InvalidValue, "delete_on_end 1 is neither True nor False"),
    ({"filter_subject": "s.b"}, InvalidValue, "subject 's.a' conflicts with filter_subject 's.b'"),
    ({"max_waiting": 5}, InvalidValue, "max_waiting=5 is for pull consumers"),
    ({"max_batch": 5}, InvalidValue, "(D-JSSUB-4)"),
    ({"priority_groups": ["g"], "priority_policy": "overflow"}, InvalidValue, "(D-JSSUB-4)"),
    ({"flow_control": True}, InvalidValue, "(CONS-14)"),
    ({"idle_heartbeat": 0.05}, InvalidValue, "(CONS-13)"),
    ({"deliver_policy": "by_start_sequence"}, InvalidValue, "(CONS-7)"),
    ({"durable": "é"}, InvalidName, "'é'"),
]


@pytest.mark.rule(
    "JSSUB-1", "D-JSSUB-4", "JSSUB-5", "JSSUB-6", "JSSUB-7", "D-JSSUB-8", "BIND-8", "BIND-9"
)
@pytest.mark.parametrize(("asked", "error", "text"), REFUSED)
def test_invalid_options(asked, error, text):
    with pytest.raises(error) as caught:
        wanted(**asked)
    assert text in str(caught.value)
    assert isinstance(caught.value, LocalError)


@pytest.mark.rule("D-JSSUB-4")
def test_zeros_of_pull_fields_are_accepted():
    made = wanted(max_waiting=0, max_batch=0, priority_policy="none")
    assert made.given == ["max_waiting", "max_batch", "priority_policy"]


@pytest.mark.rule("JSSUB-3")
def test_an_unusual_existing_name_can_be_bound():
    assert wanted(durable="é", bind=True).name == "é"


@pytest.mark.rule("JSSUB-11")
@pytest.mark.parametrize(
    ("asked", "deletes"),
    [
        ({}, True),
        ({"name": "n"}, True),
        ({"durable": "d"}, False),
        ({"queue": "q"}, False),
        ({"queue": "q", "name": "n"}, False),
        ({"durable": "d", "delete_on_end": True}, True),
        ({"queue": "q", "delete_on_end": True}, True),
        ({"delete_on_end": False}, False),
    ],
)
def test_deletion_at_the_end(asked, deletes):
    assert wanted(**asked).deletes is deletes


@pytest.mark.rule("D-HINT-1")
def test_a_keyword_of_nats_py():
    with pytest.raises(
        InvalidValue, match=r"option does not exist: 'cb'; iterate .*run\(callback\)"
    ):
        wanted(cb=print)


@pytest.mark.rule("JSSUB-13")
def test_limits():
    limits = Limits(3.0, None, 0)
    assert (limits.alarm_after, limits.max_messages, limits.max_bytes) == (3.0, None, 0)
    wrong = [
        (0.5, None, None),
        ("3", None, None),
        (3.0, -1, None),
        (3.0, None, True),
    ]
    for each in wrong:
        with pytest.raises(InvalidValue):
            Limits(*each)


NOT_ORDERED = [
    {"durable": "d"},
    {"durable_name": "d"},
    {"name": "n"},
    {"bind": True},
    {"delete_on_end": False},
    {"deliver_subject": "d"},
    {"queue": "q"},
    {"deliver_group": "q"},
    {"ack_policy": "explicit"},
    {"ack_policy": "all"},
    {"max_deliver": 3},
    {"backoff": [1.0]},
    {"ack_wait": 5.0},
    {"num_replicas": 3},
    {"mem_storage": False},
    {"flow_control": False},
]


def in_order(**asked):
    fields = {name: asked.pop(name) for name in list(asked) if name not in ASKED}
    return OrderedSubscribeOptions(**{**ASKED, **asked}, fields=fields)


@pytest.mark.rule("JSSUB-14")
@pytest.mark.parametrize("asked", NOT_ORDERED)
def test_options_that_ordered_subscriptions_reject(asked):
    with pytest.raises(InvalidValue) as caught:
        in_order(**asked)
    [(name, value)] = asked.items()
    assert f"ordered with {name}={value!r}: " in str(caught.value)


ORDERED = [  # the requested options; what is chosen of the consumers
    ({}, {"filter_subject": "s.a"}),
    ({"subject": "", "stream": "S"}, {}),
    (
        {"ack_policy": "none", "max_deliver": 1, "flow_control": True, "mem_storage": True},
        {"filter_subject": "s.a", "max_deliver": 1, "flow_control": True, "mem_storage": True},
    ),
    (
        {"deliver_policy": "new", "headers_only": True, "delete_on_end": True},
        {"filter_subject": "s.a", "deliver_policy": "new", "headers_only": True},
    ),
    ({"filter_subjects": ["s.b", "s.c"]}, {"filter_subjects": ["s.b", "s.c"]}),
    (
        {"subject": "", "stream": "S", "deliver_policy": "last_per_subject"},
        {"filter_subject": ">", "deliver_policy": "last_per_subject"},
    ),
    (
        {"deliver_policy": "last_per_subject", "config": {"description": "d"}},
        {"filter_subject": "s.a", "deliver_policy": "last_per_subject", "description": "d"},
    ),
    (
        {"deliver_policy": "last_per_subject", "filter_subjects": ["s.b", "s.c"]},
        {"filter_subjects": ["s.b", "s.c"], "deliver_policy": "last_per_subject"},
    ),
]


@pytest.mark.rule("JSSUB-7", "JSSUB-14")
@pytest.mark.parametrize(("asked", "config"), ORDERED)
def test_options_that_ordered_subscriptions_accept(asked, config):
    made = in_order(**asked)
    assert made.config.to_json() == {"ack_policy": "none", **config}
    assert made.heartbeat == 5.0


@pytest.mark.rule("JSSUB-14")
def test_heartbeat_of_an_ordered_subscription_can_be_set():
    assert in_order(idle_heartbeat=2.0).heartbeat == 2.0


@pytest.mark.rule("JSSUB-1", "D-JSSUB-4", "JSSUB-7", "JSSUB-14")
@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        ({"subject": ""}, InvalidValue, "(JSSUB-1)"),
        ({"subject": "a b"}, InvalidSubject, "'a b'"),
        ({"max_batch": 5}, InvalidValue, "(D-JSSUB-4)"),
        ({"filter_subject": "s.b"}, InvalidValue, "(JSSUB-7)"),
        ({"idle_heartbeat": 0.01}, InvalidValue, "(CONS-13)"),
        ({"max_ack_pending": 5}, InvalidValue, "(CONS-12)"),
        ({"deliver_policy": "by_start_sequence"}, InvalidValue, "(CONS-7)"),
    ],
)
def test_invalid_options_of_ordered_subscriptions(asked, error, text):
    with pytest.raises(error) as caught:
        in_order(**asked)
    assert text in str(caught.value)
