"""State diagrams as SVG, from a list of transitions.

The states stand in one column, in the order in which a machine usually passes through them. A
transition to the next state is an arrow down. All others run in lanes: those that lead back on the
left, those that lead further on the right. Transitions to one state that have the same names share
a lane. An input that does not change the state is written into its box.
"""

from __future__ import annotations

from typing import NamedTuple

from docs.generate.svg import MONO, Drawing

BOX_WIDTH = 260
BOX_HEIGHT = 50
GAP = 58
TOP = 30
LANE = 26
LABEL_GAP = 10
LINE = 14
ARROW = 8
SHOWN_STAYS = 38  # characters of the second line of a box


class Edge(NamedTuple):
    """A transition."""

    source: str
    label: str
    target: str


class Lane(NamedTuple):
    """Transitions to one state that are drawn as one line with several starts."""

    target: str
    sources: tuple[str, ...]
    labels: tuple[str, ...]


def order_states(edges: list[Edge], first: list[str]) -> list[str]:
    """Return the states from the first ones on, each before those it leads to where possible."""
    seen: list[str] = []
    done: list[str] = []

    def visit(state: str) -> None:
        seen.append(state)
        targets = [edge.target for edge in edges if edge.source == state]
        # The last one visited comes first in the result: the first row of a state leads on.
        for target in reversed(targets):
            if target not in seen:
                visit(target)
        done.insert(0, state)

    for state in reversed(first):
        if state not in seen:
            visit(state)
    return done


def lanes(edges: list[Edge], order: list[str]) -> list[Lane]:
    """Return the lanes, short ones first; edges to the next state are not among them."""
    place = {state: number for number, state in enumerate(order)}
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        if edge.source != edge.target:
            labels.setdefault((edge.source, edge.target), []).append(edge.label)
    shared: dict[tuple[str, tuple[str, ...], bool], list[str]] = {}
    for (source, target), names in labels.items():
        if place[target] != place[source] + 1:
            key = target, tuple(sorted(names)), place[target] < place[source]
            shared.setdefault(key, []).append(source)
    found = [Lane(target, tuple(sources), names) for (target, names, _), sources in shared.items()]
    return sorted(found, key=lambda lane: _span(lane, place))


def _span(lane: Lane, place: dict[str, int]) -> tuple[int, int]:
    low, high = _reach(lane, place)
    return high - low, low


def _reach(lane: Lane, place: dict[str, int]) -> tuple[int, int]:
    rows = [place[state] for state in (*lane.sources, lane.target)]
    return min(rows), max(rows)


