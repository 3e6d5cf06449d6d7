"""The readers of queries as PySpark 4.0 and 4.1 use them: without a start, and without limits."""

from __future__ import annotations

import pytest

from jetstream.spark import consume
from jetstream.spark import stream as stream_module
from tests.spark.support import check_left, fill, make, query_reader, sequences


@pytest.fixture(autouse=True)
def before(monkeypatch):
    monkeypatch.setattr(stream_module, "LIMITED", False)
    monkeypatch.setattr(stream_module, "_POLL", 0.0)
    monkeypatch.setattr(stream_module, "_LONGEST_WAIT", 0.0)
    monkeypatch.setattr(consume, "_POLL", 0.05)


def test_one_batch_has_all_available_messages(server, js, name):
    make(js, name, 10)
    reader = query_reader(server, stream=name)
    end = reader.latestOffset()  # before the initial offset
    assert end["streams"][name]["next"] == 11
    fill(js, name, 5)
    later = reader.latestOffset()
    assert sequences(reader, reader.partitions(end, later)) == list(range(11, 16))
    assert reader.latestOffset() == later
    # The first batch was not finished: the next driver gets its end.
    again = query_reader(server, stream=name)
    assert sequences(again, again.partitions(again.initialOffset(), later)) == list(range(11, 16))


def test_limits_are_ignored_with_a_warning(server, js, name):
    with pytest.warns(UserWarning, match="maxMessagesPerTrigger: ignored, PySpark is older"):
        reader = query_reader(server, stream=name, maxMessagesPerTrigger=5)
    assert reader.limits.most == 0


def test_a_consumed_batch_is_acknowledged_when_the_next_one_is_planned(server, js, name):
    """Spark reports a finished batch in no other way, and never the last one of a query."""
    make(js, name, 10, retention="workqueue")
    js.create_consumer(name, durable_name="worker")
    options = {"mode": "consume", "consumer": "worker", "maxMessagesPerTrigger": 6}
    reader = query_reader(server, stream=name, **options)
    start = reader.initialOffset()
    for rows, left in ([1, 2, 3, 4, 5, 6], 10), ([7, 8, 9, 10], 4):
        end = reader.latestOffset()
        reader.commit(start)
        assert sequences(reader, reader.partitions(start, end)) == rows
        check_left(js, name, left)
        start = end
