"""A connection that is driven by hand (examples/by_hand.py): it neither spins nor waits forever."""

from __future__ import annotations

import ast
import inspect
import os
import random
import re
import socket
import subprocess
import sys
import time

import pytest

from examples.by_hand import Hand
from jetstream.pull.by_hand import Consume, start_consume, take
from jetstream.pull.options import consume_template
from natsproto.connection import Connection, Dial, Hangup, StartTls
from natsproto.connection.receiver import Mailbox
from natsproto.connection.waitable import Request
from natsproto.options import Options
from natsproto.testing import Server, free_port
from tests.core import ROOT

BUSY = 0.5  # a loop that spins takes all the CPU time there is


def hand_of(url, **options):
    return Hand(Connection(Options(servers=url, **options), rng=random.Random(1)))


def turns_until(hand, condition, longest):
    """Return how many turns it takes."""
    began, cpu = time.monotonic(), time.process_time()
    turns = 0
    while not condition():
        assert time.monotonic() - began < longest
        hand.turn()
        turns += 1
    assert time.process_time() - cpu < BUSY
    return turns


def test_without_a_server_it_is_closed_at_once():
    urls = [f"nats://127.0.0.1:{free_port()}" for _ in range(3)]
    hand = hand_of(urls)
    assert turns_until(hand, lambda: hand.connection.closed, 5.0) < 10
    assert hand.connection.closed.count("refused") == 3
    before = time.monotonic()
    for _ in range(100):
        hand.turn(60.0)  # harmless, and does not wait: nothing will ever happen
    assert time.monotonic() - before < 30.0


def test_a_server_that_says_nothing_costs_the_connect_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hand = hand_of("nats://127.0.0.1:%d" % listener.getsockname()[1], connect_timeout=0.3)
        began = time.monotonic()
        assert turns_until(hand, lambda: hand.connection.closed, 5.0) < 10
        assert time.monotonic() - began > 0.25
    assert hand.sock is None


def test_it_waits_for_a_server_without_spinning():
    with Server() as server:
        server.kill()
        hand = hand_of(server.url, retry_on_first_connect=True, reconnect_wait=0.05)
        began = time.monotonic()
        turns = turns_until(hand, lambda: time.monotonic() - began > 1.0, 5.0)
        assert turns < 100
        assert hand.connection.state in ("WAITING", "DIALING")
        server.restart()
        turns_until(hand, lambda: hand.connection.online, 20.0)
        hand.connection.close(time.monotonic())
        hand.turn()
        assert hand.sock is None


def test_an_idle_connection_waits_for_its_deadline():
    with Server() as server:
        hand = hand_of(server.url)
        turns_until(hand, lambda: hand.connection.online, 5.0)
        began = time.monotonic()
        assert turns_until(hand, lambda: time.monotonic() - began > 0.5, 5.0) < 10
        hand.connection.close(time.monotonic())
        hand.turn()


def test_a_machine_survives_a_lost_connection():
    with Server(jetstream=True) as server:
        hand = hand_of(server.url, reconnect_wait=0.01)
        hand.request("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s"]}')
        hand.request(
            "$JS.API.CONSUMER.CREATE.S.c",
            b'{"stream_name":"S","config":{"durable_name":"c","ack_policy":"explicit"}}',
        )
        connection = hand.connection
        machine = start_consume(connection, "S", "c", time.monotonic(), max_messages=10)
        got = []

        def some(count):
            while machine.pending():
                msg = take(connection, machine, time.monotonic())
                got.append(msg.data)
                connection.respond(msg.raw_reply, b"+ACK")
            return len(set(got)) == count

        for number in range(30):
            hand.request("s", b"%d" % number)
        turns_until(hand, lambda: some(30), 20.0)
        server.kill()
        server.restart()
        turns_until(hand, lambda: connection.stats.connects == 2, 20.0)
        for number in range(30, 60):
            hand.request("s", b"%d" % number)
        turns_until(hand, lambda: some(60), 20.0)
        connection.close(time.monotonic())
        hand.turn()
        assert machine.ended


def test_tls_is_refused(tmp_path):
    from natsproto.testing.certificates import Certificates

    tls = Certificates(tmp_path).server("127.0.0.1")
    with Server(config={"tls": tls}) as server:
        hand = hand_of(server.url)
        turns_until(hand, lambda: hand.connection.closed, 10.0)
        assert "this program has no TLS" in hand.connection.closed


def test_the_example_ends_without_a_server():
    """It is run as a program, which would be stopped if it did not."""
    done = subprocess.run(
        [sys.executable, "examples/by_hand.py", f"nats://127.0.0.1:{free_port()}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 1
    assert "no server could be reached" in done.stderr


PAGE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
OBJECTS = {
    "Connection": Connection(Options(), rng=random.Random(1)),
    "Request": Request("x"),
    "Mailbox": Mailbox(1, 1),
    "Consume": Consume(
        b"_INBOX.x", consume_template("a", 30.0, None, {}, False), max_messages=1, threshold=1
    ),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_stable_names_exist(kind):
    """Rows such as | `Request` | | `done`, `error` | say what programs can rely on."""
    rows = re.findall(rf"^\| `{kind}` \|[^|]*\| ([^|]*) \|", PAGE, re.MULTILINE)
    assert rows
    promised = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    promised -= {"Msg"}
    assert {name for name in promised if not hasattr(OBJECTS[kind], name)} == set()


def test_the_example_relies_on_stable_names_alone():
    tree = ast.parse(inspect.getsource(inspect.getmodule(Hand)))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, (ast.Name, ast.Attribute))
        and ast.unparse(node.value) in ("connection", "self.connection", "machine", "request")
    }
    promised = set(re.findall(r"`(\w+)", PAGE.partition("### What a program by hand")[2]))
    assert used
    assert used <= promised, used - promised
    assert {Dial.__name__, Hangup.__name__, StartTls.__name__} <= promised
