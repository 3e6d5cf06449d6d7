from __future__ import annotations

import pytest

from natsproto import errors
from natsproto.errors import NatsError
from natsproto.lazy import lazy_names


def test_a_name_is_imported_once():
    namespace = {}
    load = lazy_names("natsproto", {"NatsError": "errors"}, namespace)
    assert load("NatsError") is NatsError
    assert namespace == {"NatsError": NatsError}


def test_modules_are_found_as_well():
    assert lazy_names("natsproto", {}, {})("errors") is errors


def test_other_names():
    with pytest.raises(AttributeError, match="module 'natsproto' has no attribute 'Nats'"):
        lazy_names("natsproto", {}, {})("Nats")


def test_a_name_that_its_module_does_not_have():
    with pytest.raises(AttributeError, match="Nats"):
        lazy_names("natsproto", {"Nats": "errors"}, {})("Nats")
