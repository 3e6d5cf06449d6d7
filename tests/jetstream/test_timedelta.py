"""A timedelta is accepted wherever seconds are; every public parameter of that kind is covered.

The parameters are found by their annotations, so a new one without a row fails the last tests, and
so does one that is annotated as a float.
"""

from __future__ import annotations

import ast
import inspect
from datetime import timedelta

import pytest

import jetstream
import natsproto
from jetstream import (
    ConsumerConfig,
    JetStream,
    KeyValueConfig,
    ObjectStoreConfig,
    Services,
    StreamConfig,
    add_service,
)
from jetstream.message import JsMsg
from jetstream.schema.fields import Fields
from jetstream.schema.types import DURATION, DURATIONS
from natsproto.errors import InvalidValue, NatsError
from natsproto.options import Options
from natsproto.wire.frames import Msg
from tests.core import MODULES
from tests.jetstream.support import SILENCE, Stage

CONFIG = {"durable_name": "C", "ack_policy": "explicit"}
INFO = {"stream_name": "S", "name": "C", "config": CONFIG}
STREAM = {"config": {"name": "S", "subjects": ["a"]}, "state": {}}
BUCKET = {"name": "KV_B", "subjects": ["$KV.B.>"], "max_msgs_per_subject": 1, "allow_direct": True}
STORE = {"name": "OBJ_B", "subjects": ["$O.B.C.>", "$O.B.M.>"], "allow_direct": True}
MESSAGE = Msg(b"s", 1, b"$JS.ACK.S.C.1.2.3.1700000000000000001.4", b"x")
ACK = {"stream": "S", "seq": 1}
GOOD = 7  # seconds, for which no call uses another value by itself


class Made:
    """A client on a stage, and what a call needs."""

    def __init__(self):
        self.stage = Stage()
        self.client = self.stage.client
        self.js = JetStream(self.client)
        self.msg = JsMsg(MESSAGE, self.client.session)

    def get(self, coroutine, *answers):
        """Return the result of a call that these answers settle."""
        self.stage.answers = list(answers)
        return self.stage.run(coroutine)

    def answer(self, *answers):
        self.stage.answers = list(answers)
        return self

    def consumer(self):
        return self.get(self.js.consumer("S", "C"), INFO)

    def messages(self):
        return self.consumer().consume()

    def ordered(self):
        return self.get(self.get(self.js.stream("S"), STREAM).ordered_consumer(), INFO)

    def pull_subscription(self):
        return self.get(self.js.pull_subscribe("a", stream="S", durable="C"), INFO)

    def bucket(self):
        return self.get(self.js.key_value("B"), {"config": BUCKET, "state": {}})

    def watcher(self):
        bucket = self.bucket()
        created = {"stream_name": "KV_B", "name": "W", "config": {}, "num_pending": 0}
        return self.get(bucket.watch(), created, created)

    def store(self):
        return self.get(self.js.object_store("B"), {"config": STORE, "state": {}})

    def service(self):
        service = add_service(self.client, name="s", version="1.0.0")
        service.add_endpoint("e")
        return service

    def started(self):
        service = self.service()
        self.stage.run(service.start())
        return service

    def endpoint(self):
        service = self.service()
        endpoint = service.add_endpoint("f")
        self.stage.run(service.start())
        return endpoint

    def dead_letters(self):
        return self.get(self.consumer().dead_letters(), {"config": {"name": "S"}})


def services(call, name):
    def run(made, value):
        return getattr(Services(made.client), call)(**{name: value})

    return run


def take(kind):
    """Return the row of a `next` that finds nothing until its timeout."""
    return lambda made, value: kind(made).next(value)


def subscription(made):
    return made.stage.run(made.client.subscribe("a"))


