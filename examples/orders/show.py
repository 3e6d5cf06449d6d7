"""What the terminal shows besides the live view: tables and a small chart."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from rich.console import Console
from rich.table import Table

from examples.orders.generator import Windows

console = Console(highlight=False)
WIDTH = 40  # of a bar
EIGHTHS = " ▏▎▍▌▋▊▉█"


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    made = Table(box=None, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left")
    for row in rows:
        made.add_row(*row)
    console.print(title, style="italic")
    console.print(made)
    console.print()


def money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def bar(share: float, width: int = WIDTH) -> str:
    whole, part = divmod(round(share * width * 8), 8)
    return "█" * whole + EIGHTHS[part].strip()


def revenue(windows: Windows, most: int = 8) -> None:
    """Print the revenue by region, and that of the last `most` minutes as bars."""
    by_region: Counter[str] = Counter()
    by_minute: Counter[datetime] = Counter()
    for (minute, region), cents in windows.items():
        by_region[region] += cents
        by_minute[minute] += cents
    rows = [[region, money(cents)] for region, cents in by_region.most_common()]
    table("Revenue by region", ["region", "revenue"], rows)
    highest = max(by_minute.values(), default=1)
    made = Table(title="Revenue by minute", title_justify="left", box=None, padding=(0, 2, 0, 0))
    made.add_column("minute")
    made.add_column("revenue", justify="right")
    made.add_column("")
    for minute, cents in sorted(by_minute.items())[-most:]:
        made.add_row(minute.strftime("%H:%M"), money(cents), bar(cents / highest))
    console.print(made)
    console.print()
