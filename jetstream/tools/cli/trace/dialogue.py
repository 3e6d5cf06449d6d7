"""The dialogue of one connection: bytes in, steps out, no I/O and no clock.

A step is one frame, decoded, explained, with the rule that it follows, and paired with the earlier
frame that it belongs to. Secrets are masked in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jetstream.tools.explain import Explainer, Note, wire_text
from jetstream.tools.explain.rules import rule_of
from natsproto import Parser, ProtocolError
from natsproto.explain import printable
from natsproto.wire import text as text_of

from .frames import Cutter
from .pairs import Pairs

if TYPE_CHECKING:
    from natsproto.wire.frames import Frame

SENT = ">"
RECEIVED = "<"
_WIRE = 240
_KEPT_TIMES = 5000


class Step(NamedTuple):
    """One frame of a dialogue."""

    number: int  # of the frame in its connection
    time: float  # seconds since the start of the trace
    connection: str  # "A", "B" ...
    direction: str  # SENT by the client, or RECEIVED by it
    wire: str  # the frame, shortened, secrets masked
    kind: str
    label: str
    text: str  # the explanation
    rule: str  # an id of spec_notes, or ""
    of: int  # number of the earlier frame that this one belongs to, or 0
    after: float  # seconds since then
    data: bytes  # the frame as it is on the wire, with its secrets: not for people
    frame: Frame | None  # None if the bytes are not NATS protocol

    def json(self) -> dict[str, Any]:
        """Return the step as an object of JSON, without bytes."""
        fields = self._asdict()
        for name in ("data", "frame", *([] if self.of else ["of", "after"])):
            del fields[name]
        fields["time"] = round(self.time, 6)
        fields["size"] = len(self.data)
        if self.of:
            fields["after"] = round(self.after, 6)
        return fields

    def lines(self) -> list[str]:
        """Return the step for people: the frame, and below it the explanation."""
        head = f"{self.time:9.4f} {self.connection} {self.direction} #{self.number:<4} "
        indent = " " * len(head)
        parts = [self.text]
        if self.rule:
            parts.append(f"({self.rule})")
        if self.of:
            parts.append(f"[of #{self.of}, {_clock(self.after)} later]")
        first, *others = self.wire.split("\n")
        lines = [head + first, *[indent + "  " + other for other in others]]
        return [*lines, f"{indent}{self.kind}: {' '.join(parts)}"]


class Dialogue:
    """Reads both directions of one connection."""

    def __init__(self, connection: str = "A") -> None:
        self._connection = connection
        self._cutters = {SENT: Cutter(), RECEIVED: Cutter()}
        self._parsers = {
            SENT: Parser(peer="client", follow_info=False),
            RECEIVED: Parser(follow_info=False),
        }
        self._broken: set[str] = set()
        self._explainer = Explainer()
        self._pairs = Pairs()
        self._times: dict[int, float] = {}
        self._number = 0

    def feed(self, direction: str, data: bytes, time: float) -> list[Step]:
        """Return the steps that these bytes complete."""
        return [self._step(direction, each, time) for each in self._cutters[direction].feed(data)]

    def end(self, time: float) -> list[Step]:
        """Return steps for frames that are not complete."""
        steps: list[Step] = []
        for direction, cutter in self._cutters.items():
            rest = cutter.rest()
            if rest:
                note = Note("garbage", "incomplete", "The frame is not complete.")
                steps.append(self._made(direction, rest, time, None, note))
        return steps

    def _step(self, direction: str, data: bytes, time: float) -> Step:
        if direction in self._broken:
            note = Note("garbage", "more bytes", "More bytes follow the mistake.")
            return self._made(direction, data, time, None, note)
        try:
            frames = self._parsers[direction].feed(data)
        except ProtocolError as error:
            self._broken.add(direction)
            text = f"This is not a valid frame: {error.reason}."
            return self._made(direction, data, time, None, Note("garbage", "not a frame", text))
        if not frames:  # an empty line, which is ignored
            note = Note("garbage", "no frame", "These bytes are not a frame, and are ignored.")
            return self._made(direction, data, time, None, note)
        explain = self._explainer.sent if direction == SENT else self._explainer.received
        return self._made(direction, data, time, frames[0], explain(frames[0]))

    def _made(
        self, direction: str, data: bytes, time: float, frame: Frame | None, note: Note
    ) -> Step:
        self._number += 1
        self._times[self._number] = time
        self._times.pop(self._number - _KEPT_TIMES, None)
        of = self._pairs.pair(self._number, frame, note, direction == SENT) if frame else 0
        if of not in self._times:
            of = 0
        return Step(
            self._number,
            time,
            self._connection,
            direction,
            wire_text(frame) if frame is not None else _shown(data),
            note.kind,
            note.label,
            note.text,
            rule_of(note),
            of,
            time - self._times.get(of, time),
            data,
            frame,
        )


def _shown(data: bytes) -> str:
    """Return bytes that are not a frame; they may be a CONNECT with a mistake, and secrets."""
    if data[:7].upper() == b"CONNECT":  # D-PROXY-2
        return f"CONNECT ({len(data)} bytes)"
    text = printable(text_of.decode(data.removesuffix(b"\r\n")))
    return text if len(text) <= _WIRE else f"{text[: _WIRE - 3]}..."


def _clock(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1000:.3f} ms"
