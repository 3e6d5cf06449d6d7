"""AesGcmCodec: values that only programs with the secret can read and write.

A stored value is a random nonce of 12 bytes, the ciphertext, and a tag of 16 bytes that
authenticates both (AES-GCM). The tag also covers the stored key, so a value that someone copies to
another key is rejected. An older value of the same key is not: compare revisions for that.

It needs the library `cryptography`, which is imported when a codec is created.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue, MissingExtra
from natsproto.wire.text import encode

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
_TAG = 16
_SIZES = (16, 24, 32)


class AesGcmCodec:
    """Encrypt values by AES-GCM, each bound to its key (D-KVCODEC-8).

    secret  16, 24 or 32 random bytes, for AES with 128, 192 or 256 bits
    former  secrets that were used before: values are read with them, but not written

    Use a separate secret for each bucket, and replace it before 2**32 values are written with it.
    """

    __slots__ = ("_ciphers",)

    def __init__(self, secret: bytes, *former: bytes) -> None:
        self._ciphers: list[AESGCM] = [_cipher(each) for each in (secret,) + former]

    def encode_value(self, value: bytes, key: str) -> bytes:
        """Return nonce, ciphertext and tag."""
        cipher = self._ciphers[0]
        # A random key is as good a source of random bytes as any, and the core has no other.
        nonce = cipher.generate_key(128)[:_NONCE]
        return nonce + cipher.encrypt(nonce, value, encode(key))

    def decode_value(self, value: bytes, key: str) -> bytes:
        """Return the decrypted value; raise ValueError if it is not authentic."""
        from cryptography.exceptions import InvalidTag

        if len(value) < _NONCE + _TAG:
            raise ValueError("%d bytes are too few for nonce and tag" % len(value))
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(value[:_NONCE], value[_NONCE:], encode(key))
            except InvalidTag:  # noqa: PERF203 - few have more than one secret
                pass
        raise ValueError("written with another secret, or changed, or moved from another key")

    def __repr__(self) -> str:
        return "AesGcmCodec(***)"  # D-CONN-19

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AesGcmCodec cannot be pickled or copied: that would expose its secret")


def _cipher(secret: bytes) -> AESGCM:
    if not isinstance(secret, (bytes, bytearray)) or len(secret) not in _SIZES:
        raise InvalidValue("secret is not 16, 24 or 32 bytes long", "D-KVCODEC-8")
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtra(
            "AesGcmCodec needs cryptography: pip install 'natsproto[nkeys]'", "D-KVCODEC-8"
        ) from None
    return AESGCM(bytes(secret))
