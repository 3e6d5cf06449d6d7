"""The window of a write against a real server, without Spark: dedup and atLeastOnce."""

from __future__ import annotations

import pickle
import threading

import pyarrow as pa
import pytest

from jetstream.blocking import JetStream
from jetstream.errors import NoStreamResponse
from jetstream.spark.connect import client as client_of
from jetstream.spark.connect import forget, jetstream
from jetstream.spark.encoder import Encoder
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sending import Sender, Tally, WriteFailed
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.spark.sinks import each_refused, in_order, make_batch, seen


@pytest.fixture
def settings(plain):
    return read_options(plain, WRITE)


def send(settings, *batches, ids="w.0", window=100):
    encoder = Encoder(settings, ids)
    with Sender(client_of(settings), jetstream(settings), window, 5.0) as sender:
        for batch in batches:
            sender.send(encoder.encode(batch))
        sender.finish()
    return sender.tally


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
    assert in_order(js.stream(name)) == list(range(1500))


def test_blocks_are_limited_by_rows_and_bytes(js, name, make, settings, monkeypatch):
    make()
    sizes = [0, *[1000] * 600, 400_000, 300_000, 1000, *[0] * 600]
    blocks = []
    send_block = Sender._send_block

    def record(self, pieces):
        blocks.append([len(data) for _, data, _ in pieces])
        send_block(self, pieces)

    monkeypatch.setattr(Sender, "_send_block", record)
    batch = pa.RecordBatch.from_pydict({"data": [bytes(size) for size in sizes]})
    assert seen(send(settings, batch, window=5000)) == (1204, 0, {name: (1, 1204)})
    assert [size for block in blocks for size in block] == sizes
    assert [len(block) for block in blocks] == [263, 262, 76, 1, 1, 512, 89]


def test_the_ids_of_a_second_attempt_are_dropped(js, name, make, settings):
    make()
    send(settings, make_batch(0, 300))
    assert seen(send(settings, make_batch(0, 1000))) == (1000, 300, {name: (1, 1000)})
    assert in_order(js.stream(name)) == list(range(1000))
    assert repr(send(settings, make_batch(0, 2))) == f"2 rows, 2 of them stored before: {name} 1-2"


def test_rows_without_ids_are_stored_again(js, name, make, settings):
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
    assert in_order(js.stream(name)) == list(range(5))


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


@each_refused
def test_a_row_that_the_server_rejects_fails_the_task(
    js, name, make, settings, config, batch, row, why
):
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


def test_a_row_for_another_stream_is_rejected(name, make, server):
    make()
    settings = read_options(
        {"servers": server.url, "subject": f"{name}.a", "stream": "OTHER"}, WRITE
    )
    with pytest.raises(WriteFailed, match="WrongStream: expected stream does not match"):
        send(settings, make_batch(0, 3))


def test_a_row_without_permission_fails_the_task(name):
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
            numbers = in_order(JetStream(another).stream(name))
        forget(settings)
    assert sender.tally.rows == 6000
    assert sorted(set(numbers)) == list(range(6000))
    if ids:
        assert len(numbers) == 6000


def test_a_window_full_of_rows_in_doubt(name):
    """Rows that are sent again leave no room for others."""
    with Server(jetstream=True) as server, connect(server.url) as other:
        JetStream(other).create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True)
        settings = read_options({"servers": server.url, "subject": f"{name}.a"}, WRITE)
        encoder = Encoder(settings, "")
        with Sender(client_of(settings), jetstream(settings), 3, 1.0) as sender:
            server.freeze()
            thawing = threading.Timer(1.5, server.thaw)
            thawing.start()
            sender.send(encoder.encode(make_batch(0, 9)))
            sender.finish()
            thawing.join()
        numbers = in_order(JetStream(other).stream(name))
        forget(settings)
    assert (sender.tally.rows, sorted(set(numbers))) == (9, list(range(9)))
    assert len(numbers) > 9
