"""Filters of a query that narrow the read, with option pushdown."""

from __future__ import annotations

import datetime

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="needs PySpark 4")
try:
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
        Not,
        StringStartsWith,
    )
except ImportError:
    pytest.skip("PySpark before 4.1 has no filters", allow_module_level=True)

from pyspark import __version__ as VERSION
from pyspark.errors import PySparkException

from jetstream.spark.filters import intersection, matches_all, minimal
from jetstream.spark.pushdown import SKEW, Narrowing
from tests.spark.support import batch_reader, make, rows_of, sequences

SEQ, SUBJECT, TIME, NS = ("sequence",), ("subject",), ("timestamp",), ("timestamp_ns",)
FAR = 2**63 - 1
T = datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone.utc)
DAY = 86400 * 10**9


@pytest.mark.parametrize(
    ("filters", "first", "last"),
    [
        ([EqualTo(SEQ, 5)], 5, 5),
        ([EqualNullSafe(SEQ, 5)], 5, 5),
        ([GreaterThan(SEQ, 5)], 6, FAR),
        ([GreaterThanOrEqual(SEQ, 5)], 5, FAR),
        ([LessThan(SEQ, 5)], 1, 4),
        ([LessThanOrEqual(SEQ, 5)], 1, 5),
        ([In(SEQ, (9, 3, 7))], 3, 9),
        ([GreaterThan(SEQ, 5), LessThan(SEQ, 9), GreaterThan(SEQ, 2)], 6, 8),
        ([Not(EqualTo(SEQ, 5)), IsNotNull(SEQ)], 1, FAR),
        ([EqualTo(SEQ, None)], 1, FAR),
        ([EqualTo(("data",), b"x")], 1, FAR),
    ],
)
def test_sequences(filters, first, last):
    narrowing = Narrowing()
    for each in filters:
        narrowing.add(each)
    assert (narrowing.first, narrowing.last) == (first, last)


@pytest.mark.parametrize(
    ("query", "earliest", "latest"),
    [
        (EqualTo(TIME, T), DAY, DAY + 999),
        (EqualTo(TIME, T.replace(tzinfo=None)), DAY, DAY + 999),
        (GreaterThan(TIME, T), DAY + 1000, FAR),
        (GreaterThanOrEqual(TIME, T), DAY, FAR),
        (LessThan(TIME, T), 0, DAY - 1),
        (LessThanOrEqual(TIME, T), 0, DAY + 999),
        (In(TIME, (T, T + datetime.timedelta(days=1))), DAY, 2 * DAY + 999),
        (GreaterThan(NS, DAY), DAY + 1, FAR),
        (LessThanOrEqual(NS, DAY), 0, DAY),
        (EqualTo(TIME, None), 0, FAR),
    ],
)
def test_times(query, earliest, latest):
    narrowing = Narrowing()
    narrowing.add(query)
    assert (narrowing.earliest, narrowing.latest) == (earliest, latest)
    low, high = narrowing.by_time
    assert low is None if earliest <= SKEW else low.ns == earliest - SKEW
    assert high is None if latest == FAR else high.ns == latest + 1 + SKEW


@pytest.mark.parametrize(
    ("filters", "subjects"),
    [
        ([EqualTo(SUBJECT, "a.b")], ["a.b"]),
        ([In(SUBJECT, ("a.b", "a.c", "a.b"))], ["a.b", "a.c"]),
        ([In(SUBJECT, tuple(f"a.{i}" for i in range(101)))], None),
        ([StringStartsWith(SUBJECT, "a.b.")], ["a.b.>"]),
        ([StringStartsWith(SUBJECT, "a.b")], ["a.>"]),
        ([StringStartsWith(SUBJECT, "a")], None),
        ([StringStartsWith(SUBJECT, "a..b.")], None),
        ([StringStartsWith(SUBJECT, ".")], None),
        ([EqualTo(SUBJECT, "a b")], None),
        ([EqualTo(SUBJECT, "a.\ufffd")], None),
        ([EqualTo(SUBJECT, "")], None),
        ([EqualTo(SUBJECT, None)], None),
        ([StringStartsWith(SUBJECT, "a.b."), EqualTo(SUBJECT, "a.b.c")], ["a.b.c"]),
        ([EqualTo(SUBJECT, "a.b"), EqualTo(SUBJECT, "a.c")], []),
    ],
)
def test_subjects(filters, subjects):
    narrowing = Narrowing()
    for each in filters:
        narrowing.add(each)
    assert narrowing.subjects == subjects


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (None, ["a.b"], ["a.b"]),
        ([], ["a.b"], []),
        (["a.>"], ["a.b"], ["a.b"]),
        (["a.b"], ["a.>"], ["a.b"]),
        (["a.*"], ["a.b.>"], []),
        (["a.*.c"], ["a.b.*"], ["a.*.c"]),
        (["a.*", "b.>"], ["b.c", "a.d"], ["a.d", "b.c"]),
        (["a.>", "a.b.*"], ["a.b.c"], ["a.b.c"]),
        (["x.>"], ["a.b"], []),
    ],
)
def test_intersections(ours, theirs, both):
    assert intersection(ours, theirs) == both


