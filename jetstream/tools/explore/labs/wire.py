"""The first pane: bytes that a visitor types, the frames in them, and the state of the parser."""

from __future__ import annotations

import json

from jetstream.tools.explain import Explainer, wire_text
from jetstream.tools.explain.rules import rule_of
from natsproto.errors import ProtocolError
from natsproto.wire.parser import Parser

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.wire.frames import Frame

_ESCAPES = {"r": 13, "n": 10, "t": 9, "\\": 92, "0": 0}
_HEX = "0123456789abcdef"
#: Above this size, frames are located by pieces: feeding single bytes would take seconds.
_MOST_SINGLE = 20_000


def read_bytes(text: str) -> bytes:
    r"""Return the bytes that a text stands for: \r, \n, \t, \0, \\ and \xff, line ends as CRLF."""
    found = bytearray()
    at = 0
    while at < len(text):
        char = text[at]
        after = text[at + 1 : at + 2]
        digits = text[at + 2 : at + 4].lower()
        if char == "\n":
            found.extend(b"\r\n")
        elif char == "\\" and after in _ESCAPES:
            found.append(_ESCAPES[after])
            at += 1
        elif char == "\\" and after == "x" and len(digits) == 2 and _is_hex(digits):
            found.append(int(digits, 16))
            at += 3
        elif char != "\r":
            found.extend(char.encode())
        at += 1
    return bytes(found)


def _is_hex(digits: str) -> bool:
    return digits[0] in _HEX and digits[1] in _HEX


def show_bytes(data: bytes) -> str:
    """Return a text for bytes that `read_bytes` reads back, a line for each CRLF."""
    parts: list[str] = []
    for index, byte in enumerate(data):
        if byte == 10 and data[index - 1 : index] == b"\r":
            parts[-1] = "\n"
        elif byte == 92:
            parts.append("\\\\")
        elif 32 <= byte < 127:
            parts.append(chr(byte))
        else:
            parts.append("\\x%02x" % byte)
    return "".join(parts)


def parse(text: str, peer: str, piece: int) -> str:
    """Feed a parser with pieces of this size, 0 for all at once; return the result."""
    data = read_bytes(text)
    parser = Parser(peer=peer)
    explainer = Explainer()
    ends = _ends(data, peer)
    rows: list[dict[str, Any]] = []
    error: dict[str, Any] | None = None
    fed = 0
    while fed < len(data) and error is None:
        chunk = data[fed : fed + piece] if piece else data
        fed += len(chunk)
        try:
            frames = parser.feed(chunk)
        except ProtocolError as problem:
            frames = problem.frames
            error = {"text": str(problem), "offset": problem.offset}
        for frame in frames:
            row = _row(frame, explainer, peer)
            row["start"] = ends[len(rows) - 1] if rows and len(rows) <= len(ends) else 0
            row["end"] = ends[len(rows)] if len(rows) < len(ends) else fed
            row["fed"] = fed
            rows.append(row)
    result = {"size": len(data), "frames": rows, "error": error, "inside": parser.inside}
    return json.dumps(result)


def _row(frame: Frame, explainer: Explainer, peer: str) -> dict[str, Any]:
    note = explainer.received(frame) if peer == "server" else explainer.sent(frame)
    return {
        "name": type(frame).__name__,
        "wire": wire_text(frame),
        "kind": note.kind,
        "text": note.text,
        "rule": rule_of(note),
    }


def _ends(data: bytes, peer: str) -> list[int]:
    """Return the position after each frame, by a parser that sees one byte at a time."""
    step = 1 if len(data) <= _MOST_SINGLE else 256
    parser = Parser(peer=peer)
    ends: list[int] = []
    for at in range(0, len(data), step):
        try:
            frames = parser.feed(data[at : at + step])
        except ProtocolError as problem:
            ends.extend([at + step] * len(problem.frames))
            break
        ends.extend([min(at + step, len(data))] * len(frames))
    return ends
