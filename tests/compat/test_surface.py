"""The layer has the public names of nats-py, with the same parameters, defaults and texts."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from typing import Any

import pytest

pytest.importorskip("nats")
MODULES = [
    "",
    ".errors",
    ".nuid",
    ".aio.client",
    ".aio.errors",
    ".aio.msg",
    ".aio.subscription",
    ".js",
    ".js.api",
    ".js.client",
    ".js.errors",
    ".js.kv",
    ".js.manager",
    ".js.object_store",
    ".micro",
    ".micro.request",
    ".micro.service",
]
# Protocol classes without instances, and aliases of types.
MISSING = {"EndpointManager", "GroupManager", "ServiceIdentity", "StopIterSentinel"}
# Constructors that only the library itself calls.
INTERNAL = {"KeyWatcher", "ObjectWatcher", "PushSubscription", "PullSubscription", "Srv", "Parser"}


def pair(name: str) -> tuple[Any, Any]:
    theirs = importlib.import_module("nats" + name)
    return theirs, importlib.import_module("natsproto.compat.nats" + name)


def own_classes(module: Any) -> list[type]:
    return [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__ and each.__name__[0] != "_"
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_public_names_exist(name):
    theirs, ours = pair(name)
    for each in own_classes(theirs):
        assert hasattr(ours, each.__name__) or each.__name__ in MISSING, each.__name__


CLASSES = [
    (name, each.__name__)
    for name in MODULES
    for each in own_classes(importlib.import_module("nats" + name))
    if each.__name__ not in MISSING
]


def methods(cls: type) -> dict[str, Any]:
    return {
        name: each
        for name, each in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_") or (name == "__init__" and cls.__name__ not in INTERNAL)
    }


def parameters(function: Any) -> list[tuple[str, object]]:
    found = inspect.signature(function).parameters.values()
    return [
        (each.name, each.default)
        for each in found
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_the_methods_have_the_same_parameters(module, name):
    theirs, ours = (getattr(each, name) for each in pair(module))
    if issubclass(theirs, Exception):
        return
    for method, function in methods(theirs).items():
        if function.__module__.startswith("nats") and not dataclasses.is_dataclass(theirs):
            mine = parameters(getattr(ours, method))
            assert [each[0] for each in mine] == [each[0] for each in parameters(function)], method
            defaults = [str(each[1]) for each in parameters(function)]
            assert [str(each[1]) for each in mine] == defaults, method


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_the_dataclasses_have_the_same_fields(module, name):
    theirs, ours = (getattr(each, name) for each in pair(module))
    if not dataclasses.is_dataclass(theirs) or issubclass(theirs, Exception) or name in INTERNAL:
        return
    if name == "StreamsListIterator":
        return
    expected = [(each.name, str(each.default)) for each in dataclasses.fields(theirs)]
    found = [(each.name, str(each.default)) for each in dataclasses.fields(ours)]
    assert [each[0] for each in found] == [each[0] for each in expected]
    kept = [each for each in zip(found, expected, strict=True) if "MISSING" not in each[1][1]]
    assert [each[0] for each in kept] == [each[1] for each in kept]


@pytest.mark.parametrize("module", [".errors", ".js.errors", ".aio.errors"])
def test_the_exceptions_have_the_same_bases_and_texts(module):
    theirs, ours = pair(module)
    for each in own_classes(theirs):
        mine = getattr(ours, each.__name__)
        bases = {base.__name__ for base in each.__mro__}
        assert bases <= {base.__name__ for base in mine.__mro__}, each
        if each.__name__ not in (
            "SlowConsumerError",
            "ErrSlowConsumer",
            "ConsumerSequenceMismatchError",
        ):
            assert str(mine()) == str(each()), each


BODIES = [
    ("StreamConfig", {"name": "A", "subjects": ["a"], "max_age": 1.5, "duplicate_window": 2}),
    ("ConsumerConfig", {"durable_name": "d", "ack_wait": 1, "backoff": [1, 2.5]}),
    ("KeyValueConfig", {"bucket": "B", "ttl": 3}),
    ("ObjectStoreConfig", {"bucket": "B", "ttl": 3}),
    ("StreamConsumerLimits", {"inactive_threshold": 1.0}),
]


@pytest.mark.parametrize(("name", "fields"), BODIES)
def test_a_config_is_sent_in_the_same_way(name, fields):
    theirs, ours = pair(".js.api")
    expected = getattr(theirs, name)(**fields).as_dict()
    assert getattr(ours, name)(**fields).as_dict() == expected
