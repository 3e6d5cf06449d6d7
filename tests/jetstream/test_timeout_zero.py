"""A timeout of 0 has one meaning for each kind of call; every call with a timeout is covered."""

from __future__ import annotations

import importlib
import inspect

import pytest

from jetstream import JetStream, Services, add_service
from jetstream.message import JsMsg
from natsproto import client, subscription
from natsproto.errors import InvalidValue, TimeoutExpired
from natsproto.wire.frames import Msg
from tests.connection.support import msg
from tests.core import MODULES, dotted
from tests.jetstream.support import Stage

INFO = {"stream_name": "S", "name": "C", "config": {"durable_name": "C", "ack_policy": "explicit"}}
MESSAGE = Msg(b"s", 1, b"$JS.ACK.S.C.1.2.3.1700000000000000001.4", b"x")


class Made:
    """An object of each kind on one stage."""

    def __init__(self) -> None:
        self.stage = stage = Stage(INFO, {"config": {"name": "S"}, "state": {}}, INFO)
        self.client = stage.client
        self.js = js = JetStream(stage.client)
        self.consumer = stage.run(js.consumer("S", "C"))
        self.sub = stage.run(stage.client.subscribe("a"))
        self.messages = self.consumer.consume()
        self.msg = JsMsg(MESSAGE, stage.client.session)
        self.service = add_service(stage.client, name="s", version="1.0.0")
        self.endpoint = self.service.add_endpoint("e")
        self.services = Services(stage.client)
        stage.run(self.service.start())
        self.ordered = stage.run(js.stream("S")).ordered_consumer
        stage.pubs  # noqa: B018  (from here on nothing is to be sent)


REFUSED = [  # a call that needs an answer of the server
    ("Client.request", lambda made: made.client.request("a", timeout=0)),
    ("Client.request", lambda made: made.client.request("a", timeout=0.0)),
    ("Client.request_many", lambda made: made.client.request_many("a", timeout=0)),
    ("Client.trace_message", lambda made: made.client.trace_message("a", timeout=0)),
    ("Client.iter_request_many", lambda made: made.client.iter_request_many("a", timeout=0)),
    ("Client.flush", lambda made: made.client.flush(0)),
    ("Client.rtt", lambda made: made.client.rtt(0)),
    ("Client.drain", lambda made: made.client.drain(0)),
    ("Subscription.drain", lambda made: made.sub.drain(0)),
    ("Iteration.drain", lambda made: made.messages.drain(0)),
    ("JsMsg.ack_sync", lambda made: made.msg.ack_sync(timeout=0)),
    ("JetStream.publish", lambda made: made.js.publish("a", timeout=0)),
    ("JetStream.publisher", lambda made: made.js.publisher(ack_timeout=0)),
    ("JetStream.atomic_batch", lambda made: made.js.atomic_batch(timeout=0)),
    ("JetStream.fast_batch", lambda made: made.js.fast_batch(ack_timeout=0)),
    ("JetStream.__init__", lambda made: JetStream(made.client, timeout=0)),
    ("JetStream.restore_stream", lambda made: made.js.restore_stream(b"x", timeout=0)),
    ("BoundConsumer.fetch", lambda made: made.consumer.fetch(1, expires=0)),
    ("BoundConsumer.next", lambda made: made.consumer.next(expires=0)),
    ("BoundConsumer.consume", lambda made: made.consumer.consume(expires=0)),
    ("Service.start", lambda made: made.service.start(0)),
    ("Service.stop", lambda made: made.service.stop(timeout=0)),
    ("Services.__init__", lambda made: Services(made.client, timeout=0)),
    ("Services.ping", lambda made: made.services.ping(timeout=0)),
    ("Services.info", lambda made: made.services.info(timeout=0)),
    ("Services.stats", lambda made: made.services.stats(timeout=0)),
    ("Services.request", lambda made: made.services.request("a", timeout=0)),
]


def dead_letters(made):
    made.stage.answers.append({"config": {"name": "S"}})
    return made.stage.run(made.consumer.dead_letters())


