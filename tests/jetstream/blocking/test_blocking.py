from __future__ import annotations

import inspect

import pytest

from jetstream import blocking
from jetstream import context as api
from jetstream import message as messages
from jetstream.blocking import kv as blocking_kv
from jetstream.blocking import objects as blocking_objects
from jetstream.publish import atomic as batch
from jetstream.publish import fast, window
from jetstream.publish import window_machine as publisher
from jetstream.pull import batch as fetching
from jetstream.pull import messages as consuming
from jetstream.push import api as pushing
from jetstream.streams import consumer, stream
from jetstream.subscribe import pull as pull_subscribe
from natsproto.errors import InvalidValue, TimeoutExpired
from tests.jetstream.support import SILENCE, Delivery, Stage, Status

TWINS = [
    (api.JetStream, blocking.JetStream),
    (stream.Stream, blocking.Stream),
    (consumer.Consumer, blocking.Consumer),
    (consumer.BoundConsumer, blocking.BoundConsumer),
    (fetching.Fetch, blocking.Fetch),
    (publisher.Publication, blocking.Publication),
    (window.PublishWindow, blocking.PublishWindow),
    (batch.AtomicBatch, blocking.AtomicBatch),
    (fast.FastBatch, blocking.FastBatch),
    (messages.JsMsg, blocking.JsMsg),
    (consuming.Batch, blocking.Batch),
    (consuming.Messages, blocking.Messages),
    (consuming.PullEvents, blocking.PullEvents),
    (pull_subscribe.PullSubscription, blocking.PullSubscription),
    (pushing.PushMessages, blocking.PushMessages),
    (pushing.PushEvents, blocking.PushEvents),
]
# What publications have for their machine alone; messages have attributes with some of these names.
OF_PUBLICATIONS = {"block", "data", "raw_subject", "reply"}
INTERNAL = {
    "answer",
    "armed",
    "deadline",
    "handle_timer",
    "number",
    "error_raised",
    "reports",
    "trouble",
    "waiters",
}
# What fetches have for event loops alone, besides `close`.
INTERNAL |= {"send", "throw"}
SYNCHRONOUS = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
    "ack_nowait": "ack",
}


def public(cls: type) -> dict[str, object]:
    found = {}
    for base in reversed(cls.__mro__[:-1]):
        found.update(vars(base))
    special = {"__len__", "__getitem__", "__iter__", *SYNCHRONOUS, *SYNCHRONOUS.values()}
    return {
        name: value
        for name, value in found.items()
        if (not name.startswith("_") or name in special)
        and name not in INTERNAL
        and not (cls is publisher.Publication and name in OF_PUBLICATIONS)
    }


def parameters(function):
    """Return the parameters as text; callbacks are not async in a twin."""
    found = inspect.signature(function).parameters.values()
    return [str(each).replace("Awaitable[object]", "object") for each in found]


@pytest.mark.rule("D-CALL-14")
@pytest.mark.parametrize(("cls", "twin"), TWINS, ids=lambda cls: cls.__name__)
def test_everything_has_its_twin(cls, twin):
    theirs = public(twin)
    for name, value in public(cls).items():
        other = theirs.get(SYNCHRONOUS.get(name, name))
        if name == "error" and other is None:
            continue  # set when it is made
        assert other is not None, name
        assert not inspect.iscoroutinefunction(other), name
        if isinstance(value, property):
            assert isinstance(other, property), name
        elif callable(value) and not name.startswith("__"):
            assert parameters(value) == parameters(other), name


@pytest.mark.rule("D-CALL-14")
def test_a_jetstream():
    info = {"config": {"name": "S"}, "state": {"messages": 3}}
    stage = Stage(info, {"name": "C"}, {"name": "C", "num_pending": 1}, {"success": True})
    js = blocking.JetStream(stage.blocking, domain="hub")
    made = js.create_stream(name="S")
    assert isinstance(made, blocking.Stream)
    assert (made.name, made.cached_info.state.messages, repr(made)) == ("S", 3, "<Stream S>")
    worker = made.create_consumer(durable_name="C")
    assert isinstance(worker, blocking.Consumer)
    assert (worker.name, worker.stream, repr(worker)) == ("C", "S", "<Consumer C of S>")
    assert worker.info().num_pending == worker.cached_info.num_pending == 1
    made.delete()
    assert [subject for subject, _ in stage.asked] == [
        "$JS.hub.API.STREAM.CREATE.S",
        "$JS.hub.API.CONSUMER.CREATE.S.C",
        "$JS.hub.API.CONSUMER.INFO.S.C",
        "$JS.hub.API.STREAM.DELETE.S",
    ]


@pytest.mark.rule("D-CALL-14")
def test_a_bucket():
    stage = Stage({"config": {"name": "KV_b", "max_msgs_per_subject": 1}}, {"streams": ["KV_b"]})
    js = blocking.JetStream(stage.blocking)
    assert isinstance(js.key_value("b"), blocking_kv.KeyValue)
    assert js.key_value_names() == ["b"]


@pytest.mark.rule("D-CALL-14")
def test_a_bucket_of_objects():
    stage = Stage({"config": {"name": "OBJ_b"}}, {"streams": ["OBJ_b"]})
    js = blocking.JetStream(stage.blocking)
    assert isinstance(js.object_store("b"), blocking_objects.ObjectStore)
    assert js.object_store_names() == ["b"]


