"""Every example runs to its end, against a server of these tests if it wants one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from examples.orders.__main__ import java_version
from natsproto.testing import Server
from tests.core import ROOT

# The others are run by tests/test_example_adapters.py, tests/spark/test_examples.py and
# tests/micropython/test_live.py.
EXAMPLES = [
    path
    for path in sorted(ROOT.glob("examples/*.py"))
    if not path.name.startswith(("device_", "gevent_", "spark_", "twisted_"))
]


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, server):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(path), server.url],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout
    assert not run.stderr


def run_orders(report, *arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "examples.orders", "--report", str(report), *arguments],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=90,
    )


def test_orders_without_spark_survive_a_crash_of_the_server(tmp_path):
    report = tmp_path / "new" / "report.html"
    run = run_orders(report, "--lite", "--events", "12000")
    assert run.returncode == 0, run.stdout + run.stderr
    assert not run.stderr, "lines of a log would disturb the live view"
    killed = run.stdout.index("the server was killed")
    assert run.stdout.index("the server is back") > killed
    assert "All found what was ordered: 12,000 orders of" in run.stdout
    assert report.as_uri() in run.stdout
    check_report(report.read_text(encoding="utf-8"))


def check_report(text: str) -> None:
    """The page is complete, well-formed, and loads nothing."""
    assert "Every sum is exact" in text
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        ElementTree.fromstring(chart)
    assert chart_labels(charts) == [
        "Revenue by window and region",
        "Three runtimes: throughput over time",
        "Three runtimes: lag over time",
    ]
    assert "the server was killed" in charts[1]
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"://|<script|<link|<img|src=|@import|url\(", text)


def chart_labels(charts: list[str]) -> list[str]:
    return [str(ElementTree.fromstring(chart).get("aria-label")) for chart in charts]


@pytest.mark.parametrize(("spark", "status"), [("auto", 0), ("yes", 1)])
def test_orders_without_java(spark, status, tmp_path):
    """An explicitly requested part that cannot run is a failure; an omitted part is not."""
    arguments = ["--events", "100", "--spark", spark, "--no-faults"]
    run = run_orders(tmp_path / "report.html", *arguments, JAVA_HOME=str(tmp_path))
    assert run.returncode == status, run.stdout + run.stderr
    assert "Spark needs Java 17" in run.stdout
    assert "100 orders" in run.stdout


JAVAS = [
    ('openjdk version "17.0.15" 2025-04-15', 17),
    ('java version "1.8.0_292"', 1),
    ('openjdk version "21" 2023-09-19', 21),
    ("no such file", 0),
]


@pytest.mark.parametrize(("said", "version"), JAVAS)
def test_orders_know_which_java(said, version):
    assert java_version(said) == version
