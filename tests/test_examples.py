"""Every example runs to its end, against a server of these tests if it wants one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from examples.orders.__main__ import java_version
from natsproto.testing import Server
from tests.core import ROOT

# The others are run by tests/test_example_adapters.py and tests/spark/test_examples.py.
EXAMPLES = [
    path
    for path in sorted(ROOT.glob("examples/*.py"))
    if not path.name.startswith(("gevent_", "spark_", "twisted_"))
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


def test_orders_without_spark():
    run = subprocess.run(
        [sys.executable, "-m", "examples.orders", "--events", "3000", "--spark", "no"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "All found what was ordered: 3,000 orders of" in run.stdout


@pytest.mark.parametrize(("spark", "status"), [("auto", 0), ("yes", 1)])
def test_orders_without_java(spark, status, tmp_path):
    """An explicitly requested part that cannot run is a failure; an omitted part is not."""
    run = subprocess.run(
        [sys.executable, "-m", "examples.orders", "--events", "100", "--spark", spark],
        cwd=ROOT,
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
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
