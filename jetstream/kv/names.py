"""Names of buckets and keys, and their subjects in the stream."""

from __future__ import annotations

from natsproto.errors import InvalidName, InvalidValue
from natsproto.wire.subjects import LETTERS_AND_DIGITS
from natsproto.wire.text import shorten

from .bucket import check_bucket_name, check_chars

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STREAM = "KV_"
ALL_KEYS = ">"
_RESERVED = "_kv"
_IN_KEYS = LETTERS_AND_DIGITS + "-/_=."


def stream_of(bucket: str) -> str:
    """Return the name of a bucket's stream; raise InvalidName if the bucket's name is invalid."""
    return STREAM + check_bucket(bucket)


def prefix_of(bucket: str) -> str:
    """Return the prefix of the subjects of a bucket's keys."""
    return "$KV.%s." % bucket


def check_bucket(bucket: str) -> str:
    """Return the name of a bucket; raise InvalidName unless it is valid (KV-1)."""
    return check_bucket_name(bucket, "KV-1")


def check_key(key: str, *, write: bool = False) -> str:
    """Return a key; raise InvalidName if it is invalid (KV-2), or reserved and `write` (KV-3)."""
    check_chars("key", key, _IN_KEYS, "letters, digits, - / _ = and dots between them", "KV-2")
    if "" in key.split("."):
        raise InvalidName("key has a dot at an end, or two in a row: %s" % shorten(key), "KV-2")
    if write and key.startswith(_RESERVED):
        text = "key is reserved for internal use: %s starts with _kv"
        raise InvalidName(text % shorten(key), "KV-3")
    return key


def check_filters(filters: str | Sequence[str]) -> list[str]:
    """Return one or more filters as a list; raise InvalidName or InvalidValue (KV-4)."""
    return [_check_filter(each) for each in filters_of(filters)]


def filters_of(filters: str | Sequence[str]) -> list[str]:
    """Return one or more filters as a list, without checking each; raise InvalidValue (KV-4)."""
    if isinstance(filters, str):
        return [filters]
    if not isinstance(filters, (list, tuple)) or not filters:
        text = "keys is not a filter or a list of filters: %s; use '>' for all keys"
        raise InvalidValue(text % shorten(filters), "KV-4")
    return list(filters)


def _check_filter(pattern: str) -> str:
    check_chars("filter", pattern, _IN_KEYS + "*>", "tokens of keys, * and >", "KV-4")
    tokens = pattern.split(".")
    for place, token in enumerate(tokens):
        last = place == len(tokens) - 1
        wild = "*" in token or ">" in token
        if not token or (wild and token != "*" and not (token == ">" and last)):
            text = "filter is not valid: %s; its tokens are those of keys, or *, or > at the end"
            raise InvalidName(text % shorten(pattern), "KV-4")
    return pattern
