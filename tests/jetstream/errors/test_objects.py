from __future__ import annotations

import pickle

import pytest

from jetstream import errors
from jetstream.errors import api as api_errors
from jetstream.errors import objects as object_errors

ERRORS = [
    # error, what else it is, its text
    (
        object_errors.ObjectNotFound("b", "o"),
        api_errors.MessageNotFound,
        "object 'o' is not in bucket 'b' (404, 10037)",
    ),
    (
        object_errors.ObjectAlreadyExists("b", "o"),
        object_errors.ObjectError,
        "object 'o' already exists in bucket 'b'",
    ),
    (
        object_errors.ObjectCorrupt("b", "o", "2 chunks"),
        object_errors.ObjectError,
        "object 'o' of bucket 'b': 2 chunks",
    ),
    (
        object_errors.ObjectChanged("b", "o", "2 chunks"),
        errors.JetStreamError,
        "object 'o' of bucket 'b': 2 chunks",
    ),
    (
        object_errors.LinkUnreadable("b", "o", "a circle"),
        object_errors.ObjectError,
        "object 'o' of bucket 'b': a circle",
    ),
]


@pytest.mark.parametrize(("error", "kind", "text"), ERRORS)
def test_errors_and_their_copies(error, kind, text):
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(each, kind)
        assert (each.bucket, each.name, str(each)) == ("b", "o", text)


def test_they_are_public():
    for name, value in vars(object_errors).items():
        if getattr(value, "__module__", "") == object_errors.__name__:
            assert getattr(errors, name) is value, name
            assert name in errors.__doc__
