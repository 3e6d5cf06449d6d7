"""Consume with the policy InOrder: an ordered consume()."""

from __future__ import annotations

import json

import pytest

from jetstream.errors import ResetFailed, StreamNotFound
from jetstream.events import PullWarning, StreamRecreated
from jetstream.ordered.cursor import Cursor
from jetstream.ordered.policy import InOrder
from jetstream.ordered.recreate import Recreator
from jetstream.pull.consume import Consume
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import ConnectionClosed
from natsproto.wire.frames import Msg
from tests.effects import publishes, woken
from tests.jetstream.pulls import INBOX, beat, status, template

TIMEOUT = "408 Request Timeout"
LEADER = "409 Leadership Change"
SHUTDOWN = "409 Server Shutdown"
DELETED = "409 Consumer Deleted"


def message(seq, number=None, serial=1, size=60):
    reply = b"$JS.ACK.S.o_%d.1.%d.%d.1794786870000000000.0" % (serial, seq, number or seq)
    return Msg(b"s", 1, reply, b"x" * (size - 1 - len(reply)), None)


def created(serial, seq=0, consumer_seq=0):
    delivered = {"consumer_seq": consumer_seq, "stream_seq": seq}
    reply = {"name": "o", "config": {}, "delivered": delivered}
    return Msg(INBOX + b".c%d" % serial, 1, b"", json.dumps(reply).encode(), None)


def refused(serial, code=404, err_code=10059):
    reply = {"error": {"code": code, "err_code": err_code, "description": "no"}}
    return Msg(INBOX + b".c%d" % serial, 1, b"", json.dumps(reply).encode(), None)


def beat_at(number, token=1):
    block = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %d\r\n\r\n" % number
    return Msg(INBOX + b".%d" % token, 1, b"", b"", block)


def new(max_messages=10, max_bytes=0, stop_after=0, max_attempts=0, start=0):
    """Return a machine with expires 30 s and heartbeat 5 s, whose first consumer exists."""
    cursor = Cursor("S", "o", {"deliver_policy": "new"})
    cursor.start = start
    cursor.next_consumer()
    cursor.installed(json.loads(created(1).data))
    pulls = template()
    pulls.subject = b"$JS.API.CONSUMER.MSG.NEXT.S."
    recreator = Recreator(cursor, "$JS.API", INBOX, max_attempts=max_attempts)
    return Consume(
        INBOX,
        pulls,
        InOrder(recreator),
        max_messages=0 if max_bytes else max_messages,
        max_bytes=max_bytes,
        threshold=(max_bytes or max_messages) // 2,
        stop_after=stop_after,
    )


def using(**options):
    """Return a connected machine after its first pull."""
    machine = new(**options)
    machine.connected(0.0)
    publishes(machine)
    return machine


def orders(machine):
    """Return effects as "pull <serial> <messages>", "create <serial> <start>" and so on."""
    found = []
    for order in publishes(machine):
        words = order.subject.decode().split(".")
        body = json.loads(order.data or b"{}")
        serial = int(words[5].split("_")[1]) if "NEXT" not in words else int(words[6][2:])
        if "CREATE" in words:
            assert order.reply == INBOX + b".c%d" % serial
            found.append("create %d %d" % (serial, body["config"]["opt_start_seq"]))
        elif "DELETE" in words:
            found.append("delete %d" % serial)
        else:
            found.append("pull %d %d" % (serial, body["batch"]))
    return found


def event_names(machine):
    names = []
    for event in machine.events.items:
        kind = "warning " if isinstance(event, PullWarning) else ""
        names.append(kind + type(event.error).__name__)
    machine.events.items.clear()
    return names


def seqs(machine):
    found = []
    while machine.pending():
        found.append(int(machine.pop(0.0).raw_reply.split(b".")[5]))
    return found


RUNS = [  # case, messages in one read, taken, pulls after that
    ("in order", [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], ["pull 1 6"]),
    ("a gap", [1, 2, 4, 5], [1, 2], ["create 2 3", "delete 1"]),
]


