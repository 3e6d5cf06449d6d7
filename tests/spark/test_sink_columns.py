"""The columns of the sink: accepted types, and the encoded rows. No Spark, no server."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from jetstream.spark.columns import check_columns
from jetstream.spark.encoder import Encoder, to_batches
from jetstream.spark.options import WRITE, read_options
from natsproto.errors import InvalidValue

LISTS = pa.map_(pa.string(), pa.list_(pa.string()))
LARGE_LISTS = pa.map_(pa.large_string(), pa.list_(pa.large_string()))
PAIRS = pa.map_(pa.string(), pa.string())
HEAD = b"NATS/1.0\r\n"
TYPES = {
    "BINARY": BinaryType(),
    "STRING": StringType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "DATE": DateType(),
    "MAP<STRING,STRING>": MapType(StringType(), StringType()),
    "MAP<STRING,ARRAY<STRING>>": MapType(StringType(), ArrayType(StringType())),
}


def struct(text):
    """Parse a schema; Spark's own parser needs a session."""
    schema = StructType()
    for column in text.split(", "):
        name, kind = column.split()
        schema.add(name, TYPES[kind])
    return schema


def settings(**options):
    return read_options({"subject": "s.a", **options}, WRITE)


def encode(columns, ids="", first=0, atomic="", **options):
    arrays = [
        value if isinstance(value, pa.Array) else pa.array(value) for value in columns.values()
    ]
    encoder = Encoder(settings(**options), ids)
    encoder.rows = first
    return encoder.encode(pa.RecordBatch.from_arrays(arrays, list(columns)), atomic)


SCHEMAS = [
    ("data BINARY", {"data": "BINARY"}),
    ("data STRING, subject STRING", {"data": "STRING", "subject": "STRING"}),
    (
        "headers MAP<STRING,ARRAY<STRING>>, data BINARY",
        {"headers": "MAP<STRING,ARRAY<STRING>>", "data": "BINARY"},
    ),
    (
        "headers MAP<STRING,STRING>, data BINARY, ttl DOUBLE",
        {"headers": "MAP<STRING,STRING>", "data": "BINARY", "ttl": "DOUBLE"},
    ),
    (
        "data BINARY, msg_id STRING, expected_last_subject_sequence BIGINT",
        {"data": "BINARY", "msg_id": "STRING", "expected_last_subject_sequence": "BIGINT"},
    ),
]


@pytest.mark.parametrize(("schema", "kinds"), SCHEMAS)
def test_schemas(schema, kinds):
    assert check_columns(struct(schema), settings()) == kinds


def test_collations_do_not_matter():
    folded = StringType("UTF8_LCASE")
    schema = StructType().add("data", folded).add("headers", MapType(StringType(), folded))
    kinds = {"data": "STRING", "headers": "MAP<STRING,STRING>"}
    assert check_columns(schema, settings()) == kinds


WRONG_SCHEMAS = [
    ("subject STRING", "column data is missing"),
    ("data INT", "column data is INT; it can be BINARY or STRING"),
    ("data STRING, subject INT", "column subject is INT; it can be STRING"),
    (
        "data STRING, headers STRING",
        "column headers is STRING; it can be MAP<STRING,ARRAY<STRING>>",
    ),
    ("data STRING, msg_id BIGINT", "column msg_id is BIGINT; it can be STRING"),
    ("data STRING, ttl DATE", "column ttl is DATE; it can be TINYINT"),
    (
        "data STRING, expected_last_subject_sequence STRING",
        "column expected_last_subject_sequence is STRING; it can be INT or BIGINT",
    ),
    ("data STRING, sequence BIGINT", "column 'sequence' cannot be written: select data"),
    ("data STRING, data STRING", "column data is duplicated"),
]


@pytest.mark.parametrize(("schema", "why"), WRONG_SCHEMAS)
def test_wrong_schemas(schema, why):
    with pytest.raises(InvalidValue) as caught:
        check_columns(struct(schema), settings())
    assert why in str(caught.value)


def test_a_subject_is_required():
    with pytest.raises(InvalidValue, match="no subject: set option subject or add a column"):
        check_columns(struct("data STRING"), read_options({}, WRITE))


