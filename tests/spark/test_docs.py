"""The code about Spark in the documentation runs, block by block, in the session of these tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from natsproto.testing import Server
from tests.core import ROOT
from tests.spark.conftest import JAVA
from tests.test_docs import IN_SPARK, USUAL, label

# Quiet, and on this machine alone.
DEFAULTS = """
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.driver.bindAddress 127.0.0.1
spark.driver.host 127.0.0.1
"""


@pytest.fixture(scope="module")
def server():
    """Start a separate server: the streams of the page exist for later blocks only."""
    with Server(jetstream=True) as server:
        yield server


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("block", IN_SPARK, ids=label)
def test_code_runs(block, spark, server):
    text = "\n" * block.line + block.code.replace(USUAL, server.url)
    exec(compile(text, str(block.page), "exec"), {"__name__": "docs"})


@pytest.fixture
def bare(tmp_path):
    """Return the environment of a shell without an active virtual environment."""
    commands = tmp_path / "bin"
    commands.mkdir()
    other = commands / "python3"  # which Spark finds by default
    other.write_text("#!/bin/sh\necho this is another Python >&2\nexit 1\n")
    other.chmod(0o755)
    if "JAVA_HOME" not in os.environ:
        (commands / "java").symlink_to(shutil.which("java"))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    return {
        **kept,
        "PATH": f"{commands}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),  # in place of an installation
        "JDK_JAVA_OPTIONS": JAVA,
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="the other Python is a shell script")
def test_the_readme_runs_without_an_active_environment(spark, bare, tmp_path):
    """`spark` is used only for its check of Java."""
    [block] = [each for each in IN_SPARK if each.page.name == "README.md"]
    with Server(jetstream=True) as server:
        script = tmp_path / "script.py"
        script.write_text(block.code.replace(USUAL, server.url))
        run = subprocess.run(
            [sys.executable, str(script)], env=bare, cwd=tmp_path, capture_output=True, text=True
        )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "|       1|clicks.home|ada|" in run.stdout
