"""Key-value buckets as tables and as change logs."""

from __future__ import annotations

import datetime
import logging
import threading

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from jetstream.blocking import JetStream
from jetstream.errors import BucketNotFound
from jetstream.spark.compat import LIMITED
from jetstream.spark.datasource import JetStreamDataSource
from jetstream.spark.offsets import LOG, DataLost
from jetstream.spark.stores import CHANGES
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidName, InvalidValue
from natsproto.testing import Server
from tests.spark.support import TYPES, rows_of

COLUMNS = {"key": "subject", "value": "data", "operation": "subject", "revision": "sequence"}
COLUMNS |= {"timestamp": "timestamp", "bucket": "subject"}


def columns(*names: str) -> StructType:
    made = StructType()
    for name in names or CHANGES:
        made = made.add(name, TYPES[COLUMNS[name]])
    return made


def source(server, **options):
    return JetStreamDataSource({"servers": server.url, **options})


def pairs(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


@pytest.fixture
def bucket(js, name):
    return js.create_key_value(bucket=name, history=5)


def change(bucket) -> None:
    """Make six changes: two keys stay, two are gone."""
    bucket.put("eu.price", b"1")
    bucket.put("us.price", b"2")
    bucket.put("eu.price", b"3")
    bucket.put("us.tax", b"4")
    bucket.delete("us.price")
    bucket.put("eu.tax", b"5")


def test_a_table_has_the_latest_value_of_each_key(server, bucket, name):
    change(bucket)
    rows = rows_of(source(server, bucket=name).reader(columns()))
    assert pairs(rows, "key", "value", "operation", "revision", "bucket") == [
        ("eu.price", b"3", "PUT", 3, name),
        ("us.tax", b"4", "PUT", 4, name),
        ("eu.tax", b"5", "PUT", 6, name),
    ]
    stored = bucket.get("eu.tax").created.datetime()
    assert rows[2]["timestamp"].astimezone(datetime.timezone.utc) == stored
    rows = rows_of(source(server, bucket=name, keys="eu.*,us.tax").reader(columns("key")))
    assert pairs(rows, "key") == [("eu.price",), ("us.tax",), ("eu.tax",)]


def test_an_empty_bucket_is_an_empty_table(server, bucket, name):
    assert rows_of(source(server, bucket=name).reader(columns())) == []
    bucket.put("a", b"1")
    bucket.delete("a")
    assert rows_of(source(server, bucket=name).reader(columns())) == []


def test_a_table_without_values_does_not_transfer_them(server, js, bucket, name):
    for number in range(20):
        bucket.put(f"k{number}", b"x" * 100_000)
    before = server.monitor("/varz")["out_bytes"]
    rows = rows_of(source(server, bucket=name).reader(columns("key", "revision")))
    assert len(rows) == 20
    assert server.monitor("/varz")["out_bytes"] - before < 100_000


def test_a_table_misses_no_key_while_others_write(server, js, name):
    """In a bucket with one value for each key, a change moves the key to the end of the stream."""
    bucket = js.create_key_value(bucket=name, storage="memory")
    keys = {f"k{number}" for number in range(300)}
    for key in keys:
        bucket.put(key, b"0")
    over = threading.Event()

    def write() -> None:
        with js.publisher(max_pending=100) as publisher:
            number = 0
            while not over.is_set():
                number += 1
                publisher.publish(f"$KV.{name}.k{number % 300}", b"%d" % number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            found = pairs(rows_of(source(server, bucket=name).reader(columns("key"))), "key")
            assert {key for (key,) in found} == keys
    finally:
        over.set()
        writer.join()


def test_changes_are_the_history_of_the_bucket(server, bucket, name):
    change(bucket)
    bucket.purge("us.tax")
    reader = source(server, bucket=name, changes="true").reader(columns())
    assert pairs(rows_of(reader), "key", "value", "operation", "revision") == [
        ("eu.price", b"1", "PUT", 1),
        ("us.price", b"2", "PUT", 2),
        ("eu.price", b"3", "PUT", 3),
        ("us.price", None, "DEL", 5),
        ("eu.tax", b"5", "PUT", 6),
        ("us.tax", None, "PURGE", 7),  # which removed the put of revision 4
    ]
    options = {"bucket": name, "changes": "true", "startingOffsets": "3", "keys": "us.>"}
    reader = source(server, **options).reader(columns("value", "key", "bucket"))
    assert pairs(rows_of(reader), "key", "value", "bucket") == [
        ("us.price", None, name),
        ("us.tax", None, name),
    ]


def test_expired_keys_are_changes(server, js, name):
    bucket = js.create_key_value(bucket=name, limit_marker_ttl=60.0)
    bucket.create("a", b"1", ttl=1.0)
    with bucket.watch("a") as watcher:
        while watcher.next(10.0).operation == "PUT":
            pass
    rows = rows_of(source(server, bucket=name, changes="true").reader(columns("key", "operation")))
    assert pairs(rows, "key", "operation") == [("a", "PURGE")]


def test_a_mirror_is_read_like_its_origin(server, js, bucket, name):
    change(bucket)
    mirror = js.create_key_value(bucket=f"{name}m", mirror={"name": f"KV_{name}"})
    with mirror.watch("eu.tax") as watcher:  # until it is there
        watcher.next(10.0)
    for options in ({}, {"changes": "true", "startingOffsets": "6"}):
        reader = source(server, bucket=f"{name}m", keys="eu.tax", **options).reader(columns())
        [row] = rows_of(reader)
        assert (row["key"], row["value"], row["bucket"]) == ("eu.tax", b"5", f"{name}m")


def test_replaced_revisions_are_not_lost_data(server, js, name, caplog, impatient):
    bucket = js.create_key_value(bucket=name)  # one revision for each key
    reader = source(server, bucket=name, startingOffsets="earliest").streamReader(columns())
    start = reader.initialOffset()
    for number in range(10):
        bucket.put("k", b"%d" % number)
    with caplog.at_level(logging.WARNING, LOG.name):
        end = reader.latestOffset(start)
        [row] = rows_of(reader, reader.partitions(start, end))
    assert (row["value"], row["revision"]) == (b"9", 10)
    assert not caplog.records
    strict = source(server, bucket=name, changes="true", startingOffsets="3", failOnDataLoss="true")
    with pytest.raises(DataLost):
        rows_of(strict.reader(columns()))


def test_bad_options_are_named(server, bucket, name):
    bad = [
        ({"bucket": name, "stream": "S"}, "bucket and stream exclude each other"),
        ({"bucket": name, "objectStore": "o"}, "bucket and objectStore exclude each other"),
        ({"stream": "S", "keys": "a"}, "option keys needs option bucket"),
        ({"stream": "S", "changes": "true"}, "option changes needs option bucket"),
        ({"bucket": name, "startingOffsets": "1"}, "startingOffsets does not apply to a read of"),
        ({"bucket": name, "delivery": "dedup"}, "delivery does not apply"),
        ({"bucket": name, "changes": "true", "filterSubjects": "a"}, "filterSubjects does not"),
        ({"bucket": name, "changes": "yes"}, "option changes 'yes' is not"),
        ({"bucket": name, "bukket": "x"}, "did you mean bucket"),
        ({"bucket": "a.b"}, "option bucket: name 'a.b'"),
        ({"bucket": name, "keys": "a.>.b"}, "option keys"),
    ]
    for options, text in bad:
        with pytest.raises(InvalidValue, match=text):
            source(server, **options).reader(columns())
    with pytest.raises(InvalidName, match="key"):
        source(server, bucket=name, keys="a.b!").reader(columns())
    with pytest.raises(InvalidValue, match="column 'data' does not exist; there are key, value"):
        source(server, bucket=name).reader(StructType().add("data", TYPES["data"]))
    with pytest.raises(InvalidValue, match="changes=false is for a batch read"):
        source(server, bucket=name, changes="false").streamReader(columns())
    with pytest.raises(InvalidValue, match="option bucket is for"):
        source(server, bucket=name).writer(columns(), False)
    with pytest.raises(BucketNotFound):
        source(server, bucket="nowhere").reader(columns()).partitions()


def test_in_spark(spark, server, bucket, name, tmp_path):
    """A table joins, a view works in SQL, and a query follows the changes from its checkpoint."""
    change(bucket)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW settings USING jetstream"
        f" OPTIONS (servers '{server.url}', bucket '{name}')"
    )
    found = spark.sql("SELECT key, CAST(value AS STRING) AS value FROM settings ORDER BY key")
    assert pairs(found.collect(), "key", "value") == [
        ("eu.price", "3"),
        ("eu.tax", "5"),
        ("us.tax", "4"),
    ]
    changes = (
        spark.readStream.format("jetstream")
        .options(servers=server.url, bucket=name, startingOffsets="earliest")
        .load()
    )

    def run() -> list[tuple[str, str]]:
        query = (
            changes.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "changes"))
        )
        query.awaitTermination()
        rows = spark.read.parquet(str(tmp_path / "changes")).orderBy("revision")
        return pairs(rows.collect(), "key", "operation")

    assert run() == [
        ("eu.price", "PUT"),
        ("us.price", "PUT"),
        ("eu.price", "PUT"),
        ("us.tax", "PUT"),
        ("us.price", "DEL"),
        ("eu.tax", "PUT"),
    ]
    bucket.delete("eu.tax")
    assert run()[6:] == [("eu.tax", "DEL")]
    if LIMITED:
        with pytest.raises(PySparkException, match="objectStore is for a batch read"):
            spark.readStream.format("jetstream").options(
                servers=server.url, objectStore=name
            ).load().writeStream.format("noop").start().awaitTermination()


