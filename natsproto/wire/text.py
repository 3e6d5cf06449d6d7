"""Convert bytes to text and back without loss.

The server forwards any byte in subjects and headers. Bytes that are not UTF-8 become lone
surrogates (U+DC80 to U+DCFF, as in PEP 383), so that even an invalid reply subject can be used:
encoding the text returns the same bytes.

CPython rejects surrogates in UTF-8. MicroPython encodes and decodes them like any other character,
so both directions check for them: the UTF-8 of a surrogate contains the byte 0xED.
"""

from __future__ import annotations

_ED = 0xED
# The number of characters of a payload, subject or header that an error or a repr shows (D-ERR-11).
SHOWN = 80
# Longer text is cut in the middle, keeping SHOWN characters at each end.
_LONGEST = 200


def decode(raw: bytes) -> str:
    """Decode any bytes; those that are not UTF-8 become lone surrogates."""
    try:
        text = raw.decode()
    except UnicodeError:
        return _escape(raw)
    return _escape(raw) if _ED in raw and _has_surrogate(text) else text


def encode(text: str) -> bytes:
    """Invert `decode`; raise UnicodeError for surrogates that `decode` never produces."""
    try:
        raw = text.encode()
    except UnicodeError:
        return _unescape(text)
    return _unescape(text) if _ED in raw else raw


def _has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) <= 0xDFFF for char in text)


def _escape(raw: bytes) -> str:
    # Implemented here because MicroPython has no error handlers. One bad byte turns every non-ASCII
    # byte into a surrogate, which is lossless, too, and simpler than selecting the bad ones.
    return "".join([chr(byte) if byte < 0x80 else chr(0xDC00 + byte) for byte in raw])  # HDR-8


def _unescape(text: str) -> bytes:
    return b"".join([_encode_char(char) for char in text])


def _encode_char(char: str) -> bytes:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return bytes([code - 0xDC00])
    if 0xD800 <= code <= 0xDFFF:
        raise UnicodeError("surrogate U+%04X is not text" % code)
    return char.encode()


def shorten(value: object, most: int = SHOWN) -> str:
    """Return the repr of a value, cut to about `most` characters."""
    if isinstance(value, (str, bytes)):
        text = repr(value[:most])
        size = len(value)
        unit = "characters" if isinstance(value, str) else "bytes"
        if size <= most and len(text) <= 2 * most:
            return text
    else:
        try:
            text = repr(value)
        except Exception:  # an int of thousands of digits, or an object whose repr is broken
            return "<%s>" % type(value).__name__
        size = len(text)
        unit = "characters"
        if size <= most:
            return text
    return "%s... (%d %s)" % (text[:most], size, unit)


def show(value: object) -> str:
    """Return the repr of a field, cut to a length that suits its type (D-ERR-11).

    Structures are cut later than text and bytes: they are rarely payloads.
    """
    return shorten(value, SHOWN if isinstance(value, (str, bytes)) else 5 * SHOWN)


def cut_middle(text: str, longest: int = _LONGEST, end: int = SHOWN) -> str:
    """Return the text, or its start and its end if it is longer.

    This is for messages, where the reason often follows the value, and for names without quotes.
    """
    if len(text) <= longest:
        return text
    return "%s... (%d characters) ...%s" % (text[:end], len(text), text[-end:])
