from __future__ import annotations

import pytest

from jetstream.errors import (
    NoStreamResponse,
    PublishesFailed,
    PublishInDoubt,
    WrongStream,
)
from jetstream.publish.window import PublishWindow
from jetstream.schema.info import PubAck
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidSubject,
    InvalidValue,
    PayloadTooLarge,
    PermissionDenied,
)
from tests.jetstream.support import NOBODY, SILENCE, Stage

REFUSED = {"error": {"code": 400, "err_code": 10060, "description": "other stream"}}


def ack(seq):
    return {"stream": "S", "seq": seq}


def make(stage, max_pending=10, ack_timeout=5.0, retries=2):
    return PublishWindow(stage.client.session, max_pending, ack_timeout, retries)


@pytest.mark.rule("D-PUB-10")
def test_publishing_waits_for_nothing():
    stage = Stage(ack(1), ack(2), ack(3))
    window = make(stage)
    made = [stage.run(window.publish(f"s.{i}", b"%d" % i, msg_id=str(i))) for i in range(3)]
    assert (window.pending, stage.waits) == (3, 0)
    stage.run(window.flush())
    assert window.pending == 0
    assert [publication.ack.seq for publication in made] == [1, 2, 3]
    inbox = "_INBOX." + "0" * 22
    assert [(pub.subject, pub.data, pub.reply, pub.headers.items()) for pub in stage.pubs] == [
        (f"s.{i}", b"%d" % i, f"{inbox}.{i + 1}", [("Nats-Msg-Id", str(i))]) for i in range(3)
    ]


@pytest.mark.rule("D-PUB-10")
def test_results_one_by_one():
    stage = Stage(ack(1), REFUSED)
    window = make(stage)
    first = stage.run(window.publish("s.a"))
    second = stage.run(window.publish("s.b", headers={}))
    assert stage.run(first.result()) == PubAck(stream="S", seq=1)
    with pytest.raises(WrongStream):
        stage.run(second.result())
    stage.run(window.flush())  # already raised


@pytest.mark.rule("D-PUB-11")
def test_a_full_window_waits_for_a_quarter_of_it():
    stage = Stage(*[ack(n) for n in range(1, 12)])
    window = make(stage, max_pending=10)
    for _ in range(10):
        stage.run(window.publish("s.a"))
    assert (window.pending, stage.waits) == (10, 0)
    stage.run(window.publish("s.a"))
    assert (window.pending, stage.waits) == (1, 1)
    stage.run(window.flush())
    assert window.pending == 0


@pytest.mark.rule("D-PUB-11")
def test_publish_waits_while_the_send_buffer_is_full():
    stage = Stage(ack(1), ack(2))
    window = make(stage)
    stage.connection.outbound.max_payload = 1 << 30
    stage.run(window.publish("s.a", bytes(HIGH_WATER + 1)))
    waited = []

    async def wait(waitable):
        waited.append(waitable)
        stage.wire.look()

    stage.wait = wait
    stage.run(window.publish("s.b"))
    assert waited == [stage.connection.writable]
    assert window.pending == 2


@pytest.mark.rule("D-PUB-16")
def test_flush_raises_failures_once():
    stage = Stage(ack(1), REFUSED, ack(2), NOBODY, NOBODY, NOBODY)
    window = make(stage)
    made = [stage.run(window.publish("s.a")) for _ in range(4)]
    with pytest.raises(
        PublishesFailed, match=r"2 publishes failed, the first one to 's\.a'"
    ) as failed:
        stage.run(window.flush())
    assert failed.value.publications == [made[1], made[3]]
    assert [type(each.error) for each in (made[1], made[3])] == [WrongStream, NoStreamResponse]
    assert stage.now() == 0.5
    stage.run(window.flush())


@pytest.mark.rule("D-PUB-16")
def test_too_many_unraised_failures_are_raised_by_publish():
    stage = Stage(*[REFUSED] * 7)
    window = make(stage, max_pending=3)
    for _ in range(3):
        stage.run(window.publish("s.a"))
    stage.serve()
    with pytest.raises(PublishesFailed, match="3 publishes failed"):
        stage.run(window.publish("s.a"))
    made = [stage.run(window.publish("s.a")) for _ in range(3)]
    for publication in made:
        with pytest.raises(WrongStream):
            stage.run(publication.result())
    stage.run(window.publish("s.a"))  # the failures were raised
    assert window._machine.failed == []


def test_repr_shows_pending_publishes():
    stage = Stage(SILENCE)
    window = make(stage, max_pending=5)
    stage.run(window.publish("s.a"))
    assert repr(window) == "<PublishWindow, 1 of 5 pending>"
    stage.connection.close(0.0)
    assert repr(window) == "<PublishWindow, closed>"