class Diagram:
    """The drawing of one machine."""

    def __init__(self, edges: list[Edge], first: list[str]) -> None:
        self._edges = edges
        self._order = order_states(edges, first)
        self._place = {state: number for number, state in enumerate(self._order)}
        self._first = first
        leaving = {edge.source for edge in edges if edge.source != edge.target}
        self._final = set(self._order) - leaving
        self._drawing = Drawing()
        self._ports: dict[tuple[str, int], int] = {}

    def render(self, title: str) -> str:
        """Return the file."""
        both = lanes(self._edges, self._order)
        back = [lane for lane in both if self._leads_back(lane)]
        on = [lane for lane in both if not self._leads_back(lane)]
        columns = {-1: self._columns(back), 1: self._columns(on)}
        left = sum(columns[-1]) + 30
        self._x = left
        width = left + BOX_WIDTH + sum(columns[1]) + 30
        for side, these in ((-1, back), (1, on)):
            self._draw_lanes(side, these, columns[side])
        for state in self._order:
            self._draw_box(state)
        for number, state in enumerate(self._order[:-1]):
            self._draw_down(state, self._order[number + 1])
        height = TOP + len(self._order) * (BOX_HEIGHT + GAP) - GAP + 30
        return self._drawing.render(width, height, title, self._description())

    def _leads_back(self, lane: Lane) -> bool:
        return self._place[lane.target] < min(self._place[source] for source in lane.sources)

    def _columns(self, these: list[Lane]) -> list[float]:
        """Return the widths of the lanes, from the boxes outward: each has room for its label."""
        return [
            LANE + max(len(label) for label in lane.labels) * MONO + LABEL_GAP for lane in these
        ]

    def _y(self, state: str) -> float:
        return TOP + self._place[state] * (BOX_HEIGHT + GAP)

    def _port(self, state: str, side: int) -> float:
        """Return the height at which the next line meets a box; no two lines share one."""
        used = self._ports.get((state, side), 0)
        self._ports[state, side] = used + 1
        offsets = (0.5, 0.25, 0.75, 0.12, 0.88, 0.38, 0.62)
        return self._y(state) + BOX_HEIGHT * offsets[used % len(offsets)]

    def _edge_x(self, side: int) -> float:
        return self._x if side < 0 else self._x + BOX_WIDTH

    def _draw_lanes(self, side: int, these: list[Lane], widths: list[float]) -> None:
        outward = self._edge_x(side)
        color = "violet" if side < 0 else "blue"
        for lane, width in zip(these, widths, strict=True):
            x = outward + side * LANE
            end = self._port(lane.target, side)
            starts = [self._port(source, side) for source in lane.sources]
            for start in starts:
                self._drawing.path(self._elbow(side, x, start, end), color)
            edge = self._edge_x(side)
            tip = edge + side * ARROW
            self._drawing.polygon([(edge, end), (tip, end - 4), (tip, end + 4)], color)
            # Beside the part that all of them share, and between two boxes: no line crosses there.
            nearest = min(starts, key=lambda start: abs(start - end))
            middle = self._gap((nearest + end) / 2, nearest, end)
            top = middle - (len(lane.labels) - 1) * LINE / 2 + 4
            anchor = "end" if side < 0 else "start"
            for number, label in enumerate(lane.labels):
                place = x + side * LABEL_GAP * 0.7, top + number * LINE
                self._drawing.text(*place, label, f"mono {color}", anchor, halo=True)
            outward += side * width

    def _gap(self, y: float, start: float, end: float) -> float:
        """Return the middle of the gap between boxes that is nearest to a height."""
        gaps = [self._y(state) + BOX_HEIGHT + GAP / 2 for state in self._order]
        inside = [gap for gap in gaps if min(start, end) < gap < max(start, end)]
        return min(inside, key=lambda gap: abs(gap - y), default=y)

    def _elbow(self, side: int, x: float, start: float, end: float) -> str:
        """Return the path from a box to a lane, along it, and back to a box."""
        edge = self._edge_x(side)
        bend = 8 if end > start else -8
        return (
            f"M{edge:.1f} {start:.1f}H{x - side * 8:.1f}Q{x:.1f} {start:.1f} {x:.1f} "
            f"{start + bend:.1f}V{end - bend:.1f}Q{x:.1f} {end:.1f} {x - side * 8:.1f} {end:.1f}"
            f"H{edge + side * ARROW:.1f}"
        )

    def _draw_box(self, state: str) -> None:
        y = self._y(state)
        color = "ink" if state in self._first or state in self._final else "dim"
        self._drawing.rect(self._x, y, BOX_WIDTH, BOX_HEIGHT, color, 10)
        if state in self._final:
            self._drawing.rect(self._x + 4, y + 4, BOX_WIDTH - 8, BOX_HEIGHT - 8, color, 7)
        stays = self._stays(state)
        middle = self._x + BOX_WIDTH / 2
        self._drawing.text(middle, y + (22 if stays else 30), state, "ink bold")
        if stays:
            self._drawing.text(middle, y + 38, stays, "dim small")

    def _stays(self, state: str) -> str:
        names = [edge.label for edge in self._edges if edge.source == edge.target == state]
        text = f"↺ {', '.join(names)}" if names else ""
        return text if len(text) <= SHOWN_STAYS + 12 else f"↺ {len(names)} inputs"

    def _draw_down(self, state: str, below: str) -> None:
        labels = [e.label for e in self._edges if (e.source, e.target) == (state, below)]
        if not labels:
            return
        x = self._x + BOX_WIDTH / 2
        top, bottom = self._y(state) + BOX_HEIGHT, self._y(below)
        self._drawing.line(x, top, x, bottom - ARROW, "green")
        tip = bottom - ARROW
        self._drawing.polygon([(x, bottom), (x - 4, tip), (x + 4, tip)], "green")
        start = (top + bottom) / 2 - (len(labels) - 1) * LINE / 2 + 2
        for number, label in enumerate(labels):
            self._drawing.text(x + 10, start + number * LINE, label, "mono green", "start")

    def _description(self) -> str:
        return "; ".join(f"{e.source}, {e.label}: {e.target}" for e in self._edges) + "."
