from __future__ import annotations

import json

import pytest

from jetstream.machine.status import Status
from jetstream.pull.ledger import Ledger, Pull, counted_size, read_pin
from natsproto.wire.frames import Msg
from tests.jetstream.pulls import PIN, message, pinned, status, template

# The ledger. Pulls are (messages, bytes), steps are
#   "m" or a number: a message, of that size     (token, line, messages, bytes): a status
# and what is left is (messages, bytes, open tokens).
TIMEOUT = "408 Request Timeout"
LEADER = "409 Leadership Change"
TABLE = [
    ("nothing yet", [(10, 0)], [], (10, 0, [1])),
    ("one came", [(10, 0)], ["m"], (9, 0, [1])),
    ("all came", [(2, 0)], ["m", "m"], (0, 0, [])),
    ("more than all", [(2, 0)], ["m", "m", "m"], (0, 0, [])),
    ("its rest is free", [(10, 0)], ["m", (1, TIMEOUT, 9, 0)], (0, 0, [])),
    ("a second status", [(5, 0), (7, 0)], [(1, TIMEOUT, 5, 0), (1, TIMEOUT, 5, 0)], (7, 0, [2])),
    ("of no pull", [(5, 0)], [(9, TIMEOUT, 5, 0)], (5, 0, [1])),
    ("a new leader", [(5, 0), (7, 0)], [(2, LEADER, None, 0)], (0, 0, [])),
    ("reported by a counted one", [(1, 0), (7, 0)], ["m", (1, LEADER, None, 0)], (0, 0, [])),
    ("refused", [(5, 0), (7, 0)], [(2, "503", None, 0)], (5, 0, [1])),
    ("refused bytes", [(5, 100), (7, 90)], [(2, "503", None, 0)], (5, 100, [1])),
    ("refused, but booked", [(2, 0), (3, 0)], ["m"] * 3 + [(1, "503", None, 0)], (0, 0, [])),
    # Two pulls of 4, served in turn: 2 messages of each, booked on the first.
    ("booked on the oldest", [(4, 0), (4, 0)], ["m"] * 4, (4, 0, [2])),
    ("corrected by the first", [(4, 0), (4, 0)], ["m"] * 4 + [(1, TIMEOUT, 2, 0)], (2, 0, [2])),
    ("corrected by the second", [(4, 0), (4, 0)], ["m"] * 4 + [(2, TIMEOUT, 2, 0)], (2, 0, [1])),
    ("taken from the next", [(4, 0), (4, 0)], ["m"] * 2 + [(2, TIMEOUT, 3, 0)], (3, 0, [1])),
    ("given to the next", [(4, 0), (4, 0)], ["m"] * 2 + [(1, TIMEOUT, 4, 0)], (2, 0, [2])),
    ("down to nothing", [(4, 0), (4, 0)], ["m"] * 4 + [(1, TIMEOUT, 4, 0)], (0, 0, [])),
    ("and not below", [(4, 0), (4, 0)], ["m"] * 6 + [(1, TIMEOUT, 4, 0)], (0, 0, [])),
    ("over two", [(3, 0), (2, 0), (4, 0)], ["m"] * 3 + [(1, TIMEOUT, 3, 0)], (3, 0, [3])),
    ("nothing to reopen", [(2, 0)], [(1, TIMEOUT, 1, 0)], (0, 0, [])),
    ("a counted one", [(2, 0), (2, 0)], ["m"] * 4 + [(1, LEADER, None, 0)], (0, 0, [])),
    ("bytes", [(100, 400)], [90, 90], (98, 220, [1])),
    ("bytes to the last", [(100, 180)], [90, 90], (0, 0, [])),
    ("bytes below nothing", [(100, 180)], [90, 100], (0, 0, [])),
    ("bytes of the next", [(100, 100), (100, 300)], [90, 90], (100, 220, [2])),
    ("bytes of both", [(50, 100), (50, 300)], [90, 90, (1, TIMEOUT, 49, 10)], (49, 210, [2])),
    ("bytes are free", [(100, 400)], [90, (1, TIMEOUT, 99, 310)], (0, 0, [])),
    ("bytes corrected", [(50, 400), (50, 300)], [90, 90, (2, TIMEOUT, 49, 210)], (49, 310, [1])),
    ("batch completed", [(1, 400)], [90, (1, "409 Batch Completed", 0, 310)], (0, 0, [])),
    ("messages without bytes", [(50, 400)], [(1, "409 Server Shutdown", 50, 0)], (0, 0, [])),
]  # fmt: skip


