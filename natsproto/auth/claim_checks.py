"""Checks of the values in claims before they are signed. Each returns the value for the JWT."""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.subjects import check_queue, check_subscribe
from natsproto.wire.text import shorten

from . import nkeys

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

RULE = "JWT-5"
CONNECTION_TYPES = (
    "STANDARD",
    "WEBSOCKET",
    "LEAFNODE",
    "LEAFNODE_WS",
    "MQTT",
    "MQTT_WS",
    "IN_PROCESS",
)
_HEX = "0123456789abcdef"


def check_nkey(what: str, key: object, kind: str) -> str:
    """Return a public key; raise InvalidValue unless it is of this kind."""
    if not isinstance(key, str):
        raise InvalidValue("%s is %s, not a str" % (what, type(key).__name__), RULE)
    found = nkeys.decode_public_key(key)[0]
    if found not in kind:
        names = " or ".join([nkeys.KINDS[each] for each in kind])
        text = "%s is not a key of type %s: its type is %s (%s)"
        raise InvalidValue(text % (what, names, nkeys.KINDS[found], found), RULE)
    return key.strip()


def check_nkeys(what: str, keys: object, kind: str) -> list[str]:
    """Return public keys of this kind."""
    return [check_nkey(what, each, kind) for each in check_list(what, keys)]


def check_text(what: str, text: object) -> str:
    """Return a text."""
    if not isinstance(text, str):
        raise InvalidValue("%s is %s, not a str" % (what, type(text).__name__), RULE)
    return text


def check_list(what: str, values: Any) -> list[Any]:
    """Return a list; raise InvalidValue for a single str, which is probably a mistake."""
    is_list = bool(isinstance(values, (list, tuple)))
    if not is_list:
        raise InvalidValue("%s is not a list: %s" % (what, shorten(values)), RULE)
    return list(values)


def check_map(what: str, value: Any) -> dict[str, Any]:
    """Return a map."""
    is_map = bool(isinstance(value, dict))
    if not is_map:
        raise InvalidValue("%s is not a map: %s" % (what, shorten(value)), RULE)
    return dict(value)


def map_in(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the map in a field of a JWT; empty if there is none."""
    value = body.get(name)
    return {} if value is None else check_map(name, value)


def list_in(body: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list in a field of a JWT; empty if there is none."""
    value = body.get(name)
    return [] if value is None else check_list(name, value)


def check_flag(what: str, value: object) -> bool:
    """Return a bool."""
    if not isinstance(value, bool):
        raise InvalidValue("%s is not True or False: %s" % (what, shorten(value)), RULE)
    return value


def check_limit(what: str, value: object) -> int:
    """Return a limit; -1 means no limit."""
    if not isinstance(value, int) or isinstance(value, bool) or value < -1:
        text = "%s is not a whole number of at least -1: %s"
        raise InvalidValue(text % (what, shorten(value)), RULE)
    return value


def check_time(what: str, seconds: object) -> int:
    """Return a time in whole seconds since 1970; 0 means none."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds >= 0:
        text = "%s is not a time in seconds since 1970: %s"
        raise InvalidValue(text % (what, shorten(seconds)), RULE)
    return int(seconds)


def check_tags(what: str, tags: object) -> list[str]:
    """Return tags in lower case, each once."""
    found: list[str] = []
    for each in check_list(what, tags):
        tag = check_text("tag", each).strip().lower()
        if not tag:
            raise InvalidValue("%s has an empty tag" % what, RULE)
        if tag not in found:
            found.append(tag)
    return found


def check_subjects(what: str, subjects: object, *, queues: bool = False) -> list[str]:
    """Return subjects of permissions; with `queues`, a queue may follow each after a space."""
    found = [check_text(what, each) for each in check_list(what, subjects)]
    for each in found:
        subject, space, queue = each.partition(" ")
        check_subscribe(subject, what)
        if space and not queues:
            raise InvalidValue("%s has a space: %s" % (what, shorten(each)), RULE)
        if space:
            check_queue(queue)
    return found


def check_types(what: str, types: object) -> list[str]:
    """Return types of connections."""
    found = [check_text(what, each).upper() for each in check_list(what, types)]
    for each in found:
        if each not in CONNECTION_TYPES:
            text = "%s has an unknown type: %s; known are %s"
            raise InvalidValue(text % (what, shorten(each), ", ".join(CONNECTION_TYPES)), RULE)
    return found


def check_networks(what: str, networks: object) -> list[str]:
    """Return networks in CIDR notation, such as 10.0.0.0/8."""
    found = [check_text(what, each).strip().lower() for each in check_list(what, networks)]
    for each in found:
        address, _, bits = each.partition("/")
        most = 128 if ":" in address else 32
        known = _is_ipv6(address) if most == 128 else _is_ipv4(address)
        if not known or not _is_number(bits, most):
            text = "%s is not a network such as 10.0.0.0/8: %s"
            raise InvalidValue(text % (what, shorten(each)), RULE)
    return found


def _is_ipv4(address: str) -> bool:
    parts = address.split(".")
    return len(parts) == 4 and all(_is_number(each, 255) for each in parts)


def _is_ipv6(address: str) -> bool:
    groups = address.split(":")
    last = groups[-1]
    if "." in last:
        if not _is_ipv4(last):
            return False
        groups[-1:] = ["0", "0"]
    short = address.count("::") == 1 and ":::" not in address
    if short:  # at either end it leaves two empty groups
        groups = [each for each in groups if each] + [""] * (address not in ("", ":"))
    valid = [not each or (len(each) <= 4 and not each.strip(_HEX)) for each in groups]
    count = len([each for each in groups if each])
    return all(valid) and (count < 8 if short else count == 8 == len(groups))


def _is_number(text: str, most: int) -> bool:
    return bool(text) and not text.strip("0123456789") and len(text) < 4 and int(text) <= most


def check_hours(what: str, times: object) -> list[dict[str, str]]:
    """Return times of the day, as pairs of `HH:MM:SS`."""
    found: list[dict[str, str]] = []
    for pair in check_list(what, times):
        both = check_list(what, pair)
        if len(both) != 2 or not _is_clock(both[0]) or not _is_clock(both[1]):
            text = "%s has no pair of times such as ('08:00:00', '17:30:00'): %s"
            raise InvalidValue(text % (what, shorten(pair)), RULE)
        found.append({"start": both[0], "end": both[1]})
    return found


def _is_clock(text: object) -> bool:
    parts = check_text("time", text).split(":")
    sizes = [len(each) for each in parts]
    limits = zip(parts, (23, 59, 59))
    return sizes == [2, 2, 2] and all(_is_number(each, most) for each, most in limits)
