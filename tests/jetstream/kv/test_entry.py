from __future__ import annotations

import pytest

from jetstream.api.stored import StoredMsg
from jetstream.errors import InvalidResponse
from jetstream.kv.entry import KeyValueEntry, delivered_entries, delivered_entry, stored_entry
from jetstream.message import JsMsg
from jetstream.schema.timestamp import Timestamp
from natsproto.wire.frames import Msg

TIME = Timestamp(1_794_786_870_000_000_001)
REPLY = b"$JS.ACK.KV_b.c.1.7.3.1794786870000000001.2"


def block(*lines):
    return ("\r\n".join(["NATS/1.0", *lines]) + "\r\n\r\n").encode()


OPERATIONS = [
    # header block, operation
    (None, "PUT"),
    (block("A: b"), "PUT"),
    (block("KV-Operation: DEL"), "DEL"),
    (block("KV-Operation: PURGE", "Nats-Rollup: sub"), "PURGE"),
    (block("KV-Operation: PUT"), "PUT"),
    (block("KV-Operation: anything"), "DEL"),
    (block("KV-Operation: DEL", "Nats-Marker-Reason: MaxAge"), "DEL"),
    (block("Nats-Marker-Reason: MaxAge", "Nats-TTL: 1s"), "PURGE"),
    (block("Nats-Marker-Reason: Purge"), "PURGE"),
    (block("Nats-Marker-Reason: Remove"), "DEL"),
    (block("Nats-Marker-Reason: anything"), "DEL"),
    (block("A: KV-Operation"), "PUT"),
    pytest.param(b"KV-Operation: DEL\r\n", "PUT", marks=pytest.mark.rule("D-KV-32")),
]


@pytest.mark.rule("KV-25")
@pytest.mark.parametrize(("raw", "operation"), OPERATIONS)
def test_operations(raw, operation):
    stored = stored_entry(StoredMsg("KV_b", "$KV.b.a.b", 7, TIME, b"x", raw), "b", "a.b")
    assert stored == KeyValueEntry("b", "a.b", b"x", 7, TIME, 0, operation)
    msg = Msg(b"$KV.b.a.b", 1, REPLY, b"x", raw)
    delivered = delivered_entry(JsMsg(msg, None, True), "b", "$KV.b.")
    assert delivered == KeyValueEntry("b", "a.b", b"x", 7, TIME, 2, operation)
    assert stored.deleted == delivered.deleted == (operation != "PUT")


def test_with_a_domain():
    reply = b"$JS.ACK.hub.hash.KV_b.c.1.7.3.1794786870000000001.2.more"
    msg = JsMsg(Msg(b"$KV.b.k", 1, reply, b"x", None), None, True)
    assert delivered_entry(msg, "b", "$KV.b.") == KeyValueEntry("b", "k", b"x", 7, TIME, 2)


@pytest.mark.parametrize("wrong", [b"x", b"", b"-1", b"9" * 21])
def test_invalid_times(wrong):
    reply = REPLY.replace(b"1794786870000000001", wrong)
    msg = JsMsg(Msg(b"$KV.b.k", 1, reply, b"x", None), None, True)
    with pytest.raises(InvalidResponse, match="is not an acknowledgment subject"):
        delivered_entry(msg, "b", "$KV.b.")


def test_entries_up_to_an_invalid_one():
    msgs = [Msg(b"$KV.b.%d" % number, 1, REPLY, b"x") for number in range(4)]
    msgs[2].raw_reply = b"$JS.ACK.KV_b.c.1.7.3.1794786870000000001.x"
    assert [entry.key for entry in delivered_entries(msgs, "b", "$KV.b.")] == ["0", "1"]
    with pytest.raises(InvalidResponse, match="is not an acknowledgment subject"):
        delivered_entries(msgs[2:], "b", "$KV.b.")
    assert delivered_entries([], "b", "$KV.b.") == []


def test_repr():
    assert repr(KeyValueEntry("b", "k", b"v", 1, Timestamp(0))) == (
        "KeyValueEntry(bucket='b', key='k', value=b'v', revision=1,"
        " created=Timestamp('1970-01-01T00:00:00Z'), delta=0, operation='PUT')"
    )
