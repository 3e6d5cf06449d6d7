"""Filters of queries: every query on a frame is right, whatever Spark does with its filters."""

from __future__ import annotations

import random

import pytest
from pyspark.errors import PySparkException

from jetstream.spark.filters import matches_all, minimal, overlap
from tests.spark.narrowing import ROWS, NarrowingDataSource
from tests.spark.support import fill, make

SETTING = "spark.sql.python.filterPushdown.enabled"


def test_matches_all():
    assert matches_all("a.>", "a.b.>")
    assert matches_all("a.*", "a.b")
    assert not matches_all("a.*", "a.>")
    assert not matches_all("a.b", "a.*")
    assert minimal(["a.b", "a.>", "c", "c"]) == ["a.>", "c"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.*", "a.b", True),
        ("a.*.c", "a.b.*", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.*.c", "a.>", True),
        ("a", "a.>", False),
        ("x.>", "a.b", False),
        (">", "a", True),
    ],
)
def test_overlap(one, other, both):
    assert overlap(one, other) == overlap(other, one) == both


# In Spark


@pytest.fixture(params=["true", "false"])
def pushdown(spark, request):
    spark.conf.set(SETTING, request.param)
    yield request.param == "true"
    spark.conf.unset(SETTING)


def load(spark, server, name, **options):
    reader = spark.read.format("jetstream").options(servers=server.url, stream=name, **options)
    return reader.schema("subject STRING, sequence BIGINT, timestamp TIMESTAMP").load()


def condition(numbers, name):
    """Return a random condition, and the function that says which rows satisfy it."""
    low, high = sorted(numbers.sample(range(1, 42), 2))
    subject = numbers.randrange(3)
    return numbers.choice(
        [
            ("true", lambda seq: True),
            (f"sequence < {high}", lambda seq: seq < high),
            (f"sequence >= {low}", lambda seq: seq >= low),
            (f"sequence BETWEEN {low} AND {high}", lambda seq: low <= seq <= high),
            (f"sequence IN ({low}, {high})", lambda seq: seq in (low, high)),
            (f"subject = '{name}.{subject}'", lambda seq: (seq - 1) % 3 == subject),
            (f"subject LIKE '{name}.%'", lambda seq: True),
            (
                f"subject = '{name}.{subject}' AND sequence > {low}",
                lambda seq: (seq - 1) % 3 == subject and seq > low,
            ),
            ("timestamp < TIMESTAMP '2020-01-01'", lambda seq: False),
        ]
    )


def test_all_queries_on_one_frame_are_right(spark, server, js, name, pushdown):
    """One after the other, and several in one query: a union, a join and a subquery."""
    make(js, name, 40, subjects=3)
    frame = load(spark, server, name)
    frame.createOrReplaceTempView(name)
    numbers = random.Random(7)
    everything = range(1, 41)
    for turn in range(12):
        (one, passes), (other, fits) = condition(numbers, name), condition(numbers, name)
        left, right = frame.where(one), frame.where(other)
        wanted, also = [[seq for seq in everything if each(seq)] for each in (passes, fits)]
        if turn % 3 == 0:
            queries = [(left, wanted), (frame, everything), (right, also)]
        elif turn % 3 == 1:
            both = left.join(right, "sequence", "left_semi")
            queries = [(left.union(right), [*wanted, *also]), (both, set(wanted) & set(also))]
        else:
            text = f"SELECT * FROM {name} WHERE {one} AND sequence IN"
            query = spark.sql(f"{text} (SELECT sequence FROM {name} WHERE {other})")
            queries = [(query, set(wanted) & set(also))]
        for query, expected in queries:
            found = sorted(row.sequence for row in query.collect())
            assert found == sorted(expected), (turn, one, other)
    spark.catalog.dropTempView(name)


def test_with_the_setting_a_query_with_filters_is_planned_again(spark, server, js, name, pushdown):
    """So it sees new messages, unless the end is fixed: docs/spark.md."""
    make(js, name, 5)
    frame, fixed = load(spark, server, name), load(spark, server, name, endingOffsets=6)
    assert [frame.count(), fixed.count()] == [5, 5]
    fill(js, name, 1)
    again = pushdown or spark.version.startswith("4.0.")
    assert frame.where("sequence > 0").count() == (6 if again else 5)
    assert fixed.where("sequence > 0").count() == 5


def test_the_option_is_refused(spark, server, js, name):
    make(js, name, 1)
    with pytest.raises(PySparkException, match="pushdown is unknown: Spark applies the plan that"):
        load(spark, server, name, pushdown="true").count()


def test_spark_applies_the_filters_of_a_query_to_the_next(spark):
    """The reason for that refusal: if this fails, Spark has changed, and it can be lifted."""
    if spark.version.startswith("4.0."):
        pytest.skip("PySpark 4.0 passes no filters to sources")
    spark.dataSource.register(NarrowingDataSource)
    spark.conf.set(SETTING, "true")
    try:
        frame = spark.read.format("narrowing").load()
        assert frame.count() == ROWS
        few, rest = frame.where("number < 5"), frame.where("number >= 5")
        assert few.count() == 4
        assert frame.count() == 4  # and not 20
        assert rest.union(few).count() == 4  # and not 20
        assert spark.read.format("narrowing").load().count() == ROWS
    finally:
        spark.conf.unset(SETTING)
