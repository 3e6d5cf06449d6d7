"""Micro-batches that are replayed after a crash, by a driver that plans them differently.

The tasks run as in Spark, but without it, so that many plans can be tried.
"""

from __future__ import annotations

import json
import os
import random
import time
import zlib
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql.types import MapType, StringType, StructField, StructType

from jetstream.blocking import JetStream
from jetstream.spark.atomic import Task
from jetstream.spark.connect import forget
from jetstream.spark.covered import Positions, check_write
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.replay import ReplayMismatch
from jetstream.spark.sending import Tally
from jetstream.spark.sink import BatchWriter, StreamWriter, Written
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidState, PermissionDenied
from natsproto.testing import Server
from tests.spark.sinks import stored
from tests.spark.stepping import Query
from tests.spark.support import fill, query_reader, rows_of
from tests.spark.support import make as make_source
from tests.spark.tasks import SCHEMA, batches, task, write_batch

pytestmark = pytest.mark.usefixtures("impatient")
SOAK = bool(os.environ.get("SPARK_SOAK"))
SEEDS = range(500 if SOAK else 20)
MESSAGES = 60
SUBJECTS = 3


@pytest.fixture
def target(make, exact, name):
    """Create the target stream of the queries; return it and their options."""
    stream = make(allow_atomic=True)
    return stream, {key: exact[key] for key in exact if key != "subject"}


def counted(stream):
    return Counter((msg.subject, msg.data) for msg in stored(stream))


class Machine:
    """A driver: its cores, and its options."""

    def __init__(self, dice: random.Random, source: str) -> None:
        self.cores = dice.randint(1, 5)
        self.options = {"stream": source, "startingOffsets": "earliest", "failOnDataLoss": "false"}
        if dice.random() < 0.5:
            self.options["minPartitions"] = str(dice.randint(1, 6))
        if dice.random() < 0.3:
            self.options["maxRecordsPerPartition"] = str(dice.randint(5, 40))
        if dice.random() < 0.4:
            some = dice.sample(range(SUBJECTS), dice.randint(1, SUBJECTS))
            self.options["filterSubjects"] = ",".join(f"{source}.{i}" for i in sorted(some))

    def reader(self, server, monkeypatch):
        monkeypatch.setattr("os.cpu_count", lambda: self.cores)
        return query_reader(server, ("subject", "data"), **self.options)


def partitions_of(reader, start, end, name):
    """Return the rows of each partition, mapped and filtered without a shuffle."""
    return [
        [
            (f"{name}.{row['subject'][-1]}", row["data"] + (b"!" if copy else b""))
            for row in rows_of(reader, [part])
            if int(row["data"]) % 5  # some are left out,
            for copy in range(2 if int(row["data"]) % 7 == 0 else 1)  # some become two
        ]
        for part in reader.partitions(start, end)
    ]


def crashes_of(dice, partitions):
    """Choose the tasks that had started when the driver crashed, and their rows by then."""
    running = dice.sample(range(len(partitions)), dice.randint(1, len(partitions)))
    return {each: dice.randint(0, len(partitions[each])) for each in running}


# When the driver crashes: after Spark has logged the end offset; while tasks write; when all have
# written; when the sink has committed. Before the offset is logged, nothing is written.
PHASES = ["logged", "writing", "writing", "written", "committed"]


def crash(dice, options, number, partitions):
    """Write a micro-batch up to a random phase."""
    phase = dice.choice(PHASES)
    if phase == "writing" and partitions:
        write_batch(options, "q", number, partitions, crashes_of(dice, partitions))
    elif phase in ("written", "committed"):
        write_batch(options, "q", number, partitions, commit=phase == "committed")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_during_a_batch_and_another_plan(server, js, name, target, monkeypatch, seed):
    """A read without a shuffle is exact, whatever changes between the two drivers."""
    stream, options = target
    dice = random.Random(seed)
    monkeypatch.setattr("jetstream.spark.ranges._LEAST", 10)
    source = f"{name}_IN"
    make_source(js, source, MESSAGES, subjects=SUBJECTS, storage="memory")
    reader = Machine(dice, source).reader(server, monkeypatch)
    query = Query(reader)
    expected: Counter = Counter()
    for number in range(2):
        query.plan()  # the driver dies before Spark has logged this plan, and nobody repeats it
        reader = Machine(dice, source).reader(server, monkeypatch)
        query = Query(reader, query.start)
        end = query.plan()
        partitions = partitions_of(reader, query.start, end, name)
        expected.update(row for rows in partitions for row in rows)
        for _ in range(dice.randint(1, 2)):  # the driver dies, perhaps twice during one batch
            crash(dice, options, number, partitions)
            fill(js, source, 10, subjects=SUBJECTS)
            reader = Machine(dice, source).reader(server, monkeypatch)
            partitions = partitions_of(reader, query.call(query.start), end, name)
        write_batch(options, "q", number, partitions)
        assert counted(stream) == expected
        query = Query(reader, end)


