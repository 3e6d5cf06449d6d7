"""The example of a declarative pipeline fills its tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.core import ROOT
from tests.spark.conftest import JAVA

EXAMPLE = ROOT / "examples" / "pipeline"
STORAGE = "file:///tmp/orders-pipeline"
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))


@pytest.mark.skipif(VERSION < (4, 1), reason="declarative pipelines are part of PySpark 4.1")
@pytest.mark.skipif(sys.platform == "win32", reason="spark-pipelines is a shell script")
def test_the_pipeline_of_the_example(spark, server, js, tmp_path):
    js.create_stream(name="ORDERS", subjects=["orders.*"])
    for region, cents in [("eu", 100), ("us", 200), ("eu", 300)]:
        js.publish("orders.new", b'{"region": "%s", "cents": %d}' % (region.encode(), cents))
    folder = tmp_path / "pipeline"
    shutil.copytree(EXAMPLE, folder)
    spec = folder / "spark-pipeline.yml"
    text = spec.read_text()
    assert STORAGE in text
    spec.write_text(text.replace(STORAGE, (tmp_path / "storage").as_uri()))
    run(folder, server.url)
    tables = folder / "spark-warehouse"
    rows = spark.read.parquet(str(tables / "raw_orders")).select("subject", "sequence").collect()
    assert sorted(tuple(row) for row in rows) == [("orders.new", each) for each in (1, 2, 3)]
    rows = spark.read.parquet(str(tables / "revenue")).collect()
    assert {row.region: row.cents for row in rows} == {"eu": 400, "us": 200}
    js.delete_stream("ORDERS")


def run(folder: Path, url: str) -> None:
    env = {
        **os.environ,
        "NATS_URL": url,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": JAVA,
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines"), "run"]
    command += ["--spec", str(folder / "spark-pipeline.yml")]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
