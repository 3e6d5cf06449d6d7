from __future__ import annotations

import pytest

from natsproto import errors
from natsproto.errors import NatsError
from natsproto.lazy import find_home, lazy_list, lazy_names


def test_a_name_is_imported_once():
    namespace = {}
    load = lazy_names("natsproto", "errors: LocalError NatsError", namespace)
    assert load("NatsError") is NatsError
    assert namespace == {"NatsError": NatsError}


def test_modules_are_found_as_well():
    assert lazy_names("natsproto", "", {})("errors") is errors


def test_other_names():
    with pytest.raises(AttributeError, match="module 'natsproto' has no attribute 'Nats'"):
        lazy_names("natsproto", "", {})("Nats")


@pytest.mark.rule("D-HINT-1")
def test_connect_is_in_the_adapters():
    with pytest.raises(ImportError, match="natsproto has no connect: each runtime has its own"):
        lazy_names("natsproto", "", {})("connect")
    with pytest.raises(ImportError, match=r"jetstream has no connect: .*natsproto\.adapters\."):
        from jetstream import connect
    with pytest.raises(ImportError, match=r"jetstream\.blocking has no connect: "):
        from jetstream.blocking import connect  # noqa: F401


def test_a_name_that_its_module_does_not_have():
    with pytest.raises(AttributeError, match="Nats"):
        lazy_names("natsproto", "errors: Nats", {})("Nats")


HOMES = """
    wire.parser: Parser
    errors: NatsError
    errors: LocalError RemoteError
"""


@pytest.mark.parametrize(
    ("name", "home"),
    [("Parser", "wire.parser"), ("RemoteError", "errors"), ("errors", ""), ("Nats", "")],
)
def test_the_home_of_a_name(name, home):
    assert find_home(HOMES, name) == home


def test_all_names():
    assert lazy_list(HOMES) == ["Parser", "NatsError", "LocalError", "RemoteError"]
    assert lazy_list("") == []
