"""Steps: what happened in a simulation, for assertions and for reading.

kind         what it is
connection   a change of a connection's state; the text is the new one, such as CONNECTED
fault        what was done to the network or the server
note         what the test wrote by `note`
message      a message that reached a client
status       a message with a status, such as 503
publish      a message that a client published
subscribe, unsubscribe, ping, pong, connect, info, ok, error
             the other frames, by what they do

jetstream.testing.sim tells messages apart: pull, ack, call, response, heartbeat.
"""

from __future__ import annotations

from natsproto.wire.frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from natsproto.wire.parser import Parser

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.wire.frames import Frame

_MOST_DATA = 60


class Step:
    """One entry of a trace: what happened, when, and to which client."""

    __slots__ = ("client", "frame", "kind", "text", "time")

    def __init__(
        self, time: float, client: str, kind: str, text: str, frame: Frame | None = None
    ) -> None:
        self.time: float = time
        self.client: str = client
        self.kind: str = kind
        self.text: str = text
        #: The frame, for kinds that are one.
        self.frame: Frame | None = frame

    def __str__(self) -> str:
        return "%9.4f %s %-11s %s" % (self.time, self.client or "-", self.kind, self.text)

    def __repr__(self) -> str:
        return "<Step %s>" % str(self).strip()


class Reader:
    """Frames of one direction of a client, from pieces of any size."""

    __slots__ = ("_parser", "_peer")

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self.reset()

    def reset(self) -> None:
        """Begin with another transport."""
        self._parser = Parser(peer=self._peer)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete."""
        return self._parser.feed(data)


def describe(frame: Frame) -> tuple[str, str]:
    """Return the kind of a frame, and a text."""
    if isinstance(frame, Msg):
        if frame.status:
            line = ("%d %s" % (frame.status, frame.description)).strip()
            return "status", "%s on %s" % (line, frame.subject)
        return "message", with_data(frame.subject, frame.data)
    if isinstance(frame, Pub):
        return "publish", with_data(frame.subject, frame.data)
    if isinstance(frame, Sub):
        return "subscribe", frame.subject + (" in " + frame.queue if frame.queue else "")
    if isinstance(frame, Unsub):
        return "unsubscribe", "%d" % frame.sid
    if isinstance(frame, Err):
        return "error", frame.text
    return _NAMES[type(frame).__name__], ""


_NAMES = {each.__name__: each.__name__.lower() for each in (Connect, Info, Ok, Ping, Pong)}


def with_data(subject: str, data: bytes) -> str:
    """Return a subject with the beginning of its payload."""
    if not data:
        return subject
    shown = repr(data[:_MOST_DATA])[2:-1]
    return "%s: %s%s" % (subject, shown, "..." if len(data) > _MOST_DATA else "")
