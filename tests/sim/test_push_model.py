"""The model of push consumers against transcripts of a real server."""

from __future__ import annotations

import base64
import re

import pytest

from jetstream.testing.sim.pull_model import NANO, Model
from jetstream.testing.sim.push_model import PushModel
from natsproto import Parser
from natsproto.testing.sim.clock import Clock
from natsproto.testing.sim.peer import Peer
from natsproto.wire.frames import Msg
from tests.sim.test_model import read, shape

REQUEST = re.compile(rb"\$JS\.FC\.[^ \r]+")
REPLAYS = [  # transcript, stream, deliver subject, payloads, heartbeat, flow control, domain
    ("45", "PH", "dlv.ph", [b"m1...", b"m2..."], 0.5, False, ""),
    ("46", "FC", "dlv.fc", [b"z" * 16000] * 300, 0.3, True, ""),
    ("89", "S", "dlv", [b"z" * 16000] * 150, 0.3, True, "hub.szMpdrwD."),
]


def shapes(data):
    """Of messages the reply subject but for its time, statuses with their requests numbered."""
    names = {}
    found = []
    for frame in Parser().feed(data):
        if not isinstance(frame, Msg):
            continue
        if frame.raw_reply.startswith(b"$JS.ACK"):
            words = frame.raw_reply.split(b".")
            found.append((frame.raw_subject, *words[:-2], words[-1], len(frame.data)))
            continue
        block = frame.raw_headers
        for name in REQUEST.findall(frame.raw_reply + block):
            names.setdefault(name, b"request %d" % len(names))
        reply = names.get(frame.raw_reply, b"")
        for name, number in names.items():
            block = block.replace(name, number)
        found.append((frame.raw_subject, reply, block))
    return found


@pytest.mark.parametrize(
    ("name", "stream", "target", "payloads", "heartbeat", "flow_control", "domain"), REPLAYS
)
def test_replay(name, stream, target, payloads, heartbeat, flow_control, domain):
    clock = Clock()
    model = PushModel(clock, stream, domain=domain)
    config = {"deliver_subject": target, "idle_heartbeat": round(heartbeat * NANO)}
    consumer = model.add_consumer("C", {**config, "flow_control": flow_control})
    sent = []
    peer = Peer(model, sent.append)
    expected = b""
    frames = [frame for frame in read(name) if "b64" in frame]
    for frame in frames:
        data = base64.b64decode(frame["b64"])
        at = frame["t_ms"] / 1000
        if frame["dir"] == "<":
            if data.startswith(b"MSG") and not model.stored:
                clock.run_until(at)
                for payload in payloads:
                    model.add(payload)
                    if len(payloads) == 2:  # they came one by one
                        model.pump()
                model.pump()
            expected += data
        elif data.startswith(b"SUB"):
            peer.receive(data)
        elif data.startswith(b"PUB $JS.FC."):
            clock.run_until(at)
            peer.receive(b"PUB %s 0\r\n\r\n" % consumer.request)
    clock.run_until(at + 0.1)
    recorded = shapes(expected)
    # Of many messages in a row the transcript has the first and the last ones.
    found = [each for each in shapes(b"".join(sent)) if len(each) == 3 or each in recorded]
    assert found == recorded


def test_replay_of_a_pull_with_the_second_form_of_acknowledgements():
    clock = Clock()
    model = Model(clock, "S")
    model._ack = b"$JS.ACK._.szMpdrwD.S.C."
    for _ in range(2):
        model.add(b"m")
    sent = []
    peer = Peer(model, sent.append)
    expected = []
    for frame in read("88"):
        data = base64.b64decode(frame.get("b64", ""))
        if frame["dir"] == "<":
            expected.append(data)
        elif data.startswith((b"SUB _INBOX.p", b"PUB $JS.API.CONSUMER.MSG.NEXT")):
            peer.receive(data)
    messages = [each for each in shape(b"".join(expected)) if len(each) == 3]
    assert shape(b"".join(sent)) == messages


def test_a_wildcard_is_not_served():
    clock = Clock()
    model = PushModel(clock)
    model.add_consumer("C", {"deliver_subject": "d.1", "idle_heartbeat": NANO})
    model.add(b"x")
    sent = []
    peer = Peer(model, sent.append)
    peer.receive(b"SUB d.* 1\r\n")
    clock.run_until(5.0)
    assert shapes(b"".join(sent)) == []
    peer.receive(b"SUB d.1 2\r\n")
    assert len(shapes(b"".join(sent))) == 1
