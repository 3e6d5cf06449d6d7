"""A recorded dialogue as steps that can be rendered: parsed, explained, shortened.

Frames are read by natsproto's own parser and explained by jetstream.tools.explain. Bytes that the
parser rejects, such as the mistakes that the recordings make on purpose, are steps without an
explanation.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from jetstream.tools.explain import Explainer, wire_text
from natsproto import Parser, ProtocolError
from natsproto.explain import printable
from natsproto.wire import text as text_of

if TYPE_CHECKING:
    from pathlib import Path

SENT = "sent"
RECEIVED = "received"
REMARK = "remark"
CLOSED = "closed"
SKIPPED = "skipped"
HANDSHAKE = "handshake"

_HANDSHAKE = ["info", "connect", "ping", "pong", "info"]
_LEFT_OUT = re.compile(r"(\d+) MSG frames of the same shape left out")
_LONGEST_RUN = 4
_WIRE = 240


class Step(NamedTuple):
    """One line of a dialogue."""

    action: str  # SENT, RECEIVED and so on
    time: float  # seconds since the start
    client: str  # "A", "B"; "" if it is about none of them
    kind: str  # of the note
    label: str
    wire: str
    text: str


class Dialogue(NamedTuple):
    number: int
    name: str
    server: str
    clients: list[str]
    steps: list[Step]


def read(path: Path, remarks: list[str], whole: bool) -> Dialogue:
    """Read a recording; `remarks` replace its own, `whole` shows handshakes in full."""
    recording = json.loads(path.read_text(encoding="utf-8"))
    reader = _Reader(remarks)
    for entry in recording["frames"]:
        reader.read(entry)
    steps = reader.steps if whole else _fold_handshakes(reader.steps)
    clients = sorted({step.client for step in steps if step.client})
    number = int(path.stem.partition("-")[0])
    return Dialogue(number, path.stem, recording["server"], clients, _fold_runs(steps))


class _Reader:
    def __init__(self, remarks: list[str]) -> None:
        self.steps: list[Step] = []
        self._remarks = list(remarks)
        self._explainers: dict[str, Explainer] = {}
        self._parsers: dict[tuple[str, str], Parser] = {}
        self._broken: set[tuple[str, str]] = set()  # where nothing more can be read

    def read(self, entry: dict[str, str]) -> None:
        time, client, text = float(entry["t_ms"]) / 1000, entry["conn"], entry["latin1"]
        if entry["dir"] == "#":
            left_out = _LEFT_OUT.match(text)
            if left_out:
                text = f"{left_out[1]} more messages of the same shape"
                self.steps.append(Step(SKIPPED, time, client, SKIPPED, text, "", f"{text}."))
                return
            remark = self._remarks.pop(0) if self._remarks else text
            self.steps.append(Step(REMARK, time, client, REMARK, remark, "", remark))
        elif entry["dir"] == "!":
            reset = "reset" in text.lower()
            label = "connection reset" if reset else "connection closed"
            text = "The connection is reset." if reset else "The server closes the connection."
            self.steps.append(Step(CLOSED, time, client, CLOSED, label, "", text))
        else:
            self._frames(time, client, entry["dir"], base64.b64decode(entry["b64"]))

    def _frames(self, time: float, client: str, direction: str, data: bytes) -> None:
        peer = "server" if direction == "<" else "client"
        key = client, peer
        parser = self._parsers.setdefault(key, Parser(peer=peer, follow_info=False))
        explainer = self._explainers.setdefault(client, Explainer())
        action = SENT if peer == "client" else RECEIVED
        garbage = ""
        try:
            frames = [] if key in self._broken else parser.feed(data)
        except ProtocolError as error:
            frames, garbage = error.frames, error.reason
            self._broken.add(key)
        for frame in frames:
            note = explainer.sent(frame) if action == SENT else explainer.received(frame)
            wire = wire_text(frame)
            self.steps.append(Step(action, time, client, note.kind, note.label, wire, note.text))
        if garbage or not frames:
            wire = _shorten(printable(text_of.decode(data.removesuffix(b"\r\n"))))
            text = "The frame is not complete."
            if garbage:
                text = f"This is not a valid frame: {garbage}."
            elif key in self._broken:
                text = "More bytes follow. They belong to the mistake."
            label = _shorten(wire, 36) or "(an empty line)"
            self.steps.append(Step(action, time, client, "garbage", label, wire, text))


def _shorten(text: str, most: int = _WIRE) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _fold_handshakes(steps: list[Step]) -> list[Step]:
    """Replace the usual first five frames of each connection by one step."""
    folded = list(steps)
    for client in {step.client for step in steps if step.client}:
        own = [step for step in folded if step.client == client][:5]
        usual = [step.kind for step in own] == _HANDSHAKE
        if usual and "credentials" not in own[1].text and "verbose" not in own[1].text:
            at = folded.index(own[0])
            text = "The handshake: INFO, CONNECT, PING, PONG, and INFO again."
            step = Step(HANDSHAKE, own[0].time, client, HANDSHAKE, "handshake", "", text)
            folded = [each for each in folded if not any(each is one for one in own)]
            folded.insert(at, step)
    return folded


def _fold_runs(steps: list[Step]) -> list[Step]:
    """Leave out the middle of long runs of one step, or of two that alternate."""
    shapes = [_shape(step) for step in steps]
    folded: list[Step] = []
    at = 0
    while at < len(steps):
        period, count = max(((each, _repeats(shapes, at, each)) for each in (1, 2)), key=_length)
        if count <= _LONGEST_RUN:
            folded.append(steps[at])
            at += 1
            continue
        end = at + period * count
        left_out = count - 3
        folded += steps[at : at + 2 * period]
        last = steps[end - period - 1]
        what = "more" if period == 1 else "more pairs"
        label = f"{left_out} {what} of the same shape"
        text = f"{label}, until {clock(last.time)}."
        folded.append(Step(SKIPPED, last.time, last.client, SKIPPED, label, "", text))
        folded += steps[end - period : end]
        at = end
    return folded


def _shape(step: Step) -> tuple[str, str, str, str]:
    # Sequences count up in a run; the numbers in a subject tell messages apart.
    counts = step.kind in ("delivery", "publish ack")
    label = re.sub(r"\d+", "0", step.label) if counts else step.label
    return step.action, step.client, step.kind, label


def _repeats(shapes: list[tuple[str, str, str, str]], at: int, period: int) -> int:
    if shapes[at][0] not in (SENT, RECEIVED):
        return 1
    first = shapes[at : at + period]
    if period == 2 and (len(first) < 2 or first[0] == first[1]):
        return 1
    count = 1
    while shapes[at + count * period : at + (count + 1) * period] == first:
        count += 1
    return count


def _length(run: tuple[int, int]) -> int:
    period, count = run
    return period * count if count > _LONGEST_RUN else 0


def clock(time: float) -> str:
    """Return a time as text: "0.3 ms", "43 ms", "1.04 s"."""
    if time >= 1:
        return f"{time:.2f} s"
    if time >= 0.01:
        return f"{time * 1000:.0f} ms"
    return f"{time * 1000:.1f} ms"
