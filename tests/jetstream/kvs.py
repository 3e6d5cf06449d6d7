"""Helpers for tests of the key-value store: a bucket, and the messages that its stream delivers."""

from __future__ import annotations

from typing import Any

from jetstream import JetStream
from tests.jetstream import buckets
from tests.jetstream.buckets import NO_STREAM as NO_STREAM
from tests.jetstream.buckets import TIME as TIME
from tests.jetstream.support import Delivery, Stage, Status

# The name of a bucket's first watch, by the scripted randomness.
NAME = "1" * 22


def stream(bucket: str = "b", **config: Any) -> dict[str, Any]:
    """Return the info of a bucket's stream."""
    fields = {"max_msgs_per_subject": 5, "allow_direct": True, **config}
    return {"config": {"name": "KV_" + bucket, **fields}, "state": {"messages": 3, "bytes": 99}}


def bucket(*answers: Any, info: dict[str, Any] | None = None, **config: Any) -> Any:
    """Return a stage with these answers, and a bucket that was looked up."""
    stage = Stage(stream(**config), *answers)
    kv = stage.run(JetStream(stage.client, **(info or {})).key_value("b"))
    assert len(stage.pubs) == 1
    return stage, kv


def created(pending: int = 0, serial: int = 1, seq: int = 0, sent: int = 0) -> dict[str, Any]:
    """Return the info of an existing consumer with this many pending messages."""
    return buckets.created("KV_b", NAME, pending, serial, seq, sent)


def there(keys: int, last: int = 9) -> dict[str, Any]:
    """Return how many keys the bucket has, and its last sequence."""
    return buckets.state("KV_b", last, keys)


def listed(last: int = 9, **keys: int) -> dict[str, Any]:
    """Return which keys the bucket has, and how many entries of each; `_` stands for a dot."""
    subjects = {"$KV.b." + key.replace("_", "."): keys[key] for key in keys}
    return buckets.state("KV_b", last, subjects)


def entry(
    key: str,
    seq: int,
    number: int,
    pending: int,
    operation: str = "",
    serial: int = 1,
    name: str = NAME,
) -> Delivery:
    """Return a message of a key: its sequence in the bucket, and its number from this consumer."""
    block = "NATS/1.0\r\nKV-Operation: %s\r\n\r\n" % operation if operation else ""
    reply = "$JS.ACK.KV_b.%s_%d.1.%d.%d.1000000000.%d" % (name, serial, seq, number, pending)
    data = b"" if operation else b"%d" % seq
    return Delivery("$KV.b." + key, reply, data, block.encode())


def direct(key: str, seq: int, data: bytes = b"v", operation: str = "") -> Status:
    """Return a message as direct get answers it."""
    own = {"KV_Operation": operation} if operation else {}
    place = {"Nats_Subject": "$KV.b." + key, "Nats_Sequence": seq, "Nats_Time_Stamp": TIME}
    return Status("", data, **own, Nats_Stream="KV_b", **place)


def short(stage: Stage) -> list[str]:
    """Return the subjects of all requests, without the API's prefix and the names of watches."""
    words = []
    for pub in stage.pubs:
        subject = pub.subject.replace("$JS.API.", "").replace(NAME, "w")
        words.append(subject)
    return words
