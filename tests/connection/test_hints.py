"""Hints: names of other clients, and their equivalents."""

from __future__ import annotations

import inspect

import pytest

from natsproto import blocking, hints
from natsproto.client import Client
from natsproto.options import Options
from natsproto.subscription import Subscription
from natsproto.wire.frames import Msg

TABLES = [
    (hints.CLIENT, Client),
    (hints.CLIENT, blocking.Client),
    (hints.SUBSCRIPTION, Subscription),
    (hints.SUBSCRIPTION, blocking.Subscription),
]


@pytest.mark.rule("D-HINT-1")
def test_a_hint_follows_pythons_error_text():
    error = hints.no_attribute(Msg(b"a", 1), "respond", hints.MESSAGE)
    text = "'Msg' object has no attribute 'respond'; use client.respond(msg, data)"
    assert str(error) == text


def test_other_names_have_no_hint():
    error = hints.no_attribute(Msg(b"a", 1), "nothing", hints.MESSAGE)
    assert str(error) == "'Msg' object has no attribute 'nothing'"


@pytest.mark.parametrize(("table", "kind"), TABLES)
def test_no_hint_is_about_a_name_that_exists(table, kind):
    assert [name for name in table if hasattr(kind, name)] == []


@pytest.mark.parametrize(("table", "kind"), TABLES)
def test_every_class_answers_with_its_hints(table, kind):
    made = kind.__new__(kind)
    for name, hint in table.items():
        with pytest.raises(AttributeError) as caught:
            getattr(made, name)
        assert str(caught.value).endswith("; " + hint)


def test_no_hint_is_about_an_option_that_exists():
    options = inspect.signature(Options).parameters
    assert [name for name in hints.OPTIONS if name in options] == []
    named = [text[4:].partition("=")[0] for text in hints.OPTIONS.values() if text[:4] == "use "]
    assert [name for name in named if name not in options and "." not in name] == []


def test_no_hint_is_about_a_keyword_that_exists():
    keywords = inspect.signature(Client.subscribe).parameters
    assert [name for name in hints.SUBSCRIBE if name in keywords] == []


@pytest.mark.rule("D-HINT-1")
def test_the_result_of_connect_is_not_the_client():
    with pytest.raises(AttributeError) as caught:
        hints.not_entered(Msg(b"a", 1), "publish")
    text = "'Msg' object has no attribute 'publish'; it is not the client yet: use `async with "
    assert str(caught.value) == text + "connect(...) as client:`"


@pytest.mark.rule("D-HINT-1")
def test_a_package_without_connect():
    error = hints.no_connect("natsproto")
    assert type(error) is ImportError  # `from natsproto import connect` shows its text
    assert "Import it from natsproto.adapters.asyncio, .trio" in str(error)


@pytest.mark.rule("D-HINT-1")
def test_a_text_with_a_hint():
    assert hints.with_hint("no option %s", "a", {"a": "use b"}) == "no option 'a'; use b"
    assert hints.with_hint("no option %s", "c", {"a": "use b"}) == "no option 'c'"
