"""Push with the policy PushInOrder: an ordered push subscription."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import StreamNotFound, UnknownStatus
from jetstream.events import ConsumerReset, StreamRecreated
from jetstream.ordered.config import HEARTBEAT
from jetstream.ordered.cursor import Cursor
from jetstream.ordered.push import MAX_EARLY, PushInOrder
from jetstream.ordered.recreate import Recreator
from jetstream.push.machine import Push
from jetstream.schema.timestamp import Timestamp
from natsproto.connection.effects import Publish, Resubscribe
from natsproto.wire.frames import Msg
from tests.effects import count_drops, publishes
from tests.jetstream import pushes

INBOX = b"_INBOX.i"
A = "$JS.FC.S.o_1.aaaa"
B = "$JS.FC.S.o_1.bbbb"


def deliver(serial):
    return INBOX + b".d%d" % serial


def message(seq, number=None, serial=1, data=b"x"):
    return pushes.message(number or seq, data, consumer=f"o_{serial}", stream_seq=seq)


def beat(last, stalled="", serial=1):
    return pushes.beat(last, stalled, deliver(serial))


def flow(where, serial=1):
    return pushes.flow(where, deliver(serial))


def status(line, serial=1):
    return pushes.status(line, subject=deliver(serial))


def created(serial, seq=0, consumer_seq=0):
    delivered = {"consumer_seq": consumer_seq, "stream_seq": seq}
    reply = {"name": "o", "config": {}, "delivered": delivered}
    return Msg(deliver(serial), 1, b"", json.dumps(reply).encode(), None)


def refused(serial, code=404, err_code=10059):
    reply = {"error": {"code": code, "err_code": err_code, "description": "no"}}
    return Msg(deliver(serial), 1, b"", json.dumps(reply).encode(), None)


def new(**options):
    """Return a machine with heartbeat 5 s that is subscribed but not yet connected."""
    cursor = Cursor("S", "o", {"deliver_policy": "all"})
    recreator = Recreator(cursor, "$JS.API", INBOX, delivers=True)
    policy = PushInOrder(INBOX, recreator)
    machine = Push(policy, heartbeat=HEARTBEAT, flow_control=True, ack_none=True, **options)
    machine.subject = deliver(1)
    return machine


def using(**options):
    """Return a machine that connected at 0.0 and whose first consumer exists."""
    machine = new(**options)
    machine.connected(0.0)
    assert orders(machine) == ["create 1"]
    assert machine.receive(created(1), 0.0)
    return machine


def orders(machine):
    """Return effects as "move", "create <serial>[ from <start>]", "delete <serial>" and so on."""
    found = []
    for order in machine.take_effects():
        if isinstance(order, Resubscribe):
            found.append("move")
        if not isinstance(order, Publish):
            continue
        words = order.subject.decode().split(".")
        if "CONSUMER" not in words:
            assert (order.data, order.reply) == (b"", b"")
            found.append(order.subject.decode())
            continue
        serial = int(words[5].split("_")[1])
        text = "delete %d" % serial
        if "CREATE" in words:
            config = json.loads(order.data)["config"]
            assert config["deliver_subject"].encode() == order.reply == deliver(serial)
            start = config.get("opt_start_seq")
            text = "create %d" % serial + (" from %d" % start if start else "")
        found.append(text)
    return found


def event_names(machine):
    assert all(isinstance(event, ConsumerReset) for event in machine.events.items)
    names = [type(event.error).__name__ for event in machine.events.items]
    machine.events.items.clear()
    return names


def seqs(machine, now=100.0):
    found = []
    while machine.pending():
        found.append(int(machine.pop(now).raw_reply.split(b".")[5]))
    return found


INPUTS = {"tick": "handle_timer", "lost": "disconnected", "back": "connected"}


def play(machine, steps):
    for first, second in steps:
        if isinstance(first, str):
            getattr(machine, INPUTS[first])(second)
        else:
            machine.receive(second, first)


M = [message(number) for number in range(10)]
TO_2 = ["move", "delete 1", "create 2 from 1"]
FROM_3 = ["move", "delete 1", "create 2 from 3"]
NEXT_3 = [(2.0, created(2, 2)), (2.0, message(3, 1, serial=2))]
# fmt: off
TABLE = [  # case, inputs, effects, events, messages, deadline
    ("nothing", [], [], [], [], 15.0),
    ("in order", [(1.0, M[1]), (1.0, M[2])], [], [], [1, 2], 15.0),
    ("with holes in the stream", [(1.0, message(4, 1)), (1.0, message(9, 2))],
     [], [], [4, 9], 15.0),
    ("heartbeats", [(1.0, M[1]), (5.0, beat(1)), ("tick", 15.0)], [], [], [1], 20.0),
    ("a gap at first", [(1.0, M[2])], [], ["MessagesMissed"], [], 2.0),
    ("and a second later", [(1.0, M[2]), ("tick", 2.0)], TO_2, ["MessagesMissed"], [], 7.0),
    ("a gap", [(1.0, M[1]), (1.0, M[2]), (1.0, M[4])], FROM_3, ["MessagesMissed"], [1, 2], 6.0),
    ("a gap and what follows", [(1.0, M[1]), (1.0, M[2]), (1.0, M[4]), (1.0, M[5])],
     FROM_3, ["MessagesMissed"], [1, 2], 6.0),
    ("a gap in a heartbeat", [(1.0, M[1]), (1.0, M[2]), (1.0, beat(3))],
     FROM_3, ["MessagesMissed"], [1, 2], 6.0),
    ("a heartbeat that knows less", [(1.0, M[1]), (1.0, M[2]), (1.0, beat(1))],
     FROM_3, ["MessagesMissed"], [1, 2], 6.0),
    ("and on", [(1.0, M[1]), (1.0, M[2]), (1.0, M[4]), *NEXT_3, (2.0, message(4, 2, serial=2))],
     FROM_3, ["MessagesMissed"], [1, 2, 3, 4], 17.0),
    ("late ones of the consumer before",
     [(1.0, M[1]), (1.0, M[2]), (1.0, M[4]), *NEXT_3, (3.0, M[3]), (3.0, beat(9)), (3.0, flow(A))],
     FROM_3, ["MessagesMissed"], [1, 2, 3], 17.0),
    ("silence", [(1.0, M[1]), (1.0, M[2]), ("tick", 15.0), ("tick", 16.0)],
     FROM_3, ["HeartbeatMissed"], [1, 2], 21.0),
    ("just before", [(1.0, M[1]), ("tick", 15.9)], [], [], [1], 16.0),
    ("nobody has read", [(1.0, M[1]), ("tick", 17.0)], [], [], [1], 22.0),
    ("deleted", [(1.0, M[1]), (1.0, M[2]), (1.0, status("409 Consumer Deleted"))],
     FROM_3, ["ConsumerDeleted"], [1, 2], 6.0),
    ("its server stops", [(1.0, M[1]), (1.0, M[2]), (1.0, status("409 Server Shutdown"))],
     FROM_3, ["ConsumerUnavailable"], [1, 2], 6.0),
    ("nobody there", [(1.0, M[1]), (1.0, M[2]), (1.0, status("503"))],
     FROM_3, ["ConsumerUnavailable"], [1, 2], 6.0),
    ("lost", [(1.0, M[1]), ("lost", 2.0)], [], ["ConnectionLost"], [1], None),
    ("lost and silent", [(1.0, M[1]), ("lost", 2.0), ("tick", 60.0)],
     [], ["ConnectionLost"], [1], None),
    ("back", [(1.0, M[1]), (1.0, M[2]), ("lost", 2.0), ("back", 9.0)],
     FROM_3, ["ConnectionLost"], [1, 2], 14.0),
    ("back without having had any", [("lost", 2.0), ("back", 9.0)],
     TO_2, ["ConnectionLost"], [], 14.0),
    ("no answer in time", [(1.0, M[1]), (1.0, M[2]), (1.0, M[4]), ("tick", 6.0)],
     FROM_3, ["MessagesMissed", "TimeoutExpired"], [1, 2], 7.0),
    ("another try", [(1.0, M[1]), (1.0, M[2]), (1.0, M[4]), ("tick", 6.0), ("tick", 7.0)],
     [*FROM_3, "move", "delete 2", "create 3 from 3"],
     ["MessagesMissed", "TimeoutExpired"], [1, 2], 12.0),
    ("no leader", [(1.0, M[1]), (1.0, M[2]), (1.0, M[4]), (1.5, status("503", 2))],
     FROM_3, ["MessagesMissed", "JetStreamNotAvailable"], [1, 2], 2.5),
    ("not the answer", [(1.0, Msg(deliver(1), 1, b"", b"hello", None))], [], [], [], 15.0),
]
# fmt: on


@pytest.mark.rule("ORDPUSH-2")
@pytest.mark.rule("ORDPUSH-3")
@pytest.mark.rule("ORDPUSH-5")
@pytest.mark.parametrize(
    ("steps", "ordered", "events", "messages", "deadline"),
    [pytest.param(*row[1:], id=row[0]) for row in TABLE],
)
def test_the_machine(steps, ordered, events, messages, deadline):
    machine = using()
    play(machine, steps)
    assert orders(machine) == ordered
    assert machine.subject == deliver(1 + ordered.count("move"))
    assert event_names(machine) == events
    assert machine.deadline == deadline
    assert seqs(machine) == messages
    assert not machine.ended


@pytest.mark.rule("ORDPUSH-5")
def test_several_messages_at_once():
    machine = using()
    assert machine.receive_all([M[1], M[2]], 1.0)
    assert machine.receive_all([M[3], M[5], M[6]], 1.0)
    assert (seqs(machine), event_names(machine)) == ([1, 2, 3], ["MessagesMissed"])


@pytest.mark.rule("D-ORDPUSH-4")
def test_messages_before_the_answer():
    machine = new()
    machine.connected(0.0)
    steps = [M[1], M[2], flow(A), beat(2, A), M[3], message(9, 9, serial=7)]
    assert [machine.receive(msg, 1.0) for msg in steps] == [False] * 6
    assert (machine.pending(), machine.policy.begun, machine.deadline) == (0, False, 5.0)
    assert machine.receive(created(1), 2.0)
    assert (machine.policy.begun, machine.deadline, machine.policy.early_bytes) == (True, 17.0, 0)
    assert seqs(machine) == [1, 2, 3]
    assert orders(machine) == ["create 1", A]
    assert machine.events.items == []


@pytest.mark.rule("D-ORDPUSH-4")
def test_too_much_before_the_answer_is_a_gap():
    machine = new()
    machine.connected(0.0)
    for number in range(1, 11):
        machine.receive(message(number, data=bytes(MAX_EARLY // 8)), 1.0)
    machine.receive(created(1), 2.0)
    assert seqs(machine) == list(range(1, 9))
    machine.receive(message(11), 3.0)
    assert event_names(machine) == ["MessagesMissed"]
    assert orders(machine)[-1] == "create 2 from 9"


@pytest.mark.rule("D-ORDPUSH-4")
def test_messages_before_an_error_response():
    machine = new()
    machine.connected(0.0)
    machine.receive(M[1], 1.0)
    machine.receive(refused(1, 503, 10008), 2.0)
    assert (event_names(machine), machine.deadline) == (["TemporarilyUnavailable"], 3.0)
    machine.receive(M[2], 2.5)
    machine.handle_timer(3.0)
    machine.receive(created(2), 4.0)
    assert (orders(machine)[-1], seqs(machine)) == ("create 2", [])


@pytest.mark.rule("D-ORDPUSH-6")
def test_no_room():
    machine = using(max_messages=2)
    for msg in (M[1], M[2], M[3]):
        machine.receive(msg, 1.0)
    assert (machine.pending(), machine.dropped, count_drops(machine)) == (2, 1, 1)
    machine.pop(2.0)
    machine.receive(M[4], 2.0)
    assert (event_names(machine), orders(machine)) == (["MessagesMissed"], FROM_3)


@pytest.mark.rule("D-ORDPUSH-7")
def test_flow_control():
    machine = using()
    for msg in (M[1], flow(A), M[2], flow(B)):
        machine.receive(msg, 1.0)
    machine.pop(2.0)
    assert orders(machine) == [A]
    machine.receive(beat(9), 3.0)
    orders(machine)
    machine.pop(3.0)
    assert (orders(machine), machine.pending()) == ([], 0)
    machine.receive(created(2, 2), 4.0)
    machine.receive(flow(B, 2), 4.0)
    assert orders(machine) == [B]


@pytest.mark.rule("ORDPUSH-8")
def test_a_change_of_leader_is_reported():
    machine = using()
    assert machine.receive(status("409 Leadership Change"), 1.0)
    (event,) = machine.events.items
    assert (str(event.error), machine.ended, orders(machine)) == (
        "409 Leadership Change",
        False,
        [],
    )


@pytest.mark.rule("ORDPUSH-8")
@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([(1.0, status("777 Lucky"))], UnknownStatus),
        ([(1.0, M[3]), (2.0, refused(2))], StreamNotFound),
    ],
)
def test_the_end(steps, error):
    machine = using()
    machine.receive(M[1], 1.0)
    play(machine, steps)
    assert type(machine.error) is error
    assert (machine.ended, machine.leaving, machine.deadline) == (True, True, None)
    assert orders(machine)[-1].startswith("delete" if error is UnknownStatus else "create")
    machine.events.items.clear()
    machine.handle_timer(99.0)
    machine.connected(99.0)
    play(machine, [(99.0, M[3]), (99.0, created(3)), (99.0, beat(3))])
    assert (machine.events.items, orders(machine), machine.deadline) == ([], [], None)


@pytest.mark.rule("ORDPUSH-10")
def test_stop_deletes_the_consumer():
    machine = using()
    machine.receive(M[1], 1.0)
    assert machine.stop() == [M[1]]
    assert machine.end()
    assert orders(machine) == ["delete 1"]


@pytest.mark.rule("ORDPUSH-10")
def test_drain():
    machine = using()
    machine.receive(M[1], 1.0)
    machine.start_draining()
    machine.draining = True
    machine.receive(M[2], 1.0)
    machine.receive(M[4], 1.0)  # it no longer cares about gaps
    machine.receive(beat(9), 1.0)
    machine.disconnected(1.5)
    machine.connected(2.0)
    machine.end()
    assert (orders(machine), seqs(machine), event_names(machine)) == (["delete 1"], [1, 2], [])


@pytest.mark.rule("ORDPUSH-10")
def test_an_end_before_the_first_consumer_was_created():
    machine = new()
    machine.end()
    assert (orders(machine), machine.policy.begun, machine.subject) == ([], False, deliver(1))


T = ["2026-01-01T00:00:0%dZ" % second for second in range(6)]


def stream(serial, created_at):
    reply = {"config": {}, "created": created_at}
    return Msg(deliver(serial), 1, b"", json.dumps(reply).encode(), None)


def checking():
    """Return a machine whose second consumer has delivered before its stream is known."""
    machine = using()
    machine.policy.cursor._oldest = Timestamp.parse(T[2])
    play(machine, [(1.0, message(70, 1)), (2.0, status("409 Consumer Deleted"))])
    assert orders(machine) == ["move", "delete 1", "create 2 from 71"]
    assert event_names(machine) == ["ConsumerDeleted"]
    play(machine, [(2.1, created(2, 70)), (2.2, message(71, 1, serial=2))])
    [order] = publishes(machine)
    assert (order.subject, order.reply) == (b"$JS.API.STREAM.INFO.S", deliver(2))
    assert machine.deadline == 3.1
    return machine


@pytest.mark.rule("D-ORDPUSH-12")
@pytest.mark.parametrize("how", ["the same", "nobody there", "no answer"])
def test_messages_are_held_until_the_stream_is_known(how):
    machine = checking()
    machine.policy.cursor._unknown = 1  # how often STREAM.INFO has failed before
    play(machine, [(2.3, beat(1, serial=2)), (2.4, message(72, 2, serial=2))])
    if how == "the same":
        assert machine.receive(stream(2, T[1]), 2.5)
    elif how == "nobody there":
        assert machine.receive(status("503", serial=2), 2.5)
    else:
        machine.handle_timer(3.1)
    assert (seqs(machine), event_names(machine)) == ([70, 71, 72], [])


@pytest.mark.rule("D-ORDPUSH-12")
def test_a_status_before_the_stream_is_known_waits():
    machine = checking()
    play(machine, [(2.3, status("409 Consumer Deleted", serial=2)), (2.4, stream(2, T[1]))])
    assert (seqs(machine), event_names(machine)) == ([70, 71], ["ConsumerDeleted"])
    assert orders(machine) == ["move", "delete 2", "create 3 from 72"]


@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.rule("D-ORDPUSH-12")
def test_the_stream_was_recreated():
    machine = checking()
    assert machine.receive(stream(2, T[4]), 2.5)
    assert machine.events.items == [
        StreamRecreated("S", Timestamp.parse(T[2]), Timestamp.parse(T[4]))
    ]
    machine.events.items.clear()
    assert orders(machine) == ["move", "delete 2", "create 3"]
    play(machine, [(2.6, created(3)), (2.7, message(1, 1, serial=3)), (2.8, stream(3, T[4]))])
    assert seqs(machine) == [70, 1]
