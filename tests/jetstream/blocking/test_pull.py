"""The facades of pulled messages behave like their inner objects."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.blocking.pull import Batch, Fetch, JsMsg, facade_or_none
from jetstream.errors import ConsumerDeleted
from jetstream.events import PullWarning
from natsproto.errors import ConnectionClosed, InvalidState
from tests.jetstream.support import SILENCE, Delivery, Stage, Status

CONSUMER = {"stream_name": "S", "name": "C", "config": {"name": "C", "ack_policy": "explicit"}}


def ack(number: int) -> str:
    return f"$JS.ACK.S.C.1.{number}.{number}.1794786953259130270.0"


def delivery(number: int) -> Delivery:
    return Delivery("s.a", ack(number), b"%d" % number)


def consumer(*answers):
    """Return a stage that answers so, and a consumer on it."""
    stage = Stage(CONSUMER, *answers)
    made = JetStream(stage.blocking).consumer("S", "C")
    assert [subject for subject, _ in stage.asked] == ["$JS.API.CONSUMER.INFO.S.C"]
    return stage, made


def test_the_attributes_of_a_message():
    stage, made = consumer([delivery(7)])
    msg = made.next()
    assert msg is not None
    assert (msg.subject, msg.raw_subject) == ("s.a", b"s.a")
    assert (msg.reply, msg.raw_reply) == (ack(7), ack(7).encode())
    assert (msg.data, msg.headers, msg.raw_headers) == (b"7", None, None)
    assert (msg.status, msg.description) == (0, "")
    assert (msg.sid, msg.size) == (msg.inner.sid, msg.inner.size)
    assert (msg.metadata.stream, msg.metadata.stream_seq) == ("S", 7)
    assert repr(msg) == repr(msg.inner)
    assert not msg.settled
    stage.answers.append(b"")
    for settle in (msg.in_progress, msg.ack_sync, msg.ack, msg.nak, msg.term):
        settle()
    assert msg.settled
    sent = [pub.data for pub in stage.pubs if pub.subject == ack(7)]
    assert sent == [b"+WPI", b"+ACK"]  # only the first acknowledgment that settles is sent


@pytest.mark.parametrize("joins", [False, True])
def test_an_ack_that_joins_others_takes_no_lock(joins):
    stage, made = consumer([delivery(1)])
    msg = made.next()
    before = stage.entered
    stage.joins = joins
    msg.ack()
    assert (msg.settled, stage.entered - before) == (True, 0 if joins else 1)
    assert stage.wire.sent().endswith(b"PUB %s 4\r\n+ACK\r\n" % ack(1).encode())


@pytest.mark.rule("D-CLOCK-4")
def test_an_ack_that_a_signal_handler_interrupts_is_left_to_the_port():
    def interrupted():
        raise KeyboardInterrupt

    stage, made = consumer([delivery(1)])
    msg = made.next()
    stage.flush_soon, stage.pump_soon = interrupted, stage.flush_soon
    with pytest.raises(KeyboardInterrupt):
        msg.ack()
    assert stage.wire.sent().endswith(b"PUB %s 4\r\n+ACK\r\n" % ack(1).encode())


def test_no_message_has_no_facade():
    stage, made = consumer([Status("408 Request Timeout")])
    assert made.next(expires=1.0) is None
    assert facade_or_none(None, stage) is None


def test_a_batch_is_like_a_list():
    _, made = consumer([delivery(1), delivery(2), Status("409 Consumer Deleted")])
    batch = made.fetch(5)
    assert isinstance(batch, Batch)
    assert [msg.data for msg in batch] == [b"1", b"2"]
    assert (len(batch), batch[1].data) == (2, b"2")
    assert isinstance(batch[0], JsMsg)
    assert isinstance(batch.error, ConsumerDeleted)
    assert repr(batch) == f"<Batch of 2, error {batch.error!r}>"


@pytest.mark.rule("FETCH-14")
def test_a_fetch_is_iterated():
    stage, made = consumer([delivery(1), delivery(2), Status("409 Consumer Deleted")])
    fetch = made.iter_fetch(5)
    assert isinstance(fetch, Fetch)
    assert iter(fetch) is fetch
    assert stage.asked == []
    taken = [next(fetch), next(fetch)]
    assert [msg.data for msg in taken] == [b"1", b"2"]
    assert isinstance(taken[0], JsMsg)
    with pytest.raises(ConsumerDeleted):
        next(fetch)
    assert list(fetch) == []


@pytest.mark.rule("FETCH-14")
@pytest.mark.parametrize("how", ["break", "close"])
def test_an_abandoned_fetch_leaves_its_messages_to_the_next(how):
    _, made = consumer([delivery(1), delivery(2)])
    fetch = made.iter_fetch(5)
    for msg in fetch:
        assert msg.data == b"1"
        break
    if how == "close":
        fetch.close()
    else:
        del fetch
    assert [msg.data for msg in made.fetch(1)] == [b"2"]


@pytest.mark.parametrize("alone", [True, False])
def test_poll(alone):
    stage, made = consumer([delivery(number) for number in range(1, 7)], SILENCE)
    stage.alone = alone
    messages = made.consume(max_messages=6, threshold_messages=1)
    found = [next(messages), next(messages)]  # the second one is taken without a coroutine
    found += [messages.poll(), messages.poll(), messages.poll(), next(messages)]
    assert messages.poll() is None
    assert [msg.data for msg in found] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    for msg in found:
        msg.ack()
        msg.ack()
        assert msg.settled
    assert [pub.data for pub in stage.pubs if pub.subject.startswith("$JS.ACK")] == [b"+ACK"] * 6


def test_consume_yields_messages_until_it_is_stopped():
    stage, made = consumer([delivery(1), delivery(2), delivery(3)], SILENCE)
    with made.consume(max_messages=3) as messages:
        assert iter(messages) is messages
        assert [next(messages).data, messages.next(timeout=1.0).data] == [b"1", b"2"]
        assert (messages.pending, messages.closed) == (1, False)
        rest = messages.stop()
    assert [msg.data for msg in rest] == [b"3"]
    assert isinstance(rest[0], JsMsg)
    assert messages.closed
    with pytest.raises(StopIteration):
        next(messages)
    with pytest.raises(InvalidState):
        messages.next()
    stage.serve()


def test_run_calls_for_each_message():
    _, made = consumer([delivery(1), delivery(2), delivery(3)], SILENCE)
    seen = []

    def callback(msg):
        assert isinstance(msg, JsMsg)
        seen.append(msg.data)
        msg.ack()

    made.consume(max_messages=3, stop_after=2).run(callback)
    assert seen == [b"1", b"2"]


def test_after_a_drain_arrived_messages_can_be_taken():
    _, made = consumer([delivery(1), delivery(2)], SILENCE)
    messages = made.consume(max_messages=2)
    assert next(messages).data == b"1"
    messages.drain()
    assert [msg.data for msg in messages] == [b"2"]


def test_events_report_pulls_and_end_with_them():
    _, made = consumer([Status("409 Leadership Change")], SILENCE)
    messages = made.consume(max_messages=2)
    events = messages.events
    assert iter(events) is events
    event = next(events)
    assert isinstance(event, PullWarning)
    messages.stop()
    assert list(events) == []
    with pytest.raises(ConnectionClosed):
        events.next()


def test_a_pull_subscription():
    stage = Stage(CONSUMER, [delivery(1)], CONSUMER)
    with JetStream(stage.blocking).pull_subscribe("s.a", stream="S", name="C") as sub:
        assert (sub.stream, sub.name, sub.closed) == ("S", "C", False)
        batch = sub.fetch()
        assert isinstance(batch, Batch)
        assert batch[0].data == b"1"
        assert sub.info() == sub.cached_info
        assert repr(sub) == repr(sub.inner)
    assert sub.closed


@pytest.mark.rule("D-RUN-10")
def test_run_with_on_error():
    stage, made = consumer([delivery(1), delivery(2)], SILENCE)
    seen = []

    def callback(msg):
        seen.append(msg.data)
        raise ValueError(msg.data)

    def on_error(msg, error):
        seen.append(str(error))
        msg.nak()

    made.consume(max_messages=3, stop_after=2).run(callback, on_error=on_error)
    assert seen == [b"1", "b'1'", b"2", "b'2'"]
    assert [pub.data for pub in stage.pubs].count(b"-NAK") == 2


@pytest.mark.rule("D-CONSUME-30")
@pytest.mark.parametrize("nak", [False, True])
def test_nak_on_exit(nak):
    stage, made = consumer([delivery(1), delivery(2), delivery(3)], SILENCE)
    with made.consume(max_messages=3, nak_on_exit=nak) as messages:
        assert next(messages).data == b"1"
        assert (messages.pending, messages.dropped) == (2, 0)
    assert [pub.data for pub in stage.pubs].count(b"-NAK") == (2 if nak else 0)


@pytest.mark.rule("D-SNAPSHOT-1")
def test_snapshots():
    _, made = consumer([delivery(1), delivery(2)], SILENCE)
    with made.consume(max_messages=3) as messages:
        assert next(messages).data == b"1"
        assert messages.snapshot().pending == 1
        assert repr(messages).endswith("1 messages wait to be taken>")
    assert made.iter_fetch(3).snapshot().stopped
