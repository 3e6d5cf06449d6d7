"""Writes of several clients are linearizable while members of a cluster crash and freeze.

`make jepsen` does the same with a hundred times as many operations and faults.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from tests.jepsen.__main__ import main
from tests.jepsen.faults import Doubt
from tests.jepsen.load import Jepsen
from tests.jepsen.verdict import STREAMS, History, Record


def test_writes_are_linearizable(caplog):
    caplog.set_level(logging.ERROR, "natsproto")  # every fault is logged
    run = Jepsen(10_000, 10, seed=1)
    problems = asyncio.run(run.run())
    assert problems == []
    assert (run.done, run.struck) == (10_000, 10)
    tally = run.history.tally
    for kind in STREAMS:
        assert tally[f"{kind}: stored"] > 100
        assert tally[f"{kind}: keys"] > 5
    assert tally["kv: refused"] > 100
    assert tally["kv: refused in doubt"] < tally["kv: refused"] / 2
    assert tally["read: current"] > 1000


def record(number, argument, outcome, result, times):
    made = Record(number, argument)
    made.end(outcome, result)
    made.invoked, made.returned = times
    made.ended = times[0] + 3.0 if made.returned is None else made.returned
    return made


def judge_kv(records, stored):
    history = History()
    for each in records:
        history.keys["kv"].note("kv-1", each)
    history.judge_kv(stored)
    return history


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
        # In doubt, but stored: it is the revision that the next write has to expect.
        (
            [record(1, 0, "doubt", None, (0.0, None)), record(2, 0, "stored", 6, (2.0, 3.0))],
            {b"1": [5], b"2": [6]},
            "no order explains these results",
        ),
        (
            [record(1, 0, "doubt", None, (0.0, None)), record(2, 5, "stored", 6, (2.0, 3.0))],
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
    ("doubt", "strict"),
    [
        (("KV_jepsen", 0.5, 0.6), False),
        (("KV_jepsen", -1.0, 0.1), False),
        (("KV_jepsen", 0.9, 2.0), False),
        (("KV_jepsen", -2.0, -1.0), True),
        (("KV_jepsen", 1.5, 2.0), True),
        (("ATOMIC", 0.5, 0.6), True),
    ],
    ids=["during it", "until it began", "before it ended", "earlier", "later", "another stream"],
)
def test_a_refusal_by_a_leader_that_was_replaced_proves_nothing(doubt, strict):
    history = History()
    history.doubts = [Doubt(*doubt)]
    history.keys["kv"].note("kv-1", record(1, 0, "refused", "refused", (0.0, 1.0)))
    history.judge_kv({b"1": [5]})
    assert bool(history.problems) == strict
    assert history.tally["kv: refused in doubt"] == (not strict)


@pytest.mark.parametrize(
    ("lost", "stored", "strict"),
    [
        (record(1, 0, "doubt", None, (0.0, None)), {}, False),
        (record(1, 0, "doubt", None, (2.4, None)), {}, False),
        (record(1, 0, "doubt", None, (2.6, None)), {}, True),  # it began later
        (record(1, 0, "doubt", None, (-2.0, None)), {}, True),  # it had ended before
        (record(1, None, "doubt", None, (0.0, None)), {}, True),  # it expected nothing
        (record(1, 0, "stored", 5, (2.4, 4.0)), {b"1": [5]}, False),  # it is the reason
        (record(1, 0, "stored", 5, (2.6, 4.0)), {b"1": [5]}, True),
    ],
)
def test_a_refusal_during_a_write_that_was_lost_proves_nothing(lost, stored, strict):
    history = judge_kv([lost, record(2, 0, "refused", "refused", (2.0, 2.5))], stored)
    assert bool(history.problems) == strict


def test_reads():
    run = judge_kv([FIRST, SECOND], {b"1": [5], b"2": [6]})
    stored = {b"1": [5], b"2": [6]}
    run.reads = [
        ("kv-1", 6, 2, 4.0, 5.0),
        ("kv-1", 5, 1, 4.0, 5.0),
        ("kv-1", 0, 0, 0.5, 0.6),
    ]
    run.judge_reads(stored)
    assert (run.tally["read: current"], run.tally["read: stale"], run.problems) == (2, 1, [])
    run.reads = [("kv-1", 6, 1, 4.0, 5.0), ("kv-1", 6, 2, 0.1, 0.2), ("kv-1", 9, 3, 4.0, 5.0)]
    run.judge_reads(stored)
    assert len(run.problems) == 3


@pytest.mark.parametrize(
    ("parts", "problem"),
    [([4, 5, 6], ""), ([4, 5, 0], "is stored as [4, 5, 0]"), ([4, 6, 7], "is stored as [4, 6, 7]")],
)
def test_atomic_batches(parts, problem):
    run = History()
    run.keys["atomic"].note("atomic-1", record(1, 0, "stored", parts[-1], (0.0, 1.0)))
    run.judge_atomic({b"1.%d" % place: [seq] for place, seq in enumerate(parts) if seq})
    assert problem in "\n".join(run.problems)
    assert bool(run.problems) == bool(problem)


@pytest.mark.parametrize(
    ("outcome", "result", "parts", "good"),
    [
        ("stored", 9, [1, 2, 3, 4, 9], True),
        ("stored", 9, [1, 2, 3, 4, 0], False),
        ("stored", 9, [1, 2, 3, 4, 8], False),
        ("doubt", None, [1, 2, 0, 0, 0], True),
        ("doubt", None, [0, 0, 0, 0, 0], True),
        ("doubt", None, [1, 0, 3, 0, 0], False),
        ("doubt", None, [2, 1, 0, 0, 0], False),
        ("doubt", 2, [1, 2, 3, 0, 0], True),
        ("doubt", 2, [1, 2, 0, 0, 0], True),
        ("doubt", 2, [1, 0, 0, 0, 0], False),
        ("partial", 2, [1, 2, 0, 0, 0], True),
        ("partial", 2, [1, 0, 0, 0, 0], False),
        ("partial", 2, [1, 2, 3, 0, 0], False),
        ("partial", 0, [0, 0, 0, 0, 0], True),
        ("partial", 0, [1, 0, 0, 0, 0], False),
        ("rejected", None, [0, 0, 0, 0, 0], True),
        ("rejected", None, [1, 0, 0, 0, 0], False),
        ("rejected", None, [1, 2, 3, 4, 5], False),
    ],
)
def test_fast_batches(outcome, result, parts, good):
    """A batch that was rejected has stored nothing; one that failed, its first messages."""
    run = History()
    times = (0.0, None if outcome == "doubt" else 1.0)
    run.keys["fast"].note("fast-1", record(1, None, outcome, result, times))
    run.judge_fast({b"1.%d" % place: [seq] for place, seq in enumerate(parts) if seq})
    assert (run.problems == []) is good


@pytest.mark.parametrize(
    ("records", "stored", "good"),
    [
        ([(1, 2, "stored", 2), (2, 3, "stored", 5)], {b"1": [2], b"2": [5]}, True),
        ([(1, 2, "doubt", None), (2, 3, "stored", 5)], {b"1": [2], b"2": [5]}, True),
        ([(1, 2, "doubt", None), (2, 3, "stored", 3)], {b"2": [3]}, True),
        ([(1, 2, "stored", 2), (2, 3, "stored", 3)], {b"1": [2], b"2": [3]}, False),
        ([(1, 2, "stored", 2)], {}, False),
        ([(1, 2, "stored", 2)], {b"1": [4]}, False),
        ([(1, 2, "rejected", None)], {b"1": [2]}, False),
    ],
)
def test_counters(records, stored, good):
    run = History()
    for place, (number, by, outcome, total) in enumerate(records):
        times = (float(place), None if outcome == "doubt" else place + 0.5)
        run.keys["counter"].note("counter-1", record(number, by, outcome, total, times))
    run.judge_counters(stored)
    assert (run.problems == []) is good


def test_a_message_that_is_stored_twice():
    run = History()
    run.check_duplicates("FAST", {b"1.0": [3], b"1.1": [4, 9]})
    assert run.problems == ["FAST: message 1.1 is stored 2 times"]


def test_after_a_verdict_other_keys_are_used():
    run = History()
    before = set(run.keys["kv"].active)
    run.keys["kv"].note("kv-1", record(1, 0, "stored", 5, (0.0, 1.0)))
    run.forget()
    assert (run.keys["kv"].records, before & set(run.keys["kv"].active)) == ({}, set())


def test_the_command(monkeypatch, capsys):
    async def run(self, show):
        show("a line")
        return ["so it goes"]

    monkeypatch.setattr(Jepsen, "run", run)
    assert main(["--operations", "10", "--faults", "1"]) == 1
    assert "so it goes" in capsys.readouterr().out


def test_a_signal_ends_the_run_after_its_round(monkeypatch, capsys):
    stop = Jepsen.stop

    async def play(self, cast, tools):
        self.done += 5
        stopped = asyncio.Event()
        monkeypatch.setattr(self, "stop", lambda: (stop(self), stopped.set()))
        os.kill(os.getpid(), signal.SIGTERM)
        await stopped.wait()

    monkeypatch.setattr(Jepsen, "_round", play)
    monkeypatch.setattr(Jepsen, "_set_up", lambda self: asyncio.sleep(0))
    assert main(["--operations", "10", "--faults", "1"]) == 0
    out = capsys.readouterr().out
    assert "5 operations" in out
    assert "stopped before 10 operations" in out
