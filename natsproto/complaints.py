"""What the server's -ERR texts mean.

The texts are all there is: no codes, mixed case, and only some of them end the connection. A text
that is not in the table is reported, and the socket decides.
"""

from __future__ import annotations

from .errors import AuthorizationFailed, PermissionDenied, ServerFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .errors import NatsError

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
    ("authentication timeout", ENDS),
    ("authentication expired", REFUSED),
    ("stale connection", ENDS),
    ("slow consumer", ENDS),
    ("unknown protocol operation", ENDS),
    ("maximum payload violation", ENDS),
    ("maximum control line exceeded", ENDS),
    ("maximum connections exceeded", ENDS),
    ("maximum account active connections exceeded", ENDS),
    ("invalid client protocol", ENDS),
    ("no responders requires headers support", ENDS),
    ("secure connection - tls required", ENDS),
    ("server shutdown", ENDS),
]


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
            "server error: %s" % text, _quoted(text, " to "), _quoted(text, " using queue ")
        )
    return ServerFailed(text)


def denied_sid(text: str) -> int:
    """The subscription that a permission error names (newer servers), 0 if it names none."""
    digits = _quoted(text, "(sid ")
    return int(digits) if digits.isdigit() else 0


def denies_publish(text: str) -> bool:
    """Whether a permission error is about publishing, not about subscribing."""
    return "for publish to" in text.lower()


def _quoted(text: str, after: str) -> str:
    """What stands in double quotes behind this word; "" if nothing does."""
    start = text.lower().find(after + '"')
    if start < 0:
        return ""
    start += len(after) + 1
    return text[start : text.find('"', start)]
