"""The classification of the server's -ERR texts.

There are no codes, only texts in mixed case, and only some of them end the connection. A text that
is not in the table is reported, and the connection ends only if the socket is closed (ERR-3).
"""

from __future__ import annotations

from natsproto.errors import AuthorizationFailed, PermissionDenied, ServerFailed
from natsproto.wire import text as _text

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

RECOVERABLE = "recoverable"  # reported; the connection continues
DENIED = "denied"  # likewise; it concerns a subscription or a publish
FATAL = "fatal"  # the server closes the connection; another attempt may work
REFUSED = "refused"  # the server closes the connection; the credentials are invalid

# First match wins; compared in lower case with the start of the text.
CLASSIFICATION = [
    ("permissions violation", DENIED),
    ("invalid subject", RECOVERABLE),  # ERR-2
    ("invalid publish subject", RECOVERABLE),
    ("maximum subscriptions exceeded", RECOVERABLE),
    ("authorization violation", REFUSED),
    ("user authentication expired", REFUSED),
    ("user authentication revoked", REFUSED),
    ("account authentication expired", REFUSED),
    ("authentication expired", REFUSED),
    ("authentication timeout", FATAL),
    ("stale connection", FATAL),
    ("slow consumer", FATAL),
    ("unknown protocol operation", FATAL),
    ("maximum payload violation", FATAL),
    ("maximum control line exceeded", FATAL),
    ("maximum connections exceeded", FATAL),
    ("maximum account active connections exceeded", FATAL),
    ("connection throttling is active", FATAL),
    ("failed account registration", FATAL),
    ("attempted to connect to", FATAL),
    ("invalid client protocol", FATAL),
    ("no responders requires headers support", FATAL),
    ("secure connection - tls required", FATAL),
    ("server shutdown", FATAL),
]
_MAX_DIGITS = 18
_MAX_TEXT = 8192  # twice the longest subject; 256 unread errors are not to keep megabytes


def short(text: str) -> str:
    """Return the text, cut to the length that is kept."""
    return text[:_MAX_TEXT]


def classify(text: str) -> str:
    """Return RECOVERABLE, DENIED, FATAL or REFUSED."""
    lower = text.lower()  # ERR-1
    for start, kind in CLASSIFICATION:
        if lower.startswith(start):
            return kind
    return RECOVERABLE


def as_error(text: str) -> NatsError:
    """Return the exception for an error text."""
    kind = classify(text)
    if kind == REFUSED:
        return AuthorizationFailed("server error: %s" % text)
    if kind == DENIED:
        return PermissionDenied(
            "server error: %s" % text, _quoted(text, b" to "), _quoted(text, b" using queue ")
        )
    return ServerFailed(text)


def denied_sid(text: str) -> int:
    """Return the id of the subscription that a permission error names, 0 if it names none.

    Errors name an id when permissions are revoked later; older servers do not quote it.
    """
    digits = _text.encode(text).partition(b"(sid ")[2].partition(b")")[0].strip(b'"')
    return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else 0


def denies_publish(text: str) -> bool:
    """Return whether a permission error is about publishing, not about subscribing."""
    return "for publish to" in text.lower()


def _quoted(text: str, after: bytes) -> str:  # ERR-9
    r"""Return the text in double quotes after this word, "" if there is none.

    The server quotes as Go does: a quote or a backslash has a backslash before it.
    """
    raw = _text.encode(text)
    # In bytes, because str.lower() can change the length and so the position.
    start = raw.lower().find(after + b'"')
    if start < 0:
        return ""
    pieces: list[bytes] = []
    pos = start + len(after) + 1
    while pos < len(raw):
        char = raw[pos : pos + 1]
        if char == b'"':
            return _text.decode(b"".join(pieces))
        if char == b"\\":
            pos += 1
            char = raw[pos : pos + 1]
        pieces.append(char)
        pos += 1
    return ""
