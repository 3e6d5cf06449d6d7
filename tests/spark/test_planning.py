"""How reads are planned: equal parts, limits of bytes, and no more messages than necessary."""

from __future__ import annotations

import itertools
import random

import pytest

from jetstream.spark import connect as connections
from jetstream.spark.cuts import find_cuts
from jetstream.spark.loss import PullWatch
from jetstream.spark.offsets import DataLost
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.pace import Pace
from jetstream.spark.ranges import Range
from jetstream.spark.sizes import size_of
from natsproto.errors import InvalidValue
from tests.spark.stepping import Query, needs_limits
from tests.spark.support import batch_reader, fill, make, query_reader, rows_of, sequences
from tests.spark.tasks import write_batch

pytestmark = pytest.mark.usefixtures("impatient")

# Equal parts


@pytest.mark.parametrize("seed", range(50))
def test_cuts_make_equal_parts(seed):
    dice = random.Random(seed)
    end = dice.randint(10, 5000)
    matches = sorted(dice.sample(range(1, end), dice.randint(2, min(end - 1, 400))))
    if seed % 2:
        matches = [seq for seq in matches if seq > end // 2] or [end - 1]  # a cluster
    probes = []

    def count_from(seq):
        probes.append(seq)
        return sum(each >= seq for each in matches)

    parts = min(dice.randint(2, 8), len(matches))
    places = [1, *find_cuts(count_from, 1, end, parts), end]
    sizes = [sum(a <= each < b for each in matches) for a, b in itertools.pairwise(places)]
    assert sum(sizes) == len(matches)
    assert max(sizes) <= 1.2 * len(matches) / parts + 1
    assert len(probes) <= 2 + 24 * (parts - 1)


def clustered(js, name, count=2000):
    """Make a stream in which one subject has only the last tenth of the messages."""
    make(js, name, **{"storage": "memory"})
    with js.publisher(max_pending=1000) as publisher:
        for i in range(count):
            publisher.publish(f"{name}.{'new' if i >= count * 0.9 else 'old'}", b"%d" % i)


def test_partitions_of_a_filter_are_equal(server, js, name):
    clustered(js, name)
    reader = batch_reader(server, stream=name, subject=f"{name}.new", minPartitions=4)
    assert [len(sequences(reader, [part])) for part in reader.partitions()] == [50, 50, 50, 50]


@needs_limits
def test_partitions_of_a_filter_in_a_query_are_in_its_offset(server, js, name):
    """A replay has the same parts, though the messages are others by then."""
    clustered(js, name)
    options = {"stream": name, "subject": f"{name}.new", "startingOffsets": "earliest"}
    query = Query(query_reader(server, minPartitions=4, **options))
    end = query.plan()
    assert end["v"] == 2
    parts = [sequences(query.reader, [part]) for part in query.reader.partitions(query.start, end)]
    assert [len(part) for part in parts] == [50, 50, 50, 50]
    fill(js, name, 500)
    for again in (Query(query_reader(server, **options)), query):
        replayed = again.reader.partitions(query.start, end)
        assert [sequences(query.reader, [part]) for part in replayed] == parts


# No more messages than necessary


@pytest.mark.parametrize("share", [1, 3, 50, 5000])
def test_a_sparse_range_is_not_left_far_behind(share):
    part = Range("S", 1, 20_001, ["a"], "")
    pace = Pace(part, 1, 10_000)
    position = fetched = 1
    while position < part.end:
        wanted = pace.next(position)
        position += wanted * share
        fetched += wanted
        pace.got(wanted, position)
    assert fetched <= 1.2 * 20_000 / share + 256


def delivered(server):
    return server.monitor("/varz")["out_msgs"]


def test_partitions_of_a_part_of_a_stream_fetch_little(server, js, name):
    clustered(js, name, 20_000)
    reader = batch_reader(server, stream=name, subject=f"{name}.old", minPartitions=20)
    partitions = reader.partitions()
    before = delivered(server)
    assert len(sequences(reader, partitions)) == 18_000
    assert delivered(server) - before <= 1.3 * 18_000


def test_partitions_with_few_matches_fetch_little(server, js, name):
    """The messages after a range match as well, and a pull has no last sequence."""
    make(js, name, 20_000, subjects=10, storage="memory")
    reader = batch_reader(server, stream=name, subject=f"{name}.3", minPartitions=4)
    partitions = reader.partitions()
    before = delivered(server)
    assert [len(sequences(reader, [part])) for part in partitions] == [500] * 4
    assert delivered(server) - before <= 1.3 * 2000


# Limits of bytes


def batches_of(query):
    found = []
    while (end := query.plan()) != query.start:
        rows = rows_of(query.reader, query.reader.partitions(query.start, end))
        found.append([len(row["data"]) for row in rows])
        query.start = end
    return found


@needs_limits
@pytest.mark.parametrize("mode", ["pull", "direct"])
def test_bytes_with_messages_of_uneven_size(server, js, name, mode):
    make(js, name, 1000, allow_direct=True)
    with js.publisher() as publisher:
        for size in (50_000,) * 20 + (150_000,) * 2:
            publisher.publish(f"{name}.0", bytes(size))
    options = {"stream": name, "startingOffsets": "earliest", "maxBytesPerTrigger": 100_000}
    found = batches_of(Query(query_reader(server, ("data",), fetchMode=mode, **options)))
    assert sum(len(sizes) for sizes in found) == 1022
    assert all(sum(sizes) <= 100_000 or len(sizes) == 1 for sizes in found)
    assert len(found) <= 15


@needs_limits
def test_bytes_of_several_streams(server, js, name):
    for stream, size in ((f"{name}A", 10), (f"{name}B", 5000)):
        make(js, stream)
        with js.publisher() as publisher:
            for _ in range(40):
                publisher.publish(f"{stream}.0", bytes(size))
    options = {"stream": f"{name}A,{name}B", "startingOffsets": "earliest"}
    query = Query(query_reader(server, ("data",), maxBytesPerTrigger=20_000, **options))
    found = batches_of(query)
    assert sum(len(sizes) for sizes in found) == 80
    assert all(sum(sizes) <= 20_000 for sizes in found)


@needs_limits
def test_a_query_that_has_caught_up_does_not_read_sizes(server, js, name, monkeypatch):
    make(js, name, 1000)
    options = {"stream": name, "startingOffsets": "earliest", "maxBytesPerTrigger": 1000}
    query = Query(query_reader(server, ("data",), **options))
    batches_of(query)
    monkeypatch.setattr("jetstream.spark.sizes.read_sizes", None)
    for _ in range(3):
        fill(js, name, 5)
        assert [len(sizes) for sizes in batches_of(query)] == [5]


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (b"NATS/1.0\r\nNats-Msg-Size: 12\r\n\r\n", 12),
        (b"NATS/1.0\r\nA: b\r\nNats-Msg-Size: 0\r\n\r\n", len(b"NATS/1.0\r\nA: b\r\n\r\n")),
    ],
)
def test_the_size_of_a_message(block, size):
    assert size_of(block) == size


