from __future__ import annotations

import gc
from functools import partial

import pytest

from tests.progress import Progress
from tests.sim.__main__ import main
from tests.sim.modes import MODES, NEW_MODES, OLD_MODES
from tests.sim.runs import attempt, failure, kept_seeds, minimize, search
from tests.sim.world import Violation

SEEDS = 1200
STEP = 300
OLD_SEEDS = 200


@pytest.mark.parametrize("first", range(0, SEEDS, STEP))
@pytest.mark.parametrize("mode", NEW_MODES)
def test_seeds(mode, first):
    for seed in range(first, first + STEP):
        run_seed(mode, seed)


def run_seed(mode, seed):
    """Fail with the trace, if an invariant is violated."""
    found = failure(mode, seed)
    if found:
        pytest.fail(found, pytrace=False)


@pytest.mark.parametrize("mode", OLD_MODES)
def test_seeds_with_older_servers(mode):
    for seed in range(OLD_SEEDS):
        run_seed(mode, seed)


@pytest.mark.parametrize(("mode", "seed"), kept_seeds())
def test_kept_seeds(mode, seed):
    run_seed(mode, seed)


def record(sent, observe, host, data):
    sent.append(data)
    observe(host, data)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_produces_the_same_run(mode):
    for seed in range(10):
        world = MODES[mode](seed)
        other = MODES[mode](seed)
        sent: list[bytes] = []
        for each in (world, other):
            each.on_sent = partial(record, sent, each.on_sent)  # type: ignore[method-assign]
            each.run()
        half = len(sent) // 2
        assert sent[:half] == sent[half:]
        assert world.trace == other.trace


@pytest.fixture
def broken(monkeypatch):
    """Return a seed that violates an invariant because of a hole, and has other faults as well."""
    original = MODES["consume"].check

    def check(self):
        holes = [line for line in self.trace if line.endswith("fault: hole")]
        if holes and self.now > 1.0:
            raise Violation("I99: so it goes")
        original(self)

    monkeypatch.setattr(MODES["consume"], "check", check)
    return next(seed for seed in range(1000) if needs_smaller(attempt("consume", seed)))


def needs_smaller(found):
    return found is not None and len(minimize(found).skip) > 1


def test_a_failure_says_how_to_replay_it(broken, monkeypatch, capsys):
    found = failure("consume", broken)
    with pytest.raises(pytest.fail.Exception) as failed:
        run_seed("consume", broken)
    assert str(failed.value) == found
    monkeypatch.setattr("sys.argv", ["sim", "--mode", "consume", "--seed", str(broken)])
    assert main() == 1
    printed = capsys.readouterr().out
    assert printed.strip() == found
    assert f"python -m tests.sim --mode consume --seed {broken} --skip " in found
    assert "Violation: I99: so it goes" in found
    assert [line for line in found.splitlines() if line.endswith(" fault: hole")]


def test_a_failure_is_shown_with_the_faults_that_it_needs(broken):
    found = attempt("consume", broken)
    assert (found.label, found.skip) == ("Violation: I99", ())
    smaller = minimize(found)
    assert smaller.label == found.label
    faults = [line for line in smaller.trace if "fault: " in line]
    assert [line.split()[-1] for line in faults] == ["hole"]
    assert len(faults) < len([line for line in found.trace if "fault: " in line])


def test_garbage_is_not_collected_during_a_run(monkeypatch):
    """It may be that of an earlier run, whose finalizers would keep frames of this one."""
    collecting = []
    original = MODES["next"].check

    def check(self):
        collecting.append(gc.isenabled())
        original(self)

    monkeypatch.setattr(MODES["next"], "check", check)
    assert attempt("next", 1) is None
    assert set(collecting) == {False}
    assert gc.isenabled()


def test_a_run_that_holds(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["sim", "--mode", "consume", "--seed", "7"])
    assert main() == 0
    assert "seed 7 holds" in capsys.readouterr().out


def test_a_run_continues_where_the_last_one_ended(monkeypatch, capsys, tmp_path):
    path = tmp_path / "record.json"
    # Not by the names of modules: the tests of mutants load them again.
    monkeypatch.setitem(main.__globals__, "STEP", 2)

    def run(count):
        arguments = ["--mode", "consume", "--mode", "next", "--count", str(count), "--jobs", "1"]
        monkeypatch.setattr("sys.argv", ["sim", *arguments, "--record", str(path)])
        assert main() == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.partition(" seeds")[0] for line in lines]

    assert run(2) == ["from 0: consume: 2", "from 0: next: 2"]
    assert run(2) == []
    assert run(5) == [
        "from 2: consume: 2",
        "from 2: next: 2",
        "from 4: consume: 1",
        "from 4: next: 1",
    ]
    # The library has changed.
    monkeypatch.setitem(Progress.__init__.__globals__, "fingerprint", lambda: "another")
    assert run(2) == ["from 0: consume: 2", "from 0: next: 2"]


def test_a_failure_is_not_recorded(broken, monkeypatch, capsys, tmp_path):
    path = tmp_path / "record.json"
    monkeypatch.setitem(main.__globals__, "STEP", broken + 1)
    arguments = ["--mode", "consume", "--count", "2000", "--jobs", "1", "--record", str(path)]
    monkeypatch.setattr("sys.argv", ["sim", *arguments])
    assert main() == 1
    assert not path.exists()
    printed = capsys.readouterr().out
    assert "I99" in printed
    assert f"consume: 1 failed, the first of each {broken + 1} seeds, in " in printed


def test_many_seeds_run_in_processes(monkeypatch, capsys):
    found = list(search(["consume", "next"], 0, 12, 2))
    failures = {mode: failures for mode, _, failures in found}
    assert failures == {"consume": [], "next": []}
    monkeypatch.setattr("sys.argv", ["sim", "--mode", "next", "--count", "3", "--jobs", "1"])
    assert main() == 0
    assert "next: 3 seeds in " in capsys.readouterr().out
