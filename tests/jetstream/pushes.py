"""A push machine, and messages, heartbeats and flow control as push consumers send them."""

from __future__ import annotations

from typing import Any

from jetstream.push.machine import Push
from jetstream.push.policy import PlainPush
from natsproto.wire.frames import Msg

DELIVER = b"_INBOX.d"


def pushing(
    at: float = 0.0, heartbeat: float = 5.0, last: int = 0, queue: bool = False, **options: Any
) -> Push:
    """Return a connected machine whose consumer was created for it."""
    machine = Push(PlainPush(last, queue), heartbeat=heartbeat, **options)
    machine.connected(at)
    return machine


def message(
    number: int,
    data: bytes = b"x",
    *,
    consumer: str = "C",
    stream_seq: int = 0,
    count: int = 1,
    tokens: int = 9,
    headers: bytes | None = None,
) -> Msg:
    """Return the delivery with this number, of the message of the same number unless `stream_seq`.

    Its size is that of its payload.
    """
    start = {9: "S.", 11: "hub.szMpdrwD.S.", 12: "_.szMpdrwD.S."}[tokens]
    end = ".more" if tokens == 12 else ""
    sequence = stream_seq or number
    reply = f"$JS.ACK.{start}{consumer}.{count}.{sequence}.{number}.1794786870000000000.0{end}"
    return Msg(b"s.x", 1, reply.encode(), data, headers, len(data))


def status(
    line: str, headers: str = "", reply: bytes = b"", subject: bytes = DELIVER, data: bytes = b""
) -> Msg:
    return Msg(subject, 1, reply, data, f"NATS/1.0 {line}\r\n{headers}\r\n".encode())


def beat(last: object, stalled: str = "", subject: bytes = DELIVER) -> Msg:
    headers = f"Nats-Last-Consumer: {last}\r\nNats-Last-Stream: 99\r\n"
    if stalled:
        headers += f"Nats-Consumer-Stalled: {stalled}\r\n"
    return status("100 Idle Heartbeat", headers, subject=subject)


def flow(where: str, subject: bytes = DELIVER) -> Msg:
    return status("100 FlowControl Request", reply=where.encode(), subject=subject)