@pytest.mark.rule("ORDERED-4")
@pytest.mark.parametrize(("case", "numbers", "taken", "pulls"), RUNS)
def test_messages_of_one_read(case, numbers, taken, pulls):
    machine = using()
    assert machine.receive_all([message(number) for number in numbers], 1.0)
    assert seqs(machine) == taken
    assert sorted(orders(machine)) == pulls


INPUTS = {"timer": "handle_timer", "lost": "disconnected", "back": "connected"}


def play(machine, steps):
    for first, second in steps:
        if isinstance(first, str):
            getattr(machine, INPUTS[first])(second)
        else:
            machine.receive(second, first)


@pytest.mark.rule("D-ORDERED-6")
def test_it_uses_the_consumer_that_is_there():
    machine = new()
    assert machine.deadline is None
    machine.connected(100.0)
    assert (orders(machine), machine.deadline) == (["pull 1 10"], 110.0)


def test_without_one_it_makes_one():
    machine = new()
    machine.policy.cursor.ready = False
    machine.policy.recreator.state = "offline"
    machine.connected(100.0)
    assert (orders(machine), machine.deadline) == (["create 2 1"], 105.0)
    assert not machine.receive(created(2), 100.1)
    assert (orders(machine), machine.deadline) == (["pull 2 10"], 110.1)


RESETS = [  # case, steps, events
    ("a gap", [(1.0, message(1)), (2.0, message(3))], ["MessagesMissed"]),
    ("a gap at once", [(2.0, message(2))], ["MessagesMissed"]),
    ("twice the same", [(1.0, message(1)), (2.0, message(1))], ["MessagesMissed"]),
    ("it counts anew", [(1.0, message(1)), (2.0, message(2, 1))], ["MessagesMissed"]),
    ("a heartbeat knows more", [(1.0, message(1)), (2.0, beat_at(2))], ["MessagesMissed"]),
    ("silence", [(0.5, message(1)), ("timer", 10.5)], ["HeartbeatMissed"]),
    ("silence after a heartbeat", [(0.5, beat()), ("timer", 10.5)], ["HeartbeatMissed"]),
    ("deleted", [(2.0, status(1, DELETED))], ["ConsumerDeleted"]),
    ("its server stops", [(2.0, status(1, SHUTDOWN, 10))], ["ConsumerUnavailable"]),
    ("not there", [(2.0, status(1, "503"))], ["ConsumerUnavailable"]),
]


@pytest.mark.rule("ORDERED-13")
@pytest.mark.rule("ORDERED-14")
@pytest.mark.rule("ORDERED-5")
@pytest.mark.parametrize(("what", "steps", "events"), RESETS)
def test_lost(what, steps, events):
    machine = using()
    play(machine, steps)
    now = steps[-1][0] if not isinstance(steps[-1][0], str) else steps[-1][1]
    came = machine.pending()
    assert orders(machine) == ["delete 1", "create 2 %d" % (came + 1)]
    assert event_names(machine) == events
    assert (machine.ledger.messages, machine.deadline) == (0, now + 5.0)
    # Later messages of the lost consumer are ignored.
    late = [message(9, came + 1), beat_at(99), status(1, TIMEOUT, 10), status(1, DELETED)]
    assert [machine.receive(msg, now + 0.1) for msg in late] == [False] * 4
    assert machine.deadline == now + 5.0
    assert not machine.receive(created(2), now + 0.2)
    assert orders(machine) == ["pull 2 %d" % (10 - came)]
    assert machine.deadline == now + 10.2
    assert [machine.receive(msg, now + 0.3) for msg in late] == [False] * 4
    assert machine.receive(message(40, 1, serial=2), now + 0.3) == (came == 0)
    assert machine.pending() == came + 1
    assert (orders(machine), event_names(machine)) == ([], [])