def test_a_message_without_a_size():
    with pytest.raises(InvalidValue, match="no Nats-Msg-Size"):
        size_of(b"NATS/1.0\r\n\r\n")


# Lost data


@pytest.fixture
def prompt(monkeypatch):
    """The server answers requests for the state of a stream at once."""
    queries = "jetstream.spark.queries.StreamQueries"
    monkeypatch.setattr(f"{queries}.request_snapshot", lambda self: Answered(self.snapshot()))


class Answered:
    def __init__(self, snapshot):
        self._snapshot = snapshot

    def wait(self):
        return self._snapshot


@pytest.mark.usefixtures("prompt")
def test_messages_that_are_removed_after_they_were_read(server, js, name):
    """The head of the stream passes the start of the range while its rows wait downstream."""
    stream = make(js, name, 3000, subjects=2)
    for options in ({"subject": f"{name}.0"}, {}):
        reader = batch_reader(server, stream=name, arrowBatchRows=100, **options)
        first = stream.info().state.first_seq
        stream.delete_msg(first + 1)
        batches = reader.read(reader.partitions()[0])
        rows = next(batches).num_rows
        stream.purge(seq=first + 200)  # a part of the first pull; the second may not have arrived
        rows += sum(batch.num_rows for batch in batches)
        expected = 3001 - first
        assert rows == (expected // 2 if options else expected - 1)


def test_messages_that_are_removed_between_two_pulls(server, js, name):
    stream = make(js, name, 3000, subjects=2, max_msgs=100_000)
    for options in ({"subject": f"{name}.0"}, {}):
        reader = batch_reader(server, stream=name, fetchSize=200, arrowBatchRows=100, **options)
        first = stream.info().state.first_seq
        batches = reader.read(reader.partitions()[0])
        next(batches)
        stream.purge(seq=first + 1200)
        seen = []
        with pytest.raises(DataLost, match=rf"of stream {name} were removed"):
            list(map(seen.append, batches))
        # The rest of the first pull; the second may have reached the server before the purge.
        assert len(seen) >= 1


@pytest.mark.usefixtures("prompt")
def test_messages_that_are_removed_after_the_last_one_was_read(server, js, name):
    """The range does not end with a message of the filter, and its rows wait downstream."""
    stream = make(js, name, 300, subjects=2, max_msgs=100_000)
    reader = batch_reader(server, stream=name, subject=f"{name}.0", arrowBatchRows=100)
    batches = reader.read(reader.partitions()[0])
    rows = next(batches).num_rows
    stream.purge()
    assert rows + sum(batch.num_rows for batch in batches) == 150


class Looks:
    """Stands for a LossWatch, and records what it is asked."""

    def __init__(self):
        self.calls = []

    def request(self):
        self.calls.append("request")
        return "request"

    def look(self, first, last, request=None):
        self.calls.append((first, last, request))


@pytest.mark.parametrize(
    ("volatile", "pulls", "calls"),
    [
        # The state is requested when a pull has ended, and looked at when the next one has.
        (True, [(5, 10, 15)], ["request", (1, 10, "request"), (11, 100, None)]),
        (
            True,
            [(5, 10, 15), (5, 20, 10), (10, 40, 0)],
            ["request", (1, 10, "request"), "request", (11, 20, "request"), "request"]
            + [(21, 100, "request")],
        ),
        # No gap, no request.
        (True, [(10, 10, 10), (10, 20, 0)], ["request", (11, 100, "request")]),
        # Without limits the first pull needs no request, unless messages are missing.
        (False, [(5, 10, 15), (5, 20, 10)], ["request", (11, 20, "request"), (21, 100, None)]),
        (False, [(5, 10, 15), (5, 20, 9)], ["request", (1, 20, "request"), (21, 100, None)]),
        (False, [(20, 40, 0)], []),
        (False, [(19, 40, 0)], ["request", (1, 100, "request")]),
        (False, [(5, 10, 14)], ["request", (1, 10, "request")]),
        # A second pull without a message.
        (False, [(5, 10, 15), None], [(11, 100, None)]),
    ],
)
def test_what_is_looked_at(volatile, pulls, calls):
    looks = Looks()
    part = Range("S", 1, 101, ["a"], "")
    part.volatile = volatile
    watch = PullWatch(looks, part, 1, 20)
    total = 0
    for pull in pulls:
        watch.requested()
        if pull is not None:
            count, last, pending = pull
            total += count
            watch.pulled(count, last, total, pending)
    watch.ended()
    assert looks.calls == calls


def test_new_messages_do_not_hide_that_others_are_removed(server, js, name):
    """The consumer counts as many messages as before, because it counts the new ones."""
    stream = make(js, name, 3000, subjects=2, max_msgs=100_000)
    options = {"subject": f"{name}.0", "fetchSize": 200, "arrowBatchRows": 100}
    reader = batch_reader(server, stream=name, **options)
    batches = reader.read(reader.partitions()[0])
    next(batches)
    fill(js, name, 3000, subjects=2)
    stream.purge(seq=2001)
    with pytest.raises(DataLost, match=rf"of stream {name} were removed"):
        list(batches)


def test_a_frame_does_not_read_another_stream(server, js, name):
    """The new stream has messages at all sequences of the read."""
    stream = make(js, name, 20)
    for fail in ("true", "false"):
        reader = batch_reader(server, stream=name, failOnDataLoss=fail)
        partitions = reader.partitions()
        stream.delete()
        stream = make(js, name, 30)
        if fail == "false":
            assert sequences(reader, partitions) == []
        else:
            with pytest.raises(DataLost, match="was recreated"):
                sequences(reader, partitions)


# Consistency


def test_a_start_in_the_future(server, js, name):
    make(js, name, 3)
    options = {"stream": name, "startingTimestamp": "2200-01-01T00:00:00Z"}
    with pytest.raises(InvalidValue, match="2200-01-01T00:00:00Z is in the future"):
        batch_reader(server, **options).partitions()
    with pytest.raises(InvalidValue, match="2200-01-01T00:00:00Z is in the future"):
        query_reader(server, **options).initialOffset()


def test_a_start_after_the_end(server, js, name):
    """A sequence that does not exist yet is more likely a mistake than a wish for no rows."""
    make(js, name, 3)
    assert sequences(batch_reader(server, stream=name, startingOffsets=4)) == []
    for reader in (batch_reader, query_reader):
        made = reader(server, stream=name, startingOffsets=5)
        with pytest.raises(InvalidValue, match=f"stream {name} ends before sequence 4, not 5"):
            made.partitions() if reader is batch_reader else made.initialOffset()


def test_tasks_wait_for_a_limited_number_of_consumers(server, js, name):
    make(js, name, 100, max_consumers=1)
    reader = batch_reader(server, stream=name, minPartitions=2, fetchSize=10, arrowBatchRows=10)
    one, two = (reader.read(part) for part in reader.partitions())
    first = next(one)

    def ends():
        """Finish the first task, while the second one waits for its turn."""
        list(one)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jetstream.spark.retry.time.sleep", lambda seconds: ends())
        assert sum(batch.num_rows for batch in two) == 50
    assert first.num_rows == 10


def test_a_process_keeps_few_connections(server, js, name, monkeypatch):
    make(js, name, 3)
    settings = [
        read_options({"servers": server.url, "inboxPrefix": f"_I{i}"}, WRITE) for i in range(6)
    ]
    made = [connections.client(each) for each in settings]
    assert [client.state for client in made[-4:]] == ["CONNECTED"] * 4
    assert [client.state for client in made[:2]] == ["CLOSED"] * 2
    connections.client(settings[2])  # now it is the last used
    connections.client(settings[0])
    assert (made[2].state, made[3].state) == ("CONNECTED", "CLOSED")
    for each in settings:
        connections.forget(each)


def test_markers_of_unnamed_writes_do_not_grow(js, name, make, atomic, monkeypatch):
    stream = make(allow_atomic=True)
    options = {key: atomic[key] for key in atomic if key != "subject"}
    rows = [[(f"{name}.a", b"1")], [(f"{name}.a", b"2")]]
    clock = [1e9]
    monkeypatch.setattr("jetstream.spark.sink.time.time", lambda: clock[0])
    write_batch({**options, "writeId": "named"}, None, 0, rows)
    for _ in range(5):
        write_batch(options, None, 0, rows)
        clock[0] += 700.0
    markers = stream.info(subjects_filter=f"{name}.mark.>").state.subjects
    assert len([each for each in markers if ".named." in each]) == 2
    assert len(markers) == 4  # of the named write and of the last one
    assert stream.info(subjects_filter=f"{name}.a").state.subjects == {f"{name}.a": 12}
