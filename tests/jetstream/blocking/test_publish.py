"""The facades of publish windows and batches, on a scripted server."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.blocking.publish import Publication
from jetstream.errors import PublishesFailed, PublishInDoubt, WrongStream
from tests.jetstream.support import SILENCE, Stage


@pytest.mark.rule("D-CALL-14")
def test_a_window():
    refused = {"error": {"code": 400, "err_code": 10060, "description": "other stream"}}
    stage = Stage({"stream": "S", "seq": 1}, refused)
    with JetStream(stage.blocking).publisher(max_pending=2) as window:
        first = window.publish("s.a", b"1")
        assert isinstance(first, Publication)
        assert (first.subject, first.done, first.ack, first.error) == ("s.a", False, None, None)
        second = window.publish("s.b", b"2")
        assert window.pending == 2
        assert first.result().seq == first.ack.seq == 1
        with pytest.raises(PublishesFailed):
            window.flush()
        assert isinstance(second.error, WrongStream)
        assert repr(second) == "<Publication to 's.b', failed>"
    assert stage.connection.subscriptions.by_sid == {}


def test_a_window_does_not_wait_after_an_error():
    def main():
        with JetStream(stage.blocking).publisher() as window:
            window.publish("s.a", b"1")
            raise KeyError

    stage = Stage(SILENCE)
    with pytest.raises(KeyError):
        main()
    assert stage.waits == 0


def test_an_atomic_batch():
    stage = Stage(b"", {"stream": "S", "seq": 2, "batch": "0" * 22, "count": 2})
    batch = JetStream(stage.blocking).atomic_batch(timeout=1.0)
    batch.add("s.a")
    assert batch.size == 1
    assert batch.commit("s.b").count == 2


def test_a_fast_batch():
    begun = {"type": "ack", "seq": 0, "msgs": 2}
    end = {"stream": "S", "seq": 2, "batch": "0" * 22, "count": 2}
    stage = Stage(begun, [{"type": "gap", "last_seq": 2, "seq": 3}], end)
    with JetStream(stage.blocking).fast_batch(allow_gaps=True) as batch:
        assert (batch.add("s.a"), batch.add("s.b")) == (1, 2)
        assert batch.close().count == 2
    assert (batch.size, batch.stored, batch.lost) == (2, 2, 1)
    assert [loss.first for loss in batch.take_losses()] == [2]


@pytest.mark.rule("D-CALL-14")
def test_a_window_is_abandoned():
    stage = Stage([])
    window = JetStream(stage.blocking).publisher()
    publication = window.publish("s.a")
    window.abandon()
    assert isinstance(publication.error, PublishInDoubt)


def test_reprs():
    js = JetStream(Stage().blocking)
    assert repr(js.publisher(max_pending=5)) == "<PublishWindow, 0 of 5 pending>"
    assert repr(js.atomic_batch()) == "<AtomicBatch of 0 messages>"
