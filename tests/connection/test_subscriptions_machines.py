"""The effects of machines, and how they are applied."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.outbound import Outbound
from natsproto.connection.receiver import Receiver
from natsproto.connection.subscriptions import Subscriptions
from natsproto.connection.tokens import Numbers
from natsproto.errors import PayloadTooLarge
from natsproto.wire.frames import Msg
from tests.connection.support import Wire, msg


class Machine(Receiver):
    """Emits one publish for each message, and records what could not be sent."""

    def __init__(self):
        super().__init__()
        self.back = []

    def pull(self, data=b"x"):
        self.emit(b"pull", data, b"_INBOX.1")

    def receive(self, msg: Msg, now: float) -> bool:
        self.pull(msg.data)
        return False

    def unsent(self, effect, error):
        self.back.append((effect.data, type(error)))

    def connected(self, now):
        self.pull(b"again")


def make():
    bus = Bus()
    outbound = Outbound(bus, 0)
    return Subscriptions(bus, outbound, Numbers()), outbound


def taken(outbound):
    return b"".join(outbound.take())


@pytest.mark.rule("D-RECON-9")
def test_publishes_of_a_machine_are_sent_and_counted():
    subscriptions, outbound = make()
    outbound.release()
    machine = Machine()
    machine.pull(b"1")
    machine.pull(b"2")
    subscriptions.apply(machine)
    subscriptions.apply(machine)
    assert taken(outbound) == b"".join(b"PUB pull _INBOX.1 1\r\n%d\r\n" % i for i in (1, 2))
    assert (outbound.stats.out_msgs, outbound.accepted) == (2, 0)


@pytest.mark.rule("D-RECON-9")
def test_effects_neither_wait_for_a_connection_nor_outlive_one():
    subscriptions, outbound = make()
    machine = Machine()
    machine.pull()
    subscriptions.apply(machine)
    outbound.release()
    assert taken(outbound) == b""
    machine.pull()
    subscriptions.apply(machine)
    outbound.take_back()
    outbound.release()
    assert (taken(outbound), machine.back) == (b"", [])


@pytest.mark.rule("D-RECON-9", "D-CONN-20")
def test_an_effect_that_cannot_be_sent_is_returned_to_its_machine():
    wire = Wire().up(max_payload=5)
    machine = Machine()
    wire.connection.subscribe("a", machine)
    wire.connection.outbound.clear()
    wire.data(msg("a", 1, b"12345") + msg("a", 1, b"ok"))
    assert wire.sent() == b"PUB pull _INBOX.1 5\r\n12345\r\nPUB pull _INBOX.1 2\r\nok\r\n"
    machine.pull(b"123456")
    wire.connection.apply(machine)
    assert (wire.sent(), machine.back) == (b"", [(b"123456", PayloadTooLarge)])


@pytest.mark.rule("D-RECON-9")
def test_a_machine_emits_new_effects_when_it_is_connected():
    wire = Wire().up()
    machine = Machine()
    wire.connection.subscribe("a", machine)
    wire.writable = False
    wire.data(msg("a", 1, b"old")).lost()
    wire.writable = True
    wire.greet().sent()
    assert wire.data(b"PONG\r\n").sent() == b"SUB a 1\r\nPUB pull _INBOX.1 5\r\nagain\r\n"


class Waiting(Receiver):
    """Sets a deadline when it is connected, and records when that comes."""

    def __init__(self):
        super().__init__()
        self.times = []

    def connected(self, now):
        self.deadline = now + 3.0

    def handle_timer(self, now):
        self.times.append(now)
        self.deadline = None
        return False


@pytest.mark.rule("D-CLOCK-1")
def test_a_deadline_that_a_connection_sets_is_armed():
    wire = Wire().up()
    machine = Waiting()
    wire.connection.subscribe("a", machine)
    wire.lost(at=5.0)
    wire.greet().data(b"PONG\r\n")
    while wire.now < 8.0:
        wire.ring()
    assert machine.times == [8.0]
