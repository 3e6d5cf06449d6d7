"""Batch reads in Spark."""

from __future__ import annotations

import datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions

from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.spark.failing import FailingDataSource
from tests.spark.support import fill, make

SECRET = "hunter2-the-secret"


def load(spark, server, schema=None, source="jetstream", **options):
    reader = spark.read.format(source).options(servers=server.url, **options)
    return (reader if schema is None else reader.schema(schema)).load()


def test_rows_match_the_published_messages(spark, server, js, name):
    make(js, name, 50, subjects=2)
    js.publish(f"{name}.h", b"\x00\xff", headers=[("A", "1"), ("B", "two"), ("A", "3")])
    ack = js.publish(f"{name}.empty", b"")
    # Odd messages of other publishers must not stop the job.
    with connect(server.url) as client:
        client.publish(f"{name}.x\udcff", b"odd")
    rows = load(spark, server, stream=name, minPartitions=3).orderBy("sequence").collect()
    assert [row.sequence for row in rows] == list(range(1, ack.seq + 2))
    assert [bytes(row.data) for row in rows[:50]] == [b"%08d" % i for i in range(50)]
    assert [row.subject for row in rows[:50]] == [f"{name}.{i % 2}" for i in range(50)]
    assert {row.stream for row in rows} == {name}
    assert (rows[50].headers, bytes(rows[50].data)) == (
        {"A": ["1", "3"], "B": ["two"]},
        b"\x00\xff",
    )
    assert (rows[51].headers, bytes(rows[51].data)) == (None, b"")
    assert rows[52].subject == f"{name}.x\ufffd"
    stored = js.stream(name).get_msg(1).time.datetime()
    assert rows[0].timestamp.astimezone(datetime.timezone.utc) == stored


def test_a_schema_prunes_and_partitions_are_in_order(spark, server, js, name):
    make(js, name, 1000)
    frame = load(
        spark, server, "timestamp_ns BIGINT, sequence BIGINT", stream=name, minPartitions=4
    )
    assert frame.columns == ["timestamp_ns", "sequence"]
    parts = (
        frame.withColumn("part", functions.spark_partition_id())
        .groupBy("part")
        .agg(functions.collect_list("sequence").alias("found"))
        .orderBy("part")
        .collect()
    )
    assert [list(row.found) for row in parts] == [
        list(range(1 + 250 * i, 251 + 250 * i)) for i in range(4)
    ]


def test_all_actions_on_a_frame_see_the_same_rows(spark, server, js, name):
    """Except in 4.0, which plans a read for every action."""
    make(js, name, 10)
    frame = load(spark, server, stream=name)
    assert frame.count() == 10
    fill(js, name, 10)
    assert frame.count() == (20 if spark.version.startswith("4.0.") else 10)
    assert load(spark, server, stream=name, endingOffsets=11).count() == 10
    assert load(spark, server, stream=name).count() == 20


def test_errors_name_the_invalid_option(spark, server):
    with pytest.raises(PySparkException, match="did you mean startingOffsets"):
        load(spark, server, stream="S", startingOffset="1")
    with pytest.raises(PySparkException, match="option stream is missing"):
        load(spark, server).collect()
    with pytest.raises(PySparkException, match="column 'key' does not exist"):
        load(spark, server, "key INT", stream="S").collect()
    with pytest.raises(PySparkException, match="stream not found"):
        load(spark, server, stream="NOWHERE").collect()


@pytest.mark.parametrize("how", ["raised", "killed"])
def test_retried_tasks_read_the_same_rows(spark, server, js, name, tmp_path, how):
    make(js, name, 300)
    spark.dataSource.register(FailingDataSource)
    frame = load(
        spark,
        server,
        source="failing_jetstream",
        stream=name,
        minPartitions=2,
        arrowBatchRows=50,
        flag=str(tmp_path / "flag"),
        how=how,
    )
    found = [row.sequence for row in frame.select("sequence").collect()]
    assert found == list(range(1, 301))
    assert len(list(tmp_path.iterdir())) == 2  # each of them has failed


def test_secrets_are_neither_in_plans_nor_in_errors(spark, name):
    config = {"authorization": {"user": "joe", "password": "other"}}
    with Server(jetstream=True, config=config) as server:
        options = {"stream": name, "user": "joe-" + SECRET, "password": SECRET}
        frame = load(spark, server, **options)
        with pytest.raises(PySparkException) as caught:
            frame.collect()
        url = server.url.replace("//", f"//joe:{SECRET}@")
        with pytest.raises(PySparkException, match="a URL contains credentials") as refused:
            spark.readStream.format("jetstream").options(servers=url, stream=name).load()
        queries = [
            spark.readStream.format("jetstream").options(servers=server.url, **more).load()
            for more in (options, {"stream": name, "token": SECRET})
        ]
    for each in (frame, *queries):
        plan = each._jdf.queryExecution()
        assert SECRET not in plan.toString().replace(f"user=joe-{SECRET}", "")
        assert SECRET not in plan.logical().toString()
    for error in (caught, refused):
        assert SECRET not in str(error.value)
    assert "Authorization" in str(caught.value)
