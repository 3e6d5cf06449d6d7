"""The report of `make versions`: what it reads from a run, and when it counts as good."""

from __future__ import annotations

import pytest

from tests.versions import read_outcome

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
