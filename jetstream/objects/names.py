"""Names of object stores and objects, and the subjects that they are in the stream."""

from __future__ import annotations

from jetstream.kv.bucket import check_bucket_name
from natsproto.errors import InvalidName
from natsproto.wire.text import shorten

STREAM = "OBJ_"


def stream_of(bucket: str) -> str:
    """The stream of a bucket; InvalidName if there can be none of this name."""
    return STREAM + check_bucket(bucket)


def chunks_of(bucket: str) -> str:
    """What the subjects of chunks start with; the nuid of the object follows."""
    return "$O.%s.C." % bucket


def infos_of(bucket: str) -> str:
    """What the subjects of infos start with; the encoded name follows."""
    return "$O.%s.M." % bucket


def front_of(prefix: str) -> str:
    """What stands in front of subjects that are published to, by the prefix of the API (OBJ-3)."""
    return "" if prefix.startswith("$JS.") else prefix + "."


def check_bucket(bucket: str) -> str:
    """InvalidName unless a bucket can be called that (OBJ-1)."""
    return check_bucket_name(bucket, "OBJ-1")


def encode_name(name: str) -> str:
    """The name of an object as a token of subjects (OBJ-2); InvalidName."""
    if not isinstance(name, str):
        raise InvalidName("name %s of an object is not a str" % shorten(name), "OBJ-2")
    if not name:
        raise InvalidName("the name of an object is empty", "OBJ-2")
    try:
        raw = name.encode()
    except UnicodeError:
        raise InvalidName("name %s of an object is not UTF-8" % shorten(name), "OBJ-2") from None
    return encode_url(raw)


def encode_url(raw: bytes) -> str:
    """Base64 by the alphabet for URLs, with padding."""
    import binascii

    text = binascii.b2a_base64(raw).decode().strip()
    return text.replace("+", "-").replace("/", "_")
