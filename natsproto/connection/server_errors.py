"""What the server's -ERR texts mean.

The texts are all there is: no codes, mixed case, and only some of them end the connection. A text
that is not in the table is reported, and the socket decides (ERR-3).
"""

from __future__ import annotations

from natsproto.errors import AuthorizationFailed, PermissionDenied, ServerFailed
from natsproto.wire import text as _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.errors import NatsError

STAYS = "stays"  # reported; the connection goes on
DENIED = "denied"  # likewise, and it belongs to a subscription or a publish
ENDS = "ends"  # the server closes the connection; another attempt may work
REFUSED = "refused"  # the server closes the connection; the credentials are no good

# First match wins; compared in lower case with the start of the text.
MEANINGS = [
    ("permissions violation", DENIED),
    ("invalid subject", STAYS),
    ("invalid publish subject", STAYS),
    ("maximum subscriptions exceeded", STAYS),
    ("authorization violation", REFUSED),
    ("user authentication expired", REFUSED),
    ("user authentication revoked", REFUSED),
    ("account authentication expired", REFUSED),
    ("authentication expired", REFUSED),
    ("authentication timeout", ENDS),
    ("stale connection", ENDS),
    ("slow consumer", ENDS),
    ("unknown protocol operation", ENDS),
    ("maximum payload violation", ENDS),
    ("maximum control line exceeded", ENDS),
    ("maximum connections exceeded", ENDS),
    ("maximum account active connections exceeded", ENDS),
    ("connection throttling is active", ENDS),
    ("failed account registration", ENDS),
    ("attempted to connect to", ENDS),
    ("invalid client protocol", ENDS),
    ("no responders requires headers support", ENDS),
    ("secure connection - tls required", ENDS),
    ("server shutdown", ENDS),
]
_MAX_DIGITS = 18
_MAX_TEXT = 8192  # twice the longest subject; 256 unread errors are not to keep megabytes


def short(text: str) -> str:
    """As much of it as is kept."""
    return text[:_MAX_TEXT]


def meaning(text: str) -> str:
    """STAYS, DENIED, ENDS or REFUSED."""
    lower = text.lower()
    for start, kind in MEANINGS:
        if lower.startswith(start):
            return kind
    return STAYS


def as_error(text: str) -> NatsError:
    """The exception for it."""
    kind = meaning(text)
    if kind == REFUSED:
        return AuthorizationFailed("server error: %s" % text)
    if kind == DENIED:
        return PermissionDenied(
            "server error: %s" % text, _quoted(text, b" to "), _quoted(text, b" using queue ")
        )
    return ServerFailed(text)


def denied_sid(text: str) -> int:
    """The subscription that a permission error names, 0 if it names none.

    It does when permissions were taken away later; older servers put no quotes around it.
    """
    digits = _text.encode(text).partition(b"(sid ")[2].partition(b")")[0].strip(b'"')
    return int(digits) if digits.isdigit() and len(digits) <= _MAX_DIGITS else 0


def denies_publish(text: str) -> bool:
    """Whether a permission error is about publishing, not about subscribing."""
    return "for publish to" in text.lower()


def _quoted(text: str, after: bytes) -> str:
    r"""What stands in double quotes behind this word; "" if nothing does.

    The server quotes as Go does: a quote or a backslash has a backslash before it.
    """
    raw = _text.encode(text)
    # In bytes, because str.lower() can change the length and so the place.
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
