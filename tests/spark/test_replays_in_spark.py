"""Queries in Spark that fail during a micro-batch, and plan it differently after the restart.

tests/spark/test_replays.py tries many more plans without Spark. These tests verify its assumption
about Spark: the replay of a batch gets the end offset that is in the checkpoint.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.cores import CoresDataSource
from tests.spark.gates import Gate, pass_gate
from tests.spark.sinks import payloads, wait_for_rows
from tests.spark.support import fill

# PySpark warns about pandas where rows pass through Python; that does not matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("small_batches"),
]
SHUFFLE = "spark.sql.shuffle.partitions"
FILE_PARTS = "spark.sql.files.maxPartitionBytes"
COUNT = 6000
AFTER = 4  # batches of 500 rows
OF_BOTH = AFTER * 500 + 1  # more rows than one task has passed on when it waits at the gate


def start(frame, options, checkpoint):
    writer = frame.writeStream.format("jetstream").options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return writer.start()


def run(frame, options, checkpoint):
    start(frame, options, checkpoint).awaitTermination()


def crash(frame, options, checkpoint, stream, tasks=2, least=1):
    """Stop the query when `tasks` tasks are in the middle, and `least` rows are stored."""
    with Gate() as gate:
        port = gate.port

        def rows(batches):
            for number, batch in enumerate(batches):
                if number == AFTER:
                    pass_gate(port)
                yield batch

        query = start(frame.mapInArrow(rows, frame.schema), options, checkpoint)
        gate.await_tasks(tasks, [])
        wait_for_rows(options["servers"], stream.name, least)
        query.stop()
    assert 0 < len(payloads(stream)) < COUNT


def source(spark, server, name, **options):
    reader = spark.readStream.format("jetstream_on_cores").options(servers=server.url, **options)
    return reader.options(stream=f"{name}_IN", startingOffsets="earliest").load().select("data")


@pytest.fixture
def messages(spark, js, name):
    """Create a stream of messages that are too large for the buffers of Spark's processes."""
    spark.dataSource.register(CoresDataSource)
    js.create_stream(name=f"{name}_IN", subjects=[f"{name}_IN.>"], storage="memory")
    fill(js, f"{name}_IN", COUNT, subjects=2, size=300)


CHANGES = [
    ("plain", {"cores": "2"}, {"cores": "3"}),
    (
        "atomic",
        {"cores": "1", "minPartitions": "2"},
        {"cores": "1", "maxRecordsPerPartition": "1400", "filterSubjects": "{name}_IN.1"},
    ),
]


@pytest.mark.parametrize(("delivery", "before", "after"), CHANGES)
def test_the_source_is_planned_differently(
    request, spark, server, name, stream, messages, tmp_path, delivery, before, after
):
    options = request.getfixturevalue(delivery)
    checkpoint = tmp_path / "checkpoint"
    crash(source(spark, server, name, **before), options, checkpoint, stream)
    after = {key: value.format(name=name) for key, value in after.items()}
    run(source(spark, server, name, **after), options, checkpoint)
    assert payloads(stream) == list(range(COUNT))


@pytest.fixture
def setting(spark):
    """Return a function that changes a setting of Spark until the end of the test."""
    before = {}

    def set_to(key, value):
        before.setdefault(key, spark.conf.get(key))
        spark.conf.set(key, value)

    yield set_to
    for key, value in before.items():
        spark.conf.set(key, value)


def test_spark_keeps_the_number_of_shuffle_partitions(
    spark, server, name, stream, plain, messages, setting, tmp_path
):
    """The number is in the offset log; adaptive execution may still merge small partitions."""
    checkpoint = tmp_path / "checkpoint"
    setting(SHUFFLE, "2")
    frame = source(spark, server, name, cores="2").repartition("data")
    crash(frame, plain, checkpoint, stream, tasks=1)
    setting(SHUFFLE, "3")
    frame = source(spark, server, name, cores="3").repartition("data")
    outcome = replay(frame, plain, checkpoint, stream)
    assert outcome in ("ReplayMismatch", Counter(range(COUNT)))


def replay(frame, options, checkpoint, stream):
    """Return the stored rows, or the name of the error that reports a mismatch."""
    try:
        run(frame, options, checkpoint)
    except StreamingQueryException as error:
        if "ReplayMismatch" not in str(error):
            raise
        return "ReplayMismatch"
    return Counter(payloads(stream))


def test_another_source_that_is_split_differently(spark, name, stream, plain, setting, tmp_path):
    """How Spark splits files depends on its settings and on the cores of the machine."""
    (tmp_path / "in").mkdir()
    lines = "\n".join([f"{number:0300}" for number in range(COUNT)])
    (tmp_path / "in" / "rows.txt").write_text(lines + "\n")
    frame = spark.readStream.schema("data STRING").text(str(tmp_path / "in"))
    setting(FILE_PARTS, str(len(lines) // 2 + 1))
    crash(frame, plain, tmp_path / "checkpoint", stream, least=OF_BOTH)
    before = Counter(payloads(stream))
    assert max(before) > COUNT // 2  # of both partitions
    setting(FILE_PARTS, str(len(lines) // 3 + 1))
    with pytest.raises(StreamingQueryException, match=r"ReplayMismatch: .* Give the rows a msg_id"):
        run(frame, plain, tmp_path / "checkpoint")
    assert not before - Counter(payloads(stream))


def at_random(spark, server, name, stream, exact, messages, setting, tmp_path, seed):
    """Return random plans, shuffles and crashes if SPARK_SOAK=1."""
    dice = random.Random(seed)

    def plan():
        setting(SHUFFLE, str(dice.randint(1, 4)))
        options = {"cores": str(dice.randint(1, 4))}
        for option, values in [
            ("minPartitions", (1, 5)),
            ("maxRecordsPerPartition", (700, 4000)),
        ]:
            if dice.random() < 0.4:
                options[option] = str(dice.randint(*values))
        return source(spark, server, name, **options)

    shuffles = dice.random() < 0.4
    for _ in range(2):
        frame = plan()
        frame = frame.repartition("data") if shuffles else frame
        crash(frame, exact, tmp_path / "checkpoint", stream, tasks=1)
    frame = plan()
    frame = frame.repartition("data") if shuffles else frame
    outcome = replay(frame, exact, tmp_path / "checkpoint", stream)
    assert outcome == Counter(range(COUNT)) or (shuffles and outcome == "ReplayMismatch")


if os.environ.get("SPARK_SOAK"):
    test_at_random = pytest.mark.parametrize("seed", range(25))(at_random)
