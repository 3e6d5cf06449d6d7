"""The facade of advisories: it behaves like its inner object."""

from __future__ import annotations

import json

import pytest

from jetstream.advisories import api
from jetstream.blocking import JetStream
from jetstream.blocking.advisories import Advisories
from natsproto.errors import TimeoutExpired
from tests.jetstream.advisories.samples import event
from tests.jetstream.blocking.test_blocking import test_everything_has_its_twin as check_twins
from tests.jetstream.support import Stage


@pytest.mark.rule("D-CALL-14")
def test_it_is_a_twin():
    check_twins(api.Advisories, Advisories)


def test_it_does_what_its_twin_does():
    stage = Stage()
    with JetStream(stage.blocking).advisories("nak", stream="S") as events:
        assert isinstance(events, Advisories)
        assert events.subjects == ["$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.S.*"]
        assert repr(events).startswith("<Advisories of ")
        data = json.dumps(event("nak")).encode()
        stage.wire.data(b"MSG s 1 %d\r\n%s\r\n" % (len(data), data) * 2)
        assert (events.pending, events.dropped, events.closed) == (2, 0, False)
        assert events.next().kind == "nak"
        assert next(iter(events)).kind == "nak"
        with pytest.raises(TimeoutExpired):
            events.next(0)
    assert events.closed
    assert list(events) == []
