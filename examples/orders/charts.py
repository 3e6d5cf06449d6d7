"""Charts as inline SVG. Colors come from the page's CSS, so one drawing fits light and dark."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 14, 30
INNER = WIDTH - LEFT - RIGHT
DEPTH = HEIGHT - TOP - BOTTOM
ROW = 14  # of the text of a mark

Points = list[tuple[float, float]]


class Column(NamedTuple):
    """A column of a stacked chart: its label, and a value per series."""

    label: str
    values: list[float]


def nice_step(highest: float, steps: int = 4) -> float:
    """Return a step of 1, 2 or 5 times a power of ten, for at most `steps` grid lines."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** (len(str(int(highest / steps))) - 1)
    while highest / power > steps:
        for factor in (1, 2, 5, 10):
            if highest / (power * factor) <= steps:
                return power * factor
        power *= 10
    return power


def short(value: float) -> str:
    """Return a number for an axis: 1.2M, 350k, 40."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if value >= 1_000:
        return f"{value / 1_000:g}k"
    return f"{value:g}"


def stacked_columns(title: str, names: list[str], columns: list[Column], unit: str) -> str:
    """Draw one stacked column per entry of `columns`; hovering shows the values."""
    highest = max((sum(column.values) for column in columns), default=1.0) or 1.0
    parts = _grid(highest)
    slot = INNER / max(1, len(columns))
    gap = min(2.0, slot / 4)
    for number, column in enumerate(columns):
        x = LEFT + number * slot + gap / 2
        y = float(TOP + DEPTH)
        pairs = zip(names, column.values)
        said = f"{column.label}\n" + "\n".join(
            f"{name}: {value:,.2f} {unit}" for name, value in pairs
        )
        parts.append(f"<g><title>{escape(said)}</title>")
        for series, value in enumerate(column.values):
            height = DEPTH * value / highest
            y -= height
            parts.append(
                f'<rect class="f{series}" x="{x:.1f}" y="{y:.1f}" width="{slot - gap:.1f}"'
                f' height="{max(0.0, height - 1):.1f}"/>'
            )
        parts.append("</g>")
    every = max(1, len(columns) // 8)
    for number in range(0, len(columns), every):
        x = LEFT + (number + 0.5) * slot
        parts.append(_below(x, columns[number].label))
    return _svg(title, parts) + legend(names)


def lines(title: str, series: dict[str, Points], marks: list[tuple[float, str]]) -> str:
    """Draw a line per series over seconds; `marks` are moments with a text.

    A series without points keeps its color for others that are drawn beside it.
    """
    ends = [x for points in series.values() for x, _ in points] + [x for x, _ in marks]
    longest = max(ends, default=1.0) or 1.0
    highest = max((y for points in series.values() for _, y in points), default=1.0) or 1.0
    parts = _grid(highest)
    step = nice_step(longest, 8)
    at = 0.0
    while at <= longest:
        parts.append(_below(LEFT + INNER * at / longest, f"{at:g} s"))
        at += step
    parts += [_mark(x / longest, row, text) for row, (x, text) in enumerate(marks)]
    for number, (name, points) in enumerate(series.items()):
        path = " ".join(
            f"{LEFT + INNER * x / longest:.1f},{TOP + DEPTH * (1 - y / highest):.1f}"
            for x, y in points
        )
        parts.append(
            f'<polyline class="s{number}" points="{path}"><title>{escape(name)}</title></polyline>'
        )
    return _svg(title, parts, len(marks)) + legend(
        [name if points else "" for name, points in series.items()]
    )


def legend(names: list[str]) -> str:
    """Return the names with their colors; "" skips a color."""
    items = "".join(
        f'<li><span class="b{number}"></span>{escape(name)}</li>'
        for number, name in enumerate(names)
        if name
    )
    return f'<ul class="legend">{items}</ul>'


def _grid(highest: float) -> list[str]:
    parts: list[str] = []
    step = nice_step(highest)
    value = 0.0
    while value <= highest:
        y = TOP + DEPTH * (1 - value / highest)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
        )
        value += step
    return parts


def _mark(share: float, row: int, text: str) -> str:
    """Draw a vertical line with a text above the chart; each has its own row there."""
    x = LEFT + INNER * share
    y = -ROW * row
    side = ' text-anchor="end"' if share > 0.5 else ""
    return (
        f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 2}" y2="{TOP + DEPTH}"/>'
        f'<text class="mark" x="{x + (-5 if side else 5):.1f}" y="{y + 7}"{side}>'
        f"{escape(text)}</text>"
    )


def _below(x: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(text)}</text>'


def _svg(title: str, parts: list[str], rows: int = 0) -> str:
    above = ROW * rows
    return (
        f'<svg viewBox="0 {-above} {WIDTH} {HEIGHT + above}" role="img"'
        f' aria-label="{escape(title)}">' + "".join(parts) + "</svg>"
    )
