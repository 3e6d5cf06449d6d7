"""Step: one entry of a trace, as data, as a line of text and as a dict for JSON.

kind    value
in      a frame that the server has sent
out     a frame that goes to the server; CONNECT without its secrets
input   an input from the adapter: its name, and its error if there is one
state   a change of the connection's state, as in "WAITING -> DIALING"
effect  what the adapter has to do: Dial, StartTls, Sign, Hangup
event   an event of the connection, or of a consumer, which `source` names
"""

from __future__ import annotations

from natsproto.explain import SECRETS, printable, wire_text
from natsproto.urls import hide_credentials
from natsproto.wire.frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.wire.frames import Frame

FRAMES = (Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub)
_MASKED = SECRETS + ("nkey",)
# The operations of frames whose name differs.
_OPERATIONS = {"Err": "-ERR", "Ok": "+OK"}


class Step(Record):
    """One entry of a trace; `time` is in seconds since 1970."""

    __slots__ = ("kind", "source", "time", "value")

    def __init__(self, time: float, kind: str, value: object, source: str = "") -> None:
        self.time: float = time
        self.kind: str = kind
        self.value: object = value
        self.source: str = source

    @property
    def text(self) -> str:
        """The value on one line, without secrets."""
        value: Any = self.value
        if isinstance(value, FRAMES):
            text = " | ".join([line for line in wire_text(value).split("\n") if line])
        elif self.kind == "event":
            text = "%s: %s" % (type(value).__name__, value.text)
            if self.source and self.source not in text:
                text += " (%s)" % self.source
        else:
            text = value if isinstance(value, str) else repr(value)
        return printable(hide_credentials(text))

    def as_dict(self) -> dict[str, object]:
        """Return the step as a dict, for JSON: its time, kind, name and text, and some fields."""
        value: Any = self.value
        found: dict[str, object] = {"time": self.time, "kind": self.kind}
        if isinstance(value, FRAMES):
            name = type(value).__name__
            found["name"] = _OPERATIONS.get(name, name.upper())
            if isinstance(value, (Msg, Pub)):
                found["subject"] = printable(value.subject)
                found["size"] = len(value.data)
                if value.raw_reply:
                    found["reply"] = printable(value.reply)
            if isinstance(value, Msg) and value.status:
                found["status"] = value.status
            if isinstance(value, (Msg, Sub, Unsub)):
                found["sid"] = value.sid
        elif not isinstance(value, str):
            found["name"] = type(value).__name__
        if self.source:
            found["source"] = self.source
        found["text"] = self.text
        return found


def masked(frame: Frame) -> Frame:
    """Return the frame, or for CONNECT a copy without its secrets (D-TRACE-2)."""
    if not isinstance(frame, Connect):
        return frame
    fields = frame.fields
    hidden = [key for key in fields if key in _MASKED and fields[key]]
    return Connect({key: "***" if key in hidden else fields[key] for key in fields})
