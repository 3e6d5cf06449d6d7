"""Settings of a session, and queries in SQL."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tests.spark.support import fill, make

SECRET = "hunter2-the-secret"


@pytest.fixture
def setting(spark):
    """Return a function that changes a setting for one test."""
    before = {}

    def set_one(name, value):
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield set_one
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def load(spark, server, schema=None, **options):
    reader = spark.read.format("jetstream").options(servers=server.url, **options)
    return (reader if schema is None else reader.schema(schema)).load()


def test_timestamps_are_moments_in_every_session(spark, server, js, name, setting):
    make(js, name, 1)
    stored = js.stream(name).get_msg(1).time.ns // 1000
    setting("spark.sql.timestampType", "TIMESTAMP_NTZ")
    for zone in ("America/New_York", "Asia/Kolkata"):
        setting("spark.sql.session.timeZone", zone)
        frame = load(spark, server, stream=name)
        assert dict(frame.dtypes)["timestamp"] == "timestamp"
        assert frame.selectExpr("unix_micros(timestamp)").first()[0] == stored


def test_a_temporary_view_in_sql(spark, server, js, name):
    """Its rows are fixed at its first use, except in 4.0: see test_source.py."""
    make(js, name, 10)
    where = f"OPTIONS (servers '{server.url}', stream '{name}', password '{SECRET}', user 'u')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING jetstream {where}")
    assert spark.sql(f"SELECT max(sequence) FROM {name}").first()[0] == 10
    shown = spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {name}").first()[0]
    assert SECRET not in shown
    fill(js, name, 1)
    now = 11 if spark.version.startswith("4.0.") else 10
    assert spark.sql(f"SELECT max(sequence) FROM {name}").first()[0] == now
    spark.catalog.dropTempView(name)


def test_invalid_columns_are_rejected_before_tasks_run(spark, server, js, name):
    make(js, name, 1)
    for schema, text in (
        ("headers MAP<STRING, ARRAY<STRING>> NOT NULL", "headers is NOT NULL, but may be null"),
        ("timestamp TIMESTAMP_NTZ", "timestamp is TIMESTAMP, not TIMESTAMP_NTZ"),
        ("Sequence BIGINT", "column 'Sequence' does not exist"),
    ):
        with pytest.raises(PySparkException, match=text):
            load(spark, server, schema, stream=name).collect()
