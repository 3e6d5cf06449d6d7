from __future__ import annotations

import json
import random

import pytest

from jetstream.pull.by_hand import start_consume, take
from natsproto import Parser
from natsproto.connection import Connection
from natsproto.errors import InvalidName, InvalidValue
from natsproto.options import Options
from natsproto.wire import encode_server

ACK = "$JS.ACK.S.c.1.%d.%d.1.0"


def connected():
    connection = Connection(Options(), rng=random.Random(1))
    connection.connect(0.0)
    connection.take_effects()
    connection.transport_opened(0.0)
    connection.receive_data(
        encode_server.info({"server_id": "S", "version": "2.11.0", "headers": True}), 0.0
    )
    connection.receive_data(encode_server.pong(), 0.0)
    sent(connection)
    return connection


def sent(connection):
    return Parser(peer="client").feed(b"".join(connection.data_to_send()))


def pulls(connection):
    """Return the subjects and batches of the pull requests that were sent."""
    frames = [frame for frame in sent(connection) if hasattr(frame, "data")]
    return [(frame.subject, json.loads(frame.data)["batch"], frame.reply) for frame in frames]


def deliver(connection, sid, count, reply):
    for number in range(1, count + 1):
        data = encode_server.msg("s", sid, b"%d" % number, reply=ACK % (number, number))
        connection.receive_data(data, 1.0)


def test_messages_are_pulled_taken_and_pulled_again():
    connection = connected()
    machine = start_consume(connection, "S", "c", 0.0, max_messages=4)
    [(subject, batch, reply)] = pulls(connection)
    assert (subject, batch) == ("$JS.API.CONSUMER.MSG.NEXT.S.c", 4)
    assert reply.startswith(machine.subject.decode()[:-1])
    deliver(connection, machine.sid, 4, reply)
    assert machine.pending() == 4
    sent(connection)
    assert take(connection, machine, 1.0).data == b"1"
    assert pulls(connection) == []
    assert [take(connection, machine, 1.0).data for _ in range(2)] == [b"2", b"3"]
    assert [batch for _, batch, _ in pulls(connection)] == [3]
    assert connection.next_deadline() is not None


def test_without_a_connection_it_pulls_when_there_is_one():
    connection = Connection(Options(), rng=random.Random(1))
    machine = start_consume(connection, "S", "c", 0.0, max_bytes=1000, prefix="$JS.hub.API")
    connection.connect(0.0)
    connection.take_effects()
    connection.transport_opened(0.0)
    assert sent(connection) == []
    connection.receive_data(encode_server.info({"server_id": "S", "headers": True}), 0.0)
    sent(connection)
    connection.receive_data(encode_server.pong(), 0.0)
    [(subject, _, _)] = pulls(connection)
    assert subject == "$JS.hub.API.CONSUMER.MSG.NEXT.S.c"
    assert not machine.ended


def test_it_ends_after_its_last_message():
    connection = connected()
    machine = start_consume(connection, "S", "c", 0.0, max_messages=4, stop_after=2)
    [(_, batch, reply)] = pulls(connection)
    assert batch == 2
    deliver(connection, machine.sid, 2, reply)
    take(connection, machine, 1.0)
    assert not machine.ended
    take(connection, machine, 1.0)
    assert (machine.ended, machine.error) == (True, None)


@pytest.mark.parametrize(
    ("error", "names", "options"),
    [
        (InvalidName, ("S.x", "c"), {}),
        (InvalidName, ("S", "c c"), {}),
        (InvalidValue, ("S", "c"), {"max_messages": 1, "max_bytes": 1}),
        (InvalidValue, ("S", "c"), {"expires": 0.5}),
    ],
)
def test_invalid_arguments_are_rejected_before_anything_is_sent(error, names, options):
    connection = connected()
    with pytest.raises(error):
        start_consume(connection, *names, 0.0, **options)
    assert sent(connection) == []
