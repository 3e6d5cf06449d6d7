from __future__ import annotations

import pytest

from jetstream.errors import (
    ConsumerDeleted,
    ConsumerNotFound,
)
from jetstream.events import Gap, PushWarning
from jetstream.push.api import PushMessages
from jetstream.push.machine import Push
from jetstream.push.policy import PlainPush
from natsproto.errors import InvalidState, TimeoutExpired
from tests.connection.support import PONG
from tests.jetstream.machine.test_iteration import numbers
from tests.jetstream.stages import Stage, messages, timer

FC = b"NATS/1.0 100 FlowControl Request\r\n\r\n"


def begin(**options):
    stage = Stage()
    machine = Push(PlainPush(last=0), **options)
    stage.wire.connection.subscribe("d", machine)
    machine.connected(0.0)
    stage.wire.connection.apply(machine)
    stage.sent()
    return stage, PushMessages(stage.session, machine)


class End:
    """The work to do at the end."""

    def __init__(self, error=None):
        self.calls = 0
        self.error = error

    async def __call__(self):
        self.calls += 1
        if self.error is not None:
            raise self.error


def control(stage, line, reply=""):
    block = f"NATS/1.0 {line}\r\n\r\n".encode()
    to = reply + " " if reply else ""
    head = f"HMSG d 1 {to}{len(block)} {len(block)}\r\n".encode()
    return lambda: stage.wire.data(head + block + b"\r\n")


@pytest.mark.rule("PUSH-7")
def test_flow_control_is_answered_when_it_is_reached():
    stage, subscription = begin(flow_control=True, heartbeat=5.0)
    messages(stage, 1, 2)()
    control(stage, "100 FlowControl Request", "$JS.FC.S.C.a")()
    messages(stage, 3)()
    stage.run(subscription.next())
    assert stage.wire.sent() == b""
    stage.run(subscription.next())
    assert stage.wire.sent() == b"PUB $JS.FC.S.C.a 0\r\n\r\n"
    control(stage, "100 FlowControl Request", "$JS.FC.S.C.b")()
    assert stage.wire.sent() == b""
    assert stage.run(numbers(subscription, 1)) == [3]
    assert stage.wire.sent() == b"PUB $JS.FC.S.C.b 0\r\n\r\n"


@pytest.mark.rule("PUSH-1")
@pytest.mark.rule("PUSH-5")
def test_events():
    stage, subscription = begin(heartbeat=5.0)
    event = stage.run(subscription.events.next(), messages(stage, 3))
    assert event == Gap(1, 2)
    event = stage.run(subscription.events.next(), timer(stage, 15.0))
    assert isinstance(event, PushWarning)
    stage.wire.lost(at=16.0)
    assert isinstance(stage.run(subscription.events.next(0.5), timer(stage, 17.0)), TimeoutExpired)
    stage.run(subscription.unsubscribe())
    error = stage.run(subscription.events.next())
    assert "the subscription has ended" in str(error)


@pytest.mark.rule("PUSH-3")
def test_silence_is_watched_again_after_a_reconnect():
    stage, subscription = begin(heartbeat=5.0)
    stage.wire.lost(at=1.0)
    stage.wire.greet().data(PONG, at=30.0)
    assert isinstance(stage.run(subscription.events.next(1.0), timer(stage, 31.0)), TimeoutExpired)
    assert isinstance(stage.run(subscription.events.next(), timer(stage, 45.0)), PushWarning)


@pytest.mark.rule("D-PUSH-11")
def test_dropped():
    stage, subscription = begin(max_messages=2)
    messages(stage, 1, 2, 3, 4)()
    assert (subscription.pending, subscription.dropped) == (2, 2)
    (event,) = [each for each in stage.wire.events() if type(each).__name__ == "SlowConsumer"]
    assert (event.subject, event.sid, event.dropped) == ("d", 1, 2)


@pytest.mark.rule("PUSH-12")
def test_a_status_that_is_the_end():
    stage, subscription = begin()
    subscription.on_end = end = End()
    messages(stage, 1)()
    control(stage, "409 Consumer Deleted")()
    assert stage.sent() == ["UNSUB"]
    assert stage.run(subscription.next()).metadata.stream_seq == 1
    assert isinstance(stage.run(numbers(subscription)), ConsumerDeleted)
    assert (subscription.closed, end.calls) == (True, 0)
    stage.run(subscription.stop())
    assert end.calls == 1


@pytest.mark.rule("PUSH-14")
@pytest.mark.rule("PUSH-15")
@pytest.mark.parametrize("how", ["stop", "unsubscribe", "__aexit__"])
def test_unsubscribe(how):
    stage, subscription = begin()
    subscription.on_end = end = End()
    messages(stage, 1)()
    stage.run(getattr(subscription, how)())
    stage.run(getattr(subscription, how)())
    assert (stage.sent(), end.calls, subscription.closed) == (["UNSUB"], 1, True)
    assert "the subscription has ended" in str(stage.run(subscription.next()))
    assert end.calls == 1


@pytest.mark.rule("PUSH-15")
@pytest.mark.parametrize("taken_by", ["next", "__anext__"])
def test_drain(taken_by):
    stage, subscription = begin()
    subscription.on_end = end = End()

    def fence():
        messages(stage, 1)()
        stage.wire.data(PONG)

    stage.run(subscription.drain(), fence)
    assert (stage.sent(), end.calls) == (["UNSUB", "PING"], 0)
    stage.run(getattr(subscription, taken_by)())
    assert (subscription.closed, end.calls) == (True, 0)
    result = stage.run(getattr(subscription, taken_by)())
    assert isinstance(result, InvalidState if taken_by == "next" else StopAsyncIteration)
    assert end.calls == 1


@pytest.mark.rule("PUSH-15")
def test_drain_and_nothing_waits():
    stage, subscription = begin()
    subscription.on_end = end = End()
    stage.run(subscription.drain(), lambda: stage.wire.data(PONG))
    assert end.calls == 1


@pytest.mark.rule("PUSH-15")
@pytest.mark.parametrize("how", ["stop", "drain", "iteration"])
def test_a_failed_cleanup(how):
    stage, subscription = begin()
    subscription.on_end = end = End(ConsumerNotFound(404, 10014, "gone"))
    if how == "stop":
        result = stage.run(subscription.stop())
    elif how == "drain":
        result = stage.run(subscription.drain(), lambda: stage.wire.data(PONG))
    else:
        stage.wire.connection.unsubscribe(1)
        result = stage.run(numbers(subscription))
    if how == "iteration":
        assert (result, stage.run(subscription.events.next())) == ([], PushWarning(end.error))
    else:
        assert result is end.error
    assert end.calls == 1
