"""A few shapes of SVG, with colors for light and dark pages, a title and a description."""

from __future__ import annotations

from html import escape

MONO = 6.6  # width of a character of the labels, 11 px monospace
SANS = 6.2  # the average width of a character of 12 px sans-serif

# Class, color on light pages, color on dark pages.
COLORS = [
    ("ink", "#1f2328", "#e6edf3"),
    ("dim", "#656d76", "#8b949e"),
    ("faint", "#d0d7de", "#30363d"),
    ("blue", "#0550ae", "#79c0ff"),
    ("green", "#116329", "#7ee787"),
    ("amber", "#953800", "#ffa657"),
    ("red", "#cf222e", "#ff7b72"),
    ("violet", "#6639ba", "#d2a8ff"),
]
PAPER = ("#ffffff", "#0d1117")
BOX = ("#f6f8fa", "#161b22")


def _style() -> str:
    def rules(column: int) -> str:
        paper, box = PAPER[column], BOX[column]
        colors = "".join(
            f".{name}{{fill:{both[column]}}}.s-{name}{{stroke:{both[column]};fill:none}}"
            for name, *both in COLORS
        )
        return f".paper{{fill:{paper}}}.box{{fill:{box}}}.halo{{stroke:{paper}}}{colors}"

    return (
        "text{font:12px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
        "text.mono{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
        "text.bold{font-weight:600}text.small{font-size:10px}"
        f".halo{{stroke-width:4;stroke-linejoin:round}}{rules(0)}"
        f"@media(prefers-color-scheme:dark){{{rules(1)}}}"
    )


STYLE = _style()


class Drawing:
    """Shapes in the order in which they are drawn."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str, dash: str = "") -> None:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<line x1="{n(x1)}" y1="{n(y1)}" x2="{n(x2)}" y2="{n(y2)}" class="s-{color}" '
            f'stroke-width="1.4"{dashes}/>'
        )

    def path(self, d: str, color: str, dash: str = "") -> None:
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<path d="{d}" class="s-{color}" stroke-width="1.4"{dashes}/>')

    def polygon(self, points: list[tuple[float, float]], color: str) -> None:
        text = " ".join(f"{n(x)},{n(y)}" for x, y in points)
        self._parts.append(f'<polygon points="{text}" class="{color}"/>')

    def rect(
        self, x: float, y: float, width: float, height: float, color: str, radius: float = 6
    ) -> None:
        """Draw a filled box with a border of the given color."""
        place = f'x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="{n(radius)}"'
        self._parts.append(f'<rect {place} class="box"/>')
        self._parts.append(f'<rect {place} class="s-{color}"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        classes: str,
        anchor: str = "middle",
        halo: bool = False,
    ) -> None:
        """Draw text; a halo in the color of the paper keeps it legible across lines."""
        middle = f' text-anchor="{anchor}"' if anchor != "start" else ""
        place = f'x="{n(x)}" y="{n(y)}"{middle}'
        if halo:  # beneath the text, because not every viewer knows paint-order
            self._parts.append(f'<text {place} class="{classes} halo">{quote(text)}</text>')
        self._parts.append(f'<text {place} class="{classes}">{quote(text)}</text>')

    def render(self, width: float, height: float, title: str, description: str) -> str:
        """Return the file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {n(width)} {n(height)}" '
            f'width="{n(width)}" height="{n(height)}" role="img" aria-labelledby="title desc">\n'
            f'<title id="title">{quote(title)}</title>\n'
            f'<desc id="desc">{quote(description)}</desc>\n'
            f"<style>{STYLE}</style>\n"
            f'<rect class="paper" width="{n(width)}" height="{n(height)}" rx="8"/>\n'
        )
        return head + "\n".join(self._parts) + "\n</svg>\n"


def n(value: float) -> str:
    """Return a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def quote(text: str) -> str:
    return escape(text, quote=False)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
