"""Codecs (ADR-54): the forms in which a bucket stores its keys and values.

A key codec is an object with `encode_key` and `decode_key`. If it also has `encode_filter`, filters
with wildcards work: it encodes each token separately, and leaves `*` and `>` unchanged. A value
codec has `encode_value` and `decode_value`; both get the key under which the value is stored, which
AesGcmCodec (aes.py) binds the value to.

KeyValue.with_codecs applies them. The codecs here store the same keys and values as those of
orbit.go, so that a bucket can be shared with programs in Go.
"""

from __future__ import annotations

from natsproto.errors import InvalidName
from natsproto.wire import base64url
from natsproto.wire.text import decode, encode, shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Protocol

    class KeyCodec(Protocol):
        """Encode keys. A codec that also has `encode_filter` supports filters with wildcards."""

        def encode_key(self, key: str) -> str:
            """Return the key that the bucket stores."""
            ...

        def decode_key(self, key: str) -> str:
            """Return the decoded key; raise ValueError if the stored key is invalid."""
            ...

    class ValueCodec(Protocol):
        """Encode values; `key` is the key under which the value is stored."""

        def encode_value(self, value: bytes, key: str) -> bytes:
            """Return the value that the bucket stores."""
            ...

        def decode_value(self, value: bytes, key: str) -> bytes:
            """Return the decoded value; raise ValueError if the stored value is invalid."""
            ...

else:  # A codec may derive from these, and need not.

    class KeyCodec:
        """Encode keys."""

    class ValueCodec:
        """Encode values."""


_ROOT = "_root_"
_WILDCARDS = ("*", ">")


class Base64Codec:
    """Encode each token of a key, or a value, as base64 for URLs without padding (KVCODEC-2).

    The tokens of a key may then contain any characters except dots.
    """

    def encode_key(self, key: str) -> str:
        """Return the key with each token encoded."""
        return ".".join([base64url.encode(encode(token)) for token in key.split(".")])

    def decode_key(self, key: str) -> str:
        """Return the key with each token decoded; raise ValueError."""
        return ".".join([decode(base64url.decode(token)) for token in key.split(".")])

    def encode_filter(self, pattern: str) -> str:
        """Return the filter with each token encoded, except wildcards."""
        tokens = pattern.split(".")
        return ".".join([each if each in _WILDCARDS else self.encode_key(each) for each in tokens])

    def encode_value(self, value: bytes, key: str) -> bytes:
        """Return the value as base64."""
        return base64url.encode(value).encode()

    def decode_value(self, value: bytes, key: str) -> bytes:
        """Return the decoded value; raise ValueError."""
        return base64url.decode(value.decode())

    def __repr__(self) -> str:
        return "Base64Codec()"


class PathCodec:
    """Store keys that are paths, such as `/etc/hosts`, with dots: `_root_.etc.hosts` (KVCODEC-3).

    A slash at the end is dropped. Dots are rejected: they would be read back as slashes.
    """

    def encode_key(self, key: str) -> str:
        """Return the path with dots; raise InvalidName if it contains dots."""
        if "." in key:  # D-KVCODEC-4
            text = "key contains a dot, which PathCodec reads back as a slash: %s"
            raise InvalidName(text % shorten(key), "D-KVCODEC-4")
        if key == "/":
            return _ROOT
        if key[:1] == "/":
            key = _ROOT + key
        if key[-1:] == "/":
            key = key[:-1]
        return key.replace("/", ".")

    def decode_key(self, key: str) -> str:
        """Return the path of a stored key."""
        if key == _ROOT:
            return "/"
        if key.startswith(_ROOT + "."):
            key = key[len(_ROOT) :]
        return key.replace(".", "/")

    def encode_filter(self, pattern: str) -> str:
        """Return the filter with dots; its wildcards stay."""
        return self.encode_key(pattern)

    def __repr__(self) -> str:
        return "PathCodec()"
