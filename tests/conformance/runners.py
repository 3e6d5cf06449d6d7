"""The adapters, how checks run on each, and which of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsproto.testing.command import RUNNERS as MAKERS

if TYPE_CHECKING:
    from natsproto.testing import Check, Runner

# The module of each runner's adapter, and the library that it needs.
RUNNERS: dict[str, tuple[str, str]] = {
    "asyncio": ("asyncio", ""),
    "uvloop": ("asyncio", "uvloop"),
    "trio": ("trio", "trio"),
    "blocking": ("blocking", ""),
    "threads": ("threads", ""),
    "poll": ("poll", ""),
    "anyio": ("anyio", "anyio"),
    "anyio-trio": ("anyio", "anyio"),
}
# poll shares its sockets with `blocking` and `threads`, and anyio its ports with asyncio and trio:
# these groups concern what is their own. `make adapters` runs every check on them.
SHORT = {
    "poll": {"lifecycle", "outage", "pubsub", "requests", "run", "tls", "object_files", "forgery"},
    "anyio": {"lifecycle", "run", "tls"},
    "anyio-trio": {"lifecycle", "run"},
}


def make_runner(adapter: str) -> Runner:
    """Return a runner for an adapter; skip the test if its library is missing."""
    library = RUNNERS[adapter][1]
    if library:
        pytest.importorskip(library)
    return MAKERS[adapter]()


def selected(checks: dict[str, Check]) -> list[tuple[str, str]]:
    """Return the pairs of adapter and check that the tests run."""
    return [
        (adapter, name)
        for adapter in RUNNERS
        for name, check in checks.items()
        if adapter not in SHORT or check.group in SHORT[adapter]
    ]
