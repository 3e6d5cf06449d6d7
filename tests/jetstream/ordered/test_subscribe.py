from __future__ import annotations

import json

import pytest

from jetstream.errors import JetStreamNotAvailable, StreamNotFound
from jetstream.machine.cleanup import Cleanup
from jetstream.ordered.subscribe import subscribe_ordered
from natsproto.errors import ConnectionClosed, TimeoutExpired
from tests.connection.support import hmsg
from tests.jetstream.stages import Cancelled, Stage, cancel, timer


def created(stage, serial=1, at=None, **answer):
    """Return a step: the answer to the creation of a consumer."""
    reply = answer or {"name": "o", "config": {}, "delivered": {}}
    data = json.dumps(reply).encode()
    subject = "_INBOX." + "0" * 22 + ".d%d" % serial
    return lambda: stage.wire.data(
        f"MSG {subject} 1 {len(data)}\r\n".encode() + data + b"\r\n", at=at
    )


def order(stage, *script, **options):
    return stage.run(subscribe_ordered(stage, "S", {"deliver_policy": "all"}, **options), *script)


def ordered_messages(stage, *numbers):
    def step():
        for number in numbers:
            reply = "$JS.ACK.S.%s_1.1.%d.%d.1.0" % ("0" * 22, number, number)
            stage.wire.data(f"MSG s 1 {reply} 1\r\nx\r\n".encode())

    return step


@pytest.mark.rule("ORDPUSH-2")
@pytest.mark.rule("D-ORDPUSH-9")
@pytest.mark.rule("ORDPUSH-10")
def test_ordered():
    stage = Stage()
    subscription = order(stage, ordered_messages(stage, 1), created(stage))
    sent = stage.wire.sent()
    inbox = "_INBOX." + "0" * 22
    assert sent.startswith(f"SUB {inbox}.d1 1\r\nPUB $JS.API.CONSUMER.CREATE.S.".encode())
    ordered_messages(stage, 2, 4)()
    assert [stage.run(subscription.next()).metadata.stream_seq for _ in range(2)] == [1, 2]
    cursor = subscription.cursor
    assert (cursor.stream, cursor.name, cursor.start) == ("S", "0" * 22 + "_2", 3)
    assert b"opt_start_seq" in stage.wire.sent()
    msg = stage.run(subscription.next(1.0), timer(stage, 1.0))
    assert isinstance(msg, TimeoutExpired)
    stage.run(subscription.unsubscribe())
    sent = stage.wire.sent()
    assert b"UNSUB 1\r\n" in sent
    assert b"CONSUMER.DELETE.S." + b"0" * 22 + b"_2 " in sent


@pytest.mark.rule("D-ORDPUSH-9")
@pytest.mark.parametrize("up", [True, False])
def test_ordered_without_a_response(up):
    stage = Stage(up)
    result = order(stage, timer(stage, 5.0))
    assert isinstance(result, TimeoutExpired)
    sent = stage.wire.sent()
    assert (b"CONSUMER.DELETE" in sent) is up
    left = stage.wire.connection.subscriptions.receivers()
    assert [type(each) for each in left] == ([Cleanup] if up else [])
    assert (b"CONSUMER.INFO.S." + b"0" * 22 + b"_1 " in sent) is up


@pytest.mark.rule("D-ORDPUSH-9")
def test_ordered_and_it_is_refused():
    stage = Stage()
    error = {"code": 404, "err_code": 10059, "description": "stream not found"}
    assert isinstance(order(stage, created(stage, error=error)), StreamNotFound)
    assert stage.wire.connection.subscriptions.by_sid == {}


@pytest.mark.rule("D-ORDPUSH-9")
def test_ordered_without_responders():
    stage = Stage()
    block = b"NATS/1.0 503\r\n\r\n"
    inbox = "_INBOX." + "0" * 22
    result = order(
        stage,
        lambda: stage.wire.data(hmsg(f"{inbox}.d1", 1, block), at=1.0),
        timer(stage, 2.0),
        lambda: stage.wire.data(hmsg(f"{inbox}.d2", 1, block), at=3.0),
        timer(stage, 5.0),
    )
    assert isinstance(result, JetStreamNotAvailable)


@pytest.mark.rule("D-ORDPUSH-9")
@pytest.mark.rule("D-ORDPUSH-11")
def test_ordered_and_it_is_canceled():
    stage = Stage()
    assert isinstance(order(stage, cancel), Cancelled)
    [left] = stage.wire.connection.subscriptions.receivers()
    assert isinstance(left, Cleanup)
    assert b"CONSUMER.INFO.S." + b"0" * 22 + b"_1 " in stage.wire.sent()


@pytest.mark.rule("D-ORDPUSH-9")
def test_ordered_and_the_client_is_closed():
    stage = Stage()
    result = order(stage, lambda: stage.wire.tell("close"))
    assert isinstance(result, ConnectionClosed)
