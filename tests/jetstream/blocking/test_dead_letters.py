"""The facades of dead letters: they behave like their inner objects."""

from __future__ import annotations

import json

import pytest

from jetstream.blocking import JetStream
from jetstream.blocking.dead_letters import DeadLetter, DeadLetters
from jetstream.dead_letters import api, letter
from natsproto.errors import TimeoutExpired
from tests.jetstream.advisories.samples import event
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.support import Stage

MESSAGE = {"message": {"subject": "s.a", "seq": 3, "time": "2026-11-17T18:02:39Z", "data": "eA=="}}


@pytest.mark.rule("D-CALL-14")
def test_they_are_twins():
    check_twins(api.DeadLetters, DeadLetters)
    check_twins(letter.DeadLetter, DeadLetter)


def test_they_do_what_their_twins_do():
    stage = Stage({"config": {"name": "S"}}, MESSAGE, MESSAGE, {"stream": "S", "seq": 9})
    consumer = JetStream(stage.blocking).bind_consumer("S", "c")
    with consumer.dead_letters() as letters:
        assert isinstance(letters, DeadLetters)
        assert (letters.stream, letters.consumer, letters.closed) == ("S", "c", False)
        assert repr(letters) == "<DeadLetters of consumer c of stream S>"
        data = json.dumps(event("max_deliver")).encode()
        stage.wire.data(b"MSG s 1 %d\r\n%s\r\n" % (len(data), data) * 2)
        first = letters.next(5.0)
        assert isinstance(first, DeadLetter)
        assert (first.stream, first.consumer, first.seq) == ("S", "c", 3)
        assert (first.kind, first.reason, first.deliveries) == ("max_deliver", "", 2)
        assert (first.gone, first.retries, first.settled) == (False, 0, False)
        assert first.message.data == b"x"
        assert first.time == first.advisory.timestamp
        assert repr(first).startswith("<DeadLetter 3 of ")
        second = next(iter(letters))
        assert isinstance(second, DeadLetter)
        first.in_progress()
        assert first.retry().seq == 9
        second.discard()
        assert second.settled
        with pytest.raises(TimeoutExpired):
            letters.next(0)
    assert letters.closed
    assert list(letters) == []
