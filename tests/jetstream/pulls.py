"""Messages and statuses as a consumer sends them, and the publishes of a machine."""

from __future__ import annotations

import json
from typing import Any

from jetstream.pull.ledger import PullTemplate
from natsproto.connection.receiver import Receiver
from natsproto.wire.frames import Msg
from tests.effects import publishes

INBOX = b"_INBOX.i"
SUBJECT = b"$JS.API.CONSUMER.MSG.NEXT.S.C"
PIN = "7VYBCKhjZNPReeeRtnh3D7"


def template(
    expires: float = 30.0, heartbeat: float = 5.0, pinned: bool = False, **fields: Any
) -> PullTemplate:
    return PullTemplate(SUBJECT, fields, expires, heartbeat, pinned)


def message(size: int = 40, number: int = 1, headers: bytes | None = None) -> Msg:
    """Return a message of `size` bytes: subject and reply have 37, headers are extra."""
    reply = b"$JS.ACK.S.C.1.%d.%d.1794786870000000000.0" % (number, number)
    data = b"x" * (size - 1 - len(reply))
    return Msg(b"s", 1, reply, data, headers)


def status(token: int, line: str, messages: int | None = None, size: int = 0) -> Msg:
    block = b"NATS/1.0 %s\r\n" % line.encode()
    if messages is not None:
        block += b"Nats-Pending-Messages: %d\r\nNats-Pending-Bytes: %d\r\n" % (messages, size)
    return Msg(INBOX + b".%d" % token, 1, b"", b"", block + b"\r\n")


def beat(token: int = 1) -> Msg:
    return status(token, "100 Idle Heartbeat")


def pinned(pin: str = PIN, size: int = 60) -> Msg:
    return message(size, headers=b"NATS/1.0\r\nNats-Pin-Id: %s\r\n\r\n" % pin.encode())


def ordered(machine: Receiver) -> list[dict[str, Any]]:
    """Return the bodies of the pulls since the last look; each has the token of its reply, too."""
    found = []
    for order in publishes(machine):
        assert (order.subject, order.block) == (SUBJECT, None)
        body: dict[str, Any] = json.loads(order.data)
        assert order.reply.startswith(INBOX + b".")
        body["token"] = int(order.reply[len(INBOX) + 1 :])
        found.append(body)
    return found


def batches(machine: Receiver) -> list[int]:
    return [body["batch"] for body in ordered(machine)]
