"""Several streams: by pattern, with a time for each, and their lag."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import StreamNotFound
from jetstream.spark.compat import LIMITED
from jetstream.spark.lag import Lag
from jetstream.spark.offsets import DataLost, Place
from natsproto.errors import InvalidValue
from tests.spark.stepping import Query, needs_limits
from tests.spark.support import batch_reader, fill, make, query_reader, rows_of

pytestmark = pytest.mark.usefixtures("impatient")


def places(reader, partitions=None):
    return sorted((row["stream"], row["sequence"]) for row in rows_of(reader, partitions))


def test_a_batch_of_streams_by_pattern(server, js, name):
    for each in (f"{name}_A", f"{name}_B", f"{name}X"):
        make(js, each, 2)
    columns = ("stream", "sequence")
    reader = batch_reader(server, columns, streamPattern=f"{name}_[AB]")
    assert places(reader) == [(f"{name}_{each}", seq) for each in "AB" for seq in (1, 2)]
    with pytest.raises(InvalidValue, match="streamPattern: no stream matches 'nothing_like'"):
        batch_reader(server, columns, streamPattern="nothing_like").partitions()


@needs_limits
def test_a_query_finds_new_streams(server, js, name, monkeypatch):
    """They are read from their first message on, also if that batch is repeated."""
    monkeypatch.setattr("jetstream.spark.stream._LIST", 0.0)
    make(js, f"{name}_A", 3)
    options = {"streamPattern": f"{name}_.", "startingOffsets": "latest"}
    query = Query(query_reader(server, ("stream", "sequence"), **options))
    query.start = query.plan()
    make(js, f"{name}_B", 2)
    fill(js, f"{name}_A", 1)
    end = query.plan()
    expected = [(f"{name}_A", 4), (f"{name}_B", 1), (f"{name}_B", 2)]
    assert places(query.reader, query.reader.partitions(query.start, end)) == expected
    fill(js, f"{name}_B", 2)
    again = query_reader(server, ("stream", "sequence"), **options)
    assert places(again, again.partitions(query.start, end)) == expected
    query = Query(again, end)
    end = query.plan()
    expected = [(f"{name}_B", 3), (f"{name}_B", 4)]
    assert places(again, again.partitions(query.start, end)) == expected
    query.start = end
    assert query.plan() == end


@pytest.mark.parametrize("listed", [True, False])
def test_a_stream_of_a_pattern_is_deleted(server, js, name, monkeypatch, caplog, listed):
    """A new list of the streams shows that, or a lookup between two lists."""
    monkeypatch.setattr("jetstream.spark.stream._LIST", 0.0 if listed else 1000.0)
    for each in "ABC":
        make(js, f"{name}_{each}", 3)
    columns = ("stream", "sequence")
    options = {"streamPattern": f"{name}_.", "startingOffsets": "earliest", "minPartitions": 3}
    tolerant = query_reader(server, columns, **options, failOnDataLoss=False)
    query = Query(tolerant)
    end = query.plan()
    js.delete_stream(f"{name}_B")
    strict = query_reader(server, columns, **options)
    with pytest.raises(DataLost, match=f"stream {name}_B was deleted, or no longer matches"):
        strict.partitions(query.start, end)
    parts = tolerant.partitions(query.start, end)
    assert [len(places(tolerant, [part])) for part in parts] == [3, 0, 3]  # with their numbers
    assert f"stream {name}_B was deleted" in caplog.text
    query.start = end
    fill(js, f"{name}_A", 2)
    end = query.plan()
    assert set(end["streams"]) == {f"{name}_A", f"{name}_C"}
    with pytest.raises(DataLost, match=f"stream {name}_B was deleted"):
        strict.partitions(query.start, strict.latestOffset(query.start) if LIMITED else end)
    found = places(tolerant, tolerant.partitions(query.start, end))
    assert found == [(f"{name}_A", 4), (f"{name}_A", 5)]


def test_a_stream_of_a_list_is_deleted(server, js, name):
    make(js, f"{name}A", 1)
    make(js, f"{name}B", 1)
    options = {"stream": f"{name}A,{name}B", "failOnDataLoss": False}
    query = Query(query_reader(server, **options))
    js.delete_stream(f"{name}B")
    with pytest.raises(StreamNotFound, match=f"stream not found: {name}B"):
        query.plan()


def test_a_deleted_stream_has_nothing_to_purge(server, js, name):
    for each in "AB":
        make(js, f"{name}_{each}", 3)
    options = {"streamPattern": f"{name}_.", "startingOffsets": "earliest", "onCommit": "purge"}
    query = Query(query_reader(server, **options, failOnDataLoss=False))
    end = query.plan()
    js.delete_stream(f"{name}_A")
    query.reader.commit(end)
    assert js.stream(f"{name}_B").cached_info.state.messages == 0


def test_a_time_for_each_stream(server, js, name):
    names = [f"{name}A", f"{name}B"]
    times = {}
    for each in names:
        stream = make(js, each, 4)
        times[each] = [str(stream.get_msg(seq).time) for seq in (1, 2, 3, 4)]
    options = {
        "stream": ",".join(names),
        "startingTimestamp": json.dumps({names[0]: times[names[0]][1], names[1]: 0}),
        "endingTimestamp": json.dumps({each: times[each][2] for each in names}),
    }
    reader = batch_reader(server, ("stream", "sequence"), **options)
    assert places(reader) == [(names[0], 2), (names[1], 1), (names[1], 2)]
    del options["endingTimestamp"]
    initial = query_reader(server, **options).initialOffset()
    assert [initial["streams"][each]["next"] for each in names] == [2, 1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"startingTimestamp": '{"A": "soon"}'}, "is not a time, or JSON such as"),
        ({"startingTimestamp": '{"B": 1000}'}, "is for streams B, option stream for A"),
        (
            {"startingTimestamp": '{"A": 2000}', "endingTimestamp": "1000"},
            "the end is before the start",
        ),
        ({"streamPattern": "A.*"}, "stream and streamPattern exclude each other"),
    ],
)
def test_options_that_are_rejected(server, options, error):
    with pytest.raises(InvalidValue, match=error):
        batch_reader(server, stream="A", **options)


def test_a_pattern_that_is_not_one(server):
    with pytest.raises(InvalidValue, match=r"streamPattern '\(' is not a regular expression"):
        batch_reader(server, streamPattern="(")


class Snapshot:
    def __init__(self, next):
        self.next = next


def test_lag_and_rate():
    lag = Lag()
    assert lag.fields() == {"lag": {}, "rate": {}}
    lag.looked({"A": Snapshot(11), "B": Snapshot(5)}, 100.0)
    lag.planned({"A": Place(6, "")})
    assert lag.fields() == {"lag": {"A": 5}, "rate": {}}
    lag.looked({"A": Snapshot(31)}, 108.0)
    lag.planned({"A": Place(31, "")})
    assert lag.fields() == {"lag": {"A": 0}, "rate": {"A": 2.5}}


@needs_limits
def test_the_progress_of_a_query_has_its_lag(server, js, name):
    make(js, name, 10)
    options = {"stream": name, "startingOffsets": "earliest", "maxMessagesPerTrigger": 4}
    query = Query(query_reader(server, **options))
    query.batch()
    report = query.reader.reportLatestOffset()
    assert (report["lag"], report["streams"][name]["next"]) == ({name: 6}, 11)
    query.batch()
    query.batch()
    assert query.reader.reportLatestOffset()["lag"] == {name: 0}


def test_every_version_resumes_and_adds_streams(server, js, name):
    """Before 4.2 Spark does not say where a batch starts until its end is planned."""
    options = {"startingOffsets": "earliest", "onRecreate": "resume"}
    make(js, name, 3)
    query = Query(query_reader(server, stream=name, **options))
    assert query.batch() == [1, 2, 3]
    js.delete_stream(name)
    make(js, name, 5)
    make(js, name + "B", 2)
    query = Query(query_reader(server, stream=f"{name},{name}B", **options), query.start)
    assert sorted(query.batch()) == [1, 2, 4, 5]