@pytest.mark.rule("D-PUB-12")
def test_no_answer():
    stage = Stage(SILENCE, ack(1))
    window = make(stage, ack_timeout=1.5)
    lost = stage.run(window.publish("s.a"))
    stage.run(window.publish("s.b"))
    with pytest.raises(PublishesFailed) as failed:
        stage.run(window.flush())
    assert failed.value.publications == [lost]
    assert stage.now() == 1.5
    with pytest.raises(PublishInDoubt):
        stage.run(lost.result())


@pytest.mark.rule("D-PUB-12")
def test_no_answer_to_anything():
    stage = Stage(SILENCE)
    publication = stage.run(make(stage, ack_timeout=1.5).publish("s.a"))
    with pytest.raises(PublishInDoubt):
        stage.run(publication.result())
    assert stage.now() == 1.5


@pytest.mark.rule("PUB-4")
def test_in_a_cluster_503_is_retried_for_longer():
    stage = Stage(*[NOBODY] * 24, ack(1), cluster="C")
    window = make(stage)
    assert stage.run(stage.run(window.publish("s.a")).result()).seq == 1
    assert stage.now() == 6.0


@pytest.mark.rule("D-PUB-13")
def test_over_a_lost_connection():
    stage = Stage(SILENCE, SILENCE, ack(1), ack(2))
    window = make(stage)
    plain = stage.run(window.publish("s.a", b"1"))
    safe = stage.run(window.publish("s.b", b"2", msg_id="2"))
    stage.serve()
    stage.wire.lost()
    later = stage.run(window.publish("s.c", b"3"))
    assert (plain.done, safe.done, later.done) == (True, False, False)
    stage.forget_transport()
    stage.wire.greet(jetstream=True).data(b"PONG\r\n")
    fresh = stage.run(window.publish("s.d", b"4"))
    stage.answers.append(ack(3))
    for publication, seq in ((safe, 1), (later, 2), (fresh, 3)):
        assert stage.run(publication.result()).seq == seq
    assert [data for _, data in stage.asked] == [b"1", b"2", b"2", b"3", b"4"]
    with pytest.raises(PublishesFailed, match="the connection was lost"):
        stage.run(window.close())


@pytest.mark.rule("D-PUB-12", "D-PUB-13")
def test_without_a_connection_publishes_are_held():
    stage = Stage(ack(1), ack(2))
    stage.wire.lost()
    window = make(stage, max_pending=2)
    for _ in range(2):
        stage.run(window.publish("s.a"))
    assert (window.pending, stage.wire.sent()) == (2, b"")
    stage.wire.greet(jetstream=True).data(b"PONG\r\n")
    stage.run(window.flush())


@pytest.mark.rule("D-PUB-15")
def test_a_publish_that_cannot_be_sent_raises_at_once():
    stage = Stage(ack(1), max_payload=10)
    window = make(stage)
    with pytest.raises(PayloadTooLarge):
        stage.run(window.publish("s.a", bytes(11)))
    assert window.pending == 0
    stage.run(window.publish("s.a", bytes(10)))
    stage.run(window.flush())
    assert len(stage.asked) == 1


@pytest.mark.rule("D-PUB-15")
def test_a_held_publish_that_is_too_large_fails():
    stage = Stage(SILENCE)
    window = make(stage)
    publication = stage.run(window.publish("s.a", bytes(10), msg_id="1"))
    stage.serve()
    stage.wire.lost()
    stage.wire.greet(max_payload=5).data(b"PONG\r\n")
    with pytest.raises(PayloadTooLarge):
        stage.run(publication.result())


@pytest.mark.rule("D-PUB-9")
@pytest.mark.parametrize(
    ("subject", "data", "options", "wrong"),
    [
        ("s..a", b"", {}, InvalidSubject),
        ("s.*", b"", {}, InvalidSubject),
        (7, b"", {}, InvalidSubject),
        (["s"], b"", {}, InvalidSubject),
        ("s.a", "text", {}, InvalidValue),
        ("s.a", b"", {"msgid": "1"}, InvalidValue),
    ],
)
def test_wrong_calls(subject, data, options, wrong):
    stage = Stage()
    window = make(stage)
    with pytest.raises(wrong):
        stage.run(window.publish(subject, data, **options))
    assert (window.pending, stage.asked) == (0, [])


