"""Names of nats-py that the native API does not have are answered with the equivalent.

Every public attribute of nats-py's classes either exists on the class that takes its place here, or
raises AttributeError with a hint. docs/nats-py.md promises it.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import jetstream
import natsproto
from jetstream import blocking
from jetstream.api.metadata import Metadata
from jetstream.push.api import PushMessages
from natsproto import hints
from natsproto.blocking import Client as BlockingClient
from natsproto.blocking import Subscription as BlockingSubscription
from natsproto.options import Options

pytest.importorskip("nats")

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.client import JetStreamContext
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

PAIRS = [  # a class of nats-py, those that take its place
    (Client, natsproto.Client, BlockingClient),
    (Subscription, natsproto.Subscription, BlockingSubscription),
    (Msg, natsproto.Msg, jetstream.JsMsg, blocking.JsMsg),
    (Msg.Metadata, Metadata),
    (JetStreamContext, jetstream.JetStream, blocking.JetStream),
    (JetStreamContext.PullSubscription, jetstream.PullSubscription, blocking.PullSubscription),
    (JetStreamContext.PushSubscription, PushMessages, blocking.PushMessages),
    (KeyValue, jetstream.KeyValue, blocking.KeyValue),
    (ObjectStore, jetstream.ObjectStore, blocking.ObjectStore),
]
# Hooks for subclasses and helpers of nats-py's own code.
INTERNAL = {"msg_class", "is_status_msg"}


def public(theirs: Any) -> list[str]:
    """The public attributes of a class, without constants and nested classes."""
    names = {name for name in dir(theirs) if name[0].islower()}
    if dataclasses.is_dataclass(theirs):
        names |= {field.name for field in dataclasses.fields(theirs) if field.name[0] != "_"}
    return sorted(names - INTERNAL)


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize(
    ("theirs", "ours"), [(theirs, ours) for theirs, *classes in PAIRS for ours in classes]
)
def test_every_attribute_of_nats_py_exists_or_has_a_hint(theirs, ours):
    made = ours.__new__(ours)
    slots = {name for each in ours.__mro__ for name in getattr(each, "__slots__", ())}
    silent = []
    for name in public(theirs):
        if (hasattr(ours, name) and not is_hint(ours, name)) or name in slots:
            continue
        with pytest.raises(AttributeError) as caught:
            getattr(made, name)
        if "object has no attribute %r; " % name not in str(caught.value):
            silent.append(name)
    assert silent == []


def is_hint(ours: Any, name: str) -> bool:
    """Whether the class has this name only to raise the error with the hint."""
    found = getattr(ours, name)
    return isinstance(found, property) and found.fget.__module__ == "natsproto.hinting"


@pytest.mark.rule("D-HINT-1")
def test_every_option_of_nats_py_exists_or_has_a_hint():
    known = {*inspect.signature(Options).parameters, *hints.OPTIONS}
    assert [name for name in inspect.signature(Client.connect).parameters if name not in known] == [
        "self"
    ]
