"""What the sink does with rows, against a real server, without Spark."""

from __future__ import annotations

import logging
import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from jetstream.blocking import JetStream
from jetstream.errors import InvalidResponse, NoStreamResponse, StreamNotFound
from jetstream.spark.atomic import AtomicWriter, WriterFenced
from jetstream.spark.columns import Encoder
from jetstream.spark.connect import client as client_of
from jetstream.spark.connect import forget, jetstream
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sending import Sender, Tally, WriteFailed
from jetstream.spark.sink import BatchWriter, batch_writer
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidValue, TimeoutExpired
from natsproto.testing import Server


def make_batch(start, end, **columns):
    numbers = range(start, end)
    arrays = {"data": [b"%d" % number for number in numbers]}
    arrays.update({name: [make(number) for number in numbers] for name, make in columns.items()})
    return pa.RecordBatch.from_pydict(arrays)


def stored(js, stream):
    """The payloads in order, without markers."""
    info = js.stream(stream).info().state
    found = []
    while info.messages and (not found or found[-1].seq < info.last_seq):
        after = found[-1].seq + 1 if found else 1
        found += js.stream(stream).get_msgs(batch=1000, seq=after)
    return [int(msg.data) for msg in found if ".mark." not in msg.subject]


@pytest.fixture
def make(js, name):
    """Makes the stream; returns the settings of a write to it."""

    def make(options=None, **config):
        js.create_stream(
            name=name,
            subjects=[f"{name}.>"],
            allow_direct=True,
            **{"storage": "memory", **config},
        )
        return options

    return make


@pytest.fixture
def settings(server, name):
    return read_options({"servers": server.url, "subject": f"{name}.a"}, WRITE)


def send(settings, *batches, ids="w.0", window=100):
    encoder = Encoder(settings, ids)
    with Sender(client_of(settings), jetstream(settings), window, 5.0) as sender:
        for batch in batches:
            sender.send(encoder.encode(batch))
        sender.finish()
    return sender.tally


def seen(tally):
    return tally.rows, tally.duplicates, tally.streams


@pytest.mark.parametrize("window", [1, 7, 5000])
def test_every_row_once_and_in_order(js, name, make, settings, window):
    make()
    batches = [
        make_batch(0, 1),
        make_batch(1, 1001),
        make_batch(1001, 1001),
        make_batch(1001, 1500),
    ]
    assert seen(send(settings, *batches, window=window)) == (1500, 0, {name: (1, 1500)})
    assert stored(js, name) == list(range(1500))


def test_a_second_attempt_is_dropped_by_ids(js, name, make, settings):
    make()
    send(settings, make_batch(0, 300))
    assert seen(send(settings, make_batch(0, 1000))) == (1000, 300, {name: (1, 1000)})
    assert stored(js, name) == list(range(1000))
    assert repr(send(settings, make_batch(0, 2))) == f"2 rows, 2 of them stored before: {name} 1-2"


def test_without_ids_it_is_stored_again(js, name, make, settings):
    make()
    send(settings, make_batch(0, 300), ids="")
    assert seen(send(settings, make_batch(0, 1000), ids="")) == (1000, 0, {name: (301, 1300)})


def test_rows_that_expect_a_sequence_are_stored_once(js, name, make, settings):
    make()
    batch = make_batch(0, 5, expected_last_subject_sequence=lambda number: number)
    send(settings, batch.slice(0, 3))
    assert seen(send(settings, batch)) == (5, 3, {name: (1, 5)})
    with pytest.raises(WriteFailed, match="WrongLastSequence: wrong last"):
        send(settings, batch, ids="another")
    assert stored(js, name) == list(range(5))


def test_tallies_add_up():
    total = Tally()
    one = Tally()
    one.count("S", 5, 9, 5, 1)
    two = Tally()
    two.count("S", 1, 3, 3)
    two.count("T", 7, 7, 1)
    total.add(one)
    total.add(two)
    assert seen(total) == (9, 1, {"S": (1, 9), "T": (7, 7)})
    assert repr(Tally()) == "0 rows, 0 of them stored before: nowhere"


REFUSED = [  # why,  the stream,  the rows,  the row that is named,  the error
    (
        "full",
        {"max_msgs": 10, "discard": "new"},
        make_batch(0, 20),
        10,
        "StoreFailed: maximum messages exceeded (503, 10077)",
    ),
    (
        "another sequence expected",
        {},
        make_batch(0, 3, expected_last_subject_sequence=lambda number: 2 * number),
        1,
        "WrongLastSequence: wrong last sequence: 1 (400, 10071)",
    ),
    (
        "message too large",
        {"max_msg_size": 100},
        pa.RecordBatch.from_pydict({"data": [b"", bytes(200)]}),
        1,
        "MessageTooLarge: ",
    ),
    (
        "no times to live",
        {},
        make_batch(0, 1, ttl=lambda number: 60),
        0,
        "TtlDisabled: per-message TTL is disabled",
    ),
    (
        "above the payload of the server",
        {},
        pa.RecordBatch.from_pydict({"data": [b"", bytes(2 * 1024 * 1024)]}),
        1,
        "PayloadTooLarge: 209",
    ),
]


