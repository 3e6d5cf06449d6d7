"""Names of buckets and keys, and the subjects that they are in the stream."""

from __future__ import annotations

from natsproto.errors import InvalidName, InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STREAM = "KV_"
ALL_KEYS = ">"
_RESERVED = "_kv"
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_IN_BUCKETS = _LETTERS + "-_"
_IN_KEYS = _LETTERS + "-/_=."


def stream_of(bucket: str) -> str:
    """The stream of a bucket; InvalidName if there can be none of this name."""
    return STREAM + check_bucket(bucket)


def prefix_of(bucket: str) -> str:
    """What the subjects of a bucket's keys start with."""
    return "$KV.%s." % bucket


def check_bucket(bucket: str) -> str:
    """InvalidName unless a bucket can be called that (KV-1)."""
    _check("bucket", bucket, _IN_BUCKETS, "letters, digits, - and _", "KV-1")
    return bucket


def check_key(key: str, *, write: bool = False) -> str:
    """InvalidName unless it is a key (KV-2), and to `write` one that users may have (KV-3)."""
    _check("key", key, _IN_KEYS, "letters, digits, - / _ = and dots between them", "KV-2")
    if "" in key.split("."):
        raise InvalidName("key %r has a dot at an end, or two in a row" % key, "KV-2")
    if write and key.startswith(_RESERVED):
        raise InvalidName("key %r: keys that start with _kv are for internal use" % key, "KV-3")
    return key


def check_filters(filters: str | Sequence[str]) -> list[str]:
    """One or several of them, as a list; InvalidName, InvalidValue (KV-4)."""
    if isinstance(filters, str):
        return [_check_filter(filters)]
    if not isinstance(filters, (list, tuple)) or not filters:
        text = "keys %r is neither a filter of keys nor a list of them; '>' is all"
        raise InvalidValue(text % (filters,), "KV-4")
    return [_check_filter(each) for each in filters]


def _check_filter(pattern: str) -> str:
    _check("filter", pattern, _IN_KEYS + "*>", "tokens of keys, * and >", "KV-4")
    tokens = pattern.split(".")
    for place, token in enumerate(tokens):
        last = place == len(tokens) - 1
        wild = "*" in token or ">" in token
        if not token or (wild and token != "*" and not (token == ">" and last)):
            text = "filter %r: its tokens are those of keys, or *, and the last one may be >"
            raise InvalidName(text % pattern, "KV-4")
    return pattern


def _check(what: str, name: str, allowed: str, rest: str, rule: str) -> None:
    if not isinstance(name, str):
        raise InvalidName("%s %r is not a str" % (what, name), rule)
    if not name:
        raise InvalidName("%s is empty" % what, rule)
    for char in name:
        if char not in allowed:
            text = "%s %r contains %r: there are %s only"
            raise InvalidName(text % (what, name, char, rest), rule)
