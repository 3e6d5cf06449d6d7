"""Xkeys: curve keys (X), which encrypt for one receiver, as auth callouts do (ADR-26).

A sealed message is the text `xkv1`, a random nonce of 24 bytes, and a NaCl box. The receiver knows
who sealed it. Boxes need PyNaCl, imported on use: `cryptography` does not have them.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue, MissingExtra

from . import nkeys

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = b"xkv1"
_OVERHEAD = len(_VERSION) + 24 + 16


def public_xkey(seed: str) -> str:
    """Return the public key of a seed of a curve key; raise InvalidValue or MissingExtra."""
    key = _private(seed)
    return nkeys.encode_public_key(nkeys.CURVE, bytes(key.public_key))


def seal(seed: str, receiver: str, data: bytes) -> bytes:
    """Encrypt data for the owner of a public curve key."""
    return _VERSION + bytes(_box(seed, receiver).encrypt(data))  # XKEY-1


def unseal(seed: str, sender: str, data: bytes) -> bytes:
    """Decrypt data that the owner of a public curve key sealed; raise InvalidValue."""
    box = _box(seed, sender)
    if len(data) < _OVERHEAD or data[: len(_VERSION)] != _VERSION:
        raise InvalidValue("data is not sealed with an xkey: %d bytes" % len(data), "XKEY-1")
    from nacl.exceptions import CryptoError

    try:
        return bytes(box.decrypt(data[len(_VERSION) :]))
    except CryptoError:
        raise InvalidValue("data is not sealed by this sender for this key", "XKEY-1") from None


def _box(seed: str, other: str) -> Any:
    prefix, raw = nkeys.decode_public_key(other)
    if prefix != nkeys.CURVE:
        raise InvalidValue("public nkey has type %s; xkeys have type X" % prefix, "XKEY-1")
    private = _private(seed)
    from nacl.public import Box, PublicKey

    return Box(private, PublicKey(raw))


def _private(seed: str) -> Any:
    prefix, raw = nkeys.decode_seed(seed)
    if prefix != nkeys.CURVE:
        raise InvalidValue("nkey seed has type %s; xkeys have type X" % prefix, "XKEY-1")
    try:
        from nacl.public import PrivateKey
    except ImportError:
        raise MissingExtra(
            "xkeys need PyNaCl: pip install 'natsproto[xkeys]'", "D-XKEY-2"
        ) from None
    return PrivateKey(raw)