NOT_LOST = [  # case, steps, pulls, events
    ("a new leader", [(2.0, status(1, LEADER))], ["pull 1 10"], ["warning ConsumerUnavailable"]),
    ("a time-out", [(30.0, status(1, TIMEOUT, 10))], ["pull 1 10"], []),
    ("heartbeats", [(1.0, message(1)), (2.0, beat_at(1)), (3.0, beat())], [], []),
    ("a limit", [(1.0, status(1, "409 Exceeded MaxWaiting"))], [], ["warning PullRefused"]),
    ("holes in the stream", [(1.0, message(5, 1)), (2.0, message(90, 2))], [], []),
    ("strangers", [(1.0, Msg(INBOX + b".9", 1, b"a.b", b"x", None))], [], []),
    ("overdue", [(29.0, beat()), ("timer", 31.0)], ["pull 1 10"], ["warning TimeoutExpired"]),
]


@pytest.mark.rule("ORDERED-14")
@pytest.mark.parametrize(("what", "steps", "pulls", "events"), NOT_LOST)
def test_not_lost(what, steps, pulls, events):
    machine = using()
    play(machine, steps)
    assert (orders(machine), event_names(machine)) == (pulls, events)
    assert machine.policy.cursor.ready


@pytest.mark.rule("D-ORDERED-15")
def test_the_buffer_stays():
    machine = using()
    play(machine, [(1.0, message(1)), (1.0, message(2)), (1.0, message(4))])
    orders(machine)
    assert machine.pop(1.1).raw_reply.split(b".")[5] == b"1"
    assert orders(machine) == []  # nothing to pull from
    play(machine, [(1.2, created(2)), (1.3, message(3, 1, serial=2)), (1.3, message(4, 2, 2))])
    assert orders(machine) == ["pull 2 9"]
    assert seqs(machine) == [2, 3, 4]


@pytest.mark.rule("D-ORDERED-15")
def test_a_counted_pull_of_this_consumer_still_corrects():
    machine = using(max_messages=2)
    play(machine, [(1.0, message(1)), (1.0, message(2))])
    assert machine.pop(1.0)
    assert machine.pop(1.0)
    assert orders(machine) == ["pull 1 2"]
    play(machine, [(2.0, status(1, LEADER))])
    assert event_names(machine) == ["warning ConsumerUnavailable"]
    assert orders(machine) == ["pull 1 2"]


@pytest.mark.rule("ORDERED-7")
@pytest.mark.parametrize("size", [0, 60])
def test_messages_seen_before_are_skipped(size):
    machine = using(start=3, max_messages=2, max_bytes=2 * size)
    assert not machine.receive(message(1), 1.0)
    assert (machine.pending(), machine.ledger.open[0].messages) == (0, 1_000_000 - 1 if size else 1)
    assert not machine.receive(message(2), 2.0)
    assert machine.pending() == 0
    assert orders(machine) == ["pull 1 %d" % (1_000_000 if size else 2)]
    assert machine.receive(message(3), 2.0)


@pytest.mark.rule("ORDERED-7")
def test_skipped_messages_are_signs_of_life():
    """Heartbeats are sent only if there are no messages, whether seen before or not."""
    machine = using(start=5)
    for seq in (1, 2, 3):
        machine.receive(message(seq), 8.0 * seq)
        machine.handle_timer(8.0 * seq + 2.0)  # the previous deadline
    assert (event_names(machine), machine.deadline) == ([], 31.0)
    machine.receive(message(4), 26.0)
    machine.handle_timer(31.0)  # that of the pull
    assert event_names(machine) == ["warning TimeoutExpired"]
    machine.handle_timer(36.0)
    assert event_names(machine) == []
    machine.handle_timer(41.0)
    assert event_names(machine) == ["HeartbeatMissed"]


