"""Spark Connect: the same source and sink, from a client without a JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from jetstream.spark.compat import LIMITED
from tests.core import ROOT
from tests.spark.support import make

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")


def test_reads_writes_and_queries(spark, server, js, name, tmp_path):
    """`spark` is used only for its check of Java: a process has one type of session."""
    make(js, name, 10)
    out = js.create_stream(name=f"{name}OUT", subjects=[f"{name}OUT"])
    # SPARK_TESTING: at a port that is free, not at 15002.
    client = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_client", server.url, name, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "SPARK_TESTING": "1"},
        capture_output=True,
        text=True,
    )
    assert client.returncode == 0, client.stderr[-3000:]
    found = json.loads(client.stdout.splitlines()[-1])
    assert found["session"].startswith("pyspark.sql.connect.")
    assert found["read"] == [[i + 1, f"{i:08}"] for i in range(10)]
    assert sum(found["batches"]) == 1010
    assert max(found["batches"]) == (500 if LIMITED else 1010)
    assert js.stream(name).cached_info.state.messages == 1010
    assert out.info().state.messages == 1010
    assert "did you mean startingOffsets" in found["error"]