@pytest.mark.parametrize(
    ("config", "batch", "row", "why"),
    [each[1:] for each in REFUSED],
    ids=[each[0] for each in REFUSED],
)
def test_what_the_server_refuses_fails_the_task(js, name, make, settings, config, batch, row, why):
    make(**config)
    with pytest.raises(WriteFailed) as caught:
        send(settings, batch)
    assert str(caught.value).startswith(f"row {row} to '{name}.a': {why}")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.row, again.subject, str(again)) == (row, f"{name}.a", str(caught.value))


def test_no_stream(name, settings):
    with pytest.raises(WriteFailed) as caught:
        send(settings, make_batch(0, 3))
    assert isinstance(caught.value.error, NoStreamResponse)


def test_another_stream_than_the_wanted_one(name, make, server):
    make()
    settings = read_options(
        {"servers": server.url, "subject": f"{name}.a", "stream": "OTHER"}, WRITE
    )
    with pytest.raises(WriteFailed, match="WrongStream: expected stream does not match"):
        send(settings, make_batch(0, 3))


def test_what_may_not_be_published(name):
    user = {"user": "joe", "password": "pw", "permissions": {"publish": {"deny": f"{name}.a"}}}
    config = {"authorization": {"users": [user]}}
    with Server(jetstream=True, config=config) as server:
        settings = read_options(
            {"servers": server.url, "subject": f"{name}.a", "user": "joe", "password": "pw"}, WRITE
        )
        with pytest.raises(WriteFailed, match=r"row 0 to .* PermissionDenied: "):
            send(settings, make_batch(0, 3))
        forget(settings)


@pytest.mark.parametrize("ids", ["w.0", ""], ids=["ids", "no ids"])
@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_server_that_restarts(name, end, ids):
    with Server(jetstream=True) as server, connect(server.url) as other:
        js = JetStream(other)
        js.create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True)
        settings = read_options({"servers": server.url, "subject": f"{name}.a"}, WRITE)
        encoder = Encoder(settings, ids)
        with Sender(client_of(settings), jetstream(settings), 500, 5.0) as sender:
            sender.send(encoder.encode(make_batch(0, 3000)))
            getattr(server, end)()
            server.restart()
            sender.send(encoder.encode(make_batch(3000, 6000)))
            sender.finish()
        with connect(server.url) as another:
            numbers = stored(JetStream(another), name)
        forget(settings)
    assert sender.tally.rows == 6000
    assert sorted(set(numbers)) == list(range(6000))
    if ids:
        assert len(numbers) == 6000


# delivery=atomic


@pytest.fixture
def atomic(server, name):
    return read_options(
        {
            "servers": server.url,
            "subject": f"{name}.a",
            "stream": name,
            "delivery": "atomic",
            "markerSubject": f"{name}.mark",
        },
        WRITE,
    )


class Attempt(AtomicWriter):
    """An attempt at the one task of a write."""

    def __init__(self, settings, write=0):
        super().__init__(settings, settings.text("markerSubject") + ".w.0", write)
        self.settings = settings
        self.skipped = self.take_over()

    def put(self, batch):
        batch_id = self.new_id()
        self.write(batch_id, Encoder(self.settings, "").encode(batch, batch_id))


class Deaf(Attempt):
    """It does not hear that its first batch is stored."""

    deaf = True

    async def _store(self, batch_id, pieces, rows):
        seq = await super()._store(batch_id, pieces, rows)
        if self.deaf:
            self.deaf = False
            raise TimeoutExpired("no answer")
        return seq


class Mute(Attempt):
    """Its first batch does not reach the server, as far as it knows."""

    mute = True

    async def _store(self, batch_id, pieces, rows):
        if self.mute:
            self.mute = False
            pieces = pieces[:1]
            await self._check_begin(self._request(*pieces[0]))
            raise TimeoutExpired("no answer")
        return await super()._store(batch_id, pieces, rows)


def test_batches_and_their_markers(js, name, make, atomic):
    make(allow_atomic=True)
    attempt = Attempt(atomic)
    assert attempt.skipped == 0
    attempt.put(make_batch(0, 999))
    attempt.put(make_batch(999, 1000))
    assert seen(attempt.tally) == (1000, 0, {name: (2, 1002)})
    assert stored(js, name) == list(range(1000))
    assert js.stream(name).info().state.messages == 1003


