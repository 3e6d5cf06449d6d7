"""The short form of the chaos (`make chaos` runs 200 rounds), and tests of its checks."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import pytest

from natsproto.testing import Server
from natsproto.wire.frames import Msg, Pong
from tests.soak.chaos import Chaos, main
from tests.soak.chaos_work import Reader, Work, possible
from tests.soak.partitions import CUT, HOLE, OPEN, Proxies
from tests.soak.trace import Trace

# A seed whose first faults are: two members killed, and one cut off.
SEED = 327


def test_nothing_is_lost_in_a_few_rounds(capsys):
    chaos = Chaos(SEED)
    try:
        complaints, recoveries = asyncio.run(chaos.run(2))
    finally:
        chaos.cluster.stop()
    assert complaints == []
    assert len(recoveries) == 2
    output = capsys.readouterr().out
    assert "round 1: kill two" in output
    assert "round 2: cut one off" in output


def test_where_late_messages_were():
    trace = Trace("CHAOS")
    frames = [
        Msg(b"s", 1, b"$JS.ACK.CHAOS.fetch.%d.%d.9.1.0" % (count, seq))
        for count, seq in ((1, 1), (2, 2), (3, 2))
    ]
    frames += [Msg(b"s", 1, b"$JS.ACK.OTHER.fetch.1.3.9.1.0"), Msg(b"s", 1), Pong()]
    assert list(trace._noted(iter(frames))) == frames
    assert [each.count for each in trace.arrived["fetch"][2]] == [2, 3]
    assert trace.explain("fetch", {1, 2, 3}) == (
        "3 late: 1 arrived first as a redelivery, 1 as a first delivery, 1 did not arrive"
    )
    assert trace.lost_by_client("fetch", {1}) == [2]
    assert trace.lost_by_client("push", set()) == []


@pytest.mark.parametrize(
    ("history", "values"),
    [
        ([(b"1", True), (b"2", True)], [b"2"]),
        ([(b"1", True), (b"2", False)], [b"1", b"2"]),
        ([(b"1", False), (b"2", True), (b"3", False), (b"4", False)], [b"2", b"3", b"4"]),
        ([(b"1", False)], [b"1"]),
    ],
)
def test_possible_values(history, values):
    assert possible(history) == values


def test_a_reader_in_order():
    reader = Reader("ordered", True)
    for seq in (1, 2, 4, 4, 3):
        reader.take(seq)
    assert reader.odd == ["X3: ordered got 4 after 4", "X3: ordered got 3 after 4"]
    assert reader.seen == {1, 2, 3, 4}
    other = Reader("fetch")
    for seq in (2, 1, 2):
        other.take(seq)
    assert other.odd == []


def lose_a_publish(work):
    work.acked.add("p-lost")


def lose_a_message(work):
    work.readers[3].seen.discard(1)
    work.readers[0].seen.discard(2)


def lose_a_put(work):
    work.puts["k0"].append((b"lost", True))


def lose_an_object(work):
    work.objects.append((b"lost", True))


def lose_what_arrived(work):
    work.trace.arrived["fetch"][10**9] = []


LOSSES = [
    (lose_a_publish, "X1: 1 lost, as ['p-lost']"),
    (lose_a_message, "X3: ordered misses 1: [1]"),
    (lose_a_message, "X2: consume misses 1: [2]"),
    (lose_a_put, "X4: k0 is"),
    (lose_an_object, "X6: "),
    (lose_a_message, "X7: consume lost 1 that arrived: [2]"),
    (lose_what_arrived, "X7: fetch lost 1 that arrived: [1000000000]"),
]


def test_every_loss_is_noticed(monkeypatch):
    """On one server, with each loss after the other."""
    monkeypatch.setattr("tests.soak.chaos_work.REPLICAS", 1)

    async def run(url):
        from natsproto.adapters.asyncio import connect

        async with connect(url) as one, connect(url) as two, connect(url) as three:
            work = Work([one, two, three])
            tap.enter_context(work.trace.tap())
            await work.start()
            while len(work.puts) < 5 or len(work.objects) < 2 or not work.last_seq:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await work.settle()
            for lose, _ in LOSSES:
                lose(work)
            return await work.finish()

    with Server(jetstream=True) as server, ExitStack() as tap:
        complaints = asyncio.run(run(server.url))
    for _, complaint in LOSSES:
        assert any(complaint in each for each in complaints), complaints
    assert len(complaints) == len(LOSSES)


def test_proxies():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxies = Proxies()
        try:
            address = proxies.add(1, 2, listening.getsockname()[1])
            port = int(address.rpartition(":")[2])
            client = socket.create_connection(("127.0.0.1", port), timeout=5.0)
            server, _ = listening.accept()
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"
            proxies.change(HOLE, 1)
            client.sendall(b"nobody hears this")
            proxies.change(CUT, 2)
            assert server.recv(5) == b""
            refused = socket.create_connection(("127.0.0.1", port), timeout=5.0)
            assert refused.recv(1) == b""
            proxies.change(OPEN)
            again = socket.create_connection(("127.0.0.1", port), timeout=5.0)
            other, _ = listening.accept()
            other.sendall(b"back")
            assert again.recv(4) == b"back"
            for each in (client, server, refused, again, other):
                each.close()
        finally:
            proxies.stop()


def test_the_command(monkeypatch, capsys):
    class Fake:
        def __init__(self, seed):
            assert seed == 7
            self.cluster = self

        def stop(self):
            pass

        async def run(self, rounds, seconds):
            return (["X1: so it goes"] if rounds == 3 else []), [1.5] * rounds

    monkeypatch.setattr("tests.soak.chaos.Chaos", Fake)
    assert main(["--rounds", "3", "--seed", "7"]) == 1
    assert "3 rounds, slowest recovery 1.5 s\n  X1: so it goes\n" in capsys.readouterr().out
    assert main(["--rounds", "2", "--seed", "7"]) == 0