ENCODED = [  # what,  columns,  arguments,  the pieces of the rows
    ("text", {"data": ["é", ""]}, {}, [(b"s.a", b"\xc3\xa9", None), (b"s.a", b"", None)]),
    ("bytes", {"data": [b"\xff"]}, {}, [(b"s.a", b"\xff", None)]),
    (
        "subjects",
        {"data": [b"1", b"2", b"3"], "subject": ["x.y", None, ""]},
        {},
        [(b"x.y", b"1", None), (b"s.a", b"2", None), (b"s.a", b"3", None)],
    ),
    (
        "ids by number",
        {"data": [b"1", b"2"]},
        {"ids": "q.7.3", "first": 40},
        [
            (b"s.a", b"1", HEAD + b"Nats-Msg-Id: q.7.3.40\r\n\r\n"),
            (b"s.a", b"2", HEAD + b"Nats-Msg-Id: q.7.3.41\r\n\r\n"),
        ],
    ),
    (
        "ids by column, and by number where there is none",
        {"data": [b"1", b"2", b"3"], "msg_id": ["mine", None, ""]},
        {"ids": "q.0"},
        [
            (b"s.a", b"1", HEAD + b"Nats-Msg-Id: mine\r\n\r\n"),
            (b"s.a", b"2", HEAD + b"Nats-Msg-Id: q.0.1\r\n\r\n"),
            (b"s.a", b"3", HEAD + b"Nats-Msg-Id: q.0.2\r\n\r\n"),
        ],
    ),
    (
        "ids by header",
        {
            "data": [b"1", b"2"],
            "headers": pa.array([[("A", "1"), ("Nats-Msg-Id", "h")], None], PAIRS),
        },
        {"ids": "q.0"},
        [
            (b"s.a", b"1", HEAD + b"Nats-Msg-Id: h\r\nA: 1\r\n\r\n"),
            (b"s.a", b"2", HEAD + b"Nats-Msg-Id: q.0.1\r\n\r\n"),
        ],
    ),
    (
        "the column of ids counts more than the header",
        {
            "data": [b"1", b"2"],
            "headers": pa.array([[("Nats-Msg-Id", "h")], [("Nats-Msg-Id", "i")]], PAIRS),
            "msg_id": ["c", None],
        },
        {},
        [
            (b"s.a", b"1", HEAD + b"Nats-Msg-Id: c\r\n\r\n"),
            (b"s.a", b"2", HEAD + b"Nats-Msg-Id: i\r\n\r\n"),
        ],
    ),
    (
        "headers with several values, in a slice",
        {
            "data": [b"1", b"2", b"3"],
            "headers": pa.array(
                [[("X", ["0"])], [("A", ["1", "2"]), ("B", [])], [], [("C", ["é"])]], LISTS
            ).slice(1),
        },
        {},
        [
            (b"s.a", b"1", HEAD + b"A: 1\r\nA: 2\r\n\r\n"),
            (b"s.a", b"2", None),
            (b"s.a", b"3", HEAD + b"C: \xc3\xa9\r\n\r\n"),
        ],
    ),
    (
        "no headers at all",
        {"data": [b""], "headers": pa.array([None], LISTS)},
        {},
        [(b"s.a", b"", None)],
    ),
    (
        "times to live",
        {"data": [b""] * 4, "ttl": [1.0, 2.5, None, 1.0]},
        {},
        [
            (b"s.a", b"", HEAD + b"Nats-TTL: 1\r\n\r\n"),
            (b"s.a", b"", HEAD + b"Nats-TTL: 2500ms\r\n\r\n"),
            (b"s.a", b"", None),
            (b"s.a", b"", HEAD + b"Nats-TTL: 1\r\n\r\n"),
        ],
    ),
    (
        "times to live in words",
        {"data": [b""] * 2, "ttl": ["never", "60"]},
        {},
        [
            (b"s.a", b"", HEAD + b"Nats-TTL: never\r\n\r\n"),
            (b"s.a", b"", HEAD + b"Nats-TTL: 60\r\n\r\n"),
        ],
    ),
    (
        "expectations",
        {"data": [b"", b""], "expected_last_subject_sequence": [0, None]},
        {},
        [
            (b"s.a", b"", HEAD + b"Nats-Expected-Last-Subject-Sequence: 0\r\n\r\n"),
            (b"s.a", b"", None),
        ],
    ),
    (
        "a stream",
        {"data": [b"1"]},
        {"stream": "S"},
        [(b"s.a", b"1", HEAD + b"Nats-Expected-Stream: S\r\n\r\n")],
    ),
    (
        "an atomic batch",
        {"data": [b"1", b"2"]},
        {"atomic": "B"},
        [
            (b"s.a", b"1", HEAD + b"Nats-Batch-Id: B\r\nNats-Batch-Sequence: 1\r\n\r\n"),
            (b"s.a", b"2", HEAD + b"Nats-Batch-Id: B\r\nNats-Batch-Sequence: 2\r\n\r\n"),
        ],
    ),
    ("nothing", {"data": pa.array([], pa.binary())}, {"ids": "q"}, []),
]


@pytest.mark.parametrize(
    ("columns", "arguments", "pieces"),
    [row[1:] for row in ENCODED],
    ids=[row[0] for row in ENCODED],
)
def test_encoded_rows(columns, arguments, pieces):
    assert encode(columns, **arguments) == pieces


