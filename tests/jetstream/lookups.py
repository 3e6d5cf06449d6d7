"""Answers to CONSUMER.INFO."""

from __future__ import annotations

import json
from typing import Any

from natsproto.wire.frames import Msg


def body(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode()


def failure(code: int, err_code: int, description: str) -> bytes:
    return body({"error": {"code": code, "err_code": err_code, "description": description}})


HERE = body({"stream_name": "S", "name": "C", "config": {}})
NO_CONSUMER = failure(404, 10014, "consumer not found")
NO_STREAM = failure(404, 10059, "stream not found")
NO_LEADER = failure(503, 10008, "JetStream system temporarily unavailable")
NOT_ENABLED = failure(503, 10039, "JetStream not enabled for account")
NONSENSE = b"{"
NO_RESPONDERS = b""


def answer(data: bytes, subject: bytes = b"_INBOX.i.i1") -> Msg:
    block = None if data else b"NATS/1.0 503\r\n\r\n"
    return Msg(subject, 1, b"", data, block)
