"""delivery=fast: rows in fast batches on a real server, without Spark and with it."""

from __future__ import annotations

from functools import partial

import pytest

from jetstream.blocking import JetStream
from jetstream.spark.connect import client as client_of
from jetstream.spark.connect import forget, jetstream
from jetstream.spark.encoder import Encoder
from jetstream.spark.fast import FastSender
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sending import WriteFailed
from natsproto.adapters.blocking import connect
from natsproto.testing import Cluster, Server
from tests.spark.sinks import (
    each_refused,
    in_order,
    make_batch,
    make_files,
    payloads,
    run_query,
    seen,
    write,
)


@pytest.fixture
def make(make):
    return partial(make, allow_batched=True)


def options(server, name, **more):
    texts = {"servers": server.url, "subject": f"{name}.a", "stream": name, "delivery": "fast"}
    return read_options({**texts, **more}, WRITE)


def send(settings, *batches, strike=None):
    encoder = Encoder(settings, "")
    with FastSender(client_of(settings), jetstream(settings), 5.0) as sender:
        for number, batch in enumerate(batches):
            sender.send(encoder.encode(batch))
            if number == 0 and strike is not None:
                strike()
        sender.finish()
    return sender.tally


def test_every_row_once_and_in_order(js, server, name, make):
    make()
    parts = [(0, 1), (1, 2001), (2001, 2001), (2001, 5000)]
    tally = send(options(server, name), *[make_batch(*part) for part in parts])
    assert in_order(js.stream(name)) == list(range(5000))
    assert seen(tally) == (5000, 0, {name: (1, 5000)})
    assert seen(send(options(server, name), make_batch(0, 0))) == (0, 0, {})


@pytest.mark.rule("FAST-14")
def test_rows_with_ids_are_stored_once(js, server, name, make):
    make()
    for count in (10, 20):
        assert send(options(server, name), make_batch(0, count, msg_id=str)).rows == count
    assert in_order(js.stream(name)) == list(range(20))


def test_rows_without_ids_are_stored_again(js, server, name, make):
    make()
    for _ in range(2):
        send(options(server, name), make_batch(0, 3))
    assert in_order(js.stream(name)) == [0, 1, 2, 0, 1, 2]


@each_refused
def test_a_row_that_the_server_rejects_fails_the_task(
    js, server, name, make, config, batch, row, why
):
    make(**config)
    with pytest.raises(WriteFailed) as caught:
        send(options(server, name), batch)
    assert str(caught.value).startswith(f"row {row} to '{name}.a': {why}")
    assert js.stream(name).cached_info.state.messages == row


def test_a_row_for_another_stream(js, server, name, make):
    make()
    js.create_stream(name=f"{name}-2", subjects=["elsewhere." + name], allow_batched=True)
    batch = make_batch(0, 4, subject=lambda n: "elsewhere." + name if n == 2 else f"{name}.a")
    with pytest.raises(WriteFailed, match="row 2 to 'elsewhere"):
        send(options(server, name), batch)
    assert in_order(js.stream(name)) == [0, 1]
    assert in_order(js.stream(f"{name}-2")) == []


def test_a_row_for_no_stream(js, server, name, make):
    make()
    batch = make_batch(0, 4, subject=lambda n: "nowhere" if n == 2 else f"{name}.a")
    with pytest.raises(WriteFailed, match="row 2 to 'nowhere': NoStreamResponse"):
        send(options(server, name), batch)
    assert in_order(js.stream(name)) == [0, 1]


def test_a_stream_without_allow_batched_fails_the_task(js, server, name, make):
    make(allow_batched=False)
    with pytest.raises(WriteFailed, match=r"row 0 .* BatchRefused"):
        send(options(server, name), make_batch(0, 4))


def test_a_row_without_permission_fails_the_task(name):
    user = {"user": "joe", "password": "pw", "permissions": {"publish": {"deny": f"{name}.no"}}}
    config = {"authorization": {"users": [user]}}
    with Server(jetstream=True, config=config) as server:
        settings = options(server, name, user="joe", password="pw", requestTimeout="1s")
        jetstream(settings).create_stream(
            name=name, subjects=[f"{name}.>"], allow_batched=True, allow_direct=True
        )
        batch = make_batch(0, 4, subject=lambda n: f"{name}.no" if n == 2 else f"{name}.a")
        with pytest.raises(WriteFailed, match=r"row 2 to .* PermissionDenied: "):
            send(settings, batch)
        forget(settings)


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_server_that_restarts(name, end):
    with Server(jetstream=True) as server:
        settings = options(server, name)
        with connect(server.url) as client:
            JetStream(client).create_stream(
                name=name, subjects=[f"{name}.>"], allow_direct=True, allow_batched=True
            )

        def strike():
            getattr(server, end)()
            server.restart()

        tally = send(settings, make_batch(0, 3000), make_batch(3000, 6000), strike=strike)
        with connect(server.url) as client:
            numbers = in_order(JetStream(client).stream(name))
        forget(settings)
    assert tally.rows == 6000
    assert sorted(set(numbers)) == list(range(6000))


def test_leaders_step_down_during_a_write(name):
    """Rows that the batch reports as stored are not sent again: no duplicates, even without ids."""
    with Cluster(3, jetstream=True) as cluster:
        cluster.wait_formed()
        settings = options(cluster.members[0], name)
        with connect(cluster.members[1].url) as client:
            js = JetStream(client)
            js.create_stream(
                name=name,
                subjects=[f"{name}.>"],
                num_replicas=3,
                allow_direct=True,
                allow_batched=True,
            )

            def step_down():
                client.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{name}", timeout=5)

            rows = [(b"%s.a" % name.encode(), b"%d" % number, None) for number in range(3000)]
            with FastSender(client_of(settings), jetstream(settings), 5.0) as sender:
                for start in range(0, 3000, 1000):
                    sender.send(Struck(rows[start : start + 1000], step_down))
            assert sender.tally.rows == 3000
            assert in_order(js.stream(name)) == list(range(3000))
        forget(settings)


class Struck(list):
    """Rows that call a function in the middle of their first iteration."""

    def __init__(self, rows, strike):
        super().__init__(rows)
        self.strike = strike

    def __iter__(self):
        for number, row in enumerate(super().__iter__()):
            if number == len(self) // 2:
                self.strike()
            yield row


@pytest.fixture
def stream(make):
    return make(storage="file")


@pytest.fixture
def fast(plain, name):
    return {**plain, "stream": name, "delivery": "fast"}


def test_a_frame(spark, stream, fast):
    write(spark.range(0, 20_000, 1, 2).selectExpr("CAST(id AS STRING) AS data"), fast)
    assert payloads(stream) == list(range(20_000))


def test_a_query(spark, stream, fast, tmp_path):
    run_query(spark, make_files(tmp_path / "in", 2, 500), fast, tmp_path / "checkpoint")
    assert payloads(stream) == list(range(1000))
