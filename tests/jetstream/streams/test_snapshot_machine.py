from __future__ import annotations

import pytest

from jetstream.errors import SnapshotFailed
from jetstream.streams.snapshot_machine import SILENCE, SnapshotMachine
from natsproto.connection.effects import Publish, Unsubscribe, Wake
from natsproto.errors import TimeoutExpired
from natsproto.wire.frames import Msg

ACK = "$JS.SNAPSHOT.ACK.S.token."


def chunk(data, number, size=None):
    reply = f"{ACK}{len(data) if size is None else size}.{number}".encode()
    return Msg(b"inbox", 1, reply, data, None)


def last(data):
    return Msg(b"inbox", 1, b"", data, None)


def status(line):
    block = f"NATS/1.0 {line}\r\n\r\n".encode() if line else None
    return Msg(b"inbox", 1, b"", b"", block)


def started(now=0.0):
    machine = SnapshotMachine("'S'")
    machine.start(now)
    return machine


def acks(machine):
    effects = machine.take_effects()
    assert all(isinstance(each, (Publish, Unsubscribe)) for each in effects)
    return [each.subject.decode() for each in effects if isinstance(each, Publish)]


@pytest.mark.rule("SNAP-1")
@pytest.mark.parametrize("end", ["204", ""])
def test_chunks_are_acknowledged_when_they_are_taken(end):
    machine = started()
    assert machine.deadline == SILENCE
    assert machine.receive(chunk(b"aa", 1), 1.0) is True
    assert machine.receive(chunk(b"bb", 2), 2.0) is True
    assert machine.receive(last(b"c"), 3.0) is True
    assert (machine.pending(), acks(machine)) == (3, [])
    assert machine.deadline == 3.0 + SILENCE
    assert machine.pop(4.0) == b"aa"
    assert acks(machine) == [ACK + "2.1"]
    assert machine.deadline == 4.0 + SILENCE
    assert machine.pop(5.0) == b"bb"
    assert acks(machine) == [ACK + "2.2"]
    assert not machine.over
    assert machine.receive(status(end), 6.0) is True  # SNAP-2
    assert (machine.complete, machine.over, machine.deadline) == (True, True, None)
    assert machine.take_effects() == [Unsubscribe()]
    assert machine.pop(7.0) == b"c"
    assert (machine.pending(), machine.take_effects(), machine.deadline) == (0, [], None)
    assert machine.receive(chunk(b"d", 3), 8.0) is False


@pytest.mark.rule("SNAP-1")
@pytest.mark.parametrize("reply", [b"other.subject.2.1", b"$JS.SNAPSHOT.ACK.S.token.x.1"])
def test_other_reply_subjects(reply):
    """A message to them would be under the control of the sender, unless they are JetStream's."""
    machine = started()
    machine.receive(Msg(b"inbox", 1, reply, b"aa", None), 0.0)
    assert machine.pop(0.0) == b"aa"
    assert acks(machine) == [each.decode() for each in [reply] if each.startswith(b"$JS")]


@pytest.mark.rule("SNAP-2")
@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("408 No Interest", 408, "snapshot of stream 'S' failed: 408 No Interest"),
        ("500 disk failure", 500, "snapshot of stream 'S' failed: 500 disk failure"),
    ],
)
def test_errors_of_the_server(line, code, text):
    machine = started()
    assert machine.receive(chunk(b"aa", 1), 1.0)
    assert machine.receive(status(line), 1.0) is True
    assert isinstance(machine.failure, SnapshotFailed)
    assert (machine.failure.code, str(machine.failure)) == (code, text)
    assert (machine.complete, machine.over, machine.deadline) == (False, True, None)
    assert machine.pop(2.0) == b"aa"
    assert acks(machine) == []


@pytest.mark.rule("SNAP-3")
@pytest.mark.parametrize("wrong", [chunk(b"bb", 3), chunk(b"bb", 1), chunk(b"bb", 2, size=3)])
def test_a_missing_chunk(wrong):
    machine = started()
    machine.receive(chunk(b"aa", 1), 1.0)
    assert machine.receive(wrong, 1.0) is True
    assert "chunk 3 is missing" in str(machine.failure)


@pytest.mark.rule("D-SNAP-5")
def test_silence():
    machine = started()
    machine.receive(chunk(b"aa", 1), 1.0)
    assert machine.handle_timer(40.0) is False  # the reader is slow, not the server
    assert machine.deadline is None
    machine.pop(50.0)
    assert machine.handle_timer(50.0 + SILENCE) is True
    assert isinstance(machine.failure, TimeoutExpired)
    assert str(machine.failure) == "no chunk of the snapshot of stream 'S' in 30 s"
    assert Unsubscribe() in machine.take_effects()


@pytest.mark.rule("D-SNAP-5")
def test_a_lost_connection():
    machine = started()
    machine.disconnected(1.0)
    assert "the connection was lost" in str(machine.failure)
    assert machine.take_effects() == [Unsubscribe(), Wake([machine])]
    machine.disconnected(2.0)
    assert machine.take_effects() == []
    machine.start(3.0)
    assert machine.deadline is None


def test_the_rest_is_discarded():
    machine = started()
    machine.receive(chunk(b"aa", 1), 1.0)
    machine.discard()
    assert (machine.pending(), machine.deadline) == (0, None)
    assert machine.take_effects() == [Unsubscribe()]
    machine.end(None)
    assert machine.over
