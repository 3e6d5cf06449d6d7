"""What docs/spark-platform.md says about shipping the package and about real-time mode."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import PySparkException

from tests.core import ROOT
from tests.spark.conftest import JAVA
from tests.spark.support import make

JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
url, stream, directory = sys.argv[1:]
options = {"servers": url, "stream": stream}
rows = spark.read.format("jetstream").options(**options).load()
print("read", rows.count())
query = (
    spark.readStream.format("jetstream")
    .options(startingOffsets="earliest", **options)
    .load()
    .writeStream.format("parquet")
    .option("checkpointLocation", directory + "/checkpoint")
    .trigger(availableNow=True)
    .start(directory + "/rows")
)
query.awaitTermination()
print("followed", spark.read.parquet(directory + "/rows").count())
package = spark.range(1).rdd.map(lambda _: __import__("jetstream").__file__).first()
print("imported from", package)
"""
VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))


def python_without_the_package(directory: Path) -> Path:
    """Return a Python that has all packages of this one, except those installed by reference."""
    venv.create(directory, symlinks=True)
    [site] = directory.glob("lib/python*/site-packages")
    packages = Path(pyspark.__file__).parent.parent
    (site / "others.pth").write_text(f"{packages}\n")  # whose own .pth files are ignored
    return directory / "bin" / "python"


def zip_packages(path: Path) -> None:
    """Make the zip that the wheel is."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for package in ("natsproto", "jetstream", "pyspark_jetstream"):
            for file in (ROOT / package).rglob("*.py"):
                made.write(file, file.relative_to(ROOT))


@pytest.mark.skipif(sys.platform == "win32", reason="spark-submit is a shell script")
def test_a_zip_of_the_package_is_enough(spark, server, js, name, tmp_path):
    """`spark` is used only for its check of Java."""
    make(js, name, 500)
    python = python_without_the_package(tmp_path / "environment")
    look = [str(python), "-c", "import jetstream"]
    found = subprocess.run(look, cwd=tmp_path, env={}, capture_output=True)
    if found.returncode == 0:
        pytest.skip("the package is installed by copy, so every Python of this environment has it")
    archive = tmp_path / "natsproto.zip"
    zip_packages(archive)
    (tmp_path / "job.py").write_text(JOB)
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]
    command += ["--master", "local-cluster[1,1,1024]", "--py-files", str(archive)]
    for setting in ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1"):
        command += ["--conf", setting]
    command += ["job.py", server.url, name, str(tmp_path)]
    kept = {key: os.environ[key] for key in ("HOME", "JAVA_HOME") if key in os.environ}
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env={
            **kept,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(archive),
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JDK_JAVA_OPTIONS": JAVA,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    causes = [line for line in run.stderr.splitlines() if "Error" in line or "Exception" in line]
    assert run.returncode == 0, "\n".join(causes) or run.stderr[-3000:]
    assert "read 500" in run.stdout
    assert "followed 500" in run.stdout
    assert "natsproto.zip" in run.stdout.partition("imported from")[2]


@pytest.mark.skipif(VERSION < (4, 2), reason="the trigger is part of PySpark 4.2")
def test_spark_refuses_real_time_mode(spark, server, js, name, tmp_path):
    make(js, name, 1)
    rows = spark.readStream.format("jetstream").options(servers=server.url, stream=name).load()
    with pytest.raises(PySparkException, match="STREAMING_REAL_TIME_MODE"):
        (
            rows.writeStream.format("console")
            .option("checkpointLocation", str(tmp_path))
            .outputMode("update")
            .trigger(realTime="5 minutes")
            .start()
            .awaitTermination(60)
        )