WRONG_ROWS = [
    ({"data": [b"1", None]}, "row 8: data is null"),
    ({"data": [b"1"], "subject": ["a b"]}, "row 7: subject 'a b'"),
    ({"data": [b"1", b"2"], "subject": ["a", "b.>"]}, "row 8: subject 'b.>' has a wildcard"),
    (
        {"data": [b"1"], "msg_id": ["a\r\nX: 1"]},
        "row 7: msg_id: value 'a\\r\\nX: 1' cannot be sent",
    ),
    ({"data": [b"1"], "msg_id": [" a"]}, "row 7: msg_id: value ' a' cannot be sent"),
    ({"data": [b"1"], "headers": pa.array([[("A B", "1")]], PAIRS)}, "headers: header name 'A B'"),
    (
        {"data": [b"1", b"2"], "headers": pa.array([[("A", "1")], [("A", "x\n")]], PAIRS)},
        "row 8: headers: value 'x\\n' cannot be sent",
    ),
    (
        {"data": [b"1", b"2"], "headers": pa.array([None, [("A", [None])]], LISTS)},
        "row 8: headers: value None cannot be sent",
    ),
    (
        {"data": [b"1", b"2"], "headers": pa.array([[("A", [])], [("A", None)]], LISTS)},
        "row 8: headers: value None cannot be sent",
    ),
    (
        {"data": [b"1"], "headers": pa.array([[("Nats-Batch-Id", "1")]], PAIRS)},
        "headers: Nats-Batch-Id is reserved for the sink; remove it, for example by map_filter(",
    ),
    (
        {"data": [b"1"], "headers": pa.array([[("Nats-TTL", "1")]], PAIRS), "ttl": [1]},
        "headers: Nats-TTL is reserved for the sink",
    ),
    ({"data": [b"1", b"2"], "ttl": [1, 0]}, "row 8: ttl is invalid: ttl 0 is neither"),
    ({"data": [b"1", b"2"], "ttl": [1.0, math.nan]}, "row 8: ttl is invalid: ttl nan is neither"),
    ({"data": [b"1"], "ttl": ["soon"]}, "row 7: ttl is invalid: ttl 'soon' is neither"),
    (
        {"data": [b"1"], "expected_last_subject_sequence": [-1]},
        "row 7: expected_last_subject_sequence is negative",
    ),
]


@pytest.mark.parametrize(("columns", "why"), WRONG_ROWS)
def test_wrong_rows(columns, why):
    with pytest.raises(InvalidValue) as caught:
        encode(columns, first=7)
    assert why in str(caught.value)


def test_a_row_without_any_subject():
    encoder = Encoder(read_options({}, WRITE), "")
    batch = pa.RecordBatch.from_arrays(
        [pa.array([b"1", b"2"]), pa.array(["a", None])], ["data", "subject"]
    )
    with pytest.raises(InvalidValue, match="row 1: subject is None, and option subject is not set"):
        encoder.encode(batch)


def test_large_types_are_encoded_the_same():
    """Large types come from spark.sql.execution.arrow.useLargeVarTypes."""
    rows = {
        "data": ([b"1", b"2"], pa.binary(), pa.large_binary()),
        "subject": (["a", "b"], pa.string(), pa.large_string()),
        "msg_id": (["i", None], pa.string(), pa.large_string()),
        "ttl": (["5", None], pa.string(), pa.large_string()),
        "headers": ([[("A", ["1", "2"])], None], LISTS, LARGE_LISTS),
    }
    usual, large = [
        {name: pa.array(column[0], column[which]) for name, column in rows.items()}
        for which in (1, 2)
    ]
    assert encode(large, ids="q") == encode(usual, ids="q")


def test_rows_are_counted_over_batches():
    encoder = Encoder(settings(), "q")
    batch = pa.RecordBatch.from_arrays([pa.array([b""] * 3)], ["data"])
    blocks = [block for _, _, block in encoder.encode(batch) + encoder.encode(batch)]
    assert blocks == [HEAD + b"Nats-Msg-Id: q.%d\r\n\r\n" % number for number in range(6)]


def test_rows_are_converted_to_batches():
    kinds = {"data": "BINARY", "ttl": "INT", "headers": "MAP<STRING,ARRAY<STRING>>"}
    rows = [(bytearray(b"%d" % number), None, {"A": ["x"]}) for number in range(10_001)]
    batches = list(to_batches(iter(rows), kinds))
    assert [batch.num_rows for batch in batches] == [10_000, 1]
    assert batches[1].to_pylist() == [{"data": b"10000", "ttl": None, "headers": [("A", ["x"])]}]
    assert list(to_batches(iter([]), kinds)) == []


def test_batches_of_large_rows_are_small():
    rows = [("a", "x" * 50_000), ("a", None), ("a", "é" * 200_000), ("a", "y")]
    batches = list(to_batches(iter(rows), {"subject": "STRING", "data": "STRING"}))
    assert [batch.num_rows for batch in batches] == [3, 1]
