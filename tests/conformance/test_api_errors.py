"""The errors of a real nats-server are instances of the classes that users handle."""

from __future__ import annotations

import json

import pytest

from jetstream import errors
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

pytestmark = pytest.mark.rule("JSERR-1", "JSERR-2")


@pytest.fixture(scope="module")
def client():
    with Server(jetstream=True) as server, connect(server.url) as client:
        ask(client, "STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
        for name, more in [
            ("FULL", {"max_msgs": 1, "discard": "new"}),
            ("WORK", {"retention": "workqueue"}),
            ("SMALL", {"max_msg_size": 5, "max_consumers": 1}),
        ]:
            ask(client, f"STREAM.CREATE.{name}", {"name": name, **more})
        ask(client, "CONSUMER.CREATE.S.c", {"stream_name": "S", "config": {"durable_name": "c"}})
        ask(client, "CONSUMER.CREATE.WORK.c", consumer("WORK", name="c", ack_policy="explicit"))
        ask(client, "CONSUMER.CREATE.SMALL.c", consumer("SMALL", durable_name="c"))
        for subject in ("s.1", "s.2", "FULL"):
            client.request(subject, b"x")
        yield client


def ask(client, endpoint, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    return json.loads(client.request("$JS.API." + endpoint, data).data)


def consumer(stream, action="", **config):
    return {"stream_name": stream, "config": config, "action": action}


CALLS = [  # class, endpoint, body
    ("StreamNotFound", "STREAM.INFO.NONE", None),
    ("ConsumerNotFound", "CONSUMER.INFO.S.none", None),
    ("ConsumerDoesNotExist", "CONSUMER.CREATE.S.n", consumer("S", "update", name="n")),
    (
        "ConsumerExists",
        "CONSUMER.CREATE.S.c",
        consumer("S", "create", durable_name="c", ack_policy="explicit"),
    ),
    ("MessageNotFound", "STREAM.MSG.GET.S", {"seq": 99}),
    ("StreamNameInUse", "STREAM.CREATE.S", {"name": "S", "subjects": ["t"]}),
    ("SubjectOverlap", "STREAM.CREATE.T", {"name": "T", "subjects": ["s.1"]}),
    ("InvalidJson", "STREAM.CREATE.T", {"name": "T", "wings": 2}),
    ("InvalidConfig", "STREAM.CREATE.T", {"name": "T", "max_age": 1}),
    ("NoSuitablePeers", "STREAM.CREATE.T", {"name": "T", "num_replicas": 3}),
    ("BadRequest", "STREAM.MSG.GET.S", {}),
    ("ConsumerLimitReached", "CONSUMER.CREATE.SMALL.d", consumer("SMALL", name="d")),
    (
        "WorkQueueConflict",
        "CONSUMER.CREATE.WORK.d",
        consumer("WORK", name="d", ack_policy="explicit"),
    ),
]


@pytest.mark.parametrize(("name", "endpoint", "body"), CALLS)
def test_calls(client, name, endpoint, body):
    error = errors.api_error(ask(client, endpoint, body)["error"])
    assert type(error).__name__ == name


PUBLISHES = [  # class, subject, headers, payload
    ("WrongLastSequence", "s.1", {"Nats-Expected-Last-Sequence": "9"}, b""),
    ("WrongLastSequence", "s.1", {"Nats-Expected-Last-Subject-Sequence": "9"}, b""),
    ("WrongLastMsgId", "s.1", {"Nats-Expected-Last-Msg-Id": "9"}, b""),
    ("WrongStream", "s.1", {"Nats-Expected-Stream": "T"}, b""),
    ("StoreFailed", "FULL", None, b"x"),
    ("MessageTooLarge", "SMALL", None, b"123456"),
    ("TtlDisabled", "s.1", {"Nats-TTL": "5"}, b""),
    ("CounterRefused", "s.1", {"Nats-Incr": "+1"}, b""),
    ("BatchRefused", "s.1", {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"}, b""),
    ("ScheduleRefused", "s.1", {"Nats-Schedule": "@every 1s"}, b""),
]


@pytest.mark.rule("JSERR-3", "JSERR-4")
@pytest.mark.parametrize(("name", "subject", "headers", "data"), PUBLISHES)
def test_publishes(client, name, subject, headers, data):
    reply = json.loads(client.request(subject, data, headers=headers).data)
    error = errors.api_error(reply["error"])
    assert type(error).__name__ == name
    if isinstance(error, errors.WrongLastSequence):
        assert error.last_seq in (1, 2)
    if isinstance(error, errors.StoreFailed):
        assert error.full