@pytest.mark.rule("D-CONSUME-10")
def test_a_skipped_message_allows_another_late_timer():
    machine = using(start=5)
    machine.handle_timer(12.0)  # late: one more heartbeat
    machine.receive(message(1), 13.0)
    machine.handle_timer(24.0)
    assert event_names(machine) == []
    machine.handle_timer(29.0)
    assert event_names(machine) == ["HeartbeatMissed"]


@pytest.mark.rule("ORDERED-8")
def test_a_lost_connection():
    machine = using()
    play(machine, [(1.0, message(1)), ("lost", 2.0)])
    assert woken(machine) == [machine]
    assert (orders(machine), event_names(machine), machine.deadline) == (
        [],
        ["ConnectionLost"],
        None,
    )
    play(machine, [("timer", 50.0), ("lost", 51.0)])
    assert (orders(machine), event_names(machine)) == ([], [])
    play(machine, [("back", 60.0)])
    assert (orders(machine), machine.deadline) == (["delete 1", "create 2 2"], 65.0)
    play(machine, [(60.1, created(2)), (60.2, message(2, 1, serial=2))])
    assert orders(machine) == ["pull 2 9"]
    assert seqs(machine) == [1, 2]


def nobody(serial):
    return Msg(INBOX + b".c%d" % serial, 1, b"", b"", b"NATS/1.0 503\r\n\r\n")


@pytest.mark.rule("ORDERED-9")
@pytest.mark.rule("ORDERED-14")
def test_recreating_fails_for_a_while():
    machine = using()
    play(machine, [(2.0, status(1, DELETED)), (2.1, nobody(2))])
    assert orders(machine) == ["delete 1", "create 2 1"]
    assert event_names(machine) == ["ConsumerDeleted", "JetStreamNotAvailable"]
    assert machine.deadline == pytest.approx(3.1)
    assert not machine.handle_timer(3.0)
    assert not machine.handle_timer(3.2)
    assert (orders(machine), machine.deadline) == (["create 3 1"], 8.2)
    assert machine.handle_timer(8.2)
    assert (orders(machine), event_names(machine)) == ([], ["TimeoutExpired"])
    assert machine.deadline == pytest.approx(10.2)
    assert not machine.handle_timer(10.3)
    assert orders(machine) == ["delete 3", "create 4 1"]
    assert not machine.receive(created(3), 10.4)
    assert not machine.receive(created(4), 10.4)
    assert orders(machine) == ["pull 4 10"]


@pytest.mark.rule("ORDERED-9")
def test_one_after_the_other_is_of_no_use():
    machine = using()
    times = []
    now = 0.0
    for serial in range(1, 8):
        machine.receive(status(serial, "503"), now)
        if serial > 1:
            now = machine.deadline
            machine.handle_timer(now)
        times.append(now)
        machine.receive(created(serial + 1), now)
    assert times == [0.0, 1.0, 3.0, 7.0, 15.0, 25.0, 35.0]
    machine.receive(message(1, 1, serial=8), 36.0)
    machine.receive(status(8, "503"), 36.0)
    assert orders(machine)[-2:] == ["delete 8", "create 9 2"]


USES = [  # what ends a pull of the second consumer; whether it was of use
    (status(2, LEADER), False),
    (status(2, TIMEOUT, 10), True),
    (beat(2), True),
    (message(1, 1, serial=2), True),
]


@pytest.mark.rule("ORDERED-9")
@pytest.mark.parametrize(("end", "useful"), USES)
def test_signs_that_a_consumer_works(end, useful):
    """A change of leader does not: the next try comes after a pause."""
    machine = using()
    play(machine, [(1.0, status(1, DELETED)), (1.1, created(2)), (1.2, end)])
    orders(machine)
    play(machine, [(1.3, status(2 if end.data or end.status == 100 else 3, "503"))])
    made = [order for order in orders(machine) if order.startswith("create")]
    assert len(made) == useful
    assert useful or machine.deadline == 2.3


