"""Codecs of keys and values: the keys and values that they store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetstream.kv.codecs import Base64Codec, PathCodec
from natsproto.errors import InvalidName

# The expected texts are those of orbit.go's own tests.
BASE64_KEYS = [
    ("test.key.with.special.chars!@#$%^&*()", "dGVzdA.a2V5.d2l0aA.c3BlY2lhbA.Y2hhcnMhQCMkJV4mKigp"),
    ("user.123", "dXNlcg.MTIz"),
    ("Gru\u00df", "R3J1w58"),
    ("a\udcff", "Yf8"),  # bytes that are not UTF-8
]


@pytest.mark.rule("KVCODEC-2")
@pytest.mark.parametrize(("key", "stored"), BASE64_KEYS)
def test_base64_encodes_each_token_of_a_key(key, stored):
    codec = Base64Codec()
    assert codec.encode_key(key) == stored
    assert codec.decode_key(stored) == key


@pytest.mark.rule("KVCODEC-2")
@pytest.mark.parametrize(
    ("pattern", "stored"),
    [
        ("user.123", "dXNlcg.MTIz"),
        ("user.*", "dXNlcg.*"),
        ("user.>", "dXNlcg.>"),
        ("app.*.config.>", "YXBw.*.Y29uZmln.>"),
        ("a*", "YSo"),
    ],
)
def test_base64_keeps_wildcards(pattern, stored):
    assert Base64Codec().encode_filter(pattern) == stored


@pytest.mark.rule("KVCODEC-2")
@given(st.binary())
def test_base64_values(value):
    codec = Base64Codec()
    stored = codec.encode_value(value, "k")
    assert b"=" not in stored
    assert codec.decode_value(stored, "k") == value


@pytest.mark.rule("KVCODEC-2")
@pytest.mark.parametrize("stored", ["plain", "YQ==", "a b", "YQ.!"])
def test_base64_rejects_other_texts(stored):
    with pytest.raises(ValueError, match="not base64url"):
        Base64Codec().decode_key(stored)
    with pytest.raises(ValueError, match=r"base64|ascii|utf-8"):
        Base64Codec().decode_value(stored.encode() + b"\xff", "k")


PATHS = [
    # path,            stored,                   read back as
    ("/foo/bar", "_root_.foo.bar", "/foo/bar"),
    ("foo/bar", "foo.bar", "foo/bar"),
    ("/foo", "_root_.foo", "/foo"),
    ("foo/bar/", "foo.bar", "foo/bar"),
    ("/", "_root_", "/"),
    ("/foo/bar/", "_root_.foo.bar", "/foo/bar"),
    ("foo", "foo", "foo"),
    ("_root_x/a", "_root_x.a", "_root_x/a"),
]


@pytest.mark.rule("KVCODEC-3")
@pytest.mark.parametrize(("path", "stored", "back"), PATHS)
def test_paths(path, stored, back):
    codec = PathCodec()
    assert codec.encode_key(path) == stored
    assert codec.decode_key(stored) == back


@pytest.mark.rule("KVCODEC-3")
@pytest.mark.parametrize(
    ("pattern", "stored"),
    [
        ("/user/*", "_root_.user.*"),
        ("/app/*/config/>", "_root_.app.*.config.>"),
        ("user/*", "user.*"),
        (">", ">"),
    ],
)
def test_filters_of_paths(pattern, stored):
    assert PathCodec().encode_filter(pattern) == stored


@pytest.mark.rule("D-KVCODEC-4")
@pytest.mark.parametrize("path", ["a.b", "/etc/hosts.conf", "./a", "a/."])
def test_paths_with_dots_are_rejected(path):
    with pytest.raises(InvalidName, match="reads back as a slash"):
        PathCodec().encode_key(path)


def test_the_reprs():
    assert repr([Base64Codec(), PathCodec()]) == "[Base64Codec(), PathCodec()]"
