"""Messages as Arrow: every column, odd messages, and the fast way against the plain one."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
import pytest

from jetstream.api.stored import StoredMsg
from jetstream.errors import InvalidResponse, NotJetStreamMessage
from jetstream.schema.timestamp import Timestamp
from jetstream.spark.arrow import (
    arrow_schema,
    pulled_rows,
    read_headers,
    read_replies,
    record_batch,
)
from jetstream.spark.direct import direct_rows, read_times
from jetstream.spark.offsets import (
    DataLost,
    Place,
    end_offset,
    first_to_read,
    initial_offset,
    planned,
    read_places,
    start_places,
)
from jetstream.spark.plan import Plan
from natsproto.errors import InvalidValue
from natsproto.wire.frames import Msg
from tests.spark.support import ROWS, schema

TIME = 1_700_000_000_123_456_789
OLD = "$JS.ACK.S.c.%d.%d.%d.%d.9"
NEW = "$JS.ACK._.hash.S.c.%d.%d.%d.%d.9.token"


def reply(seq: int, form: str = OLD, delivered: int = 1) -> bytes:
    return (form % (delivered, seq, seq, TIME + seq)).encode()


def batch_of(*messages: Msg, columns: tuple[str, ...] = ROWS, bare: bool = False) -> list[dict]:
    wanted = arrow_schema(schema(*columns))
    batch = record_batch(pulled_rows("S", list(messages), bare), wanted)
    batch.validate(full=True)
    assert batch.schema.equals(wanted)
    return batch.to_pylist()


@pytest.mark.parametrize("form", [OLD, NEW])
def test_replies_are_parsed_as_csv(form):
    sequences, times = read_replies([reply(seq, form) for seq in (1, 5, 99999999999)])
    assert sequences.to_pylist() == [1, 5, 99999999999]
    assert times.to_pylist() == [TIME + 1, TIME + 5, TIME + 99999999999]


def test_replies_of_different_forms_are_parsed_one_by_one():
    replies = [reply(1), reply(2, delivered=2), reply(3, delivered=100), reply(4, NEW)]
    assert read_replies(replies)[0].to_pylist() == [1, 2, 3, 4]
    # Redelivered messages may arrive first, and their delivery count may have more digits.
    replies = [reply(1234, delivered=10), reply(1235), reply(1236, delivered=2)]
    assert read_replies(replies)[0].to_pylist() == [1234, 1235, 1236]
    with pytest.raises(NotJetStreamMessage):
        read_replies([b"inbox.1"])
    with pytest.raises(NotJetStreamMessage):
        read_replies([reply(1), b"inbox.1"])


def test_all_columns():
    block = b"NATS/1.0\r\nA: 1\r\nB:  two \r\nA: 3\r\n\r\n"
    columns = (*ROWS, "timestamp_ns")
    first, second = batch_of(
        Msg(b"a.b", 1, reply(7), b"data", block), Msg(b"a.c", 1, reply(9)), columns=columns
    )
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=datetime.timezone.utc)
    assert first == {
        "subject": "a.b",
        "data": b"data",
        "headers": [("A", ["1", "3"]), ("B", ["two"])],
        "stream": "S",
        "sequence": 7,
        "timestamp": at,
        "timestamp_ns": TIME + 7,
    }
    assert (second["headers"], second["data"], second["sequence"]) == (None, b"", 9)


def test_columns_follow_the_order_of_the_schema():
    (row,) = batch_of(Msg(b"a", 1, reply(1), b"x"), columns=("sequence", "data"))
    assert list(row.items()) == [("sequence", 1), ("data", b"x")]


def test_without_payloads_data_is_null():
    (row,) = batch_of(Msg(b"a", 1, reply(1), b""), columns=("data",), bare=True)
    assert row["data"] is None


def test_malformed_messages_do_not_stop_a_read():
    rows = batch_of(
        Msg(b"a.\xff", 1, reply(1), b"\xff"),
        Msg(b"b", 1, reply(2), b"", b"NATS/1.0 503 Odd\r\nno colon\r\n: none\r\nK\xff: v\r\n\r\n"),
        Msg(b"c", 1, reply(3), b"", b"garbage"),
        Msg(b"d", 1, reply(4), b"", b"NATS/1.0\r\n\r\n"),
        Msg(b"e", 1, reply(5), b"", b"NATS/1.0\r\nX: 1\r\nY: 2\r\nX: 3\r\nZ: 4\r\n\r\n"),
        Msg(b"f", 1, reply(6), b"", b"NATS/1.0\r\nW: 5\r\n\r\n"),
    )
    assert [row["subject"] for row in rows] == ["a.\ufffd", "b", "c", "d", "e", "f"]
    assert [row["headers"] for row in rows] == [
        None,
        [("K\ufffd", ["v"])],
        [],
        [],
        [("X", ["1", "3"]), ("Y", ["2"]), ("Z", ["4"])],
        [("W", ["5"])],
    ]


def test_read_headers_parses_one_block():
    block = b"NATS/1.0\r\nX: 1\r\nY: 2\r\nX: 3\r\n\r\n"
    assert read_headers(block) == {"X": ["1", "3"], "Y": ["2"]}


def test_a_record_batch_has_the_types_that_spark_requires():
    assert arrow_schema(schema("timestamp")).field("timestamp").type == pa.timestamp("us", "UTC")


# Direct get


PLACE = (
    "\r\nNats-Stream: S\r\nNats-Subject: a.b\r\nNats-Sequence: %d\r\nNats-Time-Stamp: %s\r\n\r\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T23:55:50.071146522Z",
        "2026-11-15T23:55:50.0711465Z",
        "2026-11-15T23:55:50.1Z",
        "2026-11-15T23:55:50Z",
        "1970-01-01T00:00:00Z",
        "2026-11-15T23:55:50.071146522+01:00",
    ],
)
def test_times_parsed_in_columns_equal_times_parsed_one_by_one(text):
    assert read_times([text.encode()]).to_pylist() == [Timestamp.parse(text).ns]


def test_messages_of_direct_get():
    when = "2026-11-15T23:55:50.071146522Z"
    plain = ("NATS/1.0" + PLACE % (7, when)).encode()
    # A republished message has such headers of its own; the server's are the last ones.
    own = "NATS/1.0\r\nA: 1\r\nNats-Stream: OLD\r\nNats-Subject: x\r\nNats-Sequence: 1"
    other = (own + PLACE % (9, when)).encode()
    messages = [Msg(b"i", 1, b"", b"d", plain), Msg(b"i", 1, b"", b"e", other)]
    rows = direct_rows("S", messages, pytest.fail)
    assert rows.sequences.to_pylist() == [7, 9]
    assert rows.times.to_pylist() == [Timestamp.parse(when).ns] * 2
    assert rows.subjects == [b"a.b", b"a.b"]
    assert rows.headers == [None, own.encode() + b"\r\n\r\n"]
    assert rows.take([1]).sequences.to_pylist() == [9]
    for odd in (None, b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\nNats-Stream: S\r\n\r\n"):
        with pytest.raises(InvalidResponse, match="is not a stored message"):
            direct_rows("S", [Msg(b"i", 1, b"", b"", odd)], pytest.fail)


def test_a_direct_message_with_unterminated_headers_is_reread():
    when = "2026-11-15T23:55:50.071146522Z"
    mangled = ("NATS/1.0\r\nA:" + (PLACE % (7, when)).removeprefix("\r\n")).encode()
    stored = StoredMsg("S", "a.b", 7, Timestamp(0), b"whole", b"NATS/1.0\r\nA: b")
    later = StoredMsg("S", "a.b", 8, Timestamp(0), b"another", None)
    for answer, data, block in [
        (stored, b"whole", b"NATS/1.0\r\nA: b"),
        (later, b"d", b"NATS/1.0\r\nA:"),  # it is gone by now
        (None, b"d", b"NATS/1.0\r\nA:"),
    ]:
        requested: list[int] = []
        rows = direct_rows(
            "S",
            [Msg(b"i", 1, b"", b"d", mangled)],
            lambda seq, requested=requested, answer=answer: requested.append(seq) or answer,
        )
        assert (requested, rows.data, rows.headers) == ([7], [data], [block])
        assert (rows.sequences.to_pylist(), rows.subjects) == ([7], [b"a.b"])


# Offsets


class Here:
    name, created, first, next = "S", "then", 5, 10


def test_an_offset_survives_a_json_round_trip():
    places = {"S": Place(4, "then"), "T": Place(1, "now")}
    assert read_places(json.loads(json.dumps(initial_offset(places)))) == places


@pytest.mark.parametrize("text", ["0", "-5", "1.5", "true", '"7"', "null", "[1]"])
def test_a_manually_changed_offset_is_rejected(text):
    place = '{"streams": {"S": {"next": %s, "created": "then"}}}'
    assert read_places(json.loads(place % "7")) == {"S": Place(7, "then")}
    with pytest.raises(InvalidValue, match="is not one of mode=sequence"):
        read_places(json.loads(place % text))


def test_a_plan_survives_a_json_round_trip():
    plan = Plan(["a.*", "b"], 3, 0, 500, {"S": 4})
    end = json.loads(json.dumps(end_offset({"S": Place(9, "then")}, {}, plan)))
    assert vars(planned(end)) == vars(plan)
    assert planned({"streams": {}}) is None  # as older versions wrote it


@pytest.mark.parametrize(
    "odd", [3, {}, {"workers": 2}, {"filters": [], "workers": -1, "least": 0, "most": 0}]
)
def test_a_manually_changed_plan_is_rejected(odd):
    with pytest.raises(InvalidValue, match="is not one of mode=sequence"):
        planned({"streams": {}, "plan": odd})


def test_an_offset_of_a_later_version_is_rejected():
    offset = end_offset({"S": Place(9, "then")}, {}, Plan([], 1, 0, 0, {}))
    assert offset["v"] == 1
    without = {"streams": offset["streams"]}
    assert read_places(offset) == read_places(without) == {"S": Place(9, "then")}
    for version in (4, "1", None):
        with pytest.raises(InvalidValue, match="reads up to 3: run the query with"):
            read_places({**offset, "v": version})


@pytest.mark.parametrize(
    "odd",
    [
        {},
        3,
        None,
        {"streams": 3},
        {"streams": {"S": {"next": 1}}},
        {"streams": {"S": 1}},
        {"consumer": "S/worker", "batch": 7},
    ],
)
def test_an_offset_of_another_source_is_rejected(odd):
    with pytest.raises(InvalidValue, match="is not one of mode=sequence"):
        read_places(odd)


def test_the_first_batch_starts_where_its_end_offset_says():
    early, late = {"S": Place(4, "then")}, {"S": Place(9, "then")}
    plan = Plan([], 1, 0, 0, {})
    end = end_offset(late, initial_offset(early), plan)
    assert start_places(initial_offset({"S": Place(8, "then")}), end) == early
    # Later batches begin where the one before them ended, whatever that one carries.
    assert start_places(end, end_offset({"S": Place(12, "then")}, end, plan)) == late
    assert "init" not in end_offset(late, end, plan)


@pytest.mark.parametrize(
    ("place", "message", "first"),
    [
        (Place(7, "then"), None, 7),
        (Place(5, "then"), None, 5),
        (Place(10, "then"), None, 10),
        (Place(3, "then"), "messages 3 to 4 of stream S were removed", 5),
        (Place(7, "before"), "stream S was recreated at then", 5),
        (Place(12, "then"), "stream S ends before sequence 10, and was read up to 11", 10),
    ],
)
def test_lost_messages_raise_or_warn(place, message, first, caplog):
    if message is None:
        assert first_to_read(place, Here, True, True) == first
    else:
        with pytest.raises(DataLost, match=message):
            first_to_read(place, Here, True, True)
        assert first_to_read(place, Here, False, False) == first
        assert message in caplog.text
