"""Object stores as binary files."""

from __future__ import annotations

import datetime

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from jetstream.errors import BucketNotFound
from jetstream.objects.info import ObjectInfo
from jetstream.spark.datasource import JetStreamDataSource
from jetstream.spark.object_files import divide
from jetstream.spark.offsets import DataLost
from jetstream.spark.stores import FILES
from natsproto.errors import InvalidValue
from tests.spark.support import rows_of

KINDS = {
    "STRING": StringType(),
    "BINARY": BinaryType(),
    "BIGINT": LongType(),
    "TIMESTAMP": TimestampType(),
    "MAP<STRING, STRING>": MapType(StringType(), StringType()),
    "MAP<STRING, ARRAY<STRING>>": MapType(StringType(), ArrayType(StringType())),
}
LARGE = bytes(range(256)) * 2000  # four chunks


def columns(*names: str) -> StructType:
    made = StructType()
    for name in names or FILES:
        made = made.add(name, KINDS[FILES[name]])
    return made


def reader(server, names=(), **options):
    return JetStreamDataSource({"servers": server.url, **options}).reader(columns(*names))


@pytest.fixture
def store(js, name):
    made = js.create_object_store(bucket=name)
    made.put(
        "a.bin", LARGE, description="bytes", metadata={"kind": "raw"}, headers={"H": ["1", "2"]}
    )
    made.put("empty", b"")
    made.put("logs/b.txt", b"hello")
    return made


def test_rows_are_the_objects(server, store, name):
    rows = {row["path"]: row for row in rows_of(reader(server, objectStore=name))}
    assert sorted(rows) == ["a.bin", "empty", "logs/b.txt"]
    row = rows["a.bin"]
    info = store.get_info("a.bin")
    assert (row["content"], row["length"], row["digest"]) == (LARGE, len(LARGE), info.digest)
    assert (row["description"], row["bucket"]) == ("bytes", name)
    assert (row["metadata"], row["headers"]) == ([("kind", "raw")], [("H", ["1", "2"])])
    utc = datetime.timezone.utc
    assert row["modificationTime"].astimezone(utc) == info.mtime.datetime()
    assert (rows["empty"]["content"], rows["empty"]["length"]) == (b"", 0)


def test_names_are_filtered_and_deleted_objects_are_not_there(server, store, name):
    options = {"objectStore": name, "pathGlobFilter": "*.[bt]*"}
    rows = rows_of(reader(server, ["path"], **options))
    assert sorted(row["path"] for row in rows) == ["a.bin", "logs/b.txt"]
    store.delete("a.bin")
    assert [row["path"] for row in rows_of(reader(server, ["path"], **options))] == ["logs/b.txt"]


def test_without_the_content_no_chunk_is_read(server, store, name):
    before = server.monitor("/varz")["out_bytes"]
    rows = rows_of(reader(server, ["path", "length"], objectStore=name))
    assert sum(row["length"] for row in rows) == len(LARGE) + 5
    assert server.monitor("/varz")["out_bytes"] - before < 100_000


def test_links_have_the_content_of_their_target(server, js, store, name):
    store.add_link("same", store.get_info("logs/b.txt"))
    store.add_bucket_link("all", js.create_object_store(bucket=f"{name}other"))
    rows = {row["path"]: row for row in rows_of(reader(server, objectStore=name))}
    assert rows["same"]["content"] == b"hello"
    assert rows["all"]["content"] is None


@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_an_object_that_changes_during_the_read_is_lost(server, store, name, how):
    planned = reader(server, ["path", "content"], objectStore=name)
    parts = planned.partitions()
    if how == "replaced":
        store.put("empty", b"not anymore")
    else:
        store.delete("empty")
    with pytest.raises(DataLost, match=r"object 'empty' of .* was replaced or deleted"):
        rows_of(planned, parts)
    lenient = reader(server, ["path", "content"], objectStore=name, failOnDataLoss="false")
    assert sorted(row["path"] for row in rows_of(lenient, parts)) == ["a.bin", "logs/b.txt"]


def test_tasks_share_the_bytes():
    infos = [ObjectInfo(name=str(size), size=size << 20) for size in (9, 1, 1, 1, 3, 3, 0, 0)]
    parts = divide(infos, 3)
    assert [[int(info.name) for info in part] for part in parts] == [[9], [1, 1, 1, 3], [3, 0, 0]]
    assert divide(infos, 1) == [infos]
    assert len(divide(infos, 100)) == 7  # the two that are empty share a task
    assert divide([], 2) == []


def test_bad_options_are_named(server, store, name):
    with pytest.raises(InvalidValue, match="startingOffsets does not apply to a read of objectS"):
        reader(server, objectStore=name, startingOffsets="1")
    with pytest.raises(InvalidValue, match="pathGlobFilter needs option objectStore"):
        reader(server, stream="S", pathGlobFilter="*")
    with pytest.raises(BucketNotFound):
        reader(server, objectStore="nowhere").partitions()


def test_in_spark(spark, server, store, name):
    files = spark.read.format("jetstream").options(servers=server.url, objectStore=name).load()
    assert files.columns == list(FILES)
    found = files.selectExpr("path", "length", "sha2(content, 256) AS sum", "metadata['kind'] AS k")
    rows = {row.path: row for row in found.collect()}
    assert rows["a.bin"].k == "raw"
    assert rows["logs/b.txt"].length == 5
    assert files.where("path LIKE 'logs/%'").count() == 1
    missing = files.where("path = 'none'")
    assert missing.count() == 0
