"""The rule of spec_notes that a frame follows, for further reading."""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.explain import Note

# Kind, the start of the label, and the rule; the first match wins.
RULES = [
    ("info", "INFO ldm", "CONN-5"),
    ("info", "", "CONN-1"),
    ("connect", "", "CONN-4"),
    ("ping", "", "PING-1"),
    ("pong", "", "PING-4"),
    ("ok", "", "WIRE-11"),
    ("error", "-ERR", "WIRE-12"),
    ("error", "", "CALL-2"),
    ("subscribe", "", "WIRE-18"),
    ("unsubscribe", "", "SUB-2"),
    ("publish", "", "WIRE-18"),
    ("request", "", "REQ-1"),
    ("response", "", "REQ-2"),
    ("message", "", "WIRE-8"),
    ("call", "DIRECT.GET", "GET-2"),
    ("call", "", "CALL-1"),
    ("pull request", "", "PULL-2"),
    ("delivery", "", "META-1"),
    ("status", "503 No Responders", "REQ-3"),
    ("status", "423", "PULL-12"),
    ("status", "204", "GET-5"),
    ("status", "", "PULL-9"),
    ("heartbeat", "", "PUSH-2"),
    ("flow control", "", "PUSH-7"),
    ("ack", "-NAK", "ACK-5"),
    ("ack", "+TERM", "ACK-6"),
    ("ack", "+WPI", "ACK-3"),
    ("ack", "", "ACK-2"),
    ("confirmation", "", "ACK-7"),
]


def rule_of(note: Note) -> str:
    """Return the id of the rule, or ""."""
    for kind, start, rule in RULES:
        if note.kind == kind and note.label.startswith(start):
            return rule
    return ""
