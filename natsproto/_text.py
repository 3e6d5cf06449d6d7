"""Bytes to text and back without loss.

The server forwards any byte in subjects and headers. What is not UTF-8 becomes lone surrogates
(U+DC80 to U+DCFF, as in PEP 383), so that a strange reply subject can still be answered: encoding
the text gives the very same bytes.
"""

from __future__ import annotations


def decode(raw: bytes) -> str:
    """Never fails: bytes that are not UTF-8 become lone surrogates."""
    try:
        return raw.decode()
    except UnicodeError:
        # By hand, because MicroPython knows no error handlers. One bad byte turns every
        # non-ASCII byte into a surrogate; that is as lossless and simpler than picking.
        return "".join([chr(byte) if byte < 0x80 else chr(0xDC00 + byte) for byte in raw])


def encode(text: str) -> bytes:
    """The inverse of decode; UnicodeError for surrogates that decode never makes."""
    try:
        return text.encode()
    except UnicodeError:
        return b"".join([_encode_char(char) for char in text])


def _encode_char(char: str) -> bytes:
    code = ord(char)
    return bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else char.encode()
