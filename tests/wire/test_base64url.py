"""Base64 for URLs, without padding."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsproto.wire import base64url


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", ""), (b"f", "Zg"), (b"fo", "Zm8"), (b"foo", "Zm9v"), (b"\xfb\xff\xfe", "-__-")],
)
def test_both_ways(data, text):
    assert base64url.encode(data) == text
    assert base64url.decode(text) == data


@given(st.binary())
def test_it_is_the_encoding_of_the_standard_library_without_padding(data):
    text = base64url.encode(data)
    assert text == base64.urlsafe_b64encode(data).decode().rstrip("=")
    assert base64url.decode(text) == data


@pytest.mark.parametrize(
    "text", ["Zg==", "Z", "Zm9v\n", "Zm 9v", "Zm+/", "Zh", "Zmé", "Zm9v!", "="]
)
def test_other_texts_are_rejected(text):
    with pytest.raises(ValueError, match="not base64url"):
        base64url.decode(text)