@pytest.mark.rule("ORDERED-16")
def test_the_stream_is_gone():
    machine = using()
    play(machine, [(1.0, message(1)), (2.0, status(1, DELETED))])
    assert machine.receive(refused(2), 2.1)
    assert machine.ended
    assert isinstance(machine.error, StreamNotFound)
    assert (machine.leaving, machine.deadline, machine.pending()) == (True, None, 1)
    assert orders(machine) == ["delete 1", "create 2 2"]
    assert not machine.handle_timer(100.0)
    assert not machine.receive(refused(2), 100.0)


@pytest.mark.rule("ORDERED-11")
@pytest.mark.rule("ORDERED-16")
def test_no_more_attempts():
    machine = using(max_attempts=1)
    play(machine, [(2.0, status(1, DELETED)), (2.1, created(2)), (2.2, status(2, DELETED))])
    assert isinstance(machine.error, ResetFailed)
    assert orders(machine) == ["delete 1", "create 2 1", "pull 2 10", "delete 2"]


@pytest.mark.rule("D-CONSUME-27")
@pytest.mark.parametrize(("options", "kept"), [({}, 84), ({"max_bytes": 600}, 20)])
def test_more_messages_than_requested(options, kept):
    """A dropped message is a gap in the sequence: the next consumer starts there."""
    machine = using(**options)
    for seq in range(1, 200):
        machine.receive(message(seq), 1.0)
    assert (machine.pending(), machine.dropped, machine.events.items) == (kept, 199 - kept, [])
    for _ in range(kept):
        machine.pop(2.0)
    assert machine.receive(message(200), 2.0)
    assert [type(event).__name__ for event in machine.events.items] == ["ConsumerReset"]
    assert orders(machine)[-1] == f"create 2 {kept + 1}"


@pytest.mark.rule("ORDERED-16")
@pytest.mark.parametrize("line", ["400 Bad Request", "409 Consumer is push based"])
def test_other_errors_are_the_end(line):
    machine = using()
    assert machine.receive(status(1, line), 1.0)
    assert machine.ended
    assert machine.error is not None
    assert orders(machine) == ["delete 1"]


@pytest.mark.rule("D-ORDERED-17")
@pytest.mark.rule("D-ORDERED-19")
def test_stop():
    machine = using()
    play(machine, [(1.0, message(1)), (1.0, message(2)), (1.0, message(3))])
    machine.pop(1.0)
    assert [msg.raw_reply.split(b".")[5] for msg in machine.stop()] == [b"2", b"3"]
    assert machine.policy.cursor.start == 2
    assert (machine.leaving, orders(machine)) == (True, [])
    assert machine.end()  # as the connection reports
    assert orders(machine) == ["delete 1"]
    assert machine.stop() == []
    assert machine.policy.cursor.start == 2


@pytest.mark.rule("D-ORDERED-19")
def test_stop_before_anything_was_taken():
    machine = using()
    play(machine, [(1.0, message(7, 1)), (1.0, message(8, 2))])
    machine.stop()
    assert machine.policy.cursor.start == 7


@pytest.mark.rule("D-ORDERED-17")
def test_stop_after():
    machine = using(stop_after=3)
    play(machine, [(1.0, message(1)), (1.0, message(3))])
    play(machine, [(1.0, created(2)), (1.0, message(2, 1, 2)), (1.0, message(3, 2, 2))])
    assert orders(machine) == ["delete 1", "create 2 2", "pull 2 2"]
    assert seqs(machine) == [1, 2, 3]
    assert machine.finished
    machine.end()
    assert orders(machine) == ["delete 2"]


def test_drain():
    machine = using()
    play(machine, [(1.0, message(1))])
    machine.start_draining()
    machine.draining = True
    play(machine, [(1.0, message(2)), (1.1, message(4)), (1.2, message(5)), ("timer", 50.0)])
    assert (orders(machine), event_names(machine), machine.deadline) == ([], [], None)
    machine.end()
    assert (orders(machine), seqs(machine)) == (["delete 1"], [1, 2])


