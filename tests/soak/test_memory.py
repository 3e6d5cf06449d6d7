"""The short form of the measurement of memory; `make soak` runs it with a gigabyte."""

from __future__ import annotations

import pytest

from tests.soak import memory


@pytest.mark.rule("D-PUSH-11")
def test_memory_is_bounded_if_readers_are_slow():
    assert memory.measure(64) == []


def test_growth_above_the_limit_fails(monkeypatch, capsys):
    monkeypatch.setattr(memory, "LIMITS", {"flow_control": -1 - memory.MARGIN})
    monkeypatch.setattr("sys.argv", ["memory", "--megabytes", "1"])
    assert memory.main() == 1
    assert "limit -33 + 32" in capsys.readouterr().out
