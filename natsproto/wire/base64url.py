"""Base64 for URLs, without padding: the encoding of signatures, JWTs and encoded keys.

It is implemented here because MicroPython has only plain base64.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64


def encode(data: bytes) -> str:
    """Return the text of these bytes: letters, digits, `-` and `_`."""
    return b2a_base64(data).decode().rstrip("=\n").replace("+", "-").replace("/", "_")


def decode(text: str) -> bytes:
    """Return the bytes of a text; raise ValueError unless `encode` returns this text for them."""
    plain = text.replace("-", "+").replace("_", "/")
    try:
        data = a2b_base64((plain + "=" * (-len(plain) % 4)).encode())
    except (ValueError, UnicodeError):
        raise ValueError("not base64url") from None
    # Decoders skip characters that are not base64, and ignore the last bits.
    if encode(data) != text:
        raise ValueError("not base64url")
    return data
