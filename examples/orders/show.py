"""What the terminal shows: progress, tables and a small chart."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.orders.generator import Windows

console = Console(highlight=False)
WIDTH = 40  # of a bar
EIGHTHS = " ▏▎▍▌▋▊▉█"


def progress() -> Progress:
    columns = [TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn()]
    return Progress(*columns, TimeElapsedColumn(), console=console)


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    made = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left")
    for row in rows:
        made.add_row(*row)
    console.print(made)
    console.print()


def money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def bar(share: float) -> str:
    whole, part = divmod(round(share * WIDTH * 8), 8)
    return "█" * whole + EIGHTHS[part].strip()


def chart(windows: Windows, most: int = 12) -> None:
    """Revenue by minute, as bars; the last `most` minutes."""
    minutes: Counter[datetime] = Counter()
    for (minute, _), cents in windows.items():
        minutes[minute] += cents
    highest = max(minutes.values())
    rows = [
        [minute.strftime("%H:%M"), money(cents), bar(cents / highest)]
        for minute, cents in sorted(minutes.items())[-most:]
    ]
    made = Table(title="Revenue by minute", title_justify="left", box=None, padding=(0, 2, 0, 0))
    made.add_column("minute")
    made.add_column("revenue", justify="right")
    made.add_column("")
    for row in rows:
        made.add_row(*row)
    console.print(made)
    console.print()
