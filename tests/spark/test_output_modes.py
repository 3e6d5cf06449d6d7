"""Output modes of aggregations: only append, because stored messages do not change."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tests.spark.support import fill, make


@pytest.fixture
def counts(spark, server, js, name):
    """Return a query that counts the messages of two subjects, as rows of subject and count."""
    make(js, name, 10, subjects=2)
    make(js, f"{name}OUT")
    rows = spark.readStream.format("jetstream").option("servers", server.url)
    rows = rows.options(stream=name, startingOffsets="earliest").load()
    return (
        rows.groupBy("subject")
        .count()
        .selectExpr(f"concat('{name}OUT.', subject) AS subject", "CAST(count AS STRING) AS data")
    )


@pytest.fixture
def options(server, name):
    return {"servers": server.url, "stream": f"{name}OUT"}


def stored(js, name):
    stream = js.stream(f"{name}OUT")
    messages = [stream.get_msg(seq) for seq in range(1, stream.info().state.last_seq + 1)]
    return sorted((msg.subject, msg.data) for msg in messages)


REFUSED = [  # by the sink; by Spark, since no sink in Python has it; by Spark, for every sink
    ("complete", "InvalidValue: a stream cannot be overwritten"),
    ("update", "jetstream does not support Update mode"),
    ("append", "not supported for streaming aggregations without watermark"),
]


@pytest.mark.parametrize(("mode", "why"), REFUSED, ids=[mode for mode, _ in REFUSED])
def test_refused(js, name, counts, options, tmp_path, mode, why):
    writer = counts.writeStream.format("jetstream").outputMode(mode).options(**options)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(PySparkException) as caught:
        writer.trigger(availableNow=True).start().awaitTermination()
    assert why in str(caught.value)
    assert stored(js, name) == []


def test_updates_are_appended_by_foreach_batch(js, name, counts, options, tmp_path):
    """The alternative to output mode update: foreachBatch writes each result as a message."""

    def append(frame, number):
        # A shuffle changes the order of rows, so their ids are made of their content.
        ids = frame.selectExpr("*", f"concat('{number}.', subject) AS msg_id")
        ids.write.format("jetstream").mode("append").options(**options).save()

    def run():
        writer = counts.writeStream.foreachBatch(append).outputMode("update")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    first = [(f"{name}OUT.{name}.0", b"5"), (f"{name}OUT.{name}.1", b"5")]
    assert stored(js, name) == first
    fill(js, name, 1)
    run()
    assert stored(js, name) == sorted([*first, (f"{name}OUT.{name}.0", b"6")])
