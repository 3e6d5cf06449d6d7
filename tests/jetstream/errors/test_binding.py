from __future__ import annotations

import inspect
import pickle

import pytest

from jetstream import errors
from jetstream.errors import binding
from jetstream.errors.binding import BindRefused, ConfigMismatch
from natsproto.errors import LocalError

CLASSES = [each for each in vars(binding).values() if inspect.isclass(each) and each != LocalError]


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_names_the_consumer_and_what_differs(cls):
    error = cls("another queue group", "BIND-1", "S", "c", "wanted", "found")
    assert str(error) == "another queue group (BIND-1)"
    assert (error.stream, error.consumer, error.wanted, error.found) == (
        "S",
        "c",
        "wanted",
        "found",
    )
    assert isinstance(error, BindRefused)
    assert isinstance(error, LocalError)
    assert getattr(errors, cls.__name__) is cls


def test_an_error_can_be_pickled():
    error = ConfigMismatch("ack_wait differs", "BIND-1", "S", "c", 1.0, 2.0)
    error.field = "ack_wait"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
