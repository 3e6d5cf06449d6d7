"""Hints for names of JetStream in nats-py."""

from __future__ import annotations

import pytest

from jetstream import JetStream, blocking
from jetstream.api import hints
from natsproto.errors import InvalidValue
from tests.jetstream.support import Stage


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize("kind", [JetStream, blocking.JetStream])
def test_a_name_of_nats_py_is_answered_with_a_hint(kind):
    js = kind.__new__(kind)
    for name, hint in hints.JETSTREAM.items():
        assert not hasattr(kind, name)
        with pytest.raises(AttributeError) as caught:
            getattr(js, name)
        text = "'JetStream' object has no attribute '%s'; %s" % (name, hint)
        assert str(caught.value) == text
    assert not hasattr(js, "nothing")


class Connecting:
    async def __aenter__(self):
        raise NotImplementedError


@pytest.mark.rule("D-HINT-1")
def test_objects_that_are_not_clients():
    text = "client is not connected yet; use `async with connect(...) as client:`"
    assert hints.not_a_client(Connecting()) == text
    assert hints.not_a_client("nats://a").startswith("client is not asynchronous: 'nats://a'; ")


KEYWORDS = [  # the table, a call with such a keyword
    (hints.PUBLISH, lambda js, consumer, given: js.publish("a", **given)),
    (hints.SUBSCRIBE, lambda js, consumer, given: js.subscribe("a", stream="S", **given)),
    (hints.SUBSCRIBE, lambda js, consumer, given: js.pull_subscribe("a", stream="S", **given)),
    (hints.PULL, lambda js, consumer, given: consumer.fetch(1, **given)),
    (hints.PULL, lambda js, consumer, given: consumer.consume(**given)),
]


async def run(call, js, consumer, given):
    found = call(js, consumer, given)
    return await found


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize(("table", "call"), KEYWORDS)
def test_a_keyword_of_nats_py_is_answered_with_a_hint(table, call):
    stage = Stage()
    js = JetStream(stage.client)
    consumer = js.bind_consumer("S", "C")
    for name, hint in table.items():
        with pytest.raises(InvalidValue) as caught:
            stage.run(run(call, js, consumer, {name: None}))
        assert "%r; %s" % (name, hint if " " in hint else "use " + hint) in str(caught.value)
    assert stage.asked == []