ROWS = {  # the call and its parameter: a function of a Made and the value
    "Client.request timeout": lambda made, value: made.client.request("a", timeout=value),
    "Client.request_many timeout": lambda made, value: made.client.request_many("a", timeout=value),
    "Client.request_many stall": lambda made, value: made.client.request_many(
        "a", stall=value, timeout=20
    ),
    "Client.iter_request_many timeout": lambda made, value: first(
        made.client.iter_request_many("a", timeout=value)
    ),
    "Client.iter_request_many stall": lambda made, value: first(
        made.client.iter_request_many("a", stall=value, timeout=20)
    ),
    "Client.flush timeout": lambda made, value: made.client.flush(value),
    "Client.trace_message timeout": lambda made, value: made.client.trace_message(
        "a", timeout=value
    ),
    "Client.rtt timeout": lambda made, value: made.client.rtt(value),
    "Client.drain timeout": lambda made, value: made.client.drain(value),
    "Client.close timeout": lambda made, value: made.client.close(value),
    "Subscription.next timeout": take(subscription),
    "Subscription.drain timeout": lambda made, value: subscription(made).drain(value),
    "Events.next timeout": take(lambda made: made.client.events),
    "EventReader.next timeout": take(lambda made: made.client.events.__aiter__()),
    "JetStream.__init__ timeout": lambda made, value: JetStream(
        made.client, timeout=value
    ).account_info(),
    "JetStream.publish timeout": lambda made, value: made.js.publish("a", timeout=value),
    "JetStream.publish ttl": lambda made, value: made.answer(ACK).js.publish("a", ttl=value),
    "JetStream.schedule schedule_ttl": lambda made, value: made.answer(ACK).js.schedule(
        "a", when="@daily", target="b", schedule_ttl=value
    ),
    "JetStream.publisher ack_timeout": lambda made, value: publish_into(
        made, made.js.publisher(ack_timeout=value, retries=0)
    ),
    "JetStream.atomic_batch timeout": lambda made, value: made.js.atomic_batch(timeout=value).add(
        "a"
    ),
    "JetStream.fast_batch ack_timeout": lambda made, value: made.js.fast_batch(
        ack_timeout=value
    ).add("a"),
    "JetStream.restore_stream timeout": lambda made, value: made.answer(
        {"deliver_subject": "d"}, b"", SILENCE
    ).js.restore_stream(b"x", config={"name": "S"}, timeout=value),
    "BoundConsumer.fetch expires": lambda made, value: made.consumer().fetch(1, expires=value),
    "BoundConsumer.fetch heartbeat": lambda made, value: made.consumer().fetch(
        1, expires=20, heartbeat=value
    ),
    "BoundConsumer.iter_fetch expires": lambda made, value: first(
        made.consumer().iter_fetch(1, expires=value)
    ),
    "BoundConsumer.iter_fetch heartbeat": lambda made, value: first(
        made.consumer().iter_fetch(1, expires=20, heartbeat=value)
    ),
    "BoundConsumer.next expires": lambda made, value: made.consumer().next(expires=value),
    "BoundConsumer.next heartbeat": lambda made, value: made.consumer().next(
        expires=20, heartbeat=value
    ),
    "BoundConsumer.consume expires": lambda made, value: made.consumer().consume(expires=value),
    "BoundConsumer.consume heartbeat": lambda made, value: made.consumer().consume(heartbeat=value),
    "OrderedConsumer.fetch expires": lambda made, value: made.ordered().fetch(1, expires=value),
    "OrderedConsumer.fetch heartbeat": lambda made, value: made.ordered().fetch(
        1, expires=20, heartbeat=value
    ),
    "OrderedConsumer.next expires": lambda made, value: made.ordered().next(expires=value),
    "OrderedConsumer.next heartbeat": lambda made, value: made.ordered().next(
        expires=20, heartbeat=value
    ),
    "OrderedConsumer.consume expires": lambda made, value: made.ordered().consume(expires=value),
    "OrderedConsumer.consume heartbeat": lambda made, value: made.ordered().consume(
        heartbeat=value
    ),
    "Stream.ordered_consumer inactive_threshold": lambda made, value: made.get(
        made.js.stream("S"), STREAM, INFO
    ).ordered_consumer(inactive_threshold=value),
    "PullSubscription.fetch timeout": lambda made, value: made.pull_subscription().fetch(1, value),
    "Iteration.next timeout": take(Made.messages),
    "Iteration.drain timeout": lambda made, value: made.messages().drain(value),
    "MachineEvents.next timeout": take(lambda made: made.messages().events),
    "JsMsg.ack_sync timeout": lambda made, value: made.msg.ack_sync(value),
    "JsMsg.nak delay": lambda made, value: made.msg.nak(value),
    "Advisories.next timeout": take(lambda made: made.js.advisories()),
    "DeadLetters.next timeout": take(Made.dead_letters),
    "KeyValue.create ttl": lambda made, value: made.bucket().create("k", b"", ttl=value),
    "KeyValue.purge ttl": lambda made, value: made.bucket().purge("k", ttl=value),
    "KeyValue.purge_deletes older_than": lambda made, value: made.bucket().purge_deletes(value),
    "Watcher.next timeout": take(Made.watcher),
    "ObjectStore.purge_orphans older_than": lambda made, value: made.store().purge_orphans(value),
    "add_service drain_timeout": lambda made, value: add_service(
        made.client, name="s", version="1.0.0", drain_timeout=value
    ),
    "Service.start timeout": lambda made, value: made.service().start(value),
    "Service.stop timeout": lambda made, value: made.started().stop(timeout=value),
    "Service.stopped timeout": lambda made, value: made.started().stopped(value),
    "ServiceEvents.next timeout": take(lambda made: made.started().events),
    "Endpoint.next timeout": take(Made.endpoint),
    "Services.__init__ timeout": lambda made, value: Services(made.client, timeout=value).ping(),
    "Services.request timeout": lambda made, value: Services(made.client).request(
        "a", timeout=value
    ),
    "Services.ping timeout": services("ping", "timeout"),
    "Services.ping stall": services("ping", "stall"),
    "Services.info timeout": services("info", "timeout"),
    "Services.info stall": services("info", "stall"),
    "Services.stats timeout": services("stats", "timeout"),
    "Services.stats stall": services("stats", "stall"),
}
# A call that only hands its parameter to one in a row above.
OTHERS = {
    "GroupMember.next timeout": "Iteration.next timeout",
    "DeadLetter.retry timeout": "JetStream.publish timeout",
    "FastBatch.__init__ ack_timeout": "JetStream.fast_batch ack_timeout",
    "PublishWindow.__init__ ack_timeout": "JetStream.publisher ack_timeout",
}
# Numbers that are not durations, or that a program does not set.
NUMBERS = {
    "JetStream.subscribe alarm_after",
    # Records that the library makes.
    "Health.__init__ now",
    "Health.__init__ rtt",
    "OpenPull.__init__ ends_in",
    "AtomicBatch.__init__ timeout",
    "Fetch.__init__ patience",
    "Waitable.handle_timer now",
    "Service.__init__ drain_timeout",
    "ServiceResponses.add rtt",
    "Options.__init__ reconnect_jitter",
}
# Calls that this stage answers at once, or never, so that their duration makes no difference.
AT_ONCE = {
    "Client.close timeout",
    "Client.drain timeout",
    "Client.flush timeout",
    "Client.iter_request_many stall",
    "Client.request_many stall",
    "Client.rtt timeout",
    "Iteration.drain timeout",
    "KeyValue.purge_deletes older_than",
    "MachineEvents.next timeout",
    "ObjectStore.purge_orphans older_than",
    "Service.start timeout",
    "Service.stop timeout",
    "Services.info stall",
    "Services.ping stall",
    "Services.stats stall",
    "Subscription.drain timeout",
    "add_service drain_timeout",
}
OPTIONS = ["ping_interval", "connect_timeout", "reconnect_wait", "reconnect_wait_max"]
CONFIGS = [
    (cls, field)
    for cls in (ConsumerConfig, StreamConfig, KeyValueConfig, ObjectStoreConfig)
    for field in cls.FIELDS
    if field.type in (DURATION, DURATIONS)
]


