"""The facades of push subscriptions behave like their inner objects."""

from __future__ import annotations

import pytest

from jetstream.blocking.pull import JsMsg
from jetstream.blocking.push import PushEvents, PushMessages
from jetstream.events import Gap
from natsproto.errors import ConnectionClosed
from tests.jetstream.push.test_api import begin
from tests.jetstream.stages import messages


class Port:
    """A port whose lock is itself."""

    alone = False
    lock = property(lambda self: self)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        pass


@pytest.mark.rule("D-CALL-14")
def test_a_subscription():
    stage, inner = begin(max_messages=2)
    inner.stream, inner.name = "S", "C"
    subscription = PushMessages(inner, Port())
    assert (subscription.stream, subscription.name) == ("S", "C")
    messages(stage, 2, 3, 4)()
    assert (subscription.pending, subscription.dropped, subscription.closed) == (2, 1, False)
    assert isinstance(subscription.events, PushEvents)
    assert subscription.events.next() == Gap(1, 1)
    msg = next(subscription)
    assert isinstance(msg, JsMsg)
    assert msg.metadata.stream_seq == 2
    with subscription as entered:
        entered.unsubscribe()
    assert (subscription.closed, list(subscription), list(subscription.events)) == (True, [], [])
    with pytest.raises(ConnectionClosed):
        subscription.events.next()
