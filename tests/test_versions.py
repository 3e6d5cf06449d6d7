"""The report of `make versions`: how it reads a run, and when a run counts as passed."""

from __future__ import annotations

import pytest

from jetstream.testing import CHECKS
from natsproto.testing import Report
from tests import versions
from tests.versions import OLDEST, QUICK, main, outcome_of, quick_checks, read_outcome

GOOD = """\
.s.s
SKIPPED [19] tests/conformance/test_jetstream.py:28: needs nats-server 2.11
SKIPPED [1] tests/conformance/test_conformance.py:25: needs nats-server 2.11
SKIPPED [2] tests/conformance/test_jetstream.py:28: trustme is not installed
499 passed, 22 skipped, 3135 deselected in 172.99s (0:02:52)
"""
BAD = """\
FAILED tests/conformance/test_jetstream.py::test_jetstream[asyncio-account_info] - KeyError
1 failed, 498 passed in 172.99s
"""
NOTHING = "no tests ran in 0.01s\n"


def test_a_good_run():
    outcome = read_outcome(GOOD)
    assert outcome.good
    assert outcome.counts == {"passed": 499, "skipped": 22}
    assert outcome.skips == {"needs nats-server 2.11": 20, "trustme is not installed": 2}
    assert " 20 skipped: needs nats-server 2.11" in str(outcome)


@pytest.mark.parametrize("output", [BAD, NOTHING, ""])
def test_a_bad_run(output):
    assert not read_outcome(output).good


def test_failures_are_listed():
    assert "asyncio-account_info" in str(read_outcome(BAD))


def test_a_quick_run_has_checks_of_each_group_and_none_that_is_slow():
    checks = [CHECKS[name] for name in quick_checks()]
    assert len(checks) >= 200
    assert {check.group for check in checks} == QUICK
    assert not any(check.slow for check in checks)


def test_the_outcome_of_a_quick_run():
    report = Report()
    report.passed += ["one", "two"]
    report.skipped.append(("three", "needs nats-server 2.11"))
    assert outcome_of(report).good
    assert "2 passed, 1 skipped" in str(outcome_of(report))
    assert "  1 skipped: needs nats-server 2.11" in str(outcome_of(report))
    report.failed.append(("four", KeyError("x")))
    assert not outcome_of(report).good
    assert "four: KeyError: 'x'" in str(outcome_of(report))


def test_the_command(monkeypatch, capsys):
    runs = []

    def run(binary):
        runs.append(binary)
        return read_outcome(GOOD)

    monkeypatch.setattr(versions, "find_binary", lambda version: version)
    monkeypatch.setattr(versions, "run", run)
    monkeypatch.setattr(versions, "run_quick", lambda binary: read_outcome(BAD))
    assert main(["2.12.0", "2.15.1"]) == 0
    assert runs == ["2.12.0", "2.15.1"]
    assert main(["--quick"]) == 1
    assert f"nats-server {OLDEST}: 1 failed" in capsys.readouterr().out