@pytest.mark.parametrize(
    ("max_pending", "ack_timeout", "retries"),
    [(0, 5.0, 2), (-1, 5.0, 2), (1.0, 5.0, 2), (1, -1, 2), (1, 5.0, -1), (1, 5.0, True)],
)
def test_wrong_windows(max_pending, ack_timeout, retries):
    with pytest.raises(InvalidValue):
        make(Stage(), max_pending, ack_timeout, retries)


@pytest.mark.rule("D-PUB-18")
def test_a_canceled_wait_does_not_cancel_the_publish():
    stage = Stage(ack(1))
    window = make(stage)
    publication = stage.run(window.publish("s.a"))
    wait = stage.wait
    stage.wait = lambda waitable: Suspend()
    waiting = publication.result()
    waiting.send(None)
    waiting.close()
    stage.wait = wait
    assert (publication.done, window.pending) == (False, 1)
    assert stage.run(publication.result()).seq == 1


class Suspend:
    def __await__(self):
        yield


@pytest.mark.rule("D-PUB-18")
def test_flush_does_not_wait_for_later_publishes():
    stage = Stage(ack(1), SILENCE, SILENCE)
    window = make(stage)
    stage.run(window.publish("s.a"))
    wait = stage.wait

    async def publish_more(waitable):
        if stage.waits < 2:
            await window.publish("s.b")
        await wait(waitable)

    stage.wait = publish_more
    stage.run(window.flush())
    assert (window.pending, stage.now()) == (1, 0.0)


@pytest.mark.rule("D-PUB-17")
def test_the_block_waits_and_unsubscribes():
    async def main(window):
        async with window as same:
            assert same is window
            await window.publish("s.a")

    stage = Stage(ack(1))
    window = make(stage)
    stage.run(main(window))
    assert stage.wire.sent() == b"UNSUB 1\r\n"
    assert stage.connection.subscriptions.by_sid == {}
    with pytest.raises(InvalidState, match="the publisher is closed"):
        stage.run(window.publish("s.b"))
    stage.run(window.close())


@pytest.mark.rule("D-PUB-17")
def test_a_block_that_fails_does_not_wait():
    async def main(window):
        async with window:
            made.append(await window.publish("s.a"))
            raise KeyError

    stage = Stage(SILENCE)
    made = []
    window = make(stage)
    with pytest.raises(KeyError):
        stage.run(main(window))
    assert isinstance(made[0].error, PublishInDoubt)
    assert stage.waits == 0


@pytest.mark.rule("D-PUB-17")
def test_a_window_that_is_abandoned():
    stage = Stage(SILENCE)
    window = make(stage)
    made = stage.run(window.publish("s.a"))
    window.abandon()
    assert isinstance(made.error, PublishInDoubt)
    assert (stage.waits, stage.connection.subscriptions.by_sid) == (0, {})


@pytest.mark.rule("D-PUB-17")
def test_closing_ends_the_window_after_failures():
    stage = Stage(REFUSED)
    window = make(stage)
    stage.run(window.publish("s.a"))
    with pytest.raises(PublishesFailed):
        stage.run(window.close())
    assert stage.connection.subscriptions.by_sid == {}


@pytest.mark.rule("D-PUB-17")
def test_the_end_of_the_client():
    stage = Stage(SILENCE)
    window = make(stage)
    stage.run(window.publish("s.a"))
    stage.connection.close(0.0)
    with pytest.raises(PublishesFailed, match="the publisher was closed"):
        stage.run(window.flush())
    with pytest.raises(ConnectionClosed):
        stage.run(window.publish("s.b"))
    with pytest.raises(ConnectionClosed):
        make(stage)


@pytest.mark.rule("D-PUB-17")
def test_a_server_that_forbids_the_inbox():
    stage = Stage(SILENCE)
    window = make(stage)
    publication = stage.run(window.publish("s.a"))
    inbox = "_INBOX." + "0" * 22
    text = f'Permissions Violation for Subscription to "{inbox}.*"'
    stage.wire.data(f"-ERR '{text}'\r\n".encode())
    with pytest.raises(PublishInDoubt, match="Permissions Violation"):
        stage.run(publication.result())
    with pytest.raises(PermissionDenied):
        stage.run(window.publish("s.b"))


@pytest.mark.rule("D-PUB-17")
def test_nothing_grows():
    stage = Stage(*[ack(n) for n in range(1, 3001)])
    window = make(stage, max_pending=7)
    for number in range(3000):
        stage.run(window.publish(f"s.{number}"))
    stage.run(window.flush())
    connection = stage.connection
    subscriptions = connection.subscriptions
    assert (subscriptions.busy, connection.bus.ready, len(subscriptions.by_sid)) == ([], [], 1)
    assert len(window._checked) <= 1024
    assert len(connection.bus.timers.heap) < 64