def test_the_next_attempt_skips_what_is_stored(js, name, make, atomic):
    make(allow_atomic=True)
    Attempt(atomic).put(make_batch(0, 600))
    attempt = Attempt(atomic)
    assert attempt.skipped == 600
    attempt.put(make_batch(600, 1000))
    assert Attempt(atomic).skipped == 1000
    assert Attempt(atomic, 1).skipped == 0
    assert stored(js, name) == list(range(1000))


def test_a_zombie_is_fenced(js, name, make, atomic):
    make(allow_atomic=True)
    zombie = Attempt(atomic)
    zombie.put(make_batch(0, 10))
    attempt = Attempt(atomic)
    with pytest.raises(WriterFenced, match="another attempt has taken over"):
        zombie.put(make_batch(10, 20))
    attempt.put(make_batch(10, 20))
    with pytest.raises(WriterFenced):
        zombie.put(make_batch(20, 30))
    assert stored(js, name) == list(range(20))


def test_a_zombie_of_an_old_micro_batch_is_fenced(js, name, make, atomic):
    make(allow_atomic=True)
    old = Attempt(atomic, 4)
    Attempt(atomic, 5).put(make_batch(0, 10))
    with pytest.raises(WriterFenced, match="a later micro-batch has taken over"):
        old.put(make_batch(0, 10))
    with pytest.raises(WriterFenced, match="a later micro-batch has taken over"):
        Attempt(atomic, 4)
    assert stored(js, name) == list(range(10))


def test_no_window_is_needed(js, name, make, atomic, settings):
    make(allow_atomic=True, duplicate_window=0.1)
    Attempt(atomic).put(make_batch(0, 10))
    send(settings, make_batch(100, 101))
    while send(settings, make_batch(100, 101)).duplicates:
        pass  # until the stream has forgotten the id
    attempt = Attempt(atomic)
    assert attempt.skipped == 10
    numbers = stored(js, name)
    assert numbers == [*range(10), 100, 100]


@pytest.mark.parametrize("kind", [Deaf, Mute])
def test_a_batch_in_doubt(js, name, make, atomic, kind):
    make(allow_atomic=True)
    attempt = kind(atomic)
    attempt.put(make_batch(0, 500))
    attempt.put(make_batch(500, 1000))
    assert attempt.tally.rows == 1000
    assert stored(js, name) == list(range(1000))


class Patient(Attempt):
    """While it waits for its turn, others finish."""

    others = ()

    def _rest(self, turn):
        self.others.pop().commit(f"{self.settings.list('stream')[0]}.b", b"1")


def test_the_server_takes_fifty_batches_at_a_time(js, name, make, atomic):
    make(allow_atomic=True)
    attempt = Patient(atomic)
    attempt.others = [js.atomic_batch() for _ in range(50)]
    for other in attempt.others:
        other.add(f"{name}.b", b"0")
    attempt.put(make_batch(2, 10))
    assert len(attempt.others) == 49
    assert stored(js, name) == [0, 1, *range(2, 10)]


def test_atomic_on_a_server_that_restarts(name):
    with Server(jetstream=True) as server, connect(server.url) as other:
        js = JetStream(other)
        js.create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True, allow_atomic=True)
        texts = {"servers": server.url, "subject": f"{name}.a", "stream": name}
        settings = read_options(
            {**texts, "delivery": "atomic", "markerSubject": f"{name}.mark"}, WRITE
        )
        attempt = Attempt(settings)
        for number in range(0, 3000, 500):
            if number == 1000:
                server.kill()
                server.restart()
            attempt.put(make_batch(number, number + 500))
        with connect(server.url) as another:
            numbers = stored(JetStream(another), name)
        forget(settings)
    assert numbers == list(range(3000))


ATOMIC_REFUSED = [
    ("a stream without batches", {}, make_batch(0, 3), "BatchRefused: "),
    (
        "a row expects another sequence",
        {"allow_atomic": True},
        make_batch(0, 3, expected_last_subject_sequence=lambda number: 7),
        "WrongLastSequence: wrong last sequence",
    ),
    (
        "full",
        {"allow_atomic": True, "max_msgs": 10, "discard": "new"},
        make_batch(0, 20),
        "StoreFailed: maximum messages exceeded",
    ),
]


@pytest.mark.parametrize(
    ("config", "batch", "why"),
    [each[1:] for each in ATOMIC_REFUSED],
    ids=[each[0] for each in ATOMIC_REFUSED],
)
def test_what_is_refused_leaves_nothing(js, name, make, atomic, config, batch, why):
    make(**config)
    attempt = Attempt(atomic)
    with pytest.raises(WriteFailed) as caught:
        attempt.put(batch)
    assert why in str(caught.value)
    assert stored(js, name) == []


