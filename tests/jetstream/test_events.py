from __future__ import annotations

import pytest

from jetstream import events
from jetstream.errors import PullRefused
from jetstream.events import (
    ConsumerReset,
    ConsumerSequenceReset,
    Gap,
    Loss,
    Pinned,
    PullWarning,
    PushWarning,
    StreamRecreated,
    Unpinned,
)
from jetstream.schema.timestamp import Timestamp
from natsproto.wire.record import Record


@pytest.mark.rule("CONSUME-13")
def test_pull_events():
    error = PullRefused(409, "x")
    assert PullWarning(error).error is error
    assert Pinned("id") == Pinned("id")
    assert Pinned("id") != Pinned("other")
    assert Unpinned() == Unpinned()


def test_push_and_ordered_events():
    error = PullRefused(409, "x")
    assert PushWarning(error).error is ConsumerReset(error).error is error
    assert Gap(3, 5) == Gap(first=3, last=5) != Gap(3, 4)
    assert repr(ConsumerSequenceReset(7, 1)) == "ConsumerSequenceReset(before=7, now=1)"
    before, created = Timestamp(1), Timestamp(2)
    event = StreamRecreated("ORDERS", before, created)
    assert (event.stream, event.before, event.created) == ("ORDERS", before, created)


def test_losses():
    error = PullRefused(409, "x")
    assert repr(Loss(2, 2, error)) == "<Loss of 2 to 2: %s>" % error
    assert repr(Loss(3, 5)) == "<Loss of 3 to 5: a gap>"


def test_every_event_is_public():
    defined = {each for each in vars(events).values() if isinstance(each, type)}
    assert events.__all__ == sorted(each.__name__ for each in defined if each is not Record)
