"""Writing DataFrames to streams: stored rows, and rejected writes."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tests.spark.sinks import numbers, payloads, stored, write

# PySpark warns about pandas where rows pass through Python; that does not matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("small_batches"),
]


def test_every_row_once(spark, stream, exact):
    write(numbers(spark, 5000, 3), exact)
    assert payloads(stream) == list(range(5000))


def test_many_partitions_some_of_them_empty(spark, stream, exact):
    write(numbers(spark, 10, 12), exact)
    assert payloads(stream) == list(range(10))


def test_an_empty_frame(spark, stream, plain):
    write(numbers(spark, 0), plain)
    assert stream.info().state.messages == 0


def test_each_write_is_independent(spark, stream, plain):
    for _ in range(2):
        write(numbers(spark, 10), plain)
    assert payloads(stream) == sorted([*range(10)] * 2)


def test_a_write_repeated_with_its_id_stores_nothing_new(spark, stream, exact):
    for _ in range(2):
        write(numbers(spark, 2500), exact, writeId="monday")
    assert payloads(stream) == list(range(2500))


def test_old_markers_are_purged(spark, stream, atomic):
    write(numbers(spark, 5000), atomic)
    assert stream.info().state.messages == 5002


@pytest.mark.parametrize(("kind", "data"), [("array<string>", "binary"), ("string", "string")])
def test_all_columns(spark, server, stream, kind, data):
    value = "array('1', '2')" if kind == "array<string>" else "'1'"
    frame = spark.sql(
        f"SELECT CAST('x' AS {data}) AS data, '{stream.name}.b' AS subject, 'mine' AS msg_id,"
        f" 3600 AS ttl, map('A', {value}) AS headers,"
        " CAST(0 AS BIGINT) AS expected_last_subject_sequence"
    )
    for _ in range(2):  # an id that is known counts more than an expectation that does not hold
        write(frame, {"servers": server.url})
    (msg,) = stored(stream)
    assert (msg.subject, msg.data) == (f"{stream.name}.b", b"x")
    assert msg.headers.get_all("A") == (["1", "2"] if kind == "array<string>" else ["1"])
    assert msg.headers["Nats-Msg-Id"] == "mine"
    assert msg.headers["Nats-TTL"] == "3600"


def test_at_least_once_has_no_ids(spark, stream, plain):
    write(numbers(spark, 3, 1), plain, delivery="atLeastOnce")
    assert [msg.headers for msg in stored(stream)] == [None] * 3


REFUSED = [
    ({}, {"mode": "overwrite"}, "a stream cannot be overwritten"),
    ({}, {"frame": "SELECT 'x' AS data, 1 AS extra"}, "column 'extra' cannot be written"),
    ({"maxInFligt": "1"}, {}, "did you mean maxInFlight?"),
    ({"subject": "no.stream"}, {}, "no stream accepts subject 'no.stream'"),
]


@pytest.mark.parametrize(("options", "how", "why"), REFUSED)
def test_invalid_writes_are_rejected_on_the_driver(spark, stream, plain, options, how, why):
    frame = spark.sql(how.get("frame", "SELECT 'x' AS data"))
    writer = frame.write.format("jetstream").mode(how.get("mode", "append"))
    with pytest.raises(PySparkException) as caught:
        writer.options(**{**plain, **options}).save()
    assert why in str(caught.value)
    assert stream.info().state.messages == 0
