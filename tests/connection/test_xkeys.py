"""Messages that are sealed with curve keys."""

from __future__ import annotations

import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from natsproto.auth import nkeys, xkeys
from natsproto.errors import InvalidValue, MissingExtra
from tests.connection.jwt_keys import A_KEY, ACCOUNT

ONE, TWO = (nkeys.encode_seed("X", bytes([number]) * 32) for number in (1, 2))
ONE_KEY, TWO_KEY = xkeys.public_xkey(ONE), xkeys.public_xkey(TWO)


@pytest.mark.rule("XKEY-1")
def test_the_public_key_is_that_of_x25519():
    key = X25519PrivateKey.from_private_bytes(bytes([1]) * 32)
    assert nkeys.decode_public_key(ONE_KEY) == ("X", key.public_key().public_bytes_raw())


@pytest.mark.rule("XKEY-1")
@pytest.mark.parametrize("data", [b"", b"x", bytes(5000)])
def test_both_ways(data):
    sealed = xkeys.seal(ONE, TWO_KEY, data)
    assert sealed[:4] == b"xkv1"
    assert len(sealed) == 4 + 24 + 16 + len(data)
    assert xkeys.unseal(TWO, ONE_KEY, sealed) == data
    assert sealed != xkeys.seal(ONE, TWO_KEY, data)


@pytest.mark.rule("XKEY-1")
def test_other_data_is_rejected():
    sealed = xkeys.seal(ONE, TWO_KEY, b"x")
    for data in (b"", sealed[:43], b"xkv2" + sealed[4:]):
        with pytest.raises(InvalidValue, match="not sealed with an xkey"):
            xkeys.unseal(TWO, ONE_KEY, data)
    others = [(TWO, TWO_KEY, sealed), (ONE, ONE_KEY, sealed), (TWO, ONE_KEY, sealed + b"x")]
    for seed, sender, data in others:
        with pytest.raises(InvalidValue, match="not sealed by this sender"):
            xkeys.unseal(seed, sender, data)


@pytest.mark.rule("XKEY-1")
def test_other_keys_are_rejected():
    with pytest.raises(InvalidValue, match="seed has type A"):
        xkeys.public_xkey(ACCOUNT)
    with pytest.raises(InvalidValue, match="public nkey has type A"):
        xkeys.seal(ONE, A_KEY, b"")


@pytest.mark.rule("D-XKEY-2")
def test_the_library_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "nacl.public", None)
    with pytest.raises(MissingExtra, match=r"pip install 'natsproto\[xkeys\]'"):
        xkeys.public_xkey(ONE)
