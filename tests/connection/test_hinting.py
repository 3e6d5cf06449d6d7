"""Hinting: classes whose missing names have hints."""

from __future__ import annotations

import pytest

from natsproto.hinting import add_hints, lazy_hints


@pytest.mark.rule("D-HINT-1")
def test_the_hints_of_a_class():
    class Thing:
        __getattr__ = lazy_hints("natsproto.hints", "MESSAGE")

    with pytest.raises(AttributeError) as caught:
        Thing().header  # noqa: B018
    assert str(caught.value) == "'Thing' object has no attribute 'header'; use headers"
    assert not hasattr(Thing(), "nothing")


@pytest.mark.rule("D-HINT-1")
def test_the_hints_of_a_class_without_getattr():
    class Thing:
        pass

    add_hints(Thing, "natsproto.hints", "MESSAGE", "header respond")
    with pytest.raises(AttributeError) as caught:
        Thing().respond  # noqa: B018
    assert str(caught.value).startswith("'Thing' object has no attribute 'respond'; use client.")
    assert Thing.header.__doc__ == "Raise AttributeError with the name to use instead."
    assert not hasattr(Thing(), "header")