def fill(pulls):
    ledger = Ledger()
    for token, (messages, size) in enumerate(pulls, 1):
        ledger.add(Pull(b"%d" % token, messages, size, 31.0))
    return ledger


@pytest.mark.rule("PULL-8")
def test_which_pulls_are_known():
    ledger = fill([(1, 0), (5, 0)])
    ledger.delivered(0)
    assert [ledger.knows(b"%d" % token) for token in (1, 2, 3)] == [True, True, False]
    ledger.clear()
    assert not ledger.knows(b"1")


@pytest.mark.rule("PULL-7")
@pytest.mark.rule("PULL-8")
@pytest.mark.parametrize(("name", "pulls", "steps", "left"), TABLE, ids=[row[0] for row in TABLE])
def test_ledger(name, pulls, steps, left):
    ledger = fill(pulls)
    for step in steps:
        if isinstance(step, tuple):
            ledger.ended(b"%d" % step[0], Status(status(*step)))
        else:
            ledger.delivered(0 if step == "m" else step)
    tokens = [int(pull.token) for pull in ledger.open]
    assert (ledger.messages, ledger.size, tokens) == left


@pytest.mark.rule("PULL-8")
def test_which_pull_a_status_ends():
    ledger = fill([(1, 0), (5, 0)])
    first, second = ledger.open
    ledger.delivered(0)
    shutdown = Status(status(1, "409 Server Shutdown", 0))
    assert ledger.ended(b"1", shutdown) is first
    assert ledger.ended(b"1", shutdown) is None
    assert ledger.ended(b"2", shutdown) is second
    assert ledger.ended(b"2", shutdown) is None


@pytest.mark.rule("PULL-7")
def test_a_counted_pull_opens_again():
    ledger = fill([(2, 0), (2, 0)])
    for _ in range(4):  # one of them for an abandoned pull: both seem to be done
        ledger.delivered(0)
    assert ledger.open == []
    ledger.add(Pull(b"3", 5, 0, 31.0))
    ledger.ended(b"3", Status(status(3, TIMEOUT, 4)))  # it had 1, so the second one has the rest
    assert [(pull.token, pull.messages) for pull in ledger.open] == [(b"2", 1)]


@pytest.mark.rule("PULL-8")
def test_only_the_last_counted_pulls_are_remembered():
    ledger = fill([(1, 0)] * 20 + [(100, 0)])
    for _ in range(20):
        ledger.delivered(0)
    assert ledger.ended(b"4", Status(status(4, TIMEOUT, 1))) is None
    assert ledger.ended(b"5", Status(status(5, TIMEOUT, 1))) is not None
    assert ledger.messages == 99


@pytest.mark.rule("PULL-14")
def test_overdue_pulls():
    ledger = Ledger()
    ledger.add(Pull(b"1", 5, 0, 31.0))
    ledger.add(Pull(b"2", 6, 0, 41.0))
    assert ledger.ends_at == 31.0
    assert not ledger.give_up(30.9)
    assert ledger.give_up(31.0)
    assert (ledger.messages, ledger.ends_at) == (6, 41.0)
    ledger.clear()
    assert (ledger.messages, ledger.open) == (0, [])
    assert ledger.ended(b"2", Status(status(2, TIMEOUT, 1))) is None


@pytest.mark.rule("PULL-1")
@pytest.mark.parametrize(
    ("batch", "size", "pin", "body"),
    [
        (1, 0, "", {"expires": 9, "batch": 1}),
        (1_000_000, 400, "", {"expires": 9, "batch": 1_000_000, "max_bytes": 400}),
        (5, 0, PIN, {"expires": 9, "batch": 5, "id": PIN}),
    ],
)
def test_body(batch, size, pin, body):
    pattern = template(expires=9)
    pattern._fields["expires"] = 9
    assert json.loads(pattern.body(batch, size, pin)) == body
    assert pattern._fields == {"expires": 9}
    assert pattern.body(batch, size, pin) is pattern.body(batch, size, pin)
    assert json.loads(pattern.body(batch + 1, size, pin)) == dict(body, batch=batch + 1)


