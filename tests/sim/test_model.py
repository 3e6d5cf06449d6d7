"""The model against transcripts of a real server: the same pulls, the same answers."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from jetstream.testing.sim.pull_model import Model
from natsproto import Parser
from natsproto.testing.sim.clock import Clock
from natsproto.testing.sim.peer import Peer, status_block
from natsproto.wire.frames import Msg
from tests.sim.pins import PinningModel

VECTORS = Path(__file__).parent.parent / "vectors"


def read(name):
    path = next(VECTORS.glob(f"{name}-*.json"))
    return json.loads(path.read_text())["frames"]


def shape(data):
    """Return statuses unchanged; of messages, return the payload and the size that counts."""
    found = []
    for frame in Parser().feed(data):
        if isinstance(frame, Msg):
            if frame.raw_reply:
                found.append((frame.data, len(frame.raw_subject), len(frame.raw_reply)))
            else:
                found.append((frame.raw_subject, frame.raw_headers))
    return found


REPLAYS = [  # transcript, stream, messages, payload, configuration
    ("10", "NW", 0, 5, {}),
    ("11", "NWP", 2, 5, {}),
    ("14", "EX", 2, 5, {}),
    ("15", "EXB", 2, 5, {}),
    ("17", "HB", 0, 5, {}),
    ("18", "HBL", 0, 5, {}),
    ("19", "HBN", 0, 5, {}),
    ("20", "BC", 4, 5, {}),
    ("21", "MB", 1, 500, {}),
    ("22", "MBP", 5, 50, {}),
    ("24", "MW", 0, 5, {"max_waiting": 2}),
    ("25", "MWH", 0, 5, {"max_waiting": 2}),
    ("26", "MRB", 0, 5, {"max_batch": 10}),
    ("27", "MRE", 0, 5, {"max_expires": 2.0}),
    ("28", "MRM", 0, 5, {"max_bytes": 1024}),
]


@pytest.mark.parametrize(("name", "stream", "count", "size", "config"), REPLAYS)
def test_replay(name, stream, count, size, config):
    clock = Clock()
    model = Model(clock, stream, **config)
    for number in range(1, count + 1):
        model.add((b"m%d" % number).ljust(size, b"."))
    sent = []
    peer = Peer(model, sent.append)
    expected = b""
    last = 0.0
    for frame in read(name):
        data = base64.b64decode(frame.get("b64", ""))
        last = frame["t_ms"] / 1000
        if frame["dir"] == "<":
            expected += data
        elif frame["dir"] == ">" and data.startswith((b"SUB", b"PUB $JS.API.CONSUMER.MSG.NEXT")):
            clock.run_until(last)
            peer.receive(data)
    clock.run_until(last + 0.1)
    assert shape(b"".join(sent)) == shape(expected)


# Pulls, priority groups, and what befalls servers.
NUMBERS = [*range(10, 44), 86, *range(101, 110)]


def test_every_status_of_the_transcripts_byte_by_byte():
    seen = set()
    for path in sorted(VECTORS.glob("*.json")):
        if int(path.name.split("-")[0]) not in NUMBERS:
            continue
        for frame in json.loads(path.read_text())["frames"]:
            if frame["dir"] != "<":
                continue
            data = base64.b64decode(frame["b64"])
            if not data.startswith(b"HMSG _INBOX.p"):
                continue
            (msg,) = Parser().feed(data)
            line = f"{msg.status} {msg.description}".strip()
            numbers = (
                msg.headers.get("Nats-Pending-Messages"),
                msg.headers.get("Nats-Pending-Bytes"),
            )
            if numbers[0]:
                block = status_block(line, int(numbers[0]), int(numbers[1]))
            else:
                header = "".join(f"{key}: {value}\r\n" for key, value in msg.headers.items())
                block = status_block(line, header=header)
            assert block == msg.raw_headers
            seen.add(line)
    assert {
        "100 Idle Heartbeat",
        "404 No Messages",
        "408 Request Timeout",
        "409 Batch Completed",
        "409 Consumer Deleted",
        "409 Exceeded MaxWaiting",
        "409 Leadership Change",
        "409 Message Size Exceeds MaxBytes",
        "409 Server Shutdown",
        "503",
    } <= seen


def test_a_stop_and_an_election():
    clock = Clock()
    model = Model(clock, "TL")
    sent = []
    peer = Peer(model, sent.append)
    peer.receive(b"SUB _INBOX.p.* 1\r\n")
    body = b'{"batch":5,"expires":30000000000,"idle_heartbeat":1000000000}'
    pull = b"PUB $JS.API.CONSUMER.MSG.NEXT.TL.C _INBOX.p.%d %d\r\n%s\r\n"
    peer.receive(pull % (1, len(body), body))
    clock.run_until(1.5)
    model.step_down(["409 Server Shutdown", "409 Leadership Change"])
    peer.receive(pull % (2, len(body), body))
    recorded = [block for _, block in shape(b"".join(answers("103")))]
    absent = [block for _, block in shape(b"".join(answers("105"))) if b" 503" in block]
    found = [block for _, block in shape(b"".join(sent))]
    assert found[:3] == recorded[:3]
    assert found[3:] == [absent[0].replace(b".LD.", b".TL.")]


def answers(name):
    return [base64.b64decode(frame["b64"]) for frame in read(name) if frame["dir"] == "<"]


def test_a_pinned_client():
    """Transcript 43: the client is pinned, refused with another id, waits without one, unpinned."""
    clock = Clock()
    name = "7VYBCKhjZNPReeeRtnh3D7"
    model = PinningModel(clock, "PIN", pins=[name])
    for number in (1, 2, 3):
        model.add(b"m%d..." % number)
    sent = []
    peer = Peer(model, sent.append)
    for frame in read("43"):
        data = base64.b64decode(frame.get("b64", ""))
        now = frame["t_ms"] / 1000
        if b"423 Nats-Wrong-Pin-Id" in data and model.pin:
            model.unpin()
            model.add(b"m4...")
            clock.run_until(now)
            model.pump()
        if frame["dir"] == ">" and data.startswith((b"SUB", b"PUB $JS.API.CONSUMER.MSG.NEXT")):
            clock.run_until(now)
            peer.receive(data)
    clock.run_until(clock.now + 0.1)
    assert shape(b"".join(sent)) == shape(b"".join(answers("43")))