async def first(messages):
    async for msg in messages:
        return msg
    return None


async def publish_into(made, window):
    async with window:
        await window.publish("a")


def outcome(row, value):
    """Return what a call sends, returns and raises, and how long it takes."""
    made = Made()

    async def run():
        made.stage.answers = [SILENCE] * 20
        found = row(made, value)
        made.stage.answers += [SILENCE] * 20
        return await found if inspect.isawaitable(found) else found

    try:
        result = type(made.stage.run(run())).__name__
    except InvalidValue:
        raise
    except NatsError as error:
        result = repr(error)
    sent = [(pub.subject, pub.data, repr(pub.headers)) for pub in made.stage.pubs]
    return result, sent, made.stage.now(), made.stage.connection.next_deadline()


@pytest.mark.rule("D-SPAN-1")
@pytest.mark.parametrize("name", ROWS)
def test_a_timedelta_means_its_seconds(name):
    span = timedelta(seconds=GOOD)
    assert outcome(ROWS[name], span) == outcome(ROWS[name], GOOD) == outcome(ROWS[name], GOOD + 0.0)


@pytest.mark.parametrize("name", sorted(ROWS.keys() - AT_ONCE))
def test_the_rows_show_the_difference_between_durations(name):
    assert outcome(ROWS[name], GOOD) != outcome(ROWS[name], 9)