POLLS = [  # a call that returns what may be there already
    ("Subscription.next", lambda made: made.sub.next(0)),
    ("Events.next", lambda made: made.client.events.next(0)),
    ("EventReader.next", lambda made: made.client.events.__aiter__().next(0)),
    ("Iteration.next", lambda made: made.messages.next(0)),
    ("MachineEvents.next", lambda made: made.messages.events.next(0)),
    ("DeadLetters.next", lambda made: dead_letters(made).next(0)),
    ("Service.stopped", lambda made: made.service.stopped(0)),
    ("ServiceEvents.next", lambda made: made.service.events.next(0)),
    ("Endpoint.next", lambda made: made.endpoint.next(0)),
    ("Advisories.next", lambda made: made.js.advisories().next(0)),
]
# The same code as a row above, or made by calls that are in it.
OTHERS = {
    "Watcher.next": "Iteration.next",
    "GroupMember.next": "Iteration.next",
    "Live.next": "Advisories.next",
    "Transfer.finish": "JetStream.restore_stream",
    "Captured.next": "Iteration.next",
    "DeadLetter.retry": "JetStream.publish",
    "OrderedConsumer.fetch": "BoundConsumer.fetch",
    "OrderedConsumer.next": "BoundConsumer.next",
    "OrderedConsumer.consume": "BoundConsumer.consume",
    "PullSubscription.fetch": "BoundConsumer.fetch",
    "AtomicBatch.__init__": "JetStream.atomic_batch",
    "FastBatch.__init__": "JetStream.fast_batch",
    "PublishWindow.__init__": "JetStream.publisher",
    "ApiClient.__init__": "JetStream.__init__",
    "Recreator.__init__": "JetStream.__init__",
    "AckWindow.__init__": "JetStream.publisher",
    "Publisher.publish": "JetStream.publish",
    "Publisher.send": "JetStream.publish",
    "Publisher.window": "JetStream.publisher",
    "Publisher.atomic_batch": "JetStream.atomic_batch",
    "Publisher.fast_batch": "JetStream.fast_batch",
    "BoundConsumer.iter_fetch": "BoundConsumer.fetch",
    "Room.pulled": "BoundConsumer.consume",
    "PullTemplate.__init__": "BoundConsumer.fetch",
    "Puller.fetch": "BoundConsumer.fetch",
    "Puller.consume": "BoundConsumer.consume",
    "ServiceRunner.close": "Service.stop",
}


async def run(call, made):
    found = call(made)
    return await found if inspect.isawaitable(found) else found


@pytest.mark.rule("D-REQ-11")
@pytest.mark.parametrize(("name", "call"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_call_that_needs_an_answer_refuses_it(name, call):
    made = Made()
    with pytest.raises(InvalidValue, match=" 0"):
        made.stage.run(run(call, made))
    assert (made.stage.asked, made.stage.now()) == ([], 0.0)


@pytest.mark.rule("D-REQ-11")
@pytest.mark.parametrize(("name", "call"), POLLS, ids=[row[0] for row in POLLS])
def test_next_polls(name, call):
    made = Made()
    with pytest.raises(TimeoutExpired):
        made.stage.run(run(call, made))
    assert made.stage.now() == 0.0


@pytest.mark.rule("D-REQ-11")
def test_a_poll_returns_available_messages():
    made = Made()
    made.stage.wire.data(msg("a", made.sub.sid, b"1"))
    assert made.stage.run(made.sub.next(0)).data == b"1"
    made.stage.run(made.client.force_reconnect())
    assert made.stage.run(made.client.events.next(0)) is not None


@pytest.mark.rule("D-REQ-11")
def test_close_does_not_wait():
    made = Made()
    made.stage.run(made.client.close(0))
    assert (made.client.state, made.stage.now()) == ("CLOSED", 0.0)
    assert b"PING" not in made.stage.wire.sent()


def test_every_public_call_with_a_timeout_is_in_a_table():
    known = {name for name, _ in REFUSED + POLLS} | set(OTHERS) | {"Client.close"}
    names = [dotted(path) for path in MODULES]
    core = [name for name in names if name.startswith("jetstream.") and ".blocking" not in name]
    homes = [client, subscription, *[importlib.import_module(each) for each in core]]
    found = set()
    for home in homes:
        for kind in vars(home).values():
            if inspect.isclass(kind) and kind.__module__ == home.__name__:
                for name, function in vars(kind).items():
                    if not inspect.isfunction(function):
                        continue
                    names = set(inspect.signature(function).parameters)
                    shown = name == "__init__" or not name.startswith("_")
                    if shown and names & {"timeout", "ack_timeout", "expires"}:
                        found.add(f"{kind.__name__}.{name}")
    assert found - known == set()
