"""A progress bar for long work: on stderr, and only if that is a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Progress:
    """A bar of `total` steps; without rich, and without a terminal, nothing is shown."""

    def __init__(self, what: str, total: int, *, unit: str = "bytes") -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():  # D-CLI-7
            try:
                from rich.console import Console
                from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            amount = DownloadColumn() if self._unit == "bytes" else MofNCompleteColumn()
            columns = [TextColumn("{task.description}"), BarColumn(), amount]
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total or None)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, steps: int) -> None:
        """Add steps."""
        if self._bar is not None:
            self._bar.advance(self._task, steps)

    def reach(self, steps: int) -> None:
        """Set the number of steps so far."""
        if self._bar is not None:
            self._bar.update(self._task, completed=steps)
