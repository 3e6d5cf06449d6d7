"""Streaming reads in Spark: checkpoints, failures, limits, lag, and the load of idle queries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from pyspark.errors import StreamingQueryException

from jetstream.spark.compat import LIMITED
from natsproto.adapters.blocking import connect
from tests.core import ROOT
from tests.spark.failing import FailingDataSource
from tests.spark.support import check_left, fill, make

SECRET = "hunter2-the-secret"


class Query:
    """A query that collects its rows; `run` starts it on its checkpoint and awaits its end."""

    def __init__(self, spark, server, directory, *columns, source="jetstream", **options):
        self.spark = spark
        self.source = source
        self.options = {"servers": server.url, **options}
        self.checkpoint = str(directory / "checkpoint")
        self.columns = columns or ("sequence",)
        self.batches = {}
        self.fails = False

    def take(self, frame, number):
        if self.fails:
            raise RuntimeError("a batch that fails")
        rows = [tuple(row) for row in frame.select(*self.columns).collect()]
        self.batches[number] = [row[0] if len(row) == 1 else row for row in rows]

    def start(self, **trigger):
        frame = self.spark.readStream.format(self.source).options(**self.options).load()
        writer = frame.writeStream.foreachBatch(self.take)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self, **trigger):
        self.batches = {}
        query = self.start(**(trigger or {"availableNow": True}))
        query.awaitTermination()
        return query

    @property
    def rows(self):
        return [row for number in sorted(self.batches) for row in self.batches[number]]


def test_available_now_with_limits_two_streams_and_lag(spark, server, js, name, tmp_path):
    other = name + "B"
    make(js, name, 30)
    make(js, other, 10)
    query = Query(
        spark,
        server,
        tmp_path,
        "stream",
        "sequence",
        stream=f"{name},{other}",
        startingOffsets="earliest",
        maxMessagesPerTrigger="20",
        user="joe",
        password=SECRET,
    )
    done = query.run()
    # Before 4.2 Spark knows no limits.
    assert [len(rows) for rows in query.batches.values()] == ([20, 20] if LIMITED else [40])
    expected = [(name, i) for i in range(1, 31)] + [(other, i) for i in range(1, 11)]
    assert sorted(query.rows) == expected
    if LIMITED:  # nor does it request the lag
        progress = done.recentProgress[0].sources[0]
        latest = json.loads(progress.latestOffset)["streams"]
        assert {each: latest[each]["next"] for each in latest} == {name: 31, other: 11}
        assert json.loads(progress.endOffset)["streams"][name]["next"] == 16
    for each in done.recentProgress:
        assert SECRET not in each.json
    # Once more from the checkpoint, by a reader that knows nothing of the first one.
    fill(js, other, 5)
    query.run()
    assert query.rows == [(other, i) for i in range(11, 16)]


def test_available_now_and_once(spark, server, js, name, tmp_path):
    """On every version; a second run uses a new reader."""
    make(js, name, 10)
    options = {"startingOffsets": "earliest", "maxMessagesPerTrigger": "6"}
    query = Query(spark, server, tmp_path, stream=name, **options)
    query.run()
    assert query.rows == list(range(1, 11))
    fill(js, name, 9)
    query.run(once=True)
    assert list(query.batches.values()) == [list(range(11, 20))]  # as one batch, whatever the limit


def test_a_failed_first_batch_with_latest_loses_no_messages(spark, server, js, name, tmp_path):
    make(js, name, 5)
    query = Query(spark, server, tmp_path, stream=name)  # latest
    query.fails = True
    with pytest.raises(StreamingQueryException, match="a batch that fails"):
        query.start().awaitTermination()
    fill(js, name, 7)  # latest is after these now
    query.fails = False
    found = []
    for _ in range(2):  # before 4.2 one run is one batch, and the first one is the one that failed
        query.run()
        found += query.rows
    assert found == list(range(6, 13))


def test_workers_are_killed_during_a_micro_batch(spark, server, js, name, tmp_path):
    make(js, name, 300)
    spark.dataSource.register(FailingDataSource)
    query = Query(
        spark,
        server,
        tmp_path,
        source="failing_jetstream",
        stream=name,
        startingOffsets="earliest",
        minPartitions="2",
        arrowBatchRows="50",
        flag=str(tmp_path / "flag"),
        how="killed",
    )
    query.run()
    assert query.rows == list(range(1, 301))
    assert len(list(tmp_path.glob("flag*"))) == 2


def test_lost_messages_fail_the_query_or_not(spark, server, js, name, tmp_path):
    make(js, name, 10)
    query = Query(spark, server, tmp_path, stream=name, startingOffsets="earliest")
    query.run()
    fill(js, name, 10)
    js.stream(name).purge(seq=16)
    with pytest.raises(StreamingQueryException, match="messages 11 to 15 of stream"):
        query.run()
    query.options["failOnDataLoss"] = "false"
    query.run()
    assert query.rows == list(range(16, 21))


def test_a_work_queue_is_consumed_completely(spark, server, js, name, tmp_path):
    """Trap: AvailableNow never commits its last batch. Before 4.2 that is its only one."""
    make(js, name, 25, retention="workqueue")
    js.create_consumer(name, durable_name="worker")
    query = Query(
        spark,
        server,
        tmp_path,
        "sequence",
        "num_delivered",
        stream=name,
        mode="consume",
        consumer="worker",
        maxMessagesPerTrigger="10",
    )
    query.run()
    sizes = [10, 10, 5] if LIMITED else [10]
    assert [len(rows) for rows in query.batches.values()] == sizes
    assert query.rows == [(i, 1) for i in range(1, sum(sizes) + 1)]
    check_left(js, name, 0 if LIMITED else 25)


def test_consumers_name_their_query_and_partition(spark, server, js, name, tmp_path):
    make(js, name, 20)
    with connect(server.url) as admin, admin.subscribe("$JS.EVENT.ADVISORY.API") as audit:
        admin.flush()
        options = {"clientName": "billing", "minPartitions": "2", "startingOffsets": "earliest"}
        query = Query(spark, server, tmp_path, stream=name, **options).run()
        js.account_info()  # the last one
        created = []
        for msg in audit:
            call = json.loads(msg.data)
            if call["subject"] == "$JS.API.INFO":
                break
            if call["subject"].startswith(f"$JS.API.CONSUMER.CREATE.{name}.billing-"):
                created.append(json.loads(call["request"])["config"]["metadata"])
    tasks = [each for each in created if each.get("spark.query") == str(query.id)]
    assert {each["spark.partition"] for each in tasks} == {"0", "1"}
    assert all(each["spark.stage"].isdigit() for each in tasks)


def test_an_idle_query_rarely_polls_and_resumes(spark, server, js, name, tmp_path):
    make(js, name, 3)
    query = Query(spark, server, tmp_path, stream=name, startingOffsets="earliest")
    running = query.start()
    try:
        running.processAllAvailable()
        calls = server.monitor("/jsz")["api"]["total"]
        threading.Event().wait(3)  # a rate needs a time
        assert server.monitor("/jsz")["api"]["total"] - calls <= 6
        fill(js, name, 2)
        running.processAllAvailable()
        assert query.rows == [1, 2, 3, 4, 5]
    finally:
        running.stop()


@pytest.mark.skipif(not LIMITED, reason="many micro-batches need a limit: PySpark 4.2")
def test_a_killed_driver_is_restarted(spark, server, js, name, tmp_path):
    """Every message is in the files once: the file sink and the reads are exactly once."""
    make(js, name, 4000)
    options = {
        "servers": server.url,
        "stream": name,
        "startingOffsets": "earliest",
        "maxMessagesPerTrigger": "100",
        "user": "joe",
        "password": SECRET,
    }
    order = json.dumps({"directory": str(tmp_path), "options": options})
    with open(tmp_path / "log", "wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.driver", order],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            start_new_session=True,
            text=True,
        )
    assert driver.stdout is not None
    seen = ""
    while seen != "batch 2":
        seen = driver.stdout.readline().strip()
        assert driver.poll() is None, (tmp_path / "log").read_text()[-2000:]
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    log_text = (tmp_path / "log").read_text(errors="replace")
    assert "INFO" in log_text
    assert SECRET not in log_text
    del options["maxMessagesPerTrigger"]
    frame = spark.readStream.format("jetstream").options(**options).load()
    writer = frame.select("sequence").writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.option("path", str(tmp_path / "rows")).start()
    query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "rows")).orderBy("sequence").collect()
    assert [row.sequence for row in rows] == list(range(1, 4001))
