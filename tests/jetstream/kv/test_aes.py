"""Encrypted values."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from jetstream.kv.aes import AesGcmCodec
from natsproto.errors import InvalidValue, MissingExtra

SECRET = bytes(range(32))
pytestmark = pytest.mark.rule("D-KVCODEC-8")


@given(st.binary(), st.text(max_size=9))
def test_both_ways(value, key):
    codec = AesGcmCodec(SECRET)
    stored = codec.encode_value(value, key)
    assert len(stored) == 12 + len(value) + 16
    assert codec.decode_value(stored, key) == value


@pytest.mark.parametrize("size", [16, 24, 32])
def test_the_stored_value_is_nonce_ciphertext_and_tag(size):
    stored = AesGcmCodec(bytearray(size)).encode_value(b"value", "a.b")
    assert AESGCM(bytes(size)).decrypt(stored[:12], stored[12:], b"a.b") == b"value"


def test_each_value_has_another_nonce():
    codec = AesGcmCodec(SECRET)
    assert len({codec.encode_value(b"", "a")[:12] for _ in range(100)}) == 100


def other_byte(stored):
    return stored[:-1] + bytes([stored[-1] ^ 1])


@pytest.mark.parametrize(
    ("codec", "change", "key"),
    [
        (AesGcmCodec(bytes(32)), bytes, "a"),
        (AesGcmCodec(SECRET), bytes, "b"),
        (AesGcmCodec(SECRET), other_byte, "a"),
        (AesGcmCodec(SECRET), lambda stored: stored[:28], "a"),
    ],
    ids=["another secret", "another key", "changed", "cut"],
)
def test_values_that_are_not_authentic_are_rejected(codec, change, key):
    stored = AesGcmCodec(SECRET).encode_value(b"value", "a")
    with pytest.raises(ValueError, match="another secret, or changed, or moved"):
        codec.decode_value(change(stored), key)


def test_values_that_are_too_short_are_rejected():
    with pytest.raises(ValueError, match="27 bytes are too few"):
        AesGcmCodec(SECRET).decode_value(bytes(27), "a")


def test_former_secrets_are_read_with():
    old, new = AesGcmCodec(SECRET), AesGcmCodec(bytes(16), SECRET)
    assert new.decode_value(old.encode_value(b"value", "a"), "a") == b"value"
    stored = new.encode_value(b"value", "a")
    assert new.decode_value(stored, "a") == b"value"
    with pytest.raises(ValueError, match="another secret"):
        old.decode_value(stored, "a")


@pytest.mark.parametrize("secret", [b"", bytes(31), "0" * 32, None])
def test_secrets_of_other_sizes_are_rejected(secret):
    for given_secrets in ([secret], [SECRET, secret]):
        with pytest.raises(InvalidValue, match="not 16, 24 or 32 bytes"):
            AesGcmCodec(*given_secrets)


def test_the_library_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtra, match=r"pip install 'natsproto\[nkeys\]'"):
        AesGcmCodec(SECRET)


def test_the_secret_is_not_shown():
    codec = AesGcmCodec(SECRET)
    assert repr(codec) == "AesGcmCodec(***)"
    for dump in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            dump(codec)
