"""Validate the names, versions, subjects, queue groups and metadata of services.

The checks run before anything is sent (D-SERVICE-1), and their errors name the value and the rule.
"""

from __future__ import annotations

from natsproto.errors import InvalidName, InvalidSubject, InvalidValue
from natsproto.wire.subjects import (
    LETTERS_AND_DIGITS,
    check_publish,
    check_queue,
    check_subscribe,
)
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "$SRV"
#: The queue group of endpoints, unless they, a group or the service have another (SERVICE-8).
DEFAULT_QUEUE = "q"
_DIGITS = "0123456789"


def check_name(what: str, name: str, rule: str = "SERVICE-1") -> str:
    """Return the name of a service or endpoint; raise InvalidName if it is invalid."""
    if not isinstance(name, str):
        raise InvalidName("%s is not a str: %s" % (what, shorten(name)), rule)
    if not name:
        raise InvalidName("%s is empty: a name is required" % what, rule)
    for char in name:
        if char not in LETTERS_AND_DIGITS and char not in "-_":
            text = "%s contains %r, which is not a letter, digit, '-' or '_': %s"
            raise InvalidName(text % (what, char, shorten(name)), rule)
    return name


def check_version(version: str) -> str:
    """Return a SemVer 2.0.0 version; raise InvalidValue if it is not one (SERVICE-2)."""
    if not isinstance(version, str):
        raise InvalidValue("version is not a str: %s" % shorten(version), "SERVICE-2")
    # Both signs may appear again, in the part after the first of them.
    whole, plus, build = version.partition("+")
    core, dash, before = whole.partition("-")
    numbers = core.split(".")
    valid = len(numbers) == 3 and all(_is_number(part) for part in numbers)
    if dash:
        parts = before.split(".")
        valid = valid and all(_is_word(part) for part in parts)
        valid = valid and all(_is_number(part) for part in parts if _has_only(part, _DIGITS))
    if plus:
        valid = valid and all(_is_word(part) for part in build.split("."))
    if not valid:
        text = "version is not a semantic version like 1.2.3: %s"
        raise InvalidValue(text % shorten(version), "SERVICE-2")
    return version


def _is_number(part: str) -> bool:
    return _has_only(part, _DIGITS) and (part == "0" or part[0] != "0")


def _is_word(part: str) -> bool:
    return _has_only(part, LETTERS_AND_DIGITS + "-")


def _has_only(part: str, allowed: str) -> bool:
    return bool(part) and all(char in allowed for char in part)


def check_description(description: str) -> str:
    """Return the description; raise InvalidValue if it is not a str."""
    if not isinstance(description, str):
        raise InvalidValue("description is not a str: %s" % shorten(description), "SERVICE-14")
    return description


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of the metadata (SERVICE-3); raise InvalidValue unless it maps str to str."""
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise InvalidValue("metadata is not a dict: %s" % shorten(metadata), "SERVICE-3")
    for key in metadata:
        if not isinstance(key, str) or not isinstance(metadata[key], str):
            text = "metadata is not a map from str to str: %s"
            raise InvalidValue(text % shorten({key: metadata[key]}), "SERVICE-3")
    return dict(metadata)


def check_group(name: str) -> str:
    """Return the name of a group, which may be empty; raise InvalidSubject if it is invalid."""
    if name == "":
        return name
    check_subscribe(name, "group")
    if ">" in name.split("."):
        raise InvalidSubject("group has the wildcard '>': %s" % shorten(name), "SERVICE-7")
    return name


def check_prefix(prefix: str) -> str:
    """Return the prefix of the monitoring subjects; raise InvalidSubject if it is invalid."""
    check_publish(prefix, "prefix")
    return prefix


def join(prefix: str, name: str) -> str:
    """Return the subject below the prefix of a group (SERVICE-6); either part may be empty."""
    return "%s.%s" % (prefix, name) if prefix and name else prefix or name


def choose_queue(queue_group: str | None, inherited: str | None) -> str | None:
    """Return the queue group of a service, group or endpoint; None: it has none (SERVICE-9).

    An empty queue group is inherited (SERVICE-8).
    """
    if queue_group is None:
        return None
    if queue_group == "":
        return inherited
    check_queue(queue_group)
    return queue_group


def monitor_subjects(prefix: str, verb: str, name: str, id: str) -> list[str]:
    """Return the three subjects of a verb that an instance answers (SERVICE-11)."""
    return [monitor_subject(prefix, verb, *path) for path in ((), (name,), (name, id))]


def monitor_subject(prefix: str, verb: str, name: str = "", id: str = "") -> str:
    """Return the subject for all services, those with a name, or one instance."""
    if id and not name:
        raise InvalidValue("id without a name: %s" % shorten(id), "SERVICE-25")
    if name:
        check_name("service name", name)
    subject = ".".join([part for part in (prefix, verb, name, id) if part])
    check_publish(subject)
    return subject