def distribute(dice, rows):
    """Distribute and order rows as a shuffle might do, or the splitting of files."""
    partitions = dice.randint(1, 4)
    if dice.random() < 0.5:
        size = -(-len(rows) // partitions)
        return [rows[start : start + size] for start in range(0, len(rows), size)]
    parts = [[] for _ in range(partitions)]
    for row in dice.sample(rows, len(rows)):
        parts[zlib.crc32(row[1]) % partitions].append(row)
    return parts


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_with_an_arbitrary_plan(name, target, seed):
    """After shuffles, or with other sources, a replay is exact or raises an error."""
    stream, options = target
    dice = random.Random(seed)
    rows = [(f"{name}.{i % SUBJECTS}", b"%d" % (i // 2)) for i in range(MESSAGES)]
    before = distribute(dice, rows)
    write_batch(options, "q", 0, before, crashes_of(dice, before))
    again = distribute(dice, rows) if dice.random() < 0.8 else before
    try:
        write_batch(options, "q", 0, again)
    except ReplayMismatch:
        assert again != before
    else:
        assert counted(stream) == Counter(rows)
    assert not Counter(rows) - counted(stream) or again != before


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_with_dead_letters(js, name, make, plain, seed):
    """Rows are stored once, and each invalid one is a dead letter; or the replay is an error."""
    stream = make()
    dead = js.create_stream(name=f"{name}D", subjects=[f"{name}D"], allow_direct=True)
    options = {"servers": plain["servers"], "deadLetterSubject": f"{name}D"}
    dice = random.Random(seed)
    rows = [(dice.choice([f"{name}.a", "in valid"]), b"%d" % i) for i in range(MESSAGES)]
    before = distribute(dice, rows)
    write_batch(options, "q", 0, before, crashes_of(dice, before))
    again = distribute(dice, rows) if dice.random() < 0.6 else before
    try:
        write_batch(options, "q", 0, again)
    except ReplayMismatch:
        assert again != before
    else:
        assert counted(stream) == Counter(row for row in rows if row[0] != "in valid")
        letters = Counter(msg.data for msg in stored(dead))
        assert letters >= Counter(data for subject, data in rows if subject == "in valid")
        assert again != before or max(letters.values()) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_are_known_by_their_content(name, make, plain, seed):
    """Whatever the plans are, each row is stored once; equal rows of a micro-batch are one."""
    stream = make()
    options = {key: plain[key] for key in plain if key != "subject"}
    options["rowIds"] = "content"
    dice = random.Random(seed)
    rows = [(f"{name}.{i % SUBJECTS}", b"%d" % (i // 2)) for i in range(MESSAGES)]
    for number in range(2):
        for _ in range(dice.randint(1, 3)):
            crash(dice, options, number, distribute(dice, rows))
        write_batch(options, "q", number, distribute(dice, rows))
        assert counted(stream) == Counter(dict.fromkeys(rows, number + 1))


# Which differences are detected


def rows(name, *numbers):
    return [(f"{name}.a", b"%d" % number) for number in numbers]


def test_stored_rows_of_a_partition_that_the_replay_lacks(name, make, atomic):
    stream = make(allow_atomic=True)
    options = {key: atomic[key] for key in atomic if key != "subject"}
    one, two = rows(name, *range(10)), rows(name, *range(10, 20))
    write_batch(options, "q", 3, [one, two], {1: 10})
    for again in ([two + one], [two + one, []]):
        with pytest.raises(ReplayMismatch, match=r"mark\.q\.1: an earlier run stored 10 rows"):
            write_batch(options, "q", 3, again)
    assert not Counter(one + two) - counted(stream)
    stream.purge(subject=f"{name}.mark.q.1")  # as the error says
    write_batch(options, "q", 3, [two + one])
    write_batch(options, "q", 4, [one, two])
    write_batch(options, "q", 5, [one])  # markers of earlier batches do not matter


def test_a_task_with_fewer_rows_than_are_stored(name, target):
    stream, options = target
    write_batch(options, "q", 0, [rows(name, *range(30))], {0: 21})
    with pytest.raises(ReplayMismatch, match="this task has 5 rows, and an earlier attempt stored"):
        write_batch(options, "q", 0, [rows(name, *range(5))])
    assert sum(counted(stream).values()) == 21


def test_merged_partitions(name, make, plain):
    """As adaptive execution merges them: all positions that both attempts have are the same."""
    stream = make()
    options = {key: plain[key] for key in plain if key != "subject"}
    one, two = rows(name, *range(10)), rows(name, *range(10, 20))
    write_batch(options, "q", 3, [one, two], {0: 10, 1: 7})
    for again in ([one + two], [one + two, []]):
        with pytest.raises(ReplayMismatch, match=r"q\.3\.1\.0 is the id of one"):
            write_batch(options, "q", 3, again)
    assert not Counter(one + two) - counted(stream)
    write_batch(options, "q", 4, [one, two])
    write_batch(options, "q", 5, [one])  # other micro-batches do not matter


def test_a_stream_that_does_not_recognize_its_own_rows(name, make, plain, caplog):
    """Its window is over, so it cannot say which rows of earlier attempts it has stored."""
    make(duplicate_window=0.1)
    options = {key: plain[key] for key in plain if key != "subject"}
    write_batch(options, "q", 0, [rows(name, 1, 2)], commit=False)
    time.sleep(0.5)  # until the ids have expired, which nothing else shows
    check_write(read_options(options, WRITE), [Positions("q.0.0", 2, f"{name}.a", True)])
    assert "did not recognize the id of a row" in caplog.text


@pytest.mark.parametrize("again", [True, False])
def test_a_driver_that_cannot_check_a_replay(monkeypatch, again):
    """It must not finish the write: an earlier attempt may have stored its rows elsewhere."""
    monkeypatch.setattr("jetstream.spark.retry._ATTEMPTS", 2)
    options = {"servers": "nats://127.0.0.1:1"}
    tasks = [Positions("q.0.0", 2, "a", again)]
    if not again:
        check_write(read_options(options, WRITE), tasks)
        return
    with pytest.raises(InvalidState, match="the driver could not check whether an earlier attempt"):
        check_write(read_options(options, WRITE), tasks)
    options.update(delivery="atomic", stream="S", markerSubject="m")
    writer = StreamWriter(read_options(options, WRITE), SCHEMA, False)
    with pytest.raises(InvalidState, match="the driver could not check whether an earlier attempt"):
        writer.commit([Written(Tally(), Task("m.q.0", "q", 0), marked=True)], 0)


@pytest.mark.parametrize("write_id", ["", "monday"])
def test_the_driver_checks_only_writes_that_can_be_repeated(name, make, plain, write_id):
    """The ids of a frame without a writeId are new, so its duplicates are from the same write."""
    stream = make()
    options = {key: plain[key] for key in plain if key != "subject"}
    if write_id:
        options["writeId"] = write_id
    writer = BatchWriter(read_options(options, WRITE), SCHEMA, False)
    for attempt in range(2):
        with task(0):
            written = writer.write(batches(rows(name, 1, 2)))
        assert written.tally.duplicates == 2 * attempt
    assert written.positions.again == bool(write_id)
    assert counted(stream) == Counter(rows(name, 1, 2))


def test_a_task_that_starts_with_another_row_stores_nothing(name, target):
    stream, options = target
    write_batch(options, "q", 0, [rows(name, *range(3))], {0: 3})
    with pytest.raises(ReplayMismatch, match=r"docs/spark\.md"):
        write_batch(options, "q", 0, [rows(name, *range(1, 30))])  # the first batch has more rows
    assert counted(stream) == Counter(rows(name, *range(3)))


def test_reusing_a_write_id_for_another_frame_fails(name, target):
    stream, options = target
    options = {**options, "writeId": "monday"}
    first = [rows(name, 1, 2), rows(name, 3)]
    for _ in range(2):  # the same write: the purpose of the option
        write_batch(options, None, 0, first)
    with pytest.raises(ReplayMismatch, match="Was option writeId 'monday' used for another write"):
        write_batch(options, None, 0, [rows(name, 7, 8, 9), rows(name, 3)])
    assert counted(stream) == Counter(rows(name, 1, 2, 3))


def test_a_write_id_and_a_new_checkpoint(name, target):
    """The micro-batches of both queries have the same numbers."""
    stream, options = target
    options = {**options, "writeId": "pipeline"}
    write_batch(options, "q1", 0, [rows(name, 1, 2)])
    if "markerSubject" in options:
        with pytest.raises(ReplayMismatch, match="markers of query q1, and this is query q2: use"):
            write_batch(options, "q2", 0, [rows(name, 3, 4)])
        with pytest.raises(ReplayMismatch, match="markers of query q1, and this is a batch write"):
            write_batch(options, None, 0, [rows(name, 3, 4)])
        assert counted(stream) == Counter(rows(name, 1, 2))
    else:
        write_batch(options, "q2", 0, [rows(name, 3, 4)])
        assert counted(stream) == Counter(rows(name, 1, 2, 3, 4))


def test_rows_with_different_subjects_differ(name, target):
    _, options = target
    write_batch(options, "q", 0, [rows(name, 1, 2)], {0: 2})
    with pytest.raises(ReplayMismatch):
        write_batch(options, "q", 0, [[(f"{name}.b", b"1"), (f"{name}.b", b"2")]])


def test_rows_with_different_headers_differ(name, target):
    """Only those of the user: a server may change its own, such as Nats-TTL."""
    stream, options = target
    schema = StructType([*SCHEMA, StructField("headers", MapType(StringType(), StringType()))])

    def write(region):
        columns = {
            "subject": [f"{name}.a"],
            "data": [b"1"],
            "headers": pa.array([[("Region", region)]], pa.map_(pa.string(), pa.string())),
        }
        options["writeId"] = "monday"
        writer = BatchWriter(read_options(options, WRITE), schema, False)
        with task(0):
            writer.commit([writer.write(iter([pa.RecordBatch.from_pydict(columns)]))])

    write("eu")
    write("eu")
    with pytest.raises(ReplayMismatch):
        write("us")
    assert [msg.headers["Region"] for msg in stored(stream)] == ["eu"]


def test_a_stream_that_changes_subjects_when_it_stores_messages(name, make, plain):
    stream = make(subject_transform={"src": f"{name}.a", "dest": f"{name}.stored"})
    options = {key: plain[key] for key in plain if key != "subject"}
    write_batch(options, "q", 0, [rows(name, 1, 2, 3)], {0: 2})
    write_batch(options, "q", 0, [rows(name, 1, 2, 3)])
    assert counted(stream) == Counter((f"{name}.stored", b"%d" % i) for i in (1, 2, 3))
    with pytest.raises(ReplayMismatch):
        write_batch(options, "q", 0, [rows(name, 2, 1, 3)])


def test_rows_that_the_stream_has_removed(name, make, plain, caplog):
    """A work queue or limits have removed them, so they cannot be compared."""
    stream = make(max_msgs_per_subject=1)
    options = {key: plain[key] for key in plain if key != "subject"}
    for _ in range(2):
        write_batch(options, "q", 0, [rows(name, *range(10))])
    assert counted(stream) == Counter(rows(name, 9))
    assert "9 rows of q.0.0 were stored before, but the stream has removed them" in caplog.text


def test_a_writer_without_permission_to_read(name):
    user = {"user": "joe", "password": "pw", "permissions": {"publish": {"deny": "$JS.API.>"}}}
    admin = {"user": "a", "password": "b"}
    config = {"authorization": {"users": [user, admin]}}
    with (
        Server(jetstream=True, config=config) as server,
        connect(server.url, user="a", password="b") as client,
    ):
        JetStream(client).create_stream(name=name, subjects=[f"{name}.>"])
        options = {"servers": server.url, "user": "joe", "password": "pw", "requestTimeout": "1s"}
        write_batch(options, "q", 0, [rows(name, 1, 2)])
        with pytest.raises(PermissionDenied, match=r"STREAM\.MSG\.GET"):
            write_batch(options, "q", 0, [rows(name, 1, 2)])
        forget(read_options(options, WRITE))


def test_markers_of_older_versions(js, name, make, atomic):
    """They have neither a query nor a digest, and are accepted without a check."""
    stream = make(allow_atomic=True)
    options = {key: atomic[key] for key in atomic if key != "subject"}
    marker = {"owner": "another", "write": 4, "rows": 2}
    js.publish(f"{name}.mark.q.0", json.dumps(marker).encode())
    write_batch(options, "q", 4, [rows(name, 1, 2, 3)])
    assert counted(stream) == Counter(rows(name, 3))
    write_batch(options, "q", 5, [rows(name, 4)])
    assert counted(stream) == Counter(rows(name, 3, 4))
