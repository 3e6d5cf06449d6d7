"""Draw docs/demo.svg, the terminal in README, from the output of the real demo.

    python -m release.screenshot [OPTION...]

The options are those of examples.orders; it takes as long as the demo does. Run it on an idle
machine: the picture shows rates.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.terminal_theme import SVG_EXPORT_THEME

from examples.orders import __main__ as demo
from examples.orders import show
from tests.core import ROOT

FILE = ROOT / "docs" / "demo.svg"
WIDTH = 100
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
DARK = "@media(prefers-color-scheme:dark) { svg > rect { stroke: #6e7681; } }"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


class Recorder(Console):
    """A terminal that records what remains on it, without the path of this clone."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, with paths relative to the clone."""
        here = f"{ROOT.as_uri()}/"
        texts = [each.replace(here, "") if isinstance(each, str) else each for each in objects]
        super().print(*texts, **options)


def record_last_frames(console: Console) -> None:
    """Record only the last frame of live displays, which draw themselves again and again."""
    start, stop = Live.start, Live.stop

    def begin(live: Live, refresh: bool = False) -> None:
        console.record = False
        start(live, refresh)

    def end(live: Live) -> None:
        was_started = live.is_started
        stop(live)
        console.record = True
        if was_started and not live.transient:
            console.print(live.get_renderable())

    Live.start, Live.stop = begin, end  # type: ignore[method-assign]


def finish(drawn: str, title: str) -> str:
    """Return the image with a title, its text as a description, and a border for dark pages."""
    # An image cannot load fonts from elsewhere.
    drawn = FONTS.sub("", drawn).replace("Fira Code, monospace", MONO)
    words = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawn)).replace("&#160;", " ")
    head = f'role="img"><title>{title}</title><desc>{" ".join(words.split())}</desc><style>{DARK}'
    return re.sub(r">\s*(?:<!--.*?-->)?\s*<style>", lambda _: f" {head}", drawn, count=1)


def main() -> int:
    """Run the demo and draw its output; return its exit status."""
    console = Recorder(
        record=True, width=WIDTH, highlight=False, force_terminal=True, color_system="truecolor"
    )
    show.console = console
    record_last_frames(console)
    command = "make demo-lite" if "--lite" in sys.argv else "make demo"
    console.print(f"[bold green]$[/] {command}")
    status = demo.main()
    drawn = console.export_svg(title=command, theme=SVG_EXPORT_THEME, unique_id="demo")
    FILE.write_text(finish(drawn, f"The output of {command}"), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