def test_somebody_else_on_the_subject_of_markers(js, name, make, atomic):
    make(allow_atomic=True)
    js.publish(f"{name}.mark.w.0", b"hello")
    with pytest.raises(InvalidResponse, match="message 1 on a marker subject is no marker"):
        Attempt(atomic)


# What is checked on the driver

DATA = StructType().add("data", StringType())


def options(server, name, **more):
    return read_options({"servers": server.url, "subject": f"{name}.a", **more}, WRITE)


def test_a_short_duplicate_window_is_warned_of(server, name, make, caplog):
    make(duplicate_window=30)
    batch_writer(options(server, name), DATA, False)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"stream {name} has a duplicate_window of 30 s" in caplog.text
    caplog.clear()
    batch_writer(options(server, name, minDuplicateWindow="30s"), DATA, False)
    batch_writer(options(server, name, delivery="atLeastOnce"), DATA, False)
    assert not caplog.records


WRONG_TARGETS = [
    (StreamNotFound, "no stream takes subject", {"subject": "nobody.there"}),
    (StreamNotFound, "stream not found", {"stream": "NOBODY"}),
    (
        InvalidValue,
        "does not have allow_atomic",
        {"delivery": "atomic", "markerSubject": "NAME.mark", "stream": "NAME"},
    ),
    (InvalidValue, "does not have allow_batched", {"delivery": "fast", "stream": "NAME"}),
    (InvalidValue, "never overwritten", {"overwrite": True}),
    (InvalidValue, "column ttl: stream NAME does not have allow_msg_ttl", {"ttl": True}),
]


@pytest.mark.parametrize(("error", "why", "more"), WRONG_TARGETS)
def test_wrong_targets(server, name, make, error, why, more):
    make()
    more = {k: v.replace("NAME", name) if isinstance(v, str) else v for k, v in more.items()}
    schema = StructType().add("data", StringType())
    if more.pop("ttl", False):
        schema.add("ttl", StringType())
    overwrite = more.pop("overwrite", False)
    with pytest.raises(error) as caught:
        batch_writer(options(server, name, **more), schema, overwrite)
    assert why.replace("NAME", name) in str(caught.value)


def test_markers_go_to_the_same_stream(server, name, make):
    make(allow_atomic=True)
    more = {"delivery": "atomic", "stream": name, "markerSubject": "elsewhere"}
    with pytest.raises(InvalidValue, match="option markerSubject: stream"):
        batch_writer(options(server, name, **more), DATA, False)


WRONG_OPTIONS = [
    ({"delivery": "fast"}, "delivery=fast needs option stream"),
    ({"delivery": "twice"}, "option delivery 'twice' is not one of dedup, atomic, fast"),
    ({"delivery": "atomic", "stream": "S"}, "delivery=atomic needs option markerSubject"),
    ({"delivery": "atomic", "markerSubject": "m"}, "delivery=atomic needs option stream"),
    ({"markerSubject": "m"}, "option markerSubject is for delivery=atomic, not dedup"),
    ({"minDuplicateWindow": "1s", "delivery": "atLeastOnce"}, "is for delivery=dedup"),
    ({"stream": "A,B"}, "option stream: a write goes to one"),
    ({"subject": "a.*"}, "option subject: subject 'a.*' has a wildcard"),
    ({"writeId": "a.b"}, "option writeId 'a.b' is not one token"),
    ({"maxInFlight": "0"}, "option maxInFlight '0' is not a whole number"),
    ({"startingOffsets": "earliest"}, "option startingOffsets is for"),
    ({"maxInFligth": "1"}, "did you mean maxInFlight?"),
]


@pytest.mark.parametrize(("texts", "why"), WRONG_OPTIONS)
def test_wrong_options(texts, why):
    with pytest.raises(InvalidValue) as caught:
        read_options(texts, WRITE)
    assert why in str(caught.value)


def test_a_driver_without_a_connection_checks_nothing(name, caplog):
    with Server(jetstream=True) as server:
        gone = server.url
    settings = read_options({"servers": gone, "subject": f"{name}.a"}, WRITE)
    assert isinstance(batch_writer(settings, DATA, False), BatchWriter)
    assert "the stream cannot be asked, so nothing is checked" in caplog.text


def test_a_driver_that_finds_no_leader_checks_nothing(name, caplog):
    """In an election nobody answers; without JetStream it is the same."""
    with Server() as server:
        settings = read_options({"servers": server.url, "subject": f"{name}.a"}, WRITE)
        assert isinstance(batch_writer(settings, DATA, False), BatchWriter)
        forget(settings)
    assert "the stream cannot be asked, so nothing is checked: no JetStream answers" in caplog.text
