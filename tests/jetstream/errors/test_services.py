from __future__ import annotations

import pickle

import pytest

from jetstream.errors import ServiceError
from natsproto.errors import InvalidValue, RemoteError


def test_service_error():
    error = ServiceError(404, "not found", b"x", {"A": "b"})
    assert str(error) == "404: not found"
    assert isinstance(error, RemoteError)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.text, copy.data, copy.headers) == (404, "not found", b"x", {"A": "b"})


@pytest.mark.rule("SERVICE-20", "SERVICE-21")
@pytest.mark.parametrize(
    ("code", "text"), [(None, "x"), ("400", "x"), (True, "x"), (-1, "x"), (400, ""), (400, None)]
)
def test_errors_without_code_or_text(code, text):
    with pytest.raises(InvalidValue, match=r"SERVICE-2[01]"):
        ServiceError(code, text)
