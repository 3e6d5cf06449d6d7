"""The short form of the snapshots under writers; `python -m tests.soak.snapshots` runs it long."""

from __future__ import annotations

import asyncio

import pytest

from tests.soak import snapshots
from tests.soak.snapshots import HISTORIES, Snapshots, main, take_all


@pytest.mark.parametrize("history", HISTORIES)
def test_snapshots_are_complete(history):
    [made] = asyncio.run(take_all(160, (history,)))
    assert sum(made.calls.values()) == 160
    assert not sum(made.short.values()), made.summary()


@pytest.mark.parametrize("short", [0, 1])
def test_the_command(monkeypatch, capsys, short):
    async def take(count, histories):
        made = Snapshots(5, count)
        made.short["keys"] = short
        assert (count, histories) == (10, (5,))
        return [made]

    monkeypatch.setattr(snapshots, "take_all", take)
    assert main(["--count", "10", "--history", "5"]) == short