def test_matches_all():
    assert matches_all("a.>", "a.b.>")
    assert matches_all("a.*", "a.b")
    assert not matches_all("a.*", "a.>")
    assert not matches_all("a.b", "a.*")
    assert minimal(["a.b", "a.>", "c", "c"]) == ["a.>", "c"]


def test_a_narrowed_reader_reads_less_but_enough(server, js, name):
    make(js, name, 60, subjects=3)

    def read(*filters, **options):
        reader = batch_reader(server, stream=name, pushdown=True, **options)
        assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark applies them, too
        return sequences(reader)

    assert read(GreaterThan(SEQ, 10), LessThan(SEQ, 15)) == [11, 12, 13, 14]
    assert read(EqualTo(SUBJECT, f"{name}.1"), LessThan(SEQ, 9)) == [2, 5, 8]
    assert read(EqualTo(SUBJECT, f"{name}.1"), subject=f"{name}.2") == []
    assert read(StringStartsWith(SUBJECT, f"{name}."), subject=f"{name}.2")[:2] == [3, 6]
    assert read(GreaterThan(TIME, T)) == list(range(1, 61))
    assert read(LessThan(TIME, T)) == []
    assert read(GreaterThan(SEQ, 10**15)) == []


def test_older_servers_get_no_unsupported_filters(server, js, name, monkeypatch):
    make(js, name, 6, subjects=3)

    def read():
        reader = batch_reader(server, ("subject",), stream=name, pushdown=True)
        reader.pushFilters([In(SUBJECT, (f"{name}.1", "elsewhere"))])
        return [row["subject"] for row in rows_of(reader)]

    assert read() == [f"{name}.1"] * 2
    monkeypatch.setattr("jetstream.spark.queries.read_version", lambda text: (2, 9, 10))
    assert len(read()) == 6  # Spark sees to the rest


# In Spark

SETTING = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def setting(spark):
    spark.conf.set(SETTING, "true")
    yield
    spark.conf.unset(SETTING)


def load(spark, server, name, **options):
    reader = spark.read.format("jetstream").options(servers=server.url, stream=name, **options)
    return reader.schema("subject STRING, sequence BIGINT").load()


def test_pushed_filters_reduce_the_read_in_spark(spark, server, js, name, setting):
    make(js, name, 2000, subjects=2)

    def sent(**options):
        before = server.monitor("/varz")["out_msgs"]
        found = load(spark, server, name, **options).where(
            f"subject = '{name}.1' AND sequence BETWEEN 100 AND 120"
        )
        assert sorted(row.sequence for row in found.collect()) == list(range(100, 121, 2))
        return server.monitor("/varz")["out_msgs"] - before

    assert sent(pushdown="true") < 100
    assert sent() > 2000  # off by default


def test_without_pushdown_a_frame_is_the_same_for_all_queries(spark, server, js, name, setting):
    make(js, name, 20)
    frame = load(spark, server, name)
    few, rest = frame.where("sequence < 5"), frame.where("sequence >= 5")
    assert [few.count(), frame.count(), few.union(rest).count(), rest.count()] == [4, 20, 20, 16]


@pytest.mark.skipif(not VERSION.startswith("4.3."), reason="seen with PySpark 4.3")
def test_spark_applies_the_filters_of_a_query_to_the_next(spark, server, js, name, setting):
    """The reason for the option: if this fails, Spark has changed, and it can be the default."""
    make(js, name, 20)
    frame = load(spark, server, name, pushdown="true")
    assert frame.where("sequence < 5").count() == 4
    assert frame.count() == 4
    assert load(spark, server, name, pushdown="true").count() == 20


def test_the_error_names_the_required_setting_of_spark(spark, server, js, name):
    make(js, name, 1)
    assert load(spark, server, name).count() == 1
    with pytest.raises(PySparkException, match=SETTING):
        load(spark, server, name, pushdown="true").count()
