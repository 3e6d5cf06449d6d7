"""Writes of several clients are linearizable while members of a cluster crash and freeze.

`make jepsen` does the same with a hundred times as many operations and faults.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.jepsen.__main__ import main
from tests.jepsen.load import MODELS, Jepsen, Record


def test_writes_are_linearizable(caplog):
    caplog.set_level(logging.ERROR, "natsproto")  # every fault is logged
    run = Jepsen(10_000, 10, seed=1)
    problems = asyncio.run(run.run())
    assert problems == []
    assert (run.done, run.struck) == (10_000, 10)
    for kind in MODELS:
        assert run.tally[f"{kind}: stored"] > 100
        assert run.tally[f"{kind}: keys"] > 5
    assert run.tally["kv: refused"] > 100
    assert run.tally["read: current"] > 1000


def record(number, argument, outcome, result, times):
    made = Record(number, argument)
    made.end(outcome, result)
    made.invoked, made.returned = times
    return made


def judge_kv(records, stored):
    run = Jepsen(0, 0, 0)
    for each in records:
        run.keys["kv"].note("kv-1", each)
    run._judge_kv(stored)
    return run


FIRST = record(1, 0, "stored", 5, (0.0, 1.0))
SECOND = record(2, 5, "stored", 6, (2.0, 3.0))


def test_what_happened_passes():
    assert judge_kv([FIRST, SECOND], {b"1": [5], b"2": [6]}).problems == []


@pytest.mark.parametrize(
    ("records", "stored", "problem"),
    [
        ([FIRST], {}, "operation 1 was stored (5), but the stream has it at 0"),
        ([FIRST], {b"1": [7]}, "operation 1 was stored (5), but the stream has it at 7"),
        (
            [record(1, 0, "refused", "refused", (0.0, 1.0))],
            {b"1": [5]},
            "operation 1 was refused (refused), but the stream has it at 5",
        ),
        (
            [record(1, 0, "rejected", None, (0.0, 1.0))],
            {b"1": [5]},
            "operation 1 was rejected (None), but the stream has it at 5",
        ),
        (
            [FIRST, record(2, 0, "stored", 6, (2.0, 3.0))],
            {b"1": [5], b"2": [6]},
            "no order explains these results",
        ),
        # In doubt, stored, and nobody may have overtaken it unnoticed.
        (
            [record(1, 0, "doubt", None, (0.0, None)), record(2, 0, "stored", 6, (2.0, 3.0))],
            {b"1": [5], b"2": [6]},
            "",
        ),
    ],
)
def test_what_cannot_have_happened_is_found(records, stored, problem):
    problems = judge_kv(records, stored).problems
    assert problem in "\n".join(problems)
    assert bool(problems) == bool(problem)


@pytest.mark.parametrize(
    ("thaw", "strict"),
    [(0.5, False), (-1.5, False), (1.5, True), (-2.5, True)],
    ids=["during it", "just before it", "after it", "long before it"],
)
def test_a_refusal_after_a_thaw_proves_nothing(thaw, strict):
    run = Jepsen(0, 0, 0)
    run.thaws = [thaw]
    run.keys["kv"].note("kv-1", record(1, 0, "refused", "refused", (0.0, 1.0)))
    run._judge_kv({b"1": [5]})
    assert bool(run.problems) == strict
    assert run.tally["kv: refused after a thaw"] == (not strict)


def test_reads():
    run = judge_kv([FIRST, SECOND], {b"1": [5], b"2": [6]})
    stored = {b"1": [5], b"2": [6]}
    run.reads = [
        ("kv-1", 6, 2, 4.0, 5.0),
        ("kv-1", 5, 1, 4.0, 5.0),
        ("kv-1", 0, 0, 0.5, 0.6),
    ]
    run._judge_reads(stored)
    assert (run.tally["read: current"], run.tally["read: stale"], run.problems) == (2, 1, [])
    run.reads = [("kv-1", 6, 1, 4.0, 5.0), ("kv-1", 6, 2, 0.1, 0.2), ("kv-1", 9, 3, 4.0, 5.0)]
    run._judge_reads(stored)
    assert len(run.problems) == 3


@pytest.mark.parametrize(
    ("parts", "problem"),
    [([4, 5, 6], ""), ([4, 5, 0], "is stored as [4, 5, 0]"), ([4, 6, 7], "is stored as [4, 6, 7]")],
)
def test_atomic_batches(parts, problem):
    run = Jepsen(0, 0, 0)
    run.keys["atomic"].note("atomic-1", record(1, 0, "stored", parts[-1], (0.0, 1.0)))
    run._judge_atomic({b"1.%d" % place: [seq] for place, seq in enumerate(parts) if seq})
    assert problem in "\n".join(run.problems)
    assert bool(run.problems) == bool(problem)


@pytest.mark.parametrize(
    ("outcome", "parts", "good"),
    [
        ("stored", [1, 2, 3, 4, 9], True),
        ("doubt", [1, 2, 0, 0, 0], True),
        ("doubt", [1, 0, 3, 0, 0], False),
        ("doubt", [2, 1, 0, 0, 0], False),
        ("stored", [1, 2, 3, 4, 0], False),
    ],
)
def test_fast_batches(outcome, parts, good):
    run = Jepsen(0, 0, 0)
    times = (0.0, 1.0 if outcome == "stored" else None)
    run.keys["fast"].note("fast-1", record(1, None, outcome, 9, times))
    run._judge_fast({b"1.%d" % place: [seq] for place, seq in enumerate(parts) if seq})
    assert (run.problems == []) is good


def test_the_command(monkeypatch, capsys):
    async def run(self):
        return ["so it goes"]

    monkeypatch.setattr(Jepsen, "run", run)
    assert main(["--operations", "10", "--faults", "1"]) == 1
    assert "so it goes" in capsys.readouterr().out
