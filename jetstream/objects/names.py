"""Names of object stores and objects, and their subjects in the stream."""

from __future__ import annotations

from jetstream.kv.bucket import check_bucket_name
from natsproto.errors import InvalidName
from natsproto.wire.text import shorten

STREAM = "OBJ_"


def stream_of(bucket: str) -> str:
    """Return the name of a bucket's stream; raise InvalidName if the bucket's name is invalid."""
    return STREAM + check_bucket(bucket)


def chunks_of(bucket: str) -> str:
    """Return the prefix of the subjects of chunks; the nuid of the object follows it."""
    return "$O.%s.C." % bucket


def infos_of(bucket: str) -> str:
    """Return the prefix of the subjects of infos; the encoded name follows it."""
    return "$O.%s.M." % bucket


def front_of(prefix: str) -> str:
    """Return the prefix of subjects to publish to, for this prefix of the API (OBJ-3)."""
    return "" if prefix.startswith("$JS.") else prefix + "."


def check_bucket(bucket: str) -> str:
    """Return the name of a bucket; raise InvalidName unless it is valid (OBJ-1)."""
    return check_bucket_name(bucket, "OBJ-1")


def encode_name(name: str) -> str:
    """Return the name of an object as a token of subjects (OBJ-2); raise InvalidName."""
    if not isinstance(name, str):
        raise InvalidName("object name is not a str: %s" % shorten(name), "OBJ-2")
    if not name:
        raise InvalidName("object name is empty", "OBJ-2")
    try:
        raw = name.encode()
    except UnicodeError:
        raise InvalidName("object name is not UTF-8: %s" % shorten(name), "OBJ-2") from None
    return encode_url(raw)


def encode_url(raw: bytes) -> str:
    """Encode bytes as base64 with the URL-safe alphabet and padding."""
    import binascii

    text = binascii.b2a_base64(raw).decode().strip()
    return text.replace("+", "-").replace("/", "_")
