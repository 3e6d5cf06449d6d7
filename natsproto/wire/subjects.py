"""Validate subjects, queue names, stream and consumer names; create inboxes.

The checks run before anything is sent, and their errors name the value and the rule. They reject
text that the protocol cannot carry. The parser, which reads the messages of others, does not.
"""

from __future__ import annotations

from natsproto.errors import InvalidName, InvalidSubject

from . import text as _text
from .text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.errors import LocalError

# Characters that end a field or a line on the wire, with their names for error messages.
_FORBIDDEN = [
    (" ", "a space"),
    ("\t", "a tab"),
    ("\r", "a CR"),
    ("\n", "an LF"),
    ("\f", "a form feed"),
    ("\0", "a NUL"),
]
LETTERS_AND_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NAME_FORBIDDEN = ".*>/\\"
MAX_NAME = 255


def _check_text(
    what: str, value: str, rule: str, error: type[LocalError] = InvalidSubject
) -> bytes:
    """Encode one field of a control line; raise the error if it cannot be one."""
    if not isinstance(value, str):
        raise error("%s %s is not a str" % (what, shorten(value)), rule)
    if not value:
        raise error("%s is empty" % what, rule)
    for char, name in _FORBIDDEN:
        if char in value:
            raise error("%s %s contains %s" % (what, shorten(value), name), rule)
    try:
        return _text.encode(value)
    except UnicodeError:
        raise error("%s %s cannot be encoded as UTF-8" % (what, shorten(value)), rule) from None


def check_publish(subject: str, what: str = "subject") -> bytes:
    """Encode a subject to publish to; raise InvalidSubject if it is invalid."""
    raw = _check_text(what, subject, "SUBJ-4")
    for token in subject.split("."):
        if not token:
            raise InvalidSubject("%s %s has an empty token" % (what, shorten(subject)), "SUBJ-1")
        if token in ("*", ">"):
            raise InvalidSubject("%s %s has a wildcard" % (what, shorten(subject)), "SUBJ-2")
    return raw


def check_subscribe(subject: str, what: str = "subject") -> bytes:
    """Encode a subject to subscribe to; raise InvalidSubject if it is invalid."""
    raw = _check_text(what, subject, "SUBJ-4")
    tokens = subject.split(".")
    if "" in tokens:
        raise InvalidSubject("%s %s has an empty token" % (what, shorten(subject)), "SUBJ-1")
    if ">" in tokens[:-1]:
        raise InvalidSubject(
            "%s %s has '>' before the last token" % (what, shorten(subject)), "SUBJ-3"
        )
    return raw


def check_queue(queue: str) -> bytes:
    """Encode a queue name; raise InvalidSubject if it is invalid."""
    return _check_text("queue", queue, "SUBJ-5")


def check_new_name(what: str, name: str) -> str:
    """Return a name for a new stream or consumer (ADR-6); raise InvalidName if it is invalid."""
    _check_name(what, name, "SUBJ-7")
    for char in name:
        if not "!" <= char <= "~":
            raise InvalidName(
                "%s %s contains %r, which is not printable ASCII" % (what, shorten(name), char),
                "SUBJ-7",
            )
    return name


def check_known_name(what: str, name: str) -> str:
    """Return the name of an asset that a more lenient client may have created.

    Raises InvalidName if no server accepts such a name.
    """
    _check_name(what, name, "SUBJ-8")
    return name


def _check_name(what: str, name: str, rule: str) -> None:
    if name == "":
        raise InvalidName("%s is empty: a name is required" % what, rule)
    raw = _check_text(what, name, rule, InvalidName)
    for char in _NAME_FORBIDDEN:
        if char in name:
            raise InvalidName("%s %s contains %r" % (what, shorten(name), char), rule)
    if len(raw) > MAX_NAME:
        raise InvalidName("%s has %d bytes, more than %d" % (what, len(raw), MAX_NAME), rule)


def matches(pattern: str, subject: str) -> bool:  # SUBJ-6
    """Return whether a subscription to `pattern` receives messages published to `subject`."""
    wanted = pattern.split(".")
    tokens = subject.split(".")
    for i, token in enumerate(wanted):
        if token == ">":
            return len(tokens) > i
        if i >= len(tokens) or token not in ("*", tokens[i]):
            return False
    return len(wanted) == len(tokens)


def token(randbelow: Callable[[int], int], length: int = 22) -> str:
    """Return a random base-62 token: 22 characters hold 131 bits."""
    return "".join([LETTERS_AND_DIGITS[randbelow(62)] for _ in range(length)])


def inbox(randbelow: Callable[[int], int], prefix: str = "_INBOX") -> str:
    """Return a new inbox; `randbelow(n)` returns a random number below n."""
    check_publish(prefix, "inbox prefix")  # SUBJ-10
    return prefix + "." + token(randbelow)  # D-SUBJ-9
