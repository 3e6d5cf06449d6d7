"""Helpers for tests of the object store: a bucket, and the messages that its stream delivers."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from jetstream import JetStream
from tests.jetstream import buckets
from tests.jetstream.buckets import NO_STREAM as NO_STREAM
from tests.jetstream.buckets import TIME as TIME
from tests.jetstream.support import Delivery, Stage, Status

NO_MESSAGE = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
NOT_FOUND = Status("404 Message Not Found")
PURGED = {"success": True, "purged": 1}


def stream(bucket: str = "b", **config: Any) -> dict[str, Any]:
    """Return the info of a bucket's stream."""
    fields = {"allow_direct": True, **config}
    return {"config": {"name": "OBJ_" + bucket, **fields}, "state": {"messages": 3, "bytes": 99}}


def store(*answers: Any, info: dict[str, Any] | None = None, **config: Any) -> Any:
    """Return a stage with these answers, and a bucket that was looked up."""
    stage = Stage(stream(**config), *answers)
    bucket = stage.run(JetStream(stage.client, **(info or {})).object_store("b"))
    assert len(stage.pubs) == 1
    return stage, bucket


def token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def digest(data: bytes) -> str:
    return "SHA-256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()


def info_json(name: str = "o", data: bytes = b"", chunks: int = 0, **more: Any) -> dict[str, Any]:
    """Return the info of an object with this data, as JSON."""
    info = {"name": name, "bucket": "b", "nuid": "N", "size": len(data), "chunks": chunks}
    return {**info, "digest": digest(data), **more}


def direct(info: dict[str, Any], seq: int = 7, id: str = "") -> Status:
    """Return the same as direct get answers it."""
    own = {"Nats_Msg_Id": id} if id else {}
    subject = "$O.b.M." + token(info["name"])
    place = {"Nats_Subject": subject, "Nats_Sequence": seq, "Nats_Time_Stamp": TIME}
    return Status("", json.dumps(info).encode(), **own, Nats_Stream="OBJ_b", **place)


def by_api(info: dict[str, Any], seq: int = 7, block: bytes = b"") -> dict[str, Any]:
    """Return the same as STREAM.MSG.GET answers it."""
    message = {"subject": "$O.b.M." + token(info["name"]), "seq": seq, "time": TIME}
    message["data"] = base64.b64encode(json.dumps(info).encode()).decode()
    if block:
        message["hdrs"] = base64.b64encode(block).decode()
    return {"message": message}


def ack(seq: int) -> dict[str, Any]:
    return {"stream": "OBJ_b", "seq": seq}


def wrong(last: int) -> dict[str, Any]:
    text = "wrong last sequence: %d" % last
    return {"error": {"code": 400, "err_code": 10071, "description": text}}


def created(name: str, pending: int = 0, serial: int = 1, sent: int = 0) -> dict[str, Any]:
    """Return the info of an existing consumer with this many pending messages."""
    return buckets.created("OBJ_b", name, pending, serial, 0, sent)


def listed(*names: str, last: int = 9) -> dict[str, Any]:
    """Return the answer of a stream that lists the infos of these objects."""
    return buckets.state("OBJ_b", last, {"$O.b.M." + token(name): 1 for name in names})


def delivery(
    subject: str, data: bytes, number: int, pending: int, name: str, serial: int = 1, seq: int = 0
) -> Delivery:
    """Return a message of the stream: its number from this consumer, and how many are pending."""
    place = (name, serial, seq or number, number, pending)
    reply = "$JS.ACK.OBJ_b.%s_%d.1.%d.%d.1000000000.%d" % place
    return Delivery(subject, reply, data)


def short(stage: Stage) -> list[str]:
    """Return the subjects of all requests, without the prefix of the API."""
    return [pub.subject.replace("$JS.API.", "") for pub in stage.pubs]
