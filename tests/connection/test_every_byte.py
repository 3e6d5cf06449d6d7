"""A whole dialogue, with the transport cut after every single byte that the server sends.

Whatever the byte, the client reconnects on the next transport, and in the end every subscription is
active once, no message is delivered twice, nothing is sent twice, every request is settled, and
nothing is left over from the previous transport.
"""

from __future__ import annotations

import pytest

from natsproto.errors import ConnectionLost, NoResponders, TimeoutExpired
from natsproto.wire.frames import Connect, Pub, Sub
from tests.connection.peer import Cable
from tests.connection.support import PING, Wire, err, info, names, texts

pytestmark = pytest.mark.rule("RECON-4", "RECON-7", "D-RECON-11", "SUB-2", "D-CONN-20")


class Dialogue:
    """The steps of a client's life, on any transport."""

    def __init__(self, cut=None, slow=0):
        self.wire = Wire(max_reconnects=-1, retry_on_first_connect=True)
        self.cable = Cable(self.wire, cut, slow)
        self.accepted = []
        self.requests = []
        self.boxes = []

    def run(self):
        wire = self.wire.connect()
        connection = wire.connection
        self.cable.pump()
        self.boxes = [wire.subscribe("a.*"), wire.subscribe("b"), wire.subscribe("c")]
        connection.unsubscribe(2, after=3)
        self.publish("a.1", "b", "c", "a.2")
        self.request("echo", "nobody", "silent")
        self.requests.append(connection.start_gather("many", deadline=9.0, max_msgs=3))
        self.accepted.append("many")
        self.serve(PING + info(connect_urls=["a:4222"]))
        self.serve(err('Permissions Violation for Publish to "z"') + b"+OK\r\n")
        self.requests.append(connection.start_flush(9.0))
        self.publish("b", "a.3", "b", "b")
        connection.unsubscribe(3)
        self.publish("c", "a.4")
        self.request("echo")
        self.requests.append(connection.start_flush(9.0))
        self.cable.pump()
        return self

    def publish(self, *subjects):
        for subject in subjects:
            self.wire.connection.publish(subject, b"%d" % len(self.accepted))
            self.accepted.append(subject)
        self.cable.pump()

    def request(self, *subjects):
        for subject in subjects:
            self.requests.append(self.wire.connection.start_request(subject, deadline=9.0))
            self.accepted.append(subject)
        self.cable.pump()

    def serve(self, data):
        self.cable.servers[-1].output += data
        self.cable.pump()

    def frames(self, kind):
        return [
            [frame for frame in server.seen if isinstance(frame, kind)]
            for server in self.cable.servers
        ]

    def end(self):
        """Let all timeouts pass."""
        for now in (9.0, 10.0):
            self.wire.timer(at=now)
            self.cable.pump()


def check(dialogue, cuts):
    wire, connection = dialogue.wire, dialogue.wire.connection
    assert (wire.state, len(dialogue.cable.servers)) == ("CONNECTED", cuts + 1)
    # Nothing is sent twice, and nothing is forgotten.
    sent = [frame.subject for frames in dialogue.frames(Pub) for frame in frames]
    assert sent == dialogue.accepted
    assert [len(frames) for frames in dialogue.frames(Connect)][-1] == 1
    # No message is delivered twice, and all arrive in order.
    for box in dialogue.boxes:
        numbers = [int(text) for text in texts(box)]
        assert numbers == sorted(set(numbers))
    assert dialogue.boxes[1].received <= 3
    # Subscriptions are in force if they have not ended, and only then.
    live = {1, 4} | ({2} if not dialogue.boxes[1].ended else set())
    assert set(connection.subscriptions.by_sid) == live
    assert live <= {frame.sid for frame in dialogue.frames(Sub)[-1]}
    # Everything is settled, by an answer or for a reason.
    dialogue.end()
    for request in dialogue.requests:
        assert request.done
        assert type(request.error) in (type(None), NoResponders, TimeoutExpired, ConnectionLost)
    # Nothing is left over.
    assert (connection.pings._waiting, connection.pings._flushes, connection.outbound._held) == (
        [],
        [],
        [],
    )
    assert (
        connection.requests.inbox.open,
        connection.subscriptions.dropping,
        connection.subscriptions.busy,
    ) == ({}, [], [])
    assert len(connection.bus.timers.heap) < 10
    found = [name for name in names(wire.events()) if name in ("Connected", "Disconnected")]
    assert found in (["Connected"], ["Connected", "Disconnected", "Connected"])


def test_the_dialogue_uncut():
    dialogue = Dialogue().run()
    check(dialogue, 0)
    assert [type(request.error) for request in dialogue.requests] == [
        type(None),
        NoResponders,
        TimeoutExpired,
        type(None),
        type(None),
        type(None),
        type(None),
    ]
    assert len(dialogue.requests[3].replies) == 3
    assert [box.received for box in dialogue.boxes] == [4, 3, 1]
    assert dialogue.boxes[1].ended


LENGTH = Dialogue().run().cable.carried


@pytest.mark.parametrize("slow", [0, 40], ids=["whole reads", "the last bytes one by one"])
def test_the_dialogue_cut_after_every_byte(slow):
    assert 600 < LENGTH < 1500
    for cut in range(1, LENGTH + 1):
        check(Dialogue(cut, slow).run(), 1)


def test_the_dialogue_byte_by_byte_and_cut_after_some():
    for cut in range(1, LENGTH + 1, 31):
        check(Dialogue(cut, slow=cut).run(), 1)
