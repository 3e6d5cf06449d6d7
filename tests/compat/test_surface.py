"""The layer has the public names of nats-py, with the same parameters, defaults and texts.

Everything without a leading underscore is compared, in all modules of the installed nats-py. The
tables below list the deliberate differences; docs/nats-py.md has those that programs may notice.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pkgutil
from typing import Any

import pytest

theirs_package: Any = pytest.importorskip("nats")
# The parser, the encoder and the transports of nats-py: natsproto has its own.
NO_MODULES = {".protocol", ".protocol.parser", ".protocol.command", ".aio.transport"}
MODULES = [
    "",
    *[
        each.name[len("nats") :]
        for each in pkgutil.walk_packages(theirs_package.__path__, "nats.")
        if each.name[len("nats") :] not in NO_MODULES
    ],
]
# Names of those modules, and the end of the queue behind a watch, which the layer does not have.
NO_NAMES = {"Parser", "StopIterSentinel", "TcpTransport", "Transport", "WebSocketTransport"}
NO_ATTRIBUTES = {
    ("KeyWatcher", "STOP_ITER"),
    ("ObjectWatcher", "STOP_ITER"),
    # The layer counts failures and notes discovery; the rest is the business of natsproto.
    ("Srv", "did_connect"),
    ("Srv", "last_attempt"),
    ("Srv", "server_version"),
    ("Srv", "tls_name"),
}
# Only the library itself creates these; some are not dataclasses here.
INTERNAL = {
    "KeyWatcher",
    "ObjectWatcher",
    "PullSubscription",
    "PushSubscription",
    "Srv",
    "StreamsListIterator",
}


def pair(name: str) -> tuple[Any, Any]:
    theirs = importlib.import_module("nats" + name)
    return theirs, importlib.import_module("natsproto.compat.nats" + name)


def is_of_nats_py(value: Any) -> bool:
    """Return whether a value is a class or function of nats-py, or a plain constant."""
    home = getattr(value, "__module__", None)
    if home is None or inspect.ismodule(value):
        return isinstance(value, (str, bytes, bytearray, int, float, tuple, list, dict))
    return str(home).partition(".")[0] == "nats"


def names_of(module: Any) -> list[str]:
    """Return the public names of nats-py in one of its modules, imported ones included."""
    ignored = NO_NAMES | {"TYPE_CHECKING"}
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and is_of_nats_py(value) and name not in ignored
    ]


def classes_in(owner: Any, home: str) -> list[type]:
    """Return the public classes that a module defines, and those that they define."""
    found: list[type] = []
    for name, each in vars(owner).items():
        if inspect.isclass(each) and name[0] != "_" and each.__module__ == home:
            found += [each, *classes_in(each, home)]
    return found


CLASSES = [
    (name, each.__qualname__)
    for name in MODULES
    for each in classes_in(importlib.import_module("nats" + name), "nats" + name)
    if each.__name__ not in NO_NAMES
]


def find(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def parameters(function: Any) -> list[tuple[str, str, str]]:
    """Return names, kinds and defaults; those of a keyword dict have no name that matters."""
    return [
        ("" if each.kind is each.VAR_KEYWORD else each.name, each.kind.name, str(each.default))
        for each in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_public_names_exist(name):
    theirs, ours = pair(name)
    assert [each for each in names_of(theirs) if not hasattr(ours, each)] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_constants_are_equal(name):
    theirs, ours = pair(name)
    for each in names_of(theirs):
        value = getattr(theirs, each)
        if not callable(value):
            assert getattr(ours, each) == value, each


@pytest.mark.parametrize("name", MODULES)
def test_the_functions_have_the_same_parameters(name):
    theirs, ours = pair(name)
    for each, function in vars(theirs).items():
        if inspect.isfunction(function) and each[0] != "_" and is_of_nats_py(function):
            assert parameters(getattr(ours, each)) == parameters(function), each


@pytest.mark.parametrize(("module", "path"), CLASSES)
def test_the_attributes_exist(module, path):
    theirs, ours = (find(each, path) for each in pair(module))
    fields = getattr(ours, "__dataclass_fields__", {})
    for name in dir(theirs):
        if name[0] != "_" and (theirs.__name__, name) not in NO_ATTRIBUTES:
            assert hasattr(ours, name) or name in fields, name


@pytest.mark.parametrize(("module", "path"), CLASSES)
def test_the_methods_have_the_same_parameters(module, path):
    theirs, ours = (find(each, path) for each in pair(module))
    for name, function in inspect.getmembers(theirs, inspect.isroutine):
        public = name[0] != "_" or (name == "__init__" and theirs.__name__ not in INTERNAL)
        if public and is_of_nats_py(function):
            mine = getattr(ours, name)
            assert parameters(mine) == parameters(function), name
            is_async = inspect.iscoroutinefunction(function)
            assert inspect.iscoroutinefunction(mine) == is_async, name


@pytest.mark.parametrize(("module", "path"), CLASSES)
def test_the_properties_are_properties(module, path):
    theirs, ours = (find(each, path) for each in pair(module))
    for name in dir(theirs):
        if name[0] != "_" and isinstance(inspect.getattr_static(theirs, name), property):
            assert isinstance(inspect.getattr_static(ours, name), property), name


@pytest.mark.parametrize(("module", "path"), CLASSES)
def test_the_dataclasses_have_the_same_fields(module, path):
    theirs, ours = (find(each, path) for each in pair(module))
    if not dataclasses.is_dataclass(theirs) or theirs.__name__ in INTERNAL:
        return
    assert fields_of(ours) == fields_of(theirs)
    assert ours.__dataclass_params__.frozen == theirs.__dataclass_params__.frozen


def fields_of(cls: Any) -> list[tuple[str, str, bool]]:
    missing = dataclasses.MISSING
    return [
        (each.name, str(each.default), each.default_factory is not missing)
        for each in dataclasses.fields(cls)
    ]


@pytest.mark.parametrize(("module", "path"), CLASSES)
def test_the_members_of_enums_are_equal(module, path):
    theirs, ours = (find(each, path) for each in pair(module))
    if issubclass(theirs, enum.Enum):
        assert [(each.name, each.value) for each in ours] == [
            (each.name, each.value) for each in theirs
        ]


@pytest.mark.parametrize("module", [".errors", ".js.errors", ".aio.errors"])
def test_the_exceptions_have_the_same_bases_and_texts(module):
    theirs, ours = pair(module)
    for each in classes_in(theirs, theirs.__name__):
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
