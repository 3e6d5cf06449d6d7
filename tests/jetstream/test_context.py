"""JetStream: each call is passed to a manager, with all of its arguments."""

from __future__ import annotations

import inspect

import pytest

from jetstream import JetStream
from jetstream.kv.manager import KeyValueManager
from jetstream.objects.manager import ObjectStoreManager
from jetstream.publish.request import Publisher
from jetstream.streams.manager import StreamManager
from natsproto.errors import InvalidValue
from tests.jetstream.support import Stage


class Recorder:
    """A stand-in for a manager that checks the arguments against its signature and records them."""

    def __init__(self, cls):
        self.cls = cls
        self.calls = []

    def __getattr__(self, name):
        function = getattr(self.cls, name)

        async def later(found):
            return found

        def call(*args, **keywords):
            given = inspect.signature(function).bind(self, *args, **keywords)
            self.calls.append((name, dict(list(given.arguments.items())[1:])))
            found = object()
            self.found = found
            return later(found) if inspect.iscoroutinefunction(function) else found

        return call


def record():
    """Return a JetStream, and a Recorder in the place of each of its managers."""
    js = JetStream(Stage().client)
    places = {
        "_manager": StreamManager,
        "_publishing": Publisher,
        "_key_values": KeyValueManager,
        "_object_stores": ObjectStoreManager,
    }
    for place, cls in places.items():
        setattr(js, place, Recorder(cls))
    return js, {place: getattr(js, place) for place in places}


SUBSCRIBING = (
    "subscribe",
    "pull_subscribe",
    "advisories",
    "bind_consumer",
    "snapshot_stream",
    "restore_stream",
)  # which are functions of their own room
CALLS = [
    name
    for name, value in vars(JetStream).items()
    if inspect.isfunction(value) and not name.startswith("_") and name not in SUBSCRIBING
]
KINDS = {"key_value": "_key_values", "object_store": "_object_stores"}
# Calls of managers whose names differ from those of JetStream.
NAMES = {"publish": "send", "publisher": "window", "key_value": "find", "object_store": "find"}
NAMES.update({kind + "_names": "names" for kind in KINDS})
NAMES.update({kind + "s": "statuses" for kind in KINDS})
NAMES.update(
    {
        "%s_%s" % (verb, kind): verb
        for verb in ("create", "update", "create_or_update", "delete")
        for kind in KINDS
    }
)


@pytest.mark.parametrize("call", CALLS)
def test_each_call_is_that_of_a_manager(call):
    js, managers = record()
    function = getattr(js, call)
    given = {}
    args = []
    for name, parameter in inspect.signature(function).parameters.items():
        value = object()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            args.append(value)
            given[name] = value
        elif parameter.kind is parameter.KEYWORD_ONLY:
            given[name] = value
        else:
            given[name] = {"field": value}
    keywords = {name: given[name] for name in given if name not in list(given)[: len(args)]}
    rest = [name for name in keywords if isinstance(keywords[name], dict)]
    for name in rest:
        keywords.update(keywords.pop(name))
    found = function(*args, **keywords)
    if inspect.iscoroutine(found):
        found = js_run(found)
    [(manager, (name, arguments))] = [
        (place, made.calls[0]) for place, made in managers.items() if made.calls
    ]
    kinds = [KINDS[kind] for kind in KINDS if kind in call]
    assert [manager] == kinds if kinds else manager in ("_manager", "_publishing")
    assert name == NAMES.get(call, call)
    assert arguments == given
    assert found in (None, managers[manager].found)


def js_run(coroutine):
    return Stage().run(coroutine)


def test_managers_of_buckets_are_made_once():
    js = JetStream(Stage().client)
    assert js._kv_manager() is js._kv_manager()
    assert js._object_manager() is js._object_manager()


def consumer(name="C", **config):
    return {"stream_name": "S", "name": name, "config": {"name": name, **config}}


def test_it_shows_where_its_api_is():
    client = Stage().client
    assert repr(JetStream(client)) == "<JetStream $JS.API>"
    assert repr(JetStream(client, domain="hub")) == "<JetStream $JS.hub.API>"


def test_wrong_contexts():
    client = Stage().client
    with pytest.raises(InvalidValue, match="only one can be given"):
        JetStream(client, domain="d", prefix="p")
    with pytest.raises(InvalidValue):
        JetStream(client, timeout=-1)


@pytest.mark.rule("CALL-13")
def test_subscribe():
    stage = Stage({"streams": ["S"], "total": 1}, consumer())
    js = JetStream(stage.client)
    messages = stage.run(js.subscribe("s.a", ack_wait=2.5))
    assert not messages.closed
    endpoints = [subject for subject, _ in stage.asked]
    assert endpoints == ["$JS.API.STREAM.NAMES", "$JS.API.CONSUMER.CREATE.S.%s.s.a" % ("1" * 22)]
    with pytest.raises(InvalidValue):
        stage.run(js.subscribe())
    with pytest.raises(InvalidValue, match="ordered with durable='d'"):
        stage.run(js.subscribe("s.a", ordered=True, durable="d"))
    assert stage.quiet()
    stage.answers = [consumer()]
    assert not stage.run(js.subscribe(stream="S", ordered=True)).closed


@pytest.mark.rule("PSUB-2")
def test_pull_subscribe():
    stage = Stage(consumer(durable_name="C"))
    js = JetStream(stage.client)
    sub = stage.run(js.pull_subscribe("s.a", stream="S", durable="C"))
    assert (sub.stream, sub.name) == ("S", "C")
    assert stage.asked == [("$JS.API.CONSUMER.INFO.S.C", None)]
    with pytest.raises(InvalidValue):
        stage.run(js.pull_subscribe())
    assert stage.quiet()


def test_advisories():
    js = JetStream(Stage().client)
    events = js.advisories("nak", stream="S", consumer="c", prefix="events")
    assert events.subjects == ["events.ADVISORY.CONSUMER.MSG_NAKED.S.c"]


@pytest.mark.rule("D-HINT-1")
def test_names_of_other_clients():
    with pytest.raises(AttributeError, match="no attribute 'add_stream'; use create_stream"):
        JetStream(Stage().client).add_stream  # noqa: B018 - the attribute is what raises


def test_backups():
    stage = Stage({"config": {"name": "S"}, "state": {}})
    js = JetStream(stage.client)
    snapshot = stage.run(js.snapshot_stream("S", consumers=False, chunk_size=2048, window=4096))
    ((endpoint, body),) = stage.asked
    assert endpoint == "$JS.API.STREAM.SNAPSHOT.S"
    assert (body["no_consumers"], body["chunk_size"], body["window_size"]) == (True, 2048, 4096)
    stage.answers = [{"deliver_subject": "target"}, b"", {"config": {"name": "S"}}]
    seen = []
    restored = js.restore_stream(b"x", snapshot.config, timeout=9.0, progress=seen.append)
    assert stage.run(restored).name == "S"
    assert seen == [1]


@pytest.mark.rule("BIND-11")
def test_a_consumer_is_bound_without_the_manager_of_streams():
    js, managers = record()
    consumer = js.bind_consumer("S", "C", ack_policy="none")
    assert (consumer.stream, consumer.name, consumer.puller.ack_none) == ("S", "C", True)
    assert [manager.calls for manager in managers.values()] == [[], [], [], []]
