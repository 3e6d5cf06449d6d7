"""A transcript: the frames of a dialogue in the form of tests/vectors (D-PROXY-4).

Each frame has its time, its connection, its direction and its bytes. Only the secrets of CONNECT
are replaced, because files are passed on.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from natsproto.explain import SECRETS
from natsproto.wire.frames import Connect, Info

from .dialogue import RECEIVED, SENT, Dialogue

if TYPE_CHECKING:
    from pathlib import Path

    from .dialogue import Step

CLOSED = "!"


class Transcript:
    """The frames of a trace so far."""

    def __init__(self, name: str, title: str) -> None:
        self._name = name
        self._title = title
        self._server = ""
        self.entries: list[dict[str, Any]] = []

    def add(self, step: Step) -> None:
        """Add a frame."""
        if isinstance(step.frame, Info) and step.frame.version:
            self._server = f"nats-server {step.frame.version}"
        self._add(step.time, step.connection, step.direction, masked(step))

    def close(self, time: float, connection: str) -> None:
        """Note the end of a connection."""
        self._add(time, connection, CLOSED, b"closed")

    def _add(self, time: float, connection: str, direction: str, data: bytes) -> None:
        self.entries.append(
            {
                "t_ms": round(time * 1000, 1),
                "conn": connection,
                "dir": direction,
                "latin1": data.decode("latin-1"),
                "b64": base64.b64encode(data).decode(),
            }
        )

    def text(self) -> str:
        """Return the file."""
        fields: dict[str, Any] = {"name": self._name, "title": self._title, "server": self._server}
        return json.dumps({**fields, "notes": [], "frames": self.entries}, indent=1) + "\n"


def masked(step: Step) -> bytes:
    """Return the bytes of a frame; in a CONNECT every secret is replaced (D-PROXY-2)."""
    frame = step.frame
    if not isinstance(frame, Connect):
        looks_like = step.data[:7].upper() == b"CONNECT"
        return b"CONNECT {}\r\n" if looks_like else step.data
    if not any(frame.fields.get(name) for name in SECRETS):
        return step.data
    fields = {
        name: "***" if name in SECRETS and value else value for name, value in frame.fields.items()
    }
    return b"CONNECT %s\r\n" % json.dumps(fields, separators=(",", ":")).encode()


def read_steps(path: Path) -> list[Step]:
    """Return the steps of a transcript."""
    dialogues: dict[str, Dialogue] = {}
    steps: list[Step] = []
    time = 0.0
    for entry in json.loads(path.read_text(encoding="utf-8"))["frames"]:
        time = float(entry["t_ms"]) / 1000
        if entry["dir"] in (SENT, RECEIVED):
            name = entry["conn"] or "A"
            dialogue = dialogues.setdefault(name, Dialogue(name))
            steps += dialogue.feed(entry["dir"], base64.b64decode(entry["b64"]), time)
    for dialogue in dialogues.values():
        steps += dialogue.end(time)
    return steps