def test_stopped_machines_ignore_changes_of_the_connection():
    machine = using()
    machine.start_draining()
    play(machine, [("lost", 1.0), ("back", 2.0)])
    assert (orders(machine), event_names(machine)) == ([], [])


@pytest.mark.rule("ORDERED-12")
def test_the_consumer_is_deleted_however_the_subscription_ends():
    machine = using()
    machine.end(ConnectionClosed("closed"))
    assert (orders(machine), machine.deadline) == (["delete 1"], None)


T = ["2026-01-01T00:00:0%dZ" % second for second in range(6)]


def stream(serial, created_at):
    reply = {"config": {}, "created": created_at}
    return Msg(INBOX + b".s%d" % serial, 1, b"", json.dumps(reply).encode(), None)


def checked(**options):
    """Return a machine in use, whose first consumer is known to be created at T[2]."""
    machine = using(**options)
    machine.policy.cursor._oldest = Timestamp.parse(T[2])
    return machine


def asked(machine):
    """Return effects like `orders`, with "stream" for STREAM.INFO, and "create 3 all"."""
    found = []
    for order in publishes(machine):
        words = order.subject.decode().split(".")
        if words[2:4] == ["STREAM", "INFO"]:
            found.append("stream")
        elif "CREATE" in words:
            config = json.loads(order.data)["config"]
            start = config.get("opt_start_seq", config["deliver_policy"])
            found.append("create %s %s" % (words[5][2:], start))
        else:
            found.append(words[3].lower())
    return found


@pytest.mark.rule("D-ORDERED-30")
def test_nothing_is_pulled_before_the_stream_is_known():
    machine = checked()
    play(machine, [(1.0, message(1)), (2.0, status(1, DELETED)), (2.1, created(2))])
    assert asked(machine) == ["delete", "create 2 2", "stream"]
    assert machine.deadline == 3.1
    assert machine.receive(message(7, 1, serial=2), 2.2) is False  # none of this counts yet
    assert machine.receive(stream(2, T[1]), 2.2) is False
    assert (orders(machine), event_names(machine)) == (["pull 2 9"], ["ConsumerDeleted"])


@pytest.mark.rule("D-ORDERED-31")
def test_the_stream_was_recreated():
    machine = checked()
    play(machine, [(1.0, message(70, 1)), (2.0, status(1, DELETED)), (2.1, created(2))])
    event_names(machine)
    publishes(machine)
    assert machine.receive(stream(2, T[4]), 2.2) is True
    assert machine.events.items == [
        StreamRecreated("S", Timestamp.parse(T[2]), Timestamp.parse(T[4]))
    ]
    machine.events.items.clear()
    assert asked(machine) == ["delete", "create 3 all"]
    play(machine, [(2.3, created(3)), (2.4, stream(3, T[4]))])
    assert machine.receive(message(1, 1, serial=3), 2.5) is False
    assert seqs(machine) == [70, 1]
    assert event_names(machine) == []


@pytest.mark.rule("D-ORDERED-19")
@pytest.mark.rule("D-ORDERED-31")
@pytest.mark.parametrize(("new", "start"), [([], 1), ([1], 1), ([1, 2], 1)])
def test_untaken_messages_of_a_deleted_stream(new, start):
    """They cannot be redelivered: the next use starts in the current stream."""
    machine = checked()
    play(machine, [(1.0, message(70, 1)), (1.1, message(71, 2)), (1.2, status(1, DELETED))])
    play(machine, [(2.1, created(2)), (2.2, stream(2, T[4])), (2.3, created(3))])
    play(machine, [(2.4, stream(3, T[4]))])
    play(machine, [(2.5, message(seq, seq, serial=3)) for seq in new])
    machine.pop(3.0)
    assert [msg.raw_reply.split(b".")[5] for msg in machine.stop()] == [
        b"71",
        *[b"%d" % seq for seq in new],
    ]
    assert machine.policy.cursor.start == start
