"""Hints for attributes of other clients."""

from __future__ import annotations

import pytest

from jetstream import JsMsg, KeyValue, ObjectStore, PullSubscription, blocking
from jetstream.api import attributes
from jetstream.api.metadata import Metadata
from jetstream.push.api import PushMessages
from jetstream.streams.consumer import Consumer
from jetstream.streams.stream import Stream

CLASSES = [  # the table, the classes that answer with its hints
    (attributes.STREAM, Stream, blocking.Stream),
    (attributes.CONSUMER, Consumer, blocking.Consumer),
    (attributes.MESSAGE, JsMsg, blocking.JsMsg),
    (attributes.METADATA, Metadata),
    (attributes.PULL_SUBSCRIPTION, PullSubscription, blocking.PullSubscription),
    (attributes.PUSH_SUBSCRIPTION, PushMessages, blocking.PushMessages),
    (attributes.KEY_VALUE, KeyValue, blocking.KeyValue),
    (attributes.OBJECT_STORE, ObjectStore, blocking.ObjectStore),
]


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize(
    ("table", "kind"), [(table, kind) for table, *kinds in CLASSES for kind in kinds]
)
def test_every_class_answers_with_its_hints(table, kind):
    made = kind.__new__(kind)
    for name, hint in table.items():
        with pytest.raises(AttributeError) as caught:
            getattr(made, name)
        text = "%r object has no attribute %r; %s" % (kind.__name__, name, hint)
        assert str(caught.value) == text
