"""The live view of the parts: a table in a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from examples.orders import show
from examples.orders.tracks import Event

if TYPE_CHECKING:
    from typing_extensions import Self

    from examples.orders.tracks import Clock, Track

INTERVAL = 2.0  # seconds between two plain lines
WIDTH = 24  # of a bar
CURVE = 30  # steps of the curve of rates
BLOCKS = " ▁▂▃▄▅▆▇█"


def curve(rates: list[float]) -> str:
    """Draw the last rates as a line of blocks."""
    highest = max(rates, default=0.0)
    if highest <= 0:
        return ""
    return "".join(BLOCKS[min(8, round(8 * rate / highest))] for rate in rates[-CURVE:])


class View:
    """Shows tracks while they grow. Events are kept, because the report shows them as well."""

    def __init__(self, title: str, tracks: list[Track], clock: Clock) -> None:
        self.events: list[Event] = []
        self.tracks = tracks
        self.clock = clock
        self._title = title
        self._printed = 0.0
        self._live = Live(console=show.console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        if show.console.is_terminal:
            self._live.start()
        else:
            show.console.print(self._title)
        return self

    def __exit__(self, *exc: object) -> None:
        if show.console.is_terminal:
            self._live.update(self._table(), refresh=True)
            self._live.stop()
        else:
            show.console.print(self._line(), soft_wrap=True)
        show.console.print()

    def event(self, text: str) -> None:
        """Record that something happened now."""
        self.events.append(Event(self.clock(), text))
        if not show.console.is_terminal:
            show.console.print(f"{self.clock():6.1f} s  {text}")

    def update(self) -> None:
        """Show the tracks as they are now."""
        if show.console.is_terminal:
            self._live.update(self._table(), refresh=True)
        elif self.clock() - self._printed >= INTERVAL:
            self._printed = self.clock()
            show.console.print(self._line(), soft_wrap=True)

    def _table(self) -> Group:
        title = f"{self._title}   {self.clock():.0f} s"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
        for column in ("", "done", "messages", "per second", "lag", ""):
            table.add_column(column, justify="left" if column in ("", "done") else "right")
        for track in self.tracks:
            table.add_row(
                track.name,
                show.bar(track.count / max(1, track.total), WIDTH).ljust(WIDTH, "·"),
                f"{track.count:,}",
                f"{track.rate():,.0f}",
                f"{track.lag:,}" if track.reads else "",
                Text(curve([rate for _, rate in track.rates()]), style="cyan"),
            )
        events = [Text(f"{event.at:6.1f} s  {event.text}", style="yellow") for event in self.events]
        return Group(table, *events)

    def _line(self) -> str:
        parts = [
            f"{track.name} {track.count:,} ({track.rate():,.0f}/s"
            + (f", lag {track.lag:,})" if track.reads else ")")
            for track in self.tracks
        ]
        return f"{self.clock():6.1f} s  " + "; ".join(parts)
