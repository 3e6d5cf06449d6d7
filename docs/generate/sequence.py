"""Sequence charts of dialogues, as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.generate import dialogue as steps
from docs.generate.svg import MONO, SANS, Drawing, cut

if TYPE_CHECKING:
    from docs.generate.dialogue import Dialogue, Step

WIDTH = 760
TIMES = 66  # where the column of times ends
SERVER = 690
FIRST = 128  # the first client
BETWEEN = 84  # two clients
TOP = 54
ROW = 30

COLORS = {
    "publish": "blue",
    "request": "blue",
    "pull request": "blue",
    "call": "blue",
    "subscribe": "blue",
    "unsubscribe": "blue",
    "ack": "violet",
    "confirmation": "violet",
    "flow control": "violet",
    "message": "green",
    "delivery": "green",
    "response": "green",
    "publish ack": "green",
    "advisory": "green",
    "heartbeat": "dim",
    "status": "amber",
    "error": "red",
    "garbage": "red",
}


def render(dialogue: Dialogue, title: str) -> str:
    """Return the chart of a dialogue."""
    chart = _Chart(dialogue)
    return chart.render(title)


class _Chart:
    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._drawing = Drawing()
        clients = dialogue.clients or ["A"]
        self._x = {client: FIRST + BETWEEN * number for number, client in enumerate(clients)}
        self._closed: dict[str, float] = {}

    def render(self, title: str) -> str:
        rows = self._dialogue.steps
        bottom = TOP + ROW * len(rows) + 14
        ends = self._ends(bottom)
        for client, x in self._x.items():
            self._drawing.line(x, 40, x, ends.get(client, bottom), "faint")
        self._drawing.line(SERVER, 40, SERVER, bottom, "faint")
        for client, x in self._x.items():
            name = "client" if len(self._x) == 1 else f"client {client}"
            self._head(x, name)
        self._head(SERVER, "server")
        last = ""
        for number, step in enumerate(rows):
            y = TOP + ROW * number + 20
            time = steps.clock(step.time)
            if time != last:
                self._drawing.text(TIMES, y + 4, time, "dim small", "end")
            last = time
            self._step(step, y)
        return self._drawing.render(WIDTH, bottom + 6, title, self._description())

    def _ends(self, bottom: float) -> dict[str, float]:
        """Return where lifelines end: at the loss of a connection that is the last step of it."""
        ends: dict[str, float] = {}
        for number, step in enumerate(self._dialogue.steps):
            ends.pop(step.client, None)
            if step.action == steps.CLOSED:
                ends[step.client] = min(bottom, TOP + ROW * number + 20)
        return ends

    def _head(self, x: float, name: str) -> None:
        width = len(name) * SANS + 18
        self._drawing.rect(x - width / 2, 16, width, 24, "dim")
        self._drawing.text(x, 32, name, "ink bold")

    def _step(self, step: Step, y: float) -> None:
        if step.action in (steps.SENT, steps.RECEIVED):
            self._arrow(step, y)
        elif step.action == steps.HANDSHAKE:
            x = self._x[step.client]
            self._drawing.rect(x, y - 10, SERVER - x, 20, "faint", 4)
            self._drawing.text((x + SERVER) / 2, y + 4, step.label, "dim")
        elif step.action == steps.CLOSED:
            x = self._x[step.client]
            self._drawing.line(x, y, SERVER, y, "red", "2 4")
            for size in (5, -5):
                self._drawing.line(x - 5, y - size, x + 5, y + size, "red")
            self._drawing.text((x + SERVER) / 2, y - 5, step.label, "red", halo=True)
        elif step.action == steps.SKIPPED:
            middle = (min(self._x.values()) + SERVER) / 2
            self._drawing.text(middle, y + 4, f"⋮ {step.label}", "dim", halo=True)
        else:
            left = min(self._x.values()) - 46
            width = SERVER + 46 - left
            self._drawing.rect(left, y - 11, width, 22, "dim", 11)
            most = int((width - 24) / SANS)
            self._drawing.text(left + width / 2, y + 4, cut(step.label, most), "ink")

    def _arrow(self, step: Step, y: float) -> None:
        color = COLORS.get(step.kind, "dim")
        x = self._x[step.client]
        start, end = (x, SERVER) if step.action == steps.SENT else (SERVER, x)
        back = -7 if end > start else 7
        dash = "3 3" if step.kind == "heartbeat" else ""
        self._drawing.line(start, y, end + back, y, color, dash)
        self._drawing.polygon([(end, y), (end + back, y - 4), (end + back, y + 4)], color)
        # Labels of several clients stay to the right of the last lifeline.
        left = max(self._x.values())
        most = int((SERVER - left - 20) / MONO)
        self._drawing.text(
            (left + SERVER) / 2, y - 5, cut(step.label, most), f"mono {color}", halo=True
        )

    def _description(self) -> str:
        parts: list[str] = []
        for step in self._dialogue.steps:
            who = f"client {step.client}" if len(self._x) > 1 else "client"
            if step.action == steps.SENT:
                parts.append(f"{who} to server: {step.label}")
            elif step.action == steps.RECEIVED:
                parts.append(f"server to {who}: {step.label}")
            elif step.action in (steps.HANDSHAKE, steps.CLOSED) and len(self._x) > 1:
                parts.append(f"{who}: {step.label}")
            else:
                parts.append(step.label)
        return "; ".join(parts) + "."