@pytest.mark.rule("D-SPAN-2")
@pytest.mark.parametrize("value", [timedelta(seconds=-1), "7", True, float("nan")], ids=repr)
@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_value_is_named_with_the_rule(name, value):
    with pytest.raises(InvalidValue) as caught:
        outcome(ROWS[name], value)
    assert repr(value) in str(caught.value)
    assert caught.value.rule in str(caught.value)
    assert caught.value.rule != ""


@pytest.mark.rule("D-SPAN-1", "D-OPT-9")
@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    rest = {"reconnect_wait_max": 20.0} if name == "reconnect_wait" else {}
    made = Options(**{name: timedelta(seconds=GOOD)}, **rest)
    assert getattr(made, name) == GOOD
    with pytest.raises(InvalidValue, match=r"%s datetime.timedelta\(.*D-OPT-" % name):
        Options(**{name: timedelta(-1)})


@pytest.mark.rule("D-SPAN-1")
def test_delays_of_reconnects():
    made = Options(reconnect_delays=[timedelta(milliseconds=1), 2])
    assert made.reconnect_delays == [0.001, 2.0]


@pytest.mark.rule("D-SPAN-1")
@pytest.mark.parametrize(("cls", "field"), CONFIGS, ids=lambda each: getattr(each, "name", None))
def test_fields_of_configurations(cls, field):
    span = timedelta(seconds=GOOD, microseconds=1)
    value, raw = (span, 7_000_001_000)
    if field.type is DURATIONS:
        value, raw = [span], [raw]
    assert cls(**{field.name: value}).to_json()[field.name] == raw
    made = cls()
    setattr(made, field.name, value)
    assert made.to_json()[field.name] == raw
    wrong = timedelta(-1)
    with pytest.raises(InvalidValue, match=r"%s: .*timedelta.* is not a num.*JSAPI-3" % field.name):
        cls(**{field.name: [wrong] if field.type is DURATIONS else wrong})


def annotated(kind):
    """Return every parameter of a public function or class with this word in its annotation."""
    found = set()
    public = [getattr(each, name) for each in (natsproto, jetstream) for name in each.__all__]
    for item in [*public, Options, *[type(each) for each in PARTS]]:
        functions = [item] if inspect.isfunction(item) else []
        if inspect.isclass(item):
            functions = [
                function
                for cls in item.__mro__
                for name, function in vars(cls).items()
                if inspect.isfunction(function) and (name == "__init__" or name[0] != "_")
            ]
        for function in functions:
            for name, parameter in inspect.signature(function).parameters.items():
                words = str(parameter.annotation)
                if kind in words:
                    found.add(f"{function.__qualname__} {name}")
    return found


PARTS = [Stage().client.events, Stage().client.events.__aiter__()]


def test_every_parameter_is_in_a_table():
    options = {f"Options.__init__ {name}" for name in [*OPTIONS, "reconnect_delays"]}
    known = ROWS.keys() | OTHERS.keys() | options
    assert known - annotated("Seconds") == {"JetStream.publish ttl"}  # of PublishOptions
    assert annotated("Seconds") - known == set()
    assert set(OTHERS.values()) <= set(ROWS)


def test_no_duration_is_annotated_as_a_float():
    assert annotated("float") == NUMBERS


def typed_dicts():
    """Yield the fields of every TypedDict of the core, as in `ack_wait: float`."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and "TypedDict" in map(ast.unparse, node.bases):
                yield from [ast.unparse(each) for each in node.body]


def test_no_keyword_of_a_dict_is_annotated_as_a_float():
    found = [line for line in typed_dicts() if "float" in line]
    assert found == ["reconnect_jitter: float"]


def test_durations_of_configurations_are_a_field_type():
    assert all(issubclass(cls, Fields) for cls, _ in CONFIGS)
    assert len(CONFIGS) >= 12
