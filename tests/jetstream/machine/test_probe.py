from __future__ import annotations

import pytest

from jetstream.errors.api import ConsumerNotFound, StreamNotFound
from jetstream.machine.probe import GONE, THERE, UNSURE, Probe
from tests.jetstream.lookups import (
    HERE,
    NO_CONSUMER,
    NO_LEADER,
    NO_RESPONDERS,
    NO_STREAM,
    NONSENSE,
    NOT_ENABLED,
    answer,
)

TABLE = [  # answers, a second apart (None: there is none); what the last one means
    ([HERE], THERE),
    ([NO_CONSUMER], UNSURE),
    ([NO_CONSUMER, NO_CONSUMER], GONE),
    ([NO_STREAM, NO_STREAM], GONE),
    ([NO_CONSUMER, HERE], THERE),
    ([NO_CONSUMER, NO_STREAM], GONE),
    ([NO_CONSUMER, NO_LEADER, NO_CONSUMER], UNSURE),
    ([NO_CONSUMER, None, NO_CONSUMER], GONE),
    ([NO_LEADER], UNSURE),
    ([NOT_ENABLED], UNSURE),
    ([NO_RESPONDERS], UNSURE),
    ([NONSENSE], UNSURE),
    ([None, None, None, None, HERE], THERE),
]


@pytest.mark.rule("D-CONSUME-23")
@pytest.mark.rule("D-CONSUME-24")
@pytest.mark.rule("JSSUB-16")
@pytest.mark.parametrize(("answers", "last"), TABLE)
def test_answers(answers, last):
    probe = Probe("$JS.API", "S", "C")
    assert (probe.subject, probe.due, probe.asking) == (b"$JS.API.CONSUMER.INFO.S.C", None, False)
    assert probe.start(5.0)
    assert not probe.start(5.5)  # a lookup is in progress
    found = ""
    for number, data in enumerate(answers):
        if number:
            assert probe.handle_timer(probe.due)
        assert probe.due == 6.0 + number
        if data is not None:
            found = probe.receive(answer(data))
    assert found == last
    assert probe.asking is (last == UNSURE)
    assert (probe.due is None) is (last != UNSURE)


@pytest.mark.rule("D-CONSUME-24")
def test_the_probe_is_inconclusive():
    probe = Probe("$JS.API", "S", "C")
    probe.start(0.0)
    for now in (1.0, 2.0, 3.0, 4.0):
        assert probe.handle_timer(now)
    assert not probe.handle_timer(5.0)
    assert (probe.due, probe.asking) == (None, False)
    assert probe.receive(answer(HERE)) == UNSURE  # too late
    assert probe.start(9.0)
    assert probe.due == 10.0


@pytest.mark.rule("D-CONSUME-23")
@pytest.mark.parametrize(
    ("data", "error"), [(NO_CONSUMER, ConsumerNotFound), (NO_STREAM, StreamNotFound)]
)
def test_the_error(data, error):
    probe = Probe("$JS.hub.API", "S", "C")
    assert probe.subject == b"$JS.hub.API.CONSUMER.INFO.S.C"
    probe.start(0.0)
    probe.receive(answer(data))
    assert probe.error is None
    probe.receive(answer(data))
    assert type(probe.error) is error
    assert "CONSUMER.INFO.S.C" in str(probe.error)
    probe.start(5.0)
    assert probe.receive(answer(HERE)) == THERE
    assert (probe.info.stream_name, probe.info.name) == ("S", "C")
