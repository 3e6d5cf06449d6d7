"""Damaged dialogues: inputs raise no exception, and the client reconnects or is closed for good.

The mutations are seeded, so each run is the same. Add failing inputs to rows.py.
"""

from __future__ import annotations

import random

import pytest

from tests.connection.support import NO_RESPONDERS, PING, PONG, Wire, err, hmsg, info, msg
from tests.hostile.rows import ROWS

INBOX = "_INBOX." + "0" * 22
DIALOGUE = [
    info(nonce="x", connect_urls=["b:1", "c:1"]),
    PONG + info(client_id=3),
    msg("a", 1, b"hello") + msg("a", 1, b"r", "reply.to") + hmsg("a", 2, b"NATS/1.0\r\n\r\n"),
    hmsg(INBOX + ".1", 3, NO_RESPONDERS) + msg(INBOX + ".2", 3, b"yes") + PING,
    err('Permissions Violation for Subscription to "a" using queue "q"') + b"+OK\r\n",
    PONG + info(ldm=True) + msg("a", 1, b"x" * 100) + PONG,
    err('Permissions Violation for Publish to "b"') + PONG + PONG,
]
WORDS = [b"\r\n", b"\n", b" ", b"-1", b"0", b"99999999999", b"\xff", b"\0", b"{", b'"', b"'"]
WORDS += [b"MSG ", b"HMSG ", b"INFO ", b"PING\r\n", b"PONG\r\n", b"-ERR ", b"true", b"null"]
SMALL = [row.data for row in ROWS if len(row.data) < 300]


def damage(rng, data):
    """Make one to four changes: alter a byte, omit or repeat a piece, or insert hostile data."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + rng.randint(1, 20) :]
        elif kind == 2:
            data = data[:at] + data[at : at + 30] + data[at:]
        elif kind == 3:
            data = data[:at] + rng.choice(WORDS) + data[at:]
        else:
            data = data[:at] + rng.choice(SMALL) + data[at:]
    return data


def busy(rng):
    """Return a client with everything that a server could meddle with."""
    options = {"servers": ["nats://a", "nats://b"], "max_reconnects": 3, "ping_interval": 10.0}
    wire = Wire(**options, retry_on_first_connect=True, verbose=rng.random() < 0.5)
    connection = wire.connection
    boxes = [wire.subscribe("a", max_msgs=2), wire.subscribe("a", "q")]
    connection.unsubscribe(1, after=3)
    requests = [
        connection.start_request("a", deadline=9.0),
        connection.start_request("b", deadline=9.0),
        connection.start_gather("a", deadline=9.0, max_msgs=2, stall=0.5),
        connection.start_flush(9.0),
    ]
    wire.connect().opened()
    return wire, boxes, requests


def live(wire, rng, requests):
    """Play the damaged dialogue, in reads of any size, with other inputs in between."""
    for part in DIALOGUE:
        part = damage(rng, part) if rng.random() < 0.6 else part
        while part:
            size = rng.choice([1, 2, 7, 50, 1000])
            if wire.state in ("OPENING", "GREETING", "CONNECTED"):
                wire.data(part[:size])
            part = part[size:]
        if wire.state in ("WAITING", "DIALING"):
            wire.ring() if wire.state == "WAITING" else wire.opened()
        chance = rng.random()
        if chance < 0.1 and wire.state == "CONNECTED":
            requests.append(wire.connection.start_drain(wire.now + 5.0))
        elif chance < 0.2:
            wire.timer(at=wire.now + rng.random())


@pytest.mark.rule("D-CONN-20", "DRAIN-4", "REQ-4")
@pytest.mark.parametrize("part", range(8))
def test_damaged_dialogues(part):
    for seed in range(part * 200, part * 200 + 200):
        rng = random.Random(seed)
        wire, _, requests = busy(rng)
        live(wire, rng, requests)
        # No more answers arrive: timeouts settle everything, and in the end the client is closed.
        for _ in range(100):
            if wire.state == "CLOSED":
                break
            wire.timer(at=wire.deadline)
        assert wire.state == "CLOSED", seed
        assert all(request.done for request in requests), seed
        assert wire.connection.subscriptions.by_sid == {}
        events = wire.events()
        assert type(events[-1]).__name__ == "Closed"
        assert len(events) <= 256
