"""The examples for Spark run in the shared session and print their expected output."""

from __future__ import annotations

import importlib

import pytest

from jetstream.spark.compat import LIMITED
from natsproto.testing import Server
from tests.core import ROOT

SAY = {
    "spark_batch_read": ["|  asia|   333|16650.0|", "10 orders from sequence 991 on"],
    "spark_stream_checkpoint": ["first run: 5 messages", "second run: 7 messages", "'click 11']"],
    "spark_stream_to_stream": ['minutes.cellar {"minute":"00:00","mean":2.75}'],
    "spark_sink": ["3 messages by ids", "6 messages with those of atomic batches"],
    "spark_listener": [
        "meters: batch 0, 40 rows",
        "lag {'METERS': 60}",
        "ended",
        "lag at the end: {'METERS': 0}",
    ],
    "spark_notebook": ["|logs.error|      10|", "10 errors", "|logs.error|   10|"],
}
if not LIMITED:
    # Before 4.2 AvailableNow is one micro-batch, and what its watermark ends comes with the next.
    SAY["spark_stream_to_stream"] = []
    # It has no limits, and latestOffset in the progress is the end of the micro-batch.
    SAY["spark_listener"] = ["meters: batch 0, 100 rows", "ended", "lag at the end: {'METERS': 0}"]


@pytest.fixture(scope="module")
def server():
    with Server(jetstream=True) as server:
        yield server


def test_every_example_is_tested():
    assert {path.stem for path in ROOT.glob("examples/spark_*.py")} == set(SAY)


@pytest.mark.parametrize("name", SAY)
def test_the_example_prints_its_expected_output(name, spark, server, capsys):
    importlib.import_module(f"examples.{name}").main(spark, server.url)
    said = capsys.readouterr().out
    assert [text for text in SAY[name] if text not in said] == [], said
    assert bool(said) == bool(SAY[name])
