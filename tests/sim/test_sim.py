from __future__ import annotations

import pytest

from tests.sim.__main__ import failure, main
from tests.sim.modes import MODES

SEEDS = 2000


@pytest.mark.parametrize("first", range(0, SEEDS, 500))
@pytest.mark.parametrize("mode", MODES)
def test_seeds(mode, first):
    for seed in range(first, first + 500):
        found = failure(mode, seed)
        assert not found, found


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_gives_the_same_run(mode):
    for seed in range(10):
        world = MODES[mode](seed)
        other = MODES[mode](seed)
        sent: list[bytes] = []
        for each in (world, other):
            each.sent = sent.append  # type: ignore[method-assign]
            each.run()
        half = len(sent) // 2
        assert sent[:half] == sent[half:]
        assert world.trace == other.trace


def test_a_failure_tells_how_to_replay_it(monkeypatch, capsys):
    def fail(self):
        if self.now > 0.1:
            raise AssertionError("I99: so it goes")

    monkeypatch.setattr(MODES["consume"], "check", fail)
    assert "I99" in failure("consume", 7)
    monkeypatch.setattr("sys.argv", ["sim", "--mode", "consume", "--seed", "7"])
    assert main() == 1
    assert "python -m tests.sim --mode consume --seed 7 -v" in capsys.readouterr().out
