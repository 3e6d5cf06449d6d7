"""Nothing is sent twice, and nothing that was accepted is lost without having been taken (RECON-7).

Random runs include publishes, requests, subscriptions, an adapter that takes bytes or does not,
losses in every step of the handshake, lame ducks, and forced reconnects.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from natsproto import Parser
from natsproto.connection.states import CONNECTED, DIALING, GREETING, OPENING, WAITING
from natsproto.errors import PendingBufferFull
from natsproto.wire.frames import Connect, Ping, Pub, Sub, Unsub
from tests.connection.support import PONG, Wire, info

STEPS = st.sampled_from(
    ["publish", "publish", "large", "take", "step", "step", "step", "lose", "pong", "force"]
    + ["subscribe", "unsubscribe", "lame", "flush", "wait"]
)


class Life:
    """A wire whose adapter takes bytes only on request; records the taken bytes by transport."""

    def __init__(self, **options):
        options |= {"servers": ["a", "b"], "max_reconnects": -1, "retry_on_first_connect": True}
        self.wire = Wire(**options)
        self.wire.writable = False
        self.wire.connect()
        self.accepted = []
        self.transports = [b""]
        self.boxes = []

    def do(self, step):
        wire = self.wire
        if step in ("publish", "large"):
            name = f"m.{len(self.accepted)}"
            try:
                wire.connection.publish(name, b"x" * (40 if step == "large" else 0))
            except PendingBufferFull:
                assert wire.connection.outbound.holding
            else:
                self.accepted.append(name.encode())
        elif step == "take":
            self.take()
        elif step == "step":
            self.step()
        elif step == "lose" and wire.state in (DIALING, OPENING, GREETING, CONNECTED):
            wire.lost(at=wire.now + 0.3)
        elif step == "pong" and wire.state == CONNECTED:
            wire.data(PONG)
        elif step == "force":
            wire.tell("force_reconnect")
        elif step == "subscribe":
            self.boxes.append(wire.subscribe("s"))
        elif step == "unsubscribe" and self.boxes:
            wire.connection.unsubscribe(self.boxes.pop().sid)
        elif step == "lame" and wire.state == CONNECTED:
            wire.data(info(ldm=True))
        elif step == "flush":
            wire.connection.start_flush(wire.now + 5.0)
        elif step == "wait":
            wire.timer(at=wire.now + 1.0)
        for effect in wire.effects():
            if type(effect).__name__ == "Dial":
                self.transports.append(b"")

    def take(self):
        """Have the adapter take all available bytes."""
        if self.wire.state in (GREETING, CONNECTED):
            self.transports[-1] += b"".join(self.wire.connection.data_to_send())

    def step(self):
        """Continue the handshake."""
        wire = self.wire
        if wire.state == WAITING:
            wire.ring()
        elif wire.state == DIALING:
            wire.opened()
        elif wire.state == OPENING:
            wire.data(info())
        elif wire.state == GREETING:
            self.take()
            wire.data(PONG)

    def finish(self):
        """Get connected, and take everything."""
        for _ in range(100):
            if self.wire.state == CONNECTED and not self.wire.connection.outbound.holding:
                break
            for step in ("step", "take", "pong"):
                self.do(step)
        assert self.wire.state == CONNECTED
        self.do("take")


def frames(data):
    return Parser(peer="client").feed(data)


@pytest.mark.rule("RECON-7", "RECON-4", "D-LDM-3", "RECON-8")
@given(steps=st.lists(STEPS, max_size=60), size=st.sampled_from([0, 100, 8 * 1024 * 1024]))
@settings(max_examples=400)
def test_every_accepted_publish_is_taken_once_and_in_order(steps, size):
    life = Life(max_pending_out=size)
    for step in steps:
        life.do(step)
    life.finish()
    everything = [frames(data) for data in life.transports]
    taken = [frame.raw_subject for each in everything for frame in each if isinstance(frame, Pub)]
    assert taken == life.accepted


@pytest.mark.rule("RECON-4", "CONN-1")
@given(steps=st.lists(STEPS, max_size=60))
@settings(max_examples=200)
def test_each_transport_begins_with_connect_ping_and_all_subscriptions(steps):
    life = Life()
    for step in steps:
        life.do(step)
    life.finish()
    for data in life.transports:
        seen = frames(data)
        assert [type(frame) for frame in seen[:2]] == [Connect, Ping][: len(seen)]
        assert not [frame for frame in seen[1:] if isinstance(frame, Connect)]
        sids = [frame.sid for frame in seen if isinstance(frame, Sub)]
        assert sids == sorted(set(sids))
    last = frames(life.transports[-1])
    gone = [frame.sid for frame in last if isinstance(frame, Unsub)]
    subs = [frame.sid for frame in last if isinstance(frame, Sub) and frame.sid not in gone]
    assert subs == [box.sid for box in life.boxes]


def test_the_property_detects_a_frame_that_is_sent_twice():
    life = Life()
    for step in ("publish", "publish"):
        life.do(step)
    life.wire.connection.outbound._held.append(life.wire.connection.outbound._held[0])
    life.finish()
    taken = [frame for frame in frames(life.transports[-1]) if isinstance(frame, Pub)]
    assert [frame.raw_subject for frame in taken] != life.accepted