def delivery(seq):
    return Delivery("s.a", f"$JS.ACK.S.C.1.{seq}.{seq}.1.0", b"m%d" % seq)


def make(stage, **config):
    stage.answers.insert(0, {"name": "C", "config": config})
    return blocking.JetStream(stage.blocking).consumer("S", "C")


def test_fetch_and_next():
    stage = Stage(
        [delivery(1), delivery(2), Status("404 No Messages")],
        [delivery(3)],
        Status("408 Request Timeout"),
    )
    worker = make(stage)
    batch = worker.fetch(5, no_wait=True)
    assert isinstance(batch, blocking.Batch)
    assert (len(batch), batch[1].data, batch.error) == (2, b"m2", None)
    assert [msg.data for msg in batch] == [b"m1", b"m2"]
    assert repr(batch) == "<Batch of 2, error None>"
    assert worker.next(expires=1.0).metadata.stream_seq == 3
    assert worker.next(expires=1.0) is None


@pytest.mark.rule("BIND-11")
def test_bound_consumers():
    stage = Stage([delivery(1)], {"name": "C", "num_pending": 1})
    js = blocking.JetStream(stage.blocking)
    bound = js.bind_consumer("S", "C")
    assert isinstance(bound, blocking.BoundConsumer)
    assert not isinstance(bound, blocking.Consumer)
    assert (bound.name, bound.stream, bound.cached_info) == ("C", "S", None)
    assert [msg.data for msg in bound.iter_fetch(1)] == [b"m1"]
    assert bound.info() is bound.cached_info


def test_messages():
    stage = Stage([delivery(1)], b"")
    [msg] = make(stage).fetch(1)
    assert isinstance(msg, blocking.JsMsg)
    assert (msg.subject, msg.reply, msg.sid) == ("s.a", "$JS.ACK.S.C.1.1.1.1.0", msg.inner.sid)
    assert (msg.raw_subject, msg.raw_reply) == (b"s.a", b"$JS.ACK.S.C.1.1.1.1.0")
    assert (msg.data, msg.headers, msg.raw_headers) == (b"m1", None, None)
    assert (msg.status, msg.description, msg.size) == (0, "", msg.inner.size)
    assert repr(msg).startswith("JsMsg(subject='s.a'")
    msg.in_progress()
    assert not msg.settled
    msg.ack_sync(timeout=1.0)
    msg.ack()
    msg.nak(delay=1.0)
    msg.term("reason")
    assert msg.settled
    assert [data for _, data in stage.asked][-2:] == [b"+WPI", b"+ACK"]


def test_consume():
    stage = Stage([delivery(1), delivery(2), delivery(3)], SILENCE)
    with make(stage).consume(max_messages=3, threshold_messages=1, stop_after=None) as messages:
        assert isinstance(messages, blocking.Messages)
        assert iter(messages) is messages
        assert next(messages).data == b"m1"
        assert messages.next(timeout=1.0).data == b"m2"
        assert (messages.pending, messages.closed) == (1, False)
        with pytest.raises(TimeoutExpired):
            messages.events.next(timeout=0.5)
        assert [msg.data for msg in messages.stop()] == [b"m3"]
    assert messages.closed
    assert list(messages) == []
    assert iter(messages.events) is messages.events
    assert list(messages.events) == []
    messages.drain()


def test_events_of_a_consume():
    stage = Stage(Status("409 Leadership Change"), SILENCE)
    with make(stage).consume(max_messages=3) as messages:
        event = next(messages.events)
        assert "Leadership Change" in repr(event)


def test_the_error_for_another_client_names_the_right_class():
    with pytest.raises(InvalidValue, match=r"use jetstream\.JetStream"):
        blocking.JetStream(Stage().client)


def test_the_reprs():
    js = blocking.JetStream(Stage().blocking, domain="hub")
    assert repr(js) == "<JetStream $JS.hub.API>"
    assert repr(js.publisher(max_pending=5)) == "<PublishWindow, 0 of 5 pending>"
    assert repr(js.atomic_batch()) == "<AtomicBatch of 0 messages>"


def test_a_fast_batch_is_a_facade():
    batch = blocking.JetStream(Stage().blocking).fast_batch()
    assert isinstance(batch, blocking.FastBatch)
    assert batch.close() is None


def test_dir_has_the_names_that_are_imported_on_first_use():
    assert dir(blocking) == sorted(blocking.__all__)
    assert blocking.KeyValue is blocking_kv.KeyValue
    assert blocking.ObjectStore is blocking_objects.ObjectStore


@pytest.mark.rule("D-HINT-1")
def test_names_of_other_clients():
    with pytest.raises(AttributeError, match="no attribute 'add_stream'; use create_stream"):
        blocking.JetStream(Stage().blocking).add_stream  # noqa: B018 - the attribute is what raises


def test_advisories_and_dead_letters_have_facades():
    js = blocking.JetStream(Stage({"config": {"name": "S"}}).blocking)
    with js.advisories("nak") as events:
        assert isinstance(events, blocking.Advisories)
    with js.bind_consumer("S", "c").dead_letters() as letters:
        assert isinstance(letters, blocking.DeadLetters)


def test_snapshots_have_a_facade():
    js = blocking.JetStream(Stage({"config": {"name": "S"}, "state": {}}).blocking)
    assert isinstance(js.snapshot_stream("S"), blocking.StreamSnapshot)