@pytest.mark.parametrize("kind", ["table", "changes", "files"])
def test_the_permissions_of_the_documentation_are_enough(kind):
    """docs/spark.md lists these subjects."""
    stream = "OBJ_b" if kind == "files" else "KV_b"
    allowed = [f"$JS.API.STREAM.{each}.{stream}" for each in ("INFO", "MSG.GET")]
    of_consumers = ("CREATE", "MSG.NEXT", "DELETE")
    allowed += [f"$JS.API.CONSUMER.{each}.{stream}.>" for each in of_consumers]
    if kind == "files":
        allowed.append(f"$JS.API.DIRECT.GET.{stream}.>")
    users = [
        {"user": "admin", "password": "a"},
        {
            "user": "reader",
            "password": "r",
            "permissions": {"publish": allowed, "subscribe": ["_INBOX.>"]},
        },
    ]
    with Server(jetstream=True, config={"authorization": {"users": users}}) as server:
        with connect(server.url, user="admin", password="a") as client:
            admin = JetStream(client)
            if kind == "files":
                admin.create_object_store(bucket="b").put("k", b"1" * 200_000)
            else:
                admin.create_key_value(bucket="b").put("k", b"1")
        options = {"user": "reader", "password": "r"}
        if kind == "files":
            files = source(server, objectStore="b", **options)
            [row] = rows_of(files.reader(StructType().add("content", TYPES["data"])))
            assert row["content"] == b"1" * 200_000
        else:
            changes = str(kind == "changes").lower()
            [row] = rows_of(
                source(server, bucket="b", changes=changes, **options).reader(columns())
            )
            assert (row["key"], row["value"]) == ("k", b"1")