@pytest.mark.rule("FETCH-12")
@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"no_wait": True}, {}),
        ({"no_wait": True, "expires": 9, "idle_heartbeat": 4}, {}),
        ({"no_wait": True, "group": "g"}, {"group": "g"}),
    ],
)
def test_a_pull_that_is_over_when_it_arrives(fields, left):
    pattern = template(**{})
    pattern._fields.update(fields)
    assert json.loads(pattern.expired()) == {"batch": 1, "expires": 1, **left}
    assert pattern._fields == fields


BLOCK = b"NATS/1.0\r\nNats-Pin-Id: %s\r\n\r\n"


@pytest.mark.rule("PULL-12")
@pytest.mark.parametrize(
    ("block", "pin"),
    [
        (None, ""),
        (b"", ""),
        (b"NATS/1.0\r\n\r\n", ""),
        (BLOCK % PIN.encode(), PIN),
        (b"NATS/1.0\r\nA: b\r\nNats-Pin-Id: %s\r\n\r\n" % PIN.encode(), PIN),
        (BLOCK % b"", ""),
        (BLOCK % b"short", ""),
        (BLOCK % (b"x" * 23), ""),
        (b"NATS/1.0\r\nNats-Pin-Id: %s\r\nA: b\r\n\r\n" % PIN.encode(), ""),
        (BLOCK % (b"\xff" * 22), "\udcff" * 22),
    ],
)
def test_pin(block, pin):
    assert read_pin(Msg(b"s", 1, b"r", b"", block)) == pin


@pytest.mark.rule("PULL-11")
@pytest.mark.parametrize(
    ("msg", "is_pinned", "size"),
    [
        # 2 of 5 payload bytes each left 3994 of 4096 in transcript 15.
        (Msg(b"exb.x", 1, b"$JS.ACK.EXB.C.1.1.1.1794786878451258903.1", b"m1..."), False, 51),
        (Msg(b"mbx.x", 1, b"$JS.ACK.MBX.C.1.1.1.1794787088883895020.7", b"m" * 50), False, 96),
        (Msg(b"s", 1, b"rr", b"", b"NATS/1.0\r\nA: b\r\n\r\n"), False, 21),
        (message(40), True, 40),
        (pinned(size=60), True, 60),
        (pinned(size=60), False, 109),
        (message(60, headers=b"NATS/1.0\r\nA: b\r\n\r\n"), True, 78),
        (message(60, headers=BLOCK.replace(b"\r\n", b"\r\nA: b\r\n", 1) % PIN.encode()), True, 78),
    ],
)  # fmt: skip
def test_size(msg, is_pinned, size):
    assert counted_size(msg, is_pinned) == size


@pytest.mark.rule("PULL-7")
@pytest.mark.parametrize("count", range(8))
def test_several_at_once(count):
    one, other = fill([(2, 0), (3, 0)]), fill([(2, 0), (3, 0)])
    for _ in range(count):
        one.delivered(0)
    other.delivered_all(count)
    assert other.open == one.open
    assert [other.knows(b"%d" % token) for token in (1, 2)] == [True, True]


@pytest.mark.rule("D-CONSUME-27")
def test_abandoned_pulls_are_counted():
    ledger = Ledger()
    for token, ends_at in [(b"1", 10.0), (b"2", 20.0), (b"3", 30.0)]:
        ledger.add(Pull(token, 5, 100, ends_at))
    assert ledger.give_up(10.0)
    assert (ledger.late, ledger.late_bytes, len(ledger.open)) == (5, 100, 2)
    ledger.delivered(40)
    ledger.clear()
    assert (ledger.late, ledger.late_bytes, ledger.open) == (14, 260, [])


@pytest.mark.rule("D-CONSUME-27")
def test_what_abandoned_pulls_may_deliver():
    ledger = fill([(5, 100), (7, 200)])
    ledger.delivered(10)
    ledger.clear()
    ledger.add(Pull(b"3", 1, 50, 41.0))
    ledger.give_up(41.0)
    found = []
    for time in (30.9, 31.0, 41.0):
        ledger.forget_abandoned(time)
        found.append((ledger.late, ledger.late_bytes))
    assert found == [(12, 340), (1, 50), (0, 0)]
