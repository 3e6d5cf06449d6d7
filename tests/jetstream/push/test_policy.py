"""The policy PlainPush alone; test_machine.py and test_liveness.py have it with its machine."""

from __future__ import annotations

import pytest

from jetstream.events import ConsumerSequenceReset, Gap
from jetstream.machine.policy import CONTROL, FULL, KEEP
from jetstream.push.liveness import LivenessProbe
from jetstream.push.policy import PlainPush
from natsproto.connection.effects import Poke
from natsproto.errors import ConnectionLost
from natsproto.wire.frames import Msg
from tests.jetstream.pushes import beat, flow, message, status

STORED = status("100 Idle Heartbeat", reply=b"$JS.ACK.S.C.1.1.1.1794786870000000000.0")
ODD = Msg(b"s.x", 1, b"", b"x", None)
VERDICTS = [  # message, whether there is room, verdict
    (message(1), True, KEEP),
    (message(1), False, FULL),
    (message(1, headers=b"NATS/1.0\r\nA: b\r\n\r\n"), True, KEEP),
    (ODD, True, KEEP),
    (STORED, True, KEEP),
    (beat(0), False, CONTROL),
    (flow("$JS.FC.S.C.x"), True, CONTROL),
    (status("409 Consumer Deleted"), True, CONTROL),
    (status("100 Idle Heartbeat", data=b"x"), True, KEEP),
]


@pytest.mark.rule("PUSH-16")
@pytest.mark.parametrize(("msg", "room", "verdict"), VERDICTS)
def test_verdicts(msg, room, verdict):
    assert PlainPush().admit(msg, room) is verdict


NUMBERS = [  # last, numbers that arrive, events, last in the end
    (0, [1, 2], [], 2),
    (None, [5, 6], [], 6),
    (0, [2, 4], [Gap(1, 1), Gap(3, 3)], 4),
    (4, [1], [ConsumerSequenceReset(4, 1)], 1),
    (4, [3], [ConsumerSequenceReset(4, 3)], 3),
]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("last", "numbers", "events", "end"), NUMBERS)
def test_numbers(last, numbers, events, end, at_once):
    policy = PlainPush(last)
    msgs = [message(number) for number in numbers] + [ODD]
    if at_once:
        assert policy.admit_all(msgs)
    else:
        assert [policy.admit(msg, True) for msg in msgs] == [KEEP] * len(msgs)
    assert (policy.events.items, policy.last) == (events, end)


@pytest.mark.parametrize(("at", "events", "last"), [(3, [Gap(3, 3)], 3), (2, [], 2), (None, [], 2)])
def test_heartbeats(at, events, last):
    policy = PlainPush(2)
    assert policy.heartbeat(at) is None
    assert (policy.events.items, policy.last) == (events, last)


def test_a_queue_group_gets_a_part_of_the_numbers():
    policy = PlainPush(0, queue_group=True)
    assert policy.admit(message(7), True) is KEEP
    assert policy.admit_all([message(9)])
    assert policy.heartbeat(12) is None
    assert (policy.events.items, policy.last) == ([], 0)


class Probe:
    """A probe that records its calls."""

    def __init__(self):
        self.calls = []

    def look(self, now):
        self.calls.append(now)

    def leave(self):
        self.calls.append("leave")


@pytest.mark.rule("JSSUB-16")
@pytest.mark.parametrize(("on_reconnect", "calls"), [(True, [3.0, 4.0]), (False, [4.0])])
def test_when_the_consumer_is_looked_up(on_reconnect, calls):
    probe = Probe()
    policy = PlainPush(probe=probe, probe_on_reconnect=on_reconnect)
    policy.connected(1.0)
    policy.connected(3.0)
    assert not policy.lost(ConnectionLost("x"), 4.0)
    policy.close()
    assert probe.calls == [*calls, "leave"]
    assert policy.take_effects() == [Poke(probe)] * len(probe.calls)
    assert policy.take_effects() == []


def test_without_a_probe():
    policy = PlainPush(probe_on_reconnect=True)
    policy.connected(1.0)
    policy.connected(2.0)
    assert not policy.lost(ConnectionLost("x"), 4.0)
    policy.close()


@pytest.mark.rule("JSSUB-16")
def test_by_default_there_is_no_lookup_after_a_reconnect():
    policy = PlainPush(probe=LivenessProbe("$JS.API", "S", "c", "t", "i"))
    policy.connected(0.0)
    policy.connected(1.0)
    assert policy.take_effects() == []
