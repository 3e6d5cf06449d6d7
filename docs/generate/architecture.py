"""The picture of the layers in README: docs/architecture.svg."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.generate.svg import Drawing
from tests.core import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FILE = ROOT / "docs" / "architecture.svg"
WIDTH, HEIGHT, EDGE, GAP = 760.0, 428.0, 20.0, 10.0
API = ["Client", "JetStream", "key-value", "objects", "services"]
MACHINES = ["Parser", "Connection", "consumers", "publishers", "watches"]
ADAPTERS = ["asyncio, uvloop", "trio", "anyio", "threads", "blocking", "poll"]
ADAPTERS_2 = ["Pyodide", "MicroPython", "gevent", "Twisted", "yours"]
DESCRIPTION = (
    "Your program calls the client API, which is written once. The API uses state machines that "
    "do no I/O and read no clock: parser, connection, consumers, publishers, watches. An adapter "
    "gives them bytes and the time, and gets bytes, events and the next deadline. Adapters: "
    f"{', '.join(ADAPTERS + ADAPTERS_2)}. They talk to nats-server."
)


def render() -> dict[Path, str]:
    """Return the file."""
    drawing = Drawing()
    inner = WIDTH - 2 * EDGE
    _row(drawing, 18, 34, ["your program"], EDGE, inner, "faint", bold=True)
    _arrows(drawing, 52, 76, "calls", "results")
    _layer(drawing, 76, 74, "Client API: written once", "the same names on every runtime", "blue")
    _row(drawing, 106, 32, API, EDGE + GAP, inner - 2 * GAP, "blue")
    text = "no I/O, no clock, no randomness: every timeout is tested with exact times"
    _layer(drawing, 160, 74, "State machines", text, "green")
    _row(drawing, 190, 32, MACHINES, EDGE + GAP, inner - 2 * GAP, "green")
    _arrows(drawing, 234, 266, "bytes and the time", "bytes, events, the next deadline", up=True)
    text = "sockets, TLS and timers; 200 to 300 lines each; no NATS knowledge"
    _layer(drawing, 266, 110, "Adapters", text, "amber")
    _row(drawing, 296, 32, ADAPTERS, EDGE + GAP, inner - 2 * GAP, "amber")
    _row(drawing, 336, 32, ADAPTERS_2, EDGE + GAP, inner - 2 * GAP, "amber")
    _row(drawing, 386, 30, ["nats-server 2.9.10 to 2.15"], EDGE, inner, "faint", bold=True)
    return {FILE: drawing.render(WIDTH, HEIGHT, "The layers of natsproto", DESCRIPTION)}


def _layer(drawing: Drawing, top: float, height: float, title: str, text: str, color: str) -> None:
    drawing.rect(EDGE, top, WIDTH - 2 * EDGE, height, color, radius=8)
    drawing.text(EDGE + GAP + 2, top + 20, title, f"{color} bold", "start")
    drawing.text(WIDTH - EDGE - GAP - 2, top + 20, text, "dim", "end")


def _row(
    drawing: Drawing,
    top: float,
    height: float,
    labels: list[str],
    left: float,
    width: float,
    color: str,
    bold: bool = False,
) -> None:
    """Draw boxes of the same width beside each other."""
    each = (width - GAP * (len(labels) - 1)) / len(labels)
    for number, label in enumerate(labels):
        x = left + number * (each + GAP)
        drawing.rect(x, top, each, height, color)
        drawing.text(x + each / 2, top + height / 2 + 4, label, "ink bold" if bold else "ink")


def _arrows(
    drawing: Drawing, top: float, bottom: float, one: str, other: str, up: bool = False
) -> None:
    """Draw an arrow in each direction with its text; the first goes down, or up."""
    middle = (top + bottom) / 2
    for x, text, upward in [(WIDTH * 0.3, one, up), (WIDTH * 0.62, other, not up)]:
        tip, tail = (top + 2, bottom - 2) if upward else (bottom - 2, top + 2)
        drawing.line(x, tail, x, tip, "dim")
        back = tip + (7 if upward else -7)
        drawing.polygon([(x, tip), (x - 4, back), (x + 4, back)], "dim")
        drawing.text(x + 12, middle + 4, text, "dim", "start")
