from __future__ import annotations

from jetstream import errors
from jetstream.errors.api import ApiError
from jetstream.errors.base import JetStreamError
from natsproto.errors import RemoteError


def test_the_base_class_has_one_home():
    assert errors.JetStreamError is JetStreamError
    assert issubclass(ApiError, JetStreamError)
    assert issubclass(JetStreamError, RemoteError)
