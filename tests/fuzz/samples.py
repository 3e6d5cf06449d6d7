"""Valid inputs for each check of answers.py, from the transcripts and from the library itself."""

from __future__ import annotations

import json
from typing import Any

from jetstream.objects.info import ObjectInfo
from natsproto import Info, Msg, Parser
from tests.fuzz.answers import CHECKS
from tests.wire.support import streams

LONGEST = 20_000
ACKS = [
    b"$JS.ACK.S.o_1.1.1.1.1794786870000000000.2\n$JS.ACK.S.o_1.1.2.2.1794786870000000000.1",
    b"$JS.ACK._.szMpdrwD.S.o_1.1.1.1.1794786870000000000.0",
    b"$JS.ACK.hub.szMpdrwD.S.o_1.1.7.1.1794786870000000000.0.more.tokens",
]
ADVISORY = {
    "type": "io.nats.jetstream.advisory.v1.max_deliver",
    "id": "x",
    "timestamp": "2026-01-01T00:00:00.123456789Z",
    "stream": "S",
    "consumer": "C",
    "stream_seq": 1,
    "deliveries": 5,
}
SERVICES: list[dict[str, Any]] = [
    {"type": "io.nats.micro.v1.ping_response", "name": "s", "id": "1", "version": "1.0.0"},
    {
        "type": "io.nats.micro.v1.info_response",
        "name": "s",
        "id": "1",
        "version": "1.0.0",
        "description": "d",
        "metadata": {"a": "b"},
        "endpoints": [{"name": "e", "subject": "e", "queue_group": "q", "metadata": {}}],
    },
    {
        "type": "io.nats.micro.v1.stats_response",
        "name": "s",
        "id": "1",
        "version": "1.0.0",
        "started": "2026-01-01T00:00:00Z",
        "endpoints": [{"name": "e", "subject": "e", "num_requests": 1, "processing_time": 5}],
    },
]
BLOCKS = [
    b"",
    b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n",
    b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n",
    b"NATS/1.0\r\nNats-Service-Error: bad\r\nNats-Service-Error-Code: 400\r\nfail: x\r\n\r\n",
]


def samples() -> dict[str, list[bytes]]:
    """Return the inputs by check."""
    found: dict[str, set[bytes]] = {name: set() for name in CHECKS}
    found["ack"].update(ACKS)
    found["advisory"].add(json.dumps(ADVISORY).encode())
    for stream in streams():
        if stream.peer == "server" and "err" not in stream.name:
            for frame in Parser().feed(stream.data):
                if isinstance(frame, Info):
                    found["info"].add(json.dumps(frame.fields).encode())
                elif isinstance(frame, Msg):
                    _take(found, frame)
    info = ObjectInfo.from_json({"name": "a", "bucket": "b", "nuid": "n", "size": 9, "chunks": 1})
    for block in BLOCKS:
        found["stored"].add(ACKS[1] + b"\n" + block + b"\0" + json.dumps(info.to_json()).encode())
        for answer in SERVICES:
            found["service"].add(b"_INBOX.x\n" + block + b"\0" + json.dumps(answer).encode())
    return {
        name: sorted(each for each in inputs if len(each) <= LONGEST)
        for name, inputs in found.items()
    }


def _take(found: dict[str, set[bytes]], msg: Msg) -> None:
    """Sort a message into the checks that it is an input of."""
    if msg.raw_reply.startswith(b"$JS.ACK."):
        found["ack"].add(msg.raw_reply)
        found["stored"].add(msg.raw_reply + b"\n" + (msg.raw_headers or b"") + b"\0" + msg.data)
    elif msg.raw_headers and b"Nats-Stream" in msg.raw_headers:
        found["stored"].add(b"\n" + msg.raw_headers + b"\0" + msg.data)
    elif msg.data.startswith(b"{"):
        advisory = b"advisory" in msg.data and b'"type"' in msg.data
        found["advisory" if advisory else "api"].add(msg.data)
