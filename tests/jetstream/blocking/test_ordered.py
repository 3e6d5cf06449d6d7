"""The facade of ordered consumers behaves like its inner object."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.blocking.ordered import OrderedConsumer
from jetstream.ordered import api as ordered_consumer
from natsproto.errors import InvalidState, InvalidValue
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.support import Delivery, Stage, Status

STREAM = {"config": {"name": "S", "subjects": ["s.>"]}, "state": {}}
CONSUMER = {"stream_name": "S", "name": "o_1", "config": {}, "delivered": {}, "num_pending": 2}


def delivery(seq, number):
    return Delivery("s.a", f"$JS.ACK.S.o_1.1.{seq}.{number}.1.0", b"%d" % seq)


@pytest.mark.rule("D-CALL-14")
def test_it_is_a_twin():
    check_twins(ordered_consumer.OrderedConsumer, OrderedConsumer)


def test_it_behaves_like_the_asynchronous_consumer():
    stage = Stage(
        STREAM,
        CONSUMER,
        {**CONSUMER, "num_pending": 1},
        [delivery(1, 1), Status("404 No Messages")],
        [delivery(2, 2)],
        Status("408 Request Timeout", Nats_Pending_Messages=1),
        [delivery(3, 3)],
    )
    stream = JetStream(stage.blocking).stream("S")
    ordered = stream.ordered_consumer(name_prefix="o", filter_subjects="s.>")
    assert isinstance(ordered, OrderedConsumer)
    assert (ordered.name, ordered.stream, ordered.cached_info.num_pending) == ("o_1", "S", 2)
    assert ordered.recreated is None
    assert repr(ordered) == "<OrderedConsumer o_1 of S>"
    assert ordered.info().num_pending == 1
    assert [msg.data for msg in ordered.fetch(5, no_wait=True)] == [b"1"]
    assert ordered.next().data == b"2"
    assert ordered.next() is None
    with ordered.consume(max_messages=5) as messages:
        with pytest.raises(InvalidState):
            ordered.delete()
        assert next(messages).data == b"3"
        stage.answers.append({"success": True})
    with pytest.raises(InvalidValue):
        ordered.consume(max_messages=0)
